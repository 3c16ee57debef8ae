"""`paceline receive`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paceline.cli.options import AsJson, Out, span
from paceline.cli.run import say
from paceline.cli.send import viewing
from paceline.cli.unwritten import measured
from paceline.tables import layout


def receive(
    address: Annotated[
        str,
        typer.Argument(
            metavar="RTP",
            help="Address to receive at: rtp://:PORT, with ?twcc=ID&rtcpport=N&localrtcpport=N if needed.",
            show_default=False,
        ),
    ],
    feedback: Annotated[
        str | None,
        typer.Option(
            "--feedback",
            metavar="KIND",
            help="reports, twcc or rfc8888. Default: twcc if the address has its ID, else reports.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SPAN",
            help="Duration from the first packet on. Default: until the sender ends, or Ctrl-C.",
            show_default=False,
        ),
    ] = "",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Receive RTP from another program, send it feedback, and show what arrived.

    This is the other side of `send rtp://`. A sender with its own congestion control gets RTCP reports each second
    and, on request, feedback on each packet. It ends with the sender's BYE, after 30 s without a packet, or with
    Ctrl-C, and keeps its measurements. It sends at most a twentieth of the bytes that it received from an address.

    \b
    Examples:
      paceline receive "rtp://:5004?twcc=5" --for 60s --out out/heard
      paceline receive rtp://127.0.0.1:5004 --feedback rfc8888 --json
    """
    from paceline.live.receive import receive as run

    lasts = span(duration, "--for") if duration else None
    with viewing() as show:
        view = show and (lambda rows: show([_of_flow(row) for row in rows]))
        results, failed = measured(
            lambda: run(address, feedback=feedback, duration_s=lasts, out=out, view=view)
        )
    say(results, as_json, None if failed else out)
    if not as_json:
        layout.note(layout.stdout(), [f"{text}." for text in results.summaries[0]["notes"]])
    if failed is not None:
        raise failed
    if results.manifest["interrupted"]:
        raise typer.Exit(130)
    flows = results.summaries[0]["flows"]
    if not flows or any(flow["ended"].startswith("the system failed") for flow in flows):
        raise typer.Exit(1)


def _of_flow(row: dict[str, Any]) -> dict[str, Any]:
    """A stream as a row of a flow from elsewhere."""
    return {**row, "instance": 0, "forward": False, "rtt_s": None, "running": True, "over": False}
