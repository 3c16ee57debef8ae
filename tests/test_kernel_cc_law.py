"""What `kernel-cc/vegas.c` and `veno.c` decide, number by number: compiled for this machine and called. What they do in
the kernel is in test_kernel_cc.py."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from needs import require
from paceline.live import kernel_cc

TX_START, CWND_RESTART, OTHER_EVENT = 0, 1, 4
OPEN, RECOVERY = 0, 3
NONE = 0xFFFFFFFF
HIGH = 1000
"""A threshold that no window here reaches."""


class Tcp(ctypes.Structure):
    """`struct tcp_sock` of cc.h, as this machine's compiler lays it out."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("nxt", "cwnd", "count", "clamp", "ssthresh", "most_out", "window_was_full")
    ]


class Control:
    """A connection with a congestion control, of which the test is the kernel."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.library, self.name = library, name
        self.memory = ctypes.create_string_buffer(512)
        self.tcp = Tcp.from_buffer(self.memory, 256)
        self.tcp.nxt, self.tcp.cwnd, self.tcp.clamp, self.tcp.ssthresh = 1000, 10, 10_000, HIGH
        self.tcp.window_was_full = 1
        self.call("init")

    def call(self, what: str, *words: int) -> int:
        sock = ctypes.addressof(self.memory)
        arguments = (ctypes.c_uint64 * 3)(sock, *words)
        return int(getattr(self.library, f"pl_{self.name}_{what}")(arguments)) & NONE

    def samples(self, *rtts_us: int) -> None:
        """Acknowledgements' round trips; the programs reckon with a microsecond more."""
        for rtt in rtts_us:
            sample = (ctypes.c_uint32 * 3)(1, (rtt - 1) & NONE, 5)
            self.call("acked", ctypes.addressof(sample))

    def avoid(self, ack: int, acked: int = 2) -> None:
        self.call("avoid", ack & NONE, acked)

    def round(self, *rtts_us: int, acked: int = 2) -> None:
        """Acknowledgements with these round trips, the last of which ends Vegas' round."""
        self.samples(*rtts_us)
        end = self.tcp.nxt
        self.tcp.nxt = (end + 20) & NONE
        self.avoid(end + 1, acked)

    def counter(self, name: str) -> int:
        return ctypes.c_uint32.in_dll(self.library, name).value


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Control]:
    require("clang")
    where = tmp_path_factory.mktemp("kernel-cc")
    clang = shutil.which("clang") or "clang"
    for name in kernel_cc.programs():
        flags = ["-shared", "-fPIC", "-O1", "-w", "-include", str(Path(__file__).parent / "kernel_cc_host.h")]
        command = [clang, *flags, f"-I{kernel_cc.folder()}", str(kernel_cc.source(name))]
        subprocess.run([*command, "-o", str(where / f"{name}.so")], check=True, timeout=60)

    return lambda name: Control(ctypes.CDLL(str(where / f"{name}.so")), name)


Make = Callable[[str], Control]


