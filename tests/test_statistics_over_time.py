"""The variation of rates: `paceline.cov` over bins of other widths than those recorded, and the measures of a run."""

from __future__ import annotations

import polars as pl
import pytest

import paceline
from paceline.errors import PacelineError

TEXT = """
duration = "60 s"
warmup = "2 s"
rate_bin = "500 ms"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
[flow.a]
count = 2
[flow.b]
cc = "udp"
app = { kind = "pareto", rate = "1 Mbit/s", burst = "300 ms", idle = "300 ms" }
"""


def rates(values: list[float]) -> pl.DataFrame:
    times = [0.1 * (i + 1) for i in range(len(values))]
    return pl.DataFrame({"seed": 1, "flow": "a", "instance": 0, "time_s": times, "send_rate_bps": values})


def test_worked_values() -> None:
    made = paceline.cov(rates([2.0, 4.0, 2.0, 4.0, 6.0, 6.0, 9.0]), 0.2)
    # bins of two: 3, 3, 6, and half a bin that does not count; sd by n is sqrt(2), the mean 4
    assert made["bins"].to_list() == [3]
    assert made["mean_bps"].to_list() == [4.0]
    assert made["cov"].to_list() == pytest.approx([2**0.5 / 4])
    assert paceline.cov(rates([2.0, 4.0]), 0.1)["cov"].to_list() == pytest.approx([1 / 3])
    assert paceline.cov(rates([2.0, 4.0, 9.0, 9.0]), 0.1, to_s=0.2)["cov"].to_list() == pytest.approx([1 / 3])
    assert paceline.cov(rates([0.0, 0.0]), 0.1)["cov"].to_list() == [None]
    assert paceline.cov(rates([1.0, 3.0]), 0.2)["cov"].to_list() == [None]


def test_widths_that_do_not_fit_are_refused() -> None:
    for width in (0.05, 0.15, 0.25):
        with pytest.raises(PacelineError, match="must be a multiple"):
            paceline.cov(rates([1.0, 2.0, 3.0]), width)
    with pytest.raises(PacelineError, match="no column"):
        paceline.cov(rates([1.0, 2.0]), 0.1, "goodput")


def test_recorded_and_measured_variation_agree() -> None:
    results = paceline.run(paceline.parse(TEXT), runs=2, record=("rate",), record_every_s=0.1)
    recorded = paceline.cov(results.series("rate"), 0.5, from_s=2.0)
    assert len(recorded) == 6
    both = recorded.join(results.flows, on=["seed", "flow", "instance"])
    assert len(both) == 6
    for row in both.iter_rows(named=True):
        # the recording has no sample at the run's very end, so it lacks the last bin
        assert row["bins"] == 115
        assert row["cov"] == pytest.approx(row["send_rate_cov"], rel=0.1)
    # What is sent on and off arrives with another variation through a queue, and as it was sent without one.
    crowded = results.flows.filter(pl.col("flow") == "b")
    ratio = crowded["goodput_cov"] / crowded["send_rate_cov"]
    assert ratio.is_between(0.9, 1.1).all()
    assert not ratio.is_between(0.999, 1.001).all()
    free = TEXT.replace("5 Mbit/s", "500 Mbit/s").replace(
        "count = 2", 'count = 2\napp = { kind = "ftp", size = "1 kB" }'
    )
    alone = paceline.run(paceline.parse(free)).flows.filter(pl.col("flow") == "b")
    assert alone["goodput_cov"][0] == pytest.approx(alone["send_rate_cov"][0], rel=0.02)
    wider = paceline.cov(results.series("rate"), 2.0)
    assert wider["bins"].to_list() == [29] * 6
    narrow, wide = (frame.filter(pl.col("flow") == "b")["cov"].sum() for frame in (recorded, wider))
    assert wide < narrow


def goodputs(of: dict[str, list[float]], seed: int = 1) -> pl.DataFrame:
    parts = [
        pl.DataFrame(
            {
                "seed": seed,
                "flow": flow,
                "instance": 0,
                "time_s": [0.5 * (i + 1) for i in range(len(values))],
                "goodput_bps": values,
            }
        )
        for flow, values in of.items()
    ]
    return pl.concat(parts)


def test_jain_over_time_counts_who_has_begun_and_is_not_over() -> None:
    # In seconds: only a; a and b alike; b three times a; a starves; b is over.
    a = [2.0, 2.0, 1.0, 3.0, 1.0, 1.0, 0.0, 0.0, 4.0, 4.0]
    b = [0.0, 0.0, 2.0, 2.0, 3.0, 3.0, 5.0, 5.0, 0.0, 0.0]
    table = pl.concat([goodputs({"a": a, "b": b, "udp": [9.0] * 10}), goodputs({"a": b, "b": b}, seed=2)])
    made = paceline.jain_over_time(table, 1.0, ["a", "b"])
    one = made.filter(seed=1)
    assert one["time_s"].to_list() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert one["flows"].to_list() == [1, 2, 2, 2, 1]
    assert one["jain"].to_list() == pytest.approx([1.0, 1.0, 16 / 20, 0.5, 1.0])
    assert made.filter(seed=2)["time_s"].to_list() == [2.0, 3.0, 4.0], "nobody is there before and after"
    assert made.filter(seed=2)["jain"].to_list() == pytest.approx([1.0] * 3)
    with pytest.raises(PacelineError, match="no flow c; there are a, b, udp"):
        paceline.jain_over_time(table, 1.0, ["c"])
    for bad in (0.75, 0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(PacelineError, match="must be a multiple"):
            paceline.jain_over_time(table, bad)


def test_jain_over_time_counts_who_tries_and_gets_nothing() -> None:
    # In seconds: b has not begun; b sends and nothing comes; both; b sends and nothing comes, to the end.
    goodput = goodputs({"a": [2.0] * 10, "b": [0.0] * 4 + [2.0] * 2 + [0.0] * 4})
    sent = pl.Series("send_rate_bps", [2.0] * 10 + [float("nan"), 0.0] + [2.0] * 6 + [0.0, 2.0])
    made = paceline.jain_over_time(goodput.with_columns(sent), 1.0)
    assert made["flows"].to_list() == [1, 2, 2, 2, 2]
    assert made["jain"].to_list() == pytest.approx([1.0, 0.5, 1.0, 0.5, 0.5])


def test_the_whole_runs_index_is_that_of_one_bin() -> None:
    results = paceline.run(paceline.parse(TEXT), record=("rate",), record_every_s=0.5)
    # the recording ends half a second before the run
    made = paceline.jain_over_time(results.series("rate"), 59.5, ["a"])
    (index,) = made["jain"]
    assert made["flows"].to_list() == [2]
    assert index == pytest.approx(results.groups.filter(group="a")["jain"][0], abs=0.02)
