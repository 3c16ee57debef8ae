"""Figures of the site: one real run of a scenario, a panel for each thing recorded, as SVG for light and dark pages."""

from __future__ import annotations

import functools
import hashlib
import io
from pathlib import Path
from typing import cast

import matplotlib as mpl
from matplotlib.figure import Figure

import paceline
from paceline.plots import KINDS, style
from paceline.plots.timeline import Panel, draw_panel, end_of, keys, named_first
from paceline.report import svg_tree
from paceline.results.recordings import Recording

SAMPLES = 400
SHORTEST_S = 0.1
WIDE_IN, HIGH_IN, MARGIN_IN = 8.0, 1.8, 0.35

# What is drawn for light pages, and what dark ones have in its place: Okabe and Ito's colours, the dark ones lightened.
DARK = {
    "#ffffff": "none",
    "#000000": "#e2e5ee",
    "#404040": "#c8ccd8",
    "#e4e4e4": "#2e323d",
    "#f1f1f1": "#23262f",
    "#0072b2": "#4aa8e0",
    "#d55e00": "#f0803c",
    "#009e73": "#2cc79b",
    "#cc79a7": "#e09cc3",
}
_LIGHT = {"#ffffff": "none"}


def recorded(kinds: list[str]) -> list[str]:
    """The kinds in order. Raises LookupError for one that there is not."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise LookupError(f'live="{" ".join(kinds)}": a live figure shows some of {", ".join(KINDS)}')
    return kinds


def every_s(scenario: paceline.Scenario) -> float:
    """How often a figure of the scenario is sampled."""
    return max(SHORTEST_S, round(scenario.duration_s / SAMPLES, 2))


def key(scenario: paceline.Scenario, kinds: list[str]) -> str:
    """Tells one figure from another: what is run, by which version, and how it is drawn."""
    said = [_program(), scenario.identity(), *map(str, scenario.__getnewargs__()[3]), *kinds]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:20]


@functools.cache
def _program() -> str:
    """The version of what runs and draws: of the code itself, as a version's number stays for months."""
    files = [Path(__file__), *sorted(Path(style.__file__).parent.glob("*.py")), Path(paceline._core.__file__)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def draw(scenario: paceline.Scenario, kinds: list[str]) -> str:
    """Runs the scenario with its own seed and draws what it recorded."""
    step = every_s(scenario)
    results = paceline.run(scenario, record=cast("list[Recording]", kinds), record_every_s=step, workers=1)
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(WIDE_IN, HIGH_IN * len(kinds) + MARGIN_IN), layout="constrained")
        rows = figure.subplots(len(kinds), sharex=True, squeeze=False)[:, 0]
        end = 0.0
        for axes, kind in zip(rows, kinds, strict=True):
            data = results.series(kind)
            end = max(end, end_of(data))
            named = named_first(KINDS[kind], keys(results.flows))
            draw_panel(
                axes, KINDS[kind], Panel("", data, float(results.table("runs")["warmup_s"][0])), end, named
            )
            axes.set_ylabel(_label(kind, end))
            style.from_zero([axes])
        rows[-1].set_xlabel("time (s)")
        rows[-1].set_xlim(0, end)
        to = io.StringIO()
        figure.savefig(to, format="svg", metadata={"Date": None})
    return to.getvalue()


def _label(kind: str, span_s: float) -> str:
    """The kind's label on lines that a panel is high enough for."""
    label = KINDS[kind].y_label(span_s).replace("congestion window", "window")
    return label if len(label) <= 22 else label.replace(" (", "\n(", 1).replace(", ", ",\n")


def light(svg: str) -> str:
    """The figure without its white ground."""
    return _recoloured(svg, _LIGHT)


def dark(svg: str) -> str:
    """The figure for a dark page."""
    return _recoloured(svg, DARK, fill="#c8ccd8")


def _recoloured(svg: str, colours: dict[str, str], **attributes: str) -> str:
    root = svg_tree.parse(svg)
    svg_tree.recolour(root, colours)
    for name, value in attributes.items():
        root.set(name, value)
    return svg_tree.text(root)


def of_matplotlib(svg: str) -> bool:
    """Whether a picture is a figure that can be recoloured."""
    return "Matplotlib v" in svg[:2000]
