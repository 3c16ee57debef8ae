"""`paceline run`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import documents
from paceline.cli.options import (
    AsJson,
    Batch,
    ExecutorName,
    File,
    Most,
    Out,
    Qlog,
    Record,
    RecordEvery,
    Seed,
    Set,
    Until,
    Workers,
    executor_of,
    kinds,
    span,
)
from paceline.cli.progress import progress
from paceline.errors import PacelineError
from paceline.quantities import quantity
from paceline.results.recordings import MAX_RUNS, SERIES
from paceline.scenarios.scenario import ScenarioLike, assignments, parse
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.results.results import Results


NAME = "standard input"
"""The name of a scenario from standard input."""


def run(
    file: File,
    seed: Seed = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, each with its own seed.")] = 1,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = "20ms",
    out: Out = None,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            help="Write the run's packets to this file, for Wireshark (pcapng).",
            show_default=False,
        ),
    ] = None,
    pcap_at: Annotated[
        list[str] | None,
        typer.Option(
            "--pcap-at",
            metavar="HOST",
            help="Capture at this host; repeatable. Default: all hosts.",
            show_default=False,
        ),
    ] = None,
    qlog: Qlog = None,
    as_json: AsJson = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    until: Until = None,
    most: Most = MAX_RUNS,
) -> None:
    """Run a scenario and print its measures.

    With several runs, numbers have 95 % intervals: of the mean, or of the median where a mean's would not hold.

    \b
    Examples:
      paceline run examples/coffee-shop.toml
      paceline run examples/coffee-shop.toml --runs 10 --set flow.film.cc=vegas
      paceline run examples/coffee-shop.toml --until "goodput_bps of film 2 %"
      paceline run examples/coffee-shop.toml --record cwnd,queue --out out/coffee
      paceline run examples/coffee-shop.toml --json > coffee.json
      paceline run examples/tfrc.toml --pcap t.pcapng --pcap-at "sack[0].sink"
      paceline run examples/quic.toml --qlog out/logs
    """
    from paceline.simulate.run import run as run_scenario

    every_s = span(record_every, "--record-every")
    wanted = recorded(record, every_s, out)
    of_one_run(runs, {"--pcap": pcap, "--qlog": qlog})
    if pcap is None and pcap_at:
        raise PacelineError("--pcap-at needs --pcap FILE")
    scenario = read(file)
    with progress(file.stem) as show_progress:
        results = run_scenario(
            scenario,
            seed=seed,
            runs=runs,
            set=assignments(set_ or []),
            record=wanted,
            record_every_s=every_s,
            workers=workers,
            executor=executor_of(executor, batch),
            until=until or [],
            most=most,
            out=out,
            pcap=pcap,
            pcap_at=pcap_at or [],
            qlog=qlog,
            progress=show_progress,
        )
    say(results, as_json, out, pcap, qlog)


def of_one_run(runs: int, places: Mapping[str, Path | None]) -> None:
    """Raises PacelineError if options ask for files of a single run, and there are several runs."""
    for option, where in places.items():
        if where is not None and runs != 1:
            raise PacelineError(f"{option}: it holds one run: leave out --runs")


def read(file: Path) -> ScenarioLike:
    """The scenario: a file, or for - the text on standard input, with traces relative to the current folder.

    Raises PacelineError.
    """
    return file if str(file) != "-" else parse(text_of_input(), name=NAME)


def text_of_input() -> str:
    """The text on standard input. Raises PacelineError."""
    if sys.stdin is None or sys.stdin.isatty():
        raise PacelineError(
            "- reads a scenario from standard input, which is the terminal here: add < FILE, or name one"
        )
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise PacelineError(f"standard input is not text: {error}") from None


def say(
    results: Results, as_json: bool, out: Path | None, pcap: Path | None = None, qlog: Path | None = None
) -> None:
    """Prints the measures of a scenario's runs, and where results and packets were written."""
    from paceline.tables import summaries

    if as_json:
        documents.say(documents.of_runs(results))
        return
    console = layout.stdout()
    layout.say(console, headline(results) + "\n\n")
    layout.show(console, summaries.tables(results))
    layout.note(console, summaries.notices(results))
    if out:
        layout.say(console, f"\nWritten to {out}.")
    if pcap:
        layout.say(console, f"\nPackets written to {pcap}.")
    if qlog:
        layout.say(console, f"\nLogs of connections written to {qlog}.")


def headline(results: Results) -> str:
    """One line that summarises the run."""
    seeds = results.seeds
    summary = results.summaries[0]
    span = summary.get("measured_s", summary.get("duration_s"))
    measured = "" if span is None else f", {quantity('measured_s', span)} measured"
    if len(seeds) == 1:
        return f"{summary['name']}: seed {seeds[0]}{measured}"
    head = f"{summary['name']}: {len(seeds)} runs, seeds {seeds[0]} to {seeds[-1]}{measured}"
    return f"{head}; mean ± half of the 95 % interval"


def recorded(record: str, every_s: float, out: Path | None, known: Sequence[str] = SERIES) -> list[Any]:
    """The requested recordings. Raises PacelineError for unknown ones, and if there is nowhere to write them."""
    from paceline.simulate.points import check_recordings

    wanted = check_recordings(kinds(record), every_s, known)
    if wanted and out is None:
        raise PacelineError("--record needs --out DIR, where the recording is written")
    return wanted
