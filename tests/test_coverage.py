"""How often the intervals that tables print hold what they are of: 10 runs drawn many times from pools of 1600."""

from __future__ import annotations

import functools
import math
import re
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from paceline.interval import (
    LEAST_RUNS,
    Kind,
    half_width,
    interval,
    median_interval,
    median_rank,
    share_interval,
)
from paceline.results.results import Results, RunRecord
from paceline.statistics import estimate, t_quantile
from paceline.sweeps.compare import differences
from paceline.tables.summaries import said
from pools.holding import holds
from pools.make import POOLS, WHERE, endless

RUNS = 10
SAMPLES = 2000
MIN_COVERAGE = 0.90
"""What an interval of 95 % has to hold at least; 0.0067 is the standard error of a coverage of 0.9 here."""

Values = NDArray[np.float64]


@functools.cache
def pool(name: str) -> Values:
    values: Values = pl.read_parquet(WHERE)[name].drop_nulls().to_numpy().astype(np.float64)
    return values


def measure_of(name: str) -> tuple[str, bool]:
    """The measure of a pool, and whether it is of transfers without an end."""
    return POOLS[name][3], endless(name)


def samples(values: Values, runs: int = RUNS) -> Values:
    drawn: Values = np.random.default_rng(20).choice(values, (SAMPLES, runs))
    return drawn


@functools.cache
def coverage(name: str, runs: int = RUNS) -> dict[Kind, tuple[float, float]]:
    """Of each kind of interval how often it is printed, and how often it then holds."""
    (measure, bulk), values = measure_of(name), pool(name)
    middle = float(values.mean()), float(np.median(values))
    printed: Counter[Kind] = Counter()
    held: Counter[Kind] = Counter()
    for sample in samples(values, runs):
        found = interval(measure, sample, bulk)
        printed[found.kind] += 1
        if found.kind is not Kind.NONE:
            held[found.kind] += holds(found, measure, values, middle)
    return {kind: (times / SAMPLES, held[kind] / times) for kind, times in printed.items()}


def binned(values: Values) -> Values:
    """As the histograms before these had it: 32 bins to an octave of microseconds, and their middles."""
    width = 2.0 ** (np.floor(np.log2(values * 1e6)) - 5)
    binned: Values = (np.floor(values * 1e6 / width) + 0.5) * width * 1e-6
    return binned


@functools.cache
def students(name: str) -> float:
    """Coverage of Student's t interval of the mean, whatever the measure, with the bins of percentiles as they were."""
    values = pool(name)
    drawn = samples(binned(values) if measure_of(name)[0].startswith(("rtt_p", "owd_p")) else values)
    half = t_quantile(0.95, RUNS - 1) * drawn.std(axis=1, ddof=1) / RUNS**0.5
    return float((np.abs(drawn.mean(axis=1) - values.mean()) <= half).mean())


def overall(found: dict[Kind, tuple[float, float]]) -> float:
    """How often what is printed holds, of whatever kind it is."""
    return sum(printed * held for printed, held in found.values())


def often(found: dict[Kind, tuple[float, float]]) -> float:
    """The least that a kind holds which a tenth of the samples have. Rarer ones are of unusual samples: where more than
    half of ten runs lost nothing, and a third of all do, too few seem to lose something."""
    return min(held for printed, held in found.values() if printed >= 0.1)


@pytest.mark.parametrize("name", POOLS)
def test_what_is_printed_holds(name: str) -> None:
    found = coverage(name)
    assert Kind.NONE not in found
    assert min(overall(found), often(found)) >= MIN_COVERAGE, found


OTHERS = [
    "goodput",
    "loss",
    "queue of a call",
    "late share, small",
    "web goodput",
    "freezes",
    "feedback",
    "goodput of a call",
    "RTT under loss",
]


@pytest.mark.parametrize("runs", [3, 5, 6, 9, 20, 40])
@pytest.mark.parametrize("name", OTHERS)
def test_it_holds_with_other_numbers_of_runs(name: str, runs: int) -> None:
    found = dict(coverage(name, runs))
    found.pop(Kind.NONE, None)
    assert (Kind.T in found) <= (runs >= LEAST_RUNS)
    assert (Kind.MEDIAN in found) <= (runs >= 6)
    if sum(printed for printed, _ in found.values()) > 0.1:
        assert overall(found) >= MIN_COVERAGE * sum(printed for printed, _ in found.values())
        assert often(found) >= MIN_COVERAGE, found


