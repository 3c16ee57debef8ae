"""The command line as a user has it: another process, the real simulator."""

from __future__ import annotations

import functools
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

import screen
from needs import require
from paceline.errors import InternalError
from paceline.quantities import quantity

SMALL = """
name = "small"
duration = "5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.media]
cc = "vegas"
[flow.media.app]
kind = "stream"
media_rate = "500 kbit/s"
length = "4 s"
[flow.bulk]
cc = "newreno"
start = { uniform = ["0 s", "1 s"] }
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


def paceline(*arguments: object) -> Done:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "paceline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def here() -> Command:
    """The command in this process, which saves half a second each time."""
    return functools.partial(screen.paceline, COLUMNS="120", NO_COLOR="1")


def refused(done: Done, *words: str, code: int = 2) -> None:
    """The command said what is wrong, in a few lines on stderr, and nothing on stdout."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert 0 < len(done.stderr.splitlines()) <= 8
    for word in words:
        assert word in done.stderr


def piped(text: bytes) -> Done:
    """`paceline run - --json` with this on standard input."""
    command = [sys.executable, "-m", "paceline", "run", "-", "--json"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    return Done(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_scenario_may_come_from_standard_input(small: Path) -> None:
    done = piped(small.read_bytes())
    assert done.returncode == 0, done.stderr
    assert (
        json.loads(done.stdout)["flows"]
        == json.loads(screen.paceline("run", small, "--json").stdout)["flows"]
    )
    for text, *words in (
        (small.read_bytes() + b"\nnosuchkey = 1\n", "standard input:", "nosuchkey"),
        (b"\xff\xfe", "standard input is not text"),
        (b"", "standard input", "duration"),
    ):
        refused(screen.paceline("run", "-", "--json", stdin=text), *words)


@pytest.mark.parametrize("command", ["sweep", "compare"])
def test_standard_input_is_swept_and_compared(command: str, small: Path, tmp_path: Path) -> None:
    vary = ["--vary", "flow.bulk.cc=newreno,vegas", "--runs", "2", "--json"]
    nameless = re.sub(rb"^name = .*\n", b"", small.read_bytes(), flags=re.MULTILINE)
    done = screen.paceline(command, "-", *vary, where=tmp_path, stdin=nameless)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/sweep-stdin/manifest.json").is_file() == (command == "sweep")
    assert "flow.bulk.cc" in done.stdout or "newreno" in done.stdout


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "x.toml", "--controller", "vegas"), "--set flow.NAME.cc=vegas"),
        (("run", "x.toml", "--controller=lda-plus"), "--set flow.NAME.cc=lda-plus"),
        (("run", "x.toml", "--cc"), "--set flow.NAME.cc=vegas"),
        (("emulate", "x.toml", "--cc", "vegas"), "--set flow.NAME.cc=vegas"),
        (("compare", "x.toml", "--cc", "vegas,cubic"), "--vary flow.NAME.cc=vegas,cubic"),
        (("send", "localhost", "--controller", "vegas"), "--cc"),
        (("path", "lte", "--access-point", "voap"), "--algorithm"),
    ],
)
def test_an_option_of_another_command_is_answered_with_this_ones(
    words: tuple[str, ...], meant: str, here: Command
) -> None:
    refused(here(*words), f"(did you mean {meant}?)")


