"""Logs are known by what they begin with, and what is none is told what it was taken for."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.live.qlog import logs_in

RECORDS = [
    {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "trace": {"vantage_point": {"type": "server"}}},
    *(
        {"time": time, "name": "recovery:metrics_updated", "data": {"congestion_window": 20_000 + time}}
        for time in (0, 10, 20)
    ),
]
LOG = "".join(f"\x1e{json.dumps(record)}\n" for record in RECORDS).encode()


def refused(*words: object) -> str:
    """What the command is refused with."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert (done.exit_code, done.stdout) == (2, ""), done
    return done.stderr


@pytest.mark.parametrize("name", ["unnamed", "trace.txt", "trace.json", "unnamed.gz", "short.sqlog"])
def test_a_log_is_known_by_what_it_begins_with(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_bytes(gzip.compress(LOG) if name.endswith(".gz") else LOG)
    (tmp_path / "beside").write_text("no log")
    assert logs_in(tmp_path) == [log]
    done = CliRunner().invoke(app, ["watch", str(log), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["flows"][0]["flow"] == name.partition(".")[0]
    done = CliRunner().invoke(app, ["plot", str(log), "--kind", "cwnd", "--out", str(tmp_path / "drawn.svg")])
    assert done.output.splitlines() == [str(tmp_path / "drawn.svg")]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("notes", b"", "it is empty"),
        ("notes.txt", b"Dear\x1b[2J reader\nof logs\n", 'taken for text, which begins "Dear [2J reader"'),
        ("a.json", b'{\n"a": 1}\n', "taken for JSON without qlog_version or file_schema in its first 64 KiB"),
        ("b.seq", b'\x1e{"a": 1}\n', "taken for a JSON text sequence without qlog_version"),
        ("c", b"\x7fELF\0\0\1", "taken for a binary file"),
        ("cut.gz", b"\x1f\x8b\x08\0\0", "nothing in it can be read"),
        ("d.events", b"PCLNEV1\n\0\0\0\0", "it is an event log"),
        ("e.pcapng", b"\x0a\x0d\x0d\x0a\0\0", "`paceline call-log` reads"),
        ("f.parquet", b"PAR1\0", "it is a Parquet table"),
        ("manifest.json", b"{}", "it is a manifest: name the run directory, "),
    ],
)
def test_what_is_no_log_is_told_what_it_was_taken_for(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    log, other = tmp_path / "log.sqlog", tmp_path / name
    log.write_bytes(LOG)
    other.write_bytes(content)
    alone = refused("watch", other)
    assert f"{name} is neither a program nor a log: " in alone
    beside = refused("watch", log, other)
    assert f"{name}, beside the log {log}, is none: " in beside
    drawn = refused("plot", other)
    assert f"{name} is no qlog, and has no interval of a gateway" in drawn
    for told in (alone, beside, drawn):
        assert says in told


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of a run, of two folders with a log each, of a capture and of an empty folder."""
    for name in ("run", "one", "two", "none"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    (tmp_path / "one" / "a.sqlog").write_bytes(LOG)
    (tmp_path / "two" / "unnamed").write_bytes(LOG)
    (tmp_path / "c.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a\0\0")
    return tmp_path


def test_a_folder_in_place_of_a_file_is_told_what_in_it_would_do(tree: Path) -> None:
    logs = f"{tree}/one/a.sqlog, {tree}/two/unnamed"
    assert refused("watch", tree).endswith(f"no log in it: name one of {logs}, or the folder that it is in\n")
    for y in ([], ["--y", "goodput_bps"]):
        drawn = refused("plot", tree, *y)
        assert drawn.endswith(
            f"{tree} is not a run directory, and has no log in it; there are {tree}/run, {logs}\n"
        )
    assert refused("plot", tree / "none").endswith("has no log in it (`paceline run` makes one with --out)\n")
    assert f"`paceline plot {tree}/run` draws it" in refused("watch", tree / "run")
    assert f"{tree}/no: there is no such file or folder" in refused("plot", tree / "no")
    assert f"{tree} is a folder: name a file in it, as {tree}/c.pcapng\n" in refused("call-log", tree)


def test_no_more_is_named_than_a_message_has_room_for(tree: Path) -> None:
    for number in range(10):
        (tree / "none" / f"{number}.qlog").write_bytes(LOG)
    assert f"{tree}/none/3.qlog and 8 more, or the folder" in refused("watch", tree)
