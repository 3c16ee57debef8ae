"""Reading a paper's files, strictly: what is unknown, missing or of the wrong kind is an error that names its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.reproduce.expression import Expression, ExpressionError
from paceline.reproduce.measure import REDUCTIONS
from paceline.reproduce.paper import (
    Claim,
    Curve,
    Finding,
    Level,
    Metric,
    Paper,
    Plot,
    Series,
    Settings,
    Show,
    Study,
    Trace,
)
from paceline.reproduce.verdict import Kind, Published
from paceline.reproduce.where import PaperError, folder_of_papers
from paceline.results import SERIES
from paceline.scenario import toml_value


class _Table:
    """A TOML table that complains about keys nobody asked for."""

    def __init__(self, where: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise PaperError(f"{where}: must be a table")
        self.where, self._values = where, dict(values)

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        if key not in self._values:
            if default is ...:
                raise PaperError(f"{self.where}: needs {key}")
            return default
        value = self._values.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = kind if isinstance(kind, tuple) else (kind,)
            raise PaperError(
                f"{self.where}.{key}: must be {' or '.join(k.__name__ for k in names)}, not {value!r}"
            )
        return value

    def end(self) -> None:
        if self._values:
            raise PaperError(f"{self.where}: unknown {', '.join(sorted(self._values))}")


def _settings(table: _Table) -> Settings:
    return tuple((path, toml_value(value)) for path, value in table.take("set", dict, {}).items())


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise PaperError(f"cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise PaperError(f"{path}: {error}") from None


def _series(where: str, values: list[Any]) -> tuple[Series, ...]:
    found = []
    for i, value in enumerate(values):
        table = _Table(f"{where}.series[{i}]", value)
        found.append(
            Series(
                table.take("key", str),
                table.take("label", str),
                _settings(table),
                table.take("dashed", bool, False),
            )
        )
        table.end()
    return tuple(found)


def _levels(where: str, table: _Table) -> tuple[Level, ...]:
    path = table.take("path", str, None)
    if path is not None:
        values = table.take("values", list)
        labels = table.take("labels", list, values)
        xs = table.take("x", list, list(range(len(values))))
        if not len(values) == len(labels) == len(xs):
            raise PaperError(f"{where}: values, labels and x must be of one length")
        return tuple(
            Level(str(label), float(x), ((path, str(value)),))
            for value, label, x in zip(values, labels, xs, strict=True)
        )
    found = []
    for i, value in enumerate(table.take("level", list)):
        entry = _Table(f"{where}.level[{i}]", value)
        found.append(
            Level(entry.take("label", str), float(entry.take("x", (int, float), i)), _settings(entry))
        )
        entry.end()
    return tuple(found)


_KINDS = ("line", "bars", "trace", "scatter", "curves")


def _plots(
    where: str, values: list[Any], levels: tuple[Level, ...], metrics: Mapping[str, Metric]
) -> tuple[Plot, ...]:
    found = []
    for i, value in enumerate(values):
        table = _Table(f"{where}.plot[{i}]", value)
        key, title = table.take("key", str), table.take("title", str)
        kind = table.take("kind", str, "line")
        if kind not in _KINDS:
            raise PaperError(f"{table.where}.kind: {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not {kind!r}")
        plot = Plot(
            key,
            title,
            "" if kind in ("curves", "trace") else table.take("metric", str),
            kind,
            table.take("over", str, None),
            table.take("log_x", bool, False),
            tuple(float(v) for v in table.take("lines_at", list, [])),
            table.take("log_y", bool, False),
            table.take("label", str, ... if kind in ("curves", "trace") else ""),
            table.take("x_label", str, ""),
            _curves(table, levels) if kind == "curves" else (),
            _trace(table) if kind == "trace" else None,
            float(table.take("y_from", (int, float), 0.0)),
        )
        table.end()
        for name in (plot.metric, plot.over):
            if name and name not in metrics:
                raise PaperError(f"{table.where}: no metric {name!r}; there are {', '.join(metrics)}")
        found.append(plot)
    return tuple(found)


def _curves(plot: _Table, levels: tuple[Level, ...]) -> tuple[Curve, ...]:
    """The curves of a plot; {level} in their expressions stands for each level in turn."""

    def expressions(where: str, text: str) -> tuple[Expression, ...]:
        return tuple(_expression(where, text.replace("{level}", level.label)) for level in levels)

    common = plot.take("x", str, None)
    found = []
    for i, value in enumerate(plot.take("curve", list)):
        table = _Table(f"{plot.where}.curve[{i}]", value)
        x = table.take("x", str, common)
        found.append(
            Curve(
                table.take("key", str),
                table.take("label", str),
                expressions(f"{table.where}.y", table.take("y", str)),
                None if x is None else expressions(f"{table.where}.x", x),
                table.take("colour", int, i),
                table.take("dashed", bool, False),
                table.take("marked", bool, True),
                table.take("joined", bool, True),
            )
        )
        table.end()
    return tuple(found)


def _trace(plot: _Table) -> Trace:
    table = _Table(f"{plot.where}.trace", plot.take("trace", dict))
    trace = Trace(
        table.take("column", str),
        float(table.take("scale", (int, float), 1.0)),
        table.take("flow", str, None),
    )
    table.end()
    return trace


def _study(
    name: str, key: str, value: Any, common: tuple[Series, ...], metrics: Mapping[str, Metric]
) -> Study:
    where = f"{name}: study.{key}"
    table = _Table(where, value)
    pool = tuple(table.take("pool", list, []))
    axis = _Table(f"{where}.axis", table.take("axis", dict, {}))
    own = table.take("series", list, [])
    later = table.take("later", str, "")
    levels = () if pool or later else _levels(f"{where}.axis", axis)
    study = Study(
        key=key,
        figure=table.take("figure", str),
        title=table.take("title", str),
        text=table.take("text", str, ""),
        scenario=table.take("scenario", str, None),
        axis_label=axis.take("label", str, ""),
        axis_unit=axis.take("unit", str, ""),
        series=_series(where, own) if own else common,
        levels=levels,
        plots=_plots(where, table.take("plot", list, []), levels, metrics),
        pool=pool,
        record=table.take("record", str, None),
        later=later,
        seconds=float(table.take("seconds", (int, float), 0.1)),
    )
    if [bool(pool), bool(study.scenario), bool(later)].count(True) != 1:
        raise PaperError(f"{where}: needs either a scenario, or a pool of studies, or `later`")
    axis.end()
    table.end()
    if study.record not in (None, *SERIES):
        raise PaperError(f"{where}.record: {', '.join(SERIES)}, not {study.record!r}")
    if study.record is None and any(plot.kind == "trace" for plot in study.plots):
        raise PaperError(f"{where}: a trace needs `record`")
    for plot in study.plots:
        for curve in plot.curves:
            for expression in (*curve.y, *(curve.x or ())):
                _check_selections(f"{where}: plot {plot.key}, curve {curve.key}", expression, study, metrics)
    return study


def _metrics(name: str, values: dict[str, Any]) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for key, value in values.items():
        table = _Table(f"{name}: metric.{key}", value)
        text = table.take("expression", str, None)
        metric = Metric(
            key=key,
            label=table.take("label", str),
            unit=table.take("unit", str, ""),
            table=table.take("table", str, None),
            match=table.take("match", dict, {}),
            field=table.take("field", str, None),
            scale=float(table.take("scale", (int, float), 1.0)),
            if_null=table.take("if_null", str, None),
            rows=table.take("rows", str, "first"),
            expression=_expression(table.where, text) if text is not None else None,
        )
        table.end()
        if metric.rows != "first" and metric.rows not in REDUCTIONS:
            raise PaperError(f"{table.where}.rows: first, {', '.join(REDUCTIONS)}, not {metric.rows!r}")
        if (metric.expression is None) == (metric.table is None or metric.field is None):
            raise PaperError(f"{table.where}: needs either table and field or an expression")
        if metric.expression and (missing := metric.expression.names - found.keys()):
            raise PaperError(f"{table.where}: {', '.join(sorted(missing))} must be a metric above it")
        found[key] = metric
    return found


def _expression(where: str, text: str) -> Expression:
    try:
        return Expression(text)
    except ExpressionError as error:
        raise PaperError(f"{where}: {error}") from None


def _claims(
    name: str, values: list[Any], studies: Mapping[str, Study], metrics: Mapping[str, Metric]
) -> list[Claim]:
    found: list[Claim] = []
    for i, value in enumerate(values):
        where = f"{name}: claim[{i}]"
        if not isinstance(value, dict):
            raise PaperError(f"{where}: must be a table")
        where = f"{where} {value.get('key', '')}".strip()
        entry = {k: v for k, v in value.items() if k != "each"}
        found += [_claim(where, _fill(entry, one), studies, metrics) for one in value.get("each", [None])]
    repeated = {c.key for c in found if sum(c.key == d.key for d in found) > 1}
    if repeated:
        raise PaperError(f"{name}: claim {', '.join(sorted(repeated))} stands there twice")
    return found


def _fill(value: Any, one: str | None) -> Any:
    """`value` for one of the names that a claim is made for `each` of: {each} replaced, tables by name looked up."""
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
    table = _Table(where, value)
    study = table.take("study", str)
    if study not in studies:
        raise PaperError(f"{where}: no study {study!r}; there are {', '.join(studies)}")
    sign = table.take("sign", str, None)
    if sign not in (None, "+", "-"):
        raise PaperError(f"{where}.sign: + or -, not {sign!r}")
    number = table.take("published", (int, float), None)
    last_digit = table.take("last_digit", (int, float), None)
    kind = table.take("kind", str)
    if kind not in list(Kind):
        raise PaperError(f"{where}.kind: {', '.join(Kind)}, not {kind!r}")
    try:
        published = Published(
            Kind(kind),
            None if number is None else float(number),
            None if last_digit is None else float(last_digit),
            None if sign is None else 1 if sign == "+" else -1,
        )
    except ValueError as error:
        raise PaperError(f"{where}: {error}") from None
    shows = []
    for i, entry in enumerate(table.take("show", list, [])):
        shown = _Table(f"{where}.show[{i}]", entry)
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
        ours=None if studies[study].later else _expression(where, table.take("ours", str)),
        published=published,
        unit=table.take("unit", str, ""),
        shows=tuple(shows),
        if_differs=table.take("if_differs", str, ""),
        bound=None if bound is None else float(bound),
    )
    table.end()
    if claim.ours is not None:
        _check_selections(where, claim.ours, studies[study], metrics)
    _check_shows(where, claim, studies)
    return claim


def _check_selections(where: str, ours: Expression, study: Study, metrics: Mapping[str, Metric]) -> None:
    unknown = ours.names - metrics.keys() - {"x"}
    if unknown:
        raise PaperError(f"{where}: no metric {', '.join(sorted(unknown))}; there are {', '.join(metrics)}")
    for _, series, levels in ours.selections:
        if series not in {s.key for s in study.series}:
            raise PaperError(f"{where}: study {study.key} has no series {series!r}")
        for label in levels if isinstance(levels, tuple) else (levels,):
            if label is not None and label not in {level.label for level in study.levels}:
                raise PaperError(f"{where}: study {study.key} has no level {label!r}")


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
            raise PaperError(f"{where}.show.bound: above or below, not {show.bound!r}")
        if show.value is None and claim.published.value is None:
            raise PaperError(f"{where}.show: needs a value, since the claim has no number")


def load(key: str, root: Path | None = None) -> Paper:
    """Reads the paper `key`. Raises PaperError for an unknown key or a mistake in its files."""
    papers = root or folder_of_papers()
    folder = papers / key
    if not (folder / "figures.toml").is_file():
        known = sorted(path.parent.name for path in papers.glob("*/figures.toml"))
        raise PaperError(f"no paper {key!r}: there are {', '.join(known)}")
    name = f"{key}/figures.toml"
    top = _Table(name, _read(folder / "figures.toml"))
    about = _Table(f"{name}: paper", top.take("paper", dict))
    metrics = _metrics(name, top.take("metric", dict))
    common = _series(name, top.take("series", list, []))
    studies = {k: _study(name, k, v, common, metrics) for k, v in top.take("study", dict).items()}
    findings = []
    for i, value in enumerate(top.take("finding", list, [])):
        table = _Table(f"{name}: finding[{i}]", value)
        findings.append(Finding(table.take("title", str), table.take("text", str)))
        table.end()
    top.end()
    for study in studies.values():
        if study.scenario and not (folder / study.scenario).is_file():
            raise PaperError(f"{name}: study.{study.key}: no scenario file {study.scenario}")
        if missing := [k for k in study.pool if k not in studies]:
            raise PaperError(f"{name}: study.{study.key}.pool: no study {', '.join(missing)}")
    published = _Table(f"{key}/published.toml", _read(folder / "published.toml"))
    claims = _claims(f"{key}/published.toml", published.take("claim", list), studies, metrics)
    published.end()
    paper = Paper(
        key=key,
        folder=folder,
        title=about.take("title", str),
        authors=about.take("authors", str),
        published_in=about.take("published_in", str),
        summary=about.take("summary", str),
        metrics=metrics,
        studies=studies,
        claims=tuple(claims),
        findings=tuple(findings),
        runs=about.take("runs", int, 10),
    )
    about.end()
    return paper
