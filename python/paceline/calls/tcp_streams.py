"""The packets that TCP connections of a capture carry: their bytes in order, and the packets in these.

Captures come from anywhere: what waits for missing bytes is bounded, and every length is checked. A hole in the bytes
is passed over where it lies within one packet; else packets are sought behind it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import IO

from paceline.calls.framings import FRAMINGS, MORE, NONE, PROOF, WEAK, Frame, Framing, content
from paceline.emulator.fitting.frames import Unread
from paceline.emulator.fitting.packets import SYN, TCP, Datagram, Segment, contents

MAX_DIRECTIONS = 1 << 16
"""The limit on connections, each direction counted."""
MAX_WAITING = 1 << 22
"""The limit on bytes of one direction behind a hole, which a retransmission may still fill."""
MAX_HELD = 1 << 26
"""The limit on bytes held of all directions."""
LONGEST_WAITING = 30_000_000_000
"""How long bytes wait behind a hole, in nanoseconds."""
MAX_SEARCHED = 1 << 12
"""How far packets are sought in a direction that has shown none, in bytes: farther than most packets are long."""
MAX_SEARCHED_IN_ALL = 1 << 24
"""How far packets are sought in all directions, in bytes."""
_UNDECIDED = 1 << 17
"""How many bytes may be needed to decide whether packets begin at an offset."""
_CHAIN = 8
"""How many packets in a row are looked at to decide it."""
_BEHIND = 1 << 26
"""How far behind a segment may be sent again, in bytes; farther behind it is of another connection."""
_BESIDE = 100
"""What a waiting segment takes beside its bytes."""
_MAX_SSRCS = 256


def datagrams(file: IO[bytes], unread: Unread, min_packets: int) -> Iterator[Datagram]:
    """The UDP datagrams of a capture and the packets that TCP carries. A packet over TCP has the time at which its last
    byte, and all bytes before it, had arrived. Holes are counted in `unread` where a direction has this number of
    packets. Raises PacelineError, OSError."""
    connections = _Connections(unread)
    for one in contents(file, unread):
        if isinstance(one, Datagram):
            yield one
        else:
            yield from connections.add(one)
    yield from connections.finish(min_packets)


class _Budget:
    """How many bytes may still be searched."""

    def __init__(self) -> None:
        self.left = MAX_SEARCHED_IN_ALL


class _Connections:
    """The TCP connections of a capture, each direction at each interface."""

    def __init__(self, unread: Unread) -> None:
        self._unread = unread
        self._budget = _Budget()
        self._directions: dict[tuple[int, tuple[bytes, int], tuple[bytes, int]], _Direction] = {}
        self._held = 0

    def add(self, segment: Segment) -> list[Datagram]:
        """The packets that a segment completes."""
        key = (segment.interface, segment.source, segment.target)
        direction = self._directions.get(key)
        if direction is None:
            if len(self._directions) >= MAX_DIRECTIONS:
                self._unread.kinds[f"TCP after the first {MAX_DIRECTIONS:,} connections"] += 1
                return []
            direction = self._directions[key] = _Direction(self._budget)
        before = direction.held
        direction.add(segment)
        self._held += direction.held - before
        if self._held > MAX_HELD:
            before = direction.held
            direction.finish()
            self._held += direction.held - before
        return _taken(key, direction)

    def finish(self, min_packets: int) -> Iterator[Datagram]:
        """The packets behind holes that nothing has filled."""
        for key, direction in self._directions.items():
            direction.finish()
            yield from _taken(key, direction)
            if direction.packets.count >= min_packets:
                self._unread.holes += direction.packets.holes
            elif direction.packets.count == 0 and direction.segments:
                self._unread.kinds["TCP without RTP"] += direction.segments


def _taken(key: tuple[int, tuple[bytes, int], tuple[bytes, int]], direction: _Direction) -> list[Datagram]:
    """The packets that a direction has found."""
    found, direction.packets.found = direction.packets.found, []
    return [Datagram(time, *key, size, kept, TCP) for time, size, kept in found]


class _Direction:
    """The bytes that one end of a connection sent, in order (RFC 9293 section 3.4). The first copy of a byte counts."""

    def __init__(self, budget: _Budget) -> None:
        self.packets = _Packets(budget)
        self.segments = 0
        """Segments with data."""
        self._base: int | None = None
        """The sequence number of the first byte."""
        self._next = 0
        """The next byte's offset."""
        self._waiting: list[tuple[int, int, int, bytes, int]] = []
        """A heap of segments behind a hole: offset, order of arrival, time, captured bytes, size."""
        self._bytes = 0
        """What they take."""
        self._since = 0
        """Since when there is the first hole."""

    @property
    def held(self) -> int:
        """Bytes of memory for its data."""
        return self._bytes + len(self.packets.kept)

    def add(self, segment: Segment) -> None:
        """Adds a segment in the order of capture."""
        seq, size = segment.seq, segment.payload
        if segment.flags & SYN:
            seq = (seq + 1) & 0xFFFFFFFF
            if seq != self._base:
                self._begin(seq, from_start=True)
        if size == 0:
            return
        self.segments += 1
        if self._base is None:
            self._begin(seq, from_start=False)
        if self.packets.given_up:
            return
        ahead = self._ahead(seq)
        if not -_BEHIND <= ahead < 1 << 30:  # beyond all windows (RFC 7323 section 2.3): another connection
            self._begin(seq, from_start=False)
            ahead = 0
        if ahead <= 0:
            self._pass(self._next + ahead, segment.time, segment.kept, size)
        else:
            if not self._waiting:
                self._since = segment.time
            heapq.heappush(
                self._waiting, (self._next + ahead, self.segments, segment.time, segment.kept, size)
            )
            self._bytes += len(segment.kept) + _BESIDE
        self._drain()
        while self._waiting and (
            self._bytes > MAX_WAITING or segment.time - self._since > LONGEST_WAITING or ahead > MAX_WAITING
        ):
            self._skip(segment.time)

    def finish(self) -> None:
        """Gives up all holes."""
        while self._waiting:
            self._skip(self._since)
        self.packets.end()

    def _ahead(self, seq: int) -> int:
        """How far a sequence number is ahead of the next byte's."""
        return ((seq - (self._base or 0) - self._next + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)

    def _begin(self, seq: int, *, from_start: bool) -> None:
        """A connection begins, or the capture of it."""
        self.finish()
        self.packets.begin(from_start=from_start)
        self._base, self._next = seq, 0

    def _pass(self, offset: int, time: int, kept: bytes, size: int) -> None:
        """Passes on what is new of a segment that leaves no hole."""
        old = self._next - offset
        if old < size:
            self.packets.take(time, kept[old:], size - old)
            self._next += size - old

    def _drain(self) -> None:
        """Passes on the segments that no hole precedes any more."""
        while self._waiting and self._waiting[0][0] <= self._next:
            offset, _, time, kept, size = heapq.heappop(self._waiting)
            self._bytes -= len(kept) + _BESIDE
            self._since = max(self._since, time)
            self._pass(offset, time, kept, size)

    def _skip(self, now: int) -> None:
        """Gives up the first hole."""
        self.packets.skip(self._waiting[0][0] - self._next)
        self._next, self._since = self._waiting[0][0], now
        self._drain()


class _Packets:
    """The packets in bytes that come in order, with holes."""

    def __init__(self, budget: _Budget) -> None:
        self.found: list[tuple[int, int, bytes]] = []
        """Time, size, and captured part."""
        self.count = 0
        """How many were found."""
        self.holes = 0
        """Where bytes are missing or are no packets."""
        self.given_up = False
        """Whether these are other bytes."""
        self.kept = bytearray()
        """Bytes of no packet yet."""
        self._budget = budget
        self._ssrcs: set[int] = set()
        self.begin(from_start=False)

    def begin(self, *, from_start: bool) -> None:
        """Begins a connection; `from_start`: with the first byte that was sent."""
        self._framing: Framing | None = None
        self._synced = self.given_up = False
        self._from_start, self._after_hole = from_start, True
        self._begun: set[tuple[Framing, int]] = set()
        """SSRCs of what may be packets directly behind holes."""
        self._searched = 0
        self._partial: tuple[int, bytes, int] | None = None
        """A packet with a hole in it: size, the part before it, and bytes that are missing up to the next."""
        self._clock = 0
        self._forget()

    def _forget(self) -> None:
        self.kept.clear()
        self._end = 0
        """How many bytes there were since."""
        self._times: deque[tuple[int, int]] = deque()
        """Up to which byte all had arrived, and when."""

    def take(self, time: int, kept: bytes, size: int) -> None:
        """Takes the next bytes, of which the capture may lack the last."""
        self._clock = max(self._clock, time)
        there = len(kept)
        rest = self._within_partial(size)
        if self.given_up or rest == 0:
            return
        kept = kept[size - rest :]
        self.kept += kept
        self._end += len(kept)
        self._times.append((self._end, self._clock))
        self._read(last=False)
        if size > there:
            self._lack(min(rest, size - there), counts=False)

    def skip(self, size: int) -> None:
        """Passes over bytes that the capture lacks."""
        rest = self._within_partial(size)
        if self.given_up:
            return
        self.holes += 1
        if rest:
            self._lack(rest, counts=True)

    def end(self) -> None:
        """No more bytes follow, or those held are given up."""
        self._read(last=True)
        self._synced, self._after_hole, self._partial = False, True, None
        self._forget()

    def _within_partial(self, size: int) -> int:
        """Passes over bytes of the packet that has a hole; returns how many follow it."""
        if self._partial is None:
            return size
        whole, kept, missing = self._partial
        self._partial = (whole, kept, missing - size) if size < missing else None
        if self._partial is None:
            self._find(self._clock, whole, kept)
        return max(0, size - missing)

    def _lack(self, size: int, *, counts: bool) -> None:
        """Passes over bytes that the capture lacks: a packet whose end is known is as long as it is."""
        self._read(last=True)
        frame = self._framing(self.kept, 0) if self._synced and self._framing is not None else None
        missing = frame.total - len(self.kept) if frame is not None and frame.total else -1
        if frame is not None and missing > 0:
            found = content(self.kept, 0, frame)
            self._note(found)
            whole = 0 if found == MORE else frame.size
            packet = bytes(self.kept[frame.head : frame.head + frame.size])
            if size < missing:
                self._partial = (whole, packet, missing - size)
            else:
                self._find(self._clock, whole, packet)
        if size > missing:
            self._synced, self._from_start, self._after_hole = False, False, True
            self.holes += not counts
        self._forget()

    def _note(self, found: int) -> None:
        """Remembers the SSRC of a packet."""
        if found >= 0 and len(self._ssrcs) < _MAX_SSRCS:
            self._ssrcs.add(found)

    def _find(self, time: int, size: int, kept: bytes) -> None:
        if size:
            self.found.append((time, size, kept))
            self.count += 1

    def _drop(self, count: int) -> None:
        """Removes the first bytes."""
        del self.kept[:count]
        self._after_hole &= count == 0

    def _read(self, *, last: bool) -> None:
        """Reads the packets that are complete; `last`: what follows is not known."""
        while not self.given_up and (self._synced or self._search(last=last)):
            frame = self._framing(self.kept, 0) if self._framing is not None else None
            found = NONE if frame is None else MORE if frame.total == 0 else content(self.kept, 0, frame)
            if frame is None or found == NONE:
                self.holes += 1
                self._synced = False
                self._drop(1)
                continue
            if found == MORE or len(self.kept) < frame.total:
                return
            self._note(found)
            end = self._end - len(self.kept) + frame.total
            while self._times[0][0] < end:
                self._times.popleft()
            self._find(self._times[0][1], frame.size, bytes(self.kept[frame.head : frame.head + frame.size]))
            self._drop(frame.total)

    def _search(self, *, last: bool) -> bool:
        """Looks for the first packet, and removes what is before it. Returns whether there is one."""
        at = 0
        while at < len(self.kept):
            begins = self._begins(at)
            if begins:
                self._drop(at)
                self._synced, self._from_start = True, False
                return True
            if begins is None and not last and len(self.kept) - at < _UNDECIDED:
                break
            if self._from_start or self._budget.left == 0 or self._searched == MAX_SEARCHED:
                self.given_up = True
                self._forget()
                return False
            if self._after_hole and at == 0:
                self._begun |= self._first()
            at += 1
            self._budget.left -= 1
            self._searched += self._framing is None
        self._drop(at)
        return False

    def _begins(self, at: int) -> bool | None:
        """Whether packets begin at an offset; None if more bytes are needed to say."""
        framings = FRAMINGS if self._framing is None else (self._framing,)
        said = [self._is_chain(framing, at) for framing in framings]
        if True in said:
            self._framing = framings[said.index(True)]
            return True
        return None if None in said else False

    def _is_chain(self, framing: Framing, at: int) -> bool | None:
        """Whether packets follow one another from an offset on: at the start of a connection one is enough, else two
        with an SSRC, one with a known SSRC, or what cannot be by chance."""
        seen: set[int] = set()
        behind_hole = self._after_hole and at == 0
        for _ in range(_CHAIN):
            frame = framing(self.kept, at)
            if frame is None:
                return False
            found = MORE if frame.total == 0 else content(self.kept, at, frame)
            if found in (NONE, MORE):
                return False if found == NONE else None
            is_known = found in self._ssrcs or found in seen
            if is_known or found == PROOF or (behind_hole and (framing, found) in self._begun):
                return True
            if frame.size and self._from_start:
                return True
            if found == WEAK and not seen and not self._from_start:
                return False
            seen.add(found)
            at += frame.total
        return False

    def _first(self) -> set[tuple[Framing, int]]:
        """The SSRCs of what may be packets at the first byte."""
        frames: list[tuple[Framing, Frame | None]] = [
            (framing, framing(self.kept, 0)) for framing in FRAMINGS
        ]
        found = {
            (framing, content(self.kept, 0, frame))
            for framing, frame in frames
            if frame is not None and frame.total
        }
        return {one for one in found if one[1] >= 0} if len(self._begun) < _MAX_SSRCS else set()
