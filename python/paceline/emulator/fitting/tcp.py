"""Fits a network to a capture of a TCP connection at one place: rate, round-trip times, losses.

At the sender, acknowledgements show what data segments show at the receiver: how much has arrived. A segment seen twice
was lost between capture and receiver; one that fills a hole was lost before the capture.
"""

from __future__ import annotations

import bisect
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from paceline.emulator.fitting.measurements import Measured, of_windows, quantile
from paceline.emulator.fitting.packets import ACK, SYN, Segment
from paceline.errors import PacelineError

FULL = 0.75
"""A loss counts as a queue overflow if the packets before it met a queue this full, relative to the maximum seen."""
WAITS = 4
"""Packets of 1500 bytes: a shorter queue counts as none."""
MIN_PACKETS = 20
"""Minimum data packets for a rate: ten may be an initial window (RFC 6928), which is sent at once."""
LARGE = 1600
"""A packet larger than any Internet path carries whole."""
LONGEST_S = 1e6
MIN_S = 0.5
"""The shortest window for a rate."""

MAX_HOLES = 10_000
"""The limit on remembered holes."""

Way = tuple[int, tuple[bytes, int], tuple[bytes, int]]
"""The interface, the sender and the receiver."""


def of_segments(segments: Iterable[Segment]) -> Measured:
    """The network of the connection with the most data. Raises PacelineError."""
    all_segments = list(segments)
    sent: Counter[Way] = Counter()
    for segment in all_segments:
        sent[segment.interface, segment.source, segment.target] += segment.payload
    if not sent or max(sent.values()) == 0:
        raise PacelineError("it has no TCP data: rate and losses need a connection that carries data")
    (interface, sender, receiver), _ = sent.most_common(1)[0]
    both = {(sender, receiver), (receiver, sender)}
    mine = [s for s in all_segments if s.interface == interface and (s.source, s.target) in both]
    mine.sort(key=lambda s: s.time)
    others = sum(1 for way, count in sent.items() if count) - 1
    found = _Connection(sender).follow(mine).measured()
    if others:
        found.notes.append(
            f"Of {others + 1} directions of connections that carried data this is the one with the most."
        )
    return found


def _after(number: int, base: int) -> int:
    """The distance of a sequence number from an earlier one, modulo 2^32 (RFC 9293, 3.4)."""
    ahead = (number - base) & 0xFFFFFFFF
    return ahead - (1 << 32) if ahead >= 1 << 31 else ahead


