"""The page of a league: one HTML file, built like a reproduction's and a suite's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from paceline import files
from paceline.leagues import clouds
from paceline.leagues.classes import Class
from paceline.leagues.running import OTHER_SEEDS, League, WorstDay
from paceline.leagues.scoring import Standing
from paceline.quantities import digits
from paceline.report import inline, parts, playground_links
from paceline.report.numbers import plus_minus
from paceline.report.picture import Picture
from paceline.statistics import CONFIDENCE

_TEMPLATES = Path(__file__).parent / "templates"


def render(
    league: League, pictures: dict[str, Picture], worst_files: dict[str, str], *, opened: bool = False
) -> str:
    """The whole page. `worst_files` maps schemes to the file name of their worst day; these also link to the playground
    if it lies beside the page (`opened`)."""
    styles = inline.Styles()
    overall = league.standings()
    by_class = {of.key: league.standings(of) for of in league.classes}
    return parts.template("league.html.j2", _TEMPLATES).render(
        league=league,
        schemes=[one.label for one in league.entrants],
        overall=[_row(league, one, None) for one in overall],
        matrix=_matrix(league, overall, by_class),
        key=_figure(league, clouds.OVERALL, "All classes, each a dot", pictures, styles),
        classes=[
            {
                "key": of.key,
                "title": of.title,
                "text": of.text,
                "source": of.source,
                "figure": _figure(league, of.key, of.title, pictures, styles),
                "rows": [_row(league, one, of) for one in by_class[of.key]],
                "laws": [(path, law.words) for path, law in of.laws.items()],
                "first": _first(by_class[of.key]),
            }
            for of in league.classes
        ],
        worst=[
            _worst(day, label, worst_files[label], opened)
            for label, day in sorted(league.worst.items(), key=lambda pair: -pair[1].behind)
        ],
        gap=_gap(league),
        real_time=parts.real_words(league.real),
        other_seeds=OTHER_SEEDS,
        opened=opened,
        seeds=[league.seed, league.seed + league.rounds - 1],
        provenance=files.provenance(),
        **parts.frame(pictures, {}, styles),
    )


def _first(standings: list[Standing]) -> str:
    """The first scheme, and how many others may be first."""
    others = sum(one.best == 1 for one in standings) - 1
    return standings[0].scheme + (
        f", or one of {others} others" if others > 1 else ", or another" if others else ""
    )


def _figure(
    league: League, key: str, title: str, pictures: dict[str, Picture], styles: inline.Styles
) -> dict[str, Any]:
    label = f"{title}: share of what is fair over added delay. The numbers stand in the tables."
    return {
        "key": key,
        "title": title,
        "figure": "",
        "svg": inline.svg(pictures[key], f"cloud-{key}", label, styles),
    }


def _row(league: League, one: Standing, of: Class | None) -> dict[str, str]:
    runs = league.runs if of is None else league.runs.filter(pl.col("class") == of.key)
    own = runs.filter(pl.col("scheme") == one.scheme)
    failed = int(own["failed"].sum())
    p = one.p
    return {
        "scheme": one.scheme,
        "rank": one.rank,
        "first": "first" if one.best == 1 else "",
        "score": plus_minus(one.score),
        "behind": "" if one.behind is None else plus_minus(one.behind.estimate),
        "p": "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        "shown": "" if p is None else "ahead" if p < 1 - CONFIDENCE else "not shown",
        "wins": f"{one.wins * 100:.0f} %",
        "share": _percent(own["share"].clip(upper_bound=1.0).median()),
        "delay": _ms((own["delay_s"] - own["least_delay_s"]).median()),
        "loss": _percent(own["loss_rate"].median()),
        "failed": f"{failed} of {len(own)} runs failed" if failed else "",
    }


def _percent(value: Any) -> str:
    return "–" if value is None else f"{digits(float(value) * 100)} %"


def _ms(value: Any) -> str:
    if value is None:
        return "–"
    ms = float(value) * 1e3
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{max(ms, 0):.3g} ms"


def _matrix(
    league: League, overall: list[Standing], by_class: dict[str, list[Standing]]
) -> list[dict[str, Any]]:
    """Schemes by classes: the mean score, its place between the class's last and first, and whether it may be first."""
    rows = []
    for one in overall:
        cells = []
        for of in league.classes:
            standing = next(other for other in by_class[of.key] if other.scheme == one.scheme)
            means = [other.score.mean or 0.0 for other in by_class[of.key]]
            low, high = min(means), max(means)
            mean = standing.score.mean or 0.0
            cells.append(
                {
                    "text": f"{mean:.2f}".replace("-", "−"),
                    "rank": standing.rank,
                    "part": f"{(mean - low) / (high - low) if high > low else 1.0:.2f}",
                    "first": standing.best == 1,
                }
            )
        rows.append({"scheme": one.scheme, "cells": cells})
    return rows


def _worst(day: WorstDay, label: str, file: str, opened: bool) -> dict[str, str]:
    drawn = [f"{path} = {_short(value)}" for path, value in day.game.draw.drawn.items()]
    link = playground_links.of_scenario(day.game.point.scenario) if opened else playground_links.Opening()
    return {
        "scheme": label,
        "class": day.game.of.title,
        "key": day.game.of.key,
        "round": str(day.game.draw.number),
        "ahead": day.ahead.label,
        "behind": f"{day.behind:.2f}",
        "again": plus_minus(day.again.estimate),
        "drawn": "; ".join(drawn),
        "file": file,
        "command": f"paceline run {file}",
        "href": link.href,
        "closed": link.why,
    }


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} steps"
    return str(value.written()) if hasattr(value, "written") else str(value)


def _gap(league: League) -> list[dict[str, str]]:
    if league.gap is None:
        return []
    return [
        {
            "class": row["class"],
            "scheme": row["scheme"],
            "n": str(row["n"]),
            "goodput_simulated": _mbit(row["goodput_simulated_bps"]),
            "goodput_emulated": _mbit(row["goodput_emulated_bps"]),
            "goodput_gap": _signed(row["goodput_gap"]),
            "rtt_simulated": _ms(row["rtt_simulated_s"]),
            "rtt_emulated": _ms(row["rtt_emulated_s"]),
            "rtt_gap": _signed(row["rtt_gap"]),
        }
        for row in league.gap.iter_rows(named=True)
    ]


def _mbit(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e6:.3g}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:+.1f} %"
