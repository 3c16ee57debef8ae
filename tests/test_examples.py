"""What a user has who installed the package and has no clone: examples, a scenario to begin with, the dissector."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import paceline
from paceline import _core, campaign, cli
from paceline.errors import PacelineError, StorageError
from paceline.files import package_data
from paceline.scenarios import examples

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(paceline.__file__).resolve().parent
FOLDERS = ("papers", "suites", "examples", "kernel-cc", "tools", "web/presets")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the package as a wheel installs it: what it carries in it, no clone beside."""
    where = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, where / "paceline", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    library = Path(_core.__file__)
    (where / "paceline" / library.name).symlink_to(library)
    for name in FOLDERS:
        if not (where / "paceline" / name).exists():
            shutil.copytree(package_data.folder(name), where / "paceline" / name)
    return where


class Installed:
    """The command line of an installed package, in an empty folder."""

    def __init__(self, site: Path, here: Path) -> None:
        self.here = here
        self._environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "80"}

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [sys.executable, "-m", "paceline", *words],
            cwd=self.here,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran


@pytest.fixture
def installed(site: Path, tmp_path: Path) -> Installed:
    return Installed(site, tmp_path)


def test_a_command_takes_examples_from_anywhere(installed: Installed) -> None:
    assert installed("run", "examples/loss.toml").stdout.startswith("loss: seed 1")
    installed("run", "examples/rate-trace.toml", "--set", "duration=2 s")
    installed("campaign", "examples/campaigns/wide-area.toml", "--tests", "1", "--set", "duration=2 s")
    assert "no such" in installed("run", "examples/nothing.toml", code=2).stderr.lower()
    # A message names the file as it was asked for, not where the package lies.
    wrong = installed("run", "examples/loss.toml", "--set", "flow.film.cc=vegsa", code=2).stderr
    assert wrong.startswith("paceline: examples/loss.toml: ")
    wrong = installed("campaign", "examples/campaigns/wide-area.toml", "--set", "duration=2 x", code=2).stderr
    assert wrong.startswith("paceline: examples/")


def test_what_the_user_has_comes_before_what_the_package_has(installed: Installed) -> None:
    installed("examples", "loss", "--out", "examples/loss.toml")
    mine = installed.here / "examples/loss.toml"
    mine.write_text("seed = 17\n" + mine.read_text())
    assert "seed 17" in installed("run", "examples/loss.toml").stdout


def test_the_list_has_every_example_and_the_first_sentence_of_each(installed: Installed) -> None:
    said = installed("examples").stdout
    shelf = package_data.folder("examples")
    for path in shelf.rglob("*.toml"):
        name = path.relative_to(shelf).with_suffix("").as_posix()
        assert re.search(rf"^{name}  ", said, flags=re.MULTILINE), name
    flat = " ".join(said.split())
    assert "coffee-shop A film, some browsing and a download share the access line of a coffee shop." in flat
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", examples.examples())
def test_an_example_says_in_a_sentence_what_it_shows(name: str) -> None:
    text = examples.examples()[name]
    assert 20 <= len(text) <= 140, text
    assert text.endswith("."), "a sentence ends"
    assert "docs/" not in text, "a user of the package has no such file"


def test_the_first_sentence_of_a_file() -> None:
    assert (
        examples.sentence("# A thing\n# and another. More of it.\n\n# Not this.\nduration = 1\n")
        == "A thing and another."
    )
    assert examples.sentence("# Links at 2.5 Mbit/s.\n") == "Links at 2.5 Mbit/s."


@pytest.mark.parametrize("name", examples.examples())
def test_a_copy_has_all_that_it_takes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = examples.copy_example(name, Path("mine/copy.toml"))
    assert written[0] == Path("mine/copy.toml")
    there = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == set(written), "nothing but what is said, and nothing outside of the folder"
    if "scheme" in tomllib.loads(written[0].read_text()):
        assert campaign.read(written[0]).points
    else:
        assert paceline.load(written[0]).duration_s > 0


def test_a_copy_goes_where_its_name_says_and_replaces_nothing(installed: Installed) -> None:
    said = installed("examples", "campaigns/wide-area").stdout
    assert said == "Written to campaigns/wide-area.toml, campaigns/one-flow.toml.\n"
    # also where only a file that comes with it is there already
    scenario, copy = (installed.here / "campaigns" / f"{name}.toml" for name in ("one-flow", "wide-area"))
    scenario.write_text("mine")
    copy.unlink()
    failed = installed("examples", "campaigns/wide-area.toml", code=2)
    assert failed.stderr == "paceline: campaigns/one-flow.toml exists already: --force replaces it\n"
    assert not copy.exists()
    assert scenario.read_text() == "mine"
    installed("examples", "campaigns/wide-area", "--force")
    assert scenario.read_text() != "mine"
    installed("campaign", "campaigns/wide-area.toml", "--tests", "1", "--set", "duration=2 s")


def test_a_wrong_name_gets_the_right_one(installed: Installed) -> None:
    assert "did you mean coffee-shop?" in installed("examples", "cofee-shop", code=2).stderr
    assert "lists all" in installed("examples", "zzz", code=2).stderr
    assert "which example?" in installed("examples", "--out", "a.toml", code=2).stderr


