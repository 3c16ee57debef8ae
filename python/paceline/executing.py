"""Executors by name: who makes runs instead of this process' threads.

`paceline.run`, `sweep`, `compare` and their kin take any `concurrent.futures.Executor` as `executor`; the command line
takes what `opened` knows by name.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from paceline import foreign
from paceline.errors import PacelineError
from paceline.spoken import meant

THREADS, PROCESSES, DASK, MPI = "threads", "processes", "dask", "mpi"
NAMES = (
    f"{THREADS}, {PROCESSES}, {DASK}=ADDRESS, {MPI}, or MODULE:FUNCTION of your own that returns an Executor"
)


@dataclass(frozen=True)
class Opened:
    """An executor, and how many runs it makes at a time."""

    executor: Executor
    workers: int


ExecutorLike = Executor | str | Opened
"""An executor, its name, or one that is open already: see `opened`."""


@contextlib.contextmanager
def opened(of: ExecutorLike | None, workers: int) -> Iterator[Opened | None]:
    """The executor of that name for as long as the block lasts; None for this process' threads.

    "processes" are `workers` of this machine; "dask=ADDRESS" is a cluster of Dask's `distributed`; "mpi" are the ranks
    of `mpi4py`'s pool; "MODULE:FUNCTION", or "FILE.py:FUNCTION", is called and returns one. One that was made before,
    or opened for several calls, stays open. Raises PacelineError for what there is not.
    """
    if of is None or of == THREADS:
        yield None
        return
    if isinstance(of, Opened):
        yield of
        return
    if isinstance(of, Executor):
        yield Opened(of, _workers(of, workers))
        return
    name, _, rest = of.partition("=")
    with contextlib.ExitStack() as held:
        if of == PROCESSES:
            from paceline.crews import processes  # noqa: PLC0415 (what it takes is slow to import)

            yield Opened(held.enter_context(processes(workers)), workers)
        elif name == DASK:
            yield _dask(rest, held)
        elif of == MPI:
            pool = _module("mpi4py.futures", "mpi4py", of).MPIPoolExecutor()
            yield Opened(held.enter_context(pool), _workers(pool, workers))
        elif ":" in of:
            made = _own(of)
            yield Opened(held.enter_context(made), _workers(made, workers))
        else:
            raise PacelineError(f"there is no executor {of}: {NAMES}")


def _workers(executor: Executor, usual: int) -> int:
    """How many runs an executor makes at a time, as far as it tells."""
    for name in ("_max_workers", "num_workers"):
        many = getattr(executor, name, None)
        if isinstance(many, int) and many > 0:
            return many
    return usual


def _module(name: str, package: str, of: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:
        # mpi4py without an MPI beside it is a RuntimeError
        raise PacelineError(
            f"the executor {of} needs {package}: {sys.executable} -m pip install {package} ({error})"
        ) from None


def _dask(address: str, held: contextlib.ExitStack) -> Opened:
    distributed = _module("distributed", "distributed", DASK)
    if not address:
        raise PacelineError(f"which cluster? {DASK}=ADDRESS, as {DASK}=tcp://10.0.0.1:8786")
    try:
        client = held.enter_context(distributed.Client(address, timeout="10s", set_as_default=False))
        threads = sum(client.nthreads().values())
    except (OSError, ValueError) as error:
        raise PacelineError(f"{DASK}={address}: there is no scheduler of Dask's ({error})") from None
    if threads == 0:
        raise PacelineError(f"{DASK}={address}: the cluster has no workers")
    # A simulation is no function of its arguments' names alone: nothing is taken from Dask's memory of results.
    return Opened(held.enter_context(client.get_executor(pure=False)), threads)


def _own(of: str) -> Executor:
    place, _, name = of.rpartition(":")
    if "=" in place:
        raise PacelineError(f"there is no executor {of}{meant(of.partition('=')[0], (DASK,))}: {NAMES}")
    try:
        made = foreign.function(place, name)()
    except (ValueError, ImportError) as error:
        raise PacelineError(f"executor {of}: {error}") from None
    if not isinstance(made, Executor):
        raise PacelineError(f"executor {of}: {name}() gives {made!r}, and not a concurrent.futures.Executor")
    return made
