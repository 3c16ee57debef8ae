"""`paceline call-log`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paceline import webrtc
from paceline.cli.options import AsJson, Out
from paceline.cli.run import say


def call_log(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A dump of chrome://webrtc-internals (JSON, also compressed), or a capture (pcap, pcapng).",
            show_default=False,
        ),
    ],
    out: Out = None,
    rtp_logs: Annotated[
        Path | None,
        typer.Option(
            "--rtp-logs",
            metavar="DIR",
            help="Of a capture: write a log of each stream there, as RFC 8868 has it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a browser logged of a call that was made elsewhere, or what a capture has of its RTP.

    `call` makes calls, this reads the logs of others' as watch reads the kernel's TCP: rates, round trips, losses and
    the estimate over time, as tables and as a run directory that plot draws. Of a capture these are rates and losses of
    each stream at each interface, and delays if it passed two of them.

    \b
    Examples:
      paceline call-log webrtc_internals_dump.txt --out out/log
      paceline call-log call.pcapng --out out/log --rtp-logs out/rtp
    """
    say(webrtc.call_log(log, out=out, rtp_logs=rtp_logs), as_json, out)
