"""Colours of reproductions: told apart by readers of all kinds of sight, on paper and on both pages."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from paceline.report import colours as own

Array = npt.NDArray[np.float64]

# Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009), whole loss of one kind of cones, of linear RGB.
SIGHT = {
    "all cones": "1 0 0 0 1 0 0 0 1",
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
    "tritanopia": "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.303900",
}
# IEC 61966-2-1.
TO_XYZ = "0.4124564 0.3575761 0.1804375 0.2126729 0.7151522 0.0721750 0.0193339 0.1191920 0.9503041"


def matrix(rows: str) -> Array:
    return np.array([float(number) for number in rows.split()]).reshape(3, 3)


XYZ = matrix(TO_XYZ)
STYLES = Path(own.__file__).parent / "templates"


def linear(colour: str) -> Array:
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: Array) -> Array:
    """CIE L*a*b* under the white of sRGB."""
    t = (XYZ @ rgb) / (XYZ @ np.ones(3))
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio."""
    low, high = sorted(float((XYZ @ linear(c))[1]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def themes() -> dict[str, list[str]]:
    style = (STYLES / "page.css").read_text()
    found = [re.findall(r"--c\d: (#\w{6});", part) for part in style.split("@media", 1)]
    pages = [re.findall(r"--page: (#\w{6});", part)[0] for part in style.split("@media", 1)]
    return dict(zip(pages, found, strict=True))


def test_the_page_has_the_colours_of_the_figures() -> None:
    light, dark = themes().values()
    assert light == list(own.COLOURS)
    assert len(dark) == len(light) == len(own.MARKERS) == len(set(own.HATCHES))


@pytest.mark.parametrize("page", themes())
def test_colours_are_told_apart(page: str) -> None:
    colours = themes()[page]
    for name, seen in SIGHT.items():
        places = {c: lab(np.clip(matrix(seen) @ linear(c), 0, 1)) for c in colours}
        for one, other in itertools.combinations(colours, 2):
            apart = float(np.linalg.norm(places[one] - places[other]))
            assert apart > 14, f"{one} and {other} are {apart:.1f} apart to {name}"
    assert all(contrast(c, page) > 2 for c in colours)
