"""Colours, markers and hatches of a reproduction's figures: a scheme has one colour on every page.

A series is identified by its label, or else by its key. A series that is no scheme, or a second series of a scheme,
takes the first colour that is free in the figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.studies.study import Plot, Study

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#101010", "#882255")
"""Okabe and Ito's without their yellow, and a wine red, which colour-blind readers can distinguish. Markers, dashes and
hatches also distinguish series, so that nothing depends on colour alone."""
MARKERS = ("o", "s", "^", "v", "P", "X", "p", "*")
HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||", "++++", "//")
DASHES = ("--", ":", "-.")

SCHEMES = {
    "newreno": 0,
    "reno": 0,
    "tcp": 0,
    "sack": 0,
    "vegas": 1,
    "tcp veno": 1,
    "tfrc": 2,
    "codel": 2,
    "tfrc veno": 3,
    "tfrcp": 3,
    "multfrc": 4,
    "sap-law": 4,
    "lda+": 5,
    "kernel": 6,
    "the kernel's": 6,
    "rap": 7,
    "voap": 7,
}
"""A scheme's colour. Two schemes share one only if no figure shows both."""
_KEYS = {**SCHEMES, "veno": SCHEMES["tfrc veno"], "lda": SCHEMES["lda+"]}


def _scheme(key: str, label: str) -> int | None:
    """The colour of the scheme at the beginning of a label, or in the key."""
    lower = label.lower()
    for name in sorted(SCHEMES, key=len, reverse=True):
        rest = lower.removeprefix(name)
        if rest != lower and not rest[:1].isalnum() and rest[:1] != "+":
            return SCHEMES[name]
    return _KEYS.get(key.lower())


def assign(names: Sequence[tuple[str, str]]) -> list[int]:
    """Colours for the (key, label) pairs of one figure, all different while there are enough."""
    found: dict[int, int] = {}
    for i, (key, label) in enumerate(names):
        colour = _scheme(key, label)
        if colour is not None and colour not in found.values():
            found[i] = colour
    for i in range(len(names)):
        if i not in found:
            free = [c for c in range(len(COLOURS)) if c not in found.values()]
            found[i] = free[0] if free else i % len(COLOURS)
    return [found[i] for i in range(len(names))]


def of_series(study: Study) -> list[int]:
    """Colours of a study's series. A dashed one has the colour of the solid one whose key begins its own, or else of
    the solid one at the same index."""
    solid = [s for s in study.series if not s.dashed] or list(study.series)
    colours = dict(zip((s.key for s in solid), assign([(s.key, s.label) for s in solid]), strict=True))
    found, dashed = [], 0
    for series in study.series:
        if series.key in colours:
            found.append(colours[series.key])
            continue
        owners = [key for key in colours if series.key.startswith(key)]
        owner = max(owners, key=len) if owners else solid[dashed % len(solid)].key
        found.append(colours[owner])
        dashed += 1
    return found


def dashes(study: Study) -> list[str]:
    """Line styles of a study's series: dashed ones of one colour differ."""
    colours, found = of_series(study), []
    seen: dict[int, int] = {}
    for series, colour in zip(study.series, colours, strict=True):
        found.append(DASHES[seen.get(colour, 0) % len(DASHES)] if series.dashed else "-")
        seen[colour] = seen.get(colour, 0) + series.dashed
    return found


def of_curves(plot: Plot) -> list[int]:
    """Colours of a plot's curves: those in figures.toml, or else those of their schemes."""
    given = [curve.colour for curve in plot.curves]
    if given == list(range(len(given))):
        return assign([(curve.key, curve.label) for curve in plot.curves])
    return [colour % len(COLOURS) for colour in given]


def of_levels(study: Study) -> list[int]:
    """Colours of a study's levels, for separate points."""
    return assign([("", level.label) for level in study.levels])


def marker_of(level: int) -> str:
    """The marker of a level's points: it changes when colours repeat."""
    return MARKERS[(level + level // len(COLOURS)) % len(MARKERS)]
