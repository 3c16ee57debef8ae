"""`paceline send quic://HOST`: quinn's QUIC between two processes over the loopback interface."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paceline
import qlog_schema
from needs import require
from own import TWINS
from paceline import realtime
from paceline.errors import LiveError, PacelineError, ScenarioError
from paceline.results import Results
from paceline.sending import send
from paceline.statistics import estimate, independent_difference
from realtime import conclusive

pytestmark = pytest.mark.realtime


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as found:
        yield found


@contextlib.contextmanager
def serving(*options: str | Path) -> Iterator[int]:
    """The port of a server in a process of its own, which is over afterwards."""
    with served(*options) as (found, _):
        yield found


@contextlib.contextmanager
def served(*options: str | Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The same, with the process."""
    command = [sys.executable, "-m", "paceline", "serve", "--port", "0", "--max-rate", "20Mbit/s", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            found = re.search(r"127\.0\.0\.1:(\d+)", server.stderr.readline())
            assert found is not None
            yield int(found[1]), server
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def test_a_flow_has_what_others_have(port: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = send(f"quic://127.0.0.1:{port}", duration_s=2.0, direction="both", out=out)
    assert results.manifest["name"] == "newreno over QUIC to and from 127.0.0.1"
    rows = results.flows.to_dicts()
    assert len(rows) == 2
    for row in rows:
        assert 1e6 < row["goodput_bps"] < 20e6
        assert row["packets_sent"] >= row["packets_delivered"] > 100
        assert 0 < row["rtt_min_s"] <= row["rtt_mean_s"] <= row["rtt_max_s"]
        assert row["timeouts"] is None
        assert row["ended"] == "done"
    series = Results.read(out).series("cwnd")
    assert (series["cwnd_packets"] > 10).any()
    assert (series["in_flight_packets"] > 1).any()
    assert (series["srtt_s"] > 0).any()


def test_an_own_controller_is_the_senders(port: int, tmp_path: Path) -> None:
    cc = f"python:{TWINS / 'reno_twin.py'}:RenoTwin"
    twin = send(f"quic://127.0.0.1:{port}", cc, duration_s=1.0, log_events=tmp_path)
    (row,) = twin.flows.to_dicts()
    assert (row["ended"], row["goodput_bps"] > 1e6) == ("done", True), row
    assert [log.name for log in tmp_path.iterdir()] == ["RenoTwin-0.events"]


def test_frames_come_by_every_carriage(port: int) -> None:
    for carriage in ("stream", "stream-each", "stream-per-group", "datagrams"):
        results = send(
            f"quic://127.0.0.1:{port}",
            app="encoder",
            duration_s=1.5,
            set={"app.max_rate": "2 Mbit/s", "quic.carriage": carriage},
        )
        row = results.flows.to_dicts()[0]
        assert row["frames_sent"] > 30
        assert row["complete_share"] > 0.95
        assert row["frame_delay_mean_s"] >= 0


@pytest.mark.parametrize("carriage", ["stream", "stream-each", "datagrams"])
def test_a_connection_is_logged(port: int, tmp_path: Path, carriage: str) -> None:
    app = None if carriage == "stream" else "encoder"
    more = {} if carriage == "stream" else {"app.max_rate": "3 Mbit/s"}
    results = send(
        f"quic://127.0.0.1:{port}",
        "cubic",
        duration_s=2.0,
        qlog=tmp_path / "logs",
        set={"quic.carriage": carriage, **more},
        app=app,
    )
    (file,) = (tmp_path / "logs").iterdir()
    assert file.name.endswith("-client.sqlog")
    header, *events = qlog_schema.read_records(file)
    qlog_schema.validator("Header").validate(header)
    validator = qlog_schema.validator("Event")
    for event in events:
        validator.validate(event)
    names = [event["name"] for event in events]
    told = ("packet_sent", "packet_received", "packets_acked", "congestion_state_updated")
    assert {f"quic:{name}" for name in told} < {*names}
    # What tells the other end so leaves last.
    end = ["connection_closed", "connection_state_updated", "packet_sent"]
    assert names[-3:] == [f"quic:{name}" for name in end]
    # Each packet has a number of its own, and a fate at most.

    def of(name: str) -> list[dict[str, Any]]:
        return [event["data"] for event in events if event["name"] == f"quic:{name}"]

    sent = [(data["header"]["packet_type"], data["header"]["packet_number"]) for data in of("packet_sent")]
    assert len(sent) == len(set(sent))
    lost = [
        data["header"]["packet_number"]
        for data in of("packet_lost")
        if data["header"]["packet_type"] == "1RTT"
    ]
    acked: list[int] = []
    for data in of("packets_acked"):
        acked += data["packet_numbers"] if data["packet_number_space"] == "application_data" else []
    numbers = {number for kind, number in sent if kind == "1RTT"}
    assert len(acked) == len(set(acked)) > 50
    assert not {*acked} & {*lost}
    assert {*acked} | {*lost} <= numbers
    # What `paceline watch` reads of it is what the flow has measured.
    log = paceline.qlog(file, every_s=0.0)
    (read,), (row,) = log.flows.to_dicts(), results.flows.to_dicts()
    assert read["packets_sent"] == pytest.approx(row["packets_sent"], abs=5)
    assert read["packets_lost"] == len(of("packet_lost"))
    assert read["packets_delivered"] == pytest.approx(row["packets_sent"], rel=0.1)
    for measure in ("rtt_min_s", "cwnd_mean_packets"):
        assert read[measure] == pytest.approx(row[measure], rel=0.15), measure
    assert read["ended"] == "closed"
    assert read["cc"] == "cubic"


def test_both_ends_log_the_same(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    with serving("--qlog", far) as port:
        # less than the server grants, so that nothing is lost
        slow: dict[str, Any] = {"app": "cbr", "set": {"app.rate": "4 Mbit/s"}}
        results = send(f"quic://127.0.0.1:{port}", duration_s=2.0, direction="both", qlog=near, **slow)
    ends = {
        "newreno": (near / "newreno-client.sqlog", far / "127.0.0.1-1-server.sqlog"),
        "newreno-back": (far / "127.0.0.1-2-client.sqlog", near / "newreno-back-server.sqlog"),
    }
    assert {*near.iterdir(), *far.iterdir()} == {file for both in ends.values() for file in both}
    validators = [qlog_schema.validator(kind) for kind in ("Header", "Event")]
    for row in results.flows.to_dicts():
        told: list[dict[str, dict[str, list[int]]]] = []
        for file, vantage in zip(ends[row["flow"]], ("client", "server"), strict=True):
            header, *events = qlog_schema.read_records(file)
            validators[0].validate(header)
            for event in events:
                validators[1].validate(event)
            assert header["trace"]["vantage_point"]["type"] == vantage
            packets: dict[str, dict[str, list[int]]] = {"packet_sent": {}, "packet_received": {}}
            for event in events:
                of = packets.get(event["name"].removeprefix("quic:"))
                if of is not None:
                    kind = event["data"]["header"]["packet_type"]
                    of.setdefault(kind, []).append(event["data"]["raw"]["length"])
            told.append(packets)
            names = {event["name"].removeprefix("quic:") for event in events}
            recovers = {"recovery_metrics_updated", "packets_acked", "recovery_parameters_set"}
            assert recovers & names == (recovers if vantage == "client" else set())
            numbers = [
                (event["data"]["header"]["packet_type"], event["data"]["header"]["packet_number"])
                for event in events
                if event["name"] == "quic:packet_sent"
            ]
            assert len(numbers) == len(set(numbers))
            (read,) = paceline.qlog(file, every_s=0.0).flows.to_dicts()
            assert read["ended"] == "closed"
            if vantage == "client":
                assert read["packets_sent"] == pytest.approx(row["packets_sent"], abs=5)
        # What one end sends the other receives, but for what the sockets had no room for.
        for there, back in ((0, 1), (1, 0)):
            sent, came = told[there]["packet_sent"], told[back]["packet_received"]
            assert {*sent} == {*came} == {"initial", "handshake", "1RTT"}
            for kind, sizes in sent.items():
                assert len(came[kind]) <= len(sizes) <= len(came[kind]) + 0.01 * len(sizes) + 3, (there, kind)
                assert sum(came[kind]) <= sum(sizes) <= sum(came[kind]) * 1.01 + 4500, (there, kind)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"host": "127.0.0.1"}, "put quic:// before 127.0.0.1"),
        ({"qlog": "full"}, "is not empty"),
    ],
)
def test_logs_that_would_mix_or_be_empty_are_refused(
    port: int, tmp_path: Path, options: dict[str, str], says: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/old").write_text("")
    host = options.get("host", f"quic://127.0.0.1:{port}")
    folder = tmp_path / options.get("qlog", "new")
    with pytest.raises(PacelineError, match=says):
        send(host, direction=options.get("direction", "forward"), qlog=folder)


@pytest.mark.parametrize("scheme", ["", "quic://"])
def test_logs_that_the_disk_cuts_are_said(port: int, tmp_path: Path, scheme: str) -> None:
    options = [
        f"{scheme}127.0.0.1:{port}",
        "--cc",
        "cubic",
        "--for",
        "2s",
        "--log-events",
        str(tmp_path / "events"),
    ]
    if scheme:
        options += ["--qlog", str(tmp_path / "qlog")]
    # no file may have more than 32 kB, as on a full disk
    shell = ["bash", "-c", 'ulimit -f 32; exec "$0" "$@"', sys.executable, "-m", "paceline", "send"]
    done = subprocess.run([*shell, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert re.search(r"The log of cubic\[0\] ends before it: .*: File too large", said)
    (events,) = (tmp_path / "events").iterdir()
    assert paceline.replay(events).inputs > 100
    for log in (tmp_path / "qlog").glob("*"):
        (row,) = paceline.qlog(log).flows.to_dicts()
        assert (row["ended"], row["packets_sent"] > 10) == ("cut", True)


def test_a_server_starts_again_where_its_logs_are(tmp_path: Path) -> None:
    for _ in range(2):
        with serving("--qlog", tmp_path) as port:
            send(f"quic://127.0.0.1:{port}", duration_s=0.5)
    assert {log.name for log in tmp_path.iterdir()} == {f"127.0.0.1-{flow}-server.sqlog" for flow in (1, 2)}


def test_ctrl_c_at_the_server_is_said(tmp_path: Path) -> None:
    """By its user, who has nothing else to say: what both ends have measured is kept."""
    with served() as (port, server):
        command = [sys.executable, "-m", "paceline", "send", f"quic://127.0.0.1:{port}", "--for", "60s"]
        out = tmp_path / "out"
        with subprocess.Popen(
            [*command, "--both", "--out", out], stdout=subprocess.PIPE, text=True
        ) as client:
            time.sleep(4)
            server.send_signal(signal.SIGINT)
            said, _ = client.communicate(timeout=40)
    assert client.returncode == 1
    there = r"stopped at 127.0.0.1, \d+\.\d s after its data began"
    assert re.search(
        rf"newreno\[0\] did not end well. sender: done; receiver: {there}\.", " ".join(said.split())
    )
    assert re.search(
        rf"newreno-back\[0\] did not end well. sender: {there}; receiver: done\.", " ".join(said.split())
    )
    for row in Results.read(out).flows.to_dicts():
        assert row["goodput_bps"] > 1e6
        assert row["packets_sent"] >= row["packets_delivered"] > 100


def test_ctrl_c_keeps_what_is_done(port: int) -> None:
    command = [sys.executable, "-m", "paceline", "send", f"quic://127.0.0.1:{port}", "--for", "60s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        time.sleep(4)
        os.kill(client.pid, signal.SIGINT)
        said, _ = client.communicate(timeout=30)
    assert client.returncode == 130
    [row] = json.loads(said)["flows"]
    assert row["goodput_bps"] > 1e6
    assert 0.2 < row["active_s"] < 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"cc": "gcc", "app": "encoder"},
            "gcc sets no window.* newreno, reno, .*, cubic, .*, bbr3, c4, .*copa$",
        ),
        (
            {"cc": "prague"},
            "^cc: prague counts the packets that were marked.*; quic://HOST takes newreno, .*copa$",
        ),
        ({"set": {"segment": "9000 B"}}, "segment: `9000 B` is more than .* has 1472 B at most"),
        ({"cc": "kernel:cubic"}, "does not go over QUIC"),
        ({"set": {"quic.handshake": "done"}}, "one-rtt"),
        ({"set": {"quic.carriage": "datagrams"}}, "needs every byte"),
        ({"max_rate": "1 Mbit/s"}, "rtp://"),
        ({"set": {"transport": "tcp"}}, "go over QUIC: leave out one of them"),
        ({"host": "127.0.0.1", "set": {"transport": "quic"}}, "put quic:// before 127.0.0.1"),
    ],
)
def test_what_it_cannot_have_is_refused(port: int, options: dict[str, object], says: str) -> None:
    host = options.get("host", f"quic://127.0.0.1:{port}")
    with pytest.raises((PacelineError, ScenarioError), match=says):
        send(**{"host": host, "duration_s": 0.2} | options)  # type: ignore[arg-type]


