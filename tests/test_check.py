"""What a scenario says to no effect is warned of; what cannot be meant is refused with what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import paceline
import screen
from needs import require
from paceline.emulator import paths

SOUND = """
duration = "2 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
[flow.a]
"""
ODD = SOUND + "ecn = true\n"
UNMARKED = "no queue on its way marks"

Done = subprocess.CompletedProcess[str]


def refused(done: Done, *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    for word in words:
        assert word in done.stderr


@pytest.fixture(name="sound")
def _sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.toml"
    path.write_text(SOUND)
    return path


@pytest.fixture(name="odd")
def _odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.toml"
    path.write_text(ODD)
    return path


def test_what_has_no_effect_is_warned_of(odd: Path, sound: Path) -> None:
    with pytest.warns(paceline.PacelineWarning, match=f"odd.toml:7: flow.a.ecn: {UNMARKED}"):
        assert not paceline.run(odd).flows.is_empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paceline.run(sound, set={"link.bottleneck.queue.kind": "codel"})


def test_what_was_set_is_warned_of_without_a_line(sound: Path) -> None:
    with pytest.warns(paceline.PacelineWarning, match=r"sound.toml: flow.a.stop: `5 s`"):
        paceline.load(sound, {"flow.a.stop": "5 s"})


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "--runs", "2"], ["sweep", "--vary", "flow.a.cc=newreno,cubic", "--runs", "2"]],
)
def test_commands_warn_once_on_stderr(arguments: list[str], odd: Path, tmp_path: Path) -> None:
    first, *rest = arguments
    out = [] if first == "run" else ["--out", tmp_path / "out"]
    done = screen.paceline(first, odd, *rest, *out)
    assert done.returncode == 0
    assert done.stderr.count(UNMARKED) == 1
    assert f"paceline: warning: {odd}:7: flow.a.ecn: " in done.stderr
    assert UNMARKED not in done.stdout


def test_check_tells_errors_and_warnings(odd: Path, sound: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(SOUND.replace("10 Mbit/s", "10 mbit/s") + "ec = true\n")
    done = screen.paceline("check", sound, odd)
    assert (done.returncode, done.stderr) == (0, "")
    warning, last = done.stdout.splitlines()
    assert warning.startswith(f"warning: {odd}:7: flow.a.ecn: {UNMARKED}")
    assert last == "2 files: 0 errors, 1 warning"
    done = screen.paceline("check", odd, wrong, tmp_path / "missing.toml", "--json")
    assert done.returncode == 2
    first, second, third = json.loads(done.stdout)["files"]
    assert (first["errors"], len(first["warnings"])) == ([], 1)
    assert [error.split(": ")[:2] for error in second["errors"]] == [
        [f"{wrong}:4", "link.bottleneck.rate"],
        [f"{wrong}:7", "flow.a.ec"],
    ]
    assert "missing.toml: cannot be read" in third["errors"][0]


def test_what_a_run_is_too_short_for_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text(SOUND + 'app = { kind = "stream", media_rate = "1 Mbit/s", length = "1 min" }\n')
    said = "flow.a.app.length: a medium of 60 s cannot arrive before the run's end, 2 s"
    done = screen.paceline("check", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"warning: {path}:7: {said}")
    with pytest.warns(paceline.PacelineWarning, match=said):
        paceline.load(path)
    done = screen.paceline("run", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("The run ends before streams of `a`") == 1


def test_what_a_run_in_real_time_is_too_short_for_is_said(tmp_path: Path) -> None:
    require("netns")
    path = tmp_path / "short.toml"
    path.write_text(SOUND + 'app = { kind = "ftp", size = "10 MB" }\n')
    done = screen.paceline("emulate", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("flow.a.app.size: `10 MB` cannot arrive before the run's end, 2 s") == 1


def test_check_takes_campaigns_and_standard_input(odd: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text('scenario = "odd.toml"\n[scheme.a]\n[scheme.b]\nset = { "flow.a.cc" = "cubic" }\n')
    done = screen.paceline("check", campaign)
    assert done.returncode == 0
    assert done.stdout.count(UNMARKED) == 1
    campaign.write_text('scenario = "odd.toml"\n[scheme.a]\nset = { "flow.a.cc" = "cubi" }\n')
    done = screen.paceline("check", campaign)
    assert done.returncode == 2
    assert "did you mean `cubic`?" in done.stdout
    # that of the package, where there is none here
    done = screen.paceline("check", "examples/campaigns/wide-area.toml", where=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 file: 0 errors, 0 warnings\n"), done.stdout
    done = screen.paceline("check", "-", stdin=ODD)
    assert done.returncode == 0
    assert done.stdout.startswith("warning: standard input:7: flow.a.ecn: ")
    # a campaign there names scenarios of the current folder
    done = screen.paceline("check", "-", where=tmp_path, stdin=campaign.read_text())
    assert done.returncode == 2
    assert done.stdout.startswith("error: odd.toml: flow.a.cc: `cubi`"), done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"campaign.toml", "odd.toml"}


def test_check_takes_the_files_of_papers(tmp_path: Path) -> None:
    clone = Path(__file__).parents[1]
    done = screen.paceline("check", *sorted((clone / "papers" / "vegas-streaming").glob("*.toml")))
    assert done.returncode == 0, done.stdout
    for name in ("figures.toml", "published.toml", "default.toml"):
        text = (clone / "papers" / "tfrc-veno" / name.replace("default", "validation")).read_text()
        (tmp_path / name.replace("default", "validation")).write_text(text)
    (tmp_path / "figures.toml").write_text((tmp_path / "figures.toml").read_text() + "\nthis = 1\n")
    done = screen.paceline("check", tmp_path / "figures.toml", "--json")
    assert done.returncode == 2
    (found,) = json.loads(done.stdout)["files"]
    assert found["kind"] == "paper"
    assert len(found["errors"]) == 1
    assert "figures.toml" in found["errors"][0]
    for name in ("figures.toml", "published.toml"):
        folder = clone / "papers" / "voap"
        refused(
            screen.paceline("run", folder / name),
            "this file belongs to a paper",
            f"`paceline reproduce {folder}` runs",
        )


@pytest.mark.skipif(sys.platform != "linux", reason="paths are emulated on Linux")
def test_a_path_is_told_from_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "path.toml"
    path.write_text(SOUND.partition("[link")[1] + SOUND.partition("[link")[2].replace("[flow.a]\n", ""))
    refused(screen.paceline("run", path), f"{path}: this is a path", f"`paceline path {path} -- COMMAND...`")
    for wrong, said in (
        ("10 Mbit/s", "a path, for `paceline path`"),
        ("10 mbit/s", "error: standard input:2: link"),
    ):
        text = path.read_text().replace("10 Mbit/s", wrong)
        done = screen.paceline("check", "-", stdin=text)
        assert said in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="paths are emulated on Linux")
def test_check_takes_paths(tmp_path: Path) -> None:
    path = tmp_path / "path.toml"
    path.write_text(SOUND.partition("[link")[1] + SOUND.partition("[link")[2].replace("[flow.a]\n", ""))
    done = screen.paceline("check", path)
    assert (done.returncode, done.stderr) == (0, "")
    first, last = done.stdout.splitlines()
    assert first.startswith(f"{path}: a path, for `paceline path`")
    assert last == "1 file: 0 errors, 0 warnings"
    path.write_text(path.read_text().replace("10 Mbit/s", "10 mbit/s"))
    done = screen.paceline("check", path, "--json")
    assert done.returncode == 2
    (found,) = json.loads(done.stdout)["files"]
    assert found["kind"] == "path"
    assert found["errors"][0].startswith(f"{path}:2: link.bottleneck.rate: ")
    # as a run over it says too
    path.write_text('[link.bottleneck]\nrate = "10 Mbit/s"\nqueue = { kind = "pie", mark_below = 0.2 }\n')
    said = f"{path}:3: link.bottleneck.queue.mark_below: has no effect without `ecn = true`"
    assert screen.paceline("check", path).stdout.startswith(f"warning: {said}")
    with pytest.warns(paceline.PacelineWarning, match=re.escape(said)):
        paths.check(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            SOUND.replace("10 Mbit/s", "10 mbit/s"),
            [":4: link.bottleneck.rate: ", "did you mean `10 Mbit/s`?"],
        ),
        (
            SOUND.replace("[flow.a]", 'queue = { limit = "60 pkts" }\n[flow.a]'),
            ["did you mean `60 packets`?"],
        ),
        (
            SOUND.replace("10 Mbit/s", "10 Mbits/s"),
            [":4: link.bottleneck.rate: ", "did you mean `10 Mbit/s`?"],
        ),
        (SOUND + "[flow.a]\n", [":7: flow.a: ", "a second time, after line 6"]),
        ("seed = 9223372036854775808\n" + SOUND, [":1: seed: ", "from 0 to 9223372036854775807"]),
        ("seed = -1\n" + SOUND, [":1: seed: `-1` must be from 0 to 9223372036854775807"]),
        ("seed = 28446744073709551616\n" + SOUND, [":1: seed: ", "9223372036854775807"]),
        (
            SOUND.replace('delay = "5 ms"', ""),
            ["link.bottleneck.delay: ", 'write for example `delay = "10 ms"`'],
        ),
    ],
)
def test_mistakes_of_a_file_say_what_to_do(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(paceline.ScenarioError) as wrong:
        paceline.load(path)
    for word in ("wrong.toml", *words):
        assert word in str(wrong.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "FILE", "--runs", "ten"], ["--runs", "whole number"]),
        (["run", "FILE", "--runs", "1000000000000"], ["from 1 to 1000000, not 1000000000000"]),
        (["run", "FILE", "--seed", str(2**63)], ["between 0 and 9223372036854775807"]),
        (["run", "FILE", "--record", "cwnd", "--record-every", "20 s", "--out", "o"], ["20 s", "run of 2 s"]),
        (["run", "CAMPAIGN"], ["this is a campaign", "`paceline campaign "]),
        (["run", "FILE", "--record-every", "0.5"], ["--record-every 0.5", "unit is missing", "`50 ms`"]),
        (["send", "localhost", "--controller", "vegas"], ["--controller", "--cc"]),
        (["schemes"], ["`paceline controllers`"]),
        (["plot", "FILE"], ["is a scenario", "--record cwnd"]),
        (["plot", "FOLDER", "--out", "x.jpg"], ["x.jpg", ".svg, .png, .pdf"]),
    ],
)
def test_words_of_a_command_say_what_to_do(
    arguments: list[str], words: list[str], sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaign.toml").write_text('scenario = "sound.toml"\n[scheme.a]\n')
    paceline.run(sound, record=["cwnd"], out=tmp_path / "folder")
    named = {"FILE": "sound.toml", "CAMPAIGN": "campaign.toml", "FOLDER": "folder"}
    refused(screen.paceline(*(named.get(word, word) for word in arguments)), *words)


def test_what_nobody_can_record_is_warned_of(sound: Path) -> None:
    with pytest.warns(paceline.PacelineWarning, match="no airtime is recorded: it needs a cell"):
        results = paceline.run(sound, record=["airtime", "cwnd"])
    assert results.recorded() == ["cwnd"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paceline.sweep(sound, {"flow.a.cc": ["newreno", "tfrc"]}, runs=1, record=["tfrc", "cwnd"])


def test_every_recording_says_what_it_needs(sound: Path) -> None:
    from paceline.results.recordings import SERIES
    from paceline.simulate.points import NEEDS

    assert set(NEEDS) <= set(SERIES)
    always = set(SERIES) - set(NEEDS)
    assert always <= set(paceline.load(sound).recordable)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_no_trace_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = SOUND.replace('rate = "10 Mbit/s"', 'rate_trace = { file = "pipe" }\nbackward.rate = "1 Mbit/s"')
    raised: list[str] = []

    def parse() -> None:
        try:
            paceline.parse(text, tmp_path)
        except paceline.ScenarioError as error:
            raised.append(str(error))

    # a thread, since a reader that waits for the pipe heeds no signal
    reader = threading.Thread(target=parse, daemon=True)
    reader.start()
    reader.join(20)
    assert raised
    assert "link.bottleneck.rate_trace: `pipe`: is not a regular file" in raised[0]


def test_an_ascii_terminal_gets_ascii(sound: Path) -> None:
    command = [sys.executable, "-m", "paceline", "run", str(sound), "--runs", "2"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean +- half" in done.stdout
    # cells are measured as they are printed: the bars of a table stand below each other
    lines = done.stdout.splitlines()
    rows = [line for line in lines if " |" in line]
    rules = {tuple(i for i, c in enumerate(line) if c == "+") for line in lines if line.startswith("-----")}
    assert len(rows) > 3
    assert {tuple(i for i, c in enumerate(row) if c == "|") for row in rows} <= rules, done.stdout
    named = screen.paceline(
        "run", sound, "--set", "name=Köln", "--json", LC_ALL="C", PYTHONIOENCODING="ascii"
    )
    assert json.loads(named.stdout)["name"] == "Köln"


@pytest.mark.parametrize(
    "arguments", [["controllers"], ["run", "FILE", "--runs", "2"], ["run", "FILE", "--json"]]
)
def test_a_reader_that_leaves_ends_the_command_quietly(arguments: list[str], sound: Path) -> None:
    words = [str(sound) if word == "FILE" else word for word in arguments]
    running = subprocess.Popen(
        [sys.executable, "-m", "paceline", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout
    assert running.stderr
    running.stdout.close()
    with running.stderr as errors:
        assert errors.read() == b""
    assert running.wait(60) == 0


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    require("tmpfs")
    where = tmp_path / "disk"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(where)]
    subprocess.run(mount, check=True)
    yield where
    subprocess.run(["umount", str(where)], check=True)


@pytest.mark.parametrize(
    "options",
    [["--pcap", "DISK/a.pcapng"], ["--record", "sequence", "--record-every", "1 ms", "--out", "DISK/out"]],
)
def test_a_full_disk_leaves_no_half_file(options: list[str], sound: Path, small_disk: Path) -> None:
    before = small_disk / "a.pcapng"
    before.write_text("what was there before")
    done = screen.paceline("run", sound, *(word.replace("DISK", str(small_disk)) for word in options))
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert before.read_text() == "what was there before"
    assert [path for path in small_disk.rglob("*") if path.name.endswith(".part")] == []
