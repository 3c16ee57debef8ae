"""Quantities and tables for people."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import paceline
from paceline.interval import Kind, interval
from paceline.quantities import digits, quantity
from paceline.results.results import Results, RunRecord
from paceline.tables.summaries import explained, said, tables


@pytest.mark.parametrize(
    ("measure", "mean", "half_width", "text"),
    [
        ("goodput_bps", 3_948_000.0, 120_000.0, "3.95 ± 0.12 Mbit/s"),
        ("goodput_bps", 3_948_000.0, None, "3.95 Mbit/s"),
        ("goodput_bps", 999.0, None, "999 bit/s"),
        ("goodput_bps", 0.0, None, "0 bit/s"),
        ("goodput_bps", 0.0, 0.0, "0 bit/s"),
        ("goodput_bps", 1.5e9, 2e6, "1.5000 ± 0.0020 Gbit/s"),
        ("rtt_mean_s", 0.0543, None, "54.3 ms"),
        ("rtt_mean_s", 0.0001, 0.00002, "100 ± 20 µs"),
        ("fill_s", 12.0, None, "12 s"),
        ("fill_s", None, None, "-"),
        ("late_share", 0.081, 0.012, "8.1 ± 1.2 %"),
        ("loss_rate", 0.0, 0.0, "0 %"),
        ("mean_packets", 28.286, None, "28.3"),
        ("mean_packets", 1e-6, None, "< 0.0001"),
        ("mean_packets", 100.0, 250.0, "100 ± 250"),
        ("jain", 0.9954, 0.0057, "0.9954 ± 0.0057"),
        ("jain", 0.98, 1e-6, "0.9800 ± < 0.0001"),
        ("jain", 1.0, None, "1"),
        ("packets_sent", 23_875.0, None, "23875"),
        ("packets_sent", 23_875.4, 2_055.2, "23875 ± 2055"),
        ("difference_bps", -967_000.0, None, "-967 kbit/s"),
        ("mean_bytes", 42_417.0, None, "42.4 kB"),
        ("timeouts", 9.999, None, "10.00"),
    ],
)
def test_quantities_have_units_and_sensible_digits(
    measure: str, mean: float | None, half_width: float | None, text: str
) -> None:
    assert quantity(measure, mean, half_width) == text


@pytest.mark.parametrize(
    ("measure", "values", "text"),
    [
        ("goodput_bps", [1e6, 1.2e6, 1.4e6], "1.20 Mbit/s, no interval"),
        ("goodput_bps", [1e6 + 1e5 * k for k in range(10)], "1.45 ± 0.22 Mbit/s"),
        ("loss_event_rate", [0.001 * 2**k for k in range(-5, 5)], "0.3 (0 to 1.8) %"),
        ("loss_rate", [0.001, 0.002, 0.012, 0.003, 0.001, 0.009], "0.2 [0.1 to 1.2] %"),
        ("goodput_bps", [1e6, 1e6, 1e6, 1e6, 2e6, 2.1e6, 2.2e6], "1.0 [1.0 to 2.2] Mbit/s"),
        ("utilisation", [0.99, 1.0, 0.98, 0.9], "96.8 %, no interval"),
        ("share", [0.99, 1.0, 0.98, 0.9, 0.97] * 2, "96.8 (92.0 to 100.0) %"),
        ("late_share", [0.0] * 8 + [0.1, 0.3], "4 %, 2 of 10 not 0"),
        ("late_share", [0.0] * 10, "0 %, all 10"),
        ("late_share", [0.01 * k for k in range(10)], "4.5 [1.0 to 8.0] %"),
        ("late_share", [0.001, 0.002] * 8 + [0.7, 0.8, 0.9], "0.20 [0.10 to 0.20] %, mean 12.8 %"),
        ("max_packets", [1e-5 * k for k in range(10)], "< 0.0001 [< 0.0001 to 0.0001]"),
        ("late_share", [0.01, 0.02, 0.03], "2 %, no interval"),
        ("late_share", [0.02], "2 %"),
        ("max_packets", [60.0] * 9 + [50.0], "59, 9 of 10 at 60"),
        ("max_packets", [60.0] * 9 + [59.9], "60.0, 9 of 10 at 60"),
        ("duration_s", [120.0] * 9 + [119.99], "120 s, 9 of 10 alike"),
        ("owd_p50_s", [0.114, 0.1141, 0.114, 0.1142], "114 ms, all 4"),
        ("began", [1.0, 1.0, 0.0], "66.7 %, 2 of 3 not 0"),
        ("fill_s", [], "-"),
    ],
)
def test_several_runs_say_as_much_as_they_can(measure: str, values: list[float], text: str) -> None:
    assert said(measure, interval(measure, values)) == text


def test_what_a_cell_means_stands_below() -> None:
    shares = [interval("late_share", values) for values in ([0.0] * 10, [0.0] * 8 + [0.1, 0.3], [0.1, 0.2])]
    assert explained(shares) == [
        "runs that differ from most (exact, 99 %): none of 10 seen, 0 to 41 % of all; 2 of 10 seen, 1.1 to 65 % of all",
        "no interval: too few runs; 6 or more give one of the median, 10 or more one of an unskewed mean",
    ]
    assert explained([interval("goodput_bps", [1e6 + 1e5 * k for k in range(10)])]) == []


@pytest.mark.parametrize(
    ("measure", "endless", "kind"),
    [
        ("goodput_bps", True, Kind.T),
        ("goodput_bps", False, Kind.MEDIAN),
        ("rtt_mean_s", True, Kind.T),
        ("rtt_mean_s", False, Kind.MEDIAN),
        ("feedback_share", True, Kind.MEDIAN),
        ("utilisation", True, Kind.MEDIAN),
        ("sd_packets", True, Kind.MEDIAN),
        ("occupancy_3", True, Kind.MEDIAN),
        ("loss_rate", True, Kind.MEDIAN),
        ("rtt_p50_s", True, Kind.MEDIAN),
        ("rtt_p95_s", True, Kind.MEDIAN),
        ("drops_overflow", True, Kind.MEDIAN),
        ("rtt_max_s", True, Kind.MEDIAN),
        ("max_packets", True, Kind.MEDIAN),
        ("freezes", True, Kind.MEDIAN),
    ],
)
def test_the_measure_and_what_sends_decide(measure: str, endless: bool, kind: Kind) -> None:
    values = [0.1 * k for k in range(1, 11)]
    assert interval(measure, values, endless).kind is kind
    assert interval(measure, values[:9], endless).kind is Kind.MEDIAN
    assert interval(measure, values[:5], endless).kind is Kind.NONE


BESIDE = """
duration = "8 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
[flow.bulk]
start = { uniform = ["0 s", "1 s"] }
[flow.file]
app = { kind = "ftp", size = "400 kB" }
[flow.film]
app = { kind = "stream", media_rate = "500 kbit/s", length = "60 s" }
"""


@pytest.mark.filterwarnings("ignore::paceline.PacelineWarning")
def test_results_know_which_rows_are_of_transfers_without_an_end() -> None:
    results = paceline.run(paceline.parse(BESIDE), runs=10)
    assert results.flows["app"].to_list()[:3] == ["ftp", "ftp", "stream"]
    for name in ("flows", "groups"):
        kinds = results.statistics(name, measures=["goodput_bps"])
        assert kinds["kind"].to_list() == ["t", "median", "median"]
    queues = results.statistics("queues", measures=["mean_packets"]).filter(direction="forward")
    assert queues["kind"].to_list() == ["t"]
    alone = paceline.run(
        paceline.parse(BESIDE.replace('[flow.bulk]\nstart = { uniform = ["0 s", "1 s"] }\n', "")), runs=10
    )
    assert alone.statistics("queues", measures=["mean_packets"])["kind"][0] in ("median", "runs")
    swept = paceline.sweep(
        BESIDE, {"flow.bulk.app": ['{ kind = "ftp" }', '{ kind = "cbr", rate = "1 Mbit/s" }']}, runs=10
    )
    queues = swept.statistics("queues", measures=["mean_packets"]).filter(direction="forward")
    assert queues["kind"].to_list() == ["t", "median"], "each point by itself"
    # as a version wrote them that did not know
    old = [
        RunRecord(
            r.seed,
            {**r.summary, "flows": [{k: v for k, v in f.items() if k != "app"} for f in r.summary["flows"]]},
        )
        for r in results.records
    ]
    kinds = Results(old, {}).statistics("flows", measures=["goodput_bps"])
    assert kinds["kind"].to_list() == ["t", "median", "t"]


def test_frames_of_a_sender_that_is_gone_have_what_their_receiver_knows() -> None:
    """A server that is killed in a call to here tells nobody how many frames it sent."""
    text = """
