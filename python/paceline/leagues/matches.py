"""The games: a run of each scheme in each drawn scenario, and the table of results."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from paceline import _core
from paceline.errors import PacelineError
from paceline.leagues.classes import Class, Draw
from paceline.leagues.entrants import FRAMES, STREAM_SHARE, Entrant
from paceline.leagues.scoring import score
from paceline.results.results import RunRecord
from paceline.scenarios.scenario import Schemes, load
from paceline.simulate.points import Point

RATE_EVERY_S = 0.005
SEGMENT_BYTES = 1460
_LONE: Mapping[str, Any] = {"cc": "udp", "delays": True, "app": {"kind": "cbr", "rate": "160 kbit/s"}}
"""A flow whose packets meet no others: the minimum of their delays is the minimum possible."""
_OF_THE_WAY = ("from", "to", "rtt", "access")
"""Keys of a flow that determine its path."""

SCHEMA: dict[str, Any] = {
    "class": pl.String,
    "round": pl.Int64,
    "scheme": pl.String,
    "seed": pl.Int64,
    "goodput_bps": pl.Float64,
    "fair_bps": pl.Float64,
    "share": pl.Float64,
    "delay_s": pl.Float64,
    "least_delay_s": pl.Float64,
    "rtt_mean_s": pl.Float64,
    "loss_rate": pl.Float64,
    "score": pl.Float64,
    "failed": pl.Boolean,
}
"""The table of runs. `share` is the minimum, over the flows that count, of goodput over fair share. `delay_s` is the
95th percentile of the packets' one-way delay, for media of the frames'. `least_delay_s` is that of a packet that meets
no others."""


@dataclass(frozen=True)
class Game:
    """A scheme in a drawn scenario; without a scheme, packets that meet no others."""

    of: Class
    draw: Draw
    entrant: Entrant | None
    seed: int
    own: Schemes | None

    @property
    def day(self) -> tuple[str, int]:
        """Its class and round."""
        return self.of.key, self.draw.number

    @property
    def label(self) -> str:
        """The scheme's label; "" for the lone packets."""
        return "" if self.entrant is None else self.entrant.label

    @cached_property
    def point(self) -> Point:
        """The point to run. Raises PacelineError for a scheme that cannot play it."""
        labels = {"class": self.of.key, "round": self.draw.number, "scheme": self.label}
        return Point(self._scenario(), labels, (self.seed,))

    @property
    def is_recorded(self) -> bool:
        """Whether a recording of rates, each `RATE_EVERY_S`, is needed to measure delays: for media over TCP."""
        return self.entrant is not None and self.entrant.machine == "tcp" and self.draw.media_bps is not None

    def with_seed(self, seed: int) -> Game:
        """The same scenario with another seed."""
        return replace(self, seed=seed)

    def _scenario(self) -> _core.Scenario:
        whole = copy.deepcopy(dict(self.draw.scenario))
        whole["name"] = f"{self.of.key}-{self.draw.number}"
        whole["description"] = " ".join(self.of.text.split())
        whole["seed"] = self.seed
        if self.entrant is None:
            first = whole["flow"][self.of.schemes[0]]
            whole["flow"] = {"lone": {**{k: first[k] for k in _OF_THE_WAY if k in first}, **_LONE}}
            whole.pop("stop_after", None)
        try:
            changes = {} if self.entrant is None else self.entrant.enter(self.of, self.draw)
            return load(whole, changes, self.own)
        except PacelineError as error:
            who = self.of.source if self.entrant is None else f"{self.entrant.name} cannot play {self.of.key}"
            raise PacelineError(f"{who}: {without_place(error)}") from None


def without_place(said: object) -> str:
    """A message without the place of a scenario that has no file."""
    return re.sub(r"\bscenario:\d+: ", "", str(said))


def round_of(
    classes: Sequence[Class], entrants: Sequence[Entrant], number: int, seed: int, own: Schemes | None = None
) -> list[Game]:
    """A scenario of each class, played by all, the lone packets first. Round k has seed `seed` + k - 1."""
    found = []
    for of in classes:
        draw = of.draw(seed, number)
        found += [Game(of, draw, entrant, seed + number - 1, own) for entrant in (None, *entrants)]
    return found


def table(
    played: Iterable[tuple[Game, RunRecord]], weight: float, min_delays: Mapping[tuple[str, int], float]
) -> pl.DataFrame:
    """The results of games, a row each: see `SCHEMA`. `min_delays` has each day's minimum delay."""
    rows = [
        _row(game, record, weight, min_delays[game.day])
        for game, record in played
        if game.entrant is not None
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def minimum_delays(played: Iterable[tuple[Game, RunRecord]]) -> dict[tuple[str, int], float]:
    """Each day's minimum delay, in seconds. Raises PacelineError if no packet arrives."""
    found = {}
    for game, record in played:
        if game.entrant is not None:
            continue
        (row,) = record.summary["flows"]
        if row["owd_min_s"] is None:
            raise PacelineError(
                f"{game.of.source}: in round {game.draw.number} not even a lone packet arrives"
            )
        found[game.day] = float(row["owd_min_s"])
    return found


def _frame_delay(record: RunRecord, game: Game) -> float | None:
    """For media over TCP, the 95th percentile of the delay from a frame's production to its complete arrival, over
    frames produced in the measured time. Frames incomplete at the end count with their delay up to then."""
    of, flow = game.of, game.of.schemes[0]
    row = next((row for row in record.summary.get("flows", ()) if row["flow"] == flow), None)
    if row is None or game.draw.media_bps is None:
        return None
    series = record.series["rate"].filter(pl.col("flow") == flow).sort("time_s")
    times = series["time_s"].to_numpy()
    received_bytes = (series["goodput_bps"].fill_null(0.0).to_numpy() * RATE_EVERY_S / 8).cumsum()
    frame = game.draw.media_bps / 8 / FRAMES
    produced_at = row["start_s"] + np.arange(math.floor(STREAM_SHARE * of.duration_s * FRAMES)) / FRAMES
    # Only whole segments are sent: the rest of a frame goes with the next one.
    whole = (np.arange(len(produced_at)) + 1) * frame - SEGMENT_BYTES
    arrived_at = np.interp(whole, received_bytes, times, left=times[0], right=of.duration_s)
    delays = (arrived_at - produced_at)[(produced_at >= of.warmup_s) & (produced_at < of.duration_s)]
    return float(np.quantile(delays, 0.95, method="inverted_cdf")) if len(delays) else None


def _row(game: Game, record: RunRecord, weight: float, min_delay_s: float) -> list[Any]:
    of, draw = game.of, game.draw
    rows: list[Mapping[str, Any]] = list(record.summary.get("flows", ()))
    held = [float(row["goodput_bps"] or 0.0) / draw.fair_bps for row in rows if row["flow"] in of.held]
    share = min(held, default=0.0)
    own = next((row for row in rows if row["flow"] == of.schemes[0]), {})
    if game.is_recorded:
        delay = _frame_delay(record, game)
    else:
        delay = own.get("frame_delay_p95_s" if draw.media_bps else "owd_p95_s")
    # If nothing arrived, the delay is at least the whole measured time.
    ratio = (of.duration_s - of.warmup_s if delay is None else float(delay)) / min_delay_s
    return [
        of.key,
        draw.number,
        game.label,
        game.seed,
        own.get("goodput_bps"),
        draw.fair_bps,
        share,
        delay,
        min_delay_s,
        own.get("rtt_mean_s"),
        own.get("loss_rate"),
        score(share, ratio, weight),
        not rows,
    ]
