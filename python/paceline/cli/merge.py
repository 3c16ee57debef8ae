"""`paceline merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.options import AsJson
from paceline.cli.sweep import show_sweep


def merge(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="Output folders of `paceline sweep --shard I/N`.", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the whole sweep.", show_default=False)
    ],
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: delete the finished runs in --out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Merge the shards of a sweep that several machines ran.

    The shards must have the same scenario, values, seeds and version of Paceline; a missing run is named. The
    shards stay as they are. The result equals the sweep of a single machine.

    \b
    Examples:
      paceline sweep examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas \\
          --runs 2 --shard 1/2 --out out/first
      paceline sweep examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas \\
          --runs 2 --shard 2/2 --out out/second
      paceline merge out/first out/second --out out/whole
    """
    from paceline.sweeps.merge import merge as merge_shards

    show_sweep(merge_shards(directories, out, fresh=fresh), out, as_json=as_json)