duration = "5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.call]
cc = "nada"
app = { kind = "encoder" }
"""
    whole = paceline.run(paceline.parse(text))
    flow = whole.summaries[0]["flows"][0]
    gone = {**flow, "frames_sent": None, "complete_share": None, "packets_sent": None}
    summary = {**whole.summaries[0], "flows": [gone]}

    def heads(results: Results) -> dict[str, Sequence[str]]:
        (frames,) = (layout for layout in tables(results) if layout.title == "Frames")
        return {column.head: column.cells for column in frames.columns}

    known = heads(Results([RunRecord(1, summary)], whole.manifest))
    assert list(known["came whole"]) == [str(flow["frames_complete"])]
    assert "frames" not in known
    assert known["delay 95 %"] == heads(whole)["delay 95 %"]
    assert "came whole" not in heads(whole)


def test_no_interval_is_printed_shorter_than_it_is() -> None:
    """Where digits run out it ends outside."""
    assert digits(9.6, 0.000149) == "9.6000 ± 0.0002"
    assert digits(9.6, 0.0001) == "9.6000 ± 0.0001"
    found = interval("fill_s", [1.00118, 1.00119, 1.0012, 1.00121, 1.00122, 1.00123, 1.00124])
    assert found.median_low == 1.00118
    assert said("fill_s", found) == "1.0012 [1.0011 to 1.0013] s"
