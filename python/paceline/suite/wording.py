"""The words for a suite's results in tables and reports."""

from __future__ import annotations

from paceline.report.numbers import plus_minus
from paceline.suite.running import Answer, Checked, Result
from paceline.suite.verdict import Outcome, Rule

VERBS = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "fail",
    Outcome.UNDECIDED: "undecided",
    Outcome.NUMBER: "not judged",
}
"""The verbs for several cases."""


def ours(checked: Checked) -> str:
    """The measurement, with its interval and unit."""
    value, unit = plus_minus(checked.ours), checked.check.unit
    if not unit or checked.ours is None or checked.ours.mean is None:
        return value
    number, comma, same = value.partition(",")
    return f"{number} {unit}{comma}{same}"


def required(checked: Checked) -> str:
    """The threshold, with its unit and rule; empty without one."""
    threshold = checked.check.threshold
    if threshold is None:
        return ""
    every = ", every run" if threshold.rule is Rule.WORST else ""
    return f"{threshold.said} {checked.check.unit}".rstrip() + every


def sourced(source: str) -> str:
    """The source of a threshold, as a sentence begins: "Ours: ...", or "From RFC ..."."""
    if not source:
        return ""
    return f"Ours{source.removeprefix('ours')}" if source.startswith("ours") else f"From {source}"


def summed(result: Result) -> str:
    """The number of cases by outcome: "21 of 24 cases pass, 1 fails, 2 are undecided"."""
    counts, of = result.counts(), len(result.answers)
    passes = "passes" if 1 in (of, counts[Outcome.PASS]) else "pass"
    said = [f"{counts[Outcome.PASS]} of {of} case{'s' if of != 1 else ''} {passes}"]
    if counts[Outcome.FAIL]:
        said.append(f"{counts[Outcome.FAIL]} fail{'s' if counts[Outcome.FAIL] == 1 else ''}")
    if counts[Outcome.UNDECIDED]:
        said.append(
            f"{counts[Outcome.UNDECIDED]} {'is' if counts[Outcome.UNDECIDED] == 1 else 'are'} undecided"
        )
    if counts[Outcome.NUMBER]:
        judged = "has" if counts[Outcome.NUMBER] == 1 else "have"
        said.append(f"{counts[Outcome.NUMBER]} {judged} numbers alone")
    return ", ".join(said)


def why(answer: Answer) -> list[str]:
    """A sentence for each check that does not pass."""
    if answer.refused:
        return [str(answer.refused)]
    bad = (Outcome.FAIL, Outcome.UNDECIDED)
    return [
        f"{checked.check.label}: {ours(checked)}, {checked.verdict.because}"
        for checked in answer.checks
        if checked.verdict.outcome in bad
    ]
