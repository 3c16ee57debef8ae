"""The golden run of every scheme of the registry: what it does on one small path, as numbers and as a figure."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

import paceline
from paceline.plots import style

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "controllers"
GOLDEN = PAGES / "golden"
EVERY_S = 0.25

PANELS = (
    ("cwnd_packets", "window (packets)", 1.0),
    ("goodput_bps", "goodput (Mbit/s)", 1e6),
    ("queue_packets", "queue (packets)", 1.0),
)
"""End of the columns' names, label with unit, and the unit's size."""


@dataclass(frozen=True)
class Golden:
    """The golden run of a scheme."""

    scheme: str
    link: str | None = None
    """Whose queue, where there are several links."""

    @property
    def scenario(self) -> Path:
        """The scheme's own, or that of all."""
        own = GOLDEN / f"{self.scheme}.toml"
        return own if own.exists() else GOLDEN / "default.toml"

    @property
    def numbers(self) -> Path:
        """Where its numbers lie."""
        return GOLDEN / f"{self.scheme}.csv"

    @property
    def picture(self) -> Path:
        """Where its figure lies."""
        return GOLDEN / f"{self.scheme}.svg"

    def run(self) -> pl.DataFrame:
        """Runs it: windows and goodputs of the flows, and the queue, over time."""
        checked = paceline.load(self.scenario)
        if self.scenario.name == "default.toml":
            checked = checked.set_all([(f"flow.{f}.cc", self.scheme) for f in checked.flow_names()])
        results = paceline.run(checked, record=("cwnd", "rate", "queue"), record_every_s=EVERY_S)
        queue = results.series("queue").filter(direction="forward")
        if self.link:
            queue = queue.filter(link=self.link)
        table = queue.select("time_s", pl.col("packets").alias("queue_packets"))
        for flow in checked.flow_names():
            for kind, column in (("cwnd", "cwnd_packets"), ("rate", "goodput_bps")):
                if kind not in results.recorded():
                    continue
                series = results.series(kind).filter(flow=flow).fill_nan(None)
                # a flow without a window has none to show
                if series.filter(pl.col(column) > 0).height:
                    named = series.select("time_s", pl.col(column).alias(f"{flow}_{column}"))
                    table = table.join(named, on="time_s", how="left")
        return table.sort("time_s")


def as_text(table: pl.DataFrame) -> str:
    """The numbers with six digits, so that a difference can be read."""
    lines = [",".join(table.columns)]
    lines += [",".join("" if v is None else f"{v:.6g}" for v in row) for row in table.iter_rows()]
    return "\n".join(lines) + "\n"


def draw(text: str) -> str:
    """The figure of the numbers, as SVG, which says which they are."""
    table = pl.read_csv(io.StringIO(text), infer_schema_length=None)
    panels = [p for p in PANELS if any(name.endswith(p[0]) for name in table.columns)]
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(7, 1.55 * len(panels) + 0.3), layout="constrained")
        rows = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for axes, (end, label, unit) in zip(rows, panels, strict=True):
            names = [name for name in table.columns if name.endswith(end)]
            for i, name in enumerate(names):
                look = style.line_of(i) if len(names) > 1 else {"color": "#404040"}
                flow = name.removesuffix(f"_{end}")
                shown = active(table, flow).filter(pl.col(name).is_not_null())
                values = shown[name] / unit
                if end == "goodput_bps":
                    # over a second: after a hole is filled, all that waited behind it is delivered at once
                    values = values.rolling_mean(round(1 / EVERY_S), min_samples=1)
                axes.plot(shown["time_s"], values, label=flow, **look)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
        rows[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
        rows[-1].set_xlabel("time (s)")
        rows[-1].set_xlim(0, table["time_s"].max())
        to = io.StringIO()
        figure.savefig(to, format="svg", metadata={"Date": None})
    # Matplotlib pads the ends of lines.
    drawn = re.sub(r" +$", "", to.getvalue(), flags=re.MULTILINE)
    return drawn.replace("</svg>", f"<!-- numbers: {fingerprint(text)} -->\n</svg>")


def active(table: pl.DataFrame, flow: str) -> pl.DataFrame:
    """The rows from a flow's first goodput to its last; all of them of what has none."""
    goodput = f"{flow}_goodput_bps"
    if goodput not in table.columns:
        return table
    times = table.filter(pl.col(goodput) > 0)["time_s"]
    return table.filter(pl.col("time_s").is_between(times.min(), times.max()))


def fingerprint(text: str) -> str:
    """Tells one set of numbers from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
