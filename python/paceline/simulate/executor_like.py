"""What the argument `executor` may be, and an executor that is open for runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from paceline.errors import PacelineError


@dataclass(frozen=True)
class Opened:
    """An executor that runs simulations."""

    executor: Executor
    workers: int | Callable[[], int]
    """The number of concurrent runs; for a cluster that grows and shrinks, now."""
    grows: bool = False
    """Whether queued work makes the cluster add workers, so that more than the current workers need is queued."""
    batch_s: float | None = None
    """Target duration of a batch, in seconds of simulation; None for `workers.BATCH_S`."""

    def busy(self) -> int:
        """The number of concurrent runs now: 0 while waiting for a cluster's first worker."""
        return self.workers if isinstance(self.workers, int) else self.workers()

    def queue(self) -> int:
        """The number of batches that it should have, including those being run."""
        return 4 * self.busy() + 16 if self.grows else 2 * self.busy()


@dataclass(frozen=True)
class Batched:
    """An executor, or its name, with your own batch duration: `Batched("slurm.py:Slurm", 600.0)`.

    `batch_s` are seconds of simulation on one worker, above 0. This process makes the first run to measure the time
    that one takes. Raises PacelineError for an invalid duration.
    """

    executor: Executor | str
    batch_s: float

    def __post_init__(self) -> None:
        if not isinstance(self.executor, Executor | str):
            raise PacelineError(f"batches need an executor, or its name, not {self.executor!r}")
        if not isinstance(self.batch_s, int | float) or not 0 < self.batch_s < math.inf:
            raise PacelineError(f"a batch must take more than 0 seconds, not {self.batch_s!r}")


ExecutorLike = Executor | str | Batched | Opened
"""An executor, its name, one with a batch duration, or one that is already open: see `opened`."""
