"""Executors by name: they make runs instead of this process' threads.

`paceline.run`, `sweep`, `compare` and others take any `concurrent.futures.Executor` as `executor`; the command line
takes the names that `opened` knows.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from paceline import own_controllers
from paceline.errors import PacelineError
from paceline.messages.argument_names import meant
from paceline.messages.warn import warn
from paceline.simulate.executor_like import Batched, ExecutorLike, Opened

_POLL_S = 1.0
"""How often a cluster is queried for its workers."""
THREADS, PROCESSES, DASK, MPI = "threads", "processes", "dask", "mpi"
NAMES = (
    f"{THREADS}, {PROCESSES}, {DASK}=ADDRESS, {MPI}, or MODULE:FUNCTION of your own that returns an Executor"
)


@contextlib.contextmanager
def opened(of: ExecutorLike | None, workers: int) -> Iterator[Opened | None]:
    """The executor of that name for the duration of the block; None for this process' threads.

    "processes" are `workers` of this machine; "dask=ADDRESS" is a cluster of Dask's `distributed`; "mpi" are the ranks
    of `mpi4py`'s pool; "MODULE:FUNCTION", or "FILE.py:FUNCTION", is called and returns one. An executor that you pass,
    or that is open for several calls, stays open. Raises PacelineError for an unknown one.
    """
    if of is None or of == THREADS:
        yield None
        return
    if isinstance(of, Opened):
        yield of
        return
    if isinstance(of, Batched):
        with opened(of.executor, workers) as executor:
            if executor is None:
                raise PacelineError(
                    f"threads take one run at a time: a batch needs another executor: {NAMES}"
                )
            yield replace(executor, batch_s=of.batch_s)
        return
    if isinstance(of, Executor):
        yield Opened(of, _workers(of, workers))
        return
    name, _, rest = of.partition("=")
    with contextlib.ExitStack() as held:
        if of == PROCESSES:
            from paceline.simulate.workers import processes  # noqa: PLC0415 (what it takes is slow to import)

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
    """The number of concurrent runs of an executor, as far as it is known."""
    for name in ("_max_workers", "num_workers"):
        many = getattr(executor, name, None)
        if isinstance(many, int) and many > 0:
            return many
    return usual


def _module(name: str, package: str, of: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:
        # mpi4py without an MPI library raises RuntimeError
        raise PacelineError(
            f"the executor {of} needs {package}: {sys.executable} -m pip install {package} ({error})"
        ) from None


def _dask(address: str, held: contextlib.ExitStack) -> Opened:
    distributed = _module("distributed", "distributed", DASK)
    if not address:
        raise PacelineError(f"which cluster? {DASK}=ADDRESS, as {DASK}=tcp://10.0.0.1:8786")
    try:
        client = held.enter_context(distributed.Client(address, timeout="10s", set_as_default=False))
    except (OSError, ValueError) as error:
        raise PacelineError(f"{DASK}={address}: no Dask scheduler answers there ({error})") from None
    threads = _Threads(client)
    if threads() == 0:
        warn(
            f"{DASK}={address}: the cluster has no workers yet, and the runs wait for the first; Ctrl-C ends this"
        )
    # A simulation also depends on the build, so Dask must not reuse cached results.
    return Opened(held.enter_context(client.get_executor(pure=False)), threads, grows=True)


class _Threads:
    """The number of threads of a Dask cluster. Batch systems start its workers late, and adaptive clusters as they are
    needed."""

    def __init__(self, client: Any) -> None:
        self._client, self._many, self._polled_at = client, 0, -math.inf

    def __call__(self) -> int:
        if time.monotonic() - self._polled_at > _POLL_S:
            # If the scheduler does not answer, the runs themselves fail and say so.
            with contextlib.suppress(OSError):
                self._many = sum(self._client.nthreads().values())
            self._polled_at = time.monotonic()
        return self._many


def _own(of: str) -> Executor:
    place, _, name = of.rpartition(":")
    if "=" in place:
        raise PacelineError(f"there is no executor {of}{meant(of.partition('=')[0], (DASK,))}: {NAMES}")
    try:
        made = own_controllers.function(place, name)()
    except (ValueError, ImportError) as error:
        raise PacelineError(f"executor {of}: {error}") from None
    if not isinstance(made, Executor):
        raise PacelineError(f"executor {of}: {name}() returns {made!r}, not a concurrent.futures.Executor")
    return made
