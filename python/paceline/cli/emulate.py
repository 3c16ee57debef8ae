"""`paceline emulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from paceline import realtime
from paceline.cli import layout, show
from paceline.cli.options import File, Record, Seed, Set, kinds
from paceline.cli.progress import progress
from paceline.cli.run import document, headline
from paceline.errors import PacelineError
from paceline.scenario import assignments


def emulate(
    file: File,
    seed: Seed = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, one after the other.")] = 1,
    set_: Set = None,
    record: Record = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write tables, recordings and manifest there.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of tables.")
    ] = False,
) -> None:
    """Run a scenario in real time: its flows on real sockets, over an emulated path made of its links.

    Each end is a network namespace of its own. Flows are the simulator's senders and receivers over UDP, or with
    kernel = true the kernel's TCP. What is printed is what `paceline run` prints of the same file.

    \b
    Examples:
      paceline emulate examples/campaigns/one-flow.toml --set "duration=5 s"
      paceline emulate examples/campaigns/one-flow.toml --set "duration=5 s" \\
          --set flow.media.kernel=true --record rate,kernel --out out/real
    """
    if record and out is None:
        raise PacelineError("--record without --out would throw the recording away: add --out DIR")
    with progress(file.stem, "s") as show_progress:
        results = realtime.run(
            file,
            seed=seed,
            runs=runs,
            set=assignments(set_ or []),
            record=kinds(record),
            out=out,
            progress=show_progress,
        )
    if as_json:
        print(json.dumps(document(results), indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = layout.stdout()
    layout.say(console, headline(results) + "\n\n")
    layout.show(console, show.tables(results))
    if out:
        layout.say(console, f"\nWritten to {out}.")
