"""`paceline send`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import files
from paceline.cli import completing, documents
from paceline.cli.options import AsJson, Out, span
from paceline.cli.unwritten import measured
from paceline.errors import PacelineError
from paceline.quantities import quantity
from paceline.results.recordings import PORT
from paceline.scenarios.scenario import assignments
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.live.send import View
    from paceline.results.results import Results


def send(  # noqa: PLR0917 (options of a command, not arguments of a call)
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="Host where `paceline serve` runs: HOST or HOST:PORT; quic://HOST for flows over QUIC; "
            "rtp://HOST:PORT for a receiver of plain RTP.",
            show_default=False,
        ),
    ],
    cc: Annotated[
        str,
        typer.Option(
            "--cc",
            autocompletion=completing.scheme,
            metavar="NAME",
            help="A controller (see `paceline controllers`), udp, or kernel:NAME for the kernel's TCP.",
        ),
    ] = "newreno",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            autocompletion=completing.flow_key,
            metavar="KEY=VALUE",
            help="Set a key of the flow as in a scenario, such as params.c or profile; repeatable.",
            show_default=False,
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="KIND", help="Application that sends: ftp, stream, web, ...", show_default=False
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="For udp: payload per second.", show_default=False),
    ] = None,
    max_rate: Annotated[
        str | None,
        typer.Option(
            "--max-rate",
            metavar="RATE",
            help="For rtp://HOST:PORT: maximum rate of the flow.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[str, typer.Option("--for", metavar="SPAN", help="Duration.")] = "10s",
    reverse: Annotated[bool, typer.Option("--reverse", help="Send from the server to this host.")] = False,
    both: Annotated[bool, typer.Option("--both", help="Send both ways at once.")] = False,
    flows: Annotated[int, typer.Option("--flows", metavar="N", help="Flows each way.")] = 1,
    port: Annotated[int, typer.Option("--port", metavar="P", help="The server's port.")] = PORT,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Seed of applications and senders. Default: random.",
            show_default=False,
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The server's key.", show_default=False),
    ] = None,
    log_events: Annotated[
        Path | None,
        typer.Option(
            "--log-events", metavar="DIR", help="Folder for an event log of each flow.", show_default=False
        ),
    ] = None,
    qlog: Annotated[
        Path | None,
        typer.Option(
            "--qlog",
            metavar="DIR",
            help="Folder for logs of QUIC connections (qlog), as seen at this end.",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Send flows of any controller to a host where `paceline serve` runs, or receive them from there.

    The results have the tables of a simulated run. Ctrl-C ends the flows and keeps their measurements. To a receiver of
    plain RTP, such as GStreamer's rtpbin, it sends a flow of lda-plus, which follows RTCP reports.

    \b
    Examples:
      paceline send 127.0.0.1 --cc tfrc --for 2s
      paceline send 127.0.0.1 --cc tcp-vegas --both --flows 2 --for 1s
      paceline send quic://127.0.0.1 --cc cubic --for 1s --qlog out/quic
      paceline send 127.0.0.1 --cc udp --rate 2Mbit/s --for 1s --json
      paceline send 127.0.0.1 --cc kernel:reno --reverse --for 1s
    """
    from paceline.live.send import cut_logs
    from paceline.live.send import send as run

    if reverse and both:
        raise PacelineError("--reverse and --both: give only one of them")
    with viewing() as view:
        results, failed = measured(
            lambda: run(
                host,
                cc,
                duration_s=span(duration, "--for"),
                direction="both" if both else "reverse" if reverse else "forward",
                flows=flows,
                set=assignments(set_ or []),
                app=app,
                rate=rate,
                max_rate=max_rate,
                port=port,
                seed=seed,
                key_file=key_file,
                log_events=log_events,
                qlog=qlog,
                out=out,
                view=view,
            )
        )
    report(results, as_json=as_json)
    if out and not as_json and failed is None:
        layout.say(layout.stdout(), f"\nWritten to {out}.")
    if qlog and not as_json:
        layout.say(layout.stdout(), f"\nLogs of connections written to {qlog}.")
    if failed is not None:
        raise failed
    if results.manifest["interrupted"]:
        raise typer.Exit(130)
    notes = results.manifest["notes"]
    if cut_logs(notes) or not all(flow["well"] for flow in notes["flows"]):
        raise typer.Exit(1)


def report(results: Results, *, as_json: bool) -> None:
    """Prints the measures, and how each flow ended that did not end well."""
    from paceline.live.send import cut_logs
    from paceline.tables import summaries

    notes = results.manifest["notes"]
    if as_json:
        document = {**results.summaries[0], "live": notes, "versions": files.versions()}
        documents.say(document)
        return
    console = layout.stdout()
    layout.say(console, f"{results.manifest['name']}\n\n")
    layout.show(console, summaries.tables(results))
    for flow in notes["flows"]:
        if not flow["well"]:
            said = f"sender: {flow['sender_ended'] or 'unknown'}; receiver: {flow['receiver_ended'] or 'unknown'}"
            layout.say(console, f"\n{flow['flow']}[{flow['instance']}] did not end well. {said}.")
        if count := (flow.get("reported") or {}).get("without_cname"):
            said = f"{count} of the receiver's reports had no CNAME (RFC 3550 section 6.1), and were read"
            layout.say(console, f"\n{flow['flow']}[{flow['instance']}]: {said}.")
    for said in cut_logs(notes):
        layout.say(console, f"\n{said}")
    state = notes["host"]
    if state and state["steal_share"] > 0.01:
        share = state["steal_share"]
        layout.say(
            console, f"\nThis host lost {share:.1%} of its processors' time to others: times say little."
        )


@contextmanager
def viewing() -> Iterator[View | None]:
    """A view with a row per flow, twice a second on a terminal; otherwise None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.live import Live

    console = layout.stderr()
    before: dict[tuple[str, int], tuple[float, int]] = {}
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda rows: live.update(now(rows, before).fitted(console.width), refresh=True)


def now(rows: list[dict[str, Any]], before: dict[tuple[str, int], tuple[float, int]]) -> Layout:
    """The flows' state: rates are those since the previous call, which `before` stores."""
    rates = []
    for row in rows:
        who = (row["flow"], row["instance"])
        time_s, count = before.get(who, (0.0, 0))
        passed = row["time_s"] - time_s
        rates.append((row["bytes"] - count) * 8 / passed if passed > 0 else None)
        before[who] = (row["time_s"], row["bytes"])
    columns = [
        Column("flow", [f"{row['flow']}[{row['instance']}]" for row in rows], right=False),
        Column("", ["to" if row["forward"] else "from" for row in rows], right=False),
        Column("rate", [quantity("rate_bps", rate) for rate in rates]),
        Column("packets", [str(row["packets"]) for row in rows]),
        Column("loss", [quantity("loss_rate", row["loss"]) for row in rows]),
        Column("RTT", [quantity("rtt_s", row["rtt_s"]) for row in rows]),
        Column(
            "", ["over" if row["over"] else "" if row["running"] else "waits" for row in rows], right=False
        ),
    ]
    time_s = max((row["time_s"] for row in rows), default=0.0)
    return Layout(f"{time_s:.0f} s; Ctrl-C ends", columns)
