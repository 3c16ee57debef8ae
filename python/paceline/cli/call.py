"""`paceline call`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.options import AsJson, File, Out, Seed, Set, span
from paceline.cli.run import read, say
from paceline.cli.unwritten import measured
from paceline.errors import CutShortWarning
from paceline.quantities import quantity
from paceline.scenarios.scenario import assignments
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.results.results import Results


def call(
    file: File,
    seed: Seed = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, one after the other.")] = 1,
    set_: Set = None,
    out: Out = None,
    event_logs: Annotated[
        Path | None,
        typer.Option(
            "--event-logs",
            metavar="DIR",
            help="Write the browsers' logs there (RtcEventLog), for call-log.",
            show_default=False,
        ),
    ] = None,
    ready: Annotated[
        str,
        typer.Option(
            "--ready-within",
            metavar="SPAN",
            help="How long the browsers may take to start: 1s to 10min.",
        ),
    ] = "12s",
    as_json: AsJson = False,
) -> None:
    """Run a scenario in real time, with Chromium's WebRTC as its `gcc` flows.

    Two headless browsers call each other over an emulated path made of the scenario's links. All other flows run as
    with emulate. The output is that of `paceline run` for the same file. It needs Chromium, and no network.

    \b
    Examples:
      paceline call examples/webrtc/loss.toml --out out/call \\
          --event-logs out/events
    """
    # runs in real time have no notices for it
    from paceline.calls.call import call as run_calls

    warnings.simplefilter("default", CutShortWarning)
    scenario = read(file)
    changes = assignments(set_ or [])
    ready_s = span(ready, "--ready-within")
    results, failed = measured(
        lambda: run_calls(
            scenario, seed=seed, runs=runs, set=changes, out=out, event_logs=event_logs, ready_s=ready_s
        )
    )
    say(results, as_json, None if failed else out)
    if not as_json:
        notes(results)
    if failed is not None:
        raise failed


def notes(results: Results) -> None:
    """Prints how late the emulator was: a late packet looks like a queue to the browsers."""
    from paceline.emulator.realtime_queue import why_disturbed

    console = layout.stdout()
    for record in results.records:
        lag = record.summary["notes"]["lag"]
        late = (
            f"{quantity('p50_s', lag['p50_s'])} late in the median, {quantity('p99_s', lag['p99_s'])} at 99 %"
        )
        why = "; ".join(why_disturbed(record))
        layout.say(
            console,
            f"\nSeed {record.seed}: packets left {late}." + (f" It was disturbed: {why}." if why else ""),
        )
