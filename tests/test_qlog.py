"""qlog: what is written is what the drafts say, and what others have written is read."""

from __future__ import annotations

import codecs
import datetime
import gzip
import heapq
import itertools
import json
import math
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import paceline
import screen
from needs import require
from paceline.errors import PacelineError, StorageError
from paceline.live.qlog import flows_of, is_log
from qlog_schema import CRATE, SCHEMA, read_records, validator


def test_what_is_written_fits_the_drafts_definitions() -> None:
    # crates/qlog/tests/written.rs writes each event and each frame, and holds the file against what is written now.
    header, *events = read_records(CRATE / "written.sqlog")
    validator("Header").validate(header)
    event = validator("Event")
    for record in events:
        event.validate(record)
    defined = {one["properties"]["name"]["const"] for one in SCHEMA["$defs"]["Event"]["oneOf"]}
    assert {record["name"] for record in events} == defined
    frames = {one["properties"]["frame_type"]["const"] for one in SCHEMA["$defs"]["Frame"]["oneOf"]}
    written = {frame["frame_type"] for record in events for frame in record["data"].get("frames", [])}
    assert written == frames


@pytest.mark.parametrize(
    "event",
    [
        {"time": 1.0, "name": "quic:packet_lost", "data": {"trigger": "bad_luck"}},
        {"time": 1.0, "name": "quic:recovery_metrics_updated", "data": {}},
        {"time": 1.0, "name": "recovery:metrics_updated", "data": {"min_rtt": 1}},
        {"time": "1", "name": "quic:congestion_state_updated", "data": {"new": "recovery"}},
        {"time": 1.0, "name": "quic:packets_acked", "data": {"packet_numbers": []}},
    ],
)
def test_the_schema_refuses_what_is_wrong(event: dict[str, Any]) -> None:
    assert not validator("Event").is_valid(event)


def head(**more: object) -> dict[str, Any]:
    return {"qlog_version": "0.3", "trace": {"vantage_point": {"type": "server"}, **more}}


def packet(kind: str, ms: float, number: int, *frames: dict[str, Any], size: int = 1200) -> dict[str, Any]:
    data = {
        "header": {"packet_type": "1RTT", "packet_number": number},
        "raw": {"length": size},
        "frames": frames,
    }
    return {"time": ms, "name": f"quic:packet_{kind}", "data": data}


def metrics(ms: float, **values: float) -> dict[str, Any]:
    return {"time": ms, "name": "recovery:metrics_updated", "data": values}


def stream(offset: int, length: int = 1000) -> dict[str, Any]:
    return {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}


def acks(first: int, last: int) -> dict[str, Any]:
    return {"frame_type": "ack", "ack_delay": 0, "acked_ranges": [[first, last]]}


def sequence(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(f"\x1e{json.dumps(record)}\n" for record in records))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A sender's log: 100 packets of 1000 bytes in a second, of which one is lost; 50 ms, 24000 bytes of window."""
    records = [head(common_fields={"ODCID": "ab12"})]
    for number in range(100):
        records.append(packet("sent", number * 10, number, stream(number * 1000)))
        records.append(metrics(number * 10, congestion_window=24_000, bytes_in_flight=6000))
    for number in range(100):
        if number == 50:
            lost = {"header": {"packet_type": "1RTT", "packet_number": 50}, "trigger": "time_threshold"}
            records.append({"time": 560, "name": "recovery:packet_lost", "data": lost})
        else:
            records.append(packet("received", number * 10 + 50, number, acks(number, number), size=30))
            records.append(metrics(number * 10 + 50, latest_rtt=50, smoothed_rtt=50, min_rtt=50))
    state = {"time": 700, "name": "recovery:congestion_state_updated", "data": {"new": "recovery"}}
    records.append(state)
    records[1:] = sorted(records[1:], key=lambda record: record["time"])
    return sequence(tmp_path / "server.sqlog", *records)


