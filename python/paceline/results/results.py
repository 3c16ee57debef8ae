"""Results of runs as Polars tables: a row per run and flow, stream, queue, interface, ...; units end columns."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from paceline import _core, files, quantities
from paceline.arguments import TABLE, TEXT, checked
from paceline.errors import PacelineError, StorageError
from paceline.files import table_files
from paceline.interval import COLUMNS, Kind, interval
from paceline.quantities import unit_of
from paceline.results import manifests
from paceline.results.columns import IDENTITY, TABLES, dtype
from paceline.results.notices import OLDER, noticed
from paceline.results.recordings import ALL_SERIES
from paceline.results.series import series_tables
from paceline.statistics import CONFIDENCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class OnDisk(Mapping[str, pl.DataFrame]):
    """Recordings of a run that lie in files: each is read whenever it is asked for. Raises StorageError."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        """The file of each kind."""
        self.paths = dict(paths)

    def __getitem__(self, kind: str) -> pl.DataFrame:
        return table_files.read_parquet(self.paths[kind])

    def scan(self, kind: str) -> pl.LazyFrame:
        """One that is read when it is needed."""
        return table_files.scan_parquet(self.paths[kind])

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class RunRecord:
    """One finished run: its summary as the core gave it, and what it recorded."""

    seed: int
    summary: dict[str, Any]
    series: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)
    """The values of the varied paths, in a sweep."""

    @staticmethod
    def of(
        seed: int, output: _core.RunOutput | _core.PathOutput, labels: Mapping[str, Any] | None = None
    ) -> RunRecord:
        """The record of a run's output."""
        return RunRecord(
            seed, json.loads(output.summary_json), series_tables(output.series), dict(labels or {})
        )


