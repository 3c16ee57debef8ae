"""Papers in, verdicts out: `paceline reproduce`.

A paper is a folder `papers/KEY/` of scenarios, `figures.toml` (what is run and drawn) and `published.toml` (every
published number and the expression for our side of it). Here: `paper` is what they hold, `loading` reads it, `points`
makes runs of it, `measure` takes metrics and claims from the runs, `expression` and `verdict` judge, `figures`,
`tables` and `page` are what `writing` writes. Look at `reproduction` first.
"""

from __future__ import annotations
