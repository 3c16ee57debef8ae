"""Results of runs as Polars tables: a row per run and flow, stream, queue, interface, ...; names end in units."""

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
    """A run's recordings on disk: each is read on access. Raises StorageError."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        """`paths` are the files by kind."""
        self.paths = dict(paths)

    def __getitem__(self, kind: str) -> pl.DataFrame:
        return table_files.read_parquet(self.paths[kind])

    def scan(self, kind: str) -> pl.LazyFrame:
        """A recording that is read when it is needed."""
        return table_files.scan_parquet(self.paths[kind])

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class RunRecord:
    """One finished run: its summary from the core, and its recordings."""

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
    """One of TABLES over some runs: varied paths, seed, identity, measures. A missing value is null."""
    labels = list(dict.fromkeys(name for record in records for name in record.labels))
    rows: list[Mapping[str, Any]] = []
    of: list[RunRecord] = []
    for record in records:
        found = _rows(table, record.summary)
        rows += found
        of += [record] * len(found)
    # Most rows have the columns of the previous row.
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
    """Whether a column of this type has means: numbers, and booleans, whose mean is a share."""
    return kind.is_numeric() or kind == pl.Boolean


def endless_in(rows: pl.DataFrame) -> bool:
    """Whether all flows of these rows are endless transfers, as far as their columns show."""
    return bool(rows.select(_endless(rows).all()).item())


def _endless(rows: pl.DataFrame) -> pl.Expr:
    """Whether each row may be an endless transfer; true if it has neither column, or no value there."""
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
    """Summarises each measure over the rows that agree in the columns `by`: see `paceline.interval`.

    Long form: `by`, measure, unit, n, mean, sd, low, high, values, rows, kind, and the other columns of an interval;
    groups in order of first appearance. `low` and `high` bound the mean, and are null unless `kind` is "t". `n` counts
    the values among the `rows`. You must make sure that the values are independent. If the rows have no columns that
    show endless transfers, pass `endless`, which decides it for some rows. By default the measures are all numerical
    and boolean columns except `by` and the seed.
    """
    unknown = [name for name in (*by, *(measures or ())) if name not in table.columns]
    if unknown:
        raise PacelineError(f"no column {', '.join(unknown)}; there are {', '.join(table.columns)}")
    if measures is None:
        measures = [c for c in table.columns if c not in by and c != "seed" and is_measure(table.schema[c])]
    if words := [name for name in measures if not is_measure(table.schema[name])]:
        raise PacelineError(f"measures: {', '.join(words)} is not numerical, so it has no mean")
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
    """The results of one or more runs. Tables are Polars data frames, ordered by point, seed and scenario."""

    def __init__(self, records: Sequence[RunRecord], manifest: Mapping[str, Any]) -> None:
        """`manifest` is that of `paceline.run` or `sweep`; its "vary" names the axes."""
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
        """Reads the results from the directory of a run or a finished sweep, as `write` left them; without `records`.

        Raises PacelineError if it is no such directory, StorageError for a damaged one.
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
                    f"{path} holds shard {shard[0]} of {shard[1]} of a sweep: when all shards are done, combine them "
                    "by `paceline merge DIR1 DIR2 ... --out DIR` or paceline.merge"
                )
            raise PacelineError(
                f"{path} holds no results yet: tables are written when all runs are done; repeat the command or call "
                "that began it to resume"
            )
        for name in TABLES:
            # Directories of older versions lack these tables.
            if name not in ("interfaces", "link_flows") or (path / f"{name}.parquet").is_file():
                results._tables[name] = results._read(path / f"{name}.parquet", *IDENTITY[name][:1])
        # Older versions have only the texts of varied values.
        results._tables = {name: results._with_numbers(table) for name, table in results._tables.items()}
        manifests.check_varied(path / "manifest.json", results.varied, results._tables["runs"].columns)
        results._notices = noticed([])
        if (path / "notices.parquet").is_file():
            # Older versions count no cases.
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
        """A table whose rows have a seed, each varied path, and these columns. Raises StorageError."""
        table = table_files.read_parquet(path)
        for column in ("seed", *self.axes, *names):
            if column not in table.columns:
                raise StorageError(f"{path} is damaged: it has no column {column}; there are {table.columns}")
            kind = table.schema[column]
            if not (kind.is_integer() if column == "seed" else is_measure(kind) or kind == pl.String):
                allowed = "whole numbers" if column == "seed" else "numbers or texts"
                raise StorageError(f"{path} is damaged: the column {column} has {kind} instead of {allowed}")
        return table

    @property
    def axes(self) -> list[str]:
        """The varied paths, in a sweep: columns of every table."""
        named = self.manifest.get("vary", {})
        return list(named or dict.fromkeys(name for record in self.records for name in record.labels))

    @functools.cached_property
    def _numbers(self) -> dict[str, tuple[str, dict[Any, float]]]:
        """For each varied path whose values are quantities: its numerical column, and each value's number."""
        found = {}
        measures = {name for names in json.loads(_core.columns_json()).values() for name in names}
        for axis in self.axes:
            values: list[Any] = [record.labels.get(axis) for record in self.records]
            if not values:
                values = self._tables["runs"].get_column(axis, default=pl.Series()).to_list()
            read = quantities.numbers([value for value in dict.fromkeys(values) if value is not None])
            if read is not None:
                column = f"{axis}{read[0]}"
                # The scenario's `duration` is another thing than a stream's measured duration.
                found[axis] = (f"set_{column}" if column in measures else column, read[1])
        return found

    @property
    def numbers(self) -> dict[str, str]:
        """The numerical columns of varied paths: "link.bottleneck.delay_s", in seconds, for the texts of
        "link.bottleneck.delay". A path of plain numbers is its own column; one of words has none."""
        return {axis: column for axis, (column, _) in self._numbers.items()}

    @property
    def varied(self) -> list[str]:
        """The columns that identify a sweep's points: each varied path, with its numerical column."""
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
        """Each run's summary from the core; empty for results read from a directory."""
        return [record.summary for record in self.records]

    @checked()
    def table(self, name: str) -> pl.DataFrame:
        """One of the tables flows, streams, queues, link_flows, interfaces, groups, runs."""
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
        if requested, occupancy_0 to occupancy_9; for DualPI2 the values of each class: l4s_marks, ..."""
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
        """Friendliness F of one group of flows toward another: mean goodput of a flow of `of` over one of `to`.

        A row per run: varied paths, seed, friendliness. It is null if `to` delivered nothing, which is the least
        friendly outcome: a mean without those runs flatters. Raises PacelineError for an unknown group.
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
        """A row per run: simulated times and the engine's packet counts."""
        return self.table("runs")

    @property
    def notices(self) -> pl.DataFrame:
        """What a reader should know and no number shows, each once: kind, text, how many runs have it (runs), and how
        many of the counted items in all runs it applies to (cases, of)."""
        if self._notices is None:
            self._notices = noticed([record.summary for record in self.records])
        return self._notices

    @checked()
    def series(self, kind: str) -> pl.DataFrame:
        """A recording over time, one of `ALL_SERIES`; varied paths and seed first."""
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
        """A recording of all runs, lazily read from disk."""
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
        """Writes each recording as series-KIND.parquet, and removes those of an earlier run. Recordings on disk are
        copied in parts, so that they need not fit into memory. Raises StorageError."""
        for kind in ALL_SERIES:
            path = directory / f"series-{kind}.parquet"
            if kind in self.recorded():
                table_files.write_parquet(path, self._lazy(kind))
            else:
                files.remove(path)

    def recorded(self) -> list[str]:
        """The kinds of recordings that exist."""
        there = set(self._series).union(*(record.series for record in self.records))
        return [kind for kind in ALL_SERIES if kind in there]

    @checked()
    def statistics(
        self, table: str, by: Sequence[str] | None = None, measures: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Mean, sd and intervals over the seeds: see `summarise`. By default by the axes and the rows' identity.

        If several rows of a seed are in one group (a flow's instances, for example), their mean counts once: runs are
        independent, rows within a run are not. `values` is how many of the `rows` had a value.
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
        # Count values over the rows, not over their means. (An unknown column is refused here.)
        counted = summarise(whole, by, measures).select("values", "rows")
        means = whole.group_by(keys, maintain_order=True).agg(pl.col(measures).cast(pl.Float64).mean())
        return summarise(means, by, measures, endless=self.endless).with_columns(counted)

    def endless(self, rows: pl.DataFrame) -> bool:
        """Whether these rows are of endless transfers, by the flows' names or groups; for other rows, such as queues,
        whether each of their sweep points has such a flow."""
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
        """Plots a recording `y` ("cwnd", "queue", "gauges") over time, in the run with `seed`, by default the first; or
        a sweep's measure `y` ("goodput_bps", "queues.mean_packets") with its intervals.

        For a sweep, `x` is the axis and each value of `by` has a curve: varied paths, or endings that identify them, or
        identity columns (flow, link, group). The remaining ones have a panel each, unless `flow` selects one. By
        default `x` is the first path with quantities, `by` the other paths. Several measures in `y` have a panel each.
        `labels` replaces values, flows, measures and paths ({"vegas": "TCP Vegas"}), `xlabel` the axis label. `width`
        is a column of a paper (3.5 in), both ("page", 7.16 in), or a length ("4in", "10cm"). `paceline.plots.save`
        writes the figure. Raises PacelineError for unknown names.
        """
        from paceline.plots import recorded  # noqa: PLC0415 (matplotlib, which few calls need)

        curves, flows = ([one] if isinstance(one, str) else one for one in (by, flow))
        return recorded.drawn(self, y, x, curves, flows, labels, xlabel, width, seed)

    @checked()
    def write(self, directory: str | Path) -> None:
        """Writes a run directory: manifest.json, then recordings and tables as Parquet, `runs` last. An earlier run's
        files are removed. Raises StorageError."""
        from paceline.results import store  # noqa: PLC0415 (it stands on this module)

        path = Path(directory)
        files.make_directory(path)
        store.begin(path, self.manifest)
        store.write_tables(self, path, statistics=False)

    @checked()
    def to_pandas(self, name: str) -> Any:
        """The table of that name as a pandas.DataFrame; only pandas is needed. A missing number is NaN, a missing word
        None. Raises PacelineError without pandas."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise PacelineError("pandas is not installed: pip install pandas") from None
        table = self.table(name)
        # Polars' own conversion needs pyarrow too.
        return pandas.DataFrame({column: table[column].to_numpy() for column in table.columns})

    def _repr_html_(self) -> str:
        from paceline.tables import notebook, summaries, sweep  # noqa: PLC0415 (tables for people, which few need)

        layouts = sweep.tables(self) if self.axes else summaries.tables(self)
        return notebook.tables(layouts, summaries.notices(self))

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(self.table(name))} rows" for name in TABLES)
        recorded = f"; recorded: {', '.join(self.recorded())}" if self.recorded() else ""
        return f"<Results of {len(self.runs)} runs; {rows}{recorded}>"
