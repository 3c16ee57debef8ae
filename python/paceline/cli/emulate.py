"""`paceline emulate`."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline import realtime
from paceline.cli.options import AsJson, File, Out, Record, RecordEvery, Seed, Set, recorded
from paceline.cli.progress import progress
from paceline.cli.run import say
from paceline.results import ALL_SERIES
from paceline.scenario import assignments


def emulate(
    file: File,
    seed: Seed = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, one after the other.")] = 1,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = realtime.RECORD_EVERY_S,
    out: Out = None,
    as_json: AsJson = False,
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
    wanted = recorded(record, record_every, out, ALL_SERIES)
    with progress(file.stem, "s") as show_progress:
        results = realtime.run(
            file,
            seed=seed,
            runs=runs,
            set=assignments(set_ or []),
            record=wanted,
            record_every_s=record_every,
            out=out,
            progress=show_progress,
        )
    say(results, as_json, out)
