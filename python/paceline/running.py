"""`paceline.run`: one scenario, one or more seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.errors import PacelineError
from paceline.results import Results
from paceline.scenario import ScenarioLike, identity, load
from paceline.sweeping import RECORD_EVERY_S, Pcap, Point, Progress, check_recordings, run_points, seeds_from


def claim(directory: Path, kind: str = "run") -> None:
    """Makes a run directory, or takes over that of an earlier run of its kind ("run", "watch", ...).

    Raises PacelineError if it holds something else.
    """
    manifest = directory / "manifest.json"
    if manifest.exists():
        there = files.read_json(manifest).get("kind", "?")
        if there != kind:
            raise PacelineError(
                f"{directory} is the directory of a {there}, not of a {kind}: use another --out"
            )
        return files.make_directory(directory)
    files.make_directory(directory)
    if any(directory.iterdir()):
        raise PacelineError(f"{directory} is not empty and holds no {kind}: use another --out")
    return None


def run(
    scenario: ScenarioLike,
    seed: int | None = None,
    runs: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[str] = (),
    *,
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    out: str | Path | None = None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Runs a scenario (a TOML file's path, or a loaded one) with seeds seed, seed + 1, ..., seed + runs - 1.

    `seed` is by default the scenario's; `set` replaces values at TOML paths; `record` names what to record over time
    (cwnd, queue, rate, rtcp, sequence, acks, tfrc, playout, arrivals, airtime, windows), every `record_every_s`
    seconds. With `out` the results are also written there. With `pcap`, a file, the one run's packets are written to it
    as pcapng, as they leave and reach hosts: those named in `pcap_at`, or all.
    Raises ScenarioError, PacelineError, StorageError, Interrupted.
    """
    if pcap is not None and runs != 1:
        raise PacelineError(f"a capture holds one run, not {runs}: leave out pcap, or runs")
    if pcap is None and pcap_at:
        raise PacelineError("pcap_at without pcap: name the capture's file")
    loaded = load(scenario, set)
    seeds = seeds_from(loaded.seed if seed is None else seed, runs)
    manifest = {
        "kind": "run",
        "name": loaded.name,
        "scenario": identity(loaded),
        "seeds": seeds,
        "version": _core.version(),
        "record": check_recordings(record, record_every_s),
        "record_every_s": record_every_s,
        **files.provenance(),
    }
    if out is not None:
        # Before the work, not after it.
        claim(Path(out))
    records = run_points(
        [Point(loaded)],
        seeds,
        record=record,
        record_every_s=record_every_s,
        workers=workers,
        progress=progress,
        pcap=None if pcap is None else Pcap(Path(pcap), pcap_at),
    )
    results = Results(records, manifest)
    if out is not None:
        results.write(out)
    return results
