"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file (TOML).", show_default=False)]
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
        "--set", metavar="PATH=VALUE", help="Replace a value of the scenario; repeatable.", show_default=False
    ),
]
Vary = Annotated[
    list[str],
    typer.Option(
        "--vary",
        metavar="PATH=V1,V2,...",
        help="Values to try; repeated: all combinations.",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Runs at a time. Default: one per core.", show_default=False),
]
Record = Annotated[
    str,
    typer.Option(
        "--record",
        metavar="KIND,...",
        help="Record over time: cwnd, queue, rate, rtcp, sequence, acks, tfrc, playout.",
        show_default=False,
    ),
]
RecordEvery = Annotated[
    float, typer.Option("--record-every", metavar="SECONDS", help="Interval of recordings.")
]


def kinds(text: str) -> list[str]:
    """The names in "cwnd,queue"."""
    return [name.strip() for name in text.split(",") if name.strip()]
