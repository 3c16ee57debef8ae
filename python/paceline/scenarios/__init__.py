"""Scenarios as text: reading, validating by schema, finding by name, moving to another directory.

`scenario` reads one (`paceline.load`, `parse`); `schemas` has the schemas of all files; `examples` those of the
package; `rate_traces` reads a link's rate over time.
"""

from __future__ import annotations
