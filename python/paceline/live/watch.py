"""`paceline.watch`: the kernel-TCP connections of other programs, found and followed."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from paceline import _core
from paceline.arguments import WHOLE, checked
from paceline.errors import PacelineError, StorageError
from paceline.live import linux
from paceline.live.real_runs import kept, live_record, live_results
from paceline.results.results import Results
from paceline.results.store import claim

EVERY_S = 0.01
"""The interval at which a connection's internals are read."""
SEARCH_EVERY_S = 0.05
"""The interval at which new connections are searched for."""

_POLL_S = 0.05
_GRACE_S = 2.0

View = Callable[[dict[str, Any]], None]
"""Called some times a second with what is followed: time_s, connections, ended."""


class CommandError(PacelineError):
    """The command cannot be run. The exit code is a shell's: 127 if it does not exist, else 126."""

    def __init__(self, command: Sequence[str], error: OSError) -> None:
        self.exit_code = 127 if isinstance(error, FileNotFoundError) else 126
        super().__init__(f"cannot run {command[0]}: {error.strerror or error}")


@checked(port=WHOLE.or_several())
def watch(
    port: int | Sequence[int] | None = None,
    pid: int | Sequence[int] | None = None,
    command: Sequence[str] | None = None,
    *,
    everything: bool = False,
    every_s: float = EVERY_S,
    search_every_s: float = SEARCH_EVERY_S,
    duration_s: float | None = None,
    out: str | Path | None = None,
    view: View | None = None,
) -> Results:
    """Follows the kernel-TCP connections with a port at either end, or of processes and their descendants, or of a
    command that it runs; with `everything` all in the network namespace.

    It ends after `duration_s` (and then ends the command), when the processes or the command have ended, or on Ctrl-C,
    which raises nothing: the result is what has been read by then, and the manifest's `interrupted` says so. Each
    connection is a flow named after its program, in the direction of most of its payload; recordings are `kernel`,
    `cwnd` and `rate` (docs/watch.md). The manifest's `exit_code` is the command's (128 + N if signal N ended it), its
    `notes` say what a reader should know. With `out` everything is also written there.

    Raises NeedsLinux, PacelineError, StorageError, CommandError.
    """
    linux.needed("watching the kernel's TCP")
    if sum((port is not None, pid is not None, command is not None, everything)) != 1:
        raise PacelineError("say what to watch: one of port, pid, command, or everything=True")
    if command is not None and not command:
        raise PacelineError("the command is empty")
    with claim(out, "watch"):
        selection, numbers, name = _selection(port, pid, command)
        host = _core.HostWatch()
        watching = _open(selection, numbers, every_s, search_every_s, duration_s)
        exit_code, interrupted = None, False
        with ThreadPoolExecutor(1, "paceline-watch") as threads, _adopting(command is not None):
            child = None if command is None else _start(command)
            done = threads.submit(watching.run, name)
            try:
                exit_code = _wait_for_end(watching, done, child, view)
            except KeyboardInterrupt:
                interrupted = True
                exit_code = _end(child)
            finally:
                watching.finish() if child else watching.stop()
                wait([done])
                if child is not None and child.poll() is None:
                    # Time is up before the command has ended: do not leave it running.
                    exit_code = _end(child, at_once=True)
        output = done.result()
        record = live_record(output)
        more = {
            "watch": {"whose": selection, "numbers": numbers, "command": list(command) if command else None},
            "every_s": every_s,
            "search_every_s": search_every_s,
            "host_state": json.loads(host.report()),
            "interrupted": interrupted,
            "exit_code": None if exit_code is None else exit_code if exit_code >= 0 else 128 - exit_code,
            "notes": record.summary["notes"],
        }
        results = live_results([record], "watch", name, more)
        kept(results, out)
        return results


def _selection(
    port: int | Sequence[int] | None, pid: int | Sequence[int] | None, command: Sequence[str] | None
) -> tuple[str, list[int], str]:
    """Which connections, for the core, and a name for the results."""
    if command is not None:
        return "children", [], shlex.join(command)
    if port is not None:
        numbers = [port] if isinstance(port, int) else list(port)
        return "ports", numbers, f"port {', '.join(map(str, numbers))}"
    if pid is not None:
        numbers = [pid] if isinstance(pid, int) else list(pid)
        return "processes", numbers, f"process {', '.join(map(str, numbers))}"
    return "all", [], "all connections"


def _open(
    selection: str, numbers: list[int], every_s: float, search_every_s: float, duration_s: float | None
) -> _core.TcpWatch:
    if any(not 0 < n < 2**32 for n in numbers):
        raise PacelineError(f"not a port or a process: {', '.join(map(str, numbers))}")
    try:
        return _core.TcpWatch(selection, numbers, every_s, search_every_s, duration_s)
    except (ValueError, ProcessLookupError) as error:
        raise PacelineError(str(error)) from None
    except OSError as error:
        raise StorageError(str(error)) from None


@contextlib.contextmanager
def _adopting(wanted: bool) -> Iterator[None]:
    """Within the block, processes that the command leaves behind stay descendants of this one."""
    if wanted:
        _core.adopt_orphans(True)
    try:
        yield
    finally:
        if wanted:
            _core.adopt_orphans(False)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command))  # noqa: S603 (the user's own command)
    except OSError as error:
        raise CommandError(command, error) from None


def _wait_for_end(
    watching: _core.TcpWatch,
    done: Future[_core.RunOutput],
    child: subprocess.Popen[bytes] | None,
    view: View | None,
) -> int | None:
    """Waits for the end, and shows what is followed; returns the command's exit code."""
    while not done.done():
        if child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(_POLL_S)
        else:
            wait([done], _POLL_S)
        if view is not None:
            view(json.loads(watching.view()))
    return None


def _end(child: subprocess.Popen[bytes] | None, *, at_once: bool = False) -> int | None:
    """Ends the command: Ctrl-C has reached it as well, so first wait; then TERM, then KILL."""
    if child is None:
        return None
    for signal in (None, child.terminate, child.kill):
        if signal is None and at_once:
            continue
        if signal is not None:
            signal()
        until = time.monotonic() + _GRACE_S
        while time.monotonic() < until:
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                return child.wait(_POLL_S)
    return child.wait()
