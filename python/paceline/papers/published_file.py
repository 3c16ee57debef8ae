"""Reads a paper's published results: `published.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.files.paper_folders import PaperError
from paceline.studies.metric import Metric
from paceline.studies.paper import Claim, Show
from paceline.studies.strict import Table, check_distinct, check_selections, to_expression
from paceline.studies.study import Study
from paceline.studies.verdict import Kind, Published


def read_claims(
    name: str, values: list[Any], studies: Mapping[str, Study], metrics: Mapping[str, Metric]
) -> list[Claim]:
    found: list[Claim] = []
    for i, value in enumerate(values):
        where = f"{name}: claim[{i}]"
        if not isinstance(value, dict):
            raise PaperError(f"{where}: must be a table")
        where = f"{where} {value.get('key', '')}".strip()
        each = Table(where, value).take_each("each", str) if "each" in value else [None]
        entry = {k: v for k, v in value.items() if k != "each"}
        found += [_claim(where, _fill(entry, one), studies, metrics) for one in each]
    check_distinct(name, "claim", [claim.key for claim in found])
    return found


def _fill(value: Any, one: str | None) -> Any:
    """`value` for one of the names in a claim's `each`: {each} is replaced, tables by name are looked up."""
    if one is None:
        return value
    if isinstance(value, str):
        return value.replace("{each}", one)
    if isinstance(value, list):
        return [_fill(v, one) for v in value]
    if isinstance(value, dict):
        if one in value:
            return _fill(value[one], one)
        return {k: _fill(v, one) for k, v in value.items()}
    return value


def _claim(where: str, value: Any, studies: Mapping[str, Study], metrics: Mapping[str, Metric]) -> Claim:
    table = Table(where, value)
    study = table.take("study", str)
    if study not in studies:
        raise PaperError(f"{where}: no study {study!r}; there are {', '.join(studies)}")
    sign = table.take("sign", str, None)
    if sign not in (None, "+", "-"):
        raise PaperError(f"{where}.sign: must be + or -, not {sign!r}")
    number = table.take("published", (int, float), None)
    last_digit = table.take("last_digit", (int, float), None)
    margin = table.take("margin", (int, float), None)
    kind = table.take("kind", str)
    if kind not in list(Kind):
        raise PaperError(f"{where}.kind: must be one of {', '.join(Kind)}, not {kind!r}")
    try:
        published = Published(
            Kind(kind),
            None if number is None else float(number),
            None if last_digit is None else float(last_digit),
            None if sign is None else 1 if sign == "+" else -1,
            None if margin is None else float(margin),
            table.take("runs", int, None),
            None if (sd := table.take("sd", (int, float), None)) is None else float(sd),
        )
    except ValueError as error:
        raise PaperError(f"{where}: {error}") from None
    shows = []
    for i, entry in enumerate(table.take("show", list, [])):
        shown = Table(f"{where}.show[{i}]", entry)
        shows.append(
            Show(
                shown.take("plot", str),
                shown.take("series", str),
                shown.take("level", str),
                shown.take("bound", str, None),
                None if (v := shown.take("value", (int, float), None)) is None else float(v),
            )
        )
        shown.end()
    bound = table.take("bound", (int, float), None)
    claim = Claim(
        key=table.take("key", str),
        figure=table.take("figure", str),
        where=table.take("where", str),
        says=table.take("says", str),
        study=study,
        ours=None if studies[study].later else to_expression(where, table.take("ours", str)),
        published=published,
        unit=table.take("unit", str, ""),
        shows=tuple(shows),
        if_differs=table.take("if_differs", str, ""),
        bound=None if bound is None else float(bound),
        needs_s=float(table.take("needs", (int, float), 0.0)),
        beside=table.take("beside", str, ""),
    )
    table.end()
    if claim.ours is not None:
        check_selections(where, claim.ours, studies[study], metrics)
    _check_shows(where, claim, studies)
    return claim


def _check_shows(where: str, claim: Claim, studies: Mapping[str, Study]) -> None:
    for show in claim.shows:
        holders = [s for s in studies.values() if any(p.key == show.plot for p in s.plots)]
        if not holders:
            raise PaperError(f"{where}.show: no plot {show.plot!r}")
        (plot,) = (p for p in holders[0].plots if p.key == show.plot)
        if show.series not in {s.key for s in plot.curves or holders[0].series}:
            raise PaperError(f"{where}.show: plot {show.plot} has no series {show.series!r}")
        if show.level not in {level.label for level in holders[0].levels}:
            raise PaperError(f"{where}.show: plot {show.plot} has no level {show.level!r}")
        if show.bound not in (None, "above", "below"):
            raise PaperError(f"{where}.show.bound: must be above or below, not {show.bound!r}")
        if show.value is None and claim.published.value is None:
            raise PaperError(f"{where}.show: needs a value, since the claim has no number")
