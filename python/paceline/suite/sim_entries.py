"""The lines of a picoquic simulator specification, by key; errors name file, line, key and range."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paceline.suite.suite_folders import SuiteError

MINUTE_US = 60 * 10**6


@dataclass
class Entries:
    """The lines of a file by key; errors name file, line and key."""

    name: str
    found: dict[str, tuple[int, str]]

    def error(self, key: str, said: str) -> SuiteError:
        return SuiteError(f"{self.name}, line {self.found[key][0]}: {key}: {said}")

    def text(self, key: str) -> str:
        return self.found[key][1] if key in self.found else ""

    def whole(self, key: str, minimum: int, maximum: int, default: int = 0) -> int:
        if not self.text(key):
            return default
        value = self.text(key)
        # int() also accepts other scripts' digits, and has a limit on their number
        if not re.fullmatch(r"[0-9]{1,18}", value) or not minimum <= int(value) <= maximum:
            raise self.error(key, f"must be a whole number from {minimum} to {maximum}, not {value[:60]!r}")
        return int(value)

    def rate(self, key: str) -> float:
        value = self.text(key)
        if not value:
            return 0.0
        gbps = rate_of(value)
        if gbps is None:
            raise self.error(key, f"must be a rate in Gbit/s from 0 to 1000, not {value[:60]!r}")
        return gbps


def rate_of(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,15})?|\.[0-9]{1,15}", text):
        return None
    return float(text) if float(text) <= 1000 else None
