"""Results as people read them: tables with units and intervals, for a terminal and for a notebook.

`layout` fits tables into a width; `summaries`, `sweep` and `comparison` make them from results; `notebook` makes HTML
of the same tables.
"""

from __future__ import annotations
