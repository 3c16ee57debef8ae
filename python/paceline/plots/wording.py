"""The words in a sweep's figure: its axes, curves and panels, and notes for its caption."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import polars as pl

from paceline.interval import Kind
from paceline.plots.sweeps import APART, MAX_SCALE_RATIO, Chart
from paceline.quantities import UNITS

_STATISTICS = {"mean": "mean {}", "min": "least {}", "max": "greatest {}", "sd": "{}, standard deviation"}
_STATISTICS |= {"p50": "median {}", "p95": "{}, 95th percentile", "p99": "{}, 99th percentile"}
_WORDS = {"rtt": "RTT", "owd": "one-way delay", "jain": "Jain index", "cov": "variation", "fill": "fill time"}
_QUEUES = {"queues": "queue", "link_flows": "packets in queue"}
_PRINTED = {
    name: printed
    for names in (
        "newreno NewReno|reno Reno|sack SACK|tahoe Tahoe|vegas Vegas|cubic CUBIC|veno Veno|bbr BBR|bbr3 BBR 3",
        "dctcp DCTCP|prague Prague|copa Copa|c4 C4|ledbat LEDBAT|ledbat-plus-plus LEDBAT++|tfrc TFRC|rap RAP",
        "tfrc-veno TFRC Veno|multfrc MULTFRC|tfrcp TFRCP|nada NADA|ndtc NDTC|gcc GCC|lda-plus LDA+|udp UDP",
        "scream SCReAM|scream-ericsson SCReAM (Ericsson)|scream-libwebrtc SCReAM (libwebrtc)|droptail drop-tail",
        "red RED|codel CoDel|fq-codel FQ-CoDel|pie PIE|fq-pie FQ-PIE|dualpi2 DualPI2|cake CAKE",
    )
    for name, _, printed in (pair.partition(" ") for pair in names.split("|"))
}
"""The names of controllers and queues in print."""


def along(chart: Chart) -> str:
    """The axis' label, in words."""
    return chart.labels.get(chart.x, of_path(chart.x))


def of_path(column: str) -> str:
    """A path in words: "link.bottleneck.delay" is "bottleneck delay"."""
    match column.split("."):
        case ["flow", name, "count"]:
            return f"{name} flows"
        case ["flow", name, "cc"]:
            return f"controller of {name}"
        case ["link" | "flow" | "cell", *keys] if keys:
            pass
        case keys:
            pass
    return " ".join(key for key in keys if key not in ("app", "params")).replace("_", " ")


def what(chart: Chart) -> str:
    """The measure in words, and its flow if that was chosen."""
    if chart.measure in chart.labels:
        return chart.labels[chart.measure]
    unit = next((end for end in UNITS if chart.measure.endswith(end)), "")
    words = chart.measure.removesuffix(unit).split("_")
    statistic = next((_STATISTICS[word] for word in words if word in _STATISTICS), "{}")
    rest = [_WORDS.get(word, word) for word in words if word not in _STATISTICS]
    named = " ".join(rest) or _QUEUES.get(chart.table, chart.table)
    chosen = [chart.labels.get(flow, flow) for flow in chart.flows]
    flow_names = "" if "flow" in (chart.x, *chart.by, *chart.rest) else " and ".join(chosen)
    return statistic.format(f"{named} of {flow_names}" if flow_names else named)


def said(chart: Chart, columns: Sequence[str], values: Sequence[Any]) -> str:
    """Values for people: words unchanged, quantities and booleans with the name of their column."""
    parts = []
    for column, value, text in zip(columns, values, texts(chart, columns, values), strict=True):
        plain = column not in chart.numeric and str(value).lower() not in ("true", "false")
        parts.append(text if plain else f"{of_path(column)} {text}")
    return ", ".join(parts)


def texts(chart: Chart, columns: Sequence[str], values: Sequence[Any]) -> list[str]:
    """Values as papers print them, or as `labels` gives them; tables by what distinguishes them."""
    found = []
    for column, value in zip(columns, values, strict=True):
        text = _short(chart.data[column].unique().to_list()).get(value, str(value))
        is_name = column.rpartition(".")[2] in ("cc", "kind", "queue")
        printed = _PRINTED.get(text, text) if is_name else text
        found.append(chart.labels.get(text, printed))
    return found


def _short(values: Sequence[Any]) -> dict[Any, str]:
    """Short names of TOML tables: "red" and "codel" for tables that differ only in `kind`. Empty if there are other
    values."""
    try:
        tables = {text: tomllib.loads(f"value = {text}")["value"] for text in values}
    except (tomllib.TOMLDecodeError, TypeError):
        return {}
    if not all(isinstance(table, dict) for table in tables.values()):
        return {}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    differ = [key for key in keys if len({repr(table.get(key)) for table in tables.values()}) > 1]
    return {
        text: ", ".join(str(table[key]) for key in differ if key in table) or text
        for text, table in tables.items()
    }


def notes(chart: Chart) -> list[str]:
    """Notes for the figure's caption."""
    data = chart.data
    kinds = set(data.filter(pl.col("n") > 1)["kind"])
    runs = sorted({int(n) for n in data["n"] if n})
    many = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(runs[0])
    said = ["One run a point: no intervals."] if runs == [1] else []
    if Kind.T in kinds:
        said.append(f"Bars: 95 % intervals of the mean over {many} runs.")
    if Kind.MEDIAN in kinds:
        said.append(
            f"Hollow, dotted bars: medians over {many} runs, and where they lie at 95 % or more; an "
            "interval of the mean would not hold."
        )
    if not data.filter(APART).is_empty():
        said.append("Crosses: means that lie beyond the interval of the median.")
    if Kind.RUNS in kinds:
        said.append("Hollow without bars: most runs have one value; the tables say how many have another.")
    if Kind.NONE in kinds:
        said.append("Hollow without bars: too few runs for an interval; 6 or more bound the median.")
    some = data.filter(pl.col("values") > 0, pl.col("values") < pl.col("rows"))
    none = data.filter(pl.col("values") == 0)
    if not chart.alike:
        said.append(f"Panels differ by more than {MAX_SCALE_RATIO:g} times: each has its own scale.")
    if len(some):
        said.append(f"Note: {len(some)} of {len(data)} points are means over those that have a value.")
    if len(none):
        said.append(f"Note: {len(none)} of {len(data)} points have no value, and are not drawn.")
    return said
