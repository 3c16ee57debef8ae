"""`paceline kernel-cc`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from paceline.cli.options import AsJson
from paceline.errors import PacelineError
from paceline.live import kernel_cc as controls
from paceline.tables import layout
from paceline.tables.layout import Column, Layout


def kernel_cc(
    action: Annotated[str, typer.Argument(metavar="load|unload|list", help="Action.", show_default=False)],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="vegas, veno, or your own program: FILE.c to load, its TCP name to unload.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load TCP Vegas or TCP Veno into this host's kernel, as eBPF programs.

    Every program can then use the congestion controls pl_vegas and pl_veno, until you unload them or reboot. It
    needs root, clang, bpftool and Linux 5.13 or newer.

    \b
    Examples:
      paceline kernel-cc load vegas
      paceline kernel-cc list
      paceline kernel-cc unload vegas
    """
    if action not in ("load", "unload", "list"):
        raise PacelineError(f'"{action}" must be load, unload or list')
    if (name is None) != (action == "list"):
        wanted = "takes no NAME" if action == "list" else "takes a NAME: vegas, veno, or one of your own"
        raise PacelineError(f"paceline kernel-cc {action} {wanted}")
    if name is None:
        _list(as_json)
        return
    done = controls.load(name) if action == "load" else controls.unload(name)
    if as_json:
        print(json.dumps({action: done.name, "map_id": done.map_id}))
        return
    console = layout.stdout()
    if action == "load":
        layout.say(console, f"{done.name} is loaded, until: paceline kernel-cc unload {name_of(name, done)}")
        layout.say(console, f"paceline send HOST --cc kernel:{done.name}")
    else:
        layout.say(console, f"{done.name} is unloaded; connections that use it keep it until they end.")


def name_of(requested: str, done: controls.Loaded) -> str:
    """The user's name for what was loaded."""
    return requested if controls.known(requested) == done.name else done.name


def _list(as_json: bool) -> None:
    """Lists loaded eBPF programs, the kernel's own congestion controls, and what can be loaded."""
    there = controls.loaded()
    names = [one.name for one in there]
    own = [name for name in controls.available() if name not in names]
    more = [name for name in controls.programs() if controls.known(name) not in names]
    if as_json:
        listed = {
            "loaded": [{"name": one.name, "map_id": one.map_id} for one in there],
            "kernel": own,
            "not_loaded": more,
            "programs": str(controls.folder()),
        }
        print(json.dumps(listed, indent=2))
        return
    rows = [
        *((one.name, f"eBPF program, map {one.map_id}") for one in there),
        *((name, "the kernel's own") for name in own),
        *((controls.known(name), f"not loaded: paceline kernel-cc load {name}") for name in more),
    ]
    heads = ("TCP name", "what")
    columns = [Column(head, [row[n] for row in rows], right=False) for n, head in enumerate(heads)]
    console = layout.stdout()
    console.print(Layout("", columns).fitted(console.width))
    layout.say(console, f"\nThe programs lie in {controls.folder()}")
