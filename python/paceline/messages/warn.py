"""Warnings with the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from paceline.errors import PacelineWarning

_HERE = str(Path(__file__).parents[1]) + os.sep


def warn(text: str, category: type[PacelineWarning] = PacelineWarning) -> None:
    """Warns about the line outside the package that led here: Python shows a text once for each line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
