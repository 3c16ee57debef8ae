"""`paceline schema` and `paceline schemes`: what can be written in a scenario."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from paceline import _core
from paceline.cli import show


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
    table = Table(show_lines=True)
    for head in ("cc", "what", "parameters", "source"):
        table.add_column(head)
    for scheme in listed:
        parameters = [parameter(p) for p in scheme["params"]]
        table.add_row(scheme["name"], scheme["summary"], "\n".join(parameters) or "-", scheme["source"])
    show.stdout().print(table, markup=False)


def parameter(p: dict[str, Any]) -> str:
    """One line on a parameter: name, default, range, meaning."""
    unit = "" if p["unit"] == "1" else f" {p['unit']}"
    return f"{p['name']} = {p['default']:g}{unit} ({p['min']:g} to {p['max']:g}): {p['doc']}"
