"""A sample of a league over emulated paths, and its difference from the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from paceline import realtime
from paceline.emulator.realtime_queue import Budget, expected_s, in_turn
from paceline.errors import PacelineError
from paceline.leagues import matches
from paceline.leagues.running import League
from paceline.results.store import Store
from paceline.simulate.points import Progress
from paceline.studies.reproduction import RealTime

SAMPLE = 1
"""Default rounds over emulated paths, where a run takes its full duration."""
SCHEMA: dict[str, Any] = {
    "class": pl.String,
    "scheme": pl.String,
    "n": pl.Int64,
    "goodput_simulated_bps": pl.Float64,
    "goodput_emulated_bps": pl.Float64,
    "goodput_gap": pl.Float64,
    "rtt_simulated_s": pl.Float64,
    "rtt_emulated_s": pl.Float64,
    "rtt_gap": pl.Float64,
}
"""Means over the sample's rounds; a gap is the relative excess of the emulated value over the simulated one. One-way
delays between hosts are unknown, so round-trip times are compared."""


def refuse(rounds: int, of: int) -> None:
    """Raises PacelineError if this system runs nothing in real time, and for an invalid sample."""
    if why := realtime.refused():
        raise PacelineError(f"over emulator: {why}")
    if not 1 <= rounds <= of:
        raise PacelineError(f"a sample has 1 to {of} rounds, as many as the league, not {rounds}")


def seconds(league: League, rounds: int, workers: int | None = None) -> float:
    """The estimated duration of a sample."""
    budget = Budget.of_machine(workers)
    return sum(
        budget.seconds([game.point for game in league.games(number)]) for number in range(1, rounds + 1)
    )


def sample(
    league: League,
    rounds: int = SAMPLE,
    *,
    workers: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Runs the first rounds of the league over emulated paths, and adds the gap to the league. Raises PacelineError and
    Interrupted."""
    refuse(rounds, league.rounds)
    budget, store = Budget.of_machine(workers), None if out is None else Store(Path(out))
    parts = [league.games(number) for number in range(1, rounds + 1)]
    for game in parts[0]:
        try:
            realtime.check(game.point.scenario, game.seed)
        except PacelineError as error:
            raise PacelineError(f"{game.of.key}, {game.label}: over emulator: {error}") from None
    total = sum(expected_s(game.point) for part in parts for game in part)
    days = league.runs.select("class", "round", "least_delay_s").unique().iter_rows()
    min_delays = {(key, number): delay for key, number, delay in days}
    before, tables, kept = 0.0, [], []
    for part in parts:

        def on_progress(done: float, _of: float, before: float = before) -> None:
            if progress:
                progress(before + done, total)

        records = in_turn(
            [game.point for game in part],
            [part[0].seed],
            realtime.Emulator(),
            over="emulator",
            store=store,
            progress=on_progress,
            budget=budget,
        )
        kept += records
        before += sum(expected_s(game.point) for game in part)
        tables.append(matches.table(zip(part, records, strict=True), league.weight, min_delays))
    league.gap = _gap(league, pl.concat(tables))
    league.real = RealTime.of(kept, budget)


def _gap(league: League, emulated: pl.DataFrame) -> pl.DataFrame:
    keys = ["class", "round", "scheme"]
    both = league.runs.join(emulated, on=keys, suffix="_emulated").drop_nulls("goodput_bps_emulated")
    rows = []
    for of in league.classes:
        for entrant in league.entrants:
            own = both.filter((pl.col("class") == of.key) & (pl.col("scheme") == entrant.label))
            goodput = [_mean(own, name) for name in ("goodput_bps", "goodput_bps_emulated")]
            rtt = [_mean(own, name) for name in ("rtt_mean_s", "rtt_mean_s_emulated")]
            rows.append([of.key, entrant.label, len(own), *goodput, _more(goodput), *rtt, _more(rtt)])
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _mean(rows: pl.DataFrame, column: str) -> float | None:
    mean = rows[column].mean()
    return float(mean) if isinstance(mean, int | float) else None


def _more(values: Sequence[float | None]) -> float | None:
    simulated, there = values
    return None if simulated is None or there is None or simulated == 0 else there / simulated - 1
