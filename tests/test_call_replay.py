"""`paceline call-log` of event logs, the RTCP of captures, and controllers that are shown what was logged.

tests/calls/chromium.rtceventlog is the sender's log of a call of Chromium 156 over examples/webrtc/loss.toml; what our
GCC makes of its feedback is held against Chromium's in crates/calls/tests/chromium.rs.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import paceline
from paceline import _core
from paceline.calls import call_log, captures
from paceline.cli import app
from paceline.errors import PacelineError
from paceline.scenarios import named_parameters
from test_call_capture import CALL, HEAD, frame

LOG = Path(__file__).parent / "calls" / "chromium.rtceventlog"


def test_an_event_log_becomes_flows_feedback_and_replays(tmp_path: Path) -> None:
    results = paceline.call_log(LOG, out=tmp_path / "out", rtp_logs=tmp_path / "rtp", replay=["gcc", "nada"])
    again, video = results.flows.sort("packets_sent").to_dicts()
    assert (video["flow"], again["flow"]) == ("4c41f0b9 out", "a6fb98ae out")
    assert (video["packets_sent"], again["packets_sent"]) == (3712, 113)
    assert "packets_lost" not in video, "a sender does not know"
    assert len((tmp_path / "rtp" / "4c41f0b9-1.log").read_text().splitlines()) == 3712
    rates = results.series("rtcp")
    assert rates["flow"].unique(maintain_order=True).to_list() == ["libwebrtc", "gcc", "nada"]
    # both go by the same feedback: libwebrtc allowed 881 kbit/s in the mean
    libwebrtc, gcc = (rates.filter(flow=flow)["allowed_bps"].mean() for flow in ("libwebrtc", "gcc"))
    assert isinstance(libwebrtc, float)
    assert gcc == pytest.approx(libwebrtc, rel=0.02)
    feedback = results.series("feedback")
    assert feedback["time_s"].is_between(0, 40).all()
    assert feedback["delay_s"].min() == pytest.approx(0, abs=0.005)
    trips = results.series("reports").filter(flow="4c41f0b9 out")["rtt_s"]
    assert trips.is_between(0.1, 0.3).all()
    assert paceline.Results.read(tmp_path / "out").series("feedback").equals(feedback)
    assert results.notices.height == 0


def _shown(scheme: str, params: dict[str, bool] | dict[str, float], tmp_path: Path) -> pl.DataFrame:
    """What a scheme allowed in a simulated call, and what a fresh one allows that is shown the capture of it."""
    words = ", ".join(f"{key} = {str(value).lower()}" for key, value in params.items())
    text = CALL.replace('cc = "gcc"', f'cc = "{scheme}"\nparams = {{ {words} }}')
    path = tmp_path / "call.pcapng"
    run = paceline.run(paceline.parse(text), seed=3, record=("rtcp",), record_every_s=0.0937, pcap=path)
    capture = captures.read(path)
    (log,) = captures.senders(capture, 0).values()
    assert log.unread_rtcp[0] == 0
    (table,) = call_log._tables(
        log.replay(scheme, [(k, float(v)) for k, v in params.items()], 0.001)
    ).values()
    both = run.series("rtcp").join_asof(table, on="time_s", suffix="_shown")
    return both.filter(pl.col("time_s").is_between(0.5, 17.9)).select(
        "time_s", off=(pl.col("allowed_bps_shown") / pl.col("allowed_bps") - 1).abs()
    )


def test_gcc_allows_what_it_allowed_in_the_run_that_was_captured(tmp_path: Path) -> None:
    """To the last bit, without probes, of which a capture does not tell; a row may lie within 1 ms of a change."""
    off = _shown("gcc", {"probing": False}, tmp_path)["off"]
    assert len(off) > 150
    assert (off == 0).sum() >= len(off) - 2


def test_nada_allows_what_it_allowed_in_the_run_that_was_captured(tmp_path: Path) -> None:
    """But for the interval of feedback, which is taken from the capture."""
    off = _shown("nada", {"min_rate": 150e3, "max_rate": 1.5e6}, tmp_path)["off"]
    assert len(off) > 150
    assert (off < 1e-3).sum() >= len(off) - 3


def test_both_ways_of_a_capture_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "call.pcapng"
    paceline.run(paceline.parse(CALL), seed=3, pcap=path)
    results = paceline.call_log(path, replay=["scream:variant=libwebrtc"])
    (name,) = results.series("rtcp")["flow"].unique()
    assert name == "scream:variant=libwebrtc"
    feedback = results.series("feedback")
    gone, arrived = (float(feedback[f"{what}_packets"].sum()) for what in ("lost", "arrived"))
    lost = results.flows["packets_lost"][1] / results.flows["packets_delivered"][0]
    assert gone / (gone + arrived) == pytest.approx(lost, abs=0.005)
    # of the way there and back 30 ms each are the path's
    assert results.series("reports")["rtt_s"].drop_nulls().is_between(0.06, 0.25).all()


def _capture(*datagrams: tuple[bytes, bool]) -> io.BytesIO:
    """RTP or RTCP from 10.0.0.1 to 10.0.0.2 or back, a millisecond apart."""
    frames = (frame(payload, number * 1000, back=back) for number, (payload, back) in enumerate(datagrams))
    return io.BytesIO(HEAD + b"".join(frames))


def _numbered(number: int, transport: int, profile: int = 0xBEDE) -> bytes:
    """A packet with a transport-wide number as extension 5, and another element of two bytes that stands still."""
    elements = b"\x31\0\x07\x51" + struct.pack(">H", transport) + b"\0\0"
    if profile != 0xBEDE:
        elements = b"\x03\x02\0\x07\x05\x02" + struct.pack(">H", transport)
    extension = struct.pack(">HH", profile, len(elements) // 4) + elements
    return struct.pack(">BBHII", 0x90, 96, number, number * 90, 7) + extension + bytes(100)


@pytest.mark.parametrize("profile", [0xBEDE, 0x1000])
def test_transport_wide_numbers_are_found_whatever_their_id(profile: int) -> None:
    feedback = struct.pack(">BBHIIHHI", 0x8F, 205, 7, 1, 7, 65530, 8, 0) + b"\x20\x08" + bytes(10)
    sent = [(_numbered(i, (65530 + i) % 65536, profile), False) for i in range(10)]
    capture = captures.calls(_capture(*sent, (feedback, True)))
    (log,) = captures.senders(capture, 0).values()
    assert [packet[9] for packet in log.rtp()] == [65530, 65531, 65532, 65533, 65534, 65535, 0, 1, 2, 3]
    assert log.unread_rtcp == (0, 1)


def test_values_behind_a_name_are_read_once_for_all() -> None:
    assert named_parameters.read(" codel : target = 10 ms , ecn=true") == (
        "codel",
        (("target", "10 ms"), ("ecn", "true")),
    )
    assert named_parameters.numbers(
        "tfrc", named_parameters.read("tfrc:law=ns2,damping=false,burst=0.5")[1]
    ) == [
        ("law", 2.0),
        ("damping", 0.0),
        ("burst", 0.5),
    ]
    assert named_parameters.numbers("scream", (("variant", "libwebrtc"), ("padding", "true"))) == [
        ("variant", 2.0),
        ("padding", 1.0),
    ]


def test_what_cannot_be_replayed_is_told_so(tmp_path: Path) -> None:
    sent = [(_numbered(i, i), False) for i in range(10)]
    encrypted = b"\x80\xc9\0\x01" + b"\xff" * 20
    path = tmp_path / "call.pcap"

    def said(*datagrams: tuple[bytes, bool], replay: str = "gcc") -> str:
        path.write_bytes(_capture(*datagrams).getvalue())
        with pytest.raises(PacelineError) as error:
            paceline.call_log(path, replay=[replay])
        return str(error.value)

    assert said(*sent).endswith("it has no RTCP, so there is no feedback to replay")
    text = said(*sent, (encrypted, True), (encrypted, True))
    assert "of 2 packets of RTCP 2 could not be read, as where they are encrypted (SRTCP)" in text
    assert "did you mean `gcc`?" in said(*sent, (encrypted, True), replay="gc")
    assert "KEY=VALUE" in said(*sent, (encrypted, True), replay="gcc:start_rate")
    for text in ("gcc:start_rate=", "gcc:", "gcc:start_rate=fast", "scream:variant=erricson"):
        assert "KEY=VALUE" in said(*sent, (encrypted, True), replay=text)
    assert "start_rate = 1 is not from 5000" in said(*sent, (encrypted, True), replay="gcc:start_rate=1")
    assert "plans when frames leave" in said(*sent, (encrypted, True), replay="ndtc")
    results = paceline.call_log(path)
    assert results.notices.select("kind", "cases", "of").rows() == [("rtcp-unread", 1, 1)]
    with pytest.raises(PacelineError, match="neither a capture nor an event log"):
        paceline.call_log(Path(__file__).parent / "calls" / "webrtc_internals_dump.gz", replay=["gcc"])


def test_logs_of_other_versions_and_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def said(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(PacelineError) as error:
            paceline.call_log(path)
        return str(error.value)

    assert "in version 3; version 2 is read" in said(b"\x82\x01\x04\x08\x01\x10\x03")
    assert "libwebrtc's first format, which ended in 2019" in said(b"\x0a\x05\x08\x01\x10\x01\x00")
    assert "it has no RTP packets" in said(b"\x82\x01\x04\x08\x01\x10\x02")
    assert "it is damaged" in said(LOG.read_bytes() + b"\x18\x01")
    # a dump may begin with an empty line
    assert "not JSON" in said(b"\n\n{")
    path.write_bytes(LOG.read_bytes()[:30_000])
    cut = paceline.call_log(path, replay=["gcc"])
    assert cut.notices["kind"].to_list() == ["log-cut"]
    assert 500 < cut.flows["packets_sent"].sum() < 3825


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), max_size=6),
    end=st.integers(0, 12_000),
)
def test_whatever_a_log_holds_is_read_or_refused(
    places: list[tuple[int, int]], end: int, tmp_path: Path
) -> None:
    content = bytearray(LOG.read_bytes()[:12_000])
    for place, byte in places:
        content[min(place, len(content) - 1)] = byte
    path = tmp_path / "log"
    path.write_bytes(bytes(content[:end]))
    try:
        results = paceline.call_log(path)
    except PacelineError:
        return
    assert results.flows.height > 0


def test_the_command_says_what_each_controller_allowed() -> None:
    said = CliRunner().invoke(app, ["call-log", str(LOG), "--replay", "gcc"], catch_exceptions=False)
    assert said.exit_code == 0
    assert "Allowed (replays: open loop)" in said.output
    rows: list[Any] = [line.split() for line in said.output.splitlines()]
    assert [row[0] for row in rows if row[2:3] == ["kbit/s"]] == ["libwebrtc", "gcc"]


def test_packets_of_a_capture_bound_what_they_last() -> None:
    week = 7 * 86_400 * 10**9
    packet = (week + 1, True, 7, 96, 0, 0, False, 100, 12, None)
    with pytest.raises(ValueError, match="more than a week apart"):
        _core.CallLog.of_packets([packet], [], 28)
