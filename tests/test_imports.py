"""What a command imports: libraries that take long only where they are used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paceline import cli

ROOT = Path(__file__).parent.parent
LIGHT = ("annotated_doc", "click", "colorama", "shellingham", "typer", "typing_extensions")
"""What --help and a press of the tabulator may import beside Paceline and the standard library: typer, and what it
stands on in its several versions. NumPy, Polars, matplotlib, Jinja, pydantic and Rich take several times as long."""

ALL_OF_THEM = """
import contextlib, io, os, sys
before = set(sys.modules)
from paceline.cli import COMMANDS, app

def others():
    names = {name.partition(".")[0] for name in set(sys.modules) - before}
    return sorted(names - set(sys.stdlib_module_names) - {"paceline", *LIGHT})

def done(*words, **environment):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        os.environ |= environment
        sys.argv = ["paceline", *words]
        app(prog_name="paceline")
    return out.getvalue()

for name in COMMANDS:
    said = AS
    found = others()
    assert said, name
    if found:
        sys.exit(f"{name}: {found}")
"""


def python(code: str, **environment: str) -> str:
    """What a fresh process prints that runs this code."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def imported(*words: str, **environment: str) -> list[str]:
    """Which modules the command line has imported in the end."""
    code = (
        "import sys\n"
        f"sys.argv = ['paceline', *{list(words)}]\n"
        "from paceline.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print('imported:', *(name for name, module in sys.modules.items() if module is not None))\n"
    )
    return python(code, **environment).splitlines()[-1].split()[1:]


def heavy(modules: list[str]) -> set[str]:
    """Those that take long."""
    return {"polars", "matplotlib", "numpy", "jinja2", "pydantic", "rich"} & set(modules)


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()], ids=" ".join)
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert heavy(imported(*words)) == set()


@pytest.mark.parametrize(
    "how",
    [
        'done(name, "--help")',
        'done(_PACELINE_COMPLETE="complete_bash", COMP_WORDS=f"paceline {name} -", COMP_CWORD="2")',
        'done(_PACELINE_COMPLETE="complete_bash", COMP_WORDS=f"paceline {name} e", COMP_CWORD="2") or "nothing"',
    ],
    ids=["--help", "options", "values"],
)
def test_every_commands_help_and_completion_come_without_libraries(how: str) -> None:
    """One process for all: what one of them had imported would be seen after it."""
    python(f"LIGHT = {LIGHT}\n" + ALL_OF_THEM.replace("AS", how))


def test_a_commands_help_imports_no_other_command() -> None:
    """But for those whose parts it uses."""
    ours = {name for name in imported("sweep", "--help") if name.startswith("paceline.cli.")}
    commands = {f"paceline.cli.{module}" for module in cli.COMMANDS.values()}
    assert ours & commands == {"paceline.cli.sweep", "paceline.cli.run"}


def test_the_completion_of_a_command_imports_no_command() -> None:
    shell = {"_PACELINE_COMPLETE": "complete_bash", "COMP_WORDS": "paceline ", "COMP_CWORD": "1"}
    assert heavy(imported(**shell)) == set()


def test_the_check_sees_what_is_imported() -> None:
    assert {"rich"} <= heavy(imported("controllers"))
    code = ALL_OF_THEM.replace("AS", 'done("controllers", "vegas")')
    with pytest.raises(AssertionError, match=r"init: \[.*'rich'"):
        python(f"LIGHT = {LIGHT}\n" + code)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_list_of_commands_says_what_each_one_says_of_itself(name: str) -> None:
    command = cli.Commands()[name]
    assert command.name == name
    assert cli.first_sentence(name) == " ".join(command.help.split("\n\n")[0].split())


def test_what_the_pages_name_is_there_after_the_import_alone() -> None:
    """Modules too, as `paceline.campaign.run`, and none makes the import slow; `paceline.gym` needs an extra."""
    docs = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "papers").rglob("*.md"),
        *(ROOT / "suites").rglob("*.md"),
    ]
    named = {
        name
        for page in docs
        for name in re.findall(r"(?<![\w./-])paceline((?:\.[A-Za-z]\w*)+)\b(?!/)", page.read_text())
        if not re.search(r"\.(toml|key|json|lua|1|md|py|html|pcapng|pid|conf|h)$|^\.gym\b", name)
    }
    assert {".campaign.run", ".realtime.Emulator"} <= named
    code = (
        "import operator, paceline, sys\n"
        "assert 'polars' not in sys.modules\n"
        f"for name in {sorted(named)}:\n    operator.attrgetter(name[1:])(paceline)\n"
    )
    python(code)


def test_the_package_has_what_it_says() -> None:
    code = (
        "import paceline, sys\n"
        "assert 'polars' not in sys.modules\n"
        "assert set(paceline.__all__) <= set(dir(paceline))\n"
        "import paceline.sweeps.sweep, paceline.models, paceline.simulate.run\n"
        "for name in paceline.__all__:\n    getattr(paceline, name)\n"
        "assert callable(paceline.sweep) and callable(paceline.run) and callable(paceline.emulate)\n"
        "assert paceline.emulate is not paceline.run\n"
        "from paceline import *\n"
        "assert not hasattr(paceline, 'nothing')\n"
    )
    python(code)