def test_a_transfer_is_over_when_all_is_acknowledged(port: int) -> None:
    for size in ("1 B", "100 kB"):
        results = send(f"quic://127.0.0.1:{port}", app="ftp", set={"app.size": size}, duration_s=6.0)
        [row] = results.flows.to_dicts()
        assert row["transfers_completed"] == 1
        assert 0 < row["transfer_time_mean_s"] < 3, size


def test_rates_end_with_the_last_data(port: int) -> None:
    rate = {"app.rate": "1 Mbit/s"}
    [row] = send(f"quic://127.0.0.1:{port}", app="cbr", set=rate, duration_s=1.0).flows.to_dicts()
    assert 0.9e6 < row["goodput_bps"] < 1.05e6
    assert 0.9 < row["active_s"] < 1.2


def test_writes_that_are_frames_are_counted(port: int) -> None:
    for app in ("voice", "video", "game"):
        late = {"quic.carriage": "stream-each", "quic.deadline": "200 ms"}
        [row] = send(f"quic://127.0.0.1:{port}", app=app, set=late, duration_s=1.5).flows.to_dicts()
        assert row["frames_sent"] >= row["frames_complete"] > 5, app
        assert row["complete_share"] == row["frames_complete"] / row["frames_sent"], app
        assert (row["frames_reset"], row["reset_share"]) == (0, 0.0), app