def test_a_log_is_read_as_a_run(log: Path, tmp_path: Path) -> None:
    results = paceline.qlog(log, out=tmp_path / "out")
    row = results.flows.row(0, named=True)
    assert (row["flow"], row["profile"], row["from"], row["to"]) == ("server", "qlog", "server", "client")
    assert (row["packets_sent"], row["packets_delivered"], row["packets_lost"]) == (100, 99, 1)
    assert row["bytes_delivered"] == 99_000
    assert row["goodput_bps"] == pytest.approx(99_000 * 8 / 1.04)
    assert row["loss_rate"] == pytest.approx(0.01)
    assert row["rtt_mean_s"] == pytest.approx(0.05)
    assert row["cwnd_mean_packets"] == pytest.approx(20)
    assert row["ended"] == "open"
    qlog = results.series("qlog")
    assert qlog["acked_packets"].max() == 99
    assert qlog["state"].unique().drop_nulls().to_list() == ["recovery"]
    assert qlog["sample_rtt_s"].drop_nulls().unique().to_list() == pytest.approx([0.05])
    rate = results.series("rate")
    lasts = rate["time_s"].diff().fill_null(rate["time_s"])
    assert (rate["goodput_bps"] * lasts).sum() / 8 == pytest.approx(99_000)
    again = paceline.Results.read(tmp_path / "out")
    assert again.flows.equals(results.flows)
    assert again.recorded() == ["cwnd", "rate", "qlog"]
    assert again.manifest["qlog"]["connections"][0]["group"] == "ab12"
    assert again.plot("qlog").axes


def test_a_figure_of_a_log_without_losses_leaves_no_room_for_them(tmp_path: Path) -> None:
    """Marks without a place lay at the figure's corner, and each drawing made more room for them."""
    text = """
duration = "2 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "200 packets" }
[flow.one]
cc = "bbr3"
transport = "quic"
"""
    paceline.run(paceline.parse(text), qlog=tmp_path / "logs")
    figure = paceline.qlog(tmp_path / "logs" / "one-client.sqlog").plot("qlog")
    for _ in range(3):
        figure.draw_without_rendering()
    assert figure.axes[0].get_position().x0 < 0.15


def test_compressed_logs_and_several_files(log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "client.qlog.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    results = paceline.qlog([log, packed], every_s=0)
    assert results.flows["flow"].to_list() == ["server", "client"]
    assert results.flows["bytes_delivered"].to_list() == [99_000, 99_000]
    # One that was written when the program was killed.
    packed.write_bytes(packed.read_bytes()[:-200])
    cut = paceline.qlog(packed)
    assert cut.flows["ended"].to_list() == ["cut"]
    assert any("ends in the middle" in note for note in cut.manifest["notes"])


def test_a_byte_order_mark_is_passed_over(log: Path, tmp_path: Path) -> None:
    text = codecs.BOM_UTF8 + log.read_bytes()
    plain, packed = tmp_path / "plain.json", tmp_path / "packed.json.gz"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    assert is_log(plain)
    assert is_log(packed)
    results = paceline.qlog([log, plain, packed], every_s=0)
    assert results.flows["bytes_delivered"].to_list() == [99_000] * 3


def test_the_interval_of_rows(log: Path) -> None:
    assert len(paceline.qlog(log, every_s=0.1).series("qlog")) == 12
    assert len(paceline.qlog(log, every_s=0).series("qlog")) == 105


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    broken = sequence(tmp_path / "a.sqlog", head(), metrics(0, cwnd=1), {"time": "soon", "name": "x"}, head())
    with pytest.raises(PacelineError, match=r'a\.sqlog, line 3, column 1: the event\'s time is "soon"'):
        paceline.qlog(broken)
    (tmp_path / "b.qlog").write_text("time,cwnd\n")
    with pytest.raises(PacelineError, match=r"b\.qlog is no qlog: it does not begin with an object"):
        paceline.qlog(tmp_path / "b.qlog")
    with pytest.raises(StorageError, match=r"c\.qlog: No such file"):
        paceline.qlog(tmp_path / "c.qlog")
    with pytest.raises(PacelineError, match="named twice"):
        paceline.qlog([broken, broken])
    with pytest.raises(PacelineError, match="files is empty"):
        paceline.qlog([])
    with pytest.raises(PacelineError, match="every_s = -1: it must be 0"):
        paceline.qlog(broken, every_s=-1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is empty"),
        ("\xff\xfe", "is no text"),
        ('{"a": 1}', "neither qlog_version nor file_schema"),
        (
            '\x1e{"qlog_version": "0.3", "trace": {}}\n\x1e{"time": 1}\n',
            r"line 2, column 1: the event has no name",
        ),
        ('\x1e{"qlog_version": "0.3", "trace": {}}\n\x1e{"time": 1, "name" "x"}\n\x1e{}\n', "line 2, column"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.qlog").write_bytes(text.encode("latin-1"))
    done = watch(tmp_path / "bad.qlog")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(rf"^paceline: .*bad\.qlog.*{says}", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "bad.sqlog tells of no connection: there is no event in it"),
        ([packet("sent", 0, 1)], "no window is known of one connection"),
        (
            [metrics(0, congestion_window=5), {"time": 1, "name": "recovery:metrics_updated", "data": 5}],
            "are not read",
        ),
        ([{"time": 1, "name": "h3:frame_created", "data": {}}], "1 of them h3:frame_created"),
    ],
)
def test_a_log_that_says_little_is_said_to(tmp_path: Path, records: list[dict[str, Any]], says: str) -> None:
    results = paceline.qlog(sequence(tmp_path / "bad.sqlog", head(), *records))
    assert any(says in note for note in results.manifest["notes"]), results.manifest["notes"]


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return screen.paceline(*words, COLUMNS="150", NO_COLOR="1")


def watch(*words: object) -> subprocess.CompletedProcess[str]:
    return command("watch", *words)


def test_the_command(log: Path, tmp_path: Path) -> None:
    done = watch(log, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "server.sqlog: 1 connection in 1.04 s" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("server "))
    assert "762 kbit/s" in line
    assert "50 ms" in line
    assert (tmp_path / "out/manifest.json").exists()
    told = json.loads(watch("--json", "--every", "100ms", log).stdout)
    assert told["flows"][0]["packets_lost"] == 1
    assert told["watch"]["qlog"]["events"] == 400
    wrong = watch("--port", "443", log)
    assert wrong.returncode == 2
    assert "is a log to read" in wrong.stderr
    # Behind a program's name stands what is its own.
    assert watch("true", "x.qlog").returncode == 0


def ours(path: Path, start_ms: float, *, client: bool = True) -> Path:
    """What Paceline logs of a real flow: 200 packets of 1250 bytes in a second, without frames."""
    kind = "client" if client else "server"
    common = {
        "time_format": "relative_to_epoch",
        "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
        "code_version": "paceline 0.1.0",
    }
    begin = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "trace": {"vantage_point": {"type": kind}, "common_fields": common},
    }
    name = "packet_sent" if client else "packet_received"
    header = {"packet_type": "1RTT"}
    packets = [
        {
            "time": start_ms + 5.0 * (n + 1),
            "name": f"quic:{name}",
            "data": {"header": {**header, "packet_number": n} if client else header, "raw": {"length": 1250}},
        }
        for n in range(200)
    ]
    return sequence(path, begin, {"time": start_ms, "name": "quic:connection_started", "data": {}}, *packets)


