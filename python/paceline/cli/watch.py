"""`paceline watch`: other programs' connections, or what QUIC programs have logged of theirs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import files
from paceline.cli import documents
from paceline.cli.help import Command
from paceline.cli.options import Out, span
from paceline.cli.unwritten import measured
from paceline.errors import PacelineError
from paceline.files.file_kinds import seems
from paceline.quantities import quantity
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from rich.console import Console

    from paceline.live.watch import View
    from paceline.results.results import Results

MAX_ROWS = 30


class Watching(Command):
    """With a program to run, all words after its name belong to it; after a log, options may follow."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words of the command line."""
        takes = {
            name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts
        }
        words = iter(args)
        for word in words:
            if word in takes:
                next(words, None)
            elif not word.startswith("-"):
                ctx.allow_interspersed_args = _holds_logs(word)
                break
            elif word == "--":
                break
        return super().parse_args(ctx, args)


PARSED = Watching
"""The parser of this command."""


def watch(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE... | -- COMMAND...]",
            help="QUIC logs (qlog, also .gz) or folders of them to read; or a program to run and follow, with all "
            "that it starts.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        list[int] | None,
        typer.Option(
            "--port",
            metavar="P",
            help="Connections with this port at either end; repeatable.",
            show_default=False,
        ),
    ] = None,
    pid: Annotated[
        list[int] | None,
        typer.Option(
            "--pid",
            metavar="N",
            help="Connections of this process and its descendants; repeatable.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All connections of this host.")] = False,
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="SPAN",
            help="Interval between readings of a connection; for a FILE, the time of a row.",
        ),
    ] = "10ms",
    search_every: Annotated[
        str,
        typer.Option("--search-every", metavar="SPAN", help="Interval between searches for new connections."),
    ] = "50ms",
    duration: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SPAN",
            help="Duration. Default: until Ctrl-C, or the program's end.",
            show_default=False,
        ),
    ] = "",
    out: Out = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document instead of a table; with a COMMAND, on stderr."),
    ] = False,
) -> None:
    """Follow the kernel-TCP connections of other programs (window, RTT, retransmissions, rates), or read QUIC logs.

    New connections are found as they open, and the last state of closed ones is kept. With a COMMAND, its exit code is
    passed on and the table goes to stderr. A FILE is a qlog, of any version.

    \b
    Examples:
      paceline watch --port 443 --for 2s
      paceline watch --all --every 50ms --for 1s --out out/now
      paceline watch --out out/get -- curl -so /dev/null http://example.org/
      paceline watch server.sqlog --out out/server
    """
    if command and all(map(_holds_logs, command)):
        if port or pid or everything or duration:
            raise PacelineError(
                f"{command[0]} is a log to read: --port, --pid, --all and --for are for connections to follow"
            )
        _read(command, every, out, as_json=as_json)
        return

    from paceline.live.watch import watch as follow

    if sum(map(bool, (command, port, pid, everything))) != 1:
        raise PacelineError("say what to watch: one of --port P, --pid N, --all, -- COMMAND, or FILE.qlog")
    if command:
        _refuse_files(command)
    # Do not mix a table with the program's own output on the terminal.
    with _viewing(wanted=not command) as view:
        results, failed = measured(
            lambda: follow(
                port=port or None,
                pid=pid or None,
                command=command or None,
                everything=everything,
                every_s=span(every, "--every"),
                search_every_s=span(search_every, "--search-every"),
                duration_s=span(duration, "--for") if duration else None,
                out=out,
                view=view,
            )
        )
    if as_json:
        documents.say(document(results), sys.stderr if command else sys.stdout)
    else:
        _say(results, command=bool(command), out=None if failed else out)
    if failed is not None:
        raise failed
    manifest = results.manifest
    if manifest["exit_code"] is not None:
        raise typer.Exit(manifest["exit_code"])
    if manifest["interrupted"] and (duration or command):
        # Without --for, Ctrl-C is the only end.
        raise typer.Exit(130)


def document(results: Results) -> dict[str, Any]:
    """The JSON of `--json`: the summary, and how the watch ended."""
    keys = ("interrupted", "exit_code", "host_state", "qlog")
    about = {key: results.manifest[key] for key in keys if key in results.manifest}
    return {**results.summaries[0], "watch": about, "versions": files.versions()}


def _holds_logs(name: str) -> bool:
    """Whether the name is a log or a folder; a program of this name takes precedence."""
    from paceline.live.qlog import is_log

    return is_log(name) or (Path(name).is_dir() and ("/" in name or shutil.which(name) is None))


