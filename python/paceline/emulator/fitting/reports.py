"""Fits networks to the reports of measuring programs: ping's text, the JSON of iperf3 and irtt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paceline.emulator.fitting.measurements import MAX_BPS, Measured, entries, number, of_windows
from paceline.errors import PacelineError

LONGEST_S = 60.0
HEADERS = 52
"""Header bytes per segment that iperf3 does not count: IPv4, TCP, time stamps."""
DATAGRAM_HEADERS = 28
COARSE_BPS = 10 * 8 * 131_072
"""Below this rate a sender's intervals do not measure the rate, since it counts what the socket took, 128 KiB at a
time."""

_COUNTS = re.compile(r"^(\d{1,12}) packets transmitted, (\d{1,12}) (?:packets )?received", re.MULTILINE)
_TIMES = re.compile(
    # BusyBox prints three numbers.
    r"^(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev))? = ([\d.]{1,20})/([\d.]{1,20})/([\d.]{1,20})[/ ]",
    re.MULTILINE,
)


def of_ping(text: str) -> Measured:
    """Fits the output of `ping`, of one run or several. Raises PacelineError."""
    sent = sum(int(count) for count, _ in _COUNTS.findall(text))
    received = sum(int(count) for _, count in _COUNTS.findall(text))
    if not 0 < received <= sent:
        raise PacelineError("none of its pings was answered, or more answers than pings were counted")
    try:
        times = [[float(word) / 1e3 for word in words] for words in _TIMES.findall(text)]
    except ValueError:
        raise PacelineError("its line `rtt min/avg/max/mdev` has something else than numbers") from None
    if not times:
        raise PacelineError("its line `rtt min/avg/max/mdev` is missing: the ping was cut off")
    min_rtt_s, max_rtt_s = min(row[0] for row in times), max(row[2] for row in times)
    if not 0 <= min_rtt_s <= max_rtt_s <= LONGEST_S:
        raise PacelineError(f"round trips from {min_rtt_s * 1e3:g} to {max_rtt_s * 1e3:g} ms are impossible")
    found = Measured(
        f"ping, {sent} sent and {received} answered", rtt_min_s=min_rtt_s, loss=1 - received / sent
    )
    mean = sum(row[1] for row in times) / len(times)
    found.notes.append(
        f"Round trips took {min_rtt_s * 1e3:.4g} ms at least, {mean * 1e3:.4g} ms in the mean, "
        f"{max_rtt_s * 1e3:.4g} ms at most."
    )
    if found.loss:
        found.notes.append("On which way a ping was lost cannot be told: all count as lost forward.")
    return found


def of_iperf3(document: Mapping[str, Any]) -> Measured:
    """Fits the output of `iperf3 -J`. Raises PacelineError."""
    error = document.get("error")
    if isinstance(error, str):
        raise PacelineError(f"the measurement failed: {error[:200]}")
    udp = number(document, "end", "sum", "lost_percent", low=0, high=100) is not None
    return _datagrams(document) if udp else _tcp(document)


def _tcp(document: Mapping[str, Any]) -> Measured:
    received = number(document, "end", "sum_received", "bits_per_second", low=0, high=MAX_BPS)
    if not received:
        raise PacelineError("end.sum_received.bits_per_second is missing or 0: nothing arrived")
    mss = number(document, "start", "tcp_mss_default", low=1, high=65535) or 1448
    wire = (mss + HEADERS) / mss
    found = Measured("iperf3 over TCP")
    rates = []
    for interval in entries(document, "intervals"):
        if interval.get("sum", {}) and not _omitted(interval):
            start = number(interval, "sum", "start", low=0, high=1e9)
            rate = number(interval, "sum", "bits_per_second", low=0, high=MAX_BPS)
            if start is not None and rate is not None:
                rates.append((start, rate * wire))
    rates.sort()
    backward = number(document, "start", "test_start", "reverse", low=0, high=1) == 1
    if rates and (backward or received > COARSE_BPS):
        of_windows([(start - rates[0][0], rate) for start, rate in rates], found)
    # The bytes received over the whole time are exact; intervals count what a socket took.
    found.rate_bps = received * wire
    found.notes.append("The rate is that of all of the time; what slow start left unused is missing in it.")
    streams = [
        stream["sender"]
        for stream in entries(document, "end", "streams")
        if isinstance(stream.get("sender"), Mapping)
    ]
    min_rtts_us = [value for s in streams if (value := number(s, "min_rtt", low=0, high=LONGEST_S * 1e6))]
    max_rtts_us = [value for s in streams if (value := number(s, "max_rtt", low=0, high=LONGEST_S * 1e6))]
    if min_rtts_us and max_rtts_us and max(max_rtts_us) >= min(min_rtts_us):
        found.rtt_min_s, found.rtt_max_s = min(min_rtts_us) / 1e6, max(max_rtts_us) / 1e6
        found.notes.append(
            "Round trips are those that the kernel smoothed: the shortest may be longer than the path's."
        )
    again = number(document, "end", "sum_sent", "retransmits", low=0, high=1e12)
    if again is not None:
        found.notes.append(
            f"{again:.0f} segments were sent again; they are taken for a full queue's, not in `loss`."
        )
    return found


def _omitted(interval: Mapping[str, Any]) -> bool:
    whole = interval.get("sum")
    return not isinstance(whole, Mapping) or whole.get("omitted") is True


OVERFLOW = 0.05
"""A share of lost datagrams above which the sender exceeded the link's rate."""


