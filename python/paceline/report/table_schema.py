"""The meaning of the columns of a reproduction's tables. It defines the tables' types, the Table Schema in
`datapackage.json` beside them (Frictionless Data Package 1), and the lists in docs/papers/artefacts.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl

from paceline import files
from paceline.quantities import unit_of
from paceline.statistics.sample_intervals import Basis
from paceline.studies.metric import EACH, Metric
from paceline.studies.paper import CauseKind, Paper
from paceline.studies.study import World
from paceline.studies.verdict import Kind, Outcome

FILE = "datapackage.json"

_TYPES: Mapping[str, type[pl.DataType]] = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64}


@dataclass(frozen=True)
class Field:
    """A column: its type in a Table Schema, its meaning, its unit, and its allowed values."""

    name: str
    type: str
    description: str
    unit: str = ""
    constraints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table: the meaning of a row, its columns, and its key columns."""

    name: str
    description: str
    fields: Sequence[Field]
    key: Sequence[str] = ()

    def frame(self, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        """The table of these rows; a missing value is null."""
        names = {column.name for column in self.fields}
        strange = {name for row in rows for name in row} - names
        assert not strange, f"{self.name}: {sorted(strange)} stand in no list of table_schema"
        return pl.DataFrame(rows, schema={column.name: _TYPES[column.type] for column in self.fields})


_ALWAYS = {"required": True}


def _one_of(values: type[StrEnum]) -> dict[str, Any]:
    return {"required": True, "enum": [str(value) for value in values]}


_POINT = (
    Field("study", "string", "Key of the study in figures.toml", constraints=_ALWAYS),
    Field("figure", "string", "The paper's figure or table: 5, table-2", constraints=_ALWAYS),
    Field("series", "string", "Key of the line of the plot", constraints=_ALWAYS),
    Field("level", "string", "Label of the stop on the study's axis", constraints=_ALWAYS),
    Field("world", "string", "Where the point ran", constraints=_one_of(World)),
    Field("x", "number", "Where the level lies on the axis, in the axis' unit", constraints=_ALWAYS),
)

POINTS = Table(
    "points",
    "A row per study, point and metric: mean, scatter and 95 % interval over the runs.",
    (
        *_POINT,
        Field("metric", "string", "Key of the metric in figures.toml", constraints=_ALWAYS),
        Field("unit", "string", "Unit of mean, sd and half_width; empty for a number without one"),
        Field("runs", "integer", "Runs that have a value", constraints=_ALWAYS | {"minimum": 0}),
        Field("mean", "number", "Mean over these runs"),
        Field("sd", "number", "Sample standard deviation", constraints={"minimum": 0}),
        Field(
            "half_width", "number", "Half of Student's 95 % interval of the mean", constraints={"minimum": 0}
        ),
        Field(
            "command", "string", "Command that runs the point again, with the same seeds", constraints=_ALWAYS
        ),
    ),
    ("study", "series", "level", "metric"),
)

VERDICTS = Table(
    "verdicts",
    "A row per published statement: what the paper says and where, ours, and the verdict.",
    (
        Field(
            "claim",
            "string",
            "Key of the statement in published.toml",
            constraints=_ALWAYS | {"unique": True},
        ),
        Field("figure", "string", "Figure or table that it is about", constraints=_ALWAYS),
        Field("where", "string", "Where the paper says it", constraints=_ALWAYS),
        Field("says", "string", "What it says, in our words", constraints=_ALWAYS),
        Field("kind", "string", "How it is compared with ours", constraints=_one_of(Kind)),
        Field("published", "number", "The published number; empty for an order or a trend"),
        Field("sign", "string", "The published direction", constraints={"enum": ["+", "-"]}),
        Field("unit", "string", "Unit of published, ours, half_width, low and high"),
        Field("bound", "number", "For an order, the number subtracted from our value; empty: zero"),
        Field("expression", "string", "Our side of it, over the study's points"),
        Field("ours", "number", "Its value over the runs"),
        Field("half_width", "number", "Half of Student's 95 % interval of ours", constraints={"minimum": 0}),
        Field("runs", "integer", "Runs that ours rests on", constraints=_ALWAYS | {"minimum": 0}),
        Field("verdict", "string", "The result of the comparison", constraints=_one_of(Outcome)),
        Field("because", "string", "Why, in words"),
        Field(
            "basis",
            "string",
            "Basis of the judged interval",
            constraints={"enum": [str(b) for b in Basis]},
        ),
        Field("low", "number", "Lower end of the judged interval"),
        Field("high", "number", "Its upper end"),
        Field(
            "off_share",
            "number",
            "Distance from the published number, as a share of it",
            constraints={"minimum": 0},
        ),
        Field(
            "settling_runs", "integer", "Runs that would settle what is undecided", constraints={"minimum": 1}
        ),
        Field("beside", "string", "Why it is shown and not counted; empty if it is counted"),
        Field("cause", "string", "Key of the cause without which a statement that differs agrees"),
        Field(
            "cause_kind",
            "string",
            "Origin of the difference",
            constraints={"enum": [str(k) for k in CauseKind]},
        ),
        Field("tried", "string", "The causes that were removed, each with the verdict without it"),
        Field("if_differs", "string", "Known reasons, where ours differs"),
    ),
    ("claim",),
)


READINGS = Table(
    "readings",
    "A row per reading and published statement that it may change: ours and the verdict under it.",
    (
        Field("reading", "string", "Key of the reading in readings.toml", constraints=_ALWAYS),
        Field("claim", "string", "Key of the statement in published.toml", constraints=_ALWAYS),
        Field("ours", "number", "Our side of it under this reading"),
        Field("half_width", "number", "Half of Student's 95 % interval of ours", constraints={"minimum": 0}),
        Field("verdict", "string", "The result of the comparison", constraints=_one_of(Outcome)),
    ),
    ("reading", "claim"),
)


def _metric(metric: Metric) -> Field:
    return Field(metric.key, "number", metric.label, metric.unit)


def runs(metrics: Mapping[str, Metric]) -> Table:
    """The table of all runs, with a column for each metric that is a number of a run."""
    own = [_metric(metric) for metric in metrics.values() if metric.rows != EACH]
    seed = Field("seed", "integer", "Seed of the run", constraints=_ALWAYS | {"minimum": 0})
    what = "A row per study, point and run: every metric of the paper."
    return Table("runs", what, (*_POINT, seed, *own), ("study", "series", "level", "seed"))


_RECORDED = {
    "study": "Key of the study in figures.toml",
    "series": "Key of the line of the plot",
    "level": "Label of the stop on the study's axis",
    "seed": "Seed of the run",
    "flow": "Name of the flow in the scenario",
    "instance": "Which of the flows of that name, from 0",
    "link": "Name of the link in the scenario",
    "direction": "Which way over the link",
    "time_s": "When, since the run began: of an interval its end",
}


def recorded(name: str, frame: pl.DataFrame, metrics: Mapping[str, Metric]) -> Table:
    """The table of studies' recordings: its columns are those of the recording, or metrics of intervals."""
    columns = []
    for column, dtype in frame.schema.items():
        if metric := metrics.get(column):
            columns.append(_metric(metric))
            continue
        means = _RECORDED.get(
            column, column.removesuffix("_s").removesuffix("_bps").replace("_", " ").capitalize()
        )
        columns.append(Field(column, _type_of(dtype), means, unit_of(column)))
    return Table(name, f"What the studies that record {name} recorded over time, run by run.", columns)


def _type_of(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "integer"
    return "number" if dtype.is_float() else "boolean" if dtype == pl.Boolean else "string"


def package(paper: Paper, tables: Iterable[Table]) -> dict[str, Any]:
    """The descriptor of the tables, each in NAME.csv."""
    return {
        "profile": "tabular-data-package",
        "name": re.sub(r"[^a-z0-9._-]+", "-", paper.key.lower()),
        "title": f"{paper.title}, re-run",
        "description": paper.summary,
        "resources": [_resource(table) for table in tables],
    }


def _resource(table: Table) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "fields": [_described(column) for column in table.fields],
        "missingValues": [""],
    }
    return {
        "profile": "tabular-data-resource",
        "name": table.name,
        "path": f"{table.name}.csv",
        "description": table.description,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": schema | ({"primaryKey": list(table.key)} if table.key else {}),
    }


def _described(column: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "type": column.type, "description": column.description}
    if column.unit:
        found["unit"] = column.unit
    return found | ({"constraints": dict(column.constraints)} if column.constraints else {})


def write(folder: Path, paper: Paper, tables: Iterable[Table]) -> None:
    """Writes the descriptor beside the tables. Raises StorageError."""
    files.write_json(folder / FILE, package(paper, tables))


def markdown(table: Table) -> str:
    """A table's columns as a document lists them."""
    rows = ["| column | type | what |", "|---|---|---|"]
    for column in table.fields:
        values = column.constraints.get("enum")
        what = column.description + (f": {', '.join(values)}" if values else "")
        rows.append(
            f"| `{column.name}` | {column.type} | {what}{f' ({column.unit})' if column.unit else ''} |"
        )
    return "\n".join(rows)
