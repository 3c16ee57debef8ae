"""Reads a paper's files strictly: anything unknown, missing or of the wrong kind is an error that names its place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from paceline.files.paper_folders import FIGURES, PUBLISHED, READINGS, PaperError, find
from paceline.papers.published_file import read_claims
from paceline.papers.readings_file import read_abstract, read_causes, read_readings
from paceline.results.recordings import SERIES
from paceline.studies.expression import Expression
from paceline.studies.metric import EACH, Episode, Metric
from paceline.studies.over_time import RECORDED, REDUCTIONS
from paceline.studies.paper import Abstract, Cause, Claim, Finding, Paper, Reading
from paceline.studies.strict import (
    Table,
    check_distinct,
    check_selections,
    read_toml,
    settings,
    to_expression,
)
from paceline.studies.study import Curve, Level, Plot, Series, Study, Trace, World


def read_series(where: str, values: list[Any]) -> tuple[Series, ...]:
    """The lines of a study's plots. Raises PaperError."""
    found = []
    for i, value in enumerate(values):
        table = Table(f"{where}.series[{i}]", value)
        found.append(
            Series(
                table.take("key", str),
                table.take("label", str),
                settings(table),
                table.take("dashed", bool, False),
                _world(table),
            )
        )
        table.end()
    return tuple(found)


def _world(entry: Table) -> World:
    word = entry.take("world", str, str(World.SIMULATED))
    if word not in list(World):
        raise PaperError(f"{entry.where}.world: must be {' or '.join(World)}, not {word!r}")
    return World(word)


def _positive(table: Table, key: str) -> float | None:
    value = table.take(key, (int, float), None)
    if value is not None and not value > 0:
        raise PaperError(f"{table.where}.{key}: must be above 0, not {value:g}")
    return None if value is None else float(value)


def read_levels(where: str, table: Table) -> tuple[Level, ...]:
    """The levels of an axis: values of one path, or separate entries. Raises PaperError."""
    path = table.take("path", str, None)
    if path is not None:
        values = table.take("values", list)
        labels = table.take("labels", list, values)
        xs = table.take_each("x", (int, float), list(range(len(values))))
        if not len(values) == len(labels) == len(xs):
            raise PaperError(f"{where}: values, labels and x must have the same length")
        return tuple(
            Level(str(label), float(x), ((path, str(value)),))
            for value, label, x in zip(values, labels, xs, strict=True)
        )
    found = []
    for i, value in enumerate(table.take("level", list)):
        entry = Table(f"{where}.level[{i}]", value)
        found.append(
            Level(
                entry.take("label", str),
                float(entry.take("x", (int, float), i)),
                settings(entry),
                _world(entry),
                _positive(entry, "cut"),
                entry.take("full", bool, False),
            )
        )
        entry.end()
    return tuple(found)


def _single(metrics: Mapping[str, Metric]) -> str:
    return ", ".join(key for key, metric in metrics.items() if metric.rows != EACH)


_KINDS = ("line", "bars", "trace", "scatter", "ellipses", "curves")


def read_plots(
    where: str, values: list[Any], levels: tuple[Level, ...], metrics: Mapping[str, Metric]
) -> tuple[Plot, ...]:
    """The plots of a study. Raises PaperError."""
    found = []
    for i, value in enumerate(values):
        table = Table(f"{where}.plot[{i}]", value)
        key, title = table.take("key", str), table.take("title", str)
        if not re.fullmatch(r"[\w.-]+", key):
            raise PaperError(
                f"{table.where}.key: names a file, so it may have letters, digits, '-', '_' and '.', not {key!r}"
            )
        kind = table.take("kind", str, "line")
        if kind not in _KINDS:
            raise PaperError(
                f"{table.where}.kind: must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not {kind!r}"
            )
        plot = Plot(
            key,
            title,
            "" if kind in ("curves", "trace") else table.take("metric", str),
            kind,
            table.take("over", str, None),
            table.take("log_x", bool, False),
            tuple(map(float, table.take_each("lines_at", (int, float), []))),
            table.take("log_y", bool, False),
            table.take("label", str, ... if kind in ("curves", "trace") else ""),
            table.take("x_label", str, ""),
            _curves(table, levels) if kind == "curves" else (),
            _trace(table) if kind == "trace" else None,
            float(table.take("y_from", (int, float), 0.0)),
        )
        table.end()
        for name in (plot.metric, plot.over):
            if name and (name not in metrics or metrics[name].rows == EACH):
                raise PaperError(f"{table.where}: no metric {name!r}; there are {_single(metrics)}")
        if (kind in ("scatter", "ellipses")) != (plot.over is not None):
            raise PaperError(
                f"{table.where}: `over` another metric needs kind scatter or ellipses, and these need `over`"
            )
        found.append(plot)
    return tuple(found)


