"""The vectors of CAKE in docs/queues: `tests/cake.py` makes them with `PACELINE_BLESS=1`, and here finds them again.

Its golden run lies beside them, as those of controllers in docs/controllers/golden.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import golden
from cake import BLUE, QUEUES, Cake, Packet, Settings, draw

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parents[1] / "docs" / "queues"
INPUT = ("packet", "arrival_ns", "size_bytes", "ecn", "flow", "src", "dst")
MS = 1_000_000


@dataclass(frozen=True)
class Vector:
    """A file: what comes, the time that the link takes for a byte, and the settings side by side."""

    inputs: list[Packet]
    byte_ns: int
    settings: dict[str, Settings]


class Draws:
    """Draws for the inputs, from a stream that CAKE does not use."""

    def __init__(self, seed: int) -> None:
        self.key, self.index = draw(BLUE, (1 << 40) + seed), 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to below `bound`."""
        self.index += 1
        return draw(self.key, self.index) * bound >> 64


# of a flow: its number, hosts and ECN field, and of each phase the Mbit/s
Source = tuple[int, int, int, int, tuple[float, ...]]


def arrivals(seed: int, lengths: tuple[int, ...], sources: Sequence[Source]) -> list[Packet]:
    """Packets of these flows, phases of so many milliseconds one after the other."""
    draws, found = Draws(seed), []
    for flow, src, dst, ecn, loads in sources:
        begin = 0
        for length, load in zip(lengths, loads, strict=True):
            at, end = begin, begin + length * MS
            while load:
                size = (1500, 1500, 1200, 400)[draws.below(4)]
                at += draws.below(int(2 * size * 8000 / load)) // 1000 * 1000
                if at >= end:
                    break
                found.append(Packet(0, at, size, ecn, flow, src, dst))
            begin = end
    found.sort(key=lambda packet: (packet.arrival, packet.flow))
    return [replace(packet, number=number) for number, packet in enumerate(found)]


def cobalt() -> Vector:
    """Four flows, with room for 60 kB: quiet, too much of one, too much of all, quiet again, a burst, little."""
    lengths = (60, 150, 200, 80, 20, 120)
    sources = [
        (1, 1, 1, 0, (2.0, 9.0, 9.0, 1.0, 40.0, 1.0)),
        (2, 2, 2, 2, (2.0, 3.0, 7.0, 1.0, 40.0, 1.0)),
        (3, 3, 3, 1, (1.0, 1.0, 5.0, 0.5, 0.0, 0.5)),
        (4, 4, 4, 3, (0.5, 0.5, 2.0, 0.2, 0.0, 0.5)),
    ]
    near = Settings(isolation="flows", rtt=20 * MS, limit=60_000)
    far = replace(near, rtt=60 * MS, limit=40_000, ingress=True)
    return Vector(arrivals(1, lengths, sources), 800, {"near": near, "far": far})


def hosts() -> Vector:
    """Host 1 sends eight flows, 2 two and 3 one; 11 receives five, 12 five and 13 one. All want more than there is."""
    shape = [
        (1, 11),
        (1, 11),
        (1, 12),
        (1, 12),
        (1, 12),
        (1, 12),
        (1, 13),
        (1, 11),
        (2, 11),
        (2, 12),
        (3, 11),
    ]
    # the last one comes and goes, and has less than its share
    loads = [(4.0, 4.0, 0.0, 4.0)] * 10 + [(0.4, 0.0, 0.4, 2.0)]
    both = zip(shape, loads, strict=True)
    sources = [(flow, src, dst, 2 * (flow % 2), load) for flow, ((src, dst), load) in enumerate(both)]
    names = [
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ]
    usual = Settings(rtt=40 * MS, limit=80_000)
    inputs = arrivals(2, (60, 60, 30, 40), sources)
    return Vector(inputs, 800, {name: replace(usual, isolation=name) for name in names})


def collisions() -> Vector:
    """More flows than queues at one time, of more hosts than places and to few; then some of them again."""
    draws, inputs = Draws(3), []
    for number in range(2600):
        first = number < 1700
        flow = number if first else draws.below(1700)
        at = number // 4 * 1000 if first else (number - 1300) * 40_000
        src, dst = flow % 1400, flow % 30
        inputs.append(
            Packet(number, at, (200, 300, 1500)[draws.below(3)], draws.below(2) * 2, flow, src, dst)
        )
    usual = Settings(rtt=200 * MS)
    names = ("flows", "triple-isolate")
    return Vector(inputs, 80, {name: replace(usual, isolation=name) for name in names})


