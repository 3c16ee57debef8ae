"""`paceline gateway`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import _core
from paceline.cli import completing
from paceline.cli.options import AsJson
from paceline.errors import PacelineError
from paceline.live import linux
from paceline.quantities import quantity
from paceline.tables import layout

if TYPE_CHECKING:
    from rich.console import Group


MAX_ROWS = 20
STEP_S = 0.2


def option(name: str, metavar: str, text: str, completion: Any = None) -> Any:
    """An option that the core parses."""
    return typer.Option(
        f"--{name}", metavar=metavar, help=text, show_default=False, autocompletion=completion
    )


def gateway(  # noqa: PLR0917 (options of a command, not arguments of a call)
    lan: Annotated[str, option("lan", "IF", "Interface towards the stations; the gateway works there.")],
    wan: Annotated[
        str | None,
        option("wan", "IF", "Interface towards the Internet. Default: detected; it is not changed."),
    ] = None,
    algorithm: Annotated[
        str | None, option("algorithm", "NAME", "voap (default) or sap-law.", completing.law)
    ] = None,
    alpha: Annotated[
        str | None, option("alpha", "SPAN", "VoAP: windows grow below this delay. Default: 5ms.")
    ] = None,
    beta: Annotated[
        str | None, option("beta", "SPAN", "VoAP: windows shrink above this delay. Default: 15ms.")
    ] = None,
    interval: Annotated[
        str | None,
        option("interval", "SPAN", "Time between decisions. Default: 200ms; for sap-law 2s."),
    ] = None,
    growth: Annotated[
        str | None,
        option("growth", "WHICH", "VoAP: which windows grow: all of active flows (default), or those used."),
    ] = None,
    capacity: Annotated[
        str | None,
        option("capacity", "RATE", "SAP-LAW: capacity of the stations' channel. Default: --rate."),
    ] = None,
    rtt: Annotated[
        str | None,
        option("rtt", "SPAN", "SAP-LAW: RTT of flows whose handshake was missed. Default: 100ms."),
    ] = None,
    window: Annotated[
        str | None, option("window", "SIZE", "Fixed window for all connections, instead of an algorithm.")
    ] = None,
    rate: Annotated[
        str | None, option("rate", "RATE", "Shape the traffic to the stations, with a queue in the gateway.")
    ] = None,
    queue: Annotated[
        str | None, option("queue", "SIZE", "Size of that queue. Default: 250 ms at its rate.")
    ] = None,
    delay_from: Annotated[
        str | None,
        option(
            "delay-from",
            "WHERE",
            "Where to measure the delay: shaper (with --rate), queue (the interface's), or ack (from data to "
            "ACK; default without --rate).",
        ),
    ] = None,
    hook: Annotated[
        str | None,
        option("hook", "KIND", "How to attach programs: tcx or cls_bpf. Default: what the kernel has."),
    ] = None,
    duration: Annotated[str | None, option("for", "SPAN", "Duration. Default: until Ctrl-C.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure only; lower no window.")] = False,
    out: Annotated[
        Path | None, option("out", "FILE", "File for one JSON object per interval and one for the run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep the queue towards a home's stations short, on a Linux router, by lowering TCP's windows.

    It needs Linux 6.6 or newer (5.8 with --hook cls_bpf), and root or CAP_BPF and CAP_NET_ADMIN. When it ends, it
    removes everything that it put on the interface.

    \b
    Examples:
      paceline gateway --lan lan0 --rate 50Mbit/s --for 1s
      paceline gateway --lan lan0 --delay-from ack --dry-run --for 1s
      paceline gateway --lan lan0 --algorithm sap-law --capacity 20Mbit/s --for 1s
    """
    words = {
        "lan": lan,
        "wan": wan,
        "algorithm": algorithm,
        "alpha": alpha,
        "beta": beta,
        "interval": interval,
        "growth": growth,
        "capacity": capacity,
        "rtt": rtt,
        "window": window,
        "rate": rate,
        "queue": queue,
        "delay_from": delay_from,
        "hook": hook,
        "duration": duration,
        "dry_run": dry_run,
    }
    report, statuses = _run(words, out, quiet=as_json)
    if as_json:
        print(json.dumps({"report": report, "last": statuses}, indent=2))
        return
    console = layout.stdout()
    for line in summary(report):
        layout.say(console, line)
    if out is not None:
        layout.say(console, f"Written to {out}.")


def _run(words: dict[str, Any], out: Path | None, *, quiet: bool) -> tuple[dict[str, Any], Any]:
    """Runs a gateway; returns its report and the last interval."""
    linux.needed("the gateway")
    try:
        core = _core.Gateway(json.dumps(words))
        with _file(out) as write, _view(quiet) as view, ThreadPoolExecutor(1, "paceline-gateway") as threads:
            # before there are other threads, which would keep the privileges
            _core.keep_gateway_privileges()
            done = threads.submit(core.run)
            last = None
            try:
                while not done.done():
                    wait([done], STEP_S)
                    last = _take(core, write, view) or last
            except KeyboardInterrupt:
                core.stop()
                wait([done], 5)
            finally:
                core.stop()
            report = json.loads(done.result())
            last = _take(core, write, view) or last
            write(json.dumps(report))
    except ValueError as error:
        raise PacelineError(str(error)) from None
    return report, last


