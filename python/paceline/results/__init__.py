"""What runs gave: tables and recordings, in memory and in directories.

`results` has `paceline.Results`; `columns` and `recordings` name what there can be; `store` keeps finished runs and
`manifests` says what a directory holds. Importing this package imports none of them: the command line reads
`recordings` for its help, and the rest takes Polars.
"""

from __future__ import annotations