def shaper() -> Vector:
    """Behind it a link that is twenty times as fast: steady, too much, a pause, a burst."""
    lengths = (100, 150, 60, 60, 30)
    sources = [
        (1, 1, 1, 2, (1.5, 4.0, 0.0, 1.0, 20.0)),
        (2, 2, 1, 0, (1.0, 3.0, 0.0, 1.0, 9.0)),
        (3, 2, 2, 1, (0.5, 1.0, 0.0, 0.5, 0.0)),
    ]
    ethernet = Settings(bandwidth=5_000_000, rtt=30 * MS, limit=50_000)
    adsl = replace(ethernet, bandwidth=3_000_000, overhead=40, mpu=96, framing="atm")
    vdsl = replace(ethernet, bandwidth=4_321_000, overhead=30, mpu=68, framing="ptm", ingress=True)
    slow = replace(ethernet, bandwidth=1_000_000, overhead=0, mpu=600, limit=20_000)
    named = {"ethernet": ethernet, "adsl": adsl, "vdsl-ingress": vdsl, "slow": slow}
    return Vector(arrivals(4, lengths, sources), 80, named)


VECTORS = {"cobalt": cobalt, "hosts": hosts, "collisions": collisions, "shaper": shaper}


@dataclass
class Run:
    """What became of each packet, and when; and who shared a queue."""

    fates: list[tuple[str, int]]
    cake: Cake


def run(inputs: list[Packet], byte_ns: int, on: Settings) -> Run:
    """A link that asks when it is idle and a packet comes, when it has sent one, and when the shaper opens."""
    cake = Cake(on)
    fates: list[tuple[str, int]] = [("", 0)] * len(inputs)
    free, wake = 0, None
    coming = iter(inputs)
    packet = next(coming, None)
    while packet or wake is not None:
        if packet and (wake is None or packet.arrival < wake):
            now = packet.arrival
            for lost in cake.enqueue(now, packet):
                fates[lost.number] = ("overflow", now)
            wake = max(free, now) if wake is None else wake
            packet = next(coming, None)
            continue
        assert wake is not None
        now = wake
        sent, fate, drops = cake.dequeue(now)
        for lost, reason in drops:
            fates[lost.number] = (reason, now)
        wake = None
        if sent:
            fates[sent.number] = (fate, now)
            free = wake = now + sent.size * byte_ns
        elif cake.waiting:
            wake = cake.opens()
    return Run(fates, cake)


def text_of(vector: Vector) -> str:
    """The file."""
    runs = [run(vector.inputs, vector.byte_ns, on).fates for on in vector.settings.values()]
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*INPUT, *(f"{name}_{what}" for name in vector.settings for what in ("fate", "ns"))])
    for packet in vector.inputs:
        row = (packet.number, packet.arrival, packet.size, packet.ecn, packet.flow, packet.src, packet.dst)
        rows.writerow([*row, *(value for fates in runs for value in fates[packet.number])])
    return out.getvalue()


@pytest.mark.parametrize("name", VECTORS)
def test_the_page_is_what_the_reference_makes(name: str) -> None:
    file = FOLDER / f"cake-{name}.csv"
    text = text_of(VECTORS[name]())
    if os.environ.get("PACELINE_BLESS") == "1":
        file.write_text(text)
    assert file.read_text() == text


def counts(name: str) -> dict[str, Counter[str]]:
    """How many packets of each file meet which fate."""
    with (FOLDER / f"cake-{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in rows[0] if column.endswith("_fate")]
    return {column.removesuffix("_fate"): Counter(row[column] for row in rows) for column in columns}


def test_the_vectors_have_all_that_there_is_to_see() -> None:
    for name in ("near", "far"):
        assert all(
            counts("cobalt")[name][fate] >= 10 for fate in ("sent", "marked", "codel", "blue", "overflow")
        )
    for name in ("ethernet", "adsl", "vdsl-ingress", "slow"):
        assert all(counts("shaper")[name][fate] >= 3 for fate in ("sent", "marked", "codel", "overflow")), (
            name
        )
    for name, by in counts("hosts").items():
        assert by["sent"] >= 150, name
        assert by["marked"] >= 40, name


def test_the_crowd_shares_queues() -> None:
    vector = collisions()
    for name, on in vector.settings.items():
        cake = run(vector.inputs, vector.byte_ns, on).cake
        assert cake.collisions > 200, name
    assert len({packet.flow for packet in vector.inputs}) > QUEUES


def test_each_isolation_is_unlike_the_others() -> None:
    orders = [tuple(run(hosts().inputs, 800, on).fates) for on in hosts().settings.values()]
    assert len(set(orders)) == len(orders)


class GoldenQueue(golden.Golden):
    """A golden run of a queue, which is no scheme's."""

    @property
    def scenario(self) -> Path:
        """Its own."""
        return FOLDER / f"{self.scheme}.toml"


def test_the_golden_run_is_what_it_was() -> None:
    file, text = FOLDER / "cake.csv", golden.as_text(GoldenQueue("cake", link="line").run())
    if os.environ.get("PACELINE_BLESS") == "1":
        file.write_text(text)
    kept = file.read_text().split("\n")
    assert text.split("\n") == kept
    assert len(kept) == 1 + (30 / golden.EVERY_S + 1) + 1, "a head, 0 to 30 s, and the file's end"