def test_event_logs_replay_where_the_sender_is_here(port: int, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    results = send(f"quic://127.0.0.1:{port}", "bbr3", duration_s=1.5, direction="both", log_events=logs)
    (file,) = logs.iterdir()  # what comes from the server is decided there
    calls, packets, seconds, _ = paceline.replay(file)
    assert packets == results.flows["packets_sent"][0]
    assert calls > packets > 100
    assert 1.4 < seconds < 3
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[:-3])
    again = paceline.replay(cut)
    assert again.inputs == calls - 1
    assert 3 < again.unread < 60
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1
    cut.write_bytes(changed)
    with pytest.raises(LiveError, match=rf"cut: input {calls - 1} at .* the pacing rate was"):
        paceline.replay(cut)
    with pytest.raises(PacelineError, match="logs what the controller at the flow's sender was told"):
        send(f"quic://127.0.0.1:{port}", direction="reverse", log_events=logs)


def test_tracks_are_refused() -> None:
    made = paceline.load(Path(__file__).parent.parent / "examples" / "quic-tracks.toml")
    said = "bundle: in real time no flows share a connection of QUIC; leave `bundle` out"
    with pytest.raises(PacelineError, match=said):
        realtime.flows(made, 1)
    with pytest.raises(PacelineError, match=said):
        paceline.emulate(made)