def _take(core: _core.Gateway, write: Any, view: Any) -> Any:
    """Passes on the intervals that the gateway has reported; returns the last."""
    last = None
    for line in core.shown():
        write(line)
        last = json.loads(line)
    if last is not None:
        view(last)
    return last


@contextmanager
def _file(out: Path | None) -> Iterator[Any]:
    if out is None:
        yield lambda _line: None
        return
    with out.open("a", encoding="utf-8") as file:
        fresh = True

        def write(line: str) -> None:
            nonlocal fresh
            if fresh and out.is_file():
                # Not earlier: a refused start must leave the old content.
                file.truncate(0)
            fresh = False
            # Flush, so that a reader can follow the file, and a killed gateway loses nothing.
            file.write(line + "\n")
            file.flush()

        yield write


@contextmanager
def _view(quiet: bool) -> Iterator[Any]:
    """A view of intervals: a table on a terminal, a line a second elsewhere."""
    from rich.live import Live

    console = layout.stderr()
    if quiet:
        yield lambda _status: None
        return
    if not console.is_terminal:
        said = [0.0]

        def say(status: dict[str, Any]) -> None:
            if status["time_s"] >= said[0] + 1:
                said[0] = status["time_s"]
                print(head(status), file=sys.stderr, flush=True)

        yield say
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda status: live.update(table(status, console.width), refresh=True)


def head(status: dict[str, Any]) -> str:
    """An interval in a line."""
    flows, alone = status["flows"], status["left_alone"]
    limited = sum(flow["window_bytes"] is not None for flow in flows)
    rate = quantity("rate_bps", sum(flow["rate_bps"] for flow in flows))
    delay = quantity("delay_s", status["delay_s"])
    udp = quantity("rate_bps", status["udp_bps"])
    return (
        f"{status['time_s']:.0f} s: delay {delay}, TCP {rate} in {len(flows)} flows ({limited} limited)"
        + (f" beside {alone} that began before the gateway" if alone else "")
        + f", UDP {udp}, {status['lowered']} windows lowered"
    )


def table(status: dict[str, Any], width: int) -> Group:
    """An interval with its largest flows, and as many columns as fit: addresses and ports, which identify flows, are
    not cut."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    flows = sorted(status["flows"], key=lambda flow: -flow["rate_bps"])
    columns = {name: [cells(flow)[name] for flow in flows[:MAX_ROWS]] for name in COLUMNS} if flows else {}
    for name in DROPPED_FIRST:
        if sum(max(map(len, (title, *column))) + 2 for title, column in columns.items()) - 2 > width:
            columns.pop(name, None)
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        left = name in ("station", "remote")
        rows.add_column(name, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        rows.add_row(*row)
    more = len(flows) - MAX_ROWS
    return Group(Text(head(status)), rows, Text(f"and {more} more" if more > 0 else ""))


COLUMNS = ("station", "remote", "rate", "window", "announced", "outstanding", "RTT")
DROPPED_FIRST = ("announced", "RTT", "outstanding")
"""Columns that a narrow terminal omits."""


def cells(flow: dict[str, Any]) -> dict[str, str]:
    """A flow's cells in the table, by column."""
    window, rtt = flow["window_bytes"], flow["rtt_s"]
    texts = (
        flow["station"],
        flow["remote"],
        quantity("rate_bps", flow["rate_bps"]),
        "" if window is None else f"{window / 1e3:.1f} kB",
        f"{flow['advertised_bytes'] / 1e3:.0f} kB",
        f"{flow['outstanding_bytes'] / 1e3:.1f} kB",
        "" if rtt is None else quantity("rtt_s", rtt),
    )
    return dict(zip(COLUMNS, texts, strict=True))


def summary(report: dict[str, Any]) -> list[str]:
    """The run in a few lines."""
    did = "would have been lowered" if report["dry_run"] else "lowered"
    mean, maximum = (quantity("delay_s", report[f"delay_{of}_s"]) for of in ("mean", "max"))
    lines = [
        f"{report['duration_s']:.1f} s on {report['lan']} ({report['algorithm']}, {report['attached']}, delay from "
        f"{report['delay_from']}): longest waits {mean} in the mean, {maximum} at most; {report['lowered']} windows "
        f"{did}."
    ]
    if report["cleared"]:
        things = "thing" if report["cleared"] == 1 else "things"
        lines.append(f"Cleared {report['cleared']} {things} that an earlier gateway had left.")
    return lines