@pytest.mark.parametrize(
    ("rtt", "window"), [(41_000, 21), (43_999, 21), (44_000, 20), (49_999, 20), (50_000, 19), (60_000, 19)]
)
def test_vegas_keeps_two_to_four_segments_in_the_queue(control: Make, rtt: int, window: int) -> None:
    # 20 segments of 40 ms: each 2 ms are one in the queue; at 50 ms five are.
    vegas = control("vegas")
    vegas.tcp.cwnd, vegas.tcp.ssthresh = 20, 2
    vegas.round(40_000, 40_000)
    assert vegas.tcp.cwnd == 20
    vegas.round(rtt + 9000, rtt, rtt + 500)
    assert vegas.tcp.cwnd == window
    assert vegas.tcp.ssthresh == max(2, window // 2 + window // 4)


def test_vegas_lowers_the_threshold_with_the_window(control: Make) -> None:
    vegas = control("vegas")
    vegas.tcp.cwnd, vegas.tcp.ssthresh = 21, 21
    vegas.round(40_000, 40_000)
    vegas.round(60_000, 60_000, 60_000)
    assert (vegas.tcp.cwnd, vegas.tcp.ssthresh) == (20, 20)


def test_vegas_windows_stay_within_two_and_the_clamp(control: Make) -> None:
    vegas = control("vegas")
    vegas.tcp.cwnd, vegas.tcp.ssthresh, vegas.tcp.clamp = 20, 2, 20
    vegas.round(40_000, 40_000, 40_000)
    assert vegas.tcp.cwnd == 20
    vegas.tcp.cwnd = 2
    vegas.round(400_000, 400_000, 400_000)
    assert vegas.tcp.cwnd == 2


def test_vegas_begins_slowly_until_something_waits(control: Make) -> None:
    vegas = control("vegas")
    vegas.round(40_000, 40_000, 40_000, acked=10)
    assert vegas.tcp.cwnd == 20, "slow start goes on at the end of a round"
    vegas.avoid(vegas.tcp.nxt, 5)
    assert vegas.tcp.cwnd == 25, "and within one"
    vegas.round(43_000, 43_000, 43_000, acked=2)
    assert vegas.tcp.cwnd == 27, "one segment in the queue is not too many"
    vegas.round(43_000, 43_000, 43_000)
    # Of 27 two are; 27 * 40 / 43 = 25, and one; the threshold follows.
    assert (vegas.tcp.cwnd, vegas.tcp.ssthresh) == (26, 26)
    vegas.avoid(vegas.tcp.nxt, 5)
    assert vegas.tcp.cwnd == 26, "after slow start nothing grows within a round"


def test_vegas_leaves_rounds_with_few_samples_and_repairs_to_reno(control: Make) -> None:
    vegas = control("vegas")
    vegas.tcp.ssthresh = 2
    before = vegas.counter("asked_reno")
    vegas.round(40_000, 40_000)
    assert (vegas.tcp.cwnd, vegas.counter("asked_reno")) == (10, before + 1)
    vegas.samples(40_000, 40_000)
    vegas.call("state", RECOVERY)
    vegas.avoid(vegas.tcp.nxt + 1)
    assert (vegas.tcp.cwnd, vegas.counter("asked_reno")) == (10, before + 2)
    vegas.call("state", OPEN)
    vegas.round(40_000, 40_000)
    assert vegas.counter("asked_reno") == before + 3, "what came before the repair is not of this round"
    vegas.round(40_000, 40_000, 40_000)
    assert (vegas.tcp.cwnd, vegas.counter("asked_reno")) == (11, before + 3)


def test_vegas_measures_the_path_anew_after_a_pause(control: Make) -> None:
    for event, grows in ((TX_START, True), (CWND_RESTART, True), (OTHER_EVENT, False)):
        vegas = control("vegas")
        vegas.tcp.ssthresh = 2
        vegas.round(40_000, 40_000, 40_000)
        vegas.call("state", RECOVERY)
        vegas.call("event", event)
        if not grows:
            vegas.call("state", OPEN)
        vegas.round(90_000, 90_000, 90_000)
        # 50 ms more are the new path's own, or six segments of eleven in a queue.
        assert vegas.tcp.cwnd == (12 if grows else 10), event


def test_vegas_knows_sequence_numbers_that_wrap(control: Make) -> None:
    vegas = control("vegas")
    vegas.tcp.ssthresh, vegas.tcp.nxt = 2, NONE - 5
    vegas.call("state", OPEN)
    vegas.round(40_000, 40_000, 40_000)
    assert vegas.tcp.cwnd == 11
    vegas.samples(40_000, 40_000, 40_000)
    vegas.avoid(NONE - 3)
    vegas.avoid(vegas.tcp.nxt)
    assert vegas.tcp.cwnd == 11, "the round has not ended"
    vegas.avoid(vegas.tcp.nxt + 1)
    assert vegas.tcp.cwnd == 12


def test_vegas_takes_no_sample_for_a_round_trip_that_was_not_measured(control: Make) -> None:
    vegas = control("vegas")
    vegas.tcp.ssthresh = 2
    before = vegas.counter("asked_reno")
    vegas.round(0, 40_000, 40_000)
    assert vegas.counter("asked_reno") == before + 1, "of three, one said -1"
    vegas.round(1, 1, 1)
    assert vegas.tcp.cwnd == 11, "a round trip of nothing is one of a microsecond"


def test_losses_and_what_undoes_them(control: Make) -> None:
    vegas, veno = control("vegas"), control("veno")
    vegas.tcp.cwnd = veno.tcp.cwnd = 21
    assert vegas.call("ssthresh") == 10
    assert vegas.call("undo") == veno.call("undo") == 1021


@pytest.mark.parametrize(
    ("rtt", "per_window", "after_a_loss"),
    [(40_000, 1, 16), (45_700, 1, 16), (45_800, 2, 10), (80_000, 2, 10)],
)
def test_veno_takes_losses_with_fewer_than_three_segments_queued_for_random(
    control: Make, rtt: int, per_window: int, after_a_loss: int
) -> None:
    # Of 20 segments N = 20 - 20 * 40 / RTT wait, as Linux has it in half segments and rounded up: 2.5 at 45.7 ms.
    veno = control("veno")
    veno.tcp.cwnd, veno.tcp.ssthresh = 20, 2
    veno.samples(40_000, 40_000, 40_000)
    veno.avoid(0)
    veno.samples(rtt + 9000, rtt)
    veno.avoid(0)
    assert veno.counter("asked_w") == per_window * 20
    assert veno.call("ssthresh") == after_a_loss
    veno.avoid(0)
    assert veno.call("ssthresh") == after_a_loss, "without a sample the last N stands"
    veno.tcp.cwnd = 2
    assert veno.call("ssthresh") == 2


def test_veno_grows_as_reno_until_it_has_three_samples_and_while_a_loss_is_repaired(control: Make) -> None:
    veno = control("veno")
    before = veno.counter("asked_reno")
    veno.samples(40_000, 0, 40_000)
    veno.avoid(0)
    assert veno.counter("asked_reno") == before + 1
    veno.samples(40_000)
    veno.avoid(0)
    assert (veno.counter("asked_reno"), veno.tcp.cwnd) == (before + 1, 12), "slow start is Reno's"
    veno.call("state", RECOVERY)
    veno.avoid(0)
    assert veno.counter("asked_reno") == before + 2
    veno.call("state", OPEN)
    veno.avoid(0)
    assert veno.counter("asked_reno") == before + 2


def test_veno_counts_what_slow_start_leaves(control: Make) -> None:
    veno = control("veno")
    veno.tcp.ssthresh = 11
    veno.samples(40_000, 40_000, 40_000)
    veno.avoid(0, 5)
    assert (veno.tcp.cwnd, veno.tcp.count, veno.counter("asked_w")) == (11, 4, 11)
    veno.tcp.ssthresh = 20
    veno.avoid(0, 3)
    assert (veno.tcp.cwnd, veno.tcp.count) == (14, 4), "nothing is left"


def test_veno_does_not_grow_a_window_that_is_not_used(control: Make) -> None:
    veno = control("veno")
    veno.samples(40_000, 40_000, 40_000)
    veno.tcp.window_was_full, veno.tcp.most_out = 0, 5
    veno.avoid(0)
    assert veno.tcp.cwnd == 10
    veno.tcp.most_out = 6
    veno.avoid(0)
    assert veno.tcp.cwnd == 12, "in slow start half of it is used enough"
    veno.tcp.ssthresh = veno.tcp.most_out = 12
    veno.avoid(0)
    assert veno.tcp.count == 0
    veno.tcp.window_was_full = 1
    veno.avoid(0)
    assert veno.tcp.count == 2


def test_veno_measures_the_path_anew_after_a_pause(control: Make) -> None:
    for event, base in ((TX_START, 90_000), (CWND_RESTART, 90_000), (OTHER_EVENT, 40_000)):
        veno = control("veno")
        veno.tcp.cwnd, veno.tcp.ssthresh = 20, 2
        veno.samples(40_000, 40_000, 40_000)
        veno.avoid(0)
        veno.call("state", RECOVERY)
        veno.call("event", event)
        if base == 40_000:
            veno.call("state", OPEN)
        veno.samples(90_000)
        veno.avoid(0)
        assert veno.call("ssthresh") == (16 if base == 90_000 else 10), event
