"""Logs are known by what they begin with, and what is none is told what it was taken for."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.qlogs import logs_in

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
