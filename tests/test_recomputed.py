"""Measures of runs against their captures: counts and bytes have to be the same, times too, to the resolution that
docs/measures.md names (`RESOLUTION`, `TICKS`, `PERCENT`). What recomputes them is `recomputed.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import paceline
from recomputed import (
    CLOCK,
    DURATION,
    Ends,
    Frame,
    Span,
    arrivals,
    counted,
    data,
    media,
    queue,
    read,
    round_trips,
    segment,
    tcp,
    transfers,
    transits,
)

HEAD = f"""
duration = "{DURATION:g} s"
host_delay = "0 s"
access = {{ rate = "1 Gbit/s" }}
"""
LINK = """
[link.bottleneck]
rate = "4 Mbit/s"
delay = "25 ms"
"""
RATE, DELAY = 4e6, 0.025
LOSS = 'loss = { kind = "uniform", rate = "0.5 %" }\n'
SHORT = 'queue = { limit = "20 packets" }\n'
TEN = Span(stop=10.0)
WIRE = {"rfc": 40, "linux": 52}
"""Bytes of headers, which a SYN has on a link; its options are in the file alone."""

Found = dict[str, dict[str, float]]
"""Measures by what they are of: a flow, or a link and its direction."""


def of_bulk(frames: Sequence[Frame]) -> Found:
    return {"a": tcp(Ends.of(frames, "a"), TEN, WIRE["rfc"])}


def of_sack(frames: Sequence[Frame]) -> Found:
    ends = Ends.of(frames, "a")
    return {
        "a": tcp(ends, TEN, WIRE["linux"])
        | round_trips(ends)
        | arrivals(data(ends), TEN, transits(data(ends)))
    }


def of_quic(frames: Sequence[Frame]) -> Found:
    """What is in its packets is not in the file."""
    return {"a": counted(Ends.of(frames, "a"), TEN, lambda frame: frame.size, min_size=100)}


def of_call(frames: Sequence[Frame]) -> Found:
    return {"call": media(Ends.of(frames, "call"), Span(stop=11.0))}


def of_voice(frames: Sequence[Frame]) -> Found:
    ends, span = Ends.of(frames, "voice"), Span(stop=11.0, warmup=2.0)
    return {"voice": counted(ends, span, lambda frame: frame.size) | arrivals(ends, span, transits(ends))}


def of_red(frames: Sequence[Frame]) -> Found:
    both = {name: Ends.of(frames, name) for name in ("a", "b")}
    found = {name: tcp(ends, TEN, WIRE["linux"]) for name, ends in both.items()}
    return found | {"bottleneck forward": queue(list(both.values()), RATE, DELAY, WIRE["linux"])}


def of_two_links(frames: Sequence[Frame]) -> Found:
    """All that is lost is lost at the first link, whose queue two flows share; what comes to the second crosses it."""
    flows = {name: Ends.of(frames, name) for name in ("long", "first", "last")}
    found = {name: tcp(ends, TEN, WIRE["linux"]) for name, ends in flows.items()}

    def crossing(names: tuple[str, str], rate: float) -> dict[str, float]:
        received = [f for name in names for f in flows[name].received]
        size = sum(WIRE["linux"] if segment(f).syn else f.size for f in received)
        return {
            "departures": len(received),
            "departed_bytes": size,
            "utilisation": size * 8 / rate / DURATION,
        }

    found["hop1 forward"] = crossing(("long", "first"), RATE)
    found["hop1 forward"]["arrivals"] = len(flows["long"].sent) + len(flows["first"].sent)
    found["hop2 forward"] = crossing(("long", "last"), 4 * RATE)
    found["hop2 forward"]["arrivals"] = len(flows["long"].received) + len(flows["last"].sent)
    return found


def of_pages(frames: Sequence[Frame]) -> Found:
    return {"web": transfers(Ends.of(frames, "web"))}


STOP = 'stop = "10 s"\n'
CASES: dict[str, tuple[str, Callable[[Sequence[Frame]], Found]]] = {
    "bulk TCP with loss": (HEAD + LINK + SHORT + LOSS + '[flow.a]\ncc = "newreno"\n' + STOP, of_bulk),
    "SACK, delayed ACKs, time stamps": (
        HEAD
        + LINK
        + SHORT
        + LOSS
        + '[flow.a]\ncc = "sack"\nprofile = "linux"\ndelayed_ack = "100 ms"\ndelays = true\n'
        + STOP,
        of_sack,
    ),
    "QUIC with loss": (
        HEAD + LINK + SHORT + LOSS + '[flow.a]\ncc = "cubic"\ntransport = "quic"\n' + STOP,
        of_quic,
    ),
    "a call with NACK": (
        HEAD
        + LINK
        + 'queue = { limit = "100 ms" }\nloss = { kind = "uniform", rate = "1 %" }\n'
        + '[flow.call]\ncc = "gcc"\ndelays = true\nstop = "11 s"\nrtp = { nack = true }\n'
        + 'app = { kind = "encoder", max_rate = "1.5 Mbit/s" }\n',
        of_call,
    ),
    "voice beside pages": (
        'warmup = "2 s"\n'
        + HEAD
        + LINK
        + '[flow.voice]\ncc = "udp"\nstop = "11 s"\napp = { kind = "voice", spurts = true }\n'
        + '[flow.web]\napp = { kind = "web", mean_size = "100 kB" }\n',
        of_voice,
    ),
    "RED with ECN": (
        HEAD
        + LINK
        + 'queue = { kind = "red", limit = "60 packets", min_threshold = 5, max_threshold = 15, ecn = true }\n'
        + f'[flow.a]\ncc = "newreno"\nprofile = "linux"\necn = true\n{STOP}'
        + f'[flow.b]\ncc = "cubic"\nprofile = "linux"\n{STOP}',
        of_red,
    ),
    "two links": (
        HEAD
        + 'topology = "parking-lot"\n[link.hop1]\nrate = "4 Mbit/s"\ndelay = "10 ms"\n'
        + SHORT
        + '[link.hop2]\nrate = "16 Mbit/s"\ndelay = "10 ms"\nqueue = { limit = "2000 packets" }\n'
        + f'[flow.long]\nprofile = "linux"\n{STOP}[flow.first]\nto = "r1"\nprofile = "linux"\n{STOP}'
        + f'[flow.last]\nfrom = "r1"\nprofile = "linux"\n{STOP}',
        of_two_links,
    ),
    "pages": (HEAD + LINK + '[flow.web]\napp = { kind = "web", gap = "100 ms" }\n', of_pages),
}

RESOLUTION = 256e-9
"""Of times: that of delays and of TCP's time stamps. (RTP's, of 90 kHz, are coarser: a frame's delay is in their ticks,
of which the first frame leaves at once.)"""
TICKS = 1 / CLOCK
PERCENT = 0.002
"""Of percentiles, and a microsecond."""


def allowed(of: str, measure: str, value: float) -> float:
    """By how much a time may differ; all else may not, but for what sums of floats do."""
    fine = TICKS if of == "call" and measure.startswith(("owd", "jitter", "frame")) else RESOLUTION
    if measure.rpartition("_p")[2] in ("50_s", "95_s", "99_s"):
        return PERCENT * abs(value) + 1e-6 + fine
    return fine if measure.startswith(("rtt", "owd", "jitter", "frame_delay")) else 1e-8 * abs(value)


@functools.cache
def run(name: str, folder: Path) -> tuple[tuple[Frame, ...], dict[str, dict[str, Any]]]:
    """The packets of a case, and what its summary says by flow and by link."""
    capture = folder / f"{list(CASES).index(name)}.pcapng"
    summary = paceline.run(paceline.parse(CASES[name][0]), pcap=capture).summaries[0]
    rows = {flow["flow"]: flow for flow in summary["flows"]}
    for row in summary["queues"]:
        rows[f"{row['link']} {row['direction']}"] = row | {"drops": sum(row["drops"].values())}
    return tuple(read(capture)), rows


def differing(name: str, frames: Sequence[Frame], rows: dict[str, dict[str, Any]]) -> list[str]:
    """The measures that the capture says otherwise."""
    said = []
    for of, measures in CASES[name][1](frames).items():
        for measure, value in measures.items():
            told = rows[of][measure]
            if told is None or not abs(value - told) <= allowed(of, measure, value):
                said.append(f"{of}: {measure} is {told}, by the capture {value}")
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@pytest.mark.parametrize("name", CASES)
def test_a_summary_says_what_its_capture_does(name: str, folder: Path) -> None:
    frames, rows = run(name, folder)
    assert len(frames) > 500
    assert differing(name, frames, rows) == []


def middle(name: str, frames: Sequence[Frame]) -> int:
    """The place of a data packet that reaches its receiver amid the run."""
    flow = next(iter(CASES[name][1](frames)))
    there = [k for k, f in enumerate(frames) if f.host == f"{flow}[0].sink" and not f.out and f.size > 60]
    return there[len(there) // 2]


@pytest.mark.parametrize("name", [name for name in CASES if name != "pages"])
def test_a_packet_less_is_seen(name: str, folder: Path) -> None:
    frames, rows = run(name, folder)
    place = middle(name, frames)
    assert differing(name, [*frames[:place], *frames[place + 1 :]], rows)


@pytest.mark.parametrize(
    "name", ["SACK, delayed ACKs, time stamps", "a call with NACK", "voice beside pages"]
)
def test_a_packet_that_came_a_millisecond_later_is_seen(name: str, folder: Path) -> None:
    frames, rows = run(name, folder)
    place = middle(name, frames)
    late = replace(frames[place], at=frames[place].at + 1_000_000)
    assert differing(name, [*frames[:place], late, *frames[place + 1 :]], rows)


def test_an_acknowledgement_of_a_page_less_is_seen(folder: Path) -> None:
    frames, rows = run("pages", folder)
    ends = Ends.of(frames, "web")
    first = segment(ends.sent[0]).port
    *_, gone = (frame for frame in ends.answers_received if segment(frame).port == first)
    assert differing("pages", [f for f in frames if f is not gone], rows)
