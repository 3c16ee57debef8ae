"""The judge of papers against what is true: the table of docs/measures.md, and a part of it tried again."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from judging import CASES, RUNS, Case, tried, wrong
from paceline.studies.verdict import Outcome

TRIALS = 300
MAX_WRONG = 0.05
PAGE = Path(__file__).resolve().parent.parent / "docs" / "measures.md"


def beyond(share: float, trials: int) -> float:
    """What a share of so many trials may lie above, or below, by chance: once in a thousand times."""
    return 3.3 * math.sqrt(max(share * (1 - share), 1 / trials) / trials)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_at_most_one_verdict_in_twenty_is_wrong(case: Case) -> None:
    before = None
    for runs in (5, 10, 20, 40):
        found = tried(case, runs, TRIALS, seed=2)
        assert wrong(case, found) <= MAX_WRONG + beyond(MAX_WRONG, TRIALS), (runs, found)
        if Outcome.AGREES not in case.true:
            if before is not None:
                assert before <= found[Outcome.AGREES] + 0.02, (
                    "means that are not equal agree more often by fewer runs"
                )
            before = found[Outcome.AGREES]


def test_the_judge_sees_what_is_there() -> None:
    """Power: a judge that never said anything would err in no case."""
    for name, runs, outcome, least in (
        ("number of ten runs, the same mean", 40, Outcome.AGREES, 0.6),
        ("means 5 of the paper's standard errors apart", 20, Outcome.OFF, 0.9),
        ("exponential, the same mean", 100, Outcome.AGREES, 0.55),
        ("“about”, ours off by 20 %", 40, Outcome.OFF, 0.8),
        ("“the same” within 15 %, the ratio is 1", 20, Outcome.AGREES, 0.7),
        ("order, half a standard deviation", 40, Outcome.AGREES, 0.8),
        ("trend, the other way", 40, Outcome.CONTRADICTS, 0.8),
    ):
        found = tried(CASES[name], runs, TRIALS, seed=3)
        assert found[outcome] >= least, (name, found)


@pytest.mark.parametrize("name", [name for name in CASES if "the other way" in name])
def test_what_contradicts_is_never_called_off_by_a_little(name: str) -> None:
    for runs in (5, 10, 40):
        assert tried(CASES[name], runs, TRIALS)[Outcome.OFF] == 0


def rows() -> dict[str, list[tuple[float, float]]]:
    """The page's table: of each case, at each number of runs, the shares that agree and that are refuted."""
    text = PAGE.read_text()
    table = text[text.index("| what is true |") :]
    found = {}
    for name, cells in re.findall(r"^\| ([^|]+) \| ((?:\d+ · \d+ \| ?)+)$", table, flags=re.MULTILINE):
        pairs = re.findall(r"(\d+) · (\d+)", cells)
        found[name] = [(int(agree) / 100, int(refuted) / 100) for agree, refuted in pairs]
    return found


def test_the_page_has_every_case_and_no_judge_that_errs() -> None:
    there = rows()
    assert list(there) == list(CASES)
    for name, cells in there.items():
        assert len(cells) == len(RUNS), name
        true = CASES[name].true
        for agree, refuted in cells:
            # three standard errors apart: the paper's own runs bring as much together, 11 %
            assert (Outcome.AGREES in true) or not true or agree <= 0.11 + beyond(0.11, 2000), name
            assert refuted <= MAX_WRONG + beyond(MAX_WRONG, 2000) or set(true) & {
                Outcome.OFF,
                Outcome.CONTRADICTS,
            }, name


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.steady], ids=lambda case: case.name)
def test_the_page_says_what_the_judge_does(case: Case) -> None:
    for (agree, refuted), runs in zip(rows()[case.name], RUNS, strict=True):
        if runs > 100:
            continue
        found = tried(case, runs, TRIALS, seed=4)
        for share, said in (
            (found[Outcome.AGREES], agree),
            (found[Outcome.OFF] + found[Outcome.CONTRADICTS], refuted),
        ):
            assert abs(share - said) <= 0.006 + beyond(said, TRIALS), (runs, found)
