"""Throughput models from the literature: what a controller should reach on a path (docs/models.md).

    from paceline import models
    models.reno([0.001, 0.01, 0.1], rtt_s=0.05)                    # packets/s
    models.tfrc(0.01, rtt_s=[[0.01], [0.1]], segment_bytes=1000)   # bytes/s
    gamma = models.gamma(rtt_s=0.12, base_rtt_s=0.1, w_max_packets=30)
    models.veno(0.01, rtt_s=0.12, gamma=gamma)

Every argument is a number or an array. Arguments are broadcast as in NumPy, and the result has the common shape, () if
all are numbers. With masked arrays, the result is masked wherever an argument is, and masked values are not checked. An
argument outside its domain raises ArgumentError (a PacelineError and a ValueError), which gives its name, its value and
the allowed range. Times are in seconds, sizes in bytes, windows in packets. The functions are those of the simulator's
core: TFRC's controllers use them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline import _core
from paceline.arguments import ARRAY, checked
from paceline.errors import ArgumentError

Array = NDArray[np.float64]
TimeoutTerm = Literal["plain", "at-most-one"]


ARRAYS = dict.fromkeys(
    (
        "backlog_packets",
        "base_rtt_s",
        "beta_packets",
        "capacity_packets_per_s",
        "gamma",
        "p",
        "packets_per_ack",
        "rate_bytes_per_s",
        "rto_s",
        "rtt_s",
        "segment_bytes",
        "theta1",
        "theta2",
        "total_backlog_packets",
        "w_max_packets",
    ),
    ARRAY,
)
"""All numerical arguments of models."""


class Equilibrium(NamedTuple):
    """The equilibrium of a Vegas flow."""

    rate_packets_per_s: Array
    """Its share of the bottleneck."""
    window_packets: Array
    """Its window: rate times base round-trip time, plus its backlog."""
    queueing_delay_s: Array
    """The queue's part of the round-trip time; the same for all flows."""


@checked(**ARRAYS)
def reno(
    p: ArrayLike,
    rtt_s: ArrayLike,
    *,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    w_max_packets: ArrayLike = np.inf,
) -> Array:
    """Reno's throughput in packets/s: the full PFTK model, with timeouts and the receiver's window.

    p: loss event rate, in (0, 1]. rtt_s: round-trip time, above 0. rto_s: first timeout, above 0 (default 4 rtt_s).
    packets_per_ack: b, at least 1; 2 with delayed ACKs. w_max_packets: the receiver's window, at least 1.
    Source: Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998. Raises ArgumentError outside of the domains.
    """
    return _one("reno", p, rtt_s, _timeout(rto_s, rtt_s), packets_per_ack, w_max_packets)


@checked(**ARRAYS)
def reno_approximate(
    p: ArrayLike,
    rtt_s: ArrayLike,
    *,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    w_max_packets: ArrayLike = np.inf,
) -> Array:
    """Reno's throughput in packets/s: the approximate PFTK model. Arguments and errors: as `reno`."""
    return _one("reno-approximate", p, rtt_s, _timeout(rto_s, rtt_s), packets_per_ack, w_max_packets)


@checked(**ARRAYS)
def veno(
    p: ArrayLike,
    rtt_s: ArrayLike,
    gamma: ArrayLike,
    *,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    w_max_packets: ArrayLike = np.inf,
) -> Array:
    """Veno's throughput in packets/s, full: with timeouts and the receiver's window.

    gamma: mean factor that a loss multiplies the window by, in [0, 1): see the function `gamma`; 1/2 gives `reno`.
    Other arguments and errors: as `reno`.
    Source: Zhou, Fu, Li, "TFRC Veno", equations (4) to (13), with the timeouts of PFTK.
    """
    return _one("veno", p, rtt_s, gamma, _timeout(rto_s, rtt_s), packets_per_ack, w_max_packets)


@checked(**ARRAYS)
def veno_approximate(
    p: ArrayLike,
    rtt_s: ArrayLike,
    gamma: ArrayLike,
    *,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    w_max_packets: ArrayLike = np.inf,
) -> Array:
    """Veno's throughput in packets/s, approximate: equation (16). Arguments and errors: as `veno`."""
    return _one("veno-approximate", p, rtt_s, gamma, _timeout(rto_s, rtt_s), packets_per_ack, w_max_packets)