RELAY = """
duration = "10 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
[flow.a]
transport = "quic"
app = { kind = "voice" }
[flow.b]
from = "right"
to = "left"
app = { kind = "relay", of = "a" }
"""


def test_a_relay_is_refused() -> None:
    with pytest.raises(PacelineError, match=r"flow.b.app: a relay is simulated alone \(paceline run\)"):
        realtime.flows(paceline.parse(RELAY), 1)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            'app = { kind = "web", request = {} }',
            r"flow.pages.app.request: requests are simulated: .* leave it out",
        ),
        ('quic = { handshake = "zero-rtt" }', r"flow.pages.quic.handshake: `zero-rtt` .* use `one-rtt`"),
        ('segment = "4000 B"', r"flow.pages.segment: `4000 B` is more than .* 1472 B at most"),
    ],
)
def test_what_no_real_connection_has_is_refused_before_it_runs(tmp_path: Path, more: str, says: str) -> None:
    text = SCENARIO + f'[flow.pages]\ncc = "cubic"\ntransport = "quic"\n{more}\n'
    file = tmp_path / "pages.toml"
    file.write_text(text)
    for refused in (realtime.check, realtime.emulate):
        with pytest.raises(PacelineError, match=rf"pages.toml: {says}"):
            refused(paceline.load(file), 1)
    assert paceline.run(file).flows.height == 2


