"""A window that is not used says nothing of the path: it does not grow while the application, the peer's flow control
or a pause is the limit (RFC 9002 section 7.8, RFC 9438 section 5.8)."""

from __future__ import annotations

import itertools
import json

import polars as pl
import pytest

import paceline
from paceline import _core

LINK = """
duration = "{duration}"
[link.bottleneck]
rate = "{rate}"
delay = "{delay}"
queue = {{ kind = "droptail", limit = "{queue} packets" }}
[flow.f]
cc = "{cc}"
transport = "{transport}"
profile = "{profile}"
"""

OWN_RECOVERY = ("tahoe", "reno", "sack")
SCHEMES = [
    one["name"]
    for one in json.loads(_core.schemes())
    if one["machine"] == "tcp" and one["name"] not in OWN_RECOVERY
]
BY_USE = ("newreno", "vegas", "cubic", "veno", "dctcp", "ledbat", "ledbat-plus-plus", "copa")
"""Those whose window grows by acknowledgements of what filled it: models and laws of rates have others."""


def windows(text: str) -> tuple[pl.DataFrame, float]:
    """The window over time, in packets, and the goodput in Mbit/s."""
    results = paceline.run(paceline.parse(text), record=("cwnd",))
    return results.series("cwnd"), results.flows["goodput_bps"][0] / 1e6


def on_link(
    cc: str, duration: str, rate: str, delay: str, queue: int, transport: str = "quic", profile: str = "rfc"
) -> str:
    return LINK.format(
        cc=cc, duration=duration, rate=rate, delay=delay, queue=queue, transport=transport, profile=profile
    )


@pytest.mark.filterwarnings("ignore::paceline.PacelineWarning")
@pytest.mark.parametrize("cc", BY_USE)
def test_video_that_never_fills_the_window_leaves_it(cc: str) -> None:
    """3 Mbit/s on 100: the window is what was in flight at the most, and what one acknowledgement adds."""
    text = on_link(cc, "60 s", "100 Mbit/s", "50 ms", 100)
    over_time, _ = windows(text + 'app = { kind = "encoder", max_rate = "3 Mbit/s" }\n')
    assert over_time["cwnd_packets"].to_numpy().max() < 1.2 * over_time["in_flight_packets"].to_numpy().max()


def test_the_peers_flow_control_limits_the_window_and_lets_nearly_its_own_worth_leave() -> None:
    """220 kB a round trip of 104 ms are 16.9 Mbit/s."""
    text = on_link("newreno", "60 s", "100 Mbit/s", "50 ms", 400) + 'quic = { receive_window = "220 kB" }\n'
    over_time, goodput = windows(text)
    assert over_time["cwnd_packets"].to_numpy().max() < 1.1 * 220e3 / 1452
    assert 0.9 * 16.9 < goodput <= 16.9


@pytest.mark.parametrize("acknowledges", [10, 25])
def test_slow_start_goes_by_what_is_acknowledged_not_by_acknowledgements(acknowledges: int) -> None:
    """RFC 9002 appendix B.5."""

    def goodput(threshold: int) -> float:
        text = (
            on_link("newreno", "60 s", "50 Mbit/s", "300 ms", 2500)
            + 'app = { kind = "ftp", size = "10 MB" }\n'
        )
        return windows(f'stop_after = "f"\n{text}quic = {{ ack_threshold = {threshold} }}\n')[1]

    assert goodput(acknowledges) == pytest.approx(goodput(2), rel=0.02)


IDLE = 'app = { kind = "ftp", limited = [{ from = "20 s", to = "40 s" }] }\n'
DELAYED = ("c4", "tcp", "rfc")
"""The last segment before the pause is alone, and waits for the receiver's timer: C4 takes 226 ms for the path's."""
PAUSED = [case for case in itertools.product(SCHEMES, ("quic", "tcp"), ("rfc", "linux")) if case != DELAYED]


@pytest.mark.filterwarnings("ignore::paceline.PacelineWarning")
@pytest.mark.parametrize(("cc", "transport", "profile"), PAUSED)
def test_a_pause_is_no_time_of_a_law(cc: str, transport: str, profile: str) -> None:
    """Half a second after 20 s without data the window is no larger than it was before."""
    over_time, _ = windows(on_link(cc, "41 s", "20 Mbit/s", "25 ms", 60, transport, profile) + IDLE)

    def most(begin: float, end: float) -> float:
        part = over_time.filter(pl.col("time_s").is_between(begin, end))
        return float(part["cwnd_packets"].to_numpy().max())

    assert most(40.0, 40.5) < 1.05 * most(15.0, 20.0)
