"""Captures of runs as tshark reads them: nothing malformed, and what it counts is what the run counted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import paceline
from needs import require
from paceline import PacelineError, StorageError
from tshark import count, counts, fields, tshark

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"

LOSS = 'loss = { kind = "uniform", rate = "0.5 %" }'
# Without a delay at hosts, all that was sent has left by the end.
PATH = f"""
duration = "10 s"
host_delay = "0 s"

[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = {{ kind = "droptail", limit = "20 packets" }}
{LOSS}
"""

SHORT = {"duration": "6 s", "warmup": "0 s"}

COMPLAINTS = " || ".join(
    f"tcp.analysis.{what}"
    for what in (
        "lost_segment",
        "ack_lost_segment",
        "window_full",
        "zero_window",
        "keep_alive",
        "reused_ports",
    )
)
AGAIN = " || ".join(
    f"tcp.analysis.{what}"
    for what in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)
"""What tshark calls a segment that was sent before; out of order is one sent again within a round trip."""


def captured(tmp_path: Path, scenario: str, *hosts: str) -> tuple[Path, dict[str, Any]]:
    """A run's capture, and its summary."""
    file, capture = tmp_path / "scenario.toml", tmp_path / "run.pcapng"
    file.write_text(scenario)
    return capture, paceline.run(file, pcap=capture, pcap_at=hosts).summaries[0]


def test_libpcap_reads_what_all_hosts_captured(tmp_path: Path) -> None:
    """It refuses a file whose interfaces seem to differ, and reads it with every tool that is built on it."""
    require("tcpdump")
    capture, summary = captured(tmp_path, PATH.replace("10 s", "1 s") + "[flow.a]\n")
    done = subprocess.run(["tcpdump", "-nr", str(capture), "ip"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sent = summary["engine"]["packets_sent"]
    assert sent < len(done.stdout.splitlines()) <= 2 * sent


@pytest.mark.parametrize(
    "name",
    ["controllers", "lda-plus", "tfrc", "flow-web", "flow-stream", "profiles", "impairments", "queue-red"],
)
def test_nothing_is_malformed(tmp_path: Path, name: str) -> None:
    require("tshark")
    capture = tmp_path / "run.pcapng"
    summary = paceline.run(EXAMPLES / f"{name}.toml", set=SHORT, pcap=capture).summaries[0]
    malformed = "_ws.malformed || ip.checksum.status == 0"
    errors = "_ws.expert.severity == error && !(tcp.checksum.status == 0) && !(udp.checksum.status == 0)"
    wrong = "tcp.checksum.status == 0 || udp.checksum.status == 0"
    frames, *found, damaged = counts(capture, "frame", malformed, errors, wrong)
    assert frames > 1000
    assert found == [0, 0], fields(
        capture, f"{malformed} || ({errors})", "frame.number", "_ws.expert.message"
    )
    # only what links have damaged has a wrong checksum (data are cut short, so that tshark cannot tell of them)
    assert damaged <= summary["engine"]["drops"].get("corrupt", 0)


@pytest.mark.parametrize(
    ("cc", "profile"),
    [("newreno", "rfc"), ("sack", "rfc"), ("cubic", "linux"), ("sack", "ns2"), ("vegas", "ns2")],
)
def test_tcp_at_its_sender(tmp_path: Path, cc: str, profile: str) -> None:
    """Retransmissions are those that the flow counted, and tshark finds nothing else to say."""
    require("tshark")
    scenario = PATH + f'\n[flow.bulk]\ncc = "{cc}"\nprofile = "{profile}"\n'
    capture, summary = captured(tmp_path, scenario, "bulk[0].source")
    (flow,) = summary["flows"]
    assert flow["packets_retransmitted"] > 10
    again, complaints, without_time = counts(capture, AGAIN, COMPLAINTS, "!tcp.options.timestamp.tsval")
    assert again == flow["packets_retransmitted"]
    assert complaints == 0, fields(capture, COMPLAINTS, "frame.number", "_ws.expert.message")
    data = fields(capture, "frame.packet_flags_direction == 2", "ip.len", "tcp.len", "tcp.flags.syn")
    assert len(data) == flow["packets_sent"]
    size = {"rfc": ("1500", "1460"), "linux": ("1500", "1448"), "ns2": ("1000", "960")}[profile]
    assert {(ip, tcp) for ip, tcp, syn in data if syn in ("0", "False")} == {size}
    assert profile != "linux" or without_time == 0


def test_sack_blocks_are_what_has_arrived(tmp_path: Path) -> None:
    require("tshark")
    scenario = PATH + '\n[flow.bulk]\ncc = "sack"\n'
    capture, _ = captured(tmp_path, scenario, "bulk[0].sink")
    have: set[int] = set()
    blocks = 0
    rows = fields(
        capture,
        "tcp",
        "tcp.srcport",
        "tcp.seq",
        "tcp.len",
        "tcp.ack",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
    )
    for port, seq, length, ack, left, right in rows:
        if port != "5001":
            have.add(int(seq))
            assert int(length) in (0, 1460)
            continue
        for begin, end in zip(left.split(","), right.split(","), strict=True) if left else ():
            blocks += 1
            assert int(begin) > int(ack)
            assert all(at in have for at in range(int(begin), int(end), 1460))
    assert blocks > 50


def test_short_segments_and_connections_keep_the_count_of_bytes(tmp_path: Path) -> None:
    """Without loss there is no gap in the sequence numbers, and each transfer has a port of its own."""
    require("tshark")
    scenario = PATH.replace(LOSS, "").replace("20 packets", "2000 packets")
    scenario += '\n[flow.pages]\ncc = "newreno"\napp = { kind = "web" }\n'
    capture, summary = captured(tmp_path, scenario, "pages[0].sink")
    assert count(capture, f"{COMPLAINTS} || {AGAIN}") == 0
    syns = fields(capture, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.srcport")
    assert len(syns) == len({port for (port,) in syns}) > 3
    lengths = [int(length) for (length,) in fields(capture, "tcp.len > 0", "tcp.len")]
    assert len({*lengths}) > 1, "the last segment of a page is a shorter one"
    assert sum(lengths) == summary["flows"][0]["bytes_delivered"]


def test_ecn(tmp_path: Path) -> None:
    require("tshark")
    red = 'queue = { kind = "red", limit = "60 packets", min_threshold = 5, max_threshold = 30, ecn = true }'
    scenario = PATH.replace('queue = { kind = "droptail", limit = "20 packets" }', red)
    scenario = scenario.replace(LOSS, "") + '\n[flow.bulk]\ncc = "newreno"\necn = true\n'
    capture, _ = captured(tmp_path, scenario, "bulk[0].sink")
    syn = fields(capture, "tcp.flags.syn == 1", "tcp.flags.ece", "tcp.flags.cwr")
    assert [[flag in ("1", "True") for flag in flags] for flags in syn[:2]] == [[True, True], [True, False]]
    of_data = (f"tcp.flags.{flag} == 1 && tcp.flags.syn == 0" for flag in ("ece", "cwr"))
    marked, echoed, reduced = counts(capture, "ip.dsfield.ecn == 3", *of_data)
    assert marked > 5
    assert echoed >= marked
    assert reduced > 5


def test_tfrc(tmp_path: Path) -> None:
    require("tshark")
    scenario = PATH + '\n[flow.media]\ncc = "tfrc"\n'
    capture, summary = captured(tmp_path, scenario)
    (flow,) = summary["flows"]
    names = ("type", "sequence", "received_end", "received", "echo", "loss_event_rate", "receive_rate")
    rows = fields(
        capture,
        "paceline_tfrc",
        "frame.interface_name",
        "ip.len",
        *(f"paceline_tfrc.{name}" for name in names),
    )
    sent, arrivals = ([row for row in rows if row[0] == f"media[0].{end}"] for end in ("source", "sink"))
    data = [row for row in sent if row[2] == "5"]
    assert [int(row[3]) for row in data] == list(range(flow["packets_sent"]))
    assert {row[1] for row in data} == {"1500"}
    arrived = sum(row[2] == "5" for row in arrivals)
    assert arrived == flow["packets_delivered"]
    at = [[row[4:] for row in end if row[2] == "6"] for end in (sent, arrivals)]
    assert len(at[1]) > 50
    assert at[0] == at[1][: len(at[0])], "a report says the same at both ends"
    received = [int(row[1]) for row in at[1]]
    assert received == sorted(received)
    assert arrived - received[-1] < 50
    assert 0 < float(at[1][-1][3]) < 0.1


def test_udp_is_discarded_datagrams(tmp_path: Path) -> None:
    require("tshark")
    app = 'app = { kind = "pareto", rate = "500 kbit/s", burst = "500 ms", idle = "500 ms" }'
    capture, summary = captured(tmp_path, PATH + f'\n[flow.noise]\ncc = "udp"\n{app}\n', "noise[0].source")
    rows = fields(capture, "udp.dstport == 9", "udp.length")
    assert len(rows) == summary["flows"][0]["packets_sent"] > 100


def test_the_file_says_who_is_who(tmp_path: Path) -> None:
    require("tshark")
    capture, _ = captured(tmp_path, PATH + '\n[flow.bulk]\ncc = "newreno"\n')
    names = {
        (name, way)
        for name, way in fields(capture, "tcp", "frame.interface_name", "frame.packet_flags_direction")
    }
    assert {name for name, _ in names} == {"bulk[0].source", "bulk[0].sink"}
    assert "bulk[0].source" in tshark(capture, "-N", "n", "-c", "1")
    first = fields(capture, "frame.number == 1", "frame.time_epoch")
    assert first[0][0].startswith("0.0")


def test_mistakes_are_named(tmp_path: Path) -> None:
    scenario = EXAMPLES / "tfrc.toml"
    with pytest.raises(PacelineError, match="one run"):
        paceline.run(scenario, runs=2, pcap=tmp_path / "x")
    with pytest.raises(PacelineError, match="pcap_at needs pcap"):
        paceline.run(scenario, pcap_at=["a"])
    with pytest.raises(PacelineError, match="no host `a`"):
        paceline.run(scenario, pcap=tmp_path / "x", pcap_at=["a"])
    with pytest.raises(StorageError, match="cannot write"):
        paceline.run(scenario, pcap=tmp_path / "no" / "x")
    with pytest.raises(StorageError, match=r"cannot write /dev/full: .*[Nn]o space"):
        paceline.run(scenario, pcap="/dev/full")


def test_rtp_and_rtcp(tmp_path: Path) -> None:
    """Losses as tshark counts them in what arrives are the run's, and those in the receiver's last report."""
    require("tshark")
    scenario = PATH.replace("10 s", "40 s", 1) + (
        '\n[flow.media]\ncc = "lda-plus"\nstop = "34 s"\nrtp = { timing = "fixed", report_interval = "1 s" }\n'
    )
    capture, _ = captured(tmp_path, scenario, "media[0].source")
    sent = count(capture, "rtp")
    capture, summary = captured(tmp_path, scenario, "media[0].sink")
    filters = ("_ws.malformed || _ws.expert", "rtp", "rtcp.pt == 200", "rtcp.pt == 203")
    malformed, arrived, of_sender, leave = counts(capture, *filters)
    assert malformed == 0, fields(capture, filters[0], "frame.number", "_ws.expert.message")
    lost = sent - arrived
    assert lost > 20
    streams = tshark(capture, "-q", "-z", "rtp,streams").splitlines()
    (stream,) = [line for line in streams if "RTPType-96" in line]
    assert re.search(rf" {arrived} +{lost} \(", stream), stream
    # the flow's counts have its sender's reports too
    (flow,) = summary["flows"]
    assert flow["packets_delivered"] == arrived + of_sender
    data = fields(capture, "rtp", "rtp.ssrc", "rtp.seq", "ip.len")
    assert {length for _, _, length in data} == {"1500"}
    (ssrc,) = {ssrc for ssrc, _, _ in data}
    names = ("ssrc.cum_nr", "ssrc.high_seq", "ssrc.identifier", "length_check")
    reports = fields(capture, "rtcp.pt == 201", *(f"rtcp.{name}" for name in names))
    assert len(reports) > 26
    last = reports[-1]
    assert last[:2] == [str(lost), data[-1][1]]
    assert ssrc in last[2]
    assert all(report[3] in ("1", "True") for report in reports)
    applications = fields(capture, "rtcp.app.name", "rtcp.app.name", "rtcp.app.subtype")
    assert {("PCLN", "1"), ("PCLN", "2")} <= {tuple(one) for one in applications}
    assert leave == 2, "both ends leave"


def test_multfrc_names_its_connections(tmp_path: Path) -> None:
    require("tshark")
    capture, summary = captured(tmp_path, PATH + '\n[flow.media]\ncc = "multfrc"\n', "media[0].source")
    assert count(capture, "_ws.malformed || _ws.expert") == 0
    places = fields(capture, "paceline_tfrc.type == 5", "paceline_tfrc.place", "ip.len")
    assert len(places) == summary["flows"][0]["packets_sent"]
    assert len({place for place, _ in places}) > 1
    assert {length for _, length in places} == {"1500"}
