"""Captures of runs in real time as tshark reads them: all that our machines and the kernel's TCP put on a wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paceline
from needs import require
from paceline import realtime
from tshark import count, fields

pytestmark = [pytest.mark.realtime, pytest.mark.long]

PORT = 5050
LIVE = ("-o", "udp.try_heuristic_first:TRUE", "-d", f"udp.port=={PORT},rtp")
"""RTP and RTCP share the server's port (RFC 5761); our own messages there are known by their first bytes."""

SCENARIO = """
duration = "4 s"
[link.bottleneck]
rate = "8 Mbit/s"
delay = "15 ms"
queue = { kind = "droptail", limit = "60 packets" }
loss = { kind = "uniform", rate = "2 %" }
[flow.lda]
cc = "lda-plus"
rtp = { timing = "fixed", report_interval = "250 ms" }
params = { initial_rate = 100 }
[flow.nada]
cc = "nada"
app = { kind = "encoder" }
[flow.tfrc]
cc = "tfrc"
[flow.multfrc]
cc = "multfrc"
[flow.rap]
cc = "rap"
[flow.tcp]
cc = "sack"
profile = "linux"
[flow.udp]
cc = "udp"
app = { kind = "cbr", rate = "300 kbit/s" }
[flow.kernel]
kernel = true
profile = "linux"
[flow.back]
cc = "lda-plus"
from = "right"
to = "left"
"""

Captured = tuple[Path, dict[str, dict[str, Any]], dict[str, Any]]
"""The file, the flows by name, and the path."""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """One run of every machine at once."""
    require("tshark", "namespaces")
    capture = tmp_path_factory.mktemp("live") / "run.pcapng"
    run = realtime.emulate(paceline.parse(SCENARIO, name="all"), 1, pcap=capture)
    return capture, {row["flow"]: row for row in run.summary["flows"]}, run.summary["path"]


def seen(capture: Path, filter_: str, *names: str) -> list[list[str]]:
    return fields(capture, filter_, *names, options=LIVE)


def test_nothing_is_malformed_and_all_checksums_hold(captured: Captured) -> None:
    capture, _, _ = captured
    assert len(seen(capture, "ip", "frame.number")) > 3000
    wrong = " || ".join(f"{what}.checksum.status == 0" for what in ("ip", "udp", "tcp"))
    assert seen(capture, f"_ws.malformed || {wrong}", "frame.number", "_ws.expert.message") == []
    # of what was kept whole every checksum was looked at; of long packets the capture has the beginning
    whole = seen(capture, "udp && frame.cap_len == frame.len", "udp.checksum.status")
    assert {status for (status,) in whole} == {"1"}
    assert len(whole) > 1000
    assert seen(capture, "_ws.expert.severity == error", "frame.number", "_ws.expert.message") == []


def test_every_datagram_is_one_of_ours(captured: Captured) -> None:
    """Nothing but messages that a dissector knows, and of each kind those that the flows must have sent."""
    capture, _, _ = captured
    other = seen(capture, "udp && !paceline_tfrc && !rtp && !rtcp", "frame.number", "frame.protocols")
    assert other == []
    kinds = {int(kind) for (kind,) in seen(capture, "paceline_tfrc", "paceline_tfrc.type")}
    # requests, accepts and closes; data and feedback of TFRC; of RAP; of TCP; plain datagrams. Nothing was refused.
    assert kinds == {1, 2, 4, 5, 6, 7, 8, 9, 10, 11}
    assert count(capture, "tcp.port == 5050 && tcp.flags.syn == 1 && tcp.flags.ack == 0") >= 2


