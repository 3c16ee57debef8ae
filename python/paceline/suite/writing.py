"""Writes a suite's results into a folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from paceline import files
from paceline.papers import tables
from paceline.report import figures, playground_links
from paceline.suite import junit, page, report
from paceline.suite.running import Result
from paceline.suite.suite import Subject, Suite
from paceline.suite.verdict import Threshold

KIND = "suite"
"""The kind in the manifest of such a folder."""


def begin(suite: Suite, subjects: Sequence[Subject], runs: int, out: Path) -> None:
    """Writes the folder's manifest before anything runs, so that a stopped one is recognised. Raises StorageError."""
    files.write_json(out / "manifest.json", _manifest(suite, subjects, runs) | files.provenance())


def _manifest(suite: Suite, subjects: Sequence[Subject], runs: int) -> dict[str, Any]:
    return {
        "kind": KIND,
        "suite": suite.key,
        str(suite.kind): [subject.text for subject in subjects],
        "cases": [case.key for case in suite.cases],
        "runs": runs,
    }


def write(result: Result, out: Path) -> Path:
    """Writes figures, tables, report.md, junit.xml, verdicts.json, manifest.json and the page, with the playground
    beside it if that was built; returns the page's path. Raises StorageError."""
    for folder in ("figures", "tables"):
        files.make_directory(out / folder)
    tables.write(result.made, out / "tables")
    pictures = figures.draw_all(result.made)
    figures.write(pictures, out / "figures")
    files.write_json(out / "verdicts.json", verdicts(result))
    files.write_whole(out / "report.md", report.markdown(result))
    files.write_whole(out / "junit.xml", junit.xml(result))
    files.write_json(
        out / "manifest.json",
        _manifest(result.suite, result.subjects, result.runs)
        | {"seconds": round(result.seconds, 1), "scenarios": result.made.scenarios}
        | result.made.provenance,
    )
    path = out / "index.html"
    files.write_whole(path, page.render(result, pictures, opened=playground_links.put_beside(out)))
    return path


def verdicts(result: Result) -> dict[str, Any]:
    """The verdicts as JSON."""
    return {
        "suite": result.suite.key,
        "source": result.suite.source,
        "over": result.over,
        "runs": result.runs,
        "seeds": result.made.seeds,
        "counts": {str(outcome): count for outcome, count in result.counts().items()},
        "cases": [
            {
                "case": answer.case.key,
                "section": answer.case.section,
                str(result.suite.kind): answer.subject.text,
                "verdict": str(answer.outcome),
                "cannot_run": answer.refused.reason if answer.refused and answer.refused.applies else None,
                "not_applicable": answer.refused.reason
                if answer.refused and not answer.refused.applies
                else None,
                "command": answer.command,
                "checks": [
                    {
                        "check": checked.check.key,
                        "says": checked.check.says,
                        "verdict": str(checked.verdict.outcome),
                        "because": checked.verdict.because,
                        "mean": checked.ours and checked.ours.mean,
                        "low": checked.ours and checked.ours.low,
                        "high": checked.ours and checked.ours.high,
                        "runs": [value if math.isfinite(value) else None for value in checked.each],
                        "unit": checked.check.unit,
                        "least": _bound(checked.check.threshold, "least"),
                        "most": _bound(checked.check.threshold, "most"),
                        "rule": str(checked.check.threshold.rule) if checked.check.threshold else None,
                        "source": checked.check.source or None,
                    }
                    for checked in answer.checks
                ],
            }
            for answer in result.answers
        ],
    }


def _bound(threshold: Threshold | None, end: Literal["least", "most"]) -> float | None:
    value = getattr(threshold, end, math.inf)
    return value if math.isfinite(value) else None
