"""Figures inside the page: matplotlib's SVG with the page's colours, and the data for its script."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup
from matplotlib.backends.backend_agg import FigureCanvasAgg

from paceline.report import figures, picture
from paceline.report.colours import COLOURS
from paceline.report.picture import POINTS_PER_INCH, Picture
from paceline.studies.points import Place

_NAMES = {
    figures.TEXT: "var(--text)",
    figures.QUIET: "var(--quiet)",
    figures.RULE: "var(--rule)",
    figures.PAGE: "var(--page)",
    **{colour: f"var(--c{n})" for n, colour in enumerate(COLOURS)},
}
_COLOUR = re.compile("|".join(_NAMES))
_ABOVE = 3
"""Points left above the axes when the title is cut off."""


def _group(found: re.Match[str]) -> str:
    """The data attributes of a group that the drawing named; matplotlib's own names are removed."""
    kind, *words = (unquote(html.unescape(word)) for word in found[1].split("|"))
    keys = {
        "of": ("data-s", "data-l"),
        "legend": ("data-key-s", "data-key-l"),
        "line": ("data-s", "data-l", "data-panel", "data-label"),
    }.get(kind, ())
    if kind == picture.TITLE:
        return '<g class="title">'
    pairs = zip(keys, words, strict=bool(keys))
    return "<g" + "".join(f' {key}="{html.escape(word)}"' for key, word in pairs) + ">"


def _rounded(found: re.Match[str]) -> str:
    text = f"{float(found[0]):.2f}"
    return text.rstrip("0").rstrip(".") or "0"


class Styles:
    """The styles of all figures of a page, each distinct style once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, found: re.Match[str]) -> str:
        """The class name of a style."""
        return f'class="{self._names.setdefault(found[1], f"z{len(self._names)}")}"'

    def rules(self) -> Markup:
        """The page's style rules for them."""
        rules = "\n".join(f".{name} {{ {style} }}" for style, name in self._names.items())
        return Markup(rules)  # noqa: S704 (of matplotlib's own words)


def svg(drawn: Picture, prefix: str, label: str, styles: Styles) -> Markup:
    """The figure without its title, with prefixed names, the page's colours, and numbers rounded to a hundredth of a
    point."""
    text = figures.svg(drawn).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = text[text.index(">") + 1 :]
    text = re.sub(r'<g id="([^"]*)"', lambda found: _group(found)[:-1], text)
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}-", text.replace("xlink:href", "href"))
    text = re.sub(r'(?<=["\s(,-])\d+\.\d{3,}', _rounded, text)
    text = re.sub(r"font-family:[^;\"]*;?\s*", "", text)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = _COLOUR.sub(lambda found: _NAMES[found[0]], text)
    text = re.sub(r'\bstyle="([^"]*)"', styles.name, text)
    text = re.sub(r' transform="rotate\(-0[^"]*"', "", text)
    text = re.sub(r'\bd="[^"]*"', lambda found: re.sub(r"\s*([MLCQz])\s*", r"\1", found[0]), text)
    text = re.sub(r"\n\s*", "\n", text).strip()
    for _ in range(3):
        text = re.sub(r"<g>\s*(<(?:use|path)\b[^>]*/>|<text\b[^>]*>[^<]*</text>)\s*</g>", r"\1", text)
    wide, high = drawn.figure.get_size_inches() * POINTS_PER_INCH
    above = _title_points(drawn)
    start = f'<svg viewBox="0 {above:.1f} {wide:.1f} {high - above:.1f}" role="img" aria-label="{html.escape(label)}">'
    return Markup(start + text)  # noqa: S704 (matplotlib has escaped the texts in it)


def _title_points(drawn: Picture) -> float:
    """The height of the title at the top of the figure."""
    renderer = FigureCanvasAgg(drawn.figure).get_renderer()  # type: ignore[no-untyped-call]
    below = drawn.title.get_window_extent(renderer).y0 / drawn.figure.dpi * POINTS_PER_INCH
    return float(max(0.0, drawn.figure.get_figheight() * POINTS_PER_INCH - below - _ABOVE))


def data(drawn: Picture, rows: Mapping[Place, str]) -> dict[str, Any]:
    """Marks as [x, y, series, name, text, row of the table of points] in the SVG's coordinates, and for each line
    panel two points (x, y, time, value) with which the script reads values from a line."""
    figures.svg(drawn)  # saving computes the layout
    marks = []
    for mark in drawn.marks:
        x, y = drawn.where(mark.axes, mark.x, mark.y)
        row = rows.get(mark.place, "") if mark.place else ""
        marks.append([round(x, 1), round(y, 1), mark.series, mark.name, mark.text, row])
    panels = []
    for axes, unit in drawn.panels:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        x0, y0 = drawn.where(axes, left, bottom)
        x1, y1 = drawn.where(axes, right, top)
        panels.append({"from": [x0, y0, left, bottom], "to": [x1, y1, right, top], "unit": unit})
    return {"marks": marks, "panels": panels}
