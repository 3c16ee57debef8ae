"""`paceline.league`: runs schemes over classes of drawn scenarios, and ranks them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from paceline.arguments import checked
from paceline.errors import ControllerError, Interrupted, PacelineError, PacelineWarning
from paceline.leagues import classes as classes_
from paceline.leagues import entrants as entrants_
from paceline.leagues import matches
from paceline.leagues import traces as recorded
from paceline.leagues.classes import Class
from paceline.leagues.entrants import Entrant
from paceline.leagues.matches import Game
from paceline.leagues.scoring import Standing, standings
from paceline.messages.argument_names import option
from paceline.messages.warn import warn
from paceline.results.results import RunRecord
from paceline.results.store import Store
from paceline.scenarios.scenario import Schemes
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.executors import opened
from paceline.simulate.points import Progress, run_points, seeds_from, workers_of_machine
from paceline.statistics import Difference, paired_difference

if TYPE_CHECKING:
    from paceline.studies.reproduction import RealTime

ROUNDS = 30
"""Default scenarios of each class."""
OTHER_SEEDS = 10
"""The seeds with which a scheme's worst day is run again."""
_SEED_OFFSET = 1_000_000
"""The offset of these seeds from the league's."""
_AT_ONCE = 500
"""About this many games are in memory at a time: a drawn schedule is large."""


@dataclass(frozen=True)
class WorstDay:
    """The scenario in which a scheme was furthest behind."""

    game: Game
    ahead: Game
    """The leader of that day."""
    behind: float
    """Its deficit on the day: the maximum of many, and so biased upwards."""
    again: Difference
    """The same scenario with `OTHER_SEEDS` other seeds."""


@dataclass(repr=False)
class League:
    """The results of a league."""

    classes: list[Class]
    entrants: list[Entrant]
    rounds: int
    seed: int
    weight: float
    schemes: Schemes | None
    runs: pl.DataFrame
    """A row for each run: see `matches.SCHEMA`."""
    worst: dict[str, WorstDay] = field(default_factory=dict)
    """Each scheme's worst day."""
    gap: pl.DataFrame | None = None
    """The differences over an emulated path, if some games ran there: see `emulated.SCHEMA`."""
    real: RealTime | None = None
    """The accuracy of the emulated runs."""
    seconds: float = 0.0
    command: str = ""

    def __repr__(self) -> str:
        schemes = ", ".join(one.label for one in self.entrants)
        return f"<League of {schemes}: {self.rounds} rounds of {', '.join(of.key for of in self.classes)}>"

    def _repr_html_(self) -> str:
        from paceline.leagues import tables  # noqa: PLC0415 (for people, which few need)
        from paceline.tables import notebook  # noqa: PLC0415

        return notebook.tables(tables.tables(self))

    def write(self, out: str | Path) -> Path:
        """Writes the page, tables, figures and worst days into a folder; returns the page. Raises StorageError."""
        from paceline.leagues import writing  # noqa: PLC0415 (matplotlib is slow to import)

        return writing.write(self, Path(out))

    def games(self, number: int) -> list[Game]:
        """The games of a round, class by class in the order of the schemes."""
        found = matches.round_of(self.classes, self.entrants, number, self.seed, self.schemes)
        return [game for game in found if game.entrant is not None]

    def scores(self, of: Class | None = None) -> dict[str, list[float]]:
        """Each scheme's score in each round: in a class, or the mean over all classes."""
        rows = self.runs if of is None else self.runs.filter(pl.col("class") == of.key)
        by = rows.group_by("scheme", "round").agg(pl.col("score").mean()).sort("round")
        return {
            one.label: by.filter(pl.col("scheme") == one.label)["score"].to_list() for one in self.entrants
        }

    def standings(self, of: Class | None = None) -> list[Standing]:
        """The ranking of the schemes: in a class, or over all classes with equal weight."""
        return standings(self.scores(of))

    @property
    def table(self) -> pl.DataFrame:
        """All standings: class (null: all), scheme, score, low, high, rank, rank_last, wins, behind, p_holm, and the
        medians of share, added delay and loss_rate over its runs."""
        rows = []
        for of in [None, *self.classes]:
            runs = self.runs if of is None else self.runs.filter(pl.col("class") == of.key)
            for one in self.standings(of):
                own = runs.filter(pl.col("scheme") == one.scheme)
                rows.append(
                    {
                        "class": None if of is None else of.key,
                        "scheme": one.scheme,
                        "score": one.score.mean,
                        "low": one.score.low,
                        "high": one.score.high,
                        "rank": one.best,
                        "rank_last": one.worst,
                        "wins": one.wins,
                        "behind": one.behind.estimate.mean if one.behind else 0.0,
                        "p_holm": one.p,
                        "share": own["share"].median(),
                        "delay_added_s": (own["delay_s"] - own["least_delay_s"]).median(),
                        "loss_rate": own["loss_rate"].median(),
                        "failed": int(own["failed"].sum()),
                    }
                )
        return pl.DataFrame(rows, schema_overrides={"class": pl.String, "p_holm": pl.Float64})


