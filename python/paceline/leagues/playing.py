"""Who plays what: a run of each scheme in each drawn scenario, and what came of it as a table."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from paceline import _core
from paceline.errors import PacelineError, PacelineWarning
from paceline.leagues.classes import PACKET_BITS, Class, Draw
from paceline.leagues.entrants import Entrant
from paceline.leagues.scoring import score
from paceline.results import RunRecord
from paceline.scenario import Schemes, load
from paceline.sweeping import Point
from paceline.warned import warn

_PLACE = re.compile(r"^[^ ]+:\d+: ")
"""Where in a scenario that has no file."""
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
"""The table of runs. `share` is the least, over the flows that count, of goodput by what is fair. `delay_s` is the
one-way delay that 95 % of the packets do not exceed; of media the frames' delay, or how late a stream is shown at its
end."""


@dataclass(frozen=True)
class Game:
    """A scheme in a drawn scenario."""

    of: Class
    draw: Draw
    entrant: Entrant
    seed: int
    point: Point


def games(
    classes: Sequence[Class],
    entrants: Sequence[Entrant],
    rounds: int,
    seed: int,
    own: Schemes | None = None,
) -> list[Game]:
    """All of them, round by round. Round k has seed `seed` + k - 1, whoever plays. Raises PacelineError for a scheme
    that cannot play a class."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        for number in range(1, rounds + 1):
            for of in classes:
                draw = of.draw(seed, number)
                for entrant in entrants:
                    scenario = _scenario(of, draw, entrant, own)
                    labels = {"class": of.key, "round": number, "scheme": entrant.label}
                    own_seed = seed + number - 1
                    found.append(Game(of, draw, entrant, own_seed, Point(scenario, labels, (own_seed,))))
    # each once, not once a scenario
    for text in dict.fromkeys(_PLACE.sub("", str(one.message)) for one in caught):
        warn(text)
    return found


def _scenario(of: Class, draw: Draw, entrant: Entrant, own: Schemes | None) -> _core.Scenario:
    whole = copy.deepcopy(dict(draw.scenario))
    whole["name"] = f"{of.key}-{draw.number}"
    try:
        return load(whole, entrant.enter(of, draw), own)
    except PacelineError as error:
        raise PacelineError(f"{entrant.name} cannot play {of.key}: {error}") from None


def table(played: Iterable[tuple[Game, RunRecord]], weight: float) -> pl.DataFrame:
    """What came of games, a row each: see `SCHEMA`."""
    return pl.DataFrame([_row(game, record, weight) for game, record in played], schema=SCHEMA, orient="row")


def _lag(record: RunRecord, own: Mapping[str, Any], of: Class) -> float | None:
    """How late media are shown: of frames, 95 % of them at most; of a stream that never skips, at its end."""
    stream = next((row for row in record.summary.get("streams", ()) if row["flow"] == of.schemes[0]), None)
    if stream is None:
        return own.get("frame_delay_p95_s")
    return None if stream["fill_s"] is None else float(stream["fill_s"]) + float(stream["stall_s"])


def _row(game: Game, record: RunRecord, weight: float) -> list[Any]:
    of, draw = game.of, game.draw
    rows: list[Mapping[str, Any]] = list(record.summary.get("flows", ()))
    held = [
        sum(float(row["goodput_bps"] or 0.0) for row in rows if row["flow"] == name) / draw.fair_bps
        for name in of.held
    ]
    share = min(held, default=0.0)
    own = next((row for row in rows if row["flow"] == of.schemes[0]), {})
    least = float(own.get("propagation_rtt_s") or 0.0) / 2 + PACKET_BITS / draw.capacity_bps
    delay = _lag(record, own, of) if draw.media_bps else own.get("owd_p95_s")
    # of what never came nobody knows better than that it took as long as was waited
    ratio = (of.duration_s - of.warmup_s if delay is None else float(delay)) / least
    return [
        of.key,
        draw.number,
        game.entrant.label,
        game.seed,
        own.get("goodput_bps"),
        draw.fair_bps,
        share,
        delay,
        least,
        own.get("rtt_mean_s"),
        own.get("loss_rate"),
        score(share, ratio, weight),
        not rows,
    ]