def _curves(plot: Table, levels: tuple[Level, ...]) -> tuple[Curve, ...]:
    """The curves of a plot; {level} in their expressions is replaced by each level in turn."""

    def expressions(where: str, text: str) -> tuple[Expression, ...]:
        return tuple(to_expression(where, text.replace("{level}", level.label)) for level in levels)

    common = plot.take("x", str, None)
    found = []
    for i, value in enumerate(plot.take("curve", list)):
        table = Table(f"{plot.where}.curve[{i}]", value)
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


def _trace(plot: Table) -> Trace:
    table = Table(f"{plot.where}.trace", plot.take("trace", dict))
    jain_s = _positive(table, "jain")
    columns = table.take("column", (str, list)) if jain_s is None else []
    columns = (columns,) if isinstance(columns, str) else tuple(columns)
    flow = table.take("flow", (str, list), None)
    trace = Trace(
        columns,
        float(table.take("scale", (int, float), 1.0)),
        (flow,) if isinstance(flow, str) else tuple(flow) if flow else None,
        tuple(table.take("labels", list, list(columns) if len(columns) > 1 else [])),
        jain_s,
        _positive(table, "from") or 0.0,
    )
    table.end()
    if len(columns) > 1 and len(trace.labels) != len(columns):
        raise PaperError(f"{table.where}.labels: needs as many as there are columns")
    return trace


def _study(
    name: str, key: str, value: Any, common: tuple[Series, ...], metrics: Mapping[str, Metric]
) -> Study:
    where = f"{name}: study.{key}"
    table = Table(where, value)
    pool = tuple(table.take_each("pool", str, []))
    axis = Table(f"{where}.axis", table.take("axis", dict, {}))
    own = table.take("series", list, [])
    later = table.take("later", str, "")
    levels = () if pool or later else read_levels(f"{where}.axis", axis)
    study = Study(
        key=key,
        figure=table.take("figure", str),
        title=table.take("title", str),
        text=table.take("text", str, ""),
        scenario=table.take("scenario", str, None),
        axis_label=axis.take("label", str, ""),
        axis_unit=axis.take("unit", str, ""),
        series=read_series(where, own) if own else common,
        levels=levels,
        plots=read_plots(where, table.take("plot", list, []), levels, metrics),
        pool=pool,
        record=table.take("record", str, None),
        record_every_s=float(table.take("record_every", (int, float), 0.5)),
        cut_s=_positive(table, "cut"),
        later=later,
        seconds=table.take("seconds", (int, float), None),
    )
    if [bool(pool), bool(study.scenario), bool(later)].count(True) != 1:
        raise PaperError(f"{where}: needs either a scenario, or a pool of studies, or `later`")
    axis.end()
    table.end()
    check_distinct(where, "series", [series.key for series in study.series])
    check_distinct(f"{where}.axis", "level", [level.label for level in levels])
    if study.record not in (None, *SERIES):
        raise PaperError(f"{where}.record: must be one of {', '.join(SERIES)}, not {study.record!r}")
    if study.cut_s and study.record != "losses":
        raise PaperError(f'{where}: cutting into intervals needs `record = "losses"`')
    if study.record is None and any(plot.kind == "trace" for plot in study.plots):
        raise PaperError(f"{where}: a trace needs `record`")
    if study.record != "rate" and any(plot.trace and plot.trace.jain_s for plot in study.plots):
        raise PaperError(f'{where}: Jain\'s index over time needs `record = "rate"`')
    for plot in study.plots:
        for curve in plot.curves:
            for expression in (*curve.y, *(curve.x or ())):
                check_selections(f"{where}: plot {plot.key}, curve {curve.key}", expression, study, metrics)
    return study


def _episode(table: Table) -> Episode | None:
    """`while = { field = "state", is = 2, nth = 1 }`: the part of a recording that counts."""
    value = table.take("while", dict, None)
    if value is None:
        return None
    entry = Table(f"{table.where}.while", value)
    field = entry.take("field", str)
    bounds = {key: entry.take(key, (int, float), None) for key in ("is", "above", "below")}
    nth = entry.take("nth", int, 0)
    until_below = entry.take("until_below", (int, float), None)
    entry.end()
    given = [(key, float(bound)) for key, bound in bounds.items() if bound is not None]
    if len(given) != 1:
        raise PaperError(f"{entry.where}: needs one of is, above and below")
    if nth < 0:
        raise PaperError(f"{entry.where}.nth: must be 0 (all) or more (1 is the first), not {nth}")
    if until_below is not None and (given[0][0] != "above" or until_below > given[0][1]):
        raise PaperError(
            f"{entry.where}.until_below: needs `above`, and must not exceed it; not {until_below}"
        )
    return Episode(field, *given[0], nth, None if until_below is None else float(until_below))


