"""Captures of runs as tshark reads them: nothing malformed, and what it counts is what the run counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import paceline
from needs import require
from paceline import PacelineError, StorageError
from tshark import count, fields, tshark

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"

LOSS = 'loss = { kind = "uniform", rate = "0.5 %" }'
# Without a delay at hosts, all that was sent has left by the end.
PATH = f"""
duration = "20 s"
host_delay = "0 s"

[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = {{ kind = "droptail", limit = "20 packets" }}
{LOSS}
"""

SHORT = {"duration": "12 s", "warmup": "0 s"}

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


@pytest.mark.parametrize(
    "name",
    ["controllers", "lda-plus", "tfrc", "flow-web", "flow-stream", "profiles", "impairments", "queue-red"],
)
def test_nothing_is_malformed(tmp_path: Path, name: str) -> None:
    require("tshark")
    capture = tmp_path / "run.pcapng"
    summary = paceline.run(EXAMPLES / f"{name}.toml", set=SHORT, pcap=capture).summaries[0]
    assert count(capture, "frame") > 1000
    assert (
        fields(capture, "_ws.malformed || ip.checksum.status == 0", "frame.number", "_ws.expert.message")
        == []
    )
    # only what links have damaged has a wrong checksum (data are cut short, so that tshark cannot tell of them)
    wrong = count(capture, "tcp.checksum.status == 0 || udp.checksum.status == 0")
    assert wrong <= summary["engine"]["drops"].get("corrupt", 0)
    errors = "_ws.expert.severity == error && !(tcp.checksum.status == 0) && !(udp.checksum.status == 0)"
    assert fields(capture, errors, "frame.number", "_ws.expert.message") == []


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
    assert count(capture, AGAIN) == flow["packets_retransmitted"]
    assert fields(capture, COMPLAINTS, "frame.number", "_ws.expert.message") == []
    data = fields(capture, "frame.packet_flags_direction == 2", "ip.len", "tcp.len", "tcp.flags.syn")
    assert len(data) == flow["packets_sent"]
    size = {"rfc": ("1500", "1460"), "linux": ("1500", "1448"), "ns2": ("1000", "960")}[profile]
    assert {(ip, tcp) for ip, tcp, syn in data if syn in ("0", "False")} == {size}
    if profile == "linux":
        assert count(capture, "!tcp.options.timestamp.tsval") == 0


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
    lengths = {length for (length,) in fields(capture, "tcp.len > 0", "tcp.len")}
    assert len(lengths) > 1, "the last segment of a page is a shorter one"
    sent = sum(int(n) for (n,) in fields(capture, "tcp.len > 0", "tcp.len"))
    assert sent == summary["flows"][0]["bytes_delivered"]


def test_ecn(tmp_path: Path) -> None:
    require("tshark")
    red = 'queue = { kind = "red", limit = "60 packets", min_threshold = 5, max_threshold = 30, ecn = true }'
    scenario = PATH.replace('queue = { kind = "droptail", limit = "20 packets" }', red)
    scenario = scenario.replace(LOSS, "") + '\n[flow.bulk]\ncc = "newreno"\necn = true\n'
    capture, _ = captured(tmp_path, scenario, "bulk[0].sink")
    syn = fields(capture, "tcp.flags.syn == 1", "tcp.flags.ece", "tcp.flags.cwr")
    assert [[flag in ("1", "True") for flag in flags] for flags in syn[:2]] == [[True, True], [True, False]]
    marked, echoed = (
        count(capture, "ip.dsfield.ecn == 3"),
        count(capture, "tcp.flags.ece == 1 && tcp.flags.syn == 0"),
    )
    assert marked > 5
    assert echoed >= marked
    assert count(capture, "tcp.flags.cwr == 1 && tcp.flags.syn == 0") > 5


def test_tfrc(tmp_path: Path) -> None:
    require("tshark")
    scenario = PATH + '\n[flow.media]\ncc = "tfrc"\n'
    capture, summary = captured(tmp_path, scenario)
    (flow,) = summary["flows"]
    data = 'paceline_tfrc.type == 5 && frame.interface_name == "media[0].'
    sent = fields(capture, f'{data}source"', "paceline_tfrc.sequence", "ip.len")
    assert [int(sequence) for sequence, _ in sent] == list(range(flow["packets_sent"]))
    assert {length for _, length in sent} == {"1500"}
    arrived = count(capture, f'{data}sink"')
    assert arrived == flow["packets_delivered"]
    ends = ("source", "sink")
    names = ("received_end", "received", "echo", "loss_event_rate", "receive_rate")
    at = [
        fields(
            capture,
            f'paceline_tfrc.type == 6 && frame.interface_name == "media[0].{end}"',
            *(f"paceline_tfrc.{name}" for name in names),
        )
        for end in ends
    ]
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
    with pytest.raises(PacelineError, match="without pcap"):
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
    scenario = PATH.replace("20 s", "60 s", 1) + (
        '\n[flow.media]\ncc = "lda-plus"\nstop = "50 s"\nrtp = { timing = "fixed", report_interval = "1 s" }\n'
    )
    capture, _ = captured(tmp_path, scenario, "media[0].source")
    sent = count(capture, "rtp")
    capture, summary = captured(tmp_path, scenario, "media[0].sink")
    assert fields(capture, "_ws.malformed || _ws.expert", "frame.number", "_ws.expert.message") == []
    arrived = count(capture, "rtp")
    lost = sent - arrived
    assert lost > 20
    streams = tshark(capture, "-q", "-z", "rtp,streams").splitlines()
    (stream,) = [line for line in streams if "RTPType-96" in line]
    assert re.search(rf" {arrived} +{lost} \(", stream), stream
    # the flow's counts have its sender's reports too
    (flow,) = summary["flows"]
    assert flow["packets_delivered"] == arrived + count(capture, "rtcp.pt == 200")
    data = fields(capture, "rtp", "rtp.ssrc", "rtp.seq", "ip.len")
    assert {length for _, _, length in data} == {"1500"}
    (ssrc,) = {ssrc for ssrc, _, _ in data}
    names = ("ssrc.cum_nr", "ssrc.high_seq", "ssrc.identifier", "length_check")
    reports = fields(capture, "rtcp.pt == 201", *(f"rtcp.{name}" for name in names))
    assert len(reports) > 40
    last = reports[-1]
    assert last[:2] == [str(lost), data[-1][1]]
    assert ssrc in last[2]
    assert all(report[3] in ("1", "True") for report in reports)
    applications = fields(capture, "rtcp.app.name", "rtcp.app.name", "rtcp.app.subtype")
    assert {("PCLN", "1"), ("PCLN", "2")} <= {tuple(one) for one in applications}
    assert count(capture, "rtcp.pt == 203") == 2, "both ends leave"


def test_multfrc_names_its_connections(tmp_path: Path) -> None:
    require("tshark")
    capture, summary = captured(tmp_path, PATH + '\n[flow.media]\ncc = "multfrc"\n', "media[0].source")
    assert fields(capture, "_ws.malformed || _ws.expert", "frame.number", "_ws.expert.message") == []
    assert count(capture, "paceline_tfrc.type == 5") == summary["flows"][0]["packets_sent"]
    places = fields(capture, "paceline_tfrc.type == 5", "paceline_tfrc.place", "ip.len")
    assert len({place for place, _ in places}) > 1
    assert {length for _, length in places} == {"1500"}
