"""A scenario's calls and path in the terms of a browser and of `paceline path`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline import _core
from paceline.errors import PacelineError
from paceline.scenarios.scenario import toml_value

CC = "gcc"
"""The controller of flows that Chromium carries."""
MAX_CALLS = 4
"""Concurrent calls: the page holds a server connection for each, and a browser opens at most six."""
FRAME_RATE = 30
_SMALL, _LARGE = (480, 270), (640, 360)
_SMALL_BPS = 1.6e6
"""Up to this rate an encoder makes good use of the small picture, which costs less processor time."""
_SCHEDULES = ("rate_schedule", "delay_schedule", "limit_schedule")
_INSTANTS = ("rate_trace", "outage", "aggregation", "delay_variation_schedule")
"""Further keys of a link that contain instants, and are not shifted."""


def calls(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of a resolved scenario: name, start_s, stop_s, max_bps, frame_rate. Raises PacelineError."""
    found = []
    lasts = _core.quantity(table["duration"], "s")
    for name, flow in table["flow"].items():
        if flow["cc"] != CC:
            continue
        app = flow.get("app", {})
        if app.get("kind") != "encoder":
            raise PacelineError(f'flow.{name}.app: a Chromium call needs app = {{ kind = "encoder", ... }}')
        if flow.get("count", 1) != 1 or flow.get("from", "left") != "left":
            raise PacelineError(f"flow.{name}: a Chromium call must be one flow, from left to right")
        found.append(
            {
                "name": name,
                "start_s": _core.quantity(flow.get("start", "0 s"), "s"),
                "stop_s": min(lasts, _core.quantity(flow.get("stop", table["duration"]), "s")),
                "max_bps": round(_core.quantity(app["max_rate"], "bit/s")),
                "frame_rate": FRAME_RATE,
            }
        )
    if not 1 <= len(found) <= MAX_CALLS:
        raise PacelineError(
            f'{len(found)} flows with cc = "{CC}": `paceline call` runs from 1 to {MAX_CALLS} of them in Chromium'
        )
    return found


def picture(planned: list[dict[str, Any]]) -> tuple[int, int]:
    """The camera's width and height for these calls."""
    return _SMALL if max(one["max_bps"] for one in planned) <= _SMALL_BPS else _LARGE


def path(table: Mapping[str, Any], lead_s: float) -> str:
    """The path file of a resolved scenario, with instants shifted by `lead_s`. Raises PacelineError."""
    link = _later(table["link"], lead_s, "link")
    kept = {key: table[key] for key in ("name", "seed", "topology") if key in table} | {"link": link}
    return "".join(f"{key} = {_toml(value)}\n" for key, value in kept.items())


def _toml(value: Any) -> str:
    # elsewhere bare text is a value's notation, here it is a string
    return toml_value([value])[1:-1] if isinstance(value, str) else toml_value(value)


def _later(value: Any, by_s: float, where: str) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _moved(key, one, by_s, f"{where}.{key}") for key, one in value.items()}


def _moved(key: str, value: Any, by_s: float, where: str) -> Any:
    if key in _INSTANTS or (isinstance(value, Mapping) and "during" in value):
        raise PacelineError(
            f"{where}: a real call begins {by_s:g} s after its path, and only rate_schedule, delay_schedule and "
            "limit_schedule are shifted by that; leave it out"
        )
    if key not in _SCHEDULES:
        return _later(value, by_s, where)
    return [{**step, "at": _at(step["at"], by_s)} for step in value]


def _at(text: str, by_s: float) -> str:
    at = _core.quantity(text, "s")
    return text if at == 0 else f"{at + by_s!r} s"