def _datagrams(document: Mapping[str, Any]) -> Measured:
    rate = number(document, "end", "sum", "bits_per_second", low=0, high=MAX_BPS)
    lost = (number(document, "end", "sum", "lost_percent", low=0, high=100) or 0) / 100
    if not rate or lost >= 1:
        raise PacelineError("no datagram arrived, or none was sent")
    size = number(document, "start", "test_start", "blksize", low=1, high=65507) or 1460
    rate *= (size + DATAGRAM_HEADERS) / size
    arrived = number(document, "end", "sum_received", "bits_per_second", low=0, high=MAX_BPS)
    # Newer versions report what arrived; in older ones `sum` is what was sent.
    carried = rate * (1 - lost) if arrived is None else min(rate, arrived * (size + DATAGRAM_HEADERS) / size)
    found = Measured("iperf3 over UDP", min_rate_bps=carried)
    jitter = number(document, "end", "sum", "jitter_ms", low=0, high=LONGEST_S * 1e3)
    if jitter is not None:
        found.notes.append(
            f"Jitter (RFC 3550): {jitter:.3g} ms; it is not in this path (`delay_variation` would make some)."
        )
    if lost >= OVERFLOW:
        found.rate_bps = carried
        found.notes.append(
            f"{lost:.1%} of the datagrams were lost: more was sent than the link carries, whose rate is what arrived."
        )
    else:
        found.loss = lost
    return found


def of_irtt(document: Mapping[str, Any]) -> Measured:
    """Fits the output of `irtt client -o`. Raises PacelineError."""
    min_rtt_ns = number(document, "stats", "rtt", "min", low=0, high=LONGEST_S * 1e9)
    if not min_rtt_ns:
        raise PacelineError("stats.rtt.min is missing: no probe was answered")
    found = Measured("irtt", rtt_min_s=min_rtt_ns / 1e9)
    # Clocks that differ by more than the delay give negative times.
    ways = [
        number(document, "stats", f"{way}_delay", "min", low=-1e19, high=1e19) for way in ("send", "receive")
    ]
    if all(way is not None and 0 < way <= LONGEST_S * 1e9 for way in ways):
        found.delays_s = (float(ways[0] or 0) / 1e9, float(ways[1] or 0) / 1e9)
        found.notes.append(
            "The delays of both ways hold if both hosts' clocks were right to a fraction of them."
        )
    elif any(way is not None for way in ways):
        found.notes.append("The hosts' clocks differ by more than the delay: one-way delays are of no use.")
    whole = number(document, "stats", "packet_loss_percent", low=0, high=100)
    there = number(document, "stats", "upstream_loss_percent", low=0, high=100)
    back = number(document, "stats", "downstream_loss_percent", low=0, high=100)
    if there is not None and back is not None:
        found.loss, found.loss_back = there / 100, back / 100
    elif whole is not None:
        found.loss = whole / 100
        found.notes.append("On which way a probe was lost cannot be told: all count as lost forward.")
    return found
