"""Changes at an instant that the run itself determines, for example when a flow's state machine reaches a state.

Each run is made twice. The first run is recorded, and one of its metrics is the instant; the second run's settings name
that instant. Up to it both runs are identical to the bit, because scenario and seed are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMED = re.compile(r"\{at(?:\s*\+\s*(\d+(?:\.\d+)?))?\}")
_MEANT = re.compile(r"\{at\b[^}=]*\}")


@dataclass(frozen=True)
class Change:
    """A change and its instant."""

    metric: str
    """A metric of each run: the instant, in seconds."""
    settings: tuple[tuple[str, str], ...]
    """Additional settings of the second run (TOML path, value): "{at}" in a value is the instant, "{at + 0.5}" half a
    second later."""
    tests: str
    """The option of `paceline suite` for which the study's series stand: scheme or queue."""

    @property
    def mistake(self) -> str | None:
        """The mistake in the settings, in words."""
        named = [text for _, value in self.settings for text in _MEANT.findall(value)]
        for text in named:
            if not _NAMED.fullmatch(text):
                return f"{{at}} or {{at + 0.5}} (seconds later), not {text}"
        return None if named else "names the instant nowhere: {at} is it, {at + 0.5} half a second later"

    def settled(self, at_s: float) -> tuple[tuple[str, str], ...]:
        """The settings with this instant, to the nanosecond."""

        def said(found: re.Match[str]) -> str:
            return f"{round((at_s + float(found[1] or 0)) * 1e9)} ns"

        return tuple((path, _NAMED.sub(said, value)) for path, value in self.settings)