def _rows(table: str, summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if table == "runs":
        whole = {
            k: v for k, v in summary.items() if not isinstance(v, list | dict) and k not in ("name", "seed")
        }
        return [{**whole, **_flat(summary.get("engine", {}))}]
    return [_flat(entry) for entry in summary.get(table, [])]


def _flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """{"drops": {"overflow": 3}} becomes {"drops_overflow": 3}."""
    if dict not in map(type, entry.values()):
        return entry
    row: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            row |= {f"{key}_{k}": v for k, v in value.items()}
        else:
            row[key] = value
    return row


def tabulate(table: str, records: Sequence[RunRecord]) -> pl.DataFrame:
    """One of TABLES over some runs: varied paths, seed, what the row is of, measures. A missing value is null."""
    labels = list(dict.fromkeys(name for record in records for name in record.labels))
    rows: list[Mapping[str, Any]] = []
    of: list[RunRecord] = []
    for record in records:
        found = _rows(table, record.summary)
        rows += found
        of += [record] * len(found)
    # Most rows have the columns of the one before them.
    columns = dict.fromkeys(name for names in dict.fromkeys(map(tuple, rows)) for name in names)
    if not rows:
        columns = dict.fromkeys(IDENTITY[table])
    heads: dict[str, pl.Series] = {}
    for name in labels:
        kind = _label_dtype(name, records)
        heads[name] = pl.Series(name, [one.labels.get(name) for one in of], dtype=kind, strict=False)
    heads["seed"] = pl.Series("seed", [one.seed for one in of], dtype=pl.Int64)
    schema = {column: dtype(table, column) for column in columns if column not in heads}
    return pl.DataFrame(rows, schema=schema, strict=False).select(*heads.values(), pl.all())


def _label_dtype(name: str, records: Sequence[RunRecord]) -> Any:
    kinds = {type(record.labels.get(name)) for record in records}
    if kinds <= {bool}:
        return pl.Boolean
    if kinds <= {int}:
        return pl.Int64
    return pl.Float64 if kinds <= {int, float} else pl.String


def is_measure(kind: pl.DataType) -> bool:
    """Whether a column of this type has means: numbers, and what is true or false, whose mean is a share."""
    return kind.is_numeric() or kind == pl.Boolean


def endless_in(rows: pl.DataFrame) -> bool:
    """Whether flows of these rows are transfers without an end, as far as their columns tell."""
    return bool(rows.select(_endless(rows).all()).item())


def _endless(rows: pl.DataFrame) -> pl.Expr:
    """Of each row; what has neither column, or no value there, may be one."""
    found = [pl.col("app") == "ftp"] if "app" in rows.columns else []
    if "transfers_started" in rows.columns:
        found.append(pl.col("transfers_started") == 0)
    return pl.all_horizontal(pl.lit(value=True), *found).fill_null(value=True)


@checked(table=TABLE)
def summarise(
    table: pl.DataFrame,
    by: Sequence[str],
    measures: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
    endless: Callable[[pl.DataFrame], bool] = endless_in,
) -> pl.DataFrame:
    """What the rows that agree in the columns `by` say of each measure: see `paceline.interval`.

    Long form: `by`, measure, unit, n, mean, sd, low, high, values, rows, kind, and the other columns of an interval;
    groups in order of first appearance. `low` and `high` are of the mean, and null where `kind` is not "t". `n` counts
    the values that were there, of so many `rows`; it is for the caller to see that they are independent, and to say by
    `endless` whether some rows are of transfers without an end, where they have no columns that tell. Measures are by
    default all columns of numbers and truths except `by` and the seed.
    """
    unknown = [name for name in (*by, *(measures or ())) if name not in table.columns]
    if unknown:
        raise PacelineError(f"no column {', '.join(unknown)}; there are {', '.join(table.columns)}")
    if measures is None:
        measures = [c for c in table.columns if c not in by and c != "seed" and is_measure(table.schema[c])]
    if words := [name for name in measures if not is_measure(table.schema[name])]:
        raise PacelineError(f"measures: {', '.join(words)} has no numbers, of which there are means")
    if not 0 < confidence < 1:
        raise PacelineError(f"confidence = {confidence}: it must lie between 0 and 1")
    rows: list[dict[str, Any]] = []
    groups = table.partition_by(by, maintain_order=True) if by else [table] if len(table) else []
    for group in groups:
        head = {name: group[name][0] for name in by}
        bulk = endless(group)
        for measure in measures:
            found = interval(measure, group[measure].to_list(), bulk, confidence)
            numbers = {column: getattr(found, column) for column in COLUMNS}
            numbers |= {"kind": found.kind.value, "values": found.n, "rows": len(group)}
            rows.append(head | {"measure": measure, "unit": unit_of(measure)} | numbers)
    schema: dict[str, Any] = {name: table.schema[name] for name in by}
    schema |= {"measure": pl.String, "unit": pl.String, "n": pl.Int64}
    schema |= dict.fromkeys(("mean", "sd", "low", "high"), pl.Float64)
    schema |= dict.fromkeys(("values", "rows"), pl.Int64)
    schema["kind"] = pl.Enum([kind.value for kind in Kind])
    schema |= {c: pl.Int64 if c == "others" else pl.Float64 for c in COLUMNS if c not in schema}
    return pl.DataFrame(rows, schema=schema)


class Results:
    """The results of one or more runs. Tables are Polars data frames in order of point, seed and scenario."""

    def __init__(self, records: Sequence[RunRecord], manifest: Mapping[str, Any]) -> None:
        """`manifest` as `paceline.run` and `sweep` make it; its "vary" names the axes."""
        self.records = list(records)
        self.manifest = dict(manifest)
        """Scenario as resolved TOML, seeds, versions, host, time."""
        self._tables: dict[str, pl.DataFrame] = {}
        self._notices: pl.DataFrame | None = None
        self._series: dict[str, pl.DataFrame] = {}
        self._endless: dict[str, dict[str, bool]] = {}

    @classmethod
    @checked()
    def read(cls, directory: str | Path) -> Results:
        """The results in a run directory or a finished sweep's, as `write` left them; without `records`.

        Raises PacelineError if it is not one, StorageError for a damaged one.
        """
        path = Path(directory)
        if not (path / "manifest.json").is_file():
            raise PacelineError(
                f"{path} is not a run directory: it holds no manifest.json (run with --out makes one)"
            )
        results = cls([], manifests.manifest(path / "manifest.json"))
        if not (path / "runs.parquet").is_file():
            if shard := results.manifest.get("shard"):
                raise PacelineError(
                    f"{path} holds shard {shard[0]} of {shard[1]} of a sweep: `paceline merge DIR1 DIR2 ... --out DIR` "
                    "or paceline.merge makes one sweep of all when they are done"
                )
            raise PacelineError(
                f"{path} holds no results yet: tables are written when all runs are done; what began it, command or "
                "call, goes on there when it is given again"
            )
        for name in TABLES:
            # Directories of versions that did not know them have no such tables.
            if name not in ("interfaces", "link_flows") or (path / f"{name}.parquet").is_file():
                results._tables[name] = results._read(path / f"{name}.parquet", *IDENTITY[name][:1])
        # Older ones have the text of varied values alone.
        results._tables = {name: results._with_numbers(table) for name, table in results._tables.items()}
        manifests.check_varied(path / "manifest.json", results.varied, results._tables["runs"].columns)
        results._notices = noticed([])
        if (path / "notices.parquet").is_file():
            # Older ones count no cases.
            kept = table_files.read_parquet(path / "notices.parquet")
            results._notices = pl.concat([results._notices, kept], how="diagonal")
        streams = results._tables["streams"]
        if len(streams) and "due_packets" not in streams.columns:
            kind, text = OLDER
            older = {"kind": [kind], "text": [text], "runs": [len(results.runs)]}
            results._notices = pl.concat([results._notices, pl.DataFrame(older)], how="diagonal")
        for kind in ALL_SERIES:
            if (path / f"series-{kind}.parquet").is_file():
                results._series[kind] = results._read(path / f"series-{kind}.parquet")
        return results

    def _read(self, path: Path, *names: str) -> pl.DataFrame:
        """A table with a seed, a value of each varied path, and these columns in each row. Raises StorageError."""
        table = table_files.read_parquet(path)
        for column in ("seed", *self.axes, *names):
            if column not in table.columns:
                raise StorageError(f"{path} is damaged: it has no column {column}; there are {table.columns}")
            kind = table.schema[column]
            if not (kind.is_integer() if column == "seed" else is_measure(kind) or kind == pl.String):
                allowed = "whole numbers" if column == "seed" else "numbers or texts"
                raise StorageError(f"{path} is damaged: the column {column} has {kind} in place of {allowed}")
        return table

    @property
    def axes(self) -> list[str]:
        """The varied paths, in a sweep: columns of every table."""
        named = self.manifest.get("vary", {})
        return list(named or dict.fromkeys(name for record in self.records for name in record.labels))

    @functools.cached_property
    def _numbers(self) -> dict[str, tuple[str, dict[Any, float]]]:
        """Of each varied path with quantities for values the column of their numbers, and the number of each value."""
        found = {}
        measures = {name for names in json.loads(_core.columns_json()).values() for name in names}
        for axis in self.axes:
            values: list[Any] = [record.labels.get(axis) for record in self.records]
            if not values:
                values = self._tables["runs"].get_column(axis, default=pl.Series()).to_list()
            read = quantities.numbers([value for value in dict.fromkeys(values) if value is not None])
            if read is not None:
                column = f"{axis}{read[0]}"
                # The `duration` that is set is not how long a stream lasts.
                found[axis] = (f"set_{column}" if column in measures else column, read[1])
        return found

    @property
    def numbers(self) -> dict[str, str]:
        """The columns with the values of varied paths as numbers: "link.bottleneck.delay_s", in seconds, beside the
        texts of "link.bottleneck.delay". A path whose values are plain numbers is its own; one of words has none."""
        return {axis: column for axis, (column, _) in self._numbers.items()}

    @property
    def varied(self) -> list[str]:
        """The columns that tell the points of a sweep apart: each varied path, and its numbers beside it."""
        return list(dict.fromkeys(c for axis in self.axes for c in (axis, self.numbers.get(axis, axis))))

    def _with_numbers(self, table: pl.DataFrame) -> pl.DataFrame:
        for axis, (column, read) in self._numbers.items():
            if axis in table.columns and column not in table.columns:
                beside = table[axis].replace_strict(read, default=None, return_dtype=pl.Float64)
                table = table.insert_column(table.columns.index(axis) + 1, beside.alias(column))
        return table

    @property
    def seeds(self) -> list[int]:
        """The seeds, each once."""
        return list(dict.fromkeys(self.runs["seed"].to_list()))

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """Each run's summary as the core gave it; empty for results read from a directory."""
        return [record.summary for record in self.records]

    @checked()
    def table(self, name: str) -> pl.DataFrame:
        """The table of that name, one of flows, streams, queues, link_flows, interfaces, groups, runs."""
        if name not in IDENTITY:
            raise PacelineError(f'no table "{name}"; there are {", ".join(TABLES)}')
        if name not in self._tables:
            self._tables[name] = self._with_numbers(tabulate(name, self.records))
        return self._tables[name]

    @property
    def flows(self) -> pl.DataFrame:
        """A row per run and flow: goodput_bps, rtt_mean_s, loss_rate, ..."""
        return self.table("flows")

    @property
    def streams(self) -> pl.DataFrame:
        """A row per run and media stream: began, fill_s (null: never), late_share, stall_share, ..."""
        return self.table("streams")

    @property
    def queues(self) -> pl.DataFrame:
        """A row per run and limited queue: time-weighted mean_packets and sd_packets, utilisation, drops by reason;
        where asked for, occupancy_0 to occupancy_9; of DualPI2 what each class had: l4s_marks, ..."""
        return self.table("queues")

    @property
    def link_flows(self) -> pl.DataFrame:
        """A row per run, link direction with `per_flow = true`, and flow that crosses it: arrivals, departures, drops
        by reason, marks, mean_packets, queue_share."""
        return self.table("link_flows")

    @property
    def interfaces(self) -> pl.DataFrame:
        """A row per run and transmitter of an 802.11 cell: attempts, retries, collisions, given_up, airtime_share."""
        return self.table("interfaces")

    @property
    def groups(self) -> pl.DataFrame:
        """A row per run and group: jain, goodput_bps, flow_goodput_mean_bps and flow_goodput_sd_bps, share."""
        return self.table("groups")

    @checked()
    def friendliness(self, of: str, to: str) -> pl.DataFrame:
        """F of one group of flows toward another: the mean goodput of a flow of `of` by that of a flow of `to`.

        A row per run: varied paths, seed, friendliness (null where `to` delivered nothing, than which nothing is less
        friendly: a mean without those runs flatters). Raises PacelineError for a group that is not there.
        """
        rate = "flow_goodput_mean_bps"
        known = self.groups["group"].unique(maintain_order=True).to_list()
        sides = []
        for name in (of, to):
            if name not in known:
                raise PacelineError(f'no group "{name}"; there are {", ".join(known)}')
            sides.append(self.groups.filter(group=name).select(*self.varied, "seed", rate))
        both = sides[0].join(
            sides[1],
            on=[*self.varied, "seed"],
            how="left",
            suffix="_to",
            nulls_equal=True,
            maintain_order="left",
        )
        base = pl.col(f"{rate}_to")
        value = pl.when(base > 0).then(pl.col(rate) / base).alias("friendliness")
        return both.select(*self.varied, "seed", value)

    @property
    def runs(self) -> pl.DataFrame:
        """A row per run: simulated times and the engine's account of packets."""
        return self.table("runs")

    @property
    def notices(self) -> pl.DataFrame:
        """What a reader of the numbers should know and none of them says, each once: kind, text, how many runs say it
        (runs), and of what is counted in all runs how many it is true of (cases, of)."""
        if self._notices is None:
            self._notices = noticed([record.summary for record in self.records])
        return self._notices

    @checked()
    def series(self, kind: str) -> pl.DataFrame:
        """What was recorded over time, one of `ALL_SERIES`; varied paths and seed first."""
        if kind not in ALL_SERIES:
            raise PacelineError(f'no recording "{kind}"; there are {", ".join(ALL_SERIES)}')
        if kind not in self._series:
            if kind not in self.recorded():
                raise PacelineError(
                    f'{kind} was not recorded: run with record=("{kind}",), or --record {kind}'
                )
            self._series[kind] = self._lazy(kind).collect()
        return self._series[kind]

    def _lazy(self, kind: str) -> pl.LazyFrame:
        """A recording of all runs; what lies on disk is not read yet."""
        if kind in self._series:
            return self._series[kind].lazy()
        parts = []
        kinds = {name: _label_dtype(name, self.records) for name in self.varied}
        for record in self.records:
            if kind in record.series:
                head = [pl.lit(value, dtype=kinds[name]).alias(name) for name, value in record.labels.items()]
                seed = pl.lit(record.seed, dtype=pl.Int64).alias("seed")
                kept = record.series
                rows = kept.scan(kind) if isinstance(kept, OnDisk) else kept[kind].lazy()
                parts.append(rows.select(*head, seed, pl.all()))
        return pl.concat(parts, how="diagonal")

    def write_series(self, directory: Path) -> None:
        """Writes each recording as series-KIND.parquet, and removes those that an earlier run left there. What lies on
        disk passes through in parts: memory does not hold it. Raises StorageError."""
        for kind in ALL_SERIES:
            path = directory / f"series-{kind}.parquet"
            if kind in self.recorded():
                table_files.write_parquet(path, self._lazy(kind))
            else:
                files.remove(path)

    def recorded(self) -> list[str]:
        """The kinds of time series that are there."""
        there = set(self._series).union(*(record.series for record in self.records))
        return [kind for kind in ALL_SERIES if kind in there]

    @checked()
    def statistics(
        self, table: str, by: Sequence[str] | None = None, measures: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Mean, sd and intervals over the seeds: see `summarise`. By default by the axes and the rows' identity.

        Where several rows of a seed fall into one group (the instances of a flow, say), their mean counts once: runs
        are independent of each other, what shares a run is not. `values` says how many rows had a value, of how many
        (`rows`).
        """
        whole = self.table(table)
        if by is None:
            by = [c for c in dict.fromkeys((*self.varied, *IDENTITY[table])) if c in whole.columns]
        if measures is None:
            names = (*by, *self.varied, *IDENTITY[table], "seed")
            measures = [c for c, kind in whole.schema.items() if c not in names and is_measure(kind)]
        keys = [*by, "seed"]
        if not all(c in whole.columns for c in keys) or len(whole) == whole.select(keys).n_unique():
            return summarise(whole, by, measures, endless=self.endless)
        # How many values there were is a matter of the rows, not of their means. (An unknown column is refused here.)
        counted = summarise(whole, by, measures).select("values", "rows")
        means = whole.group_by(keys, maintain_order=True).agg(pl.col(measures).cast(pl.Float64).mean())
        return summarise(means, by, measures, endless=self.endless).with_columns(counted)

    def endless(self, rows: pl.DataFrame) -> bool:
        """Whether these rows are of transfers without an end, by the flows' names or groups; of what has none of them,
        as a queue, whether some such flow is there at each point of a sweep that the rows are of."""
        for name in ("flow", "group"):
            if name in rows.columns:
                if name not in self._endless:
                    parts = self.flows.partition_by(name, as_dict=True)
                    self._endless[name] = {who: endless_in(part) for (who,), part in parts.items()}
                return all(self._endless[name].get(who, True) for who in rows[name].unique())
        bulk = self.flows.filter(_endless(self.flows))
        points = [axis for axis in self.axes if axis in rows.columns]
        if not points or not len(bulk):
            return len(bulk) > 0
        return rows.join(bulk, on=points, how="anti", nulls_equal=True).is_empty()

    @checked(by=TEXT.or_several())
    def plot(
        self,
        y: str | Sequence[str],
        *,
        x: str | None = None,
        by: str | Sequence[str] | None = None,
        flow: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        xlabel: str = "",
        width: str = "column",
        seed: int | None = None,
    ) -> Figure:
        """What was recorded as `y` ("cwnd", "queue", "gauges") over time, in the run with `seed`, by default the first;
        or of a sweep the measure `y` ("goodput_bps", "queues.mean_packets") with its intervals.

        Of a sweep `x` lies along the axis, each value of `by` has a curve: varied paths, or as much of their ends as
        tells them apart, or what rows are of (flow, link, group). What is left has a panel each, unless `flow` names
        one of several. By default `x` is the first path with quantities, `by` the other paths. Several measures in
        `y` have a panel each. `labels` says what to print in place of values, flows, measures and paths ({"vegas":
        "TCP Vegas"}), `xlabel` what to print along the axis. `width` is a column of a paper (3.5 in), both ("page",
        7.16 in), or a length ("4in", "10cm"). `paceline.plots.save` writes the figure. Raises PacelineError for what
        is not there.
        """
        from paceline.plots import recorded  # noqa: PLC0415 (matplotlib, which few calls need)

        curves, flows = ([one] if isinstance(one, str) else one for one in (by, flow))
        return recorded.drawn(self, y, x, curves, flows, labels, xlabel, width, seed)

    @checked()
    def write(self, directory: str | Path) -> None:
        """Writes a run directory: manifest.json, then recordings and tables as Parquet, of which `runs` is the last.
        What an earlier run left there is removed. Raises StorageError."""
        from paceline.results import store  # noqa: PLC0415 (it stands on this module)

        path = Path(directory)
        files.make_directory(path)
        store.begin(path, self.manifest)
        store.write_tables(self, path, statistics=False)

    @checked()
    def to_pandas(self, name: str) -> Any:
        """The table of that name as a pandas.DataFrame, for which pandas alone is needed. A missing number is NaN, a
        missing word None. Raises PacelineError without pandas."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise PacelineError("pandas is not installed: pip install pandas") from None
        table = self.table(name)
        # Polars' own way takes pyarrow too.
        return pandas.DataFrame({column: table[column].to_numpy() for column in table.columns})

    def _repr_html_(self) -> str:
        from paceline.tables import notebook, summaries, sweep  # noqa: PLC0415 (tables for people, which few need)

        layouts = sweep.tables(self) if self.axes else summaries.tables(self)
        return notebook.tables(layouts, summaries.notices(self))

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(self.table(name))} rows" for name in TABLES)
        recorded = f"; recorded: {', '.join(self.recorded())}" if self.recorded() else ""
        return f"<Results of {len(self.runs)} runs; {rows}{recorded}>"
