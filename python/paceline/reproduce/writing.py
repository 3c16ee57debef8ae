"""Everything that is written about a reproduction, in one folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from paceline import files
from paceline.reproduce import figures, page, tables
from paceline.reproduce.reproduction import Reproduction


def write(reproduction: Reproduction, out: Path) -> Path:
    """Writes figures (SVG, PNG), tables (Parquet, CSV), manifest.json and the page; returns the page's path.
    Raises StorageError."""
    for folder in ("figures", "tables"):
        files.make_directory(out / folder)
    tables.write(reproduction, out / "tables")
    figures.write(reproduction, out / "figures")
    files.write_json(
        out / "manifest.json",
        {
            "kind": "reproduction",
            "paper": reproduction.paper.key,
            "figure": reproduction.figure,
            "seeds": reproduction.seeds,
            "seconds": round(reproduction.seconds, 1),
            "workers": reproduction.workers,
            "real_time": reproduction.real and asdict(reproduction.real),
            "scenarios": reproduction.scenarios,
            **reproduction.provenance,
        },
    )
    path = out / "index.html"
    files.write_whole(path, page.render(reproduction))
    return path
