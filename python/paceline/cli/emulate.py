"""`paceline emulate`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.options import AsJson, File, Out, Qlog, Record, RecordEvery, Seed, Set, span
from paceline.cli.progress import progress
from paceline.cli.run import of_one_run, read, recorded, say
from paceline.cli.unwritten import measured
from paceline.errors import CutShortWarning
from paceline.results.recordings import REAL_SERIES
from paceline.scenarios.scenario import assignments
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.results.results import Results


def emulate(
    file: File,
    seed: Seed = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, one after the other.")] = 1,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = "100ms",
    out: Out = None,
    qlog: Qlog = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario in real time: its flows on real sockets, over an emulated path made of its links.

    Each end is a network namespace. Flows are the simulator's senders and receivers over UDP, or the kernel's TCP with
    kernel = true. The output is that of `paceline run` for the same file.

    \b
    Examples:
      paceline emulate examples/campaigns/one-flow.toml --set "duration=5 s"
      paceline emulate examples/campaigns/one-flow.toml --set "duration=5 s" \\
          --set flow.media.kernel=true --record rate,kernel --out out/real
      paceline emulate examples/campaigns/one-flow.toml --set "duration=5 s" \\
          --set flow.media.cc=bbr3 --set flow.media.transport=quic --qlog out/logs
    """
    # runs in real time have no notices for it
    from paceline import realtime

    warnings.simplefilter("default", CutShortWarning)
    every_s = span(record_every, "--record-every")
    wanted = recorded(record, every_s, out, REAL_SERIES)
    of_one_run(runs, {"--qlog": qlog})
    scenario = read(file)
    with progress(file.stem, "s") as show_progress:
        results, failed = measured(
            lambda: realtime.run(
                scenario,
                seed=seed,
                runs=runs,
                set=assignments(set_ or []),
                record=wanted,
                record_every_s=every_s,
                out=out,
                qlog=qlog,
                progress=show_progress,
            )
        )
    say(results, as_json, None if failed else out, qlog=qlog)
    if not as_json:
        notes(results)
    if failed is not None:
        raise failed


def notes(results: Results) -> None:
    """Prints how flows ended that did not end well, and how many runs the machine disturbed."""
    from paceline import realtime
    from paceline.emulator.realtime_queue import is_disturbed
    from paceline.live.send import cut_logs

    console = layout.stdout()
    for record in results.records:
        for flow, instance, said in realtime.unwell(record.summary["notes"]):
            layout.say(console, f"\nSeed {record.seed}: {flow}[{instance}] did not end well. {said}.")
        for said in cut_logs(record.summary["notes"]):
            layout.say(console, f"\nSeed {record.seed}: {said}")
    disturbed = sum(is_disturbed(record) for record in results.records)
    if disturbed:
        runs = "The run was" if len(results.records) == 1 else f"{disturbed} runs were"
        layout.say(
            console,
            f"\n{runs} disturbed: the emulator was more than 1 ms late in the median, or others took more than 1 % of "
            "the processors' time.",
        )