def test_data_are_those_that_the_flows_counted(captured: Captured) -> None:
    """Packets at the near end's interface, by type, are what the senders there say they sent."""
    capture, flows, _ = captured

    def left(filter_: str) -> int:
        return len(
            seen(
                capture,
                f'frame.interface_name == "near" && udp.dstport == {PORT} && ({filter_})',
                "frame.number",
            )
        )

    assert left("paceline_tfrc.type == 7") == flows["rap"]["packets_sent"]
    assert left("paceline_tfrc.type == 9") == flows["tcp"]["packets_sent"]
    assert left("paceline_tfrc.type == 11") == flows["udp"]["packets_sent"]
    both = flows["tfrc"]["packets_sent"] + flows["multfrc"]["packets_sent"]
    assert left("paceline_tfrc.type == 5") == both
    # of RTP the sender's own reports count too; one that has sent nothing of late reports as a receiver does
    rtp = flows["lda"]["packets_sent"] + flows["nada"]["packets_sent"]
    assert rtp - 4 <= left("rtp.seq || rtcp.pt == 200") <= rtp
    assert rtp > 100


def test_reports_say_what_the_capture_shows(captured: Captured) -> None:
    """Losses in RTCP are those between the two interfaces, and the round trip of LSR and DLSR is the path's."""
    capture, _, _ = captured
    names = (
        "ssrc.identifier",
        "ssrc.fraction",
        "ssrc.cum_nr",
        "ssrc.ext_high",
        "ssrc.jitter",
        "ssrc.lsr",
        "ssrc.dlsr",
    )
    reports = seen(
        capture,
        'rtcp.pt == 201 && rtcp.ssrc.lsr && frame.interface_name == "near"',
        *(f"rtcp.{n}" for n in names),
    )
    assert len(reports) > 8
    streams = {ssrc for (ssrc,) in seen(capture, f"rtp.seq && udp.dstport == {PORT}", "rtp.ssrc")}
    assert len(streams) == 2
    of_streams = [row for row in reports if row[0].split(",")[0] in streams]
    assert len(of_streams) > 8
    for _, fraction, _, _, jitter, lsr, dlsr in of_streams:
        assert 0 <= int(fraction) <= 255
        # a jitter of less than 100 ms, in ticks of 90 kHz; a report is held for less than 6 s
        assert 0 <= int(jitter) < 9000
        assert int(dlsr) < 6 * 65536
        # without a sender report there is nothing to wait since; one may be answered within 1/65536 s
        assert int(lsr) != 0 or int(dlsr) == 0
    checks = seen(capture, "rtcp", "rtcp.length_check")
    assert {value for (value,) in checks} <= {"1", "True"}
    assert {tuple(row) for row in seen(capture, "rtcp.app.name", "rtcp.app.name")} >= {("PCLN",)}
    assert seen(capture, "rtcp.rtpfb.fmt == 11", "frame.number"), "NADA's feedback"
    kinds = {kind for (kinds,) in seen(capture, "rtcp", "rtcp.pt") for kind in kinds.split(",")}
    assert kinds == {"200", "201", "202", "203", "204", "205"}


def test_losses_of_a_stream_are_the_reports(captured: Captured) -> None:
    """What tshark misses at the far end of a stream is what its receiver's last report says."""
    capture, flows, _ = captured
    streams = {ssrc for (ssrc,) in seen(capture, f"rtp.seq && udp.dstport == {PORT}", "rtp.ssrc")}
    many = 0
    for ssrc in streams:
        its = f"rtp.ssrc == {ssrc} && udp.dstport == {PORT}"
        left, arrived = (
            [seq for (seq,) in seen(capture, f'{its} && frame.interface_name == "{end}"', "rtp.seq")]
            for end in ("near", "far")
        )
        of_it = f'rtcp.pt == 201 && rtcp.ssrc.identifier == {ssrc} && frame.interface_name == "near"'
        number, highest = seen(capture, of_it, "rtcp.ssrc.cum_nr", "rtcp.ssrc.high_seq")[-1]
        # the run ends on time, not with a report: packets go on after the last one
        assert left.index(highest) + 1 > len(left) / 2
        lost = left.index(highest) - arrived.index(highest)
        assert lost == int(number), ssrc
        many += lost
    assert 3 < many <= sum(flows[name]["packets_lost"] for name in ("lda", "nada"))
