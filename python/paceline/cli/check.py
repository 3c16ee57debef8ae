"""`paceline check`: scenarios, campaigns, and the files of `paceline path`."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from paceline import campaign, files, paths
from paceline.cli.options import AsJson
from paceline.cli.run import read
from paceline.errors import PacelineError, PacelineWarning
from paceline.scenario import is_campaign, is_path, load


@dataclass
class Found:
    """What is to be said of a file, a line each."""

    file: str
    kind: str
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    exit_code: int = 0


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Scenario, campaign or path files (TOML), or - for a scenario on standard input.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check scenario, campaign and path files without running them.

    An error is what a run would refuse. A warning is of what has no effect, or hardly the one that is meant: a run goes
    on. With errors the exit code is that of a run, 2; with warnings alone it is 0. A file of links without `flow` and
    `duration` is a path, as `paceline path` takes it.

    \b
    Examples:
      paceline check examples/coffee-shop.toml
      paceline check examples/*.toml examples/campaigns/*.toml
    """
    found = [look(path) for path in paths]
    if as_json:
        told = [
            {"file": one.file, "kind": one.kind, "errors": one.errors, "warnings": one.warnings}
            for one in found
        ]
        print(json.dumps({"files": told, "versions": files.versions()}, indent=2, ensure_ascii=False))
    else:
        for one in found:
            for kind, texts in (("error", one.errors), ("warning", one.warnings)):
                for text in texts:
                    print(f"{kind}: {text}")
        errors, warned = sum(len(one.errors) for one in found), sum(len(one.warnings) for one in found)
        for one in found:
            if one.kind == "path":
                print(f"{one.file}: a path, for `paceline path`; a scenario has `duration` and `flow` too")
        print(f"{_many(len(found), 'file')}: {_many(errors, 'error')}, {_many(warned, 'warning')}")
    if code := max(one.exit_code for one in found):
        sys.stdout.flush()
        raise typer.Exit(code)


def look(path: Path) -> Found:
    """Reads a file as a run of it would."""
    kind = "campaign" if is_campaign(path) else "path" if is_path(path) else "scenario"
    found = Found(str(path), kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        try:
            match kind:
                case "campaign":
                    campaign.read(path)
                case "path":
                    paths.check(path)
                case _:
                    load(read(path))
        except PacelineError as error:
            found.errors = str(error).splitlines()
            found.exit_code = getattr(error, "exit_code", 2)
    # the scenarios of a campaign say it for each of its schemes
    found.warnings = list(dict.fromkeys(str(warning.message) for warning in caught))
    return found


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
