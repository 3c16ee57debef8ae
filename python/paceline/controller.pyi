"""The base classes of your own controllers: see `controller.py`."""

from typing import final

@final
class Random:
    """A controller's random-number stream, keyed by the run's seed and the flow's name."""

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
        """An integer from 0 to `many` - 1. Raises ValueError if `many` is 0."""

class _Controller:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def random(self) -> Random:
        """The source of the controller's random draws, so that a run can be repeated."""
    @property
    def flow(self) -> str:
        """The flow that it controls; empty for an object that was created outside a run."""
    @property
    def profile(self) -> str:
        """The flow's profile: "rfc", "ns2", "ns2-linux" or "linux"."""

class WindowController(_Controller):
    """Base class of TCP controllers, which set a window. docs/your-own-controller.md lists the callbacks.

    Assigning a value outside the sender's range raises ValueError.
    """

    window: float
    """In segments: 1 to 1e9, initially 1."""
    threshold: float
    """Slow-start threshold in segments; initially infinite."""
    pacing_bps: float
    """Pacing rate in bits of payload a second, with `needs` pacing; initially infinite."""
    send_quantum_bytes: float
    """Bytes that may leave in one burst while pacing."""
    base_rtt_s: float | None
    """Its estimate of the path's round-trip time without a queue, if it has one."""
    holds_back: bool
    """Whether it deliberately limits its rate now, so that delivery-rate samples do not measure the path."""

class RateController(_Controller):
    """Base class of TFRC controllers, which set a rate from a receiver's reports.

    Assigning a value outside the sender's range raises ValueError.
    """

    rate_bps: float
    """The allowed sending rate (X), in bits of payload a second."""
    @property
    def pacing_bps(self) -> float:
        """The rate at which packets leave now (X_inst); None: `rate_bps`."""
    @pacing_bps.setter
    def pacing_bps(self, value: float | None) -> None: ...
    in_slow_start: bool
    """Whether no loss has been reported yet."""

class MediaController(_Controller):
    """Base class of controllers of RTP media, which set a sending rate and an encoder's target.

    Assigning a value outside the sender's range raises ValueError.
    """

    rate_bps: float
    """The allowed sending rate, in bits on the wire a second, including all headers."""
    target_bps: float | None
    """The encoder's target rate; None: what `rate_bps` allows."""
    filling_bps: float
    """The rate up to which padding packets are sent."""
    window_bytes: float | None
    """The limit on bytes in flight, measured on the wire; None: no window."""
    @property
    def frame_period_s(self) -> float | None:
        """The interval at which the application writes frames; None if it writes none."""
    def probe(self, rate_bps: float, size: float, packets: int = 5) -> int:
        """Sends a probe cluster at `rate_bps`, of `size` bytes and at least `packets` packets; returns the number that
        `PacketFate.probe` holds. Raises ValueError."""
