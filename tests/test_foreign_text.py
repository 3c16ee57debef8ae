"""Escapes, newlines and what turns the direction of writing, in names and values of others: none reaches a terminal, a
log, a document or a table as it is."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paceline
from paceline import cli
from paceline.files import table_files
from paceline.messages import streams
from paceline.messages.foreign_text import line, plain
from paceline.tables import consoles, layout
from paceline.tables.layout import Column, Layout

HOSTILE = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202eevil\u2066\x7f\x00"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TEXT = 'duration = "1 s"\n[link.bottleneck]\nrate = {}\ndelay = "10 ms"\n[flow.a]\ncc = {}\n'


def toml(text: str) -> str:
    """A TOML string."""
    return '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'


def printed(*words: str, where: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "paceline", *words], cwd=where, capture_output=True, check=False, timeout=60
    )


@given(st.text())
def test_no_text_has_anything_that_is_obeyed_and_json_stays_the_same(text: str) -> None:
    assert not OBEYED.search(plain(text))
    assert plain(plain(text)) == plain(text)
    assert "\n" not in line(text)
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=2)
    assert json.loads(plain(document)) == {text: [text]}


def test_what_is_plain_stays() -> None:
    for text in ("größer als 日本語 – ±5 µs", 'it\'s "so" \\ 100 %', "two\n\tlines", "e\u0301", ""):
        assert plain(text) == text


@pytest.mark.parametrize("command", ["run", "check", "sweep", "compare"])
def test_a_scenarios_values_reach_stderr_escaped_and_on_their_line(tmp_path: Path, command: str) -> None:
    forged = "x\nerror: forged.toml: nothing is wrong\n"
    (tmp_path / "rate.toml").write_text(TEXT.format(toml(HOSTILE), '"cubic"'))
    (tmp_path / "cc.toml").write_text(TEXT.format('"1 Mbit/s"', toml(forged)))
    more = ["--vary", "flow.a.cc=cubic,vegas"] if command in ("sweep", "compare") else []
    for name in ("rate.toml", "cc.toml"):
        done = printed(command, name, *more, where=tmp_path)
        assert done.returncode == 2
        said = (done.stdout + done.stderr).decode()
        assert name in said
        assert not OBEYED.search(said)
        assert not any(one.startswith("error: forged") for one in said.splitlines())


def test_a_files_name_and_what_a_command_is_told_are_escaped(tmp_path: Path) -> None:
    name = f"a{HOSTILE[:-1]}\nb.toml"
    (tmp_path / name).write_text(TEXT.format('"1 Mbit/s"', '"cubic"'))
    for words in (
        ["check", name],
        ["run", name, "--set", f"x{HOSTILE[:-1]}=1"],
        ["plot", name],
        [HOSTILE[:-1]],
    ):
        done = printed(*words, where=tmp_path)
        assert not OBEYED.search((done.stdout + done.stderr).decode())
    done = printed("plot", "x\npaceline: all is well", where=tmp_path)
    assert not any(one.startswith("paceline: all") for one in done.stderr.decode().splitlines())
    done = printed("check", name, "--json", where=tmp_path)
    assert not OBEYED.search(done.stdout.decode())
    assert json.loads(done.stdout)["files"][0]["file"] == name


def test_results_of_others_are_escaped_in_tables_documents_and_csv(tmp_path: Path) -> None:
    """Names in tables that another made."""
    results = paceline.run(paceline.parse(TEXT.format('"1 Mbit/s"', '"cubic"'), name="small"))
    record = results.records[0]
    record.summary["flows"][0]["flow"] = record.summary["flows"][0]["group"] = f"{HOSTILE}\nforged"
    results.manifest["name"] = f"{HOSTILE}\nforged"
    results.write(tmp_path / "out")
    found = paceline.Results.read(tmp_path / "out")
    assert not OBEYED.search(found.manifest["name"])
    assert "\n" not in found.manifest["name"]
    table_files.write_csv(tmp_path / "x.csv", found.flows)
    text = (tmp_path / "x.csv").read_text()
    assert not OBEYED.search(text)
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["flow"] == f"{plain(HOSTILE)}\nforged"
    for words in (["plot", "out", "cwnd"], ["plot", "out", "--y", "goodput_bps", "--out", "x.svg"]):
        done = printed(*words, where=tmp_path)
        assert not OBEYED.search((done.stdout + done.stderr).decode())


def test_a_cell_makes_no_line_and_colours_are_still_there() -> None:
    into = io.StringIO()
    escaping: Any = streams.EscapingStream(into)
    console = consoles.Plain(file=escaping, force_terminal=True, color_system="standard", width=300)
    cells = [HOSTILE, "a\nforged  1.0"]
    layout.show(console, [Layout(f"title {HOSTILE}", [Column("name", cells)], note=f"note {HOSTILE}")])
    layout.say(console, f"said {HOSTILE}\nmore")
    print(f"printed {HOSTILE}", file=escaping, flush=True)
    shown = into.getvalue()
    assert "\x1b[1m" in shown
    assert not OBEYED.search(re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]|\r", "", shown))
    assert "a\\nforged  1.0" in shown
    assert shown.count("\n") == len(["title", "head", "rule", *cells, "note", "said", "more", "printed"])


def test_every_console_is_one_that_escapes() -> None:
    """Rich's own is made in the door alone, and `main` puts the doors there."""
    package = Path(cli.__file__).resolve().parent.parent
    makes = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"import Console$|[^.\w]Console\(", path.read_text(), re.MULTILINE)
        and "TYPE_CHECKING:\n    from rich.console" not in path.read_text()
    ]
    assert makes == ["consoles.py"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
def test_on_a_terminal_colours_pass_and_what_others_wrote_does_not(tmp_path: Path) -> None:
    (tmp_path / "rate.toml").write_text(TEXT.format(toml(HOSTILE), '"cubic"'))
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "paceline", "run", "rate.toml"],
        cwd=tmp_path, stdout=theirs, stderr=theirs, check=False, timeout=60,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    os.close(ours)
    assert done.returncode == 2
    assert "\\u001b]0;title" in shown
    assert not OBEYED.search(re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]|\r", "", shown))
