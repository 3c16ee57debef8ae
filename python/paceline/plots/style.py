"""The common style of all figures: a palette safe for colour-blind readers, fonts, grids, and saving."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from paceline.arguments import checked
from paceline.errors import PacelineError
from paceline.files import write_whole

# Okabe and Ito's palette without its yellow, which is too pale for lines on white; styles distinguish lines in grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
OTHERS = "#B8B8B8"
SHADE = "#F1F1F1"
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5)))

# Any: matplotlib's stub takes a mapping with literal keys.
RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    # Embed letters as fonts: publishers refuse Type 3, matplotlib's default.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same figure gives the same bytes.
    "svg.hashsalt": "paceline",
}

DOTS_PER_INCH = 160
PRINT_DOTS_PER_INCH = 300
_PAGE_DOTS_PER_INCH = 96
FORMATS = ("svg", "png", "pdf")
WIDTHS = {"column": 3.5, "page": 7.16}
"""Figure widths in a two-column paper, in inches: within one column, across both (IEEE's template)."""
WIDEST_IN, NARROWEST_IN = 20.0, 2.0
_LENGTH = re.compile(r"(\d{1,4}(?:\.\d{1,4})?) ?(in|cm|mm)")


def inches(width: str) -> float:
    """The width of a figure: one of `WIDTHS`, or a length, "4in", "10 cm" or "89mm". Raises PacelineError."""
    if width in WIDTHS:
        return WIDTHS[width]
    found = _LENGTH.fullmatch(width.strip())
    if found is None:
        raise PacelineError(
            f'width = "{width}": must be a {" or a ".join(WIDTHS)}, or a length, as 4in, 10cm or 89mm'
        )
    wide = float(found[1]) / {"in": 1.0, "cm": 2.54, "mm": 25.4}[found[2]]
    if not NARROWEST_IN <= wide <= WIDEST_IN:
        raise PacelineError(f"width = {width}: must be {NARROWEST_IN:g}in to {WIDEST_IN:g}in")
    return wide


def line_of(index: int) -> dict[str, Any]:
    """Colour and line style of the index-th line: colours first, then styles."""
    return {"color": PALETTE[index % len(PALETTE)], "linestyle": STYLES[index // len(PALETTE) % len(STYLES)]}


def from_zero(axes: Iterable[Axes]) -> None:
    """Makes y axes of a common scale begin at zero; if all drawn values are zero, they end at 1."""
    every = list(axes)
    every[0].set_ylim(bottom=0)
    ends_at_one(every)


def ends_at_one(axes: Sequence[Axes]) -> None:
    """Makes y axes of a common scale go from 0 to 1 if all drawn values are zero: matplotlib's default is -0.055 to
    0.055."""
    drawn = (np.asarray(line.get_ydata(), dtype=float) for one in axes for line in one.lines)
    if not any((np.isfinite(values) & (values != 0)).any() for values in drawn):
        axes[0].set_ylim(0, 1)


class Shown(Figure):
    """A figure that a notebook shows: IPython only displays matplotlib's own if pyplot was imported."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        buffer = io.BytesIO()
        with mpl.rc_context(RC):
            self.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        # sharp on dense screens: more pixels than the displayed size
        width, height = (round(_PAGE_DOTS_PER_INCH * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height, "alt": described(self)}


def described(figure: Figure) -> str:
    """What a figure shows, in words: for each panel its title, its axes' labels, and the labels of its lines."""
    whole = _words(figure.get_suptitle(), figure.get_supylabel(), figure.get_supxlabel(), figure.legends)
    panels = [
        _words(
            " ".join(filter(None, (axes.get_title("left"), axes.get_title(), axes.get_title("right")))),
            axes.get_ylabel(),
            axes.get_xlabel(),
            [legend] if (legend := axes.get_legend()) else [],
        )
        for axes in figure.axes
    ]
    return "; ".join(dict.fromkeys(filter(None, [whole, *panels])))


def _words(title: str, up: str, across: str, legends: Iterable[Legend]) -> str:
    what = f"{up} over {across}" if up and across else up or across
    of = ", ".join(text.get_text() for legend in legends for text in legend.get_texts())
    return " ".join(": ".join(filter(None, (title, what, of))).split())


@checked()
def save(
    figure: Figure,
    path: str | Path,
    formats: Sequence[str] | None = None,
    dots_per_inch: int = DOTS_PER_INCH,
) -> list[Path]:
    """Writes the figure in the format of the path's ending (.svg, .png, .pdf), else as path.svg and path.png; with
    `formats`, in those, and the whole path is the name. Raises StorageError."""
    base, wanted = (Path(path), formats) if formats else target(Path(path))
    written = []
    for form in wanted:
        buffer = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        with mpl.rc_context(RC):
            figure.savefig(buffer, format=form, dpi=dots_per_inch, metadata=undated)
        name = base.with_name(f"{base.name}.{form}")
        write_whole(name, buffer.getvalue())
        written.append(name)
    return written


def target(path: Path) -> tuple[Path, tuple[str, ...]]:
    """A figure's name without its format, and the formats that the name asks for. Raises PacelineError for an unknown
    format."""
    form = path.suffix.lstrip(".").lower()
    if form not in FORMATS and form[:1].isalpha():  # "v1.2" is a name, "x.jpg" and "x.jpg2" would be formats
        raise PacelineError(
            f"{path}: figures are {', '.join(f'.{known}' for known in FORMATS)}; a name without an ending makes "
            f"{' and '.join(known.upper() for known in FORMATS[:2])}"
        )
    return (path.with_suffix(""), (form,)) if form in FORMATS else (path, FORMATS[:2])
