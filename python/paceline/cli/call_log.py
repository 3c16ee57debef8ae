"""`paceline call-log`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing
from paceline.cli.options import AsJson, Out
from paceline.cli.run import say
from paceline.quantities import quantity
from paceline.tables import layout
from paceline.tables.layout import Column

if TYPE_CHECKING:
    from paceline.results.results import Results


def call_log(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A dump of chrome://webrtc-internals (JSON, also compressed), an event log of libwebrtc"
            " (RtcEventLog), or a capture (pcap, pcapng).",
            show_default=False,
        ),
    ],
    out: Out = None,
    rtp_logs: Annotated[
        Path | None,
        typer.Option(
            "--rtp-logs",
            metavar="DIR",
            help="Write a log of each stream there, in RFC 8868's form. For event logs and captures.",
            show_default=False,
        ),
    ] = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(
            "--replay",
            autocompletion=completing.scheme,
            metavar="CC[:KEY=VALUE,...]",
            help="Replay the sent packets and the feedback to this controller; repeatable. For event logs and "
            "captures.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the log of a call made elsewhere, and what other controllers make of its feedback.

    It prints rates, round trips, losses and the estimate over time, and writes them as a run directory that plot
    draws. A capture has rates and losses of each stream at each interface, delays if the stream passed two
    interfaces, and RTCP unless it is encrypted.

    With --replay, the recording rtcp has the rate that a controller would have allowed with the same feedback. The
    replay is open loop: at its own rate, the controller would have received other feedback.

    \b
    Examples:
      paceline call-log webrtc_internals_dump.txt --out out/log
      paceline call-log call.pcapng --out out/log --rtp-logs out/rtp
      paceline call-log event_log.bin --replay gcc --replay nada --out out/log
    """
    from paceline.calls.call_log import call_log as read_log

    results = read_log(log, out=out, rtp_logs=rtp_logs, replay=replay or [])
    say(results, as_json, out)
    if replay and not as_json:
        _say_replayed(results)


def _say_replayed(results: Results) -> None:
    """Prints the rates allowed by the sender's own controller and by the replayed ones."""
    import polars as pl

    rates = results.series("rtcp").filter(pl.col("allowed_bps").is_not_null())
    of = rates.group_by("flow", maintain_order=True).agg(
        pl.col("allowed_bps").mean().alias("mean"),
        pl.col("allowed_bps").quantile(0.05, "nearest").alias("low"),
        pl.col("allowed_bps").quantile(0.95, "nearest").alias("high"),
    )
    columns = [Column("controller", of["flow"].to_list(), right=False, repeat=True)]
    for head, column in (("mean", "mean"), ("5 %", "low"), ("95 %", "high")):
        columns.append(Column(head, [quantity("allowed_bps", value) for value in of[column]]))
    console = layout.stdout()
    console.print()
    layout.show(console, [layout.Layout("Allowed (replays: open loop)", columns)])