@checked()
def league(
    entrants: Sequence[str] = (),
    classes: Sequence[str] = (),
    *,
    schemes: Schemes | None = None,
    rounds: int = ROUNDS,
    seed: int = 1,
    delay_weight: float = 1.0,
    traces: str | Path | None = None,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> League:
    """Lets schemes play the same drawn scenarios, `rounds` of each class, and ranks them.

    `entrants` are names as in `paceline controllers`, with values ("cubic:profile=linux"), "python:FILE:CLASS",
    "library:FILE", or names of classes in `schemes`; default: `entrants.DEFAULT`. `classes` are names in leagues/, or
    your own files; default: all. A run's score is log2(share) - delay_weight log2(delay over the least possible one):
    see `scoring`. `traces` is a folder of recorded rates, for classes whose rate wanders. With `out` finished runs are
    stored there, and reused. Raises PacelineError for unknown names, and for a scheme that cannot play a class;
    Interrupted on Ctrl-C.
    """
    if rounds < 2:
        raise PacelineError(
            f"{option('rounds', rounds)}: a league needs at least 2, since one gives no interval"
        )
    if not 0 <= delay_weight <= 100:
        raise PacelineError(f"{option('delay_weight', delay_weight)}: must be 0 (the rate alone) to 100")
    seeds_from(seed, rounds)
    seeds_from(seed + _SEED_OFFSET, OTHER_SEEDS)
    field_ = classes_.find(classes)
    if traces is not None:
        field_ = classes_.with_traces(field_, recorded.found(Path(traces)))
    players = entrants_.named(entrants, schemes)
    began = time.monotonic()
    found = League(field_, players, rounds, seed, delay_weight, schemes, pl.DataFrame(schema=matches.SCHEMA))
    workers = workers_of_machine() if workers is None else workers
    with opened(executor, workers) as who, _each_warning_once():
        store = None if out is None else Store(Path(out))

        def run(games: Sequence[Game], report: Progress | None) -> list[RunRecord]:
            made: dict[int, RunRecord] = {}
            before = 0
            for is_recorded in (False, True):
                chosen = [place for place, game in enumerate(games) if game.is_recorded == is_recorded]
                failures: dict[int, ControllerError] = {}

                def on_progress(done: float, _of: float, before: int = before) -> None:
                    if report:
                        report(before + done, len(games))

                records = run_points(
                    [games[place].point for place in chosen],
                    [],
                    record=("rate",) if is_recorded else (),
                    record_every_s=matches.RATE_EVERY_S,
                    workers=workers,
                    executor=who,
                    store=store,
                    progress=on_progress,
                    failures=failures,
                )
                made |= zip(chosen, records, strict=True)
                before += len(chosen)
                for place, error in failures.items():
                    failed.setdefault(games[chosen[place]].label, str(error))
            return [made[place] for place in range(len(games))]

        failed: dict[str, str] = {}
        min_delays = _play(found, run, progress, str(out) if out else None)
        _warn_of_failures(found, failed)
        found.worst = _worst(found, run, min_delays)
    found.seconds = time.monotonic() - began
    return found


Run = Callable[[Sequence[Game], Progress | None], list[RunRecord]]


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Shows each warning once, not once for each drawn scenario."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        yield
    for text in dict.fromkeys(matches.without_place(one.message) for one in caught):
        warn(text)


def _warn_of_failures(of: League, failed: dict[str, str]) -> None:
    for label, error in failed.items():
        own = of.runs.filter(pl.col("scheme") == label)["failed"]
        warn(f"{error}\n{own.sum()} of {len(own)} runs of {label} failed: each counts as delivering nothing")


def _play(of: League, run: Run, progress: Progress | None, kept: str | None) -> dict[tuple[str, int], float]:
    """Plays all rounds, some at a time; returns each day's minimum delay."""
    a_round = len(of.classes) * (1 + len(of.entrants))
    total, at_once = a_round * of.rounds, max(1, _AT_ONCE // a_round)
    tables: list[pl.DataFrame] = []
    min_delays: dict[tuple[str, int], float] = {}
    for first in range(1, of.rounds + 1, at_once):
        numbers = range(first, min(first + at_once, of.rounds + 1))
        games = [
            game
            for number in numbers
            for game in matches.round_of(of.classes, of.entrants, number, of.seed, of.schemes)
        ]
        before = (first - 1) * a_round

        def on_progress(done: float, _of: float, before: int = before) -> None:
            if progress:
                progress(before + done, total)

        try:
            played = list(zip(games, run(games, on_progress), strict=True))
        except Interrupted as stop:
            raise Interrupted(before + stop.finished, total, kept) from None
        min_delays |= matches.minimum_delays(played)
        tables.append(matches.table(played, of.weight, min_delays))
    of.runs = pl.concat(tables)
    return min_delays


def _worst(of: League, run: Run, min_delays: dict[tuple[str, int], float]) -> dict[str, WorstDay]:
    """Each scheme's worst day, and its result with other seeds, since the maximum of many is biased."""
    best = pl.col("score").max().over("class", "round")
    behind = of.runs.with_columns(behind=best - pl.col("score"))
    days = []
    for entrant in of.entrants:
        own = behind.filter(pl.col("scheme") == entrant.label).sort("behind", maintain_order=True)
        worst = own.row(-1, named=True)
        if worst["behind"] > 0:
            first = of.runs.filter((pl.col("class") == worst["class"]) & (pl.col("round") == worst["round"]))
            ahead = first.sort("score", maintain_order=True).row(-1, named=True)["scheme"]
            games = {game.label: game for game in of.games(worst["round"]) if game.of.key == worst["class"]}
            days.append((worst["behind"], games[entrant.label], games[ahead]))
    seeds = range(_SEED_OFFSET + of.seed, _SEED_OFFSET + of.seed + OTHER_SEEDS)
    again = [game.with_seed(seed) for _, *both in days for game in both for seed in seeds]
    records = run(again, None) if again else []
    fresh = matches.table(zip(again, records, strict=True), of.weight, min_delays)["score"].to_list()
    found = {}
    for n, (score_gap, game, leader) in enumerate(days):
        at = 2 * OTHER_SEEDS * n
        own_, others = fresh[at : at + OTHER_SEEDS], fresh[at + OTHER_SEEDS : at + 2 * OTHER_SEEDS]
        found[game.label] = WorstDay(game, leader, score_gap, paired_difference(own_, others))
    return found
