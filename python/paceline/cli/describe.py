"""`paceline schema` and `paceline schemes`: what can be written in a scenario."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from paceline import _core
from paceline.cli import layout


def schema() -> None:
    """Print the JSON Schema of scenario files.

    \b
    Example, for completion and checks in an editor:
      paceline schema > paceline.schema.json
    """
    print(_core.schema_json().rstrip())


def schemes(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the congestion controllers and their parameters.

    \b
    Examples:
      paceline schemes
      paceline schemes --json
    """
    listed = json.loads(_core.schemes())
    if as_json:
        print(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    console = layout.stdout()
    # What a controller is fills a line: text that is broken between words, not columns that are split.
    table = layout.plain()
    for head in ("cc", "what", "source"):
        table.add_column(head, overflow="fold")
    for scheme in listed:
        table.add_row(scheme["name"], Text(scheme["summary"]), Text(scheme["source"]))
    console.print(table)
    console.print("\n[bold]Parameters[/bold], set in a flow's `params`")
    table = layout.plain()
    for head in ("cc", "name", "default", "range", "what"):
        table.add_column(head, overflow="fold")
    for scheme in listed:
        for n, p in enumerate(scheme["params"]):
            table.add_row(scheme["name"] if n == 0 else "", *map(Text, parameter(p)))
    console.print(table)


def parameter(p: dict[str, Any]) -> tuple[str, str, str, str]:
    """Name, default with unit, range and meaning of a parameter."""
    unit = "" if p["unit"] == "1" else f" {p['unit']}"
    return p["name"], f"{p['default']:g}{unit}", f"{p['min']:g} to {p['max']:g}", p["doc"]