def test_a_log_is_plotted_as_it_is(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    drawn = command("plot", log)
    assert drawn.returncode == 0, drawn.stderr
    written = set(drawn.stdout.splitlines())
    assert {"server-qlog.svg", "server-cwnd.png"} <= written == {file.name for file in here.iterdir()}
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [log.name], (
        "another --qlog finds logs alone"
    )
    one = command("plot", log, "--kind", "qlog", "--out", tmp_path / "one.svg")
    assert one.stdout.splitlines() == [str(tmp_path / "one.svg")], one.stderr
    # a receiver's says nothing of windows
    packets = [packet("sent", 100 * n, n, stream(1000 * n)) for n in range(5)]
    bare = command("plot", sequence(tmp_path / "bare.sqlog", head(), *packets))
    assert (bare.returncode, "gauges" in bare.stdout) == (0, False), bare
    assert command("plot", log, "--kind", "queue").stderr.count("is a log, which has") == 1
    missing = command("plot", tmp_path / "none.qlog")
    assert (missing.returncode, "none.qlog: No such file" in missing.stderr) == (1, True), missing


def test_what_a_log_does_not_tell_of_payload_is_drawn_as_what_was_sent_or_came(tmp_path: Path) -> None:
    paths = [ours(tmp_path / "a-client.sqlog", 0.0), ours(tmp_path / "a-server.sqlog", 20.0, client=False)]
    results = paceline.qlog(paths)
    assert set(results.series("rate").columns) >= {"send_rate_bps", "receive_rate_bps"}
    axes = results.plot("rate").axes[0]
    legend = axes.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["a-client, sent", "a-server, received"]
    for drawn in axes.lines:
        # 1250 bytes each 5 ms are 2 Mbit/s, in the first mean one less
        assert np.asarray(drawn.get_ydata())[2:] == pytest.approx(2.0, rel=0.01)
    assert axes.figure.get_supylabel().startswith("rate (Mbit/s")
    assert results.flows["packets_lost"].to_list() == [None, None]
    # Of a window nothing is told: no empty figure.
    written = command("plot", *paths, "--out", tmp_path / "drawn").stdout.split()
    assert {Path(name).name for name in written} == {"drawn.svg", "drawn.png"}


def test_several_logs_are_one_run_with_short_names(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    paths = [
        ours(folder / f"{name}-client.sqlog", ms)
        for folder in folders
        for name, ms in (("a", 20.0), ("b", 500.0))
    ]
    paths.append(ours(tmp_path / "one" / "c.sqlog", 0.0))
    results = paceline.qlog(folders)
    assert results.flows["flow"].to_list() == [
        "one/a-client",
        "one/b-client",
        "c",
        "two/a-client",
        "two/b-client",
    ]
    assert flows_of(sorted(paths)) == results.flows["flow"].to_list()
    assert results.flows["start_s"].to_list() == pytest.approx([0.02, 0.5, 0.0, 0.02, 0.5])
    assert not any("begin" in note for note in results.manifest["notes"])
    title = results.plot("rate").axes[0].get_title(loc="left")
    assert title == "one/a-client, one/b-client, c and 2 more"
    assert flows_of([Path("a.qlog"), Path("a.sqlog"), Path("x/b.json")]) == ["a.qlog", "a.sqlog", "b"]


def test_folders_and_json_are_watched_if_they_hold_logs(log: Path, tmp_path: Path) -> None:
    named = tmp_path / "trace.json"
    named.write_text(log.read_text())
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    for path in (named, packed, tmp_path):
        done = watch(path, "--json")
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["flows"]) == (3 if path == tmp_path else 1)
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    done = watch(other)
    assert (done.returncode, "neither a program nor a log" in done.stderr) == (2, True), done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    done = watch(empty)
    assert (done.returncode, "empty has no log in it" in done.stderr) == (2, True), done.stderr
    drawn = command("plot", tmp_path, "--kind", "cwnd", "--out", tmp_path / "cwnd.svg")
    assert drawn.stdout.splitlines() == [str(tmp_path / "cwnd.svg")], drawn.stderr


def test_logs_of_a_foreign_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("aioquic")
    size = 500_000
    _foreign_logs(tmp_path, size, monkeypatch)
    results = paceline.qlog([tmp_path / "server.qlog", tmp_path / "client.qlog"], every_s=0)
    server, client = results.flows.sort("flow", descending=True).iter_rows(named=True)
    # Both ends tell of the same bytes, each in its way.
    assert client["bytes_delivered"] == size
    assert server["bytes_delivered"] == size
    assert server["packets_lost"] <= server["packets_sent"] - server["packets_delivered"] + 3
    assert 2 * WAY_S <= server["rtt_min_s"] < 2 * WAY_S + 0.01
    # What it tells of its round trips, and what its packets tell.
    table = results.series("qlog").filter(pl.col("flow") == "server")
    told, seen = table["latest_rtt_s"].drop_nulls().median(), table["sample_rtt_s"].drop_nulls().median()
    assert seen == pytest.approx(told, rel=0.5, abs=2e-3)
    assert {"cwnd", "rate", "qlog"} <= set(results.recorded())


WAY_S = 0.02


def _foreign_logs(where: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What aioquic's two ends log of a transfer over a path in memory of 10 Mbit/s: its machine has no clock of its
    own, only its logger does."""
    from aioquic.quic import events, logger
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    now_s = 0.0
    monkeypatch.setattr(logger, "time", SimpleNamespace(time=lambda: now_s))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    from_, day = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.public_key(key.public_key()).not_valid_before(from_).not_valid_after(from_ + day)
    logs = {end: logger.QuicLogger() for end in ("client", "server")}
    ours, theirs = (
        QuicConfiguration(is_client=end == "client", alpn_protocols=["any"], verify_mode=0, quic_logger=log)
        for end, log in logs.items()
    )
    theirs.certificate, theirs.private_key = builder.sign(key, hashes.SHA256()), key
    client = QuicConnection(configuration=ours)
    server = QuicConnection(
        configuration=theirs,
        original_destination_connection_id=client.original_destination_connection_id,
    )
    ends, free_s, order, received = (client, server), [0.0, 0.0], itertools.count(), 0
    flying: list[tuple[float, int, int, bytes]] = []
    client.connect(("server", 1), now_s)
    asked, known = False, {client}
    # the last acknowledgements are on their way when all has come
    until = math.inf
    while now_s < until:
        for of, end in enumerate(ends):
            # a server knows nobody until it has heard of one
            for datagram, _ in end.datagrams_to_send(now_s) if end in known else ():
                free_s[of] = max(free_s[of], now_s) + len(datagram) * 8 / 10e6
                heapq.heappush(flying, (free_s[of] + WAY_S, next(order), 1 - of, datagram))
        timers = [end.get_timer() or math.inf for end in ends]
        now_s = min([*timers, *(at for at, *_ in flying[:1])])
        assert now_s < 60 or received == size, "it does not end"
        if flying and flying[0][0] <= now_s:
            _, _, to, datagram = heapq.heappop(flying)
            known.add(ends[to])
            ends[to].receive_datagram(datagram, (("server", "client")[to], 1), now_s)
        for end, timer in zip(ends, timers, strict=True):
            if timer <= now_s:
                end.handle_timer(now_s)
        for end in ends:
            while (event := end.next_event()) is not None:
                if isinstance(event, events.HandshakeCompleted) and end is client and not asked:
                    client.send_stream_data(client.get_next_available_stream_id(), b"all", end_stream=True)
                    asked = True
                elif isinstance(event, events.StreamDataReceived) and end is server:
                    server.send_stream_data(event.stream_id, bytes(size), end_stream=True)
                elif isinstance(event, events.StreamDataReceived):
                    received += len(event.data)
                    until = now_s + 0.2 if received == size else until
    for side, log in logs.items():
        (where / f"{side}.qlog").write_text(json.dumps(log.to_dict()))


RUN = """
duration = "10 s"
[link.bottleneck]
rate = "8 Mbit/s"
delay = "20 ms"
queue = { kind = "droptail", limit = "30 packets" }
[flow.film]
cc = "CC"
transport = "quic"
"""


@pytest.mark.parametrize("cc", ["cubic", "newreno", "bbr3"])
def test_a_run_s_log_says_what_its_recordings_say(tmp_path: Path, cc: str) -> None:
    (tmp_path / "film.toml").write_text(RUN.replace("CC", cc))
    results = paceline.run(tmp_path / "film.toml", record=["cwnd", "losses"], qlog=tmp_path / "logs")
    header, *events = read_records(tmp_path / "logs/film-client.sqlog")
    validator("Header").validate(header)
    event = validator("Event")
    for record in events[:: max(1, len(events) // 2000)]:
        event.validate(record)
    log = paceline.qlog(tmp_path / "logs/film-client.sqlog", every_s=0.0)
    rows = log.series("qlog").select("time_s", "cwnd_bytes", "in_flight_bytes", "srtt_s", "latest_rtt_s")
    recorded = results.series("cwnd").select("time_s", "cwnd_packets", "srtt_s", "in_flight_packets")
    # A sample is taken before what happens at its instant.
    rows = rows.with_columns(pl.col("time_s") + 1e-9)
    both = recorded.join_asof(rows, on="time_s", suffix="_log").drop_nulls()
    assert len(both) > 450
    # Windows are whole bytes in the log, and times whole nanoseconds in both.
    for row in both.iter_rows(named=True):
        assert row["cwnd_bytes"] == int(row["cwnd_packets"] * 1472)
        assert row["in_flight_bytes"] == round(row["in_flight_packets"] * 1472)
        assert round(row["srtt_s_log"] * 1e9) == round(row["srtt_s"] * 1e9)
    # As many round trips and losses as the run has counted.
    flow = results.flows.row(0, named=True)
    lost = sum(record["name"] == "quic:packet_lost" for record in events)
    assert log.flows["packets_lost"].item() == lost
    assert (lost == 0) == (flow["window_cuts"] == 0) or cc == "bbr3"
    assert log.flows["packets_sent"].item() == sum(record["name"] == "quic:packet_sent" for record in events)


def test_a_folder_of_logs_is_refused_where_it_would_mix_or_be_empty(tmp_path: Path) -> None:
    (tmp_path / "film.toml").write_text(RUN.replace("CC", "cubic"))
    (tmp_path / "old").write_text("")
    with pytest.raises(PacelineError, match="is not empty"):
        paceline.run(tmp_path / "film.toml", qlog=tmp_path)
    with pytest.raises(PacelineError, match="leave out qlog, or runs"):
        paceline.run(tmp_path / "film.toml", runs=2, qlog=tmp_path / "logs")
    (tmp_path / "tcp.toml").write_text(RUN.replace("CC", "cubic").replace('transport = "quic"', ""))
    with pytest.raises(PacelineError, match="no flow is over QUIC"):
        paceline.run(tmp_path / "tcp.toml", qlog=tmp_path / "logs")
    with pytest.raises(StorageError, match="logs"):
        paceline.run(tmp_path / "film.toml", qlog=tmp_path / "old/logs")
