"""Everything that is written about a league, in one folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from paceline import files
from paceline.leagues import clouds, page
from paceline.leagues.running import League
from paceline.reproduce import figures

KIND = "league"
"""What the manifest of such a folder says."""


def begin(out: Path) -> None:
    """Writes what the folder is of, before anything runs: one that was stopped is known by it. Raises StorageError."""
    files.write_json(out / "manifest.json", {"kind": KIND} | files.provenance())


def write(league: League, out: Path) -> Path:
    """Writes tables, figures, the scenarios of the worst days, manifest.json and the page; returns the page's path.
    Raises StorageError."""
    for folder in ("figures", "worst"):
        files.make_directory(out / folder)
    files.write_parquet(out / "runs.parquet", league.runs)
    files.write_csv(out / "runs.csv", league.runs)
    files.write_csv(out / "standings.csv", league.table)
    if league.gap is not None:
        files.write_csv(out / "gap.csv", league.gap)
    pictures = clouds.draw_all(league)
    figures.write(pictures, out / "figures")
    worst = _write_worst(league, out / "worst")
    files.write_json(out / "manifest.json", manifest(league) | files.provenance())
    path = out / "index.html"
    files.write_whole(path, page.render(league, pictures, worst))
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
    found = {}
    for label, day in league.worst.items():
        path = folder / f"{re.sub(r'[^A-Za-z0-9.+-]+', '-', label)}.toml"
        game = day.game
        head = (
            f"# The worst day of {label} in a league: {game.of.title}, round {game.draw.number}. Its score is "
            f"{day.behind:.2f} behind\n# that of {day.ahead.entrant.label}, and with other seeds {_mean(day)}.\n"
        )
        text = game.point.scenario.to_toml().replace("seed = 1\n", f"seed = {game.seed}\n", 1)
        files.write_whole(path, head + text)
        found[label] = str(path)
    return found


def _mean(day: Any) -> str:
    mean = day.again.estimate.mean
    return "nothing is known" if mean is None else f"{mean:.2f}"
