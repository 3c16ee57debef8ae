"""What is written passes through one door, which this makes fail: full disks, read-only ones, short writes, and a kill
between any two calls, at instants drawn from a seed. No result is lost, none is there twice, and what goes on
afterwards ends in the very bytes of what was never disturbed."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline import files
from paceline.errors import PacelineError, StorageError
from paceline.results.results import Results

TEXT = """
duration = "300 ms"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.media]
cc = "newreno"
"""
VARY: dict[Any, list[Any]] = {"flow.media.cc": ["newreno", "vegas"]}
SEEDS = int(os.environ.get("PACELINE_DISK_SEEDS", "24"))
ROOT = Path(__file__).parent.parent


class Killed(BaseException):
    """The process has ended: nothing that it would have done is done."""


class Failing(files.Disk):
    """A disk that fails at its `at`-th call, in one of the ways that disks do."""

    def __init__(self, how: str, at: int) -> None:
        self.how, self.at, self.calls = how, at, 0

    def _call(self, path: Path) -> None:
        self.calls += 1
        if self.calls < self.at:
            return
        if self.how == "killed":
            raise Killed
        code = {"full": errno.ENOSPC, "read-only": errno.EROFS}.get(self.how)
        if code is not None:
            raise OSError(code, os.strerror(code), str(path))

    def make_directory(self, path: Path) -> None:
        self._call(path)
        super().make_directory(path)

    def create(self, path: Path) -> io.RawIOBase:
        self._call(path)
        return Raw(path, self)

    def rename(self, path: Path, to: Path) -> None:
        self._call(to)
        super().rename(path, to)

    def remove(self, path: Path) -> None:
        # a full disk lets go of files
        if self.how != "full":
            self._call(path)
        super().remove(path)

    def wrote(self, path: Path) -> None:
        self._call(path)


class Raw(io.FileIO):
    """A file on it; each write is a call, and takes some of the bytes alone."""

    def __init__(self, path: Path, disk: Failing) -> None:
        super().__init__(path, "w")
        self._at, self._disk = path, disk

    def write(self, data: Any) -> int:
        self._disk.wrote(self._at)
        whole = memoryview(data).cast("B")
        return super().write(whole[: max(1, len(whole) // 2)]) or 0


@contextlib.contextmanager
def disk(of: files.Disk) -> Iterator[None]:
    before, files.DISK = files.DISK, of
    try:
        yield
    finally:
        files.DISK = before


def bytes_of(directory: Path) -> dict[str, bytes]:
    """All files of results. The manifest has the time."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (".lock", "manifest.json")
    }


def sweep(out: Path, **how: Any) -> Any:
    return paceline.sweep(paceline.parse(TEXT, name="small"), VARY, runs=3, record=["cwnd"], out=out, **how)


def run_one(out: Path, **how: Any) -> Any:
    return paceline.run(paceline.parse(TEXT, name="small"), record=["cwnd"], out=out, **how)


def compare(out: Path, **how: Any) -> Any:
    return paceline.compare(paceline.parse(TEXT, name="small"), VARY, runs=3, out=out, **how)


