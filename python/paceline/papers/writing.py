"""Writes a reproduction's results into a folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineError
from paceline.messages.argument_names import option
from paceline.papers import artefact, page, tables
from paceline.report import figures, playground_links
from paceline.studies.paper import Paper
from paceline.studies.reproduction import Reproduction

KIND = "reproduction"
"""The kind in the manifest of such a folder."""


def check_paper(out: Path, paper: Paper) -> dict[str, Any] | None:
    """The manifest of a folder with a page of the paper; None if there is no page. Raises PacelineError if it belongs
    to something else, StorageError."""
    path = out / "manifest.json"
    if not path.exists():
        return None
    there = files.read_json(path)
    if there.get("kind") != KIND:
        raise PacelineError(
            f"{out} is the directory of a {there.get('kind', '?')}: use another {option('out')}"
        )
    if there["paper"] != paper.key:
        raise PacelineError(f"{out} holds the page of {there['paper']}: use another {option('out')}")
    return there


def check_whole(
    out: Path, paper: Paper, figure: str | None, runs: int, *, real: bool, full: bool, readings: bool
) -> None:
    """Raises PacelineError if a page, of one figure or all, would replace one with more: other figures, more runs,
    other `readings`, or real-time runs that this one lacks, or has only in short (not `full`). Raises StorageError."""
    there = check_paper(out, paper)
    if there is None:
        return
    held, known = there["figure"], paper.figures()
    lost = []
    if figure not in (None, held) and (held is None or held in known) and known != [figure]:
        lost.append("all figures" if held is None else f"figure {held}")
    if len(there["seeds"]) > runs:
        lost.append(f"{len(there['seeds'])} runs per point")
    if there["real_time"] and not real:
        lost.append("runs in real time")
    elif there["real_time"] and there.get("full") and not full:
        lost.append("runs in real time as long as the paper's")
    if there.get("readings") and not readings:
        lost.append("other readings")
    if lost:
        raise PacelineError(
            f"{out} holds a page with {' and '.join(lost)}, which this one lacks and would replace: "
            f"give this one another {option('out')}"
        )


def write(reproduction: Reproduction, out: Path) -> Path:
    """Writes figures (SVG, PNG), tables (Parquet, CSV), manifest.json and the page, with the playground beside it if
    that was built; returns the page's path. Raises StorageError."""
    for folder in ("figures", "tables"):
        files.make_directory(out / folder)
    tables.write(reproduction, out / "tables")
    pictures = figures.draw_all(reproduction)
    figures.write(pictures, out / "figures")
    files.write_json(
        out / "manifest.json",
        {
            "kind": KIND,
            "paper": reproduction.paper.key,
            "figure": reproduction.figure,
            "full": reproduction.full,
            "reading": reproduction.reading and reproduction.reading.key,
            "readings": list(reproduction.readings),
            "seeds": reproduction.seeds,
            "seconds": round(reproduction.seconds, 1),
            "workers": reproduction.workers,
            "real_time": reproduction.real and asdict(reproduction.real),
            "scenarios": reproduction.scenarios,
            **reproduction.provenance,
        },
    )
    path = out / "index.html"
    files.write_whole(path, page.render(reproduction, pictures, opened=playground_links.put_beside(out)))
    artefact.write(reproduction, out)
    return path