@checked(**ARRAYS)
def veno_duplicates(
    p: ArrayLike, rtt_s: ArrayLike, gamma: ArrayLike, *, packets_per_ack: ArrayLike = 1
) -> Array:
    """Veno's throughput in packets/s without timeouts and window limit: equation (14). Errors: as `veno`."""
    return _one("veno-duplicates", p, rtt_s, gamma, packets_per_ack)


@checked(**ARRAYS)
def veno_square_root(
    p: ArrayLike, rtt_s: ArrayLike, gamma: ArrayLike, *, packets_per_ack: ArrayLike = 1
) -> Array:
    """What `veno_duplicates` tends to for small p: equation (15), in packets/s. Errors: as `veno`."""
    return _one("veno-square-root", p, rtt_s, gamma, packets_per_ack)


@checked(**ARRAYS)
def veno_window(p: ArrayLike, gamma: ArrayLike, *, packets_per_ack: ArrayLike = 1) -> Array:
    """Veno's mean window at a loss in packets, without timeouts and window limit: equation (11), corrected."""
    return _one("veno-window", p, gamma, packets_per_ack)


@checked(**ARRAYS)
def gamma(
    rtt_s: ArrayLike,
    base_rtt_s: ArrayLike,
    w_max_packets: ArrayLike,
    *,
    theta1: ArrayLike = 0.8,
    theta2: ArrayLike = 0.5,
    beta_packets: ArrayLike = 3,
) -> Array:
    """The mean factor by which a loss multiplies Veno's window, between theta2 and theta1: equation (20).

    base_rtt_s: minimum round-trip time, at most rtt_s; equality gives theta1. w_max_packets: maximum window, at least
    1. theta1: factor at a random loss (0.95 for TFRC Veno), in [theta2, 1). theta2: factor at a congestion loss.
    beta_packets: a loss with fewer packets than this in the queue counts as random.
    Source: Zhou, Fu, Li, "TFRC Veno", equation (20). Raises ArgumentError outside of the domains.
    """
    return _one("gamma", rtt_s, base_rtt_s, w_max_packets, theta1, theta2, beta_packets)


@checked(**ARRAYS)
def tfrc(
    p: ArrayLike,
    rtt_s: ArrayLike,
    *,
    segment_bytes: ArrayLike = 1460,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    timeout_term: TimeoutTerm = "plain",
) -> Array:
    """TFRC's equation, X_Bps of RFC 5348, in bytes/s.

    p: loss event rate, in (0, 1]. rtt_s: R. segment_bytes: s. rto_s: t_RTO (default 4 R). packets_per_ack: b.
    timeout_term: "plain" as in the RFC, or "at-most-one": the share of losses that end in timeouts, 3 sqrt(3bp/8), is
    capped at 1, as in ns-2 and PFTK.
    Source: RFC 5348, section 3.1. Raises ArgumentError outside of the domains.
    """
    return _one(_tfrc("tfrc", timeout_term), p, rtt_s, segment_bytes, _timeout(rto_s, rtt_s), packets_per_ack)


@checked(**ARRAYS)
def tfrc_veno(
    p: ArrayLike,
    rtt_s: ArrayLike,
    gamma: ArrayLike,
    *,
    segment_bytes: ArrayLike = 1460,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    timeout_term: TimeoutTerm = "plain",
) -> Array:
    """TFRC Veno's equation in bytes/s: equation (22), in the form of RFC 5348; gamma 1/2 gives `tfrc`.

    gamma: the function `gamma` with theta1=0.95. Other arguments and errors: as `tfrc`.
    """
    name = _tfrc("tfrc-veno", timeout_term)
    return _one(name, p, rtt_s, gamma, segment_bytes, _timeout(rto_s, rtt_s), packets_per_ack)


