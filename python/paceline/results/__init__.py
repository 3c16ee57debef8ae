"""The results of runs: tables and recordings, in memory and in directories.

`results` has `paceline.Results`; `columns` and `recordings` list the possible names; `store` keeps finished runs and
`manifests` describes a directory. Importing this package imports none of them: the command line reads `recordings` for
its help, and the rest needs Polars.
"""

from __future__ import annotations
