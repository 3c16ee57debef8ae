"""What all figures share: a palette safe for colour-blind readers, fonts, grids, and how they are saved."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from paceline.arguments import checked
from paceline.errors import PacelineError
from paceline.files import write_whole

# Okabe and Ito's palette without its yellow, which is too pale for lines on white; the styles tell lines apart in grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
OTHERS = "#B8B8B8"
SHADE = "#F1F1F1"
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5)))

# Any: the stub of matplotlib takes a mapping whose keys are literals.
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
    # Letters as fonts: printers of papers refuse Type 3, which is matplotlib's own choice.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same figure gives the same bytes.
    "svg.hashsalt": "paceline",
}

DOTS_PER_INCH = 160
PRINT_DOTS_PER_INCH = 300
FORMATS = ("svg", "png", "pdf")
_OTHERS = ("bmp", "eps", "gif", "jpeg", "jpg", "ps", "tif", "tiff", "webp")
"""What a name of a figure may end with by mistake."""
WIDTHS = {"column": 3.5, "page": 7.16}
"""Of figures in a paper of two columns, in inches: within one, across both (IEEE's template)."""


def line_of(index: int) -> dict[str, Any]:
    """Colour and line style of the index-th line: colours first, then styles."""
    return {"color": PALETTE[index % len(PALETTE)], "linestyle": STYLES[index // len(PALETTE) % len(STYLES)]}


@checked()
def save(
    figure: Figure,
    path: str | Path,
    formats: Sequence[str] | None = None,
    dots_per_inch: int = DOTS_PER_INCH,
) -> list[Path]:
    """Writes the figure in the format that the path ends in (.svg, .png, .pdf), else as path.svg and path.png;
    `formats` says others. Raises StorageError."""
    base, by_name = target(Path(path))
    written = []
    for form in formats or by_name:
        buffer = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        with mpl.rc_context(RC):
            figure.savefig(buffer, format=form, dpi=dots_per_inch, metadata=undated)
        name = base.with_name(f"{base.name}.{form}")
        write_whole(name, buffer.getvalue())
        written.append(name)
    return written


def target(path: Path) -> tuple[Path, tuple[str, ...]]:
    """The name of a figure without its format, and the formats that the name asks for. Raises PacelineError for one
    that there is not."""
    form = path.suffix.lstrip(".").lower()
    if form in _OTHERS:
        raise PacelineError(f"{path}: figures are {', '.join(f'.{known}' for known in FORMATS)}")
    return (path.with_suffix(""), (form,)) if form in FORMATS else (path, FORMATS[:2])
