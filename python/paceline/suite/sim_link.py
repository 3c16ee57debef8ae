"""The link of a picoquic simulator specification: phases in sequence, repeated.

Source: private-octopus/picoquic, `picohttp/picoquic_ns.c` (the named scenarios, and what a phase changes) and
`picoquictest/sim_link.c` (what a link does with a packet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from paceline.studies.study import Settings
from paceline.suite.sim_entries import MINUTE_US, Entries, rate_of

MAX_STEPS, MAX_IN_BURST = 1000, 1_000_000
_FOR_EVER = 10**18
_SUSPENDED = "1 bit/s"
"""Picoquic suspends a link at rate 0."""
_LINK, _BACKWARD = "link.bottleneck", "link.bottleneck.backward"


@dataclass(frozen=True)
class Phase:
    """The state of a link for a time, the same both ways except for the rates; times in microseconds."""

    us: int
    up_gbps: float
    down_gbps: float
    latency_us: int
    queue_us: int
    jitter_us: int
    wifi: bool
    lost: int = 0
    """Packets in a burst of losses; `between` + 1 packets pass before each burst."""
    between: int = 0


def rate_down(entries: Entries) -> float:
    """Rate towards the client, in Gbit/s; 0.01 by default."""
    return entries.rate("data_rate_in_gbps") or 0.01


def settings(entries: Entries, horizon_us: int, why: list[str]) -> Settings:
    """The scenario settings of the link, up to an instant; appends to `why` what cannot be modelled. Raises
    SuiteError."""
    phases = _phases(entries, why)
    if any(phase.latency_us == 0 for phase in phases):
        why.append("latency: 0 or missing; a path without delay is not supported")
    if entries.whole("l4s_max", 0, MINUTE_US) > 0:
        why.append("l4s_max: picoquic's DualPI2 differs from that of RFC 9332")
    course = _Course(entries, phases, horizon_us)
    made: Settings = (
        (f"{_LINK}.delay_schedule", course.said("delay", lambda p: f'"{p.latency_us} us"')),
        (f"{_LINK}.rate_schedule", course.said("rate", lambda p: _rate(p.down_gbps))),
        *_queue(_LINK, course, lambda p: p.down_gbps),
    )
    if any(phase.up_gbps != phase.down_gbps for phase in phases):
        made += (
            (f"{_BACKWARD}.rate_schedule", course.said("rate", lambda p: _rate(p.up_gbps))),
            *_queue(_BACKWARD, course, lambda p: p.up_gbps),
        )
    return made + _jitter(course, why) + _losses(course, why)


def latency_us(entries: Entries, at_us: int) -> int:
    """The path's latency at an instant. Raises SuiteError."""
    course = _Course(entries, _phases(entries, []), at_us + 1)
    return [phase.latency_us for _, phase in course.all()][-1]


@dataclass(frozen=True)
class _Course:
    """The phases in sequence, up to a horizon."""

    entries: Entries
    phases: list[Phase]
    horizon_us: int

    def all(self) -> Iterable[tuple[int, Phase]]:
        at_us = i = 0
        while at_us < self.horizon_us:
            phase = self.phases[i % len(self.phases)]
            yield at_us, phase
            at_us, i = at_us + phase.us, i + 1
            if i > MAX_STEPS:
                raise self.entries.error(
                    "link_scenario", f"more than {MAX_STEPS} phases in {self.horizon_us} us"
                )

    def steps(self, of: Callable[[Phase], str]) -> list[tuple[int, str]]:
        """The values over time: from which instant, which value."""
        steps: list[tuple[int, str]] = []
        for at_us, phase in self.all():
            if not steps or steps[-1][1] != of(phase):
                steps.append((at_us, of(phase)))
        return steps

    def said(self, key: str, of: Callable[[Phase], str]) -> str:
        """The same as a schedule; an empty value omits the key."""
        return _schedule(key, self.steps(of))


def _schedule(key: str, steps: Iterable[tuple[int, str]]) -> str:
    entries = (f'{{ at = "{at} us"' + (f", {key} = {said}" if said else "") + " }" for at, said in steps)
    return f"[{', '.join(entries)}]"


def _rate(gbps: float) -> str:
    return f'"{round(gbps * 1e9)} bit/s"' if gbps * 1e9 >= 1 else f'"{_SUSPENDED}"'


def _queue(link: str, course: _Course, gbps: Callable[[Phase], float]) -> Settings:
    if not any(phase.queue_us for phase in course.phases):
        return ((f"{link}.queue", '{ kind = "unlimited" }'),)
    suspended = any(gbps(phase) == 0 for phase in course.phases)
    # While the link is suspended, the queue keeps room for what its rate would send in that time.
    fastest = max(gbps(phase) for phase in course.phases)

    def limit(phase: Phase) -> str:
        if phase.queue_us == 0:
            return '"1000 GB"'
        return (
            f'"{max(1, round(phase.queue_us * fastest * 125))} B"' if suspended else f'"{phase.queue_us} us"'
        )

    (_, first), *later = course.steps(limit)
    made: Settings = ((f"{link}.queue", f'{{ kind = "droptail", limit = {first} }}'),)
    return (*made, (f"{link}.limit_schedule", _schedule("limit", later))) if later else made


