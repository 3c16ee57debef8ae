"""Results as tables for people: quantities with units, and with their 95 % half width where there are several runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl
from rich.console import Console
from rich.table import Table

from paceline.files import unit_of
from paceline.results import IDENTITY, Results
from paceline.statistics import estimate

MOST_ROWS = 30

_SCALES = {
    "bit/s": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
}
_SHARES = {"loss_rate", "late_share", "utilisation"}

_COLUMNS: dict[str, list[tuple[str, str]]] = {
    "flows": [
        ("goodput_bps", "goodput"),
        ("rtt_mean_s", "RTT"),
        ("rtt_p95_s", "RTT 95 %"),
        ("cwnd_mean_packets", "cwnd"),
        ("loss_rate", "loss"),
        ("packets_sent", "sent"),
        ("packets_retransmitted", "resent"),
        ("timeouts", "timeouts"),
        ("transfers_completed", "transfers"),
    ],
    "streams": [
        ("throughput_bps", "throughput"),
        ("fill_s", "fill time"),
        ("late_share", "late"),
        ("late_packets", "late packets"),
        ("stalls", "stalls"),
        ("stall_s", "stalled"),
        ("duration_s", "lasted"),
    ],
    "queues": [
        ("mean_packets", "mean"),
        ("sd_packets", "sd"),
        ("max_packets", "max"),
        ("utilisation", "utilisation"),
        ("drops_overflow", "overflow"),
        ("drops_early", "early"),
        ("drops_forced", "forced"),
        ("drops_loss", "loss"),
        ("drops_outage", "outage"),
        ("marks", "marks"),
    ],
    "groups": [("flows", "flows"), ("jain", "Jain index"), ("goodput_bps", "goodput")],
}
_ALWAYS = {
    "goodput_bps",
    "rtt_mean_s",
    "fill_s",
    "late_share",
    "mean_packets",
    "sd_packets",
    "jain",
    "loss_rate",
}


def stdout() -> Console:
    """The console of tables. Into a pipe or file nothing is cut to a terminal's width."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=250)


def quantity(measure: str, mean: float | None, half_width: float | None = None) -> str:
    """A value for people: ("goodput_bps", 3.948e6, 1.2e5) is "3.95 ± 0.12 Mbit/s". A missing one is "-"."""
    if mean is None or math.isnan(mean):
        return "-"
    unit, factor = unit_of(measure), 1.0
    if measure in _SHARES:
        unit, factor = "%", 0.01
    elif unit in _SCALES:
        reach = max(abs(mean), half_width or 0.0)
        factor, unit = next(((f, u) for f, u in _SCALES[unit] if reach >= f), _SCALES[unit][-1])
        if reach == 0:
            factor, unit = next((f, u) for f, u in _SCALES[unit_of(measure)] if f == 1.0)
    elif unit == "packets":
        unit = ""
    value, half = mean / factor, None if half_width is None else half_width / factor
    text = _digits(value, half)
    return f"{text} {unit}".rstrip()


def _digits(value: float, half: float | None) -> str:
    if half is None:
        if value == int(value) and abs(value) < 1e7:
            return str(int(value))
        if 0 < abs(value) < 1e-4:
            return "< 0.0001" if value > 0 else "> -0.0001"
        decimals = max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:.{min(decimals, 5)}f}"
    if half == 0:
        return f"{_digits(value, None)} ± 0"
    # The half width to two digits, the mean to the same place.
    decimals = min(4, max(0, 1 - math.floor(math.log10(half))))
    if half < 5e-5:
        return f"{value:.4f} ± < 0.0001"
    return f"{value:.{decimals}f} ± {half:.{decimals}f}"


def tables(results: Results) -> list[Table]:
    """The tables of one scenario's runs; those without rows are left out."""
    titles = {"flows": "Flows", "streams": "Streams", "queues": "Queues (packets)", "groups": "Groups"}
    return [_table(results, name, title) for name, title in titles.items() if len(results.table(name))]


def _table(results: Results, name: str, title: str) -> Table:
    data = results.table(name)
    who = {"flows": ["flow", "instance", "cc"]}.get(name, list(IDENTITY[name]))
    columns = [(m, head) for m, head in _COLUMNS[name] if _worth(data, m)]
    table = Table(title=title, title_justify="left", title_style="bold")
    first = {"queues": "link", "groups": "group", "streams": "stream"}.get(name, "flow")
    table.add_column(first)
    if name == "flows":
        table.add_column("cc")
    for _, head in columns:
        table.add_column(head, justify="right")
    several = len(results.records) > 1
    groups = data.partition_by(who, maintain_order=True)
    lonely = _lonely(data) if "instance" in who else set()
    for group in groups[:MOST_ROWS]:
        table.add_row(*_who(group, name, lonely), *(_cell(group, m, several) for m, _ in columns))
    if len(groups) > MOST_ROWS:
        table.caption = f"and {len(groups) - MOST_ROWS} more: --json and --out give all"
        table.caption_justify = "left"
    return table


def _worth(data: pl.DataFrame, measure: str) -> bool:
    """Whether a column says something: rarely used ones are left out while they are all zero or missing."""
    if measure not in data.columns:
        return False
    return measure in _ALWAYS or any(v not in (None, 0) for v in data[measure])


def _lonely(data: pl.DataFrame) -> set[str]:
    """Flows that have one instance, which then needs no number."""
    counts = data.group_by("flow").agg(pl.col("instance").n_unique())
    return {flow for flow, n in counts.iter_rows() if n == 1}


def _who(group: pl.DataFrame, name: str, lonely: set[str]) -> list[str]:
    if name == "queues":
        return [f"{group['link'][0]} {group['direction'][0]}"]
    if name == "groups":
        return [str(group["group"][0])]
    flow = str(group["flow"][0])
    label = flow if flow in lonely else f"{flow}[{group['instance'][0]}]"
    return [label, str(group["cc"][0])] if name == "flows" else [label]


def _cell(group: pl.DataFrame, measure: str, several: bool) -> str:
    e = estimate(group[measure].to_list())
    text = quantity(measure, e.mean, e.half_width if several else None)
    # A mean over fewer runs than there were says so: 12.3 ± 0.4 s (8 of 10).
    return f"{text} ({e.n} of {len(group)})" if several and 0 < e.n < len(group) else text


def frame(data: pl.DataFrame, title: str, heads: Sequence[str]) -> Table:
    """A data frame of text as a table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column, head in zip(data.columns, heads, strict=True):
        table.add_column(head, justify="right" if data.schema[column].is_numeric() else "left")
    for row in data.iter_rows():
        table.add_row(*("-" if value is None else str(value) for value in row))
    return table
