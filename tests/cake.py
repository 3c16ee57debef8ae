"""CAKE a second time, for the vectors of docs/queues alone: by tc-cake(8), the paper and what Linux' sch_cake does.

It is to be read beside them: a list is a list, the fattest queue is looked for, and what can be counted is not kept.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

QUEUES = 1024
WAYS = 8
CE = 3
WORD = (1 << 64) - 1
# where the draws of the page begin: flows' hashes, hosts' hashes, BLUE, turns
FLOWS, HOSTS, BLUE, TURNS = (0x6097956358069207, 0x9C246559487A2B96, 0xF37EB44A34455AB3, 0x5C0184C87ADDB5B8)


def draw(key: int, index: int) -> int:
    """Draw number `index` of 64 bits: SplitMix64's finaliser of a counter (Steele, Lea, Flood 2014)."""
    z = (key + index * 0x9E3779B97F4A7C15) & WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


@dataclass(frozen=True)
class Packet:
    """What comes: `ecn` is the field of the IP header."""

    number: int
    arrival: int
    size: int
    ecn: int
    flow: int
    src: int
    dst: int


@dataclass(frozen=True)
class Settings:
    """tc-cake's words; times in nanoseconds, `limit` in bytes."""

    isolation: str = "triple-isolate"
    bandwidth: int | None = None
    rtt: int = 100_000_000
    limit: int = 10_240 * 1514
    overhead: int = 14
    mpu: int = 0
    framing: str = "none"
    ingress: bool = False
    mtu: int = 1514

    def time_of(self, length: int) -> int:
        """How long the shaper takes for so many bytes."""
        return length * 8_000_000_000 // self.bandwidth if self.bandwidth else 0

    def adjusted(self, size: int) -> int:
        """What the link below makes of a packet (tc-cake(8), overhead compensation)."""
        length = max(size + self.overhead, self.mpu)
        if self.framing == "atm":
            return -(-length // 48) * 53
        if self.framing == "ptm":
            return length + -(-length // 64)
        return length

    @property
    def target(self) -> int:
        """Above it a packet has waited for too long."""
        return max(self.mtu_time * 3 // 2, self.usual_target)

    @property
    def usual_target(self) -> int:
        """Of an unshaped link."""
        return max(self.rtt // 20, 1000)

    @property
    def interval(self) -> int:
        """From the first delay to the first signal, and the scale of what follows."""
        return max(self.rtt + self.target - self.usual_target, 2 * self.target)

    @property
    def mtu_time(self) -> int:
        """The shaper's time for the longest packet."""
        return self.time_of(self.mtu)

    @property
    def quantum(self) -> int:
        """The bytes of a turn."""
        return min(max(self.bandwidth // 8 >> 12, 300), 1514) if self.bandwidth else 1514


@dataclass
class Cobalt:
    """CoDel with one clock for the first signal and those after, beside BLUE."""

    count: int = 0
    next: int = 0
    dropping: bool = False
    p_drop: int = 0
    blue_timer: int = 0

    def after(self, time: int, interval: int) -> int:
        """The control law; of counts 0 and 1 the factor is 1."""
        return time + int(interval / math.sqrt(max(self.count, 1)))

    def full(self, now: int, target: int) -> None:
        """One of its packets was dropped for want of room."""
        if now - self.blue_timer > target:
            self.p_drop = min(self.p_drop + (1 << 24), 0xFFFFFFFF)
            self.blue_timer = now
        self.dropping, self.next, self.count = True, now, max(self.count, 1)

    def empty(self, now: int, target: int, interval: int) -> None:
        """It was served, and had nothing."""
        if self.p_drop and now - self.blue_timer > target:
            self.p_drop = max(self.p_drop - (1 << 20), 0)
            self.blue_timer = now
        self.dropping = False
        if self.count and now >= self.next:
            self.count -= 1
            self.next = self.after(self.next, interval)

    def quiet(self, now: int) -> bool:
        """Nothing is left to forget."""
        return not self.p_drop and not self.count and now >= self.next

    def verdict(self, now: int, packet: Packet, busy: int, chance: int, on: Settings) -> tuple[bool, str]:
        """Whether a packet that leaves is marked, and what would have it dropped, if anything."""
        sojourn = now - packet.arrival
        over = sojourn > max(on.target, on.mtu_time * busy * 2, on.mtu_time * 4)
        due = self.count > 0 and now >= self.next
        if over:
            if not self.dropping:
                self.dropping, self.next = True, self.after(now, on.interval)
            self.count = max(self.count, 1)
        else:
            self.dropping = False
        mark, reason = False, ""
        if due and self.dropping:
            mark = packet.ecn != 0
            reason = "" if mark else "codel"
            self.count += 1
            self.next = self.after(self.next, on.interval)
        else:
            while due:
                self.count -= 1
                self.next = self.after(self.next, on.interval)
                due = self.count > 0 and now >= self.next
        if self.p_drop and not reason and chance < self.p_drop:
            reason = "blue"
        if self.count == 0:
            self.next = now + on.interval
        elif now > self.next and not reason:
            self.next = now
        return mark, reason


@dataclass
class Queue:
    """One of the 1024."""

    packets: deque[Packet] = field(default_factory=deque)
    set: str = "none"
    deficit: int = 0
    cobalt: Cobalt = field(default_factory=Cobalt)
    tag: int = 0
    hosts: dict[str, int] = field(default_factory=dict)

    def bytes(self) -> int:
        """What waits."""
        return sum(packet.size for packet in self.packets)


def place(home: int, own: list[bool], free: list[bool]) -> tuple[int, str]:
    """Where in its set of eight something is whose hash says `home`: at its own place, a free one, else at home."""
    first = home - home % WAYS
    order = [(home + way) % WAYS for way in range(WAYS)]
    for found, which in (("own", own), ("free", free)):
        for way in order:
            if which[way]:
                return first + way, found
    return home, "shared"


class Cake:
    """The discipline."""

    def __init__(self, on: Settings) -> None:
        self.on = on
        self.queues = [Queue() for _ in range(QUEUES)]
        self.lists: dict[str, list[int]] = {"new": [], "old": [], "decaying": []}
        self.tags = {side: [0] * QUEUES for side in ("src", "dst")}
        self.busy = {side: [0] * QUEUES for side in ("src", "dst")}
        self.sides = {
            "dual-srchost": ["src"],
            "dual-dsthost": ["dst"],
            "triple-isolate": ["src", "dst"],
        }.get(on.isolation, [])
        self.time_next = self.failsafe = 0
        self.taken = self.turns = 0
        self.waiting = 0
        self.collisions = 0

    # ---- which queue

    def hashes(self, packet: Packet) -> dict[str, int]:
        """Of the flow and of both hosts, in 32 bits."""
        return {
            "flow": draw(FLOWS, 2 * packet.flow) >> 32,
            "src": draw(HOSTS, 2 * packet.src) >> 32,
            "dst": draw(HOSTS, 2 * packet.dst + 1) >> 32,
        }

    def classify(self, packet: Packet) -> int:
        """Finds the queue, and says whose it is from now on."""
        hashes = self.hashes(packet)
        if self.on.isolation == "flowblind":
            return 0
        tag = {
            "srchost": hashes["src"],
            "dsthost": hashes["dst"],
            "hosts": hashes["src"] ^ hashes["dst"],
        }.get(self.on.isolation, hashes["flow"])
        home = tag % QUEUES
        if self.queues[home].tag == tag and self.queues[home].set != "none":
            return home
        ways = self.queues[home - home % WAYS :][:WAYS]
        at, found = place(home, [way.tag == tag for way in ways], [way.set == "none" for way in ways])
        queue = self.queues[at]
        queue.tag = tag
        if found == "own" and queue.set != "none":
            return at
        self.collisions += found == "shared"
        if queue.set == "bulk":
            self.count(queue, -1)
        for side in self.sides:
            of, first = hashes[side], hashes[side] % QUEUES // WAYS * WAYS
            own = [mine == of for mine in self.tags[side][first:][:WAYS]]
            host, _ = place(of % QUEUES, own, [not busy for busy in self.busy[side][first:][:WAYS]])
            self.tags[side][host] = of
            queue.hosts[side] = host
        if queue.set == "bulk":
            self.count(queue, 1)
        return at

    def count(self, queue: Queue, more: int) -> None:
        """Its hosts have a busy flow more, or less."""
        for side in self.sides:
            self.busy[side][queue.hosts[side]] += more

    def turn(self, queue: Queue) -> int:
        """The bytes of its next turn, divided by the busy flows of whichever host has more; the rest is drawn."""
        load = max([1, *(self.busy[side][queue.hosts[side]] for side in self.sides)])
        self.turns += 1
        return ((self.on.quantum << 16) // load + (draw(TURNS, self.turns) >> 48)) >> 16

    # ---- in

    def enqueue(self, now: int, packet: Packet) -> list[Packet]:
        """A packet comes; gives those that have to go for it."""
        at = self.classify(packet)
        queue = self.queues[at]
        if not self.waiting and self.time_next < now:
            self.time_next = self.failsafe = now
        queue.packets.append(packet)
        self.waiting += 1
        if queue.set in {"none", "decaying"}:
            self.move(at, "new")
            queue.set, queue.deficit = "sparse", self.turn(queue)
        elif queue.set == "sparse wait":
            queue.set = "bulk"
            self.count(queue, 1)
        lost = []
        while (
            self.waiting > 1 and sum(queue.bytes() for queue in self.queues if queue.packets) > self.on.limit
        ):
            lost.append(self.drop(now))
        return lost

    def drop(self, now: int) -> Packet:
        """The head of the queue with the most bytes; of equals the one with the lowest number."""
        fattest = max((queue for queue in self.queues if queue.packets), key=Queue.bytes)
        packet = fattest.packets.popleft()
        self.waiting -= 1
        fattest.cobalt.full(now, self.on.target)
        if self.on.ingress:
            self.charge(packet, dropped=True)
        return packet

    # ---- out

    def move(self, at: int, to: str | None) -> None:
        """To the end of a list."""
        for name in self.lists:
            if at in self.lists[name]:
                self.lists[name].remove(at)
        if to:
            self.lists[to].append(at)

    def opens(self) -> int:
        """Before it the shaper lets nothing out."""
        return min(self.time_next, self.failsafe)

    def charge(self, packet: Packet, *, dropped: bool) -> int:
        """Moves the shaper's clock on; gives the bytes that the packet counts as."""
        length = self.on.adjusted(packet.size)
        time = self.on.time_of(length)
        self.time_next += time
        if not dropped:
            self.failsafe += time + time // 2
        return length

    def dequeue(self, now: int) -> tuple[Packet | None, str, list[tuple[Packet, str]]]:
        """The packet to send and whether it is marked, and those that were dropped on the way."""
        lost: list[tuple[Packet, str]] = []
        first = True
        while self.waiting and now >= self.opens():
            again = True
            while again:
                names = ["decaying", "new", "old"] if first else ["new", "old", "decaying"]
                first = False
                row = next((self.lists[name] for name in names if self.lists[name]), None)
                assert row, "what waits is in a list"
                packet, fate, again = self.serve(now, row[0], lost)
                if packet:
                    return packet, fate, lost
        return None, "", lost

    def serve(self, now: int, at: int, lost: list[tuple[Packet, str]]) -> tuple[Packet | None, str, bool]:
        """A queue's turn: a packet and its fate, or whether to go on without a look at the shaper."""
        queue = self.queues[at]
        if queue.deficit <= 0:
            if queue.set == "sparse":
                queue.set = "bulk" if queue.packets else "sparse wait"
                if queue.set == "bulk":
                    self.count(queue, 1)
            queue.deficit += self.turn(queue)
            self.move(at, "old")
            return None, "", True
        while queue.packets:
            packet = queue.packets.popleft()
            self.waiting -= 1
            self.taken += 1
            bulk = sum(queue.set == "bulk" for queue in self.queues) if self.on.ingress else 0
            chance = draw(BLUE, self.taken) >> 32
            mark, reason = queue.cobalt.verdict(now, packet, bulk, chance, self.on)
            if reason and queue.packets:
                lost.append((packet, reason))
                if self.on.ingress:
                    queue.deficit -= self.charge(packet, dropped=True)
                    return None, "", True
                continue
            queue.deficit -= self.charge(packet, dropped=False)
            return packet, "marked" if mark and packet.ecn != CE else "sent", False
        queue.cobalt.empty(now, self.on.target, self.on.interval)
        if queue.set == "bulk":
            self.count(queue, -1)
        quiet = queue.cobalt.quiet(now)
        self.move(at, None if quiet else "decaying")
        queue.set = "none" if quiet else "decaying"
        return None, "", False
