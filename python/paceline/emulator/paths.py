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
from paceline.files.package_data import find, with_requested_names
from paceline.live import linux
from paceline.live.real_runs import kept, live_record, live_results
from paceline.messages.warn import warn
from paceline.results.recordings import RECORD_EVERY_S
from paceline.results.results import Results
from paceline.results.store import claim
from paceline.scenarios.scenario import toml_values
from paceline.simulate.points import seeds_from

KIND = "path"
"""The kind in the manifest of such a run directory."""

HOST = "host"
"""The value of `far` for this host."""

STEAL = 0.01
"""The share of processor time used by others above which a run in real time is meaningless."""

LATE_S = 1e-3
"""A run whose median emulator lag exceeds this is disturbed: a sixth of a 1500-byte packet's transmission time at 2
Mbit/s."""

LATE_SHARE = 0.1
"""The 99th percentile of the lag may be this share of a path's one-way delay without load. A lag below `LATE_S` is
never reported."""

SNAP = 128
"""The captured bytes of a packet: all headers, and a little of what follows them."""

FAR_OUTPUT = "far.txt"
"""The file with the far command's output, in a run directory."""

Device = Literal["any", "tun", "packet"]


@dataclass(frozen=True)
class PathRun:
    """The result of a program over a path."""

    status: int
    """Its exit code, or 128 plus the number of the signal that ended it."""
    results: Results
    """The links' queues (`queues`), and `queue` and `delay` over time if they were recorded."""
    lost: Callable[[int, bool, float, float], int]
    """Dropped data packets of the flow with this port at the near end, sent from there or else to there, between two
    instants of `time.monotonic`; only for flows registered by `ports`."""
    report: Mapping[str, Any]
    """The emulator's report on itself and each direction: docs/path-emulator.md."""


def profiles() -> dict[str, tuple[str, str]]:
    """The named paths: a sentence and the file for each."""
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

    `path` names a profile, a path file or "trace:UP,DOWN"; `set` replaces values at TOML paths, `seed` its seed. `far`
    is a shell command at the far end, or "host" for this host; by default the far end is a namespace that answers
    pings. `device` is "tun" or "packet" (veth and packet sockets), or "any". With `ipv4` the ends have only IPv4. The
    command is ended after `for_s` seconds. With `record_every_s`, queues and delays are recorded over time. `out` is a
    directory for tables, recordings (default interval 20 ms) and the far command's output. `pcap` is a capture file.
    `algorithm` is that of an access point before the queue towards the command: "voap", "voap,beta=20ms",
    "sap-law,capacity=8Mbit/s" or "window=30kB".

    If the command runs the flows of `path`, a scenario, `ports` is its port for the first flow, and each further flow
    has the next port: then flows with an `rtt` get it. The flows report through the pipe `beginning`, which is created,
    when they begin: the path's time starts then, and earlier packets are not measured.

    The command has this process's standard input, output and errors, and PACELINE_PEER and PACELINE_START in its
    environment. Signals to this process are forwarded to it, unless `stop` is given, which ends it from another thread.

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
    if ports is None:  # otherwise the scenario's warnings have appeared already
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
    """Loads a path; errors name the package's files as the user did. Raises ScenarioError."""
    try:
        return _core.Path.load(file, list(values), seed, ports)
    except ScenarioError as error:
        raise ScenarioError(with_requested_names(str(error))) from None


def _warn(path: _core.Path) -> None:
    for text in path.warnings:
        warn(with_requested_names(text))


def _text(path: str) -> str:
    # The file was read just now; traces have no text of their own.
    return files.read_text(Path(path)) if Path(path).is_file() else path


@contextlib.contextmanager
def _far_output(out: str | Path | None, far: str | None) -> Iterator[int]:
    """The descriptor for the far command's output."""
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
