"""Figures as trees of XML: their numbers, styles and colours, and what a page makes of a whole one."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from paceline.report import figures, inline, picture, svg_tree
from paceline.report.colours import COLOURS


@pytest.mark.parametrize(
    ("words", "short"),
    [
        ("1.23456", "1.23"),
        ("-0.001", "0"),
        ("12.5", "12.5"),
        ("3.000001", "3"),
        ("rotate(-90 9.4612 90.2513)", "rotate(-90 9.46 90.25)"),
        ("0.7321,1.207965", "0.73,1.21"),
        ("1e-05", "1e-05"),
        ("version1.23456", "version1.23456"),
        ("#1b1f24", "#1b1f24"),
    ],
)
def test_numbers_are_rounded_and_words_stay(words: str, short: str) -> None:
    assert svg_tree.rounded(words) == short


def test_a_path_has_only_the_spaces_that_part_numbers() -> None:
    data = "M 0 3.123456 \nC 0.8 3 1.56 2.68 -2.12 2.12 \nL 1 2 \nz\n"
    assert svg_tree.path(data) == "M0 3.12C0.8 3 1.56 2.68 -2.12 2.12L1 2z"


def test_a_font_is_its_parts() -> None:
    """As older versions of Matplotlib write it."""
    found = dict(svg_tree.declarations("font: italic 8.5px 'DejaVu Sans', sans-serif; fill: #1b1f24"))
    family = {"font-family": "'DejaVu Sans', sans-serif"}
    assert found == {"font-style": "italic", "font-size": "8.5px", "fill": "#1b1f24", **family}


def test_a_colour_in_a_text_stays() -> None:
    root = ElementTree.fromstring('<g fill="#FF0000"><text style="fill: #ff0000">#ff0000 1.23456</text></g>')
    svg_tree.recolour(root, {"#ff0000": "none"})
    assert (
        ElementTree.tostring(root, encoding="unicode")
        == '<g fill="none"><text style="fill: none">#ff0000 1.23456</text></g>'
    )


def drawn() -> picture.Picture:
    """A figure with hatches, and with markup, numbers, colours and separators in its names."""
    with mpl.rc_context(figures.STYLE):
        figure = Figure(figsize=(4, 2.75), layout="constrained")
        axes = figure.subplots()
        bars = axes.bar([1, 2], [1, 20], hatch="//", facecolor=COLOURS[0], edgecolor=figures.PAGE)
        picture.tag(bars, "a b|c", '<x> & "y"')
        axes.set_xlabel("of <1.23456> & #0072b2")
        made = picture.Picture(figure, figure.suptitle("above"))
        made.title.set_gid(picture.TITLE)
        return made


def test_a_page_has_the_drawing_with_its_own_names_and_colours() -> None:
    styles = inline.Styles()
    text = inline.svg(drawn(), "plot-1", 'What "it" <shows>', styles)
    assert text == inline.svg(drawn(), "plot-1", 'What "it" <shows>', inline.Styles()), "the same each time"
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == 'What "it" <shows>'
    names = {name for element in root.iter() for name in element.attrib}
    assert names.isdisjoint({"style", "gid"})
    bars = [g for g in root.iter("g") if g.get("data-s")]
    assert [(g.get("data-s"), g.get("data-l")) for g in bars] == [("a b|c", '<x> & "y"')] * 2
    assert "of <1.23456> & #0072b2" in {element.text for element in root.iter("text")}
    ids = {element.get("id") for element in root.iter()} - {None}
    assert all(str(name).startswith("plot-1-") for name in ids)
    rules = str(styles.rules())
    assert "var(--page)" in rules
    assert "#ffffff" not in rules
    assert "url(#plot-1-" in rules, "the hatches' pattern"
    assert "font-family" not in rules
    pattern = next(root.iter("pattern"))
    assert any("var(--c0)" in value for element in pattern.iter() for value in element.attrib.values())
    assert [g for g in root.iter("g") if g.get("class") == "title"]
    assert not list(root.iter("metadata"))
