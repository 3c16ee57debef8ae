"""Runs made elsewhere: by processes, by a cluster of Dask's, by an executor of one's own; the same bits as here."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import paceline
from own_controllers import TWINS
from paceline import _core
from paceline.errors import ControllerError, Interrupted, PacelineError, PacelineWarning
from paceline.simulate import executors
from paceline.simulate import workers as crew_module
from paceline.simulate.executor_like import Batched, Opened
from paceline.simulate.executors import opened

LINK = """
duration = "{} s"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
loss = {{ rate = "1 %" }}
[flow.a]
[flow.b]
cc = "cubic"
"""
SHORT, LONG = LINK.format(5), LINK.format(400)
TWIN = {"flow.a.cc": f"python:{TWINS / 'reno_twin.py'}:RenoTwin"}


def same(one: paceline.Results, other: paceline.Results) -> None:
    for table in ("flows", "queues", "runs"):
        assert one.table(table).equals(other.table(table)), table
    assert one.series("cwnd").equals(other.series("cwnd"))


def spawned() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize(
    "executor", ["processes", lambda: ThreadPoolExecutor(2), spawned], ids=["name", "threads", "spawned"]
)
def test_the_same_bits_wherever_runs_are_made(executor: Any) -> None:
    here = paceline.run(SHORT, runs=5, record=("cwnd",))
    if isinstance(executor, str):
        same(paceline.run(SHORT, runs=5, record=("cwnd",), executor=executor), here)
        return
    with executor() as made:
        same(paceline.run(SHORT, runs=5, record=("cwnd",), executor=made), here)
        # it stays open
        same(paceline.run(SHORT, runs=5, record=("cwnd",), executor=made), here)


def test_a_sweep_goes_on_with_another_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew_module, "BATCH_S", 0.001)
    vary = {"link.bottleneck.rate": ["2 Mbit/s", "5 Mbit/s"]}
    calls: list[float] = []

    def stops(done: float, total: float) -> None:
        calls.append(done)
        if done >= 3:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as one, pytest.raises(Interrupted, match="of 8 runs had finished"):
        paceline.sweep(LONG, vary, runs=4, out=tmp_path / "x", progress=stops, executor=one)
    kept = len(list((tmp_path / "x" / "runs").glob("*.json")))
    assert 3 <= kept < 8
    with spawned() as other:
        there = paceline.sweep(LONG, vary, runs=4, out=tmp_path / "x", executor=other)
    assert there.flows.equals(paceline.sweep(LONG, vary, runs=4).flows)


class Refuses(Executor):
    """Answers each batch as it is told."""

    def __init__(self, answers: Callable[[int, crew_module.Batch], Any]) -> None:
        self.batches: list[crew_module.Batch] = []
        self._answers = answers

    def submit(self, _: Any, /, batch: Any, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        self.batches.append(batch)
        future: Future[Any] = Future()
        try:
            future.set_result(self._answers(len(self.batches), batch))
        except Exception as error:
            future.set_exception(error)
        return future


def test_another_version_is_refused_by_name() -> None:
    def other(_: int, batch: crew_module.Batch) -> crew_module.Answer:
        return crew_module.make(
            crew_module.Batch("9.9+abc", batch.scenarios, batch.jobs, batch.record, batch.record_every_s)
        )

    with pytest.raises(
        PacelineError, match=r"a worker \(.*, process \d+\) has Paceline .*, and this is 9\.9\+abc"
    ):
        paceline.run(SHORT, runs=2, executor=Refuses(other))


def test_a_lost_workers_batch_goes_to_another() -> None:
    def loses_the_first(number: int, batch: crew_module.Batch) -> crew_module.Answer:
        if number in (1, 3):
            raise BrokenExecutor("a worker has died")
        return crew_module.make(batch)

    executor = Refuses(loses_the_first)
    assert paceline.run(SHORT, runs=4, executor=executor).flows.equals(paceline.run(SHORT, runs=4).flows)
    assert len(executor.batches) > 4

    def loses_all(number: int, batch: crew_module.Batch) -> crew_module.Answer:
        raise BrokenExecutor("a worker has died")

    with pytest.raises(PacelineError, match="a worker was lost 3 times at the same"):
        paceline.run(SHORT, runs=4, executor=Refuses(loses_all))


def test_an_executor_that_dies_is_named_and_finished_runs_are_kept(tmp_path: Path) -> None:
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    killed: list[int] = []

    def kills(done: float, total: float) -> None:
        if done >= 3 and not killed:
            killed.extend(pool._processes)
            os.kill(killed[0], signal.SIGKILL)

    with pool, pytest.raises(PacelineError, match="lost a worker and makes no more runs"):
        paceline.run(LONG, runs=40, executor=pool, out=tmp_path / "a", progress=kills)
    assert killed
    again: list[float] = []
    paceline.run(LONG, runs=40, out=tmp_path / "a", progress=lambda done, _: again.append(done))
    assert again[0] >= 1, "what had been made was made again"


def test_a_worker_without_paceline_is_told_of() -> None:
    def lacks(number: int, batch: crew_module.Batch) -> crew_module.Answer:
        raise ModuleNotFoundError("No module named 'paceline'")

    with pytest.raises(PacelineError, match=r"a worker cannot make runs \(No module named 'paceline'\)"):
        paceline.run(SHORT, runs=2, executor=Refuses(lacks))


def test_batches_grow_to_seconds_and_end_evenly() -> None:
    executor = Refuses(
        lambda _, batch: crew_module.Answer(crew_module.make(batch).jobs, seconds=0.01 * len(batch.jobs))
    )
    paceline.run(LINK.format(1), runs=400, executor=executor)
    sizes = [len(batch.jobs) for batch in executor.batches]
    assert sum(sizes) == 400
    assert sizes[0] == 1
    assert max(sizes) <= crew_module.BATCH_S / 0.01
    assert len(sizes) < 40


def test_batches_of_a_time_of_ones_own() -> None:
    """Jobs of a batch system wait in a queue: few, and none of one run. The first run tells how long they take."""
    executor = Refuses(
        lambda _, batch: crew_module.Answer(crew_module.make(batch).jobs, seconds=0.01 * len(batch.jobs))
    )
    many = paceline.run(LINK.format(1), runs=101, executor=Batched(executor, 600.0))
    assert [len(batch.jobs) for batch in executor.batches] == [100], "the first is made here"
    assert many.flows.equals(paceline.run(LINK.format(1), runs=101).flows)

    with pytest.raises(PacelineError, match="a batch must take more than 0 seconds, not 0"):
        Batched("processes", 0.0)
    with pytest.raises(PacelineError, match="more than 0 seconds, not '10'"):
        Batched("processes", "10")  # type: ignore[arg-type]
    with pytest.raises(PacelineError, match="batches need an executor"):
        Batched(Batched("processes", 1.0), 2.0)  # type: ignore[arg-type]
    with pytest.raises(PacelineError, match="threads take one run at a time"):
        paceline.run(SHORT, executor=Batched("threads", 1.0))


def test_controllers_of_ones_own_go_with_their_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((TWINS / "reno_twin.py").read_text())
    (tmp_path / "x.toml").write_text(SHORT.replace("[flow.a]", '[flow.a]\ncc = "python:mine.py:RenoTwin"'))
    loaded = paceline.load(tmp_path / "x.toml")
    (tmp_path / "mine.py").unlink()  # another machine has no such file
    there = paceline.run(loaded, runs=3, executor="processes")
    assert there.flows.drop("cc").equals(paceline.run(SHORT, runs=3, set=TWIN).flows.drop("cc"))


def fails(path: Path) -> Path:
    path.write_text(
        "import paceline\nclass Mine(paceline.WindowController):\n"
        "    def on_feedback(self, event, path): raise KeyError('no more')\n"
    )
    return path


def test_a_controllers_error_comes_back(tmp_path: Path) -> None:
    mine = fails(tmp_path / "mine.py")
    with pytest.raises(ControllerError, match=r"(?s)flow a\[0\] failed at .*KeyError: 'no more'"):
        paceline.run(SHORT, runs=3, set={"flow.a.cc": f"python:{mine}:Mine"}, executor="processes")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "there is no executor nothing: threads, processes, dask=ADDRESS, mpi"),
        ("os:getpid", r"getpid\(\) returns \d+, not a concurrent.futures.Executor"),
        ("os:nothing", "there is no function nothing in it"),
        ("nowhere.py:make", "nowhere.py cannot be read"),
        ("no.such:make", "there is no module no.such"),
    ],
)
def test_what_is_no_executor(name: str, said: str) -> None:
    with pytest.raises(PacelineError, match=said):
        paceline.run(SHORT, executor=name)


def test_an_executor_of_ones_own_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\ndef make(): return ThreadPoolExecutor(3)\n"
    )
    with opened("mine.py:make", 1) as who:
        assert who is not None
        assert who.workers == 3
    assert paceline.run(SHORT, runs=3, executor="mine.py:make").flows.equals(
        paceline.run(SHORT, runs=3).flows
    )


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(SHORT)
    said = [
        subprocess.run(
            [sys.executable, "-m", "paceline", "run", "x.toml", "--runs", "4", "--json", *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ([], ["--executor", "processes"])
    ]
    assert json.loads(said[0])["flows"] == json.loads(said[1])["flows"]


class Cluster:
    """A scheduler and workers of Dask's, each a process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._folder = folder
        self.processes = [self._start("scheduler", "--port", "0", "--no-dashboard", "--no-show")]
        self._wait(self._file.exists)
        self.address: str = json.loads(self._file.read_text())["address"]

    def _start(self, what: str, *more: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{what}",
            "--scheduler-file",
            str(self._file),
            *more,
        ]
        log = (self._folder / f"{what}-{time.monotonic_ns()}.log").open("wb")
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def worker(self) -> subprocess.Popen[bytes]:
        """Another worker, without anybody who would start it again."""
        process = self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        self.processes.append(process)
        return process

    @staticmethod
    def _wait(what: Callable[[], bool], within_s: float = 60.0) -> None:
        until = time.monotonic() + within_s
        while not what():
            assert time.monotonic() < until, "the cluster does not come up"
            time.sleep(0.05)

    def wait_for(self, workers: int) -> None:
        """Until so many have reported."""
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(workers, timeout=60)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    assert importlib.util.find_spec("distributed"), "the extra `test` has it"
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.stop()