def _refuse_files(command: list[str]) -> None:
    """Raises PacelineError for what is neither a program nor a log, alone or beside a log."""
    wrong = next((name for name in command if not _holds_logs(name)), command[0])
    if _holds_logs(command[0]) and not wrong.startswith("-"):
        named = f"{wrong}, beside the log {command[0]}, is none"
    elif wrong == command[0] and shutil.which(wrong) is None:
        named = f"{wrong} is neither a program nor a log"
    else:
        return
    if Path(wrong).is_file():
        raise PacelineError(
            f"{named}: {seems(Path(wrong))}. A qlog's name ends with .qlog or .sqlog, or it has qlog_version or "
            "file_schema near its beginning"
        )
    if wrong != command[0]:
        raise PacelineError(f"{named}: there is no such file")


def _read(names: list[str], every: str, out: Path | None, *, as_json: bool) -> None:
    """Reads logs and prints them."""
    from paceline.live.qlog import qlog

    results = qlog(names, every_s=span(every, "--every"), out=out)
    if as_json:
        documents.say(document(results), sys.stdout)
    else:
        _say(results, command=False, out=out)


def _say(results: Results, *, command: bool, out: Path | None) -> None:
    """Prints tables; stdout belongs to a COMMAND."""
    console = layout.stderr() if command else layout.stdout()
    if command and not console.is_terminal:
        console = layout.stderr(layout.stdout().width)
    report(console, results)
    if out:
        layout.say(console, f"\nWritten to {out}.")


def report(console: Console, results: Results) -> None:
    """Prints what was followed: a row per connection."""
    summary = results.summaries[0]
    flows = summary["flows"]
    many = "connection" if len(flows) == 1 else "connections"
    layout.say(
        console,
        f"{results.manifest['name']}: {len(flows)} {many} in {quantity('end_s', summary['end_s'])}",
    )
    if flows:
        layout.say(console, "")
        layout.show(console, [table(flows, _OF_LOGS if "qlog" in results.manifest else _MEASURES)])
    for note in summary["notes"]:
        layout.say(console, f"Note: {note}.")


_MEASURES = (
    ("goodput_bps", "goodput"),
    ("bytes_delivered", "bytes"),
    ("rtt_mean_s", "srtt"),
    ("rtt_min_s", "least RTT"),
    ("packets_retransmitted", "resent"),
    ("cwnd_mean_packets", "cwnd"),
    ("cwnd_max_packets", "max"),
    ("active_s", "lasted"),
)
_OF_LOGS = (*_MEASURES[:4], ("packets_lost", "lost"), *_MEASURES[4:])
"""Measures of logs, including one that the kernel does not count."""


def table(flows: list[dict[str, Any]], measures: tuple[tuple[str, str], ...] = _MEASURES) -> Layout:
    """A row per connection, those with most bytes first."""
    ordered = sorted(flows, key=lambda row: -(row["bytes_delivered"] or 0))
    shown = ordered[:MAX_ROWS]
    alone = {row["flow"] for row in flows} - {row["flow"] for row in flows if row["instance"] > 0}
    names = [row["flow"] if row["flow"] in alone else f"{row['flow']}[{row['instance']}]" for row in shown]
    columns = [
        Column("flow", names, right=False, repeat=True),
        Column("from", [row["from"] for row in shown], right=False),
        Column("to", [row["to"] for row in shown], right=False),
        Column("cc", [row["cc"] or "-" for row in shown], right=False),
        *(Column(head, [quantity(measure, row[measure]) for row in shown]) for measure, head in measures),
        Column("end", [row["ended"] for row in shown], right=False),
    ]
    rest = len(ordered) - len(shown)
    return Layout("", columns, note=f"and {rest} more: --out has all" if rest else "")


@contextmanager
def _viewing(*, wanted: bool) -> Iterator[View | None]:
    """A table of open connections, on a terminal; otherwise None."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.live import Live

    console = layout.stderr()
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda now: live.update(_now(now).fitted(console.width), refresh=True)


def _now(view: dict[str, Any]) -> Layout:
    lines = sorted(view["connections"], key=lambda line: -(line["out_bps"] + line["in_bps"]))
    shown = lines[:MAX_ROWS]
    columns = [
        Column("program", [line["program"] or "-" for line in shown], right=False),
        Column("peer", [line["peer"] for line in shown], right=False),
        Column("cc", [line["cc"] or "-" for line in shown], right=False),
        Column("out", [quantity("out_bps", line["out_bps"]) for line in shown]),
        Column("in", [quantity("in_bps", line["in_bps"]) for line in shown]),
        Column("srtt", [quantity("srtt_s", line["srtt_s"]) for line in shown]),
        Column("cwnd", [quantity("cwnd_packets", line["cwnd_packets"]) for line in shown]),
        Column("resent", [quantity("retransmits", line["retransmits"]) for line in shown]),
        Column("state", [line["state"] or "-" for line in shown], right=False),
    ]
    title = f"{view['time_s']:.0f} s: {len(lines)} open, {view['ended']} ended; Ctrl-C ends"
    rest = len(lines) - len(shown)
    return Layout(title, columns, note=f"and {rest} more" if rest else "")
