"""The base classes of controllers of your own: see `controller.py`."""

from typing import final

@final
class Random:
    """A controller's stream of random numbers: of the run's seed and the flow's name."""

    def __new__(cls, seed: int = 0) -> Random: ...
    def random(self) -> float:
        """Uniform in [0, 1)."""
    def uniform(self, least: float, most: float) -> float:
        """Uniform from `least` to `most`."""
    def exponential(self, mean: float) -> float:
        """Exponential with this mean."""
    def normal(self, mean: float = 0.0, sd: float = 1.0) -> float:
        """Normal."""
    def below(self, many: int) -> int:
        """A whole number from 0 to `many` - 1. Raises ValueError for none."""

class _Controller:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def random(self) -> Random:
        """Where its draws come from, so that a run can be repeated."""
    @property
    def flow(self) -> str:
        """The flow that it controls; empty for an object that somebody makes by hand."""
    @property
    def profile(self) -> str:
        """Whose behaviour the flow follows: "rfc", "ns2", "ns2-linux" or "linux"."""

class WindowController(_Controller):
    """Base of controllers on TCP: they set a window. docs/your-own-controller.md has the callbacks.

    Assigning what no machine can use raises ValueError.
    """

    window: float
    """In segments: from 1 to 1e9, 1 at first."""
    threshold: float
    """Slow-start threshold in segments; infinite at first."""
    pacing_bps: float
    """Bits of payload a second at which segments leave, with `needs` pacing; infinite at first."""
    send_quantum_bytes: float
    """Bytes that may leave at once while it paces."""
    base_rtt_s: float | None
    """What it takes for the round-trip time of a path without a queue, if it has such a notion."""
    holds_back: bool
    """It holds its rate down itself: samples of what is sent now say nothing of the path's."""

class RateController(_Controller):
    """Base of controllers on TFRC: they set a rate by a receiver's reports.

    Assigning what no machine can use raises ValueError.
    """

    rate_bps: float
    """The allowed sending rate (X), in bits of payload a second."""
    @property
    def pacing_bps(self) -> float:
        """That at which packets leave now (X_inst); None: `rate_bps`."""
    @pacing_bps.setter
    def pacing_bps(self, value: float | None) -> None: ...
    in_slow_start: bool
    """Whether no loss has been reported yet."""

class MediaController(_Controller):
    """Base of controllers of media on RTP: they set a rate, and what an encoder aims at.

    Assigning what no machine can use raises ValueError.
    """

    rate_bps: float
    """The allowed sending rate, in bits on the wire a second, all headers counted."""
    target_bps: float | None
    """What an encoder should aim at; None: what `rate_bps` lets it."""
    filling_bps: float
    """The rate up to which packets that carry nothing are sent."""
    window_bytes: float | None
    """Bytes on the wire that may be in flight; None: no window."""
    @property
    def frame_period_s(self) -> float | None:
        """How far apart the application writes frames; None if it writes none."""
    def probe(self, rate_bps: float, size: float, packets: int = 5) -> int:
        """Sends a cluster of packets at a rate of its own: `size` bytes, and so many packets at least; gives the number
        by which `PacketFate.probe` names it. Raises ValueError."""
