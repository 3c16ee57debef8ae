"""The media streams of a picoquic simulator specification: tracks of one QUIC connection.

Source: private-octopus/picoquic, `picohttp/quicperf.c`. A stream is
`=ID:KIND RATE:pPRIORITY:S:nFRAMES:BYTES:GGROUP:IBYTES:DMICROSECONDS;` without the blank: `d` sends datagrams, `s` a
stream per group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paceline.studies.study import Settings
from paceline.suite.sim_entries import Entries

_STREAM = re.compile(
    r"(?P<id>[A-Za-z]\w{0,19}):(?P<kind>[ds])(?P<rate>[0-9]{1,4}):"
    r"p(?P<priority>[0-9]{1,3}):S:n(?P<frames>[0-9]{1,7}):(?P<bytes>[0-9]{1,7})"
    r"(?::G(?P<group>[0-9]{1,6}):I(?P<key>[0-9]{1,8}))?(?::D(?P<drop>[0-9]{1,9}))?"
)
_RTP_HEADER = 12
"""Bytes of the RTP header that `voice` writes."""
LEADER = "test"
"""The flow that owns the connection and takes the scheme under test: the stream that lasts longest."""
OTHERS = ("second", "third", "fourth")
"""The other streams, in the order of the specification."""
SCENARIOS = {3: "media.toml", 4: "media-four.toml"}
"""By the number of streams."""


@dataclass(frozen=True)
class Media:
    """A stream: frames at a constant rate."""

    name: str
    datagrams: bool
    rate: int
    priority: int
    """Lower ones go first."""
    frames: int
    size: int
    group: int
    """Frames per group, each group one stream; 0: all in one group."""
    key_size: int
    drop_us: int
    """A group whose frames are this late is dropped; 0: never."""

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def read(text: str) -> Media | None:
    """Reads a part of `main_scenario_text`; None if it is not a media stream that the scenario can carry."""
    found = _STREAM.fullmatch(text.removeprefix("="))
    if found is None:
        return None
    number = {
        key: int(found[key] or 0) for key in ("rate", "priority", "frames", "bytes", "group", "key", "drop")
    }
    if number["rate"] == 0 or number["frames"] == 0 or number["priority"] > 255:
        return None
    datagrams = found["kind"] == "d"
    if datagrams != (number["group"] == 0) or number["bytes"] <= (_RTP_HEADER if datagrams else 0):
        return None
    if not datagrams and not number["bytes"] <= number["key"] <= 100 * number["bytes"]:
        return None
    return Media(
        found["id"],
        datagrams,
        number["rate"],
        number["priority"],
        number["frames"],
        number["bytes"],
        number["group"],
        number["key"],
        number["drop"],
    )


def settings(entries: Entries, streams: list[Media], scheme: str, target_us: int) -> Settings:
    """The streams' settings of their scenario."""
    excluded = {name.strip() for name in entries.text("media_excluded").split(",")}
    leader = max(streams, key=lambda media: media.seconds)
    others = iter(OTHERS)
    # ClientHello, its answer and the request cross the path before the first frame leaves
    start_us = 3 * entries.whole("latency", 0, 60 * 10**6)
    counts_from_us = entries.whole("media_stats_start", 0, target_us - 1)
    found: Settings = (
        ("duration", f"{target_us} us"),
        ("warmup", f"{counts_from_us} us"),
        (f"flow.{LEADER}.cc", scheme),
    )
    for media in streams:
        flow = LEADER if media is leader else next(others)
        last_us = start_us + round((media.frames - 1) / media.rate * 1e6)
        counts = media.name not in excluded and last_us >= counts_from_us
        found += (
            (f"flow.{flow}.group", "media" if counts else "excluded"),
            (f"flow.{flow}.start", f"{start_us} us"),
            (f"flow.{flow}.app", _app(media)),
            (f"flow.{flow}.quic", _carriage(media)),
            (f"flow.{flow}.bundle.priority", str(256 - media.priority)),
        )
    return found


def _app(media: Media) -> str:
    if media.datagrams:
        packet = media.size - _RTP_HEADER
        interval = f"{1 / media.rate:.9f} s"
        return (
            f'{{ kind = "voice", packet = "{packet} B", interval = "{interval}", packets = {media.frames} }}'
        )
    group = media.key_size + (media.group - 1) * media.size
    rate = round(group * 8 * media.rate / media.group)
    return (
        f'{{ kind = "video", rate = "{rate} bit/s", frame_rate = {media.rate}, group = {media.group}, '
        f"key_size = {media.key_size / media.size:.9f}, variation = 0, frames = {media.frames} }}"
    )


def _carriage(media: Media) -> str:
    keys = [f'carriage = "{"datagrams" if media.datagrams else "stream-per-group"}"']
    keys += [f'deadline = "{media.drop_us} us"'] if media.drop_us else []
    return f"{{ {', '.join([*keys, *_CONNECTION])} }}"


_CONNECTION = ('handshake = "done"', 'max_ack_delay = "10 ms"')
"""Media begin when the handshake is complete; acknowledgements are delayed as in picoquic."""
