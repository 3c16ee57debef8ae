"""A reader of captures, and measures of docs/measures.md made of what it reads.

It shares no code with the program: of a run it is given the file, and what a reader of the scenario knows (rates,
delays, when it stops).
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

DURATION = 12.0
ACCESS = 1e9
"""Rate of hosts' own links, bit/s."""


@dataclass(frozen=True)
class Frame:
    """A packet at a host."""

    at: int
    """Nanoseconds since the run began."""
    host: str
    out: bool
    """It leaves the host, or else reaches it."""
    ip: bytes
    size: int
    """IPv4 header included; `ip` is cut short."""

    @property
    def seconds(self) -> float:
        return self.at * 1e-9

    @property
    def marked(self) -> bool:
        return self.ip[1] & 3 == 3

    @property
    def above(self) -> bytes:
        """What follows the IPv4 header."""
        return self.ip[20:]

    @property
    def ports(self) -> tuple[int, int]:
        return struct.unpack_from(">HH", self.above)


def read(path: Path) -> list[Frame]:
    """The packets of a pcapng file with a name for each interface, nanoseconds and Linux's cooked header."""
    raw, at, hosts, found = path.read_bytes(), 0, [], []
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        body = raw[at + 8 : at + length - 4]
        if kind == 1:
            hosts.append(_name(body[8:]))
        if kind == 6:
            interface, high, low, kept, whole = struct.unpack_from("<5I", body)
            packet = body[20 : 20 + kept]
            found.append(Frame(high << 32 | low, hosts[interface], packet[1] == 4, packet[16:], whole - 16))
        at += length
    return found


