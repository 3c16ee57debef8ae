"""`paceline schema` and `paceline controllers`: what a scenario may contain."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from paceline import _core, own_controllers
from paceline.cli import completing
from paceline.errors import PacelineError
from paceline.messages.argument_names import meant
from paceline.quantities import figures
from paceline.scenarios import schemas
from paceline.tables import layout


def schema(
    of: Annotated[
        str, typer.Argument(metavar="[KIND]", help="Kind of file: scenario (default), campaign or path.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file.

    \b
    Examples, for completion and checks in an editor:
      paceline schema > paceline.schema.json
      paceline schema campaign > campaign.schema.json
    """
    print(json.dumps(schemas.schema(of), indent=2, ensure_ascii=False))


def controllers(
    cc: Annotated[
        str | None,
        typer.Argument(
            metavar="[CC]",
            autocompletion=completing.scheme,
            help="Controller whose parameters to show; also your own, as python:FILE:CLASS or library:FILE.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the congestion controllers, or the parameters of one.

    \b
    Examples:
      paceline controllers
      paceline controllers vegas
      paceline controllers python:examples/controllers/nada_twin.py:NadaTwin
      paceline controllers --json
    """
    listed = json.loads(_core.schemes())
    if cc is not None and own_controllers.is_own(cc):
        listed = [json.loads(own_controllers.load(cc).json())]
    elif cc is not None:
        known = [one["name"] for one in listed]
        if cc not in known:
            word = cc.lower().rstrip("+*")
            hint = meant(word, known, cutoff=0.7, longer=True)
            raise PacelineError(f'there is no controller "{cc}"{hint}; there are {", ".join(known)}')
        listed = [one for one in listed if one["name"] == cc or _family(one) == cc]
    if as_json:
        print(json.dumps(listed, indent=2, ensure_ascii=False))
    elif cc is None:
        _all(listed)
    else:
        for one in listed:
            _one(one)


def include() -> None:
    """Print the folder of paceline.h, the header for controllers in C and C++.

    Build a library with, for example: cc -O2 -shared -fPIC -I"$(paceline include)" mine.c -o mine.so

    \b
    Examples:
      paceline include
    """
    print(own_controllers.include())


def _family(controller: dict[str, Any]) -> str | None:
    """The current family name of a variant; None for others."""
    variant: dict[str, str] | None = controller.get("variant_of")
    return variant["name"] if variant else None


def _all(listed: list[dict[str, Any]]) -> None:
    from rich.text import Text

    console = layout.stdout()
    # A controller's description fills a line: break it between words instead of splitting columns.
    table = layout.plain()
    for head in ("cc", "what", "source"):
        table.add_column(head, overflow="fold")
    for one in listed:
        if _family(one) is None:
            table.add_row(one["name"], Text(one["summary"]), Text(one["source"]))
    console.print(table)
    layout.say(console, "\nThe parameters of one: paceline controllers CC")


def _one(controller: dict[str, Any]) -> None:
    from rich.text import Text

    console = layout.stdout()
    variant = controller.get("variant_of")
    name = f'{variant["name"]}, variant = "{variant["variant"]}"' if variant else controller["name"]
    layout.say(console, f"{name}\n{controller['summary']}\n{controller['source']}")
    if not controller["params"]:
        layout.say(console, "It has no parameters.")
        return
    layout.say(console, "\nSet in a flow's `params`; defaults of profile rfc.\n\n")
    table = layout.plain()
    for head in ("parameter", "default", "range", "what"):
        table.add_column(head, overflow="fold")
    for p in controller["params"]:
        table.add_row(*map(Text, parameter(p)))
    console.print(table)


def parameter(p: dict[str, Any]) -> tuple[str, str, str, str]:
    """Name, default with unit, range and meaning of a parameter."""
    doc = p["doc"] + (f"; no effect {p['no_effect']}" if "no_effect" in p else "")
    doc += f"; the encoder's {p['follows']} unless given" if "follows" in p else ""
    match p["kind"]:
        case "switch":
            return p["name"], "true" if p["default"] else "false", "true or false", doc
        case "choice":
            return p["name"], p["default"], ", ".join(p["names"]), doc
    unit = "" if p["unit"] == "1" else f" {p['unit']}"
    whole = ", whole" if p["kind"] == "whole" else ""
    default, minimum, maximum = (figures(p[key], 6) for key in ("default", "min", "max"))
    return p["name"], f"{default}{unit}", f"{minimum} to {maximum}{whole}", doc
