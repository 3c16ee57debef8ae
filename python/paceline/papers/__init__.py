"""Papers in, verdicts out: `paceline reproduce`.

A paper is a folder `papers/KEY/` of scenarios, `figures.toml` (what is run and drawn) and `published.toml` (every
published number and the expression for our side of it), which `loading` reads. `studies` runs and judges it, `report`
draws it; here are what papers alone have: `published_file`, `readings_file` and `rereading`, the `summary`, the `page`
and `tables` that `writing` writes, and what confirms them (`bits`, `verifying`, `artefact`).
"""

from __future__ import annotations