def _name(options: bytes) -> str:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 2:
            return options[at + 4 : at + 4 + length].decode()
        at += 4 + -(-length // 4) * 4
    raise AssertionError("an interface without a name")


@dataclass(frozen=True)
class Ends:
    """What passes the two ends of a flow, in order of time."""

    sent: list[Frame]
    received: list[Frame]
    answers_sent: list[Frame]
    """What leaves the receiver."""
    answers_received: list[Frame]
    """What of it reaches the sender."""

    @classmethod
    def of(cls, frames: Sequence[Frame], flow: str) -> Ends:
        source, sink = f"{flow}[0].source", f"{flow}[0].sink"
        sides = [(source, True), (sink, False), (sink, True), (source, False)]
        return cls(*([f for f in frames if (f.host, f.out) == side] for side in sides))


@dataclass(frozen=True)
class Span:
    """The time that a flow counts for."""

    start: float = 0.0
    stop: float = math.inf
    warmup: float = 0.0

    def of(self, frames: Iterable[Frame]) -> list[Frame]:
        return [f for f in frames if self.warmup <= f.seconds]

    def rate(self, size: int, last: Frame) -> float:
        until = min(max(self.stop, last.seconds), DURATION)
        return size * 8 / (until - max(self.start, self.warmup))


def counted(ends: Ends, span: Span, wire: Callable[[Frame], int], min_size: int = 0) -> dict[str, float]:
    """Of any flow whose packets have all come, or are lost; smaller ones than `min_size` carry no data."""
    sent, received = span.of(ends.sent), span.of(ends.received)
    last = [f for f in received if f.size >= min_size][-1]
    found = {
        "packets_sent": len(sent),
        "packets_delivered": len(received),
        "receiving_ratio": len(received) / len(sent),
        "ecn_marks": sum(f.marked for f in received),
        "throughput_bps": span.rate(sum(map(wire, received)), last),
        "send_rate_bps": span.rate(sum(map(wire, sent)), last),
    }
    if span.warmup == 0:
        lost = len(sent) - len(received)
        found |= {"packets_lost": lost, "loss_rate": lost / len(sent)}
        found["acks_lost"] = len(ends.answers_sent) - len(ends.answers_received)
    return found


def arrivals(ends: Ends, span: Span, under_way: Sequence[float]) -> dict[str, float]:
    """One-way delays of the packets that came, their distances and RFC 3550's jitter."""
    times = [f.seconds for f in ends.received]
    first = bisect.bisect_left(times, span.warmup)
    gaps = [b - a for a, b in itertools.pairwise(times)][max(first - 1, 0) :]
    silence = max(min(span.stop, DURATION) - times[-1], 0.0)
    j, jitters = 0.0, []
    for k, (before, after) in enumerate(itertools.pairwise(under_way), 1):
        j += (abs(after - before) - j) / 16
        if k >= first:
            jitters.append(j)
    delays = under_way[first:]
    found = {
        "owd_mean_s": statistics.fmean(delays),
        "owd_min_s": min(delays),
        "owd_max_s": max(delays),
        "interarrival_mean_s": statistics.fmean(gaps),
        "interarrival_sd_s": statistics.pstdev(gaps),
        "interarrival_p99_s": percentile(gaps, 0.99),
        "interarrival_max_s": max(*gaps, silence),
        "jitter_s": statistics.fmean(jitters),
    }
    return found | {f"owd_p{p}_s": percentile(delays, p / 100) for p in (50, 95, 99)}


def percentile(values: Sequence[float], q: float) -> float:
    """The least that such a share does not exceed."""
    return sorted(values)[max(math.ceil(q * len(values)), 1) - 1]


# ---- TCP


@dataclass(frozen=True)
class Segment:
    frame: Frame
    port: int
    """The sender's, which tells its connections apart."""
    seq: int
    ack: int
    syn: bool
    payload: int
    value: int
    """Time stamp and its echo, in units of 256 ns; 0 without the option."""
    echo: int


def segment(frame: Frame) -> Segment:
    head = frame.above
    source, to, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", head)
    length = (offset >> 4) * 4
    value = echo = 0
    at = 20
    while at < length:
        code = head[at]
        if code == 8:
            value, echo = struct.unpack_from(">II", head, at + 2)
        at += 1 if code in (0, 1) else head[at + 1]
    port = source if to == 5001 else to
    return Segment(frame, port, seq, ack, bool(flags & 2), frame.size - 20 - length, value, echo)


def tcp(ends: Ends, span: Span, header: int) -> dict[str, float]:
    """Counts of segments, what is sent again, and goodput in order."""

    def wire(frame: Frame) -> int:
        # a SYN's options are in the file alone
        return header if segment(frame).syn else frame.size

    found = counted(ends, span, wire)
    seen: set[tuple[int, int]] = set()
    again = 0
    for s in map(segment, ends.sent):
        again += (s.port, s.seq) in seen and s.frame.seconds >= span.warmup
        seen.add((s.port, s.seq))
    found["packets_retransmitted"] = again
    delivered, last = 0, ends.received[-1]
    following: dict[int, int] = {}
    early: dict[int, dict[int, int]] = defaultdict(dict)
    for s in map(segment, ends.received):
        if s.syn:
            following[s.port] = s.seq + 1
            continue
        at = following[s.port]
        if (s.seq - at) % 2**32 < 2**31:
            early[s.port][s.seq] = s.payload
        while at in early[s.port]:
            payload = early[s.port].pop(at)
            at = (at + payload) % 2**32
            delivered += payload if s.frame.seconds >= span.warmup else 0
        following[s.port] = at
    return found | {"bytes_delivered": delivered, "goodput_bps": span.rate(delivered, last)}


def round_trips(ends: Ends) -> dict[str, float]:
    """Of each acknowledgement of new data, from the time stamp that it echoes to its arrival."""
    highest, times = None, []
    for s in map(segment, ends.answers_received):
        if highest is None:
            highest = s.ack if s.syn or s.ack else None
            times.append(s.frame.seconds - s.echo * 256e-9)
        elif 0 < (s.ack - highest) % 2**32 < 2**31:
            highest = s.ack
            times.append(s.frame.seconds - s.echo * 256e-9)
    found = {"rtt_mean_s": statistics.fmean(times), "rtt_min_s": min(times), "rtt_max_s": max(times)}
    return found | {f"rtt_p{p}_s": percentile(times, p / 100) for p in (50, 95, 99)}


def data(ends: Ends) -> Ends:
    """Without SYNs, whose delays are not measured."""
    return replace(
        ends, **{way: [f for f in getattr(ends, way) if not segment(f).syn] for way in ("sent", "received")}
    )


def transits(ends: Ends) -> list[float]:
    """How long each packet that came was under way."""
    return [(received.at - sent.at) * 1e-9 for sent, received in pair(ends) if received is not None]


# ---- RTP


@dataclass(frozen=True)
class Rtp:
    frame: Frame
    kind: int
    last: bool
    """The marker: the end of a picture."""
    sequence: int
    """Of what is sent again the original's."""
    stamp: int
    again: bool
    payload: int


def rtp(frame: Frame) -> Rtp | None:
    """The RTP packet in a datagram to port 5004."""
    if frame.ports[1] != 5004:
        return None
    data = frame.above[8:]
    kind, sequence, stamp = data[1] & 127, *struct.unpack_from(">HI", data, 2)
    length = 12
    if data[0] & 16:
        length += 4 + 4 * struct.unpack_from(">H", data, 14)[0]
    again = kind in (98, 100)
    if again:
        (sequence,) = struct.unpack_from(">H", data, length)
        length += 2
    return Rtp(frame, kind, bool(data[1] & 128), sequence, stamp, again, frame.size - 28 - length)


FILLER = 97
CLOCK = 90_000


def requests(ends: Ends) -> dict[str, float]:
    """Packets asked for again, and pictures, in RTCP of types 205 and 206 (RFC 4585)."""
    found: dict[str, float] = {"nacks": 0, "plis": 0}
    for frame in ends.answers_sent:
        data = frame.above[8:]
        while len(data) >= 4:
            length = 4 + 4 * struct.unpack_from(">H", data, 2)[0]
            form, kind = data[0] & 31, data[1]
            if (form, kind) == (1, 205):
                for at in range(12, length, 4):
                    found["nacks"] += 1 + struct.unpack_from(">H", data, at + 2)[0].bit_count()
            found["plis"] += (form, kind) == (1, 206)
            data = data[length:]
    return found


class Viewer:
    """What a receiver can know of frames, of packets that are numbered one by one: a frame is whole when all from its
    beginning to its marker have come. It begins after a packet of another frame, or after one missing packet that
    follows an unfinished one of another frame, whose end it must be."""

    def __init__(self) -> None:
        self.received: dict[int, Rtp] = {}
        self.open: dict[int, int] = {}
        """The number of a marker by its frame's time stamp."""
        self.whole: list[tuple[float, int]] = []

    def packet(self, p: Rtp) -> None:
        if p.sequence in self.received:
            return
        self.received[p.sequence] = p
        if p.last:
            self.open[p.stamp] = p.sequence
        for stamp in [stamp for stamp, last in self.open.items() if self._is_whole(last)]:
            del self.open[stamp]
            self.whole.append((p.frame.seconds, stamp))

    def _is_whole(self, last: int) -> bool:
        at, stamp = last, self.received[last].stamp
        while (before := self.received.get(at - 1)) is not None and before.stamp == stamp:
            at -= 1
        if before is not None or at == min(self.received):
            return True
        earlier = self.received.get(at - 2)
        return earlier is not None and earlier.stamp != stamp and not earlier.last


def captured(sent: list[Rtp]) -> float:
    """When the time stamp 0 was: the first frame is captured when its first packet leaves."""
    return sent[0].frame.seconds - sent[0].stamp / CLOCK


def pictures(sent: list[Rtp], received: list[Rtp], zero: float) -> dict[str, float]:
    """Frames, their delays from the capture until it is certain that they are whole, and freezes."""
    viewer = Viewer()
    for p in received:
        viewer.packet(p)
    frames, whole = len({p.stamp for p in sent}), viewer.whole
    delays = [at - (stamp / CLOCK + zero) for at, stamp in whole]
    found: dict[str, float] = {
        "frames_sent": frames,
        "frames_complete": len(whole),
        "complete_share": len(whole) / frames,
        "frame_delay_mean_s": statistics.fmean(delays),
        "frame_delay_max_s": max(delays),
    }
    found |= {f"frame_delay_p{p}_s": percentile(delays, p / 100) for p in (50, 95, 99)}
    return found | freezes(whole)


def freezes(whole: list[tuple[float, int]]) -> dict[str, float]:
    """Frames that stay for max(3 d, d + 150 ms) or more, d the mean of the 30 before; an overtaken one is not shown."""
    shown, newest = [], -1
    for at, stamp in whole:
        if stamp > newest:
            shown.append(at)
            newest = stamp
    lasted = [b - a for a, b in itertools.pairwise(shown)]
    count, total = 0, 0.0
    for k, length in enumerate(lasted):
        before = lasted[max(0, k - 30) : k]
        if before:
            d = statistics.fmean(before)
            if length >= max(3 * d, d + 0.15):
                count, total = count + 1, total + length
    return {"freezes": count, "freeze_s": total}


def media(ends: Ends, span: Span) -> dict[str, float]:
    """Of a flow over RTP with pictures."""
    found = counted(ends, span, lambda frame: frame.size)
    sent = [p for p in map(rtp, ends.sent) if p is not None and p.kind != FILLER]
    received = [p for p in map(rtp, ends.received) if p is not None and p.kind != FILLER]
    found["packets_retransmitted"] = sum(p.again for p in sent)
    seen: set[tuple[int, int]] = set()
    delivered = 0
    for p in received:
        delivered += p.payload if (p.stamp, p.sequence) not in seen else 0
        seen.add((p.stamp, p.sequence))
    back, forth = (sum(f.size for f in side) for side in (ends.answers_sent, ends.received))
    found["feedback_share"] = back / (back + forth)
    found |= {"bytes_delivered": delivered, "goodput_bps": span.rate(delivered, ends.received[-1])}
    zero = captured(sent)
    packets = [p for p in map(rtp, ends.received) if p is not None]
    under_way = [p.frame.seconds - zero - p.stamp / CLOCK for p in packets]
    ends = replace(ends, received=[p.frame for p in packets])
    return found | requests(ends) | pictures(sent, received, zero) | arrivals(ends, span, under_way)


def transfers(ends: Ends) -> dict[str, float]:
    """Of transfers that have a connection each: from its SYN to the acknowledgement of its last byte."""
    began: dict[int, float] = {}
    last: dict[int, int] = {}
    done: dict[int, float] = {}
    for s in map(segment, ends.sent):
        began.setdefault(s.port, s.frame.seconds)
        last[s.port] = max(last.get(s.port, 0), s.seq + s.payload)
    for s in map(segment, ends.answers_received):
        if s.ack >= last[s.port]:
            done.setdefault(s.port, s.frame.seconds)
    times = [at - began[port] for port, at in done.items()]
    found: dict[str, float] = {
        "transfers_started": len(began),
        "transfers_completed": len(times),
        "transfer_time_mean_s": statistics.fmean(times),
    }
    percents = [(p, min_times) for p, min_times in ((50, 2), (95, 20), (99, 100)) if len(times) >= min_times]
    return found | {f"transfer_time_p{p}_s": percentile(times, p / 100) for p, _ in percents}


# ---- links


def queue(flows: Sequence[Ends], rate: float, delay: float, header: int) -> dict[str, float]:
    """A drop-tail queue or RED's, which drop what comes, in front of a link that loses nothing: what waits from its
    coming until the link takes it, which is known of each packet that got across."""
    changes: list[tuple[float, int, int]] = []
    departed = size = drops = marks = 0
    for ends in flows:
        left = 0.0
        for sent, received in pair(ends):
            wire = header if segment(sent).syn else sent.size
            own = wire * 8 / ACCESS
            # a burst waits at its host's own link
            left = max(left, sent.seconds) + own
            if received is None:
                drops += 1
                continue
            across = received.seconds - own - delay - wire * 8 / rate
            changes += [(left, 1, wire), (across, -1, -wire)]
            departed, size, marks = departed + 1, size + wire, marks + received.marked
    changes.sort(key=lambda change: (change[0], change[1]))
    n = area = square = content = before = held = 0.0
    for at, step, weight in changes:
        area, square = area + n * (at - before), square + n * n * (at - before)
        content += held * (at - before)
        n, held, before = n + step, held + weight, at
    mean = area / DURATION
    return {
        "arrivals": departed + drops,
        "departures": departed,
        "departed_bytes": size,
        "drops": drops,
        "marks": marks,
        "utilisation": size * 8 / rate / DURATION,
        "mean_packets": mean,
        "sd_packets": math.sqrt(square / DURATION - mean * mean),
        "mean_bytes": content / DURATION,
    }


def pair(ends: Ends) -> list[tuple[Frame, Frame | None]]:
    """Each packet that was sent, and how it came, or None. Packets keep their order; bytes tell them apart."""

    def key(frame: Frame) -> bytes:
        # not the field that a mark changes, nor the checksum over it
        return frame.ip[2:10] + frame.ip[12:]

    pairs: list[tuple[Frame, Frame | None]] = []
    coming = iter(ends.received)
    received = next(coming, None)
    for sent in ends.sent:
        if received is not None and key(sent) == key(received):
            pairs.append((sent, received))
            received = next(coming, None)
        else:
            pairs.append((sent, None))
    assert received is None, "what came was sent"
    return pairs