SKEWED: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Values], float]] = {
    "lognormal, skewness 4": (lambda draw, shape: draw.lognormal(-0.32, 0.8, shape), 1.0),
    "gamma turned round, skewness -2.4": (lambda draw, shape: 1.0 - draw.gamma(0.7, 1.0, shape), 0.3),
}


@pytest.mark.parametrize("name", SKEWED)
def test_the_interval_of_the_mean_holds_where_students_does_not(name: str) -> None:
    """Of ten values as skewed as what there are intervals of the mean of; and the same test fails Student's t."""
    draw, mean = SKEWED[name]
    drawn = draw(np.random.default_rng(20), (SAMPLES, RUNS))

    def held(half: Callable[[Values], float]) -> float:
        return float(np.mean([abs(sample.mean() - mean) <= half(sample) for sample in drawn]))

    assert held(half_width) >= MIN_COVERAGE
    assert held(lambda sample: estimate(sample).half_width or 0.0) < MIN_COVERAGE


def test_of_values_without_skew_it_is_students() -> None:
    for n in (10, 40):
        x = np.concatenate([np.arange(n), -np.arange(n)]).astype(np.float64)
        assert half_width(x) == pytest.approx(estimate(x).half_width)
    assert half_width(np.ones(10)) == 0.0
    wide = np.append(np.zeros(9), 1e200)
    assert 1e200 > half_width(wide) > (estimate(wide).half_width or 0.0)


def test_bounds_of_samples_that_are_alike_hold_whatever_the_share() -> None:
    """Of runs of which a share differs they are printed where few of the sample do. Bounds of 95 % would not hold: of
    five runs of which 53 % differ those that are printed held in 85 %."""

    def worst(confidence: float) -> float:
        held = []
        for n in range(2, 41):
            printed = [k for k in range(n + 1) if 5 * k <= n]
            bounds = [share_interval(k, n, confidence) for k in printed]
            for share in np.arange(0.005, 1, 0.005):
                chances = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in printed]
                right = [c for c, (low, high) in zip(chances, bounds, strict=True) if low <= share <= high]
                if sum(chances) >= 0.1:
                    held.append(sum(right) / sum(chances))
        return min(held)

    assert worst(0.99) >= 0.94
    assert worst(0.95) < 0.85
    found = interval("timeouts", [0, 0, 0, 0, 1])
    assert (found.others_low, found.others_high) == share_interval(1, 5, 0.99)


def test_students_interval_would_not_hold() -> None:
    """Else the pools would show nothing."""
    failing = {name for name in POOLS if students(name) < MIN_COVERAGE}
    assert failing > {
        "late share, small",
        "feedback",
        "goodput of a call",
        "RTT of a film alone",
        "web goodput",
        "freezes",
        "frozen",
        "widest gap",
    }
    assert failing > {"delay 99 %", "call's RTT 50 %", "file's loss"}
    assert not failing & {"goodput", "loss", "queue", "RTT", "fill time", "completion time"}


def test_skewness_of_the_values_would_choose_the_wrong_samples() -> None:
    """Why the measure decides: among samples that look normal, intervals hold less often, not more."""
    values = pool("web goodput")
    drawn = samples(values)
    centred = drawn - drawn.mean(axis=1, keepdims=True)
    skew = (centred**3).mean(axis=1) / (centred**2).mean(axis=1) ** 1.5
    normal = [estimate(sample) for sample in drawn[np.abs(skew) < 0.8]]
    held = np.mean([(e.low or 0) <= values.mean() <= (e.high or 0) for e in normal])
    assert len(normal) > 0.1 * SAMPLES
    assert held < students("web goodput") - 0.05


@pytest.mark.parametrize("name", POOLS)
def test_nothing_reads_plus_or_minus_zero_or_leaves_its_range(name: str) -> None:
    measure, bulk = measure_of(name)
    for sample in samples(pool(name))[:200]:
        found = interval(measure, sample, bulk)
        text = said(measure, found)
        assert not re.search(r"± 0(\.0*)?( |$)", text), text
        if found.kind is Kind.T and POOLS[name][3].endswith(("_share", "_rate", "utilisation")):
            assert found.low is not None
            assert found.high is not None
            assert 0 <= found.low < found.high <= 1


