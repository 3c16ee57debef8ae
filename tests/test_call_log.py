"""Logs of calls that browsers made. tests/calls/webrtc_internals_dump.gz is one of Chromium, 10 s of two connections of
one page, of which one sends the other a video of 320x180 over the loopback interface."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paceline
from paceline.calls import dump
from paceline.errors import PacelineError
from paceline.results.results import Results

DUMP = Path(__file__).parent / "calls" / "webrtc_internals_dump.gz"
TEXT = gzip.decompress(DUMP.read_bytes())


def series(connection: str, kind: str, key: str) -> list[Any]:
    """The one series of a key in the reports of a kind, as the dump has it."""
    stats = json.loads(TEXT)["PeerConnections"][connection]["stats"]
    (found,) = [
        one["values"] for name, one in stats.items() if one["statsType"] == kind and name.endswith(f"-{key}")
    ]
    values: list[Any] = json.loads(found)
    return values


def test_streams_become_flows_and_series_rates(tmp_path: Path) -> None:
    results = paceline.call_log(DUMP, out=tmp_path / "out")
    sent, received = results.flows.iter_rows(named=True)
    assert (sent["flow"], received["flow"]) == ("8-1 video out", "8-2 video in")
    packets = series("8-1", "outbound-rtp", "packetsSent")
    assert sent["packets_sent"] == packets[-1] - packets[0]
    counted = series("8-2", "inbound-rtp", "bytesReceived")
    times = [t / 1e3 for t in series("8-2", "inbound-rtp", "timestamp")]
    assert len(counted) == len(times) == 11
    assert received["goodput_bps"] == pytest.approx(8 * (counted[-1] - counted[0]) / (times[-1] - times[0]))
    assert received["packets_lost"] == 0
    rates = results.series("rate").filter(flow="8-2 video in")
    assert rates["goodput_bps"].to_list() == pytest.approx(
        [8 * (b - a) / (t - s) for a, b, s, t in zip(counted, counted[1:], times, times[1:], strict=False)]
    )
    assert rates["send_rate_bps"].is_null().all()
    gauges = results.series("rtcp").filter(flow="8-1 video out")
    assert gauges["encoder_bps"].to_list() == series("8-1", "outbound-rtp", "targetBitrate")
    # of the pair that is used: the other one that succeeded has no estimate
    assert gauges["allowed_bps"].to_list() == series("8-1", "candidate-pair", "availableOutgoingBitrate")
    assert Results.read(tmp_path / "out").series("rate").equals(results.series("rate"))


def test_a_key_that_came_later_ends_with_the_others(tmp_path: Path) -> None:
    stats = {
        "OT1-timestamp": {"statsType": "outbound-rtp", "values": "[1000, 2000, 3000]"},
        "OT1-bytesSent": {"statsType": "outbound-rtp", "values": "[0, 100, 300]"},
        "OT1-targetBitrate": {"statsType": "outbound-rtp", "values": "[5e5]"},
        "OT1-[bytesSent_in_bits/s]": {"statsType": "outbound-rtp", "values": "[1, 2, 3]"},
    }
    file = tmp_path / "dump.txt"
    file.write_text(json.dumps({"PeerConnections": {"1-1": {"stats": stats}}}))
    results = paceline.call_log(file)
    assert results.series("rtcp")["encoder_bps"].to_list() == [None, None, 5e5]
    assert results.series("rate").select("time_s", "send_rate_bps").rows() == [(1.0, 800.0), (2.0, 1600.0)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (DUMP.read_bytes()[:5000], "cut off or damaged"),
        (TEXT[: len(TEXT) // 2], "is cut off: its text is not JSON"),
        (b"[" * 100_000, "its text is not JSON"),
        (b"[1, 2]", 'has no "PeerConnections"'),
        (b'{"PeerConnections": {}}', "has no statistics: keep chrome://webrtc-internals open"),
        (b'RTCStatsDump\n{"fileFormat":3}\n', "is in the format rtcstats: save the other one"),
        (gzip.compress(b" " * (dump.MAX_BYTES + 1)), "holds more than 64 MB of text"),
    ],
)
def test_what_is_no_dump_is_told_so(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "dump"
    file.write_bytes(content)
    with pytest.raises(PacelineError, match=f"dump .*{said}"):
        paceline.call_log(file)


VALUES = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.lists(st.one_of(st.integers(), st.floats(), st.none(), st.text(max_size=3)), max_size=5).map(
        json.dumps
    ),
)
KEYS = st.sampled_from(
    [
        *("OT1-timestamp", "OT1-bytesSent", "OT1-kind", "OT1-targetBitrate", "OT1-packetsLost"),
        *("T1-timestamp", "T1-selectedCandidatePairId", "CP-timestamp", "CP-availableOutgoingBitrate"),
        *("-timestamp", "x"),
    ]
)
SERIES = st.fixed_dictionaries(
    {
        "values": VALUES,
        "statsType": st.sampled_from(["outbound-rtp", "inbound-rtp", "transport", "candidate-pair"]),
    }
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stats=st.dictionaries(KEYS, st.one_of(SERIES, st.integers(), st.none()), max_size=10))
def test_whatever_a_dump_holds_is_read_or_refused(stats: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "dump"
    file.write_text(json.dumps({"PeerConnections": {"1-1": {"stats": stats}}}))
    try:
        results = paceline.call_log(file)
    except PacelineError:
        return
    assert results.flows.height <= 2
    assert results.runs["duration_s"].is_between(0, float("inf")).all()
    assert isinstance(results.flows, pl.DataFrame)
