"""NADA (RFC 8698) in Python, beside the built-in `nada`: for media on RTP, by the arrival of each packet.

    cc = "python:examples/controllers/nada_twin.py:NadaTwin"

Equation numbers are the RFC's, and capital names those of its Table 2.
"""

import math
from collections import deque
from dataclasses import dataclass

import paceline
from paceline import events, parameter

QEPS, QBOUND, QTH, DFILT = 0.010, 0.050, 0.050, 0.120
GAMMA_MAX, LAMBDA, MULTILOSS, ALPHA, FPS, BETA = 0.5, 0.5, 7.0, 0.1, 30.0, 0.1
DLOSS, PLRREF, DMARK, PMRREF, LOGWIN = 0.010, 0.01, 0.002, 0.01, 0.5
WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)  # RFC 5348, 5.4
TAPS = 15
MAX_SHAPING = 0.05


@dataclass
class NadaTwin(paceline.MediaController):
    """NADA: one signal of queueing delay, losses and marks"""

    source = "RFC 8698"
    silence = 10
    gauges = {"signal": "s", "queueing": "s", "reported_loss": ""}

    min_rate: float = parameter(150e3, 1e3, 1e11, unit="bit/s", doc="RMIN")
    max_rate: float = parameter(1.5e6, 1e3, 1e11, unit="bit/s", doc="RMAX")
    priority: float = parameter(1.0, 1e-3, 1e3, doc="PRIO")
    x_ref: float = parameter(0.010, 1e-4, 1.0, unit="s", doc="XREF")
    kappa: float = parameter(0.5, 1e-3, 10.0, doc="KAPPA")
    eta: float = parameter(2.0, 0.0, 100.0, doc="ETA")
    tau: float = parameter(0.5, 0.01, 10.0, unit="s", doc="TAU")
    x_max: float = parameter(0.5, 0.01, 1e3, unit="s", doc="the signal at most")

    def __post_init__(self):
        self.seen = deque()  # (reported_at, bits, lost, marked, delay) of the packets within LOGWIN
        self.closed = deque(maxlen=len(WEIGHTS))  # loss intervals in packets, the last one first
        self.running, self.event, self.base = 0.0, None, None
        self.rtt = self.mark = self.backlog = self.began = 0.0
        self.reported_loss = self.signal = self.queueing = None
        self.last_signal = 0.0
        self.interval = 0.1
        self.reference = self.min_rate

    def on_feedback(self, event, path):
        match event:
            case events.SessionStarted():
                self.began, self.interval = path.now_s, event.report_interval_s
            case events.Arrivals():
                self.arrived(event, path.now_s)
            case events.Silence():
                self.reference = self.bounded(self.reference / 2)
        self.decide()

    def decide(self):
        """What the buffer at the sender makes of the reference rate (5.2)."""
        drained = min(BETA * 8 * self.backlog * FPS, MAX_SHAPING * self.reference)
        self.rate_bps = min(self.reference + drained, self.max_rate)
        self.target_bps = max(self.reference - drained, self.min_rate)

    def bounded(self, rate):
        return max(min(rate, self.max_rate), self.min_rate)

    def arrived(self, arrivals, now):
        """Section 4.3: what the sender does when feedback comes."""
        if arrivals.rtt_s is not None:
            self.rtt = arrivals.rtt_s
        self.backlog = arrivals.backlog_bytes
        for packet in arrivals.packets:
            self.packet(packet, now)
        while self.seen and now - self.seen[0][0] >= LOGWIN:
            self.seen.popleft()
        lost = sum(one[2] for one in self.seen)
        marked = sum(one[3] for one in self.seen)
        loss = lost / max(len(self.seen), 1)
        self.reported_loss = (self.reported_loss or 0.0) + ALPHA * (loss - (self.reported_loss or 0.0))
        self.mark += ALPHA * (marked / max(len(self.seen) - lost, 1) - self.mark)
        delays = [one[4] for one in self.seen if one[4] is not None]
        if not delays:
            return
        self.queueing = min(delays[-TAPS:]) - self.base
        before = self.last_signal
        self.signal = self.last_signal = min(self.aggregate(self.queueing), self.x_max)
        if loss == 0 and max(delays) - self.base < QEPS:
            rate = self.accelerated(now)
        else:
            rate = self.gradual(arrivals.since_s, before)
        self.reference = self.bounded(rate)

    def packet(self, packet, now):
        if packet.arrived:
            delay = None if packet.arrived_s is None else packet.arrived_s - packet.sent_s
            if delay is not None:
                self.base = delay if self.base is None else min(self.base, delay)
            self.running += 1
            self.seen.append((now, packet.size * 8, False, packet.marked, delay))
        elif packet.lost:
            # losses within a round-trip time of the first are one event (RFC 5348, 5.2)
            if self.event is not None and packet.sent_s - self.event <= self.rtt:
                self.running += 1
            else:
                self.event = packet.sent_s
                self.closed.appendleft(max(self.running, 1.0))
                self.running = 1.0
            self.seen.append((now, packet.size * 8, True, False, None))

    def aggregate(self, queueing):
        """Equations 1 and 2; after losses long delays are warped, for some loss intervals."""
        warped = 0.0
        if self.closed:
            weights = WEIGHTS[: len(self.closed)]
            mean = sum(i * w for i, w in zip(self.closed, weights, strict=True)) / sum(weights)
            warped = min(max(MULTILOSS + 1 - self.running / mean, 0.0), 1.0)
        warp = queueing if queueing < QTH else QTH * math.exp(-LAMBDA * (queueing - QTH) / QTH)
        mark, loss = self.mark / PMRREF, self.reported_loss / PLRREF
        return warped * warp + (1 - warped) * queueing + DMARK * mark * mark + DLOSS * loss * loss

    def accelerated(self, now):
        """Equations 3 and 4."""
        young = min(now - self.began, LOGWIN)
        received = sum(one[1] for one in self.seen if not one[2]) / young if young > 0 else 0.0
        gamma = min(QBOUND / (self.rtt + self.interval + DFILT), GAMMA_MAX)
        return max(self.reference, (1 + gamma) * received)

    def gradual(self, since, before):
        """Equations 5 to 7."""
        offset = self.signal - self.priority * self.x_ref * self.max_rate / self.reference
        change = self.signal - before
        down = self.kappa * (since / self.tau * (offset / self.tau) + self.eta * (change / self.tau))
        return self.reference - down * self.reference
