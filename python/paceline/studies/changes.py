"""Changes at an instant that the run itself makes: when a flow's state machine gets somewhere, say.

Each run is made twice. The first is recorded, and a metric of it is the instant; the second has settings that name that
instant. Up to there both are the same to the bit, as the same scenario and seed are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMED = re.compile(r"\{at(?:\s*\+\s*(\d+(?:\.\d+)?))?\}")
_MEANT = re.compile(r"\{at\b[^}=]*\}")


@dataclass(frozen=True)
class Change:
    """What changes, and when."""

    metric: str
    """A number of each run: the instant, in seconds."""
    settings: tuple[tuple[str, str], ...]
    """What the second run sets besides (TOML path, value): "{at}" in a value is the instant, "{at + 0.5}" half a second
    later."""
    tests: str
    """The option of `paceline suite` that names what the study's series are: scheme or queue."""

    @property
    def mistake(self) -> str | None:
        """What is wrong with the settings, in words."""
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