SCENARIO = """
duration = "8 s"
warmup = "2 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.bulk]
cc = "newreno"
transport = "quic"
"""


def test_an_emulated_run_is_logged_at_both_ends(tmp_path: Path) -> None:
    require("namespaces")
    text = (
        SCENARIO.replace("8 s", "3 s").replace("2 s", "0 s")
        + '[flow.pair]\ncc = "cubic"\ntransport = "quic"\ncount = 2\nfrom = "right"\nto = "left"\n'
        + '[flow.tcp]\ncc = "cubic"\nprofile = "linux"\nkernel = true\n[flow.own]\ncc = "cubic"\n'
    )
    scenario = paceline.parse(
        text.replace("[flow.bulk]", "[flow.first]\nprofile = 'linux'\nkernel = true\n[flow.bulk]")
    )
    logs = tmp_path / "logs"
    results = paceline.emulate(scenario, qlog=logs)
    names = ("bulk", "pair.0", "pair.1")
    assert {file.name for file in logs.iterdir()} == {
        f"{name}-{end}.sqlog" for name in names for end in ("client", "server")
    }
    # The path's queue drops and holds what neither end knows of: what came is what left, but for that.
    for name in names:
        near, far = (paceline.qlog(logs / f"{name}-{end}.sqlog", every_s=0.0) for end in ("client", "server"))
        (sent,), (came,) = near.flows.to_dicts(), far.flows.to_dicts()
        flow, _, instance = name.partition(".")
        (row,) = results.flows.filter(flow=flow, instance=int(instance or 0)).to_dicts()
        assert sent["cc"] == row["cc"]
        # a run ends at its time, which may be before its connections' end
        assert {sent["ended"], came["ended"]} <= {"closed", "open"}
        assert sent["packets_sent"] == pytest.approx(row["packets_sent"], rel=0.02, abs=10)
        left, arrived = near.series("qlog")["sent_packets"], far.series("qlog")["received_packets"]
        assert 0.8 * left.to_list()[-1] < arrived.to_list()[-1] <= left.to_list()[-1] > 100, name
    for refused, says in (
        ({"scenario": scenario, "qlog": logs}, "is not empty"),
        ({"scenario": scenario, "qlog": tmp_path / "two", "runs": 2}, "qlog: a capture holds one run, not 2"),
        (
            {
                "scenario": paceline.parse(SCENARIO.replace('transport = "quic"', "")),
                "qlog": tmp_path / "none",
            },
            "no flow is over QUIC",
        ),
    ):
        with pytest.raises(PacelineError, match=says):
            paceline.emulate(**refused)  # type: ignore[arg-type]


def test_emulated_flows_are_as_simulated_ones() -> None:
    """Means differ by no more than 3 % or their joint 95 % interval, whichever is larger. Of BBR 3 and C4 that is asked
    without a busy host, whose jitter they take for a faster link (docs/live.md): by crate live's tests, in memory."""
    require("namespaces")
    scenario = paceline.parse(SCENARIO)
    simulated = paceline.run(scenario, runs=10).flows

    def measured() -> tuple[list[dict[str, float]], float]:
        runs = [realtime.emulate(scenario, seed) for seed in (1, 2, 3)]
        rows = [row for run in runs for row in run.summary["flows"]]
        return rows, max(run.summary["path"]["host"]["steal_share"] for run in runs)

    def near(emulated: list[dict[str, float]]) -> None:
        for measure in ("goodput_bps", "rtt_mean_s"):
            ours = [row[measure] for row in emulated]
            apart = independent_difference(simulated[measure], ours)
            mean = estimate(simulated[measure]).mean
            assert mean is not None
            assert apart.mean is not None
            assert apart.half_width is not None
            share, half = apart.mean / mean, apart.half_width / mean
            assert half < 0.1, (measure, ours, "runs that differ so much say nothing")
            assert abs(share) <= max(0.03, half), (measure, ours, share, half)

    conclusive(measured, near)
