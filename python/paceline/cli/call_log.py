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
            help="A dump of chrome://webrtc-internals (JSON, also compressed).",
            show_default=False,
        ),
    ],
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Show what a browser logged of a call that was made elsewhere.

    `call` makes calls, this reads the logs of others' as watch reads the kernel's TCP: rates, round trips, losses and
    the estimate over time, as tables and as a run directory that plot draws.

    \b
    Example:
      paceline call-log webrtc_internals_dump.txt --out out/log
    """
    say(webrtc.call_log(log, out=out), as_json, out)