def test_a_cluster_of_dasks_that_loses_a_worker(cluster: Cluster) -> None:
    workers = [cluster.worker(), cluster.worker()]
    cluster.wait_for(2)
    killed: list[int] = []

    def kills(done: float, total: float) -> None:
        if done >= 5 and not killed:
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    there = paceline.run(
        LONG,
        runs=40,
        set=TWIN,
        record=("cwnd",),
        record_every_s=1.0,
        executor=f"dask={cluster.address}",
        progress=kills,
    )
    assert killed
    assert workers[0].wait(10) == -signal.SIGKILL
    assert workers[1].poll() is None
    same(there, paceline.run(LONG, runs=40, set=TWIN, record=("cwnd",), record_every_s=1.0))


def test_a_cluster_whose_workers_are_still_waiting(cluster: Cluster) -> None:
    """As those of a batch system do, and those that come as there is work."""

    def comes(done: float, total: float) -> None:
        if len(cluster.processes) == 1:
            cluster.worker()

    with pytest.warns(
        PacelineWarning, match="the cluster has no workers yet, and the runs wait for the first"
    ):
        there = paceline.run(SHORT, runs=6, executor=f"dask={cluster.address}", progress=comes)
    assert there.flows.equals(paceline.run(SHORT, runs=6).flows)


