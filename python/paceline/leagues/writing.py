"""Everything that is written about a league, in one folder."""

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
"""What the manifest of such a folder says."""


def begin(out: Path) -> None:
    """Writes what the folder is of, before anything runs: one that was stopped is known by it. Raises StorageError."""
    files.write_json(out / "manifest.json", {"kind": KIND} | files.provenance())


def write(league: League, out: Path) -> Path:
    """Writes tables, figures, the scenarios of the worst days, manifest.json and the page, with the playground beside
    it where that was built; returns the page's path. Raises StorageError."""
    for folder in ("figures", "worst"):
        files.make_directory(out / folder)
        # of another league that was there
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
    """What the league is of."""
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
    """Writes each scheme's worst day as a scenario; the files by scheme."""
    found: dict[str, str] = {}
    for label, day in league.worst.items():
        path = folder / f"{_free(label, found)}.toml"
        game = day.game
        head = (
            f"# The worst day of {label} in a league: {game.of.title}, round {game.draw.number}. Its score is "
            f"{day.behind:.2f} behind\n# that of {day.ahead.label}, and with other seeds {_mean(day)}.\n"
        )
        # laid out as a file, which a drawn scenario is not
        with warnings.catch_warnings():
            # what is to be warned of was said before they played
            warnings.simplefilter("ignore", PacelineWarning)
            whole = load(game.point.scenario.to_toml(), None, league.schemes)
        files.write_whole(path, head + text_from(whole, folder))
        found[label] = str(path)
    return found


def _free(label: str, taken: dict[str, str]) -> str:
    """A name for the file of a scheme that no other has, also where capitals make no difference."""
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
