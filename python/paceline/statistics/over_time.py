"""Recorded rates over time: one flow's variation and several flows' fairness, in bins of any width."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from paceline.arguments import NAMES, checked
from paceline.errors import PacelineError

_OF_A_BIN = {"time_s", "goodput_bps", "send_rate_bps"}


@checked()
def cov(
    rates: pl.DataFrame,
    bin_s: float,
    column: str = "send_rate_bps",
    *,
    from_s: float = 0.0,
    to_s: float | None = None,
) -> pl.DataFrame:
    """Coefficient of variation (standard deviation with divisor n, over the mean) of each flow's binned rate.

    `rates` is a recording of the kind `rate`, as `results.series("rate")` returns it; `bin_s` is an integer multiple of
    its recording interval. Bins begin at multiples of `bin_s`, and those wholly between `from_s` and `to_s` (by default
    all) count. A row per run and flow: the identifying columns, `bins`, `mean_bps`, and `cov`, which is null below two
    bins and if the mean is zero. Raises PacelineError for a width that does not fit.
    """
    whole, keys = _binned(rates, bin_s, column)
    whole = whole.filter(pl.col("bin") * bin_s >= from_s - 1e-9)
    if to_s is not None:
        whole = whole.filter((pl.col("bin") + 1) * bin_s <= to_s + 1e-9)
    mean, deviation = pl.col("rate").mean(), pl.col("rate").std(ddof=0)
    measured = pl.when((pl.len() > 1) & (mean > 0)).then(deviation / mean).otherwise(None)
    return whole.group_by(keys, maintain_order=True).agg(
        pl.len().alias("bins"), mean.alias("mean_bps"), measured.alias("cov")
    )


@checked(flows=NAMES)
def jain_over_time(rates: pl.DataFrame, bin_s: float, flows: Sequence[str] | None = None) -> pl.DataFrame:
    """Jain's index (sum x)^2 / (n sum x^2) of the flows' goodputs in bins of `bin_s` seconds.

    `rates` and `bin_s` as for `cov`; `flows` names the flows that count, by default all. A flow counts from the first
    to the last bin in which it sent or received something, including bins between in which it received nothing: a flow
    that is starved from the beginning, or until the end, counts while it sends. If sending was not recorded, only
    deliveries decide. A row per run and bin in which a flow counts: the columns that identify the run, `time_s` (the
    bin's end), `flows` (how many count) and `jain`, null if none of them received anything. Raises PacelineError for a
    width that does not fit or an unknown flow.
    """
    whole, keys = _binned(rates, bin_s, "goodput_bps")
    if flows is not None:
        known = rates["flow"].unique(maintain_order=True).to_list()
        if missing := [name for name in flows if name not in known]:
            raise PacelineError(f"no flow {', '.join(missing)}; there are {', '.join(known)}")
        whole = whole.filter(pl.col("flow").is_in(list(flows)))
    whole = whole.with_columns((pl.col("rate") > 0).alias("busy"))
    if "send_rate_bps" in rates.columns:
        sending, _ = _binned(rates, bin_s, "send_rate_bps")
        sends = (pl.col("rate").fill_nan(0) > 0).fill_null(value=False).alias("sends")
        whole = whole.join(
            sending.select(*keys, "bin", sends), on=[*keys, "bin"], how="left", nulls_equal=True
        ).with_columns(pl.col("busy") | pl.col("sends").fill_null(value=False))
    served = pl.col("bin").filter(pl.col("busy"))
    lives = (pl.col("bin") >= served.min().over(keys)) & (pl.col("bin") <= served.max().over(keys))
    runs = [name for name in keys if name not in ("flow", "instance")]
    x = pl.col("rate")
    squares = (x * x).sum()
    index = pl.when(squares > 0).then(x.sum() ** 2 / (pl.len() * squares)).otherwise(None)
    return (
        whole.filter(lives)
        .group_by([*runs, "bin"])
        .agg(pl.len().alias("flows"), index.alias("jain"))
        .sort([*runs, "bin"])
        .select(*runs, ((pl.col("bin") + 1) * bin_s).alias("time_s"), "flows", "jain")
    )


def _binned(rates: pl.DataFrame, bin_s: float, column: str) -> tuple[pl.DataFrame, list[str]]:
    """Mean rates (`rate`) over the bins (`bin`, by number) that were recorded completely, and the columns that identify
    flows and runs. Raises PacelineError."""
    if column not in rates.columns or "time_s" not in rates.columns:
        raise PacelineError(f"there is no column {column}: give a recording of the kind rate, which has one")
    times = rates["time_s"].unique().sort()
    if len(times) < 2:
        raise PacelineError("a recording of one sample has no variation: record at a shorter interval")
    every = float((times[-1] - times[0]) / (len(times) - 1))
    many = round(bin_s / every) if math.isfinite(bin_s) else 0
    if many < 1 or abs(bin_s / every - many) > 1e-6 * many:
        raise PacelineError(f"bins of {bin_s:g} s must be a multiple of the recording interval, {every:g} s")
    keys = [name for name in rates.columns if name not in _OF_A_BIN]
    # A value covers the interval that ends at its time.
    number = (pl.col("time_s") / every).round().cast(pl.Int64) - 1
    whole = (
        rates.select(*keys, (number // many).alias("bin"), pl.col(column).alias("rate"))
        .group_by([*keys, "bin"], maintain_order=True)
        .agg(pl.col("rate").mean(), pl.len().alias("parts"))
        .filter(pl.col("parts") == many)
    )
    return whole, keys
