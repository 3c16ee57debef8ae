"""`paceline explore`: the playground, in the browser of this host."""

from __future__ import annotations

import os
import shutil
import sys
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from paceline import playground
from paceline.cli import completing
from paceline.cli.options import Seed, Set, span
from paceline.cli.run import text_of_input
from paceline.errors import PacelineError, StorageError
from paceline.files.package_data import find
from paceline.messages.argument_names import meant
from paceline.messages.warn import warn
from paceline.playground.server import PageServer
from paceline.scenarios.scenario import ScenarioLike, assignments, load
from paceline.tables import layout

_STEP_S = 0.2


def explore(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|PRESET]",
            autocompletion=completing.preset,
            help="Scenario file (TOML), - for standard input, or a preset of --list. Default: the first preset.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs, each with its own seed.")] = 1,
    seed: Seed = None,
    set_: Set = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address without opening a browser.")
    ] = False,
    duration: Annotated[
        str,
        typer.Option("--for", metavar="SPAN", help="Duration. Default: until Ctrl-C.", show_default=False),
    ] = "",
    presets: Annotated[bool, typer.Option("--list", help="List the presets and exit.")] = False,
) -> None:
    """Open the playground: a scenario in the browser, whose curves follow as you move its values.

    The page runs this simulator itself. It is served to this host alone, at a secret address, and loads nothing from
    elsewhere. Its address holds the scenario, after the "#".

    \b
    Examples:
      paceline explore
      paceline explore examples/coffee-shop.toml --runs 5
      paceline explore --list
      paceline explore examples/rate-trace.toml --no-open
    """
    if presets:
        _list()
        return
    changes = assignments(set_ or []) | ({} if seed is None else {"seed": str(seed)})
    until_s = span(duration, "--for") if duration else None
    fragment = _fragment(what, runs, changes)
    page = playground.page()
    if page is None:
        raise StorageError(missing(_clone()))
    try:
        server = PageServer(page.read_bytes(), fragment)
    except OSError as error:
        raise StorageError(f"the playground cannot be served: {error.strerror or error}") from error
    with server.running():
        _open(server, no_open)
        end = None if until_s is None else time.monotonic() + until_s
        while end is None or time.monotonic() < end:
            time.sleep(_STEP_S if end is None else max(0.0, min(_STEP_S, end - time.monotonic())))


def _list() -> None:
    from rich.text import Text

    console = layout.stdout()
    table = layout.plain()
    for head in ("preset", "question"):
        table.add_column(head, overflow="fold")
    for one in playground.presets().values():
        table.add_row(one.name, Text(one.question))
    console.print(table)
    layout.say(console, "\nOpen one: paceline explore NAME")


def _fragment(what: str | None, runs: int, changes: dict[str, str]) -> str:
    """The fragment after the address's "#". Raises PacelineError for what is neither file nor preset, and as a run of
    the file would."""
    if what is None:
        if changes:
            raise PacelineError("--set and --seed change a scenario: name its file, or a preset of --list")
        return playground.of_page(runs)
    if what == "-":
        return _of_scenario(_changed(text_of_input(), changes), runs)
    if not Path(find(what)).exists() and not what.endswith(".toml"):
        known = playground.presets()
        if what not in known:
            raise PacelineError(
                f'"{what}" is neither a file nor a preset{meant(what, known)}; `paceline explore --list` lists the '
                "presets"
            )
        if not changes:
            return playground.of_preset(what, runs)
        return _of_scenario(load(known[what].file, changes), runs)
    return _of_scenario(_changed(Path(what), changes), runs)


def _changed(scenario: ScenarioLike, changes: dict[str, str]) -> ScenarioLike:
    """The scenario with its values replaced; the original if there are none."""
    return load(scenario, changes) if changes else scenario


def _of_scenario(scenario: ScenarioLike, runs: int) -> str:
    """A scenario's fragment, without its traces if they are too long for a link."""
    try:
        return playground.link(scenario, runs=runs)
    except playground.TooLongError as error:
        if not error.traces:
            raise
        said = f"the address holds no more than {playground.LONGEST} characters: drop onto the page"
        warn(f"{said} {', '.join(error.traces)}")
        return playground.link(scenario, runs=runs, traces=False)


def _open(server: PageServer, no_open: bool) -> None:
    whole = server.address + (f"#{server.fragment}" if server.fragment else "")
    if no_open:
        print(whole, flush=True)
    elif _has_browser() and webbrowser.open(server.opening):
        said = f"the playground is open, from {server.address}; Ctrl-C ends"
        print(f"paceline: {said}", file=sys.stderr, flush=True)
    else:
        said = "no browser could be opened here; open this in one, Ctrl-C ends:"
        print(f"paceline: {said}\n{whole}", file=sys.stderr, flush=True)


def _has_browser() -> bool:
    """Whether a graphical browser may exist: one in a terminal has no scripts."""
    if sys.platform in ("win32", "darwin") or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _clone() -> Path | None:
    """The clone that this runs in, from its sources or from its environment .venv; None if there is none."""
    for root in (Path(__file__).resolve().parents[3], Path(sys.prefix).parent):
        if all(root.joinpath(name).is_dir() for name in ("crates", "papers", "python")):
            return root
    return None


def missing(clone: Path | None) -> str:
    """What to do if the page was not built."""
    if clone is None:
        return (
            "this package was built without the playground: install a wheel that has it, as those on PyPI have, or "
            "build it in a clone"
        )
    lacking = [f"`{program}`" for program in ("node", "npm") if shutil.which(program) is None]
    also = f" ({' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not there)" if lacking else ""
    build, command = clone / "web" / "build", clone / "paceline"
    return (
        f"the playground is not built: install node 20 or newer and npm{also}, call `rustup target add "
        f"wasm32-unknown-unknown`, then {build}; `{command} explore` calls that by itself"
    )