def test_a_scenario_to_begin_with_runs_as_it_is_and_as_it_could_be(installed: Installed) -> None:
    said = installed("init", "sofa").stdout
    assert said.startswith("Written to sofa.toml.")
    file = installed.here / "sofa.toml"
    text = file.read_text()
    assert text.startswith("#:schema ./paceline.schema.json\n")
    (first,) = re.findall(r"^  paceline (run sofa\.toml)$", said, flags=re.MULTILINE)
    ran = installed(*first.split()).stdout
    assert {"film", "download"} <= set(ran.split())
    again = installed("init", "sofa.toml", code=2)
    assert again.stderr == "paceline: sofa.toml exists already: --force replaces it\n"
    file.write_text("mine")
    installed("init", "sofa", "--force")
    assert file.read_text() == text
    installed("init")
    assert (installed.here / "scenario.toml").read_text() == text
    (installed.here / "deep").mkdir()
    below = installed("init", "deep/two words").stdout
    assert "paceline run 'deep/two words.toml'" in below
    assert "paceline schema > deep/paceline.schema.json" in below, "where the file looks for it"
    # What stands there as a comment is right as well, alone and together.
    offered = re.compile(r"^# (?=\w+ = )", flags=re.MULTILINE)
    assert len(offered.findall(text)) >= 4
    (installed.here / "all.toml").write_text(offered.sub("", text))
    assert "film" in installed("run", "all.toml").stdout


def test_every_command_that_a_beginning_names_is_one(installed: Installed) -> None:
    said = installed("init").stdout
    commands = re.findall(r"^  paceline (.*?)(?:  +#.*)?$", said, flags=re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = command.partition(" >")[0].split()
        if words[0] != "emulate":
            installed(*words)


def _defaults(text: str) -> Iterator[tuple[str, str, str]]:
    """Table, key and the default that the comment says, of each line that says one."""
    table = ""
    for line in text.splitlines():
        if found := re.match(r"\[([\w.]+)\]", line):
            table = found[1]
        elif found := re.match(r"(?:# )?(\w+) = .*\(default: ([^,)]+)", line):
            yield table, found[1], found[2]


def test_the_defaults_that_a_beginning_says_are_the_programs() -> None:
    text = (PACKAGE / "starter.toml").read_text()
    schema = paceline.schema()
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(text))
    kinds = {kind["properties"]["kind"]["const"]: kind for kind in schema["$defs"]["App"]["oneOf"]}
    tables: dict[str, Any] = {
        "": schema,
        "link.bottleneck": schema["$defs"]["LinkTable"],
        "flow.film": schema["$defs"]["FlowTable"],
        "flow.film.app": kinds["stream"],
        "flow.download": schema["$defs"]["FlowTable"],
    }
    held = 0
    for table, key, said in _defaults(text):
        known = tables[table]["properties"][key]
        if "default" in known:
            assert known["default"] == _value(said), f"{table}.{key}"
            held += 1
    assert held >= 8


def _value(said: str) -> str | int | float:
    """A default as the schema has it."""
    if said == "empty":
        return ""
    if said.endswith(" %"):
        return float(said.removesuffix(" %")) / 100
    return int(said) if said.isdigit() else said


def test_the_dissector_can_be_had_without_a_clone(installed: Installed) -> None:
    assert installed("dissector").stdout == examples.dissector()
    assert "Proto(" in examples.dissector()


def test_a_folder_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package_data, "__file__", str(tmp_path / "a/b/paceline/carried.py"))
    with pytest.raises(StorageError, match="the folder examples is not installed"):
        package_data.folder("examples")
    assert package_data.find("examples/loss.toml") == "examples/loss.toml"


def test_scenarios_are_found_from_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("papers/vegas-streaming/default.toml", "examples/loss.toml"):
        assert Path(package_data.find(name)).is_file()
        mine = tmp_path / name
        mine.parent.mkdir(parents=True)
        mine.touch()
        assert package_data.find(name) == name
    assert package_data.find("papers/vegas-streaming/nothing.toml") == "papers/vegas-streaming/nothing.toml"
    assert package_data.find("../examples/loss.toml") == "../examples/loss.toml"


def test_a_name_that_leads_out_of_the_folder_is_none() -> None:
    with pytest.raises(PacelineError, match="there is no example"):
        examples.copy_example("../papers/voap/home")


def clones_own(text: str) -> set[str]:
    """The files that a text names and only a clone has."""
    words = {word.rstrip(".") for word in re.findall(r"[\w./-]+", text)}
    # The command itself, and one of its commands, are called as scripts in a clone; a page's folder has the
    # two others too.
    elsewhere = {"paceline", "check", "codemeta.json", "CITATION.cff"}
    there = {word for word in words - elsewhere if not word.startswith("/") and (ROOT / word).is_file()}
    return {word for word in there if not word.startswith(("examples/", "papers/"))}


def test_no_help_names_a_file_that_only_a_clone_has(installed: Installed) -> None:
    assert clones_own("see docs/live.md, or examples/loss.toml, with ./paceline.") == {
        "docs/live.md",
        "./paceline",
    }
    for name in ("", *cli.COMMANDS):
        assert not clones_own(installed(*name.split(), "--help").stdout), name


def test_no_message_names_a_file_that_only_a_clone_has() -> None:
    for path in (ROOT / "python/paceline").rglob("*.py"):
        tree = ast.parse(path.read_text())
        # What stands alone is a docstring, for those who read the sources.
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                assert not clones_own(node.value), f"{path.name}:{node.lineno}"
