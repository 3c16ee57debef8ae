"""The schemes of a league, and how each enters a scenario: as a download, or as video over RTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline import _core, own_controllers
from paceline.errors import PacelineError
from paceline.leagues.classes import Class, Draw
from paceline.messages.argument_names import meant
from paceline.scenarios.scenario import Schemes
from paceline.suite.suite import Kind, Subject

DEFAULT = ("newreno", "cubic", "vegas", "bbr", "bbr3", "c4", "copa", "tfrc", "gcc", "scream", "nada", "ndtc")
"""The default schemes."""
FRAMES = 30
_HEADROOM = 1.5
"""The maximum rate of an encoder that should fill a link, over the link's maximum rate: high enough not to limit it."""
_MIN_BPS = 150e3
STREAM_SHARE = 0.8
"""The duration of a stream as a share of the run: one without delay ends before the run does."""


@dataclass(frozen=True)
class Entrant:
    """A scheme in the league."""

    name: str
    """The name as given."""
    label: str
    """The name in tables."""
    subject: Subject
    machine: str
    ceilings: tuple[str, ...] = ()
    """Its parameters that limit its rate."""

    def enter(self, of: Class, draw: Draw) -> dict[str, str | dict[str, Any]]:
        """The settings of a drawn scenario, by path, with which the scheme controls the class's flows."""
        found: dict[str, Any] = {f"flow.{of.schemes[0]}.delays": True}
        lasts = STREAM_SHARE * of.duration_s
        for flow in of.schemes:
            table = f"flow.{flow}"
            if self.machine == "rtp":
                target_bps = draw.media_bps or draw.peak_bps * _HEADROOM
                max_bps = max(target_bps, 4 * _MIN_BPS)
                found[f"{table}.app"] = _encoder(max_bps)
                found[f"{table}.rtp"] = {"bandwidth": _rate(min(max_bps, draw.capacity_bps))}
                for ceiling in self.ceilings:
                    value = max_bps / 8 / FRAMES if ceiling == "max_target" else max_bps
                    found[f"{table}.params.{ceiling}"] = round(value)
            elif draw.media_bps is not None:
                if self.machine != "tcp":
                    found[f"{table}.app"] = _encoder(draw.media_bps)
                else:
                    # media are sent at the rate at which they are produced
                    found[f"{table}.app"] = {
                        "kind": "stream",
                        "media_rate": _rate(draw.media_bps),
                        "length": f"{lasts:g} s",
                        "xfactor": 1,
                        "heartbeat": f"{1000 / FRAMES:.4g} ms",
                    }
                    # a call's connection is established before its first frame
                    found[f"{table}.handshake"] = False
            found |= dict(self.subject.settings((table,)))
        return found


def _encoder(max_bps: float) -> dict[str, Any]:
    return {
        "kind": "encoder",
        "frame_rate": FRAMES,
        "min_rate": _rate(_MIN_BPS),
        "max_rate": _rate(max_bps),
    }


def _rate(bps: float) -> str:
    return f"{bps / 1e3:.0f} kbit/s"


def named(texts: Sequence[str], own: Schemes | None = None) -> list[Entrant]:
    """The schemes of these names, or `DEFAULT`: built in, with values ("cubic:profile=linux"), your own
    ("python:mine.py:Mine", "library:./mine.so"), or classes by the names in `own`. Raises PacelineError."""
    schemes = {one["name"]: one for one in json.loads(_core.schemes())}
    for name, cls in (own or {}).items():
        schemes[name] = json.loads(own_controllers.scheme(name, cls).json())
    found = []
    for text in dict.fromkeys([*texts, *(own or {})] or DEFAULT):
        name = text if text in (own or {}) else own_controllers.named(text)
        if text in (own or {}):
            subject, about, label = Subject(Kind.SCHEME, text, text, ()), schemes[text], text
        elif own_controllers.is_own(name):
            subject = Subject(Kind.SCHEME, name, name, ())
            about = json.loads(own_controllers.load(name).json())
            label = name.rpartition(":")[2].rpartition("/")[2]
        else:
            subject = Subject.parse(Kind.SCHEME, text)
            if subject.name not in schemes:
                raise PacelineError(
                    f"no scheme {subject.name!r}{meant(subject.name, schemes)}: there are {', '.join(schemes)}; name "
                    "your own as python:FILE:CLASS or library:FILE"
                )
            about, label = schemes[subject.name], text
        if about["machine"] == "udp":
            raise PacelineError(f"{text}: has no rate of its own, so it cannot be ranked")
        given = {key for key, _ in subject.values}
        ceilings = tuple(
            parameter["name"]
            for parameter in about["params"]
            if parameter["name"] in ("max_rate", "max_target") and parameter["name"] not in given
        )
        found.append(Entrant(text, label, subject, about["machine"], ceilings))
    labels = [one.label for one in found]
    found = [one if labels.count(one.label) == 1 else replace(one, label=one.name) for one in found]
    if len(found) < 2:
        raise PacelineError("a league needs at least two schemes")
    return found
