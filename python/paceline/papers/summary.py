"""The summary of a reproduction: answers to the paper's abstract, readings side by side, causes of differences."""

from __future__ import annotations

from typing import Any

from paceline.papers.readings_file import NAMED
from paceline.report.numbers import plus_minus
from paceline.statistics import Estimate
from paceline.studies import readings
from paceline.studies.measure import Result
from paceline.studies.paper import Abstract, Cause, CauseKind
from paceline.studies.readings import Trial
from paceline.studies.reproduction import Reproduction
from paceline.studies.verdict import ABOUT_SHARE, REFUTED, Outcome

UNKNOWN_CAUSE = "not known"


def ours(result: Result) -> str:
    """Our value with half of its interval, as a page shows it."""
    found, bound = result.ours, result.claim.bound
    if bound is not None and found is not None and found.mean is not None:
        # The expression is a distance from the bound; the page shows the number itself.
        return plus_minus(Estimate(found.n, found.mean + bound, found.sd, found.half_width))
    return plus_minus(found)


NEAR_MISS = "near"
"""Off by a little: within 15 % of the published number."""


def tally(result: Result) -> str:
    """The category of a statement: its outcome, or `NEAR_MISS`."""
    share, outcome = result.off_share, result.verdict.outcome
    near = outcome is Outcome.OFF and share is not None and share <= ABOUT_SHARE
    return NEAR_MISS if near else str(outcome)


TALLIES = (Outcome.AGREES, NEAR_MISS, Outcome.OFF, Outcome.CONTRADICTS, Outcome.UNDECIDED, Outcome.OPEN)


def counts(results: list[Result]) -> dict[str, int]:
    """The number of counted statements by category, in `TALLIES`."""
    found = [tally(r) for r in results if not r.claim.beside]
    return {str(one): found.count(str(one)) for one in TALLIES}


def answers(reproduction: Reproduction) -> list[dict[str, str]]:
    """A row for each finding of the abstract: its statement, our answer, and in a word whether it holds; none for a
    finding that these figures do not cover."""
    by_key = {r.claim.key: r for r in reproduction.results}
    return [
        {"says": one.says, "answer": _filled(one.answer, by_key), "word": _word(one, by_key)}
        for one in reproduction.paper.abstract
        if by_key.keys() >= set(NAMED.findall(one.answer))
    ]


def _filled(text: str, by_key: dict[str, Result]) -> str:
    def said(key: str) -> str:
        result = by_key.get(key)
        if result is None or result.ours is None:
            return "(not run)"
        # ", all 10" is only for tables
        return f"{ours(result).partition(', all')[0]} {result.claim.unit}".strip()

    return NAMED.sub(lambda named: said(named[1]), text)


def _word(finding: Abstract, by_key: dict[str, Result]) -> str:
    outcomes = [by_key[key].verdict.outcome for key in finding.claims if key in by_key]
    stand = outcomes.count(Outcome.AGREES)
    differ = sum(outcome in REFUTED for outcome in outcomes)
    if not stand + differ:
        return "undecided" if Outcome.UNDECIDED in outcomes else "not tested"
    if stand and differ:
        return f"in part: {stand} of {len(outcomes)}"
    if stand and stand < len(outcomes):
        return f"as far as decided: {stand} of {len(outcomes)}"
    return "stands" if stand else "does not stand"


def trials(reproduction: Reproduction, result: Result) -> list[Trial]:
    """The trials of the causes named for a statement that differs; none for one that does not."""
    if result.verdict.outcome not in REFUTED:
        return []
    return readings.trials(result, reproduction.paper.causes, reproduction.results, reproduction.readings)


def cause(found: list[Trial]) -> Cause | None:
    """The first tried cause without which a statement agrees."""
    return next((trial.cause for trial in found if trial.outcome is Outcome.AGREES), None)


def cause_words(reproduction: Reproduction, result: Result) -> str:
    """The cause of a statement that differs, or the causes tried without success."""
    if result.verdict.outcome not in REFUTED:
        return ""
    found = trials(reproduction, result)
    if shown := cause(found):
        return f"Cause ({shown.kind.words}): {shown.says}. Without it the statement agrees."
    tried = [f"{t.cause.says} ({t.outcome} without it)" for t in found if t.outcome is not None]
    words = f"Cause: {UNKNOWN_CAUSE}" + (f"; tried: {'; '.join(tried)}" if tried else "") + "."
    waits = [trial.cause.says for trial in found if trial.outcome is None]
    return words + (f" Not tried on this page: {'; '.join(waits)}." if waits else "")


def causes_line(reproduction: Reproduction) -> str:
    """The causes of all differences, in one line."""
    differ = [r for r in reproduction.counted if r.verdict.outcome in REFUTED]
    if not differ or not reproduction.paper.causes:
        return ""
    tried = [trials(reproduction, result) for result in differ]
    kinds = [one.kind for found in tried if (one := cause(found))]
    parts = [f"{kinds.count(kind)} {kind.words}" for kind in CauseKind if kind in kinds]
    unknown = [found for found in tried if cause(found) is None]
    waiting = sum(any(trial.outcome is None for trial in found) for found in unknown)
    if len(unknown) > waiting:
        parts.append(f"{len(unknown) - waiting} {UNKNOWN_CAUSE}")
    if waiting:
        parts.append(f"{waiting} not tried here (--readings)")
    return f"Causes of the {len(differ)} that differ, each removed and tried: {', '.join(parts)}."


def reading_rows(reproduction: Reproduction) -> list[dict[str, Any]]:
    """A row for each reading, the chosen one first: its description, its totals (None: not run), and the statements
    whose verdicts it changes."""
    taken = reproduction.results
    rows: list[dict[str, Any]] = [{"title": "as taken", "text": "", "counts": counts(taken), "changed": []}]
    outcomes = {r.claim.key: r.verdict.outcome for r in taken}
    for reading in reproduction.paper.readings:
        row: dict[str, Any] = {
            "key": reading.key,
            "title": reading.title,
            "where": reading.where,
            "text": reading.text,
            "taken": reading.taken,
            "counts": None,
        }
        if reading.key in reproduction.readings:
            other = readings.merged(taken, reproduction.readings[reading.key])
            changed = [
                (r.claim.key, str(r.verdict.outcome))
                for r in other
                if not r.claim.beside and r.verdict.outcome is not outcomes[r.claim.key]
            ]
            row |= {"counts": counts(other), "changed": changed}
        rows.append(row)
    return rows
