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
HEAVY = ("polars", "matplotlib", "numpy", "jinja2", "rich.console")


def imported(*words: str, **environment: str) -> list[str]:
    """Which heavy libraries the command line has imported in the end."""
    code = (
        "import sys\n"
        f"sys.argv = ['paceline', *{list(words)}]\n"
        "from paceline.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        f"    print('imported:', *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stderr.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()], ids=" ".join)
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert imported(*words) == []


def test_the_completion_of_a_command_imports_no_command() -> None:
    shell = {"_PACELINE_COMPLETE": "complete_bash", "COMP_WORDS": "paceline ", "COMP_CWORD": "1"}
    assert imported(**shell) == []


def test_the_check_sees_what_is_imported() -> None:
    assert "polars" in imported("run", "--help")


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
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_package_has_what_it_says() -> None:
    code = (
        "import paceline, sys\n"
        "assert 'polars' not in sys.modules\n"
        "assert set(paceline.__all__) <= set(dir(paceline))\n"
        "import paceline.sweeping, paceline.models, paceline.running\n"
        "for name in paceline.__all__:\n    getattr(paceline, name)\n"
        "assert callable(paceline.sweep) and callable(paceline.run) and callable(paceline.emulate)\n"
        "assert paceline.emulate is not paceline.run\n"
        "from paceline import *\n"
        "assert not hasattr(paceline, 'nothing')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