@checked(**ARRAYS)
def tfrc_loss_rate(
    rate_bytes_per_s: ArrayLike,
    rtt_s: ArrayLike,
    gamma: ArrayLike = 0.5,
    *,
    segment_bytes: ArrayLike = 1460,
    rto_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
    timeout_term: TimeoutTerm = "plain",
) -> Array:
    """The loss event rate at which `tfrc_veno` (with gamma 1/2: `tfrc`) gives the rate: its inverse, to 13 digits.

    rate_bytes_per_s: above 0 and at least the equation's minimum, its value at p = 1. Other arguments: as `tfrc_veno`.
    RFC 5348, section 6.3.1, derives TFRC's first loss interval from it. Raises ArgumentError outside of the domains.
    """
    name = _tfrc("tfrc-veno", timeout_term)
    timeout = _timeout(rto_s, rtt_s)
    columns = (rate_bytes_per_s, rtt_s, gamma, segment_bytes, timeout, packets_per_ack)
    return _evaluate(name, columns, inverse=True)[0]


@checked(**ARRAYS)
def vegas(
    capacity_packets_per_s: ArrayLike,
    base_rtt_s: ArrayLike,
    backlog_packets: ArrayLike,
    total_backlog_packets: ArrayLike,
) -> Equilibrium:
    """The equilibrium of a Vegas flow at one bottleneck without loss.

    capacity_packets_per_s: the bottleneck's rate. base_rtt_s: the flow's round-trip time without a queue.
    backlog_packets: the flow's packets in the queue, from its alpha to its beta. total_backlog_packets: those of all
    flows, at least backlog_packets; for N equal flows N times backlog_packets. Rates are proportional to backlogs.
    Source: Low, Peterson, Wang, JACM 49(2), 2002. Raises ArgumentError outside of the domains.
    """
    columns = (capacity_packets_per_s, base_rtt_s, backlog_packets, total_backlog_packets)
    return Equilibrium(*_evaluate("vegas", columns))


def _timeout(rto_s: ArrayLike | None, rtt_s: ArrayLike) -> ArrayLike:
    return 4 * np.asarray(rtt_s, dtype=np.float64) if rto_s is None else rto_s


def _tfrc(name: str, timeout_term: TimeoutTerm) -> str:
    suffixes = {"plain": "", "at-most-one": "-ns2"}
    if timeout_term not in list(suffixes):  # a list, since an unhashable value must not raise TypeError
        raise ArgumentError(f"timeout_term = {timeout_term!r}: it must be {' or '.join(suffixes)}")
    return name + suffixes[timeout_term]


def _one(name: str, *arguments: ArrayLike) -> Array:
    return _evaluate(name, arguments)[0]


def _evaluate(name: str, arguments: tuple[ArrayLike, ...], *, inverse: bool = False) -> list[Array]:
    arrays = [np.asarray(a, dtype="<f8") for a in arguments]
    try:
        columns = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(dict.fromkeys(str(array.shape) for array in arrays if array.shape))
        raise ArgumentError(f"the arguments' shapes {shapes} cannot be broadcast to a common one") from None
    shape = columns[0].shape
    if any(isinstance(a, np.ma.MaskedArray) for a in arguments):
        return _masked(name, columns, _mask(arguments, shape), inverse=inverse)
    try:
        found = _core.model(name, [column.tobytes() for column in columns], inverse=inverse)
    except ValueError as error:
        raise ArgumentError(str(error)) from None
    return [np.frombuffer(column, dtype="<f8").reshape(shape).astype(np.float64) for column in found]


def _mask(arguments: tuple[ArrayLike, ...], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Where any of the arguments is masked."""
    mask = np.zeros(shape, dtype=np.bool_)
    for argument in arguments:
        mask |= np.broadcast_to(np.ma.getmaskarray(np.ma.asanyarray(argument)), shape)
    return mask


def _masked(name: str, columns: Sequence[Array], mask: NDArray[np.bool_], *, inverse: bool) -> list[Array]:
    """Evaluates the model at unmasked places only; masked places stay masked."""
    found = _evaluate(name, tuple(column[~mask] for column in columns), inverse=inverse)
    results: list[Array] = []
    for values in found:
        whole = np.zeros(mask.shape, dtype=np.float64)
        whole[~mask] = values
        results.append(np.ma.MaskedArray(whole, mask=mask))
    return results
