"""The vectors of docs/queues, by an implementation made of their README and RFC 9332 alone: these suffice."""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

QUEUES = Path(__file__).parents[1] / "docs" / "queues"
BYTE_NS = 800
MTU = 1500
NS = 1e-9
# the order of floating-point operations is another's own
BOUND = 1e-9


@dataclass
class Packet:
    number: int
    arrival: int
    size: int
    ecn: int


@dataclass
class DualPi2:
    """Figures 3 to 8; `coupled` and `step` are Linux', without a draw."""

    linux: bool
    queues: tuple[deque[Packet], deque[Packet]] = field(default_factory=lambda: (deque(), deque()))
    count: list[float] = field(default_factory=lambda: [0.0, 0.0])
    p: float = 0.0
    prevq: float = 0.0
    updated: int = 0
    credit: float = 0.0

    def __post_init__(self) -> None:
        self.share = 0.1 if self.linux else 1 / 16
        self.tupdate = 16_000_000 if self.linux else 15_000_000
        self.alpha, self.beta = (41 / 256, 819 / 256) if self.linux else (0.15, 3.0)
        self.rest()

    def rest(self) -> None:
        self.credit = MTU * (self.share - (1 - self.share))

    def bytes(self) -> int:
        return sum(packet.size for queue in self.queues for packet in queue)

    def update(self, until: int) -> None:
        while self.updated + self.tupdate <= until:
            self.updated += self.tupdate
            curq = max((self.updated - queue[0].arrival) * NS if queue else 0.0 for queue in self.queues)
            self.p += self.alpha * (curq - 0.015) + self.beta * (curq - self.prevq)
            self.p = min(max(self.p, 0.0), 1.0)
            self.prevq = curq

    def enqueue(self, packet: Packet) -> bool:
        self.update(packet.arrival)
        if any(self.queues) and not self.linux and self.bytes() + MTU > 62_500:
            return False
        self.queues[0 if packet.ecn % 2 else 1].append(packet)
        return True

    def recur(self, queue: int, likelihood: float) -> bool:
        self.count[queue] += likelihood
        due = self.count[queue] > 1
        self.count[queue] -= due
        return due

    def take(self, now: int) -> tuple[Packet, int, bool] | None:
        """The packet whose turn it is, its queue, and whether the other one had a packet too."""
        self.update(now)
        low, classic = self.queues
        if not low and not classic:
            self.rest()
            return None
        # with exact sixteenths and tenths of whole bytes the sign is right but for what is far below a byte
        contended = bool(low and classic)
        queue = 0 if low and (not classic or self.credit <= 1e-6) else 1
        return self.queues[queue].popleft(), queue, contended

    def sent(self, packet: Packet, queue: int) -> None:
        self.credit += packet.size * (self.share if queue == 0 else self.share - 1)

    def fate(self, packet: Packet, queue: int, now: int) -> str:
        """Figure 7."""
        p_cl, p_c = min(2 * self.p, 1.0), self.p**2
        if queue == 1:
            if not self.recur(1, p_c):
                return "sent"
            return "dropped" if packet.ecn == 0 or p_c >= 1 / 4 else "marked"
        if p_cl < 1:
            delay = (now - packet.arrival) * NS
            native = min(max((delay - 800e-6) / 400e-6, 0.0), 1.0) if len(self.queues[0]) > 1 else 0.0
            marked = self.recur(0, max(native, p_cl))
        elif self.recur(0, p_c):
            return "dropped"
        else:
            marked = self.recur(0, p_cl)
        return "marked" if marked and packet.ecn != 3 else "sent"


def rows_of(name: str) -> list[dict[str, str]]:
    with (QUEUES / name).open(newline="") as file:
        return list(csv.DictReader(file))


def run(rows: list[dict[str, str]], *, linux: bool) -> dict[int, tuple[str, int, float, int]]:
    """Each packet's fate, when it was taken, p then, and the bytes left."""
    dual, outcomes = DualPi2(linux), {}
    arrivals = deque(
        Packet(*(int(row[key]) for key in ("packet", "arrival_ns", "size_bytes", "ecn"))) for row in rows
    )
    free, busy = 0, False
    while arrivals or busy:
        if arrivals and not (busy and free <= arrivals[0].arrival):
            packet = arrivals.popleft()
            now = packet.arrival
            if not dual.enqueue(packet):
                outcomes[packet.number] = ("refused", now, dual.p, dual.bytes())
            if busy:
                continue
            free, busy = max(free, now), True
            if free > now:
                continue
        now = free
        while True:
            taken = dual.take(now)
            if taken is None:
                busy = False
                break
            packet, queue, contended = taken
            fate = "sent" if linux else dual.fate(packet, queue, now)
            outcomes[packet.number] = (fate, now, dual.p, dual.bytes())
            if fate != "dropped":
                if contended:
                    dual.sent(packet, queue)
                free = now + packet.size * BYTE_NS
                break
    return outcomes


def test_the_rfcs_marks_and_drops_follow_from_the_page() -> None:
    rows = rows_of("dualpi2-rfc9332.csv")
    outcomes = run(rows, linux=False)
    for row in rows:
        fate, at, p, _ = outcomes[int(row["packet"])]
        assert (fate, at) == (row["fate"], int(row["taken_ns"])), row
        assert p == pytest.approx(float(row["p"]), abs=BOUND), row


def test_linux_probabilities_follow_from_the_page() -> None:
    rows = rows_of("dualpi2-linux.csv")
    outcomes = run(rows, linux=True)
    for row in rows:
        _, at, p, left = outcomes[int(row["packet"])]
        of_l4s = int(row["ecn"]) % 2 == 1
        coupled = 0.0 if left < 2 * MTU else min(2 * p, 1.0) if of_l4s else p**2
        step = of_l4s and at - int(row["arrival_ns"]) > 1_000_000
        assert (at, step) == (int(row["taken_ns"]), row["step"] == "1"), row
        assert p == pytest.approx(float(row["p"]), abs=BOUND), row
        assert coupled == pytest.approx(float(row["coupled"]), abs=BOUND), row


@pytest.mark.parametrize("name", ["dualpi2-rfc9332.csv", "dualpi2-linux.csv"])
def test_no_packet_comes_at_the_instant_of_an_update(name: str) -> None:
    arrivals = [int(row["arrival_ns"]) for row in rows_of(name)]
    assert all(a <= b for a, b in pairwise(arrivals))
    assert not any(arrival % every == 0 for arrival in arrivals for every in (15_000_000, 16_000_000))
