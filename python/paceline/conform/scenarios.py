"""The scenarios of the conformance checks, and the requirement of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.results.results import RunRecord
from paceline.scenarios.scenario import toml_value

_APPS = {"rtp": '{ kind = "encoder", frame_rate = 30, max_rate = "4 Mbit/s" }'}
"""The application of a machine's flows; flows of other machines have endless data."""

Judge = Callable[["Run"], str | None]
"""Returns what is wrong with a run, in words, or nothing."""


@dataclass(frozen=True)
class Run:
    """One run of a check, for judging."""

    machine: str
    record: RunRecord

    @property
    def flow(self) -> Mapping[str, Any]:
        """The row of the controller's flow, or of its first instance."""
        return next(row for row in self.record.summary["flows"] if row["flow"] == "own")

    def sent_bps(self, from_s: float, to_s: float) -> float:
        """The mean sending rate between two instants, of payload."""
        return self._mean("send_rate_bps", from_s, to_s)

    def received_bps(self, from_s: float, to_s: float) -> float:
        """The mean delivery rate between two instants."""
        return self._mean("goodput_bps", from_s, to_s)

    def _mean(self, column: str, from_s: float, to_s: float) -> float:
        rates = self.record.series["rate"]
        own = rates.filter(
            (rates["flow"] == "own") & (rates["time_s"] > from_s + 1e-6) & (rates["time_s"] <= to_s + 1e-6)
        )
        mean = own[column].fill_nan(None).mean()
        return float(mean) if isinstance(mean, int | float) else 0.0


