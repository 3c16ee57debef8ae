"""Figures inside the page: matplotlib's SVG with the page's colours, and the data for its script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from markupsafe import Markup
from matplotlib.backends.backend_agg import FigureCanvasAgg

from paceline.report import figures, picture, svg_tree
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
_ABOVE = 3
"""Points left above the axes when the title is cut off."""
_LEAVES = ("use", "path", "text")
_DATA = {
    "of": ("data-s", "data-l"),
    "legend": ("data-key-s", "data-key-l"),
    "line": ("data-s", "data-l", "data-panel", "data-label"),
}
"""The data attributes of a group that the drawing named, by the kind in its name."""


class Styles:
    """The styles of all figures of a page, each distinct style once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, style: str) -> str:
        """The class name of a style."""
        return self._names.setdefault(style, f"z{len(self._names)}")

    def rules(self) -> Markup:
        """The page's style rules for them."""
        rules = "\n".join(f".{name} {{ {style} }}" for style, name in self._names.items())
        return Markup(rules)  # noqa: S704 (of matplotlib's own words)


def svg(drawn: Picture, prefix: str, label: str, styles: Styles) -> Markup:
    """The figure without its title, with prefixed names, the page's colours, and numbers rounded to a hundredth of a
    point."""
    root = svg_tree.parse(figures.svg(drawn))
    svg_tree.recolour(root, _NAMES)
    _convert(root, prefix, styles)
    wide, high = drawn.figure.get_size_inches() * POINTS_PER_INCH
    above = _title_points(drawn)
    root.attrib.clear()
    root.set("viewBox", f"0 {above:.1f} {wide:.1f} {high - above:.1f}")
    root.set("role", "img")
    root.set("aria-label", label)
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 (a tree's texts are escaped)


def _convert(element: Element, prefix: str, styles: Styles) -> None:
    """Makes an element and those in it the page's."""
    element.tag = svg_tree.plain(element.tag)
    attributes = dict(element.attrib)
    element.attrib.clear()
    if element.tag == "g":
        element.attrib.update(_subject(attributes.pop("id", "")))
    for name, value in attributes.items():
        element.attrib.update(_attribute(svg_tree.plain(name), value, prefix, styles))
    for child in element:
        _convert(child, prefix, styles)
    if element.tag in ("text", "tspan"):  # in which spaces count
        return
    element[:] = [_alone(child) for child in element if not _is_skipped(child)]
    element.text = "\n" if len(element) else None
    for child in element:
        child.tail = "\n"


def _is_skipped(element: Element) -> bool:
    """Whether the page needs nothing of an element: its own style sheet has matplotlib's rule."""
    return element.tag in ("metadata", "style") or (element.tag == "defs" and not len(element))


def _alone(element: Element) -> Element:
    """The only element of a group that says nothing; else the element."""
    empty = element.tag == "g" and not element.attrib and len(element) == 1
    return element[0] if empty and element[0].tag in _LEAVES else element


def _attribute(name: str, value: str, prefix: str, styles: Styles) -> dict[str, str]:
    """What the page has for an attribute of matplotlib's."""
    match name:
        case "id":
            return {name: f"{prefix}-{value}"}
        case "href":
            return {name: value.replace("#", f"#{prefix}-", 1)}
        case "style":
            kept = (pair for pair in svg_tree.declarations(value) if pair[0] != "font-family")
            style = "; ".join(f"{key}: {svg_tree.rounded(said)}" for key, said in kept)
            return {"class": styles.name(style.replace("url(#", f"url(#{prefix}-"))} if style else {}
        case "d":
            return {name: svg_tree.path(value)}
        case "transform" if value.startswith("rotate(-0 "):
            return {}
    return {name: svg_tree.rounded(value).replace("url(#", f"url(#{prefix}-")}


def _subject(name: str) -> dict[str, str]:
    """The data attributes of a group that the drawing named; matplotlib's own names are removed."""
    kind, *words = (unquote(word) for word in name.split("|"))
    if kind == picture.TITLE:
        return {"class": "title"}
    return dict(zip(_DATA[kind], words, strict=True)) if kind in _DATA else {}


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
