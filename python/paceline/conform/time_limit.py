"""Work in a thread that is abandoned after a time limit, or at once on Ctrl-C: it may call a user's code."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from paceline import _core
from paceline.errors import PacelineError
from paceline.threads import THREADS

T = TypeVar("T")

_POLL_S = 0.1
_GRACE_S = 5.0
"""Python code ends at its next instruction, a run when it next checks its watch; a library's call may never return."""


class TimeLimitError(PacelineError):
    """Work exceeded its time limit."""


class _Ended(BaseException):
    """Raised in the thread to end it. Not an Exception, so that a controller's own handlers let it pass."""


class Allowance:
    """A time, in seconds, that several pieces of work share."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._until = time.monotonic() + limit_s

    def spend(self, work: Callable[[_core.Watch], T], waiting: Callable[[float], None] | None = None) -> T:
        """Returns the work's result. `waiting` is called some times a second with the finished share of the run.

        Raises TimeLimitError at the limit, the work's own exceptions, KeyboardInterrupt on Ctrl-C.
        """
        one = _Work(work)
        try:
            while not one.is_over(_POLL_S):
                if time.monotonic() >= self._until:
                    at = one.watch.progress
                    where = f", at {at:.0%} of its run" if at > 0 else ""
                    raise TimeLimitError(f"it takes longer than {self.limit_s:g} s{where}")
                if waiting:
                    waiting(one.watch.progress)
        finally:
            one.end()
        return one.result()


class _Work(Generic[T]):
    def __init__(self, work: Callable[[_core.Watch], T]) -> None:
        self.watch = _core.Watch()
        self._work = work
        self._made: list[T] = []
        self._raised: BaseException | None = None
        # a daemon thread: a call that never returns does not keep the process alive
        self._thread = threading.Thread(target=self._run, name=f"{THREADS}-bounded", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made.append(self._work(self.watch))
        except BaseException as error:
            self._raised = error

    def is_over(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def end(self) -> None:
        if not self._thread.is_alive():
            return
        self.watch.cancel()
        ident = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Ended))
        self._thread.join(_GRACE_S)

    def result(self) -> T:
        if self._raised is not None:
            raise self._raised
        return self._made[0]