def read_metrics(name: str, values: dict[str, Any]) -> dict[str, Metric]:
    """The metrics of a file, in its order. Raises PaperError."""
    found: dict[str, Metric] = {}
    for key, value in values.items():
        table = Table(f"{name}: metric.{key}", value)
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
            from_s=_positive(table, "from") or 0.0,
            to_s=_positive(table, "to") or math.inf,
            during=_episode(table),
            every_s=_positive(table, "every"),
            against=table.take("against", dict, None),
            expression=to_expression(table.where, text) if text is not None else None,
        )
        table.end()
        if metric.rows not in ("first", EACH, *REDUCTIONS, *RECORDED):
            raise PaperError(
                f"{table.where}.rows: must be first, {', '.join((*REDUCTIONS, *RECORDED))} or {EACH}, "
                f"not {metric.rows!r}"
            )
        if metric.table in SERIES and metric.rows == EACH:
            known = ", ".join(("first", *REDUCTIONS, *RECORDED))
            raise PaperError(f"{table.where}.rows: must be {known} for a recording, not {metric.rows}")
        of_recordings = {
            "from": metric.from_s > 0,
            "to": metric.to_s < math.inf,
            "while": metric.during is not None,
            "every": metric.every_s is not None,
            "against": metric.against is not None,
            "rows": metric.rows in RECORDED,
        }
        for word, given in of_recordings.items():
            if given and metric.table not in SERIES:
                said = f" {metric.rows}" if word == "rows" else ""
                raise PaperError(f"{table.where}.{word}:{said} is for recordings only")
        if metric.against is not None and metric.rows in RECORDED:
            raise PaperError(
                f"{table.where}.against: cannot go with rows {metric.rows}, which takes no values"
            )
        if (metric.expression is None) == (metric.table is None or metric.field is None):
            raise PaperError(f"{table.where}: needs either table and field or an expression")
        if metric.expression and (missing := metric.expression.names - found.keys()):
            raise PaperError(f"{table.where}: {', '.join(sorted(missing))} must be a metric above it")
        found[key] = metric
    return found


def load(name_or_path: str) -> Paper:
    """Reads a paper, by its key or the path of its folder. Raises PaperError for an unknown paper or a mistake in its
    files."""
    folder, place = find(name_or_path)
    shown = str(place) if place == folder else folder.name
    name = f"{shown}/{FIGURES}"
    top = Table(name, read_toml(folder / FIGURES))
    about = Table(f"{name}: paper", top.take("paper", dict))
    metrics = read_metrics(name, top.take("metric", dict))
    common = read_series(name, top.take("series", list, []))
    studies = {k: _study(name, k, v, common, metrics) for k, v in top.take("study", dict).items()}
    findings = []
    for i, value in enumerate(top.take("finding", list, [])):
        table = Table(f"{name}: finding[{i}]", value)
        findings.append(Finding(table.take("title", str), table.take("text", str)))
        table.end()
    top.end()
    plots = [plot.key for study in studies.values() for plot in study.plots]
    check_distinct(name, "plot", plots)
    for study in studies.values():
        if study.scenario and not (folder / study.scenario).is_file():
            raise PaperError(f"{name}: study.{study.key}: no scenario file {study.scenario}")
        if missing := [k for k in study.pool if k not in studies]:
            raise PaperError(f"{name}: study.{study.key}.pool: no study {', '.join(missing)}")
    claims: list[Claim] = []
    abstract: tuple[Abstract, ...] = ()
    if (folder / PUBLISHED).is_file():
        of = f"{shown}/{PUBLISHED}"
        published = Table(of, read_toml(folder / PUBLISHED))
        claims = read_claims(of, published.take("claim", list), studies, metrics)
        abstract = read_abstract(of, published.take("abstract", list, []), claims)
        published.end()
    readings: tuple[Reading, ...] = ()
    causes: tuple[Cause, ...] = ()
    if (folder / READINGS).is_file():
        of = f"{shown}/{READINGS}"
        others = Table(of, read_toml(folder / READINGS))
        readings = read_readings(of, others.take("reading", list), studies, metrics, claims)
        causes = read_causes(of, others.take("cause", list, []), readings, claims)
        others.end()
        for part in (part for reading in readings for part in reading.parts):
            if part.scenario and not (folder / part.scenario).is_file():
                raise PaperError(f"{of}: no scenario file {part.scenario}")
    paper = Paper(
        key=folder.resolve().name,
        folder=folder,
        place=place,
        title=about.take("title", str),
        authors=about.take("authors", str),
        published_in=about.take("published_in", str),
        summary=about.take("summary", str),
        metrics=metrics,
        studies=studies,
        claims=tuple(claims),
        findings=tuple(findings),
        runs=about.take("runs", int, 10),
        emulated_runs=about.take("emulated_runs", int, 3),
        abstract=abstract,
        readings=readings,
        causes=causes,
        key_figure=about.take("key_figure", str, ""),
    )
    if paper.key_figure and paper.key_figure not in plots:
        raise PaperError(
            f"{about.where}.key_figure: no plot {paper.key_figure!r}; there are {', '.join(plots)}"
        )
    about.end()
    return paper