def test_json_is_one_document_and_nothing_else(small: Path) -> None:
    done = paceline("run", small, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["seed"] == 1
    assert {f["flow"] for f in found["flows"]} == {"media", "bulk"}
    assert {"goodput_bps", "packets_sent", "rtt_p95_s", "cwnd_mean_packets"} <= found["flows"][0].keys()
    assert {"fill_s", "late_share", "stalls"} <= found["streams"][0].keys()
    assert {"mean_packets", "sd_bytes", "drops", "utilisation"} <= found["queues"][0].keys()
    assert 0 < found["groups"][0]["jain"] <= 1
    assert found["versions"]["paceline"]


def test_json_of_several_runs_has_intervals(here: Command, small: Path) -> None:
    found = json.loads(here("run", small, "--json", "--runs", 10, "--seed", 9).stdout)
    assert found["seeds"] == list(range(9, 19))
    goodput = next(f for f in found["flows"] if f["flow"] == "bulk")["goodput_bps"]
    assert goodput["n"] == 10
    assert goodput["low"] < goodput["mean"] < goodput["high"]
    values = [next(f for f in run["flows"] if f["flow"] == "bulk")["goodput_bps"] for run in found["runs"]]
    assert goodput["mean"] == pytest.approx(sum(values) / 10)


def test_json_of_a_sweep_has_each_point_as_its_runs_have_it(
    here: Command, small: Path, tmp_path: Path
) -> None:
    vary = (
        "--vary",
        "flow.bulk.cc=newreno,cubic",
        "--vary",
        "duration=4 s,5 s",
        "--runs",
        3,
        "--out",
        tmp_path / "out",
    )
    done = here("sweep", small, *vary, "--set", "flow.bulk.count=2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["name"], found["seeds"], found["confidence"]) == ("small", [1, 2, 3], 0.95)
    assert [point["at"] for point in found["points"]] == [
        {"flow.bulk.cc": cc, "duration": time} for cc in ("newreno", "cubic") for time in ("4 s", "5 s")
    ]
    settings = ("--set", "flow.bulk.cc=cubic", "--set", "flow.bulk.count=2")
    alone = json.loads(here("run", small, *settings, "--runs", 3, "--json").stdout)
    last = found["points"][-1]
    assert last.keys() - {"at"} == alone.keys() - {
        "name",
        "seeds",
        "confidence",
        "versions",
        "runs",
        "notices",
    }
    for table in ("queues", "groups", "run"):
        assert last[table] == alone[table], table
    (stream,) = alone["streams"]
    assert last["streams"] == [{k: v for k, v in stream.items() if k != "instance"}]
    media, bulk = (next(f for f in last["flows"] if f["flow"] == name) for name in ("media", "bulk"))
    assert media["goodput_bps"] == next(f for f in alone["flows"] if f["flow"] == "media")["goodput_bps"]
    assert bulk["goodput_bps"]["n"] == 3, "instances are not independent"
    means = [sum(f["goodput_bps"] for f in run["flows"] if f["flow"] == "bulk") / 2 for run in alone["runs"]]
    assert bulk["goodput_bps"]["mean"] == pytest.approx(sum(means) / 3)
    assert here("sweep", small, *vary, "--set", "flow.bulk.count=2", "--json").stdout == done.stdout


def test_same_seed_same_bits_whatever_the_workers(here: Command, small: Path, tmp_path: Path) -> None:
    runs = [
        json.loads(here("run", small, "--json", "--runs", 4, "--workers", workers).stdout)
        for workers in (1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0]["runs"][0] != runs[0]["runs"][1]


def test_tables_are_for_people(here: Command, small: Path) -> None:
    one, several = here("run", small), here("run", small, "--runs", 3)
    for done in (one, several):
        assert done.returncode == 0, done.stderr
        for word in ("Flows", "Streams", "Queues", "media", "vegas", "bit/s"):
            assert word in done.stdout
        assert "Groups" not in done.stdout, "groups of one flow say nothing new"
    crowd = here("run", small, "--set", "flow.bulk.count=3").stdout
    groups = crowd[crowd.index("Groups") :]
    assert "Jain index" in groups
    assert "bulk" in groups
    assert "media" not in groups
    assert "±" in several.stdout
    assert "±" not in one.stdout


CALL = """
duration = "10 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.call]
cc = "nada"
app = { kind = "encoder" }
[flow.bulk]
cc = "cubic"
"""


def test_frames_of_a_call_have_a_table_and_are_compared(here: Command, tmp_path: Path) -> None:
    call = tmp_path / "call.toml"
    call.write_text(CALL)
    found = json.loads(here("run", call, "--json").stdout)
    flow = next(f for f in found["flows"] if f["flow"] == "call")
    for runs in (1, 2):
        said = here("run", call, "--runs", runs).stdout
        frames = said[said.index("Frames") : said.index("Queues")]
        assert "bulk" not in frames
        for head in ("complete", "delay 95 %", "freezes"):
            assert head in frames
        assert (str(flow["frames_sent"]) in frames.split()) == (runs == 1)
    vary = ("--vary", "flow.call.cc=nada,lda-plus", "--runs", 2)
    differences = json.loads(here("compare", call, *vary, "--json").stdout)["differences"]
    assert {d["subject"] for d in differences if d["metric"] == "flows.goodput_bps"} == {"bulk", "call"}
    for metric in ("flows.frame_delay_p95_s", "flows.freezes"):
        assert [d["subject"] for d in differences if d["metric"] == metric] == ["call"]
    swept = here("sweep", call, *vary, "--out", tmp_path / "sweep").stdout
    assert "bulk" not in swept[swept.index("Frames") : swept.index("Queues")]


def test_arrivals_have_a_table_where_they_are_measured_and_are_compared(
    here: Command, tmp_path: Path
) -> None:
    home = tmp_path / "home.toml"
    game = '[flow.game]\ncc = "udp"\napp = { kind = "game" }\n'
    home.write_text(CALL.replace('cc = "nada"\napp = { kind = "encoder" }\n', "") + game)
    found = json.loads(here("run", home, "--json").stdout)
    flow = next(f for f in found["flows"] if f["flow"] == "game")
    said = here("run", home).stdout
    arrivals = said[said.index("Arrivals") : said.index("Queues")]
    assert "bulk" not in arrivals
    assert quantity("owd_p95_s", flow["owd_p95_s"]) in arrivals
    for head in ("delay 95 %", "delay 99 %", "jitter", "widest gap"):
        assert head in arrivals
    vary = ("--vary", "flow.bulk.cc=cubic,vegas", "--runs", 2)
    differences = json.loads(here("compare", home, *vary, "--json").stdout)["differences"]
    assert [d["subject"] for d in differences if d["metric"] == "flows.owd_p95_s"] == ["game"]
    swept = here("sweep", home, *vary, "--out", tmp_path / "sweep").stdout
    assert "bulk" not in swept[swept.index("Arrivals") : swept.index("Queues")]


def test_set_repairs_a_file(here: Command, small: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(small.read_text() + "\n[flow.more]\ncc = 'cubik'\nrtt = '-1 s'\n")
    refused(here("run", wrong), "flow.more.rtt")
    refused(here("run", wrong, "--set", "flow.more.rtt=1 s"), "cubik")
    refused(here("run", wrong, "--set", "flow.more.cc=cubic"), "flow.more.rtt")
    done = here("run", wrong, "--json", "--set", "flow.more.cc=cubic", "--set", "flow.more.rtt=1 s")
    assert done.returncode == 0, done.stderr


def test_set_changes_a_value(here: Command, small: Path) -> None:
    found = json.loads(
        here("run", small, "--json", "--set", "flow.media.cc=cubic", "--set", "duration=3 s").stdout
    )
    assert found["duration_s"] == 3
    assert {f["cc"] for f in found["flows"]} == {"cubic", "newreno"}


def test_recordings_and_figures(here: Command, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = here("run", small, "--record", "cwnd,queue,rate,playout", "--record-every", "500ms", "--out", out)
    assert done.returncode == 0, done.stderr
    cwnd = pl.read_parquet(out / "series-cwnd.parquet")
    assert cwnd.columns[:4] == ["seed", "flow", "instance", "time_s"]
    assert json.loads((out / "manifest.json").read_text())["seeds"] == [1]
    done = here("plot", out)
    assert done.returncode == 0, done.stderr
    for kind in ("cwnd", "queue", "rate", "playout"):
        assert (out / f"plot-{kind}.png").stat().st_size > 5000
        assert (out / f"plot-{kind}.svg").read_text().startswith("<?xml")
    done = here("plot", out, out, "--kind", "cwnd", "--out", tmp_path / "both.svg")
    assert done.stdout.strip() == str(tmp_path / "both.svg")


def test_every_gauge_is_recorded_and_drawn(here: Command, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = here("run", small, "--record", "cwnd", "--set", "flow.media.cc=cubic", "--out", out)
    assert done.returncode == 0, done.stderr
    table = pl.read_parquet(out / "series-cwnd.parquet")
    has = table.group_by("flow").agg(pl.col("w_max_packets").is_not_null().any()).rows()
    assert len(has) > 1
    assert all(known == (flow == "media") for flow, known in has)
    done = here("plot", out, "--kind", "gauges", "--out", tmp_path / "gauges.svg")
    assert done.returncode == 0, done.stderr
    drawn = (tmp_path / "gauges.svg").read_text()
    assert all(name in drawn for name in ("cwnd", "w_max", "srtt"))
    runs = [shutil.copytree(out, tmp_path / str(i)) for i in range(5)]
    done = here("plot", *runs, "--kind", "gauges")
    assert done.returncode != 0
    assert "at most 4" in done.stderr
    # unasked they are left out rather than refused
    done = here("plot", *runs, "--out", tmp_path / "many.svg")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "many.svg"))


def test_nothing_is_recorded_unasked(here: Command, small: Path, tmp_path: Path) -> None:
    here("run", small, "--out", tmp_path / "run")
    assert not list((tmp_path / "run").glob("series-*"))
    refused(here("plot", tmp_path / "run"), "recorded nothing", "--record")
    refused(here("plot", tmp_path / "run", "--kind", "speed"), "no kind of figure")
    refused(here("plot", tmp_path), "not a run directory")


def test_schema_and_controllers(here: Command) -> None:
    schema = json.loads(here("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    listed = json.loads(here("controllers", "--json").stdout)
    assert {"newreno", "vegas", "cubic"} <= {s["name"] for s in listed}
    refused(here("controllers", "LDA+"), "did you mean lda-plus?", "nada")
    assert "did you mean" not in here("controllers", "bbr").stderr
    table = here("controllers").stdout
    assert "scream-ericsson" not in table, "a name of before"
    variants = here("controllers", "scream").stdout
    assert all(
        word in variants for word in ("reduce_jitter", 'variant = "ericsson"', "media_time", "padding")
    )
    assert "vegas" in table
    assert "alpha" in table


@pytest.mark.parametrize("command", ["run", "sweep", "compare", "plot", "model", "schema", "controllers"])
def test_help_has_examples(here: Command, command: str) -> None:
    done = here(command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"paceline {command}" in done.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("duration=-3 s", ["duration", "-3 s"]),
        ("flow.media.ccc=vegas", ["flow.media.ccc", "did you mean `cc`"]),
        ("flow.media.cc=vegsa", ["vegsa", "did you mean `vegas`"]),
        ("flow.media.app.sise=3 B", ["flow.media.app.sise", "of kind `stream`", "`kind`, `media_rate`"]),
        ("flow.medai.cc=vegas", ["flow.medai", "did you mean `media`"]),
        ("link.bottleneck.rate=fast", ["link.bottleneck.rate", "fast"]),
        ("nonsense", ["nonsense", "path=value"]),
    ],
)
def test_mistakes_are_named_and_nothing_starts(
    here: Command, small: Path, tmp_path: Path, change: str, words: list[str]
) -> None:
    refused(here("run", small, "--set", change, "--out", tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


def test_a_bad_point_stops_a_sweep_before_it_starts(here: Command, small: Path, tmp_path: Path) -> None:
    done = here("sweep", small, "--vary", "flow.media.cc=vegas,newrenno", "--out", tmp_path / "out")
    refused(done, "newrenno", "did you mean `newreno`")
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_scenarios(here: Command, tmp_path: Path) -> None:
    refused(here("run", tmp_path / "none.toml"), "none.toml", "No such file")
    refused(here("run", tmp_path), str(tmp_path))
    (tmp_path / "bad.toml").write_text("duration = = 5")
    refused(here("run", tmp_path / "bad.toml"), "bad.toml:1:12")
    (tmp_path / "bytes.toml").write_bytes(b"name = 1\n\xff\xfe")
    refused(here("run", tmp_path / "bytes.toml"), "line 2", "UTF-8")


def test_absurd_options_are_refused(here: Command, small: Path) -> None:
    refused(here("run", small, "--runs", 0), "from 1 to")
    refused(here("run", small, "--workers", -1), "workers")
    refused(here("run", small, "--seed", -1), "seeds")
    refused(here("run", small, "--record", "speed"), "speed")
    refused(here("run", small, "--runs", "many"), "--runs", "whole number")
    refused(here("run", small, "--record-every", "soon"), "--record-every soon", "not a time")
    refused(here("compare", small, "--vary", "flow.media.cc=vegas,cubic", "--runs", 1), "at least 2")
    refused(
        here("compare", small, "--vary", "flow.media.cc=vegas,cubic", "--runs", 2, "--metric", "x"),
        "no metric",
    )


@pytest.mark.parametrize("words", [["run", "FILE", "--json"], ["--help"], ["--version"], ["run", "--help"]])
def test_full_standard_output(small: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "paceline", *(str(small) if word == "FILE" else word for word in words)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_reader_who_leaves_early(small: Path) -> None:
    script = f'"{sys.executable}" -m paceline schema | head -n 1'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    require("tmpfs")
    where = tmp_path / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", where], check=True)
    yield where
    subprocess.run(["umount", where], check=True)


def test_a_full_disk_keeps_what_has_finished(here: Command, small: Path, tiny_disk: Path) -> None:
    out = tiny_disk / "sweep"
    vary = ("--vary", "flow.media.cc=vegas,newreno", "--runs", 20, "--out", out)
    refused(here("sweep", small, *vary), "No space left on device", code=1)
    kept = list((out / "runs").glob("*.json"))
    assert kept
    for path in kept:
        json.loads(path.read_text())
    assert not list((out / "runs").glob(".*"))
    refused(here("run", small, "--record", "cwnd,queue", "--out", tiny_disk / "run"), "No space left", code=1)


def test_an_unwritable_place(here: Command, small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(here("run", small, "--out", tmp_path / "file" / "out"), "file", code=1)
    refused(
        here("sweep", small, "--vary", "flow.media.cc=vegas", "--out", "/proc/none/out"),
        "/proc/none",
        code=1,
    )


def test_compare_says_which_differences_are_real(here: Command, small: Path, tmp_path: Path) -> None:
    vary = ("--vary", "flow.media.cc=newreno,vegas", "--runs", 5)
    done = here("compare", small, *vary, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "after Holm's correction" in done.stdout
    assert (tmp_path / "out" / "differences.csv").exists()
    found = json.loads(here("compare", small, *vary, "--json", "--metric", "goodput_bps").stdout)
    assert {d["metric"] for d in found["differences"]} == {"flows.goodput_bps"}
    assert all(d["n"] == 5 for d in found["differences"])


def test_an_interrupted_sweep_keeps_its_runs_and_resumes_to_the_same_bits(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(
        SMALL.replace('duration = "5 s"', 'duration = "300 s"').replace("2 Mbit/s", "20 Mbit/s")
    )
    options = ["sweep", str(scenario), "--vary", "flow.media.cc=vegas,newreno", "--runs", "8"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert paceline(*options, "--out", whole).returncode == 0

    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", *options, "--out", str(cut), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while len(list((cut / "runs").glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    kept = list((cut / "runs").glob("*.json"))
    assert process.returncode == 130, stderr
    assert "same command again" in stderr
    assert "Traceback" not in stderr
    assert 2 <= len(kept) < 16
    for path in kept:
        json.loads(path.read_text())

    before = {path: path.stat().st_mtime_ns for path in kept}
    assert paceline(*options, "--out", cut).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == before
    for table in sorted(whole.glob("*.parquet")) + sorted(whole.glob("*.csv")):
        assert (cut / table.name).read_bytes() == table.read_bytes(), table.name


def test_a_run_that_heeds_nothing_does_not_keep_the_command_from_ending(tmp_path: Path, small: Path) -> None:
    program = tmp_path / "stuck.py"
    program.write_text(
        "import sys, time\n"
        "from paceline import _core, cli\n"
        "from paceline.simulate import workers\n"
        "workers._GRACE_S = 0.5\n"
        "def stuck(*_):\n"
        "    print('running', file=sys.__stdout__, flush=True)\n"
        "    time.sleep(60)\n"
        "_core.run = stuck\n"
        f"sys.argv = ['paceline', 'run', {str(small)!r}]\n"
        "cli.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.terminate()
    try:
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stderr == "paceline: Stopped before a run had finished.\n"


def test_a_defect_asks_for_a_report(here: Command, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paceline import _core

    def broken(*_: object) -> None:
        raise InternalError("Paceline has a defect: x. Please report it with the scenario `s` and seed 1.")

    monkeypatch.setattr(_core, "run", broken)
    refused(here("run", small), "Please report it", code=1)


def test_a_run_leaves_foreign_directories_alone(small: Path, tmp_path: Path) -> None:
    full = tmp_path / "thesis"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    done = paceline("run", small, "--out", full)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty and holds no run" in " ".join(done.stderr.split())
    assert [path.name for path in full.iterdir()] == ["thesis.tex"]


def test_a_recording_needs_somewhere_to_go(small: Path) -> None:
    done = paceline("run", small, "--record", "cwnd")
    assert done.returncode == 2
    assert "--record needs --out DIR" in " ".join(done.stderr.split())
