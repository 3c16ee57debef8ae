"""`paceline examples`, `paceline init` and `paceline dissector`: files that users can copy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import completing
from paceline.errors import PacelineError
from paceline.scenarios import examples as shelf
from paceline.tables import layout

Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def examples(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Example to copy.",
            show_default=False,
            autocompletion=completing.example,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="File for the copy. Default: NAME.toml.", show_default=False
        ),
    ] = None,
    force: Force = False,
) -> None:
    """List the examples, or copy one to change it.

    Every command also takes an example in place, as examples/NAME.toml. A copy includes the files that the example
    names.

    \b
    Examples:
      paceline examples
      paceline examples coffee-shop
      paceline examples campaigns/wide-area --out mine/wide-area.toml
    """
    from rich.text import Text

    if name is None and (out or force):
        raise PacelineError("which example? `paceline examples` lists them")
    console = layout.stdout()
    if name is not None:
        written = shelf.copy_example(name, out, force=force)
        layout.say(console, f"Written to {', '.join(map(str, written))}.")
        return
    table = layout.plain()
    for head in ("example", "what"):
        table.add_column(head, overflow="fold")
    for one, what in shelf.examples().items():
        table.add_row(one, Text(what))
    console.print(table)
    layout.say(
        console,
        "\nRun one: paceline run examples/NAME.toml; a campaign: paceline campaign. "
        "Copy one: paceline examples NAME",
    )


def init(
    name: Annotated[
        str,
        typer.Argument(metavar="[NAME]", help="Name of the scenario. Default: scenario.", show_default=False),
    ] = "scenario",
    force: Force = False,
) -> None:
    """Write a commented scenario to begin with, as NAME.toml.

    Two flows share a link. The keys that people change first are there, each with its meaning, unit and default.

    \b
    Examples:
      paceline init
      paceline init sofa
    """
    path = shelf.begin(name, force=force)
    console = layout.stdout()
    layout.say(console, f"Written to {path}. Next:\n\n")
    file, schema = (shlex.quote(str(one)) for one in (path, path.with_name("paceline.schema.json")))
    commands = {
        f"paceline run {file}": "",
        f"paceline run {file} --runs 10": "with 95 % intervals",
        f"paceline compare {file} --vary flow.film.cc=vegas,cubic": "",
        f"paceline emulate {file}": "in real time, on Linux",
        f"paceline schema > {schema}": "an editor completes keys with it",
    }
    for command, why in commands.items():
        # A command longer than a line stays whole.
        console.print(f"  {command:<42}# {why}" if why else f"  {command}", markup=False, soft_wrap=True)


def dissector() -> None:
    """Print a Wireshark dissector for TFRC over UDP, in Lua.

    \b
    Example, then `wireshark -X lua_script:paceline_tfrc.lua FILE`:
      paceline dissector > paceline_tfrc.lua
    """
    print(shelf.dissector().rstrip())
