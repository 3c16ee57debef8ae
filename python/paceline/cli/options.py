"""Common options of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import _core
from paceline.cli import completing
from paceline.errors import PacelineError
from paceline.simulate.executor_like import Batched, ExecutorLike

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Scenario file (TOML), or - for standard input.",
        show_default=False,
        autocompletion=completing.scenario,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="First seed; run k uses N + k - 1. Default: the scenario's.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Replace a value of the scenario; repeatable.",
        show_default=False,
        autocompletion=completing.assigned,
    ),
]
Vary = Annotated[
    list[str],
    typer.Option(
        "--vary",
        metavar="PATH=V1,V2,...",
        autocompletion=completing.varied,
        help="Values to try; repeat it for all combinations. Values that change together: "
        "PATH1,PATH2=V1:W1,V2:W2,...",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Runs at a time. Default: one per core.", show_default=False),
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="E",
        help="Where runs are made: threads (default), processes, dask=ADDRESS, mpi, or MODULE:FUNCTION that "
        "returns an Executor.",
        show_default=False,
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="SPAN",
        help='Simulation time per job of the executor, such as "10 min" for a batch system. Default: about 2 s.',
        show_default=False,
    ),
]
Until = Annotated[
    list[str] | None,
    typer.Option(
        "--until",
        metavar='"MEASURE PRECISION"',
        help='Add seeds until an interval is narrow enough: "goodput_bps 1 %", "rtt_mean_s of film 0.5 ms"; '
        "repeatable.",
        show_default=False,
    ),
]
Most = Annotated[int, typer.Option("--most", metavar="K", help="Maximum number of runs with --until.")]
Record = Annotated[
    str,
    typer.Option(
        "--record",
        metavar="KIND,...",
        autocompletion=completing.recording,
        help="Record over time: cwnd, queue, rate, rtcp, sequence, losses, acks, tfrc, playout, arrivals, frames, "
        "airtime, windows; in real time also kernel.",
        show_default=False,
    ),
]


def span(text: str, option: str) -> float:
    """Reads an option's time, with a unit as in a scenario, in seconds. Raises PacelineError."""
    try:
        return _core.quantity(text, "s")
    except ValueError as error:
        raise PacelineError(f"{option} {text}: {error}") from None


def executor_of(name: str | None, batch: str | None) -> ExecutorLike | None:
    """The executor of `--executor` and `--batch`. Raises PacelineError."""
    if batch is None:
        return name
    if name is None:
        raise PacelineError(f"--batch {batch}: it needs --executor")
    return Batched(name, span(batch, "--batch"))


RecordEvery = Annotated[
    str, typer.Option("--record-every", metavar="SPAN", help="Interval of recordings, with its unit.")
]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for tables, recordings and manifest.", show_default=False
    ),
]
Qlog = Annotated[
    Path | None,
    typer.Option(
        "--qlog",
        metavar="FOLDER",
        help="Folder for logs of the run's QUIC connections (qlog), at both ends.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def kinds(text: str) -> list[Any]:
    """The names in "cwnd,queue"."""
    return [name.strip() for name in text.split(",") if name.strip()]