@pytest.mark.parametrize("n", [2, 10, 25])
def test_bounds_of_shares_of_runs_are_exact(n: int) -> None:
    """Clopper and Pearson's: whatever the share, at least 95 %."""
    bounds = [share_interval(k, n) for k in range(n + 1)]
    for percent in range(1, 100):
        share = percent / 100
        chances = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
        held = sum(p for p, (low, high) in zip(chances, bounds, strict=True) if low <= share <= high)
        assert held >= 0.95 - 1e-9
    assert bounds[0][0] == 0.0
    assert bounds[0][1] == pytest.approx(1 - 0.025 ** (1 / n))


@pytest.mark.parametrize("n", range(1, 61))
def test_the_median_has_the_narrowest_ranks_that_hold(n: int) -> None:
    """Of distinct values, whatever their distribution: at least 95 %, and one rank further in less."""

    def held(rank: int) -> float:
        """The chance that the median lies between the rank-th value and the one as far from the other end."""
        return 1 - 2 * sum(math.comb(n, k) for k in range(rank)) * 0.5**n

    found = median_interval(np.arange(1.0, n + 1))
    assert (found is None) == (held(1) < 0.95) == (n < 6)
    if found is not None:
        rank = round(found[0])
        assert found == (rank, n + 1 - rank)
        assert held(rank) >= 0.95 > held(rank + 1)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 1 - 1e-9])
def test_ranks_of_the_median_are_those_of_whole_numbers(confidence: float) -> None:
    tail = Fraction((1 - confidence) / 2)
    for n in [*range(1, 1001), 1033, 1100, 5000]:
        ways, fewer, rank = 1, 1, 0
        while fewer * tail.denominator <= tail.numerator << n:
            rank += 1
            ways = ways * (n - rank + 1) // rank
            fewer += ways
        assert median_rank(n, confidence) == rank, n


def test_the_median_of_many_runs_is_quick() -> None:
    """Of 1,033 runs and more the chances are beyond a float's exponent; of a million there are half as many ranks."""
    median_rank.cache_clear()
    began = time.process_time()
    for n in range(10_000, 10_100):
        median_rank(n)
    median_rank(1_000_000)
    assert time.process_time() - began < 0.1
    found = median_interval(np.arange(1.0, 1101))
    assert found == (518, 583)


def test_the_page_says_what_is_measured_here() -> None:
    text = (Path(__file__).parent.parent / "docs" / "measures.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d.*) \|$", text[text.index("| ten runs of") :], re.MULTILINE))
    assert {name: line(name) for name in POOLS} == {name: rows.get(name) for name in POOLS}


def line(name: str) -> str:
    """A row of the page's table, without the name."""
    kinds = {Kind.T: "mean ± half", Kind.RUNS: "k of n runs", Kind.MEDIAN: "median"}
    found = sorted(
        ((p, kinds[k], held) for k, (p, held) in coverage(name).items() if p >= 0.02), reverse=True
    )
    said = "; ".join(f"{what} {100 * held:.0f} %" for _, what, held in found)
    return f"{100 * students(name):.0f} % | {said}"


def test_comparisons_under_the_null_are_shown_in_five_per_cent_of_all_at_most() -> None:
    """Two alternatives that differ in nothing but chance, paired by seeds: Holm keeps any one from being shown."""
    names = [
        "goodput",
        "loss",
        "queue",
        "late share, middle",
        "late share, large",
        "web goodput",
        "completion time",
    ]
    values = np.stack([pool(name)[:1500] for name in names], axis=1)
    draw = np.random.default_rng(3)
    families = 300
    shown = 0
    for _ in range(families):
        records = [
            RunRecord(seed, {"flows": [{"flow": "a", "instance": 0, **row}]}, labels={"x": side})
            for side in (1, 2)
            for seed, row in enumerate(
                {f"m{k}": v for k, v in enumerate(found)} for found in values[draw.integers(0, 1500, RUNS)]
            )
        ]
        table = differences(Results(records, {"vary": {"x": [1, 2]}}), [f"m{k}" for k in range(len(names))])
        shown += bool(table["real"].any())
    # Two standard errors over the 5 % that Holm promises.
    assert shown / families <= 0.05 + 2 * (0.05 * 0.95 / families) ** 0.5