def _rate(bps: float) -> str:
    for unit, size in (("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.3g} {unit}"
    return f"{bps:.3g} bit/s"


def moves(min_bps: float, media_bps: float | None = None) -> Judge:
    """Requires at least this goodput; for media at least `media_bps`."""

    def judge(run: Run) -> str | None:
        bound = media_bps if run.machine == "rtp" and media_bps is not None else min_bps
        got = run.flow["goodput_bps"] or 0.0
        return None if got >= bound else f"goodput {_rate(got)}, less than {_rate(bound)}"

    return judge


def loses_less_than(share: float) -> Judge:
    """Requires that less than this share of packets is lost."""

    def judge(run: Run) -> str | None:
        lost = run.flow["loss_rate"] or 0.0
        return None if lost < share else f"{lost:.1%} of its packets lost, not less than {share:.0%}"

    return judge


def recovers(before: tuple[float, float], after: tuple[float, float], share: float) -> Judge:
    """Requires a delivery rate after an event of at least this share of the rate before it."""

    def judge(run: Run) -> str | None:
        was, now = run.received_bps(*before), run.received_bps(*after)
        if was > 0 and now >= share * was:
            return None
        return f"{_rate(now)} after it, less than {share:.0%} of the {_rate(was)} before it"

    return judge


def slows_down(before: tuple[float, float], during: tuple[float, float], share: float) -> Judge:
    """Requires at most this share of the previous sending rate while no feedback arrives."""

    def judge(run: Run) -> str | None:
        was, now = run.sent_bps(*before), run.sent_bps(*during)
        if now <= share * was:
            return None
        return (
            f"sends {_rate(now)} while nothing comes back, more than {share:.0%} of the {_rate(was)} before"
        )

    return judge


def both_move(min_bps: float) -> Judge:
    """Requires at least this rate of each of two equal flows."""

    def judge(run: Run) -> str | None:
        got = [row["goodput_bps"] or 0.0 for row in run.record.summary["flows"] if row["flow"] == "own"]
        return (
            None
            if min(got) >= min_bps
            else f"one of two alike has {_rate(min(got))}, less than {_rate(min_bps)}"
        )

    return judge


def waits_less_than(seconds: float, rate_bps: float) -> Judge:
    """Requires a shorter mean queue at the bottleneck, as time at its rate."""

    def judge(run: Run) -> str | None:
        waits = max(row["mean_bytes"] for row in run.record.summary["queues"]) * 8 / rate_bps
        if waits < seconds:
            return None
        return f"the mean queue is {waits * 1e3:.1f} ms, not less than {seconds * 1e3:g} ms"

    return judge


@dataclass(frozen=True)
class Check:
    """A scenario and its requirements of a controller."""

    key: str
    asks: str
    duration_s: float = 20.0
    rate: str = "10 Mbit/s"
    delay: str = "20 ms"
    link: str = 'queue = { kind = "droptail", limit = "50 ms" }'
    """Further keys of the link."""
    flow: str = ""
    """Keys of the flow."""
    more: str = ""
    """Further tables."""
    judges: Sequence[Judge] = ()
    machines: frozenset[str] = frozenset(["tcp", "tfrc", "rtp", "acks"])
    warmup_s: float = 0.0

    def text(self, cc: str, machine: str, params: Mapping[str, Any]) -> str:
        """The scenario's text."""
        app = _APPS.get(machine)
        own = [f"cc = {json.dumps(cc)}", self.flow]
        if app and "app =" not in self.flow:
            own.append(f"app = {app}")
        if params:
            own.append(f"params = {toml_value(params)}")
        return "\n".join(
            [
                f"# paceline conform {cc}: {self.asks}.",
                f'name = "{self.key}"',
                f'duration = "{self.duration_s:g} s"',
                f'warmup = "{self.warmup_s:g} s"',
                "[link.bottleneck]",
                f'rate = "{self.rate}"' if self.rate else "",
                f'delay = "{self.delay}"',
                self.link,
                "[flow.own]",
                *own,
                self.more,
            ]
        )


_TCP = frozenset(["tcp"])
_MEDIA = frozenset(["rtp"])

CHECKS = (
    Check(
        "alone",
        "alone on 10 Mbit/s and 40 ms it fills half of it (media 100 kbit/s), and loses less than a tenth",
        warmup_s=5,
        judges=(moves(5e6, 1e5), loses_less_than(0.1)),
    ),
    Check(
        "loss",
        "one packet in fifty is lost: 200 kbit/s",
        link='loss = { rate = "2 %" }',
        judges=(moves(2e5, 5e4),),
    ),
    Check(
        "heavy-loss",
        "three packets in ten are lost: something arrives",
        link='loss = { rate = "30 %" }',
        judges=(moves(100),),
    ),
    Check(
        "loss-of-answers",
        "a tenth of what comes back is lost: 200 kbit/s (media 50)",
        link='backward = { loss = { rate = "10 %" } }',
        judges=(moves(2e5, 5e4),),
    ),
    Check(
        "reordering",
        "one packet in twenty is held back for 10 ms: 200 kbit/s",
        link='reorder = { rate = "5 %", extra = "10 ms" }',
        judges=(moves(2e5, 5e4),),
    ),
    Check(
        "duplicates",
        "one packet in twenty comes twice, one in a hundred is damaged: 200 kbit/s",
        link='duplicate = { rate = "5 %" }\ncorrupt = { rate = "1 %" }',
        judges=(moves(2e5, 5e4),),
    ),
    Check(
        "jitter",
        "delays vary by up to 40 ms: 500 kbit/s (media 50)",
        link='queue = { kind = "droptail", limit = "100 ms" }\ndelay_variation = { max = "40 ms" }',
        judges=(moves(5e5, 5e4),),
    ),
    Check(
        "outage",
        "the path is down for 3 s: ten seconds later a tenth of what was there",
        duration_s=40,
        link='queue = { kind = "droptail", limit = "50 ms" }\noutage = [{ from = "10 s", to = "13 s" }]',
        judges=(recovers((5, 10), (25, 40), 0.1),),
    ),
    Check(
        "silence",
        "nothing comes back from 10 s on: it sends no more than before, and the run ends",
        duration_s=60,
        link='queue = { kind = "droptail", limit = "50 ms" }\n'
        'backward = { outage = [{ from = "10 s", to = "60 s" }] }',
        judges=(slows_down((5, 10), (40, 60), 1.0),),
    ),
    Check(
        "rate-drop",
        "the link falls to a twentieth at 10 s: less than two thirds are lost from there on",
        duration_s=40,
        rate="",
        link='rate_schedule = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "10 s", rate = "500 kbit/s" }]\n'
        'queue = { kind = "droptail", limit = "32 kB" }',
        warmup_s=10,
        judges=(loses_less_than(0.67), moves(5e4, 2e4)),
    ),
    Check(
        "idle",
        "the application pauses, for 5 s and for 10 s: afterwards a tenth of what was there",
        duration_s=40,
        flow='app = { kind = "ftp", limited = ['
        '{ from = "10 s", to = "15 s", rate = "8 kbit/s" }, { from = "20 s", to = "30 s", rate = "8 kbit/s" }] }',
        judges=(recovers((5, 10), (32, 40), 0.1),),
        machines=_TCP,
    ),
    Check(
        "pauses",
        "the encoder pauses, for 5 s and for 10 s: afterwards a tenth of what was there",
        duration_s=40,
        flow='app = { kind = "encoder", frame_rate = 30, max_rate = "4 Mbit/s", pauses = ['
        '{ from = "10 s", to = "15 s" }, { from = "20 s", to = "30 s" }] }',
        judges=(recovers((5, 10), (32, 40), 0.1),),
        machines=_MEDIA,
    ),
    Check(
        "pages",
        "it carries web pages, connection after connection",
        flow='app = { kind = "web", gap = "500 ms", mean_size = "50 kB" }',
        judges=(moves(1e5),),
        machines=_TCP,
    ),
    Check(
        "tiny",
        "20 kbit/s, a round trip of a second and room for three packets: something arrives",
        duration_s=60,
        rate="20 kbit/s",
        delay="500 ms",
        link='queue = { kind = "droptail", limit = "4500 B" }',
        judges=(moves(500),),
    ),
    Check(
        "huge",
        "10 Gbit/s and 200 ms: the run ends",
        duration_s=5,
        rate="10 Gbit/s",
        delay="100 ms",
        link='queue = { kind = "droptail", limit = "10 ms" }',
        judges=(moves(1e4),),
    ),
    Check(
        "short",
        "a round trip of 20 us: the run ends",
        duration_s=2,
        rate="100 Mbit/s",
        delay="10 us",
        link='queue = { kind = "droptail", limit = "1 ms" }',
        judges=(moves(1e5, 1e4),),
    ),
    Check(
        "marks",
        "a queue that marks (CoDel) stays below three times its target of 5 ms, once it is settled",
        duration_s=40,
        warmup_s=20,
        link='queue = { kind = "codel", limit = "100 packets", ecn = true }',
        flow="ecn = true",
        judges=(waits_less_than(0.015, 10e6),),
        machines=_TCP,
    ),
    Check(
        "small-window",
        "the receiver's window is 4 segments: nothing is lost",
        flow="receive_window = 4",
        judges=(loses_less_than(1e-9), moves(2e5)),
        machines=_TCP,
    ),
    Check(
        "two",
        "two of it share a link, one ten seconds later: neither starves",
        duration_s=60,
        warmup_s=30,
        flow='count = 2\nstart = ["0 s", "10 s"]',
        judges=(both_move(1e5),),
    ),
    Check(
        "beside-cubic",
        "beside CUBIC it is not starved: 20 kbit/s",
        duration_s=60,
        warmup_s=30,
        more='[flow.other]\ncc = "cubic"',
        judges=(moves(2e4),),
    ),
)
"""The checks that are scenarios."""