@dataclass
class _Connection:
    sender: tuple[bytes, int]
    handshake: list[int | None] = field(default_factory=lambda: [None, None, None])
    """The times of the SYN, its answer, and the acknowledgement of that."""
    called: bool = False
    """Whether the sender of the data sent the SYN."""
    third_size: int = 0
    base: int | None = None
    """The first sequence number, the origin of all others."""
    highest: int = 0
    acked: int = 0
    first: dict[int, int] = field(default_factory=dict)
    """When the data at a position of the stream was first seen, until it is acknowledged."""
    waiting: deque[tuple[int, int, int]] = field(default_factory=deque)
    """The ends of segments that were sent once, their times, and their packets' sizes."""
    clean_from: int = 0
    """Acknowledgements up to here may be for a retransmission."""
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    """When a segment was sent, nanoseconds until its acknowledgement, and its packet's size."""
    again: dict[int, int] = field(default_factory=dict)
    """Retransmissions: the position, and when it was first seen."""
    filled: int = 0
    """Segments that arrived after later ones, and were not seen before."""
    holes: list[tuple[int, int, int]] = field(default_factory=list)
    """The ranges of missing data, and since when."""
    data: list[tuple[int, int]] = field(default_factory=list)
    """When new payload was seen, and how much."""
    acks: list[tuple[int, int]] = field(default_factory=list)
    packets: int = 0
    packet_bytes: int = 0
    payload: int = 0

    def follow(self, segments: list[Segment]) -> _Connection:
        for segment in segments:
            self._handshake(segment)
            if segment.source == self.sender:
                if segment.payload and not segment.flags & SYN:
                    self._data(segment)
            elif segment.flags & ACK and self.base is not None:
                self._ack(segment)
        return self

    def _handshake(self, segment: Segment) -> None:
        step = 0 if segment.flags & SYN and not segment.flags & ACK else 1 if segment.flags & SYN else 2
        if step == 2 and None in self.handshake[:2]:
            return
        if self.handshake[step] is None:
            self.handshake[step] = segment.time
            if step == 0:
                self.called = segment.source == self.sender
            elif step == 2:
                self.third_size = segment.size
        elif step == 0 and self.handshake[1] is None:
            # A retransmission: the round-trip time is ambiguous from here.
            self.handshake[2] = segment.time

    def _data(self, segment: Segment) -> None:
        if self.base is None:
            self.base = segment.seq
        start = self.highest + _after(segment.seq, (self.base + self.highest) & 0xFFFFFFFF)
        end = start + segment.payload
        self.packets += 1
        self.packet_bytes += segment.size
        self.payload += segment.payload
        if start >= self.highest:
            if start > self.highest:
                self.holes.append((self.highest, start, segment.time))
            self.first[start] = segment.time
            self.waiting.append((end, segment.time, segment.size))
            self.highest = end
            self.data.append((segment.time, segment.payload))
            return
        hole = next((h for h in self.holes if h[0] <= start < h[1]), None)
        if hole is not None:
            self.holes.remove(hole)
            self.holes += [
                part for part in ((hole[0], start, hole[2]), (end, hole[1], hole[2])) if part[0] < part[1]
            ]
            del self.holes[:-MAX_HOLES]
            self.filled += 1
            self.data.append((segment.time, segment.payload))
        elif start in self.first:
            self.again.setdefault(start, self.first[start])
        self.clean_from = self.highest

    def _ack(self, segment: Segment) -> None:
        base = self.base or 0
        ack = self.acked + _after(segment.ack, (base + self.acked) & 0xFFFFFFFF)
        if not self.acked < ack <= self.highest:
            return
        self.acks.append((segment.time, ack - self.acked))
        self.acked = ack
        newest = None
        while self.waiting and self.waiting[0][0] <= ack:
            newest = self.waiting.popleft()
        if newest is not None and ack > self.clean_from:
            self.samples.append((newest[1], segment.time - newest[1], newest[2]))
        if len(self.first) > 2 * len(self.waiting) + 1000:
            self.first = {place: time for place, time in self.first.items() if place >= ack}

    def measured(self) -> Measured:
        """The result of all this."""
        found = Measured(f"a capture of a TCP connection, {self.packets} packets with data")
        hand, own = self._handshakes()
        trips = sorted(trip for _, trip, _ in self.samples if 0 <= trip < 60_000_000_000)
        middle = trips[len(trips) // 2] if trips else 0
        # At the receiver acknowledgements follow at once, at the sender after a round trip.
        at_sender = bool(trips) and (hand is None or 2 * middle >= hand)
        if hand is None and middle < 1_000_000:
            at_sender = False
        arrivals = self.acks if at_sender else self.data
        if at_sender:
            found.rtt_min_s = min(trips[0], own or trips[0]) / 1e9
            found.notes.append("It was taken near the sender: what arrived is what was acknowledged.")
        else:
            found.rtt_min_s = None if hand is None else hand / 1e9
            found.notes.append("It was taken near the receiver: of round trips it has the handshake alone.")
        self._rate(arrivals, found)
        # The path's links add a packet's transmission time again.
        sending = 8e9 / (found.rate_bps or 1)
        if at_sender:
            min_rtt_ns = min(trip - sending * size for _, trip, size in self.samples)
            found.rtt_min_s = max(0.0, min(min_rtt_ns, own or min_rtt_ns)) / 1e9
        elif hand is not None:
            found.rtt_min_s = max(0.0, hand - sending * self.third_size) / 1e9
        if self.packet_bytes > LARGE * self.packets:
            found.notes.append(
                "Packets were captured before a card cut them: the rate lacks headers, up to 4 %."
            )
        if at_sender:
            self._queue(trips, found)
        else:
            found.loss = self.filled / (self.packets + self.filled)
            if self.filled:
                found.notes.append(
                    "Which of the losses were a full queue's cannot be told there: all count as random ones. If the "
                    "flow filled the queue, leave out `loss`: the queue drops its own."
                )
        return found

    def _handshakes(self) -> tuple[int | None, int | None]:
        """The handshake's duration in nanoseconds, and its round-trip time at the sender of the data."""
        syn, answer, third = self.handshake
        if syn is None or answer is None or third is None or not 0 < third - syn < 60_000_000_000:
            return None, None
        return third - syn, (answer - syn if self.called else third - answer)

    def _rate(self, arrivals: list[tuple[int, int]], found: Measured) -> None:
        if len(arrivals) < 2 or arrivals[-1][0] <= arrivals[0][0]:
            raise PacelineError("it has too little TCP data for a rate: all of it arrived at one instant")
        if self.packets < MIN_PACKETS:
            raise PacelineError(
                f"it has too little TCP data for a rate: {self.packets} packets with data, and a rate needs "
                f"{MIN_PACKETS}; capture a download of some seconds"
            )
        start, length = arrivals[0][0], arrivals[-1][0] - arrivals[0][0]
        if length > LONGEST_S * 1e9:
            raise PacelineError(f"it spans {length / 1e9:.3g} s: it is damaged")
        window = max(MIN_S, 5 * (found.rtt_min_s or 0)) * 1e9
        count = min(int(length / window), 100_000)
        on_wire = 8e9 * self.packet_bytes / self.payload
        if count < 4:
            # The first arrival marks the beginning.
            found.rate_bps = sum(size for _, size in arrivals[1:]) * on_wire / length
            found.notes.append(
                f"It is short, {self.packets} packets in {length / 1e9:.3g} s: the rate is that of all of it, with the "
                "connection's beginning, and the link's may be several times as high. Capture some seconds."
            )
            return
        window = length / count
        sums = [0] * count
        for time, size in arrivals:
            sums[min(count - 1, int((time - start) / window))] += size
        rates = [(n * window / 1e9, size * on_wire / window) for n, size in enumerate(sums)]
        of_windows(rates, found)

    def _queue(self, trips: list[int], found: Measured) -> None:
        """The queue at its fullest, and the losses that were not overflows."""
        min_rtt_ns = (found.rtt_min_s or 0) * 1e9
        high_rtt_ns = quantile([float(trip) for trip in trips], 0.99)
        queued = high_rtt_ns - min_rtt_ns > WAITS * 1500 * 8e9 / (found.rate_bps or 1)
        if queued:
            found.rtt_max_s = high_rtt_ns / 1e9
        else:
            found.notes.append("No queue was seen: the link may be faster.")
        limit = min_rtt_ns + FULL * (high_rtt_ns - min_rtt_ns)
        times = [time for time, _, _ in self.samples]
        random = 0
        for time in self.again.values():
            before = bisect.bisect_left(times, time) - 1
            near = self.samples[before][1] if before >= 0 else 0
            random += not queued or near < limit
        found.loss = random / self.packets
        if self.again:
            found.notes.append(
                f"{len(self.again)} segments were sent again, {len(self.again) - random} of them after round trips near"
                " the longest: those were lost to the full queue, and are not in `loss`."
            )
