"""Papers in, verdicts out: `paceline reproduce`.

A paper is a folder `papers/KEY/` of scenarios, `figures.toml` (what is run and drawn) and `published.toml` (every
published number and the expression for our value), which `loading` reads. `studies` runs and judges it, `report` draws
it. This package has what only papers have: `published_file`, `readings_file` and `rereading`; the `summary`, `page` and
`tables` that `writing` writes; and the checks of a result (`bits`, `verifying`, `artefact`).
"""

from __future__ import annotations
