"""Verifies a paper's results on another machine: simulated points bit by bit (`bits`), real-time points by intervals.

Two runs in real time are never identical. Therefore a paper ships the mean and interval of each drawn or judged metric,
and Welch's test tells whether the means here differ from them. Because there are many such tests, p values are Holm's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.emulator.realtime_queue import Runner
from paceline.files.paper_folders import PaperError
from paceline.papers import bits
from paceline.papers.bits import BITS, Bits
from paceline.results.store import Store
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Progress
from paceline.statistics import CONFIDENCE, Estimate, holm, t_quantile, welch_p_value
from paceline.studies import measure, points, reproduction
from paceline.studies.metric import EACH
from paceline.studies.paper import Paper
from paceline.studies.points import Place
from paceline.studies.study import Study, World

INTERVALS = "intervals.csv"
"""The file of a paper's means in real time."""
MIN_RUNS = 2
"""With fewer runs in real time, a mean has no interval."""

_HEAD = ("study", "series", "level", "metric", "mean", "half_width", "runs")
_FILE = "verified.json"


@dataclass(frozen=True)
class Differing:
    """A simulated point whose hash differs."""

    place: Place
    seeds: str
    """The runs: "seed 1", "seeds 1 to 10"."""
    shipped: str | None
    """None: nothing is shipped for it."""
    here: str


@dataclass(frozen=True)
class Compared:
    """A real-time mean, shipped and here."""

    place: Place
    metric: str
    shipped: Estimate
    here: Estimate
    p_value: float | None
    """Holm's, over all comparisons; None if a side has no interval."""

    @property
    def differs(self) -> bool:
        """Whether the difference of the means excludes zero."""
        return self.p_value is not None and self.p_value < 1 - CONFIDENCE


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    paper: str
    figure: str | None
    runs: int
    same: int
    """Simulated points that are identical bit by bit."""
    whole: int
    """Those of them that are identical in all runs, not only in the first."""
    differing: Sequence[Differing]
    compared: Sequence[Compared]
    provenance: Mapping[str, Any] = field(default_factory=files.provenance)

    @property
    def is_confirmed(self) -> bool:
        """Whether nothing differs."""
        return not self.differing and not any(one.differs for one in self.compared)

    def write(self, out: Path) -> Path:
        """Writes verified.json, with a description of the machine; returns its path. Raises StorageError."""
        what = asdict(self) | {"kind": "verification", "confirmed": self.is_confirmed, "build": _core.build()}
        files.write_json(out / _FILE, what)
        return out / _FILE


@dataclass(frozen=True)
class Made:
    """The runs of a paper on this machine."""

    hashes: Mapping[Place, Sequence[str]]
    """The hashes of each simulated point's runs."""
    real: Mapping[tuple[Place, str], Estimate]
    """The drawn or judged metrics of each real-time point."""


def make(
    paper: Paper,
    runs: int,
    *,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    real_time: Runner | None = None,
) -> Made:
    """Runs the points of a paper. Raises what `reproduction.run` does."""
    witness = bits.Witness()
    done = reproduction.run(
        paper,
        runs=runs,
        workers=workers,
        executor=executor,
        store=store,
        progress=progress,
        runner=witness,
        real_time=real_time,
    )
    real = {}
    for study in paper.studies.values():
        for place, _, _ in points.places(study):
            if place in done.values and points.world(study, place) is World.EMULATED:
                for metric in shown(paper, study):
                    real[place, metric] = measure.mean(done.values[place][metric])
    return Made(witness.hashes(reproduction.plan(paper, runs)), real)


def shown(paper: Paper, study: Study) -> list[str]:
    """The metrics of a study that are drawn or judged, and have one number for each run."""
    pools = {other.key for other in paper.studies.values() if study.key in other.pool} | {study.key}
    named = set().union(*(paper.studies[key].drawn for key in pools))
    for claim in paper.claims:
        if claim.study in pools and claim.ours:
            named |= claim.ours.names
    return [key for key, metric in paper.metrics.items() if key in named and metric.rows != EACH]


def shipped(paper: Paper) -> dict[Place, Bits]:
    """The hashes that a paper ships. Raises PaperError if there are none."""
    found = bits.read(paper.folder)
    if found is None:
        raise PaperError(
            f"{paper.name} ships no {BITS}, so there is nothing to verify against: "
            f"`paceline reproduce {paper.name} --verify --write` writes it from this machine's results"
        )
    return found


def compare(
    paper: Paper, figure: str | None, runs: int, made: Made, known: Mapping[Place, Bits]
) -> Verification:
    """Compares the results of this machine with those that the paper ships. Raises PaperError for a damaged file."""
    differing, same, whole = [], 0, 0
    for place, hashes in made.hashes.items():
        own = known.get(place)
        if own is None:
            differing.append(Differing(place, bits.seeds(1), None, hashes[0]))
        elif own.first != hashes[0]:
            differing.append(Differing(place, bits.seeds(1), own.first, hashes[0]))
        elif len(hashes) >= own.runs and own.all != (here := bits.of_runs(hashes[: own.runs])):
            differing.append(Differing(place, bits.seeds(own.runs), own.all, here))
        else:
            same += 1
            whole += len(hashes) >= own.runs
    return Verification(paper.key, figure, runs, same, whole, differing, _compared(paper, made.real))


def _compared(paper: Paper, real: Mapping[tuple[Place, str], Estimate]) -> list[Compared]:
    known = intervals(paper.folder) if real else {}
    pairs = [(key, known[key], here) for key, here in real.items() if key in known]
    values = holm([welch_p_value(before, here) for _, before, here in pairs])
    return [Compared(*key, before, here, p) for (key, before, here), p in zip(pairs, values, strict=True)]


def intervals(folder: Path) -> dict[tuple[Place, str], Estimate]:
    """The means and intervals that a paper ships of its real-time points, if any. Raises PaperError, StorageError."""
    found = {}
    for number, row in enumerate(bits.table(folder / INTERVALS, _HEAD) or [], 2):
        try:
            n, mean, half = int(row["runs"]), float(row["mean"]), float(row["half_width"])
            if n < MIN_RUNS or not math.isfinite(mean) or not 0 <= half < math.inf:
                raise ValueError
        except ValueError:
            raise PaperError(
                f"{folder / INTERVALS}: line {number}: mean and half_width must be numbers, half_width at least 0, and "
                f"runs at least {MIN_RUNS}"
            ) from None
        place = Place(row["study"], row["series"], row["level"])
        found[place, row["metric"]] = Estimate.of(
            n, mean, half * math.sqrt(n) / t_quantile(CONFIDENCE, n - 1)
        )
    return found


def write(paper: Paper, made: Made) -> list[Path]:
    """Writes this machine's results as those that the paper ships; returns the files. Real-time means stay unchanged if
    none were made. Raises StorageError."""
    written = [bits.write(paper.folder, {place: bits.bits(hashes) for place, hashes in made.hashes.items()})]
    rows = [
        (place.study, place.series, place.level, metric, here.mean, here.half_width, here.n)
        for (place, metric), here in made.real.items()
        if here.half_width is not None
    ]
    if rows:
        written.append(bits.write_table(paper.folder / INTERVALS, _HEAD, rows))
    return written
