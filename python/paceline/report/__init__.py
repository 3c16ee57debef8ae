"""Figures and pages: what the pages of papers, suites and leagues are made of.

`figures` draws, `picture` knows where points lie, `inline` puts a figure into a page, `parts` frames the page.
"""

from __future__ import annotations
