"""A simulation of the judge of papers: how often each verdict comes out where the truth is known.

    python tests/judging.py          the table of docs/measures.md

A trial draws the paper's runs, if its number has any, and ours, and asks `judge`. Nothing is simulated but numbers.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.statistics.sample_intervals import Sample
from paceline.studies.verdict import Kind, Outcome, Published, judge

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Values of so many runs, of mean 0 and standard deviation 1."""

RUNS = (5, 10, 20, 40, 100, 1000)


def gaussian(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    return random.normal(0, 1, n)


def exponential(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Skewness 2."""
    return random.exponential(1, n) - 1


def lognormal(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Skewness 6."""
    mean, sd = math.exp(0.5), math.exp(0.5) * math.sqrt(math.e - 1)
    return (random.lognormal(0, 1, n) - mean) / sd


def rare(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """One run in ten has something, of exponential size."""
    share = 0.1
    values = (random.random(n) < share) * random.exponential(1, n)
    return (values - share) / math.sqrt(2 * share - share**2)


def apart(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """One run in ten lies far from the others, which are alike."""
    values = random.normal(0, 0.05, n) + (random.random(n) < 0.1) - 0.1
    return values / math.sqrt(0.05**2 + 0.09)


def event(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """One run in ten has it all."""
    return one_in_ten(random, n) / 0.3 - 1 / 3


def one_in_ten(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """1 in one run of ten, else 0."""
    return (random.random(n) < 0.1).astype(np.float64)


@dataclass(frozen=True)
class Case:
    """A kind of statement, and what is true of it."""

    name: str
    published: Callable[[np.random.Generator], Published]
    """What a paper prints, of runs of its own if it made some."""
    ours: Draw
    """What our runs are."""
    true: tuple[Outcome, ...]
    """What a judge may say but `UNDECIDED`: nothing else is right."""
    steady: bool = True
    minimum: float = -np.inf
    maximum: float = np.inf
    yes_no: bool = False


def shifted(draw: Draw, mean: float, sd: float) -> Draw:
    return lambda random, n: mean + sd * draw(random, n)


def printed(
    draw: Draw, mean: float, sd: float, runs: int, *, shown: bool = False
) -> Callable[..., Published]:
    """The mean of some runs, printed to a fiftieth of their standard deviation."""

    def publish(random: np.random.Generator) -> Published:
        values = mean + sd * draw(random, runs)
        digit = sd / 50
        value = round(float(values.mean()) / digit) * digit
        scatter = float(values.std(ddof=1)) if shown else None
        return Published(Kind.PRINTED, value, digit, runs=runs, sd=scatter)

    return publish


def said(kind: Kind, value: float | None = None, margin: float | None = None) -> Callable[..., Published]:
    return lambda _: Published(kind, value, margin=margin, sign=None if value is not None else 1)


PAPER_RUNS = 10
ALIKE = (Outcome.AGREES,)
OTHER = (Outcome.OFF,)


def _numbers() -> list[Case]:
    found = [
        Case(
            "number of ten runs, the same mean", printed(gaussian, 10, 1, 10), shifted(gaussian, 10, 1), ALIKE
        ),
        Case(
            "the same, the paper shows its scatter",
            printed(gaussian, 10, 1, 10, shown=True),
            shifted(gaussian, 10, 1),
            ALIKE,
        ),
    ]
    for errors in (3, 5):
        # standard errors of the paper's mean
        away = errors / np.sqrt(PAPER_RUNS)
        name = f"means {errors} of the paper's standard errors apart"
        found.append(Case(name, printed(gaussian, 10, 1, 10), shifted(gaussian, 10 + away, 1), OTHER))
    for name, draw in (
        ("exponential", exponential),
        ("lognormal, skewness 6", lognormal),
        ("something in one run of ten", rare),
        ("one run of ten far from the others", apart),
    ):
        found.append(
            Case(
                f"{name}, the same mean", printed(draw, 10, 1, 10), shifted(draw, 10, 1), ALIKE, steady=False
            )
        )
    for name, draw in (("exponential", exponential), ("lognormal", lognormal)):
        exact, ours = said(Kind.WITHIN, 10.0, 1e-6), shifted(draw, 10, 1)
        found.append(
            Case(f"{name}, the true mean to a millionth", exact, ours, ALIKE, steady=False, minimum=0.0)
        )
        shown = printed(draw, 10, 1, 10, shown=True)
        found.append(Case(f"{name}, the paper shows its scatter", shown, ours, ALIKE, steady=False))
    found.append(
        Case(
            "exponential, of a measure thought steady",
            printed(exponential, 10, 1, 10),
            shifted(exponential, 10, 1),
            ALIKE,
        )
    )
    for name, published, true in (
        ("share: all or nothing, in one run of ten", printed(event, 0.1, 0.3, 10), ALIKE),
        ("share: 90 % in the paper, 0 or 1 in one run of ten here", printed(event, 0.9, 0.1, 10), OTHER),
    ):
        found.append(
            Case(name, published, one_in_ten, true, steady=False, minimum=0.0, maximum=1.0, yes_no=True)
        )
    return found


def _others() -> list[Case]:
    found = []
    for off, true in ((0, ALIKE), (10, ALIKE), (15, (*ALIKE, *OTHER)), (20, OTHER), (50, OTHER)):
        ours = shifted(gaussian, 10 * (1 + off / 100), 1)
        found.append(Case(f"“about”, ours off by {off} %", said(Kind.ABOUT, 10.0), ours, true))
    for ratio, true in ((1.0, ALIKE), (1.15, (*ALIKE, *OTHER)), (1.3, OTHER)):
        name = f"“the same” within 15 %, the ratio is {ratio:g}"
        found.append(Case(name, said(Kind.SAME, 1.0, 0.15), shifted(gaussian, ratio, 0.2), true))
    for kind, name in ((Kind.ORDERING, "order"), (Kind.TREND, "trend")):
        for mean, words, outcomes in (
            (0.0, "there is none", ()),
            (0.5, "half a standard deviation", ALIKE),
            (-0.5, "the other way", (Outcome.CONTRADICTS,)),
            (-2.0, "the other way, two standard deviations", (Outcome.CONTRADICTS,)),
        ):
            ours = shifted(gaussian, mean, 1)
            found.append(Case(f"{name}, {words}", said(kind), ours, outcomes))
    found.append(
        Case("order of skewed differences, there is none", said(Kind.ORDERING), exponential, (), steady=False)
    )
    found.append(Case("order of rare events, there is none", said(Kind.ORDERING), rare, (), steady=False))
    return found


CASES = {case.name: case for case in (*_numbers(), *_others())}


def tried(case: Case, runs: int, trials: int, seed: int = 1) -> dict[Outcome, float]:
    """The share of the trials in which each verdict came out."""
    random = np.random.default_rng([seed, runs])
    found: Counter[Outcome] = Counter()
    for _ in range(trials):
        published = case.published(random)
        values = tuple(case.ours(random, runs).tolist())
        sample = Sample(values, case.steady, case.minimum, case.maximum, yes_no=case.yes_no)
        found[judge(published, sample).outcome] += 1
    return {outcome: found[outcome] / trials for outcome in Outcome}


def wrong(case: Case, found: dict[Outcome, float]) -> float:
    """The share of the verdicts that are not true."""
    return sum(share for outcome, share in found.items() if outcome not in (*case.true, Outcome.UNDECIDED))


def row(case: Case, trials: int) -> str:
    """A row of the table: per cent that agree, and that are off or contradict, at each number of runs."""
    cells = []
    for runs in RUNS:
        found = tried(case, runs, max(200, trials // 10) if runs == 1000 and not case.steady else trials)
        refuted = found[Outcome.OFF] + found[Outcome.CONTRADICTS]
        cells.append(f"{100 * found[Outcome.AGREES]:.0f} · {100 * refuted:.0f}")
    return f"| {case.name} | {' | '.join(cells)} |"


def main() -> None:
    """Prints the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print("| what is true | " + " | ".join(map(str, RUNS)) + " |")
    print("|---|" + "---:|" * len(RUNS))
    for case in CASES.values():
        print(row(case, trials), flush=True)


if __name__ == "__main__":
    main()
