"""`paceline.league`: schemes over classes of drawn scenarios, and who is ahead where."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from paceline.arguments import checked
from paceline.errors import PacelineError
from paceline.executing import ExecutorLike
from paceline.leagues import classes as classes_
from paceline.leagues import entrants as entrants_
from paceline.leagues import playing
from paceline.leagues import traces as recorded
from paceline.leagues.classes import Class
from paceline.leagues.entrants import Entrant
from paceline.leagues.playing import Game
from paceline.leagues.scoring import Standing, standings
from paceline.scenario import Schemes
from paceline.spoken import option
from paceline.statistics import Difference, paired_difference
from paceline.store import Store
from paceline.sweeping import Progress, run_points, seeds_from

if TYPE_CHECKING:
    from paceline.reproduce.reproduction import RealTime

ROUNDS = 30
"""Scenarios of each class, unless told otherwise."""
AFRESH = 10
"""Seeds with which a scheme's worst day is run again."""
_FAR = 1_000_000
"""Seeds of these begin so far from the league's."""


@dataclass(frozen=True)
class WorstDay:
    """The scenario in which a scheme was furthest behind."""

    game: Game
    ahead: Game
    """The first of that day."""
    behind: float
    """By how much, on the day: the greatest of many, and so too great."""
    again: Difference
    """The same scenario with `AFRESH` other seeds."""


@dataclass(repr=False)
class League:
    """What came of a league."""

    classes: list[Class]
    entrants: list[Entrant]
    rounds: int
    seed: int
    weight: float
    games: list[Game]
    runs: pl.DataFrame
    """A row for each run: see `playing.SCHEMA`."""
    worst: dict[str, WorstDay] = field(default_factory=dict)
    """Each scheme's worst day."""
    gap: pl.DataFrame | None = None
    """What is otherwise over an emulated path, if some were run there: see `emulated.SCHEMA`."""
    real: RealTime | None = None
    """How exact these were."""
    seconds: float = 0.0
    command: str = ""

    def __repr__(self) -> str:
        schemes = ", ".join(one.label for one in self.entrants)
        return f"<League of {schemes}: {self.rounds} rounds of {', '.join(of.key for of in self.classes)}>"

    def _repr_html_(self) -> str:
        from paceline import notebook  # noqa: PLC0415 (the command line's tables, which few need)
        from paceline.cli import league  # noqa: PLC0415

        return notebook.tables(league.tables(self))

    def scores(self, of: Class | None = None) -> dict[str, list[float]]:
        """Of each scheme its score in each round: in a class, or the mean over all classes."""
        rows = self.runs if of is None else self.runs.filter(pl.col("class") == of.key)
        by = rows.group_by("scheme", "round").agg(pl.col("score").mean()).sort("round")
        return {
            one.label: by.filter(pl.col("scheme") == one.label)["score"].to_list() for one in self.entrants
        }

    def standings(self, of: Class | None = None) -> list[Standing]:
        """The schemes, the first first: in a class, or over all of them, each class counting alike."""
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
    """Lets schemes play the same drawn scenarios, `rounds` of each class, and says who is ahead where.

    `entrants` are names as `paceline controllers` has them, with values ("cubic:profile=linux"), "python:FILE:CLASS",
    "library:FILE", or names that `schemes` has classes for; none: `entrants.DEFAULT`. `classes` are names in leagues/,
    or files of your own; none: all. A run's score is log2(share) - delay_weight log2(delay by the least possible one):
    `scoring`. `traces` is a folder of recorded rates, for classes whose rate wanders. With `out` finished runs are kept
    there, and taken from there again. Raises PacelineError for a name that is not there, and for a scheme that cannot
    play a class; Interrupted on Ctrl-C.
    """
    if rounds < 2:
        raise PacelineError(f"{option('rounds', rounds)}: a league needs at least 2, one has no interval")
    if not 0 <= delay_weight <= 100:
        raise PacelineError(f"{option('delay_weight', delay_weight)}: from 0 (the rate alone) to 100")
    seeds_from(seed, rounds)
    field_ = classes_.find(classes)
    if traces is not None:
        field_ = classes_.with_traces(field_, recorded.found(Path(traces)))
    players = entrants_.named(entrants, schemes)
    games = playing.games(field_, players, rounds, seed, schemes)
    store = None if out is None else Store(Path(out))
    began = time.monotonic()

    def play(what: Sequence[Game], told: Progress | None) -> pl.DataFrame:
        points = [game.point for game in what]
        records = run_points(points, [], workers=workers, executor=executor, store=store, progress=told)
        return playing.table(zip(what, records, strict=True), delay_weight)

    found = League(field_, players, rounds, seed, delay_weight, games, play(games, progress))
    found.worst = _worst(found, play)
    found.seconds = time.monotonic() - began
    return found


Play = Callable[[Sequence[Game], Progress | None], pl.DataFrame]


def _worst(of: League, play: Play) -> dict[str, WorstDay]:
    """Each scheme's worst day, and what it is with other seeds: the greatest of many is too great."""
    scores = of.runs["score"].to_list()
    best: dict[tuple[str, int], int] = {}
    for n, game in enumerate(of.games):
        day = (game.of.key, game.draw.number)
        if day not in best or scores[n] > scores[best[day]]:
            best[day] = n
    days: dict[str, tuple[float, Game, Game]] = {}
    for n, game in enumerate(of.games):
        ahead = best[game.of.key, game.draw.number]
        behind = scores[ahead] - scores[n]
        if game.entrant.label not in days or behind > days[game.entrant.label][0]:
            days[game.entrant.label] = (behind, game, of.games[ahead])
    again = [
        replace(game, seed=seed, point=replace(game.point, seeds=(seed,)))
        for behind, *both in days.values()
        for game in both
        for seed in range(_FAR + of.seed, _FAR + of.seed + AFRESH)
        if behind > 0
    ]
    fresh = play(again, None)["score"].to_list() if again else []
    found, at = {}, 0
    for label, (behind, game, first) in days.items():
        if behind > 0:
            own, others = fresh[at : at + AFRESH], fresh[at + AFRESH : at + 2 * AFRESH]
            at += 2 * AFRESH
            found[label] = WorstDay(game, first, behind, paired_difference(own, others))
    return found