class Losing(Executor):
    """An executor whose workers answer late and in no order, and of which the `at`-th answer is that it was stopped."""

    def __init__(self, draw: random.Random) -> None:
        self._pool, self._draw = ThreadPoolExecutor(2), draw

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        late = self._draw.random() * 0.004

        def do() -> Any:
            time.sleep(late)
            return work(*args, **more)

        return self._pool.submit(do)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def interrupting(draw: random.Random) -> Callable[[float, float], None]:
    at = draw.random() * 12

    def progress(done: float, _total: float) -> None:
        if done >= at:
            raise KeyboardInterrupt

    return progress


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, tuple[dict[str, bytes], int]]:
    """Of each command its files where nothing fails, and how many calls of the disk it made."""
    found: dict[Any, tuple[dict[str, bytes], int]] = {}
    for work in (sweep, run_one, compare):
        out = tmp_path_factory.mktemp("whole") / work.__name__
        counted = Failing("never", sys.maxsize)
        with disk(counted):
            work(out, workers=1)
        found[work] = (bytes_of(out), counted.calls)
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_when_nothing_is_lost_or_there_twice(
    whole: dict[Any, tuple[dict[str, bytes], int]], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    work = draw.choice([sweep, sweep, run_one, compare])
    expected, calls = whole[work]
    kept: dict[str, bytes] = {}
    for _ in range(draw.randint(1, 4)):
        failing = Failing(draw.choice(["full", "read-only", "killed", "short"]), draw.randint(1, calls))
        how: dict[str, Any] = {"workers": draw.choice([1, 2])}
        with contextlib.ExitStack() as held:
            if work is not run_one and draw.random() < 0.4:
                how["executor"] = Losing(draw)
                held.callback(how["executor"].shutdown)
            if draw.random() < 0.3:
                how["progress"] = interrupting(draw)
            held.enter_context(disk(failing))
            held.enter_context(contextlib.suppress(StorageError, Killed, KeyboardInterrupt))
            work(tmp_path / "out", **how)
        there = bytes_of(tmp_path / "out") if (tmp_path / "out").is_dir() else {}
        runs = {name: content for name, content in there.items() if is_run(name)}
        assert kept.items() <= runs.items(), "a finished run is gone, or another"
        for name, content in runs.items():
            assert expected[name] == content, "a run is there that is no whole one"
        kept = runs
        if "runs.parquet" in there:
            assert {name: there.get(name) for name in expected} == expected, "it says that it is whole"
    work(tmp_path / "out", workers=1)
    assert bytes_of(tmp_path / "out") == expected
    assert (tmp_path / "out" / "manifest.json").is_file()
    if work is not run_one:
        assert len(Results.read(tmp_path / "out").runs) == 6


def test_a_cluster_whose_results_meet_failing_disks_loses_none(
    whole: dict[Any, tuple[dict[str, bytes], int]], tmp_path: Path
) -> None:
    """The same with Dask's workers, which answer in any order; the disk is that of who asks."""
    distributed = pytest.importorskip("distributed")
    expected, calls = whole[sweep]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for seed in range(2):
            draw, out = random.Random(seed), tmp_path / f"out-{seed}"
            for how in ("killed", "full"):
                with (
                    disk(Failing(how, draw.randint(1, calls))),
                    contextlib.suppress(StorageError, Killed),
                ):
                    sweep(out, executor=client.get_executor(pure=False))
            sweep(out, executor=client.get_executor(pure=False))
            assert bytes_of(out) == expected


def is_run(name: str) -> bool:
    """Whether it says that a run is there."""
    return name.startswith("runs/") and name.endswith(".json")


def test_a_full_disk_leaves_a_folder_that_the_same_command_takes(tmp_path: Path) -> None:
    """At one of its calls after the other."""
    counted = Failing("full", sys.maxsize)
    with disk(counted):
        run_one(tmp_path / "whole")
    for at in (1, 2, 3, 4, *range(5, counted.calls, 9), counted.calls):
        out = tmp_path / f"at-{at}"
        with disk(Failing("full", at)), pytest.raises(StorageError, match="No space left on device"):
            run_one(out)
        assert not (out / "runs.parquet").exists()
        run_one(out)
        assert bytes_of(out) == bytes_of(tmp_path / "whole")


def test_short_writes_are_gone_on_with(tmp_path: Path) -> None:
    with disk(Failing("never", sys.maxsize)):
        files.write_whole(tmp_path / "x", b"0123456789" * 1000)
    assert (tmp_path / "x").read_bytes() == b"0123456789" * 1000


def test_results_are_written_through_the_door_alone() -> None:
    """Who opens a file to write elsewhere writes no results: named here, with what it is."""
    others = {
        "live/keys.py": "a key, which its owner alone may read from the begin",
        "emulator/paths.py": "a capture, and what a far command says, which others write to",
        "emulator/quic_logs.py": "logs that each end wrote get the flows' names",
        "cli/gateway.py": "a log that grows",
        "calls": "what a browser says while it runs",
        "plots/style.py": "into memory",
        "report/figures.py": "into memory",
    }
    words = ("write_text(", "write_bytes(", '.open("w', '.open("a', "shutil.copy", "shutil.move", ".rename(")
    found = set()
    door = Path(files.__file__).resolve()
    package = door.parents[1]
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if any(word in path.read_text() for word in words) and path != door:
            found.add(name.partition("/")[0] if name.startswith("calls/") else name)
    assert len(found) > 3
    assert found <= set(others), found - set(others)


COMMANDS = {
    "run": ["run", "small.toml", "--runs", "3", "--out", "out"],
    "run one": ["run", "small.toml", "--record", "cwnd", "--out", "out"],
    "sweep": ["sweep", "small.toml", "--vary", "flow.media.cc=newreno,vegas", "--runs", "3", "--out", "out"],
    "compare": [
        "compare",
        "small.toml",
        "--vary",
        "flow.media.cc=newreno,vegas",
        "--runs",
        "3",
        "--out",
        "out",
    ],
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of files are told so on Linux")
@pytest.mark.parametrize("name", ["run", "run one", "compare"])
def test_a_command_whose_disk_is_full_says_so_and_goes_on_later(tmp_path: Path, name: str) -> None:
    """The system's own refusal, by a limit of a file's size."""
    (tmp_path / "small.toml").write_text(TEXT)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    command = [sys.executable, "-m", "paceline", *COMMANDS[name]]
    full = subprocess.run(
        command, cwd=tmp_path, preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert full.returncode == 1, full.stdout
    assert "File too large" in full.stderr
    assert "Traceback" not in full.stderr
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["kind"]


def test_a_folder_of_a_killed_command_is_taken_over(tmp_path: Path) -> None:
    """What it had begun to write goes."""
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    for part in (out / ".manifest.json.123.part", out / "runs" / ".abc.json.123.part"):
        part.write_text("{")
    with pytest.raises(PacelineError, match="is not empty and holds no run"):
        run_one(out)
    (out / "runs").rename(tmp_path / "elsewhere")
    run_one(out)
    assert not list(out.rglob("*.part"))
