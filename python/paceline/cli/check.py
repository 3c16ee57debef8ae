"""`paceline check`: scenarios, campaigns, the files of `paceline path`, and those of papers and suites."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from paceline import files
from paceline.cli import completing
from paceline.cli.options import AsJson
from paceline.cli.run import NAME, text_of_input
from paceline.errors import PacelineError, PacelineWarning, StorageError
from paceline.files.package_data import find, with_requested_names
from paceline.files.paper_folders import FIGURES, READINGS
from paceline.scenarios.scenario import is_campaign, is_of_a_paper, is_path, is_suite, load, parse


@dataclass
class Found:
    """The findings on a file, a line each."""

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
            autocompletion=completing.scenario,
            help="Scenario, campaign or path files (TOML), figures.toml, published.toml and readings.toml of papers, "
            "suite.toml of suites, or - for standard input.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check scenario, campaign, path, paper and suite files without running them.

    An error is something that a run would refuse; the exit code is then 2. A warning is about a setting without the
    effect that it seems to have; the exit code is 0. A file of links without `flow` and `duration` is checked as a
    path.

    \b
    Examples:
      paceline check examples/coffee-shop.toml
      paceline check examples/*.toml examples/campaigns/*.toml
    """
    found = [look(path) for path in paths]
    if as_json:
        entries = [
            {"file": one.file, "kind": one.kind, "errors": one.errors, "warnings": one.warnings}
            for one in found
        ]
        print(json.dumps({"files": entries, "versions": files.versions()}, indent=2, ensure_ascii=False))
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
    """Reads a file as a run would; - is standard input. Raises PacelineError if no command reads it."""
    if str(path) != "-":
        return _checked(path)
    text = text_of_input()
    with _file_of(text) as file:
        kind = _kind(file)
        found = (
            _checked(file)
            if kind in ("campaign", "path")
            else _read("scenario", NAME, lambda: parse(text, name=NAME))
        )
    found.file = "-"
    for said in (found.errors, found.warnings):
        said[:] = [line.replace(file.name, NAME) for line in said]
    return found


def _checked(path: Path) -> Found:
    from paceline import campaign
    from paceline.emulator import paths

    kind = _kind(path)
    reads = {
        "campaign": lambda: campaign.read(path),
        "path": lambda: paths.check(path),
        "paper": lambda: _paper(Path(find(str(path)))),
        "suite": lambda: _suite(Path(find(str(path)))),
        "scenario": lambda: load(path),
    }
    return _read(kind, str(path), reads[kind])


def _kind(path: Path) -> str:
    if is_of_a_paper(path):
        return "paper"
    if is_suite(path):
        return "suite"
    return "campaign" if is_campaign(path) else "path" if is_path(path) else "scenario"


def _read(kind: str, name: str, reads: Callable[[], object]) -> Found:
    """The findings of reading a file."""
    found = Found(name, kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        try:
            reads()
        except PacelineError as error:
            found.errors = with_requested_names(str(error)).splitlines()
            found.exit_code = getattr(error, "exit_code", 2)
    # a campaign repeats its scenarios' warnings for each scheme
    found.warnings = list(dict.fromkeys(str(warning.message) for warning in caught))
    return found


def _paper(file: Path) -> None:
    """Reads a paper's files, and every point of its figures, or of its readings."""
    # `check --help` must not import the page's libraries
    from paceline.papers import loading, rereading
    from paceline.studies import reproduction

    paper = loading.load(str(file.parent))
    if file.name == FIGURES:
        reproduction.plan(paper, 1)
    if file.name == READINGS:
        rereading.plan(paper, 1)


def _suite(file: Path) -> None:
    """Reads a suite, and every point of its cases; all must run with its default subjects."""
    from paceline.studies import reproduction
    from paceline.suite import loading, running

    suite = loading.load(str(file.parent))
    compiled, refused = running.plan(suite, running.subjects_of(suite, []))
    reproduction.plan(compiled, 1)
    if refused:
        raise PacelineError(
            "\n".join(f"{file}: case {case}, {text}: {why}" for (case, text), why in refused.items())
        )


@contextlib.contextmanager
def _file_of(text: str) -> Iterator[Path]:
    """A file with this text, for readers that need a file: in the current folder, so that relative names work."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=".", prefix=".paceline-", suffix=".toml", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            yield Path(Path(file.name).name)
    except OSError as error:
        raise StorageError(
            f"cannot store standard input temporarily in this folder: {error.strerror or error}"
        ) from error


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
