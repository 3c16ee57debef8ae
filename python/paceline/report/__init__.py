"""Figures and pages: the parts of the pages of papers, suites and leagues.

`figures` draws, `picture` holds the positions of points, `inline` puts a figure into a page, `parts` frames the page.
"""

from __future__ import annotations
