"""Figures of matplotlib as trees of XML: their styles, colours and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_NAMESPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
_FONT_STYLES = ("italic", "oblique")
_DECIMALS = 2


def parse(svg: str | bytes) -> Element:
    """The root of a figure; its names have their namespaces."""
    return ElementTree.fromstring(svg)  # noqa: S314 (matplotlib wrote it)


def text(root: Element) -> str:
    """The text of a figure, with the prefixes that matplotlib uses."""
    for prefix, name in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, name)
    return ElementTree.tostring(root, encoding="unicode")


def plain(name: str) -> str:
    """The name of an element or attribute as a page of HTML has it, without its namespace: "g", "href"."""
    return name.rpartition("}")[2]


def declarations(style: str) -> Iterator[tuple[str, str]]:
    """The names and values of a style. Older versions of Matplotlib write one `font`, which gives its parts."""
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":
            yield from _font(value)
        elif name:
            yield name, value


def _font(value: str) -> Iterator[tuple[str, str]]:
    words = value.split()
    for i, word in enumerate(words):
        if word.endswith("px"):
            yield "font-size", word
            yield "font-family", " ".join(words[i + 1 :])
            return
        yield "font-style" if word in _FONT_STYLES else "font-weight", word


def recolour(root: Element, colours: Mapping[str, str]) -> None:
    """Replaces colours, by their six lower-case digits, in styles and attributes."""
    for element in root.iter():
        for name in ("fill", "stroke"):
            value = element.get(name, "").lower()
            if value in colours:
                element.set(name, colours[value])
        if style := element.get("style"):
            pairs = ((name, colours.get(value.lower(), value)) for name, value in declarations(style))
            element.set("style", "; ".join(f"{name}: {value}" for name, value in pairs))


def rounded(words: str) -> str:
    """Numbers with more decimals than a hundredth, rounded to it; other words unchanged. Words are set apart by spaces,
    commas and parentheses."""
    for mark in " ,(":
        if mark in words:
            return mark.join(rounded(part) for part in words.split(mark))
    number, close, rest = words.partition(")")
    whole, _, decimals = number.partition(".")
    if len(decimals) <= _DECIMALS or not (whole.removeprefix("-") + decimals).isdigit():
        return words
    text = f"{float(number):.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return ("0" if text == "-0" else text) + close + rest


def path(data: str) -> str:
    """The data of a path, rounded and without needless spaces."""
    text = ""
    for word in data.split():
        apart = " " if text and not text[-1].isalpha() and not word.isalpha() else ""
        text += apart + rounded(word)
    return text