def _jitter(course: _Course, why: list[str]) -> Settings:
    if any(phase.jitter_us and not phase.wifi for phase in course.phases):
        key = "jitter" if course.entries.text("jitter") else "link_scenario"
        why.append(
            f"{key}: without wifi_jitter (W) the jitter is normally distributed, which is not supported"
        )
    steps = course.steps(
        lambda p: f'{{ kind = "bad-wifi", average = "{p.jitter_us} us" }}' if p.jitter_us else ""
    )
    if steps == [(0, "")]:
        return ()
    said = ("", steps[0][1]) if len(steps) == 1 else ("_schedule", _schedule("variation", steps))
    return tuple((f"{link}.delay_variation{said[0]}", said[1]) for link in (_LINK, _BACKWARD))


def _losses(course: _Course, why: list[str]) -> Settings:
    """Bursts of losses, counted separately in each phase that has them. A burst's packets fall within the time in which
    the link sends as many packets of 1536 bytes, at picoquic's megabit of 2^20 bits."""
    made: Settings = ()
    ways: list[tuple[str, Callable[[Phase], float]]] = [
        (_LINK, lambda p: p.down_gbps),
        (_BACKWARD, lambda p: p.up_gbps),
    ]
    for link, gbps in ways:
        kinds = {(p.lost, p.between, gbps(p)) for p in course.phases if p.lost}
        if len(kinds) > 1:
            why.append("link_scenario: loss bursts (B, P) that differ between phases are not supported")
            return ()
        for lost, between, rate in kinds:
            within = round(lost * 1536 * 8 / rate * 1.048576)
            during = ", ".join(
                f'{{ from = "{at} us", to = "{min(at + p.us, course.horizon_us)} us" }}'
                for at, p in course.all()
                if p.lost
            )
            loss = f'kind = "periodic", pass = {between + 1}, lose = {lost}, within = "{within} ns"'
            made += ((f"{link}.loss", f"{{ {loss}, during = [{during}] }}"),)
    return made


def _phases(entries: Entries, why: list[str]) -> list[Phase]:
    """The phases of the link."""
    word = entries.text("link_scenario") or "none"
    down = rate_down(entries)
    up = entries.rate("data_rate_up_in_gbps") or down
    whole = Phase(
        _FOR_EVER,
        up,
        down,
        entries.whole("latency", 0, MINUTE_US),
        entries.whole("queue_delay_max", 0, MINUTE_US),
        entries.whole("jitter", 0, MINUTE_US),
        bool(entries.whole("wifi_jitter", 0, 1)),
    )

    def times(us: int, share: float) -> Phase:
        return replace(whole, us=us, up_gbps=up * share, down_gbps=down * share)

    fair = replace(whole, jitter_us=999, wifi=True)
    named = {
        "none": [whole],
        "black_hole": [times(2_000_000, 1), times(2_000_000, 0), whole],
        "drop_and_back": [times(1_500_000, 1), times(2_000_000, 0.5), whole],
        "low_and_up": [times(2_500_000, 0.5), whole],
        # picoquic's text says a tenth of the rate in the middle, its code nine tenths
        "wifi_fade": [
            replace(fair, us=1_000_000),
            replace(times(2_000_000, 0.9), jitter_us=12_000, wifi=True),
            fair,
        ],
        "wifi_suspension": [times(1_800_000, 1), times(200_000, 0)],
    }
    return named[word] if word in named else _list(entries, word, list(named), whole, why)


def _list(entries: Entries, text: str, named: list[str], whole: Phase, why: list[str]) -> list[Phase]:
    """Phases listed in the file; the file's other link entries, except for its rates, then have no effect."""
    phases = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        first, *words = part.split(":")
        if not re.fullmatch(r"[0-9]{1,12}", first) or int(first) == 0:
            known = ", ".join(named)
            raise entries.error(
                "link_scenario",
                f"must be {known}, or phases MICROSECONDS:U0.01:D0.01:L15000:Q100000;..., not {part[:60]!r}",
            )
        rates, numbers = {"U": 0.0, "D": whole.down_gbps}, dict.fromkeys("LQJSBPW", 0)
        for word in words:
            letter, value = word[:1], word[1:]
            rate = rate_of(value) if letter in rates else None
            if letter in rates and rate is not None:
                rates[letter] = rate or rates[letter]
            elif letter in numbers and re.fullmatch(r"[0-9]{0,8}", value) and (value or letter == "W"):
                numbers[letter] = int(value or 1)
                if letter in "LQJ" and numbers[letter] > MINUTE_US:
                    raise entries.error("link_scenario", f"{word}: at most {MINUTE_US} us")
                if letter == "B" and numbers[letter] > MAX_IN_BURST:
                    raise entries.error("link_scenario", f"{word}: at most {MAX_IN_BURST} packets")
            else:
                raise entries.error(
                    "link_scenario",
                    f"must have U and D (Gbit/s, 0 to 1000), L, Q and J (us), S, B, P (whole numbers) and W, "
                    f"not {word[:40]!r}",
                )
        # Without an up rate, use the file's, and without that the phase's own down rate.
        up = rates["U"] or (whole.up_gbps if entries.text("data_rate_up_in_gbps") else rates["D"])
        if numbers["S"]:
            why.append("link_scenario: S: picoquic's DualPI2 differs from that of RFC 9332")
        latency, queue, jitter = (numbers[letter] for letter in "LQJ")
        wifi = bool(numbers["W"])
        phase = Phase(int(first), up, rates["D"], latency, queue, jitter, wifi, numbers["B"], numbers["P"])
        phases.append(phase)
    if not phases:
        raise entries.error("link_scenario", "needs a phase")
    return phases