def test_a_cluster_that_grows_is_given_more(cluster: Cluster) -> None:
    cluster.worker()
    cluster.wait_for(1)
    with opened(f"dask={cluster.address}", 1) as who:
        assert who is not None
        assert who.busy() == 1
        few = who.queue()
        cluster.worker()
        cluster.wait_for(2)
        time.sleep(1.2)
        assert who.busy() == 2
        assert who.queue() > few > 2


def test_no_cluster(cluster: Cluster) -> None:
    with pytest.raises(PacelineError, match="which cluster"):
        paceline.run(SHORT, runs=2, executor="dask")
    assert _core.build()


def test_what_is_open_already_serves_several_calls_with_its_workers() -> None:
    """A cluster's workers are not those of this machine: a second look at the executor alone could not tell."""
    with ThreadPoolExecutor(1) as pool:
        once = Opened(pool, 7)
        with opened(once, 2) as who:
            assert who is once
        assert pool.submit(int).result() == 0, "it stays open"


def test_a_scheduler_that_does_not_answer_changes_no_number_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is lost with it comes to light by its runs."""
    monkeypatch.setattr(executors, "_POLL_S", 0.0)
    answers: list[Any] = [{"a": 2, "b": 1}, OSError("timed out"), {"a": 4}]

    class Client:
        def nthreads(self) -> dict[str, int]:
            if isinstance(answer := answers.pop(0), OSError):
                raise answer
            return dict(answer)

    threads = executors._Threads(Client())
    assert [threads(), threads(), threads()] == [3, 3, 4]
