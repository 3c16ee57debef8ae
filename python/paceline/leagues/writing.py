"""Writes a league's results into a folder."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineWarning
from paceline.files import table_files
from paceline.leagues import clouds, page
from paceline.leagues.running import League
from paceline.report import figures, playground_links
from paceline.scenarios.rebase import text_from
from paceline.scenarios.scenario import load

KIND = "league"
"""The kind in the manifest of such a folder."""


def begin(out: Path) -> None:
    """Writes the folder's manifest before anything runs, so that a stopped one is recognised. Raises StorageError."""
    files.write_json(out / "manifest.json", {"kind": KIND} | files.provenance())


def write(league: League, out: Path) -> Path:
    """Writes tables, figures, the scenarios of the worst days, manifest.json and the page, with the playground beside
    it if that was built; returns the page's path. Raises StorageError."""
    for folder in ("figures", "worst"):
        files.make_directory(out / folder)
        # files of an earlier league
        for old in (out / folder).iterdir():
            if old.suffix in (".toml", ".svg", ".png"):
                files.remove(old)
    files.remove(out / "gap.csv")
    table_files.write_parquet(out / "runs.parquet", league.runs)
    table_files.write_csv(out / "runs.csv", league.runs)
    table_files.write_csv(out / "standings.csv", league.table)
    if league.gap is not None:
        table_files.write_csv(out / "gap.csv", league.gap)
    pictures = clouds.draw_all(league)
    figures.write(pictures, out / "figures")
    worst = _write_worst(league, out / "worst")
    files.write_json(out / "manifest.json", manifest(league) | files.provenance())
    path = out / "index.html"
    files.write_whole(path, page.render(league, pictures, worst, opened=playground_links.put_beside(out)))
    return path


def manifest(league: League) -> dict[str, Any]:
    """The manifest of the league."""
    return {
        "kind": KIND,
        "schemes": [one.name for one in league.entrants],
        "classes": [of.source for of in league.classes],
        "rounds": league.rounds,
        "seed": league.seed,
        "delay_weight": league.weight,
        "seconds": round(league.seconds, 1),
    }


def _write_worst(league: League, folder: Path) -> dict[str, str]:
    """Writes each scheme's worst day as a scenario; returns the files by scheme."""
    found: dict[str, str] = {}
    for label, day in league.worst.items():
        path = folder / f"{_free(label, found)}.toml"
        game = day.game
        head = (
            f"# The worst day of {label} in a league: {game.of.title}, round {game.draw.number}. Its score is "
            f"{day.behind:.2f} behind\n# that of {day.ahead.label}, and with other seeds {_mean(day)}.\n"
        )
        # a drawn scenario has no file layout, so print it as resolved TOML
        with warnings.catch_warnings():
            # warnings appeared before the games
            warnings.simplefilter("ignore", PacelineWarning)
            whole = load(game.point.scenario.to_toml(), None, league.schemes)
        files.write_whole(path, head + text_from(whole, folder))
        found[label] = str(path)
    return found


def _free(label: str, taken: dict[str, str]) -> str:
    """A file name for a scheme that no other has, also if the file system ignores case."""
    plain = re.sub(r"[^A-Za-z0-9.+-]+", "-", label)
    there = {Path(path).stem.lower() for path in taken.values()}
    name, n = plain, 1
    while name.lower() in there:
        n += 1
        name = f"{plain}-{n}"
    return name


def _mean(day: Any) -> str:
    mean = day.again.estimate.mean
    return "nothing is known" if mean is None else f"{mean:.2f}"
