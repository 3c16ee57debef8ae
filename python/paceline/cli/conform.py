"""`paceline conform`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import completing, documents
from paceline.cli.options import AsJson
from paceline.cli.progress import progress
from paceline.simulate.limits import SEED_LIMIT_S
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.conform import Found

FAILED = 1


def conform(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CC]",
            autocompletion=completing.scheme,
            help="A built-in controller, FILE.py:CLASS, FILE.so:NAME, python:MODULE:CLASS.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="C", help="Run only this check; repeatable.", show_default=False),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=VALUE",
            help="A parameter of the controller; repeatable.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Seeds per check.")] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The first seed.")] = 1,
    limit: Annotated[
        float,
        typer.Option("--limit", metavar="S", help="Seconds after which a seed of a check counts as slow."),
    ] = SEED_LIMIT_S,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for the scenarios of failed checks. Default: out/conform-NAME.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    listing: Annotated[bool, typer.Option("--list", help="List the checks.")] = False,
) -> None:
    """Test a controller against hard conditions: loss, reordering, idle times, tiny and huge paths, silence, ...

    It works for built-in controllers, Python classes and shared libraries. Each failed check writes its scenario, which
    `paceline run` runs. Exit codes: 0 all pass, 1 one fails or is slow, 2 a mistake in the request.

    \b
    Examples:
      paceline conform --list
      paceline conform cubic
      paceline conform examples/controllers/reno_twin.py
      paceline conform vegas --check loss --param alpha=2 --param beta=4
      paceline conform examples/controllers/reno_twin.py --check huge --limit 300
    """
    from paceline import conform as kit
    from paceline import own_controllers
    from paceline.errors import PacelineError

    if listing:
        _list(kit.checks())
        return
    if name is None:
        raise PacelineError(
            "which controller? A built-in one, FILE.py:CLASS or FILE.so; --list lists the checks"
        )
    cc = own_controllers.named(name)
    folder = out or Path("out") / f"conform-{_short(cc)}"
    found: list[Found] = []
    try:
        with progress("conform", "checks") as show:
            kit.run(
                cc,
                checks=check or [],
                runs=runs,
                seed=seed,
                params=_parameters(param or []),
                limit_s=limit,
                each=found.append,
                progress=show,
            )
    finally:  # also on Ctrl-C
        if found:
            written = kit.write(found, folder)
            if as_json:
                documents.say({"cc": cc, "checks": [_entry(one, folder) for one in found]})
            else:
                _show(cc, found, written)
    if not all(one.passes for one in found):
        raise typer.Exit(FAILED)


def _parameters(texts: list[str]) -> dict[str, Any]:
    from paceline.scenarios.scenario import assignments

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {name: value(text) for name, text in assignments(texts).items()}


def _short(cc: str) -> str:
    """A name for a folder: "python:examples/reno.py:Reno" is "reno.py-Reno"."""
    return Path(cc.partition(":")[2] or cc).name.replace(":", "-")


def _list(checks: dict[str, str]) -> None:
    from rich.text import Text

    table = layout.plain()
    for head in ("check", "asks"):
        table.add_column(head, overflow="fold")
    for name, asks in checks.items():
        table.add_row(Text(name), Text(asks))
    layout.stdout().print(table)


def _verdict(one: Found) -> str:
    if one.wrong:
        return "fail"
    if one.slow:
        return "slow"
    return "left out" if one.skipped else "pass"


def _show(cc: str, found: list[Found], written: list[Path]) -> None:
    from rich.text import Text

    console = layout.stdout()
    table = layout.plain()
    for head in ("check", "verdict", "asks"):
        table.add_column(head, overflow="fold")
    for one in found:
        table.add_row(Text(one.check), Text(_verdict(one)), Text(one.skipped or one.asks))
    console.print(table)
    files = {path.stem: path for path in written}
    for one in (one for one in found if not one.passes):
        failures = one.wrong or one.slow
        seed, words = next(iter(failures.items()))
        layout.say(
            console,
            f"\n{one.check}, seed{'s' if len(failures) > 1 else ''} {', '.join(map(str, failures))}: {words}",
        )
        again = (
            ["paceline", "run", str(files[one.check]), "--seed", str(seed)]
            if one.check in files
            else ["paceline", "conform", cc, "--check", one.check, "--runs", "1", "--seed", str(seed)]
        )
        layout.say(console, f"  {shlex.join(again)}")
    counts = Counter(map(_verdict, found))
    shown = [word for word in ("pass", "fail", "slow", "left out") if word != "slow" or counts[word]]
    layout.say(console, f"\n{cc}: {', '.join(f'{counts[word]} {word}' for word in shown)}")


def _entry(one: Found, folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {"check": one.check, "verdict": _verdict(one), "asks": one.asks}
    if one.skipped:
        entry["left_out"] = one.skipped
    for key, failures in (("wrong", one.wrong), ("slow", one.slow)):
        if failures:
            entry[key] = [{"seed": seed, "what": words} for seed, words in failures.items()]
    if not one.passes and one.scenario:
        entry["scenario"] = str(folder / f"{one.check}.toml")
    return entry
