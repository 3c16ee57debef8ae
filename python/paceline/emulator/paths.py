"""`paceline.path`: a program over an emulated path, in real time."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paceline import _core, files
from paceline.arguments import checked
from paceline.errors import PacelineError, ScenarioError
from paceline.files.package_data import find, told
from paceline.live import linux
from paceline.live.real_runs import kept, live_record, live_results
from paceline.messages.warn import warn
from paceline.results.recordings import RECORD_EVERY_S
from paceline.results.results import Results
from paceline.results.store import claim
from paceline.scenarios.scenario import toml_values
from paceline.simulate.points import seeds_from

KIND = "path"
"""What the manifest of such a run directory says."""

HOST = "host"
"""A far end that is this host."""

STEAL = 0.01
"""The share of the processors' time that others may take before a run in real time says nothing."""

LATE_S = 1e-3
"""The median of an emulator's lag above which a run is disturbed: a sixth of what a packet of 1500 bytes takes at 2
Mbit/s."""

LATE_SHARE = 0.1
"""The share of a path's delay without load, one way, above which the 99th percentile of the lag is no longer small
beside it. Below `LATE_S` no lag is worth a word."""

SNAP = 128
"""Bytes of a packet that a capture keeps: all headers, and a little of what follows them."""

FAR_OUTPUT = "far.txt"
"""What the far command writes, in a run directory."""

Device = Literal["any", "tun", "packet"]


@dataclass(frozen=True)
class PathRun:
    """What came of a program over a path."""

    status: int
    """Its exit code; 128 and the number of the signal that ended it."""
    results: Results
    """The links' queues (`queues`), and `queue` and `delay` over time if they were recorded."""
    lost: Callable[[int, bool, float, float], int]
    """Of the flow with this port at the near end, sent from there or else to there, the packets of data that were
    dropped from one instant to another by `time.monotonic`; of flows that `ports` told of."""
    report: Mapping[str, Any]
    """What the emulator says of itself and of each direction: docs/path-emulator.md."""


def profiles() -> dict[str, tuple[str, str]]:
    """The paths that have names: for each a sentence, and its file."""
    linux.needed("an emulated path")
    return {name: (summary, text) for name, summary, text in _core.path_profiles()}


@checked()
def path(
    path: str | Path,
    command: Sequence[str],
    *,
    far: str | None = None,
    device: Device = "any",
    ipv4: bool = False,
    for_s: float | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record_every_s: float | None = None,
    out: str | Path | None = None,
    pcap: str | Path | None = None,
    algorithm: str | None = None,
    ports: int | None = None,
    beginning: str | Path | None = None,
    stop: _core.PathStop | None = None,
) -> PathRun:
    """Runs `command` over an emulated path until it ends, in real time.

    `path` names a profile, a path file or "trace:UP,DOWN"; `set` replaces values at TOML paths, `seed` its seed. At
    the far end runs `far`, a line for a shell, or it is this host ("host"), or a namespace that answers pings.
    `device` is "tun" or "packet" (veth and packet sockets), or either. With `ipv4` the ends have IPv4 alone. After
    `for_s` seconds the command is ended. With `record_every_s`, queues and delays are recorded over time; with `out`,
    a directory, every 20 ms if nothing else is said, and tables and recordings are written there, and what the far
    command writes. `pcap` is a capture file. `algorithm` is that of an access point before the queue towards the
    command: "voap", "voap,beta=20ms", "sap-law,capacity=8Mbit/s" or "window=30kB". If the command sends and receives
    the flows of `path`, a scenario, `ports` is its port of the first of them, of which each other one has the next:
    then those with an `rtt` have it. They say at `beginning`, a pipe that is made, when they begin: the path's time
    begins with them, and what was before is not measured.

    The command has this process's standard input, output and errors, and PACELINE_PEER and PACELINE_START in its
    environment. Signals to this process are passed on to it meanwhile; not so with `stop`, which ends it from another
    thread.
    Raises NeedsLinux, PathError, ScenarioError, StorageError; UnwrittenError after the command, which has the run.
    """
    linux.needed("an emulated path")
    if not command:
        raise PacelineError("there is no command to run over the path")
    if seed is not None:
        seeds_from(seed, 1)
    if ports is not None and not 1 <= ports <= 65_535:
        raise PacelineError(f"ports = {ports}: it must be from 1 to 65535")
    values = toml_values(set or {})
    file = find(str(path))
    loaded = _load(file, values, seed, ports)
    if ports is None:  # a scenario whose flows go over it has been warned of
        _warn(loaded)
    if out is not None:
        record_every_s = RECORD_EVERY_S if record_every_s is None else record_every_s
    with claim(out, KIND):
        if pcap is not None:
            try:
                Path(pcap).open("wb").close()
            except OSError as error:
                raise files.refused(Path(pcap), error) from error
        sys.stdout.flush()
        with _far_output(out, far) as descriptor:
            try:
                output = _core.run_path(
                    loaded,
                    [os.fspath(word) for word in command],
                    far=None if far == HOST else far,
                    far_output=descriptor,
                    host=far == HOST,
                    device=device,
                    limit_s=for_s,
                    ipv4=ipv4,
                    record_every_s=record_every_s,
                    capture=None if pcap is None else (str(pcap), SNAP),
                    stop=stop,
                    access_point=algorithm,
                    beginning=None if beginning is None else str(beginning),
                )
            except ValueError as error:
                raise PacelineError(str(error).replace("limit_s", "for_s")) from None
        record = live_record(output, loaded.seed)
        report = record.summary["path"]
        known = profiles().get(str(path))
        more = {
            "path": str(path),
            "scenario": known[1] if known else _text(file),
            "set": dict(values),
            "command": list(command),
            "far": far,
            "ipv4": ipv4,
            "algorithm": algorithm,
            "report": report,
        }
        results = live_results([record], KIND, loaded.name, more)
        ran = PathRun(output.status, results, output.lost, report)
        kept(results, out, ran)
        return ran


def check(path: str | Path) -> None:
    """Reads a path file as a run over it would, and warns of what has no effect. Raises NeedsLinux, ScenarioError."""
    linux.needed("an emulated path")
    _warn(_load(find(str(path))))


def _load(
    file: str, values: Sequence[tuple[str, str]] = (), seed: int | None = None, ports: int | None = None
) -> _core.Path:
    """A path, whose mistakes name the package's files as they were asked for. Raises ScenarioError."""
    try:
        return _core.Path.load(file, list(values), seed, ports)
    except ScenarioError as error:
        raise ScenarioError(told(str(error))) from None


def _warn(path: _core.Path) -> None:
    for text in path.warnings:
        warn(told(text))


def _text(path: str) -> str:
    # The file was read a moment ago; traces have no text of their own.
    return files.read_text(Path(path)) if Path(path).is_file() else path


@contextlib.contextmanager
def _far_output(out: str | Path | None, far: str | None) -> Iterator[int]:
    """The descriptor that what the far command writes goes to."""
    if out is None:
        yield 2
        return
    target = Path(out) / FAR_OUTPUT
    if far in (None, HOST):
        files.remove(target)
        yield 2
        return
    try:
        with target.open("wb") as file:
            yield file.fileno()
    except OSError as error:
        raise files.refused(target, error) from error
