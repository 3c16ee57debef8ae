"""`paceline campaign`."""

from __future__ import annotations

import re
import socket
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import completing, documents
from paceline.cli.options import AsJson, Batch, ExecutorName, Set, Workers, executor_of
from paceline.cli.progress import progress
from paceline.errors import CutShortWarning, PacelineError
from paceline.live.keys import read_key
from paceline.messages.argument_names import meant
from paceline.scenarios.scenario import assignments
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.emulator.realtime_queue import Runner
    from paceline.results.results import Results


_SHOWN = {
    "flows": (
        "Flows",
        (("goodput_bps", "goodput"), ("goodput_cov", "burstiness"), ("rtt_mean_s", "RTT")),
    ),
    "groups": ("Groups", (("goodput_bps", "goodput"), ("jain", "Jain"))),
}


def campaign(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Campaign file (TOML).",
            show_default=False,
            autocompletion=completing.scenario,
        ),
    ],
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="PATH",
            help="simulator; emulator (real time, over the scenarios' links); or HOST[:PORT] where `paceline "
            "serve` runs (the real path to it).",
        ),
    ] = "simulator",
    tests: Annotated[
        int | None,
        typer.Option(
            "--tests", metavar="K", help="Number of tests. Default: the campaign's.", show_default=False
        ),
    ] = None,
    set_: Set = None,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="With a HOST: the server's key.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for runs and tables. Default: out/campaign-NAME; in real time out/campaign-NAME-PATH.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: delete the finished runs in --out.")
    ] = False,
    as_json: AsJson = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
) -> None:
    """Run schemes in alternation, case by case and test by test.

    A campaign names scenarios, the schemes to compare on each, and the number of tests. In real time, the
    campaign's rest separates the runs. Each finished run is saved; the same command resumes a stopped campaign.

    \b
    Examples:
      paceline campaign examples/campaigns/wide-area.toml
      paceline campaign examples/campaigns/wide-area.toml --over emulator \\
          --tests 1 --set "duration=3 s"
    """
    from paceline import campaign as campaigns
    from paceline.tables import summaries, sweep

    if over != "simulator":
        # runs in real time have no notices for it
        warnings.simplefilter("default", CutShortWarning)
    read = campaigns.read(file, assignments(set_ or []))
    directory = out or Path("out") / _directory(read.name, over)
    runner = _runner(over, key_file)
    with progress(read.name, "runs" if runner is None else "s") as show_progress:
        results = campaigns.run(
            read,
            over=over,
            runner=runner,
            tests=tests,
            workers=workers,
            executor=executor_of(executor, batch),
            out=directory,
            fresh=fresh,
            progress=show_progress,
        )
    if as_json:
        documents.say({**documents.of_points(results), "over": over, "wins": wins(results)})
        return
    console = layout.stdout()
    layout.say(
        console,
        f"{read.name}: {len(results.seeds)} tests; mean ± half of the 95 % interval\n\n",
    )
    alone = (results.groups["flows"] == 1).all()
    layout.show(console, sweep.tables(results, {"flows": _SHOWN["flows"]} if alone else _SHOWN))
    layout.say(console, "\n" + "\n".join(map(win_said, wins(results))))
    layout.note(console, summaries.notices(results))
    layout.say(console, f"\nTables (Parquet, CSV) and runs are in {directory}.")


def _directory(name: str, over: str) -> str:
    """A campaign's default folder: each path has its own."""
    where = "" if over == "simulator" else "-" + re.sub(r"[^\w.-]", "-", over)
    return f"campaign-{name}{where}"


def _runner(over: str, key_file: Path | None) -> Runner | None:
    """The runner in real time; None for the simulator."""
    from paceline.live.send import place

    if key_file is not None and over in {"simulator", "emulator"}:
        raise PacelineError("--key-file is the key of a server: it needs --over HOST[:PORT]")
    if over == "simulator":
        return None
    from paceline import realtime

    if over == "emulator":
        return realtime.Emulator()
    try:
        host, port = place(over)
        socket.getaddrinfo(host, port)
    except (PacelineError, OSError) as error:
        # Check now, not once for each run.
        why = f"{host}: {error.strerror}" if isinstance(error, OSError) else str(error)
        hint = meant(over, ["simulator", "emulator"])
        raise PacelineError(
            f"--over {over}{hint}: there are simulator, emulator and HOST[:PORT]. {why}"
        ) from None
    return realtime.to_host(host, port, None if key_file is None else read_key(key_file))


def wins(results: Results) -> list[dict[str, Any]]:
    """For each case, flow, and scheme after the first: the number of tests (`above`) of those with both (`of`) in which
    its goodput exceeds the first scheme's (`than`)."""
    import polars as pl

    found = []
    # Flows that all schemes of a case have differ only in the scheme.
    means = results.flows.group_by("case", "scheme", "flow", "seed", maintain_order=True).agg(
        pl.col("goodput_bps").mean()
    )
    for (case, flow), part in means.group_by("case", "flow", maintain_order=True):
        by_scheme = part.pivot("scheme", index="seed", values="goodput_bps")
        first, *others = by_scheme.columns[1:]
        for other in others:
            both = by_scheme.drop_nulls([first, other])
            above = int((both[other] > both[first]).sum())
            of_whom = {"case": case, "flow": flow, "scheme": other, "than": first}
            found.append(of_whom | {"above": above, "of": len(both)})
    return found


def win_said(win: dict[str, Any]) -> str:
    """One of `wins` in words."""
    return f"{win['case']}, {win['flow']}: {win['scheme']} above {win['than']} in {win['above']} of {win['of']} tests"
