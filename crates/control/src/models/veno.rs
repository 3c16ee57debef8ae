//! Veno's throughput: the PFTK model with any mean window factor gamma in place of 1/2.
//!
//! Source: B. Zhou, C. P. Fu, V. O. K. Li, "TFRC Veno: an enhancement of TCP friendly rate control over wired/wireless
//! networks", equations (4) to (16); gamma itself is in [`super::gamma`]. Departures from the printed equations, each
//! derived again from (9) and (10): the inner 1/2 that (11) and (12) lack and (14) has; the bracket of (13), whose 1 is
//! outside the root. The paper gives the model with timeouts and a window limit only in its approximate form; [`full`]
//! follows the steps of [`super::reno`]'s source with gamma, and at gamma = 1/2 is the same as that source.

use super::reno::{cycle, limited};
use super::{Factor, LossRate, PacketsPerSecond, PerAck, Seconds, TcpPath};

/// E[W] in packets, equation (11) with the inner 1/2: the mean window at a loss, without a limit.
#[must_use]
pub fn window(p: LossRate, per_ack: PerAck, gamma: Factor) -> f64 {
    let (p, b, g) = (p.get(), per_ack.get(), gamma.get());
    let square = b * (1.0 - g * g);
    let offset = (b * (1.0 - g) + 1.0) / (2.0 * square);
    offset + (2.0 * (1.0 - p) / (square * p) + offset * offset).sqrt()
}

/// E[X] = b (1-gamma) E[W], equations (9) and (12): the mean number of rounds from a loss to the next one.
#[must_use]
pub fn rounds(p: LossRate, per_ack: PerAck, gamma: Factor) -> f64 {
    per_ack.get() * (1.0 - gamma.get()) * window(p, per_ack, gamma)
}

/// E[A] = RTT (E[X] + 1) in seconds, equations (6) and (13): the mean time from a loss to the next one.
#[must_use]
pub fn period(p: LossRate, rtt: Seconds, per_ack: PerAck, gamma: Factor) -> f64 {
    rtt.get() * (rounds(p, per_ack, gamma) + 1.0)
}

/// B(p) = ((1-p)/p + E[W]) / E[A], equation (14): without timeouts and without a window limit.
#[must_use]
pub fn duplicates_only(p: LossRate, rtt: Seconds, per_ack: PerAck, gamma: Factor) -> PacketsPerSecond {
    let sent = (1.0 - p.get()) / p.get() + window(p, per_ack, gamma);
    PacketsPerSecond::of(sent / period(p, rtt, per_ack, gamma))
}

/// Equation (15), the limit of equation (14) for small p: 1/RTT sqrt((1+gamma) / (2b (1-gamma) p)).
#[must_use]
pub fn square_root(p: LossRate, rtt: Seconds, per_ack: PerAck, gamma: Factor) -> PacketsPerSecond {
    let (p, b, g) = (p.get(), per_ack.get(), gamma.get());
    PacketsPerSecond::of(((1.0 + g) / (2.0 * b * (1.0 - g) * p)).sqrt() / rtt.get())
}

/// The full model: B(p) with timeouts and the receive window. At p = 1 it is the limit, 1 / (64 T_0).
///
/// With the limit W_max, the window grows from gamma W_max for b (1-gamma) W_max rounds and then is constant until
/// (1-p)/p + W_max packets are sent. Where the limit begins to apply, the rate jumps by (1 - b (1-gamma)) / 2 of a
/// round; Reno's does too, unless b = 2.
#[must_use]
pub fn full(p: LossRate, path: &TcpPath, gamma: Factor) -> PacketsPerSecond {
    let (b, g, loss, limit) = (path.per_ack.get(), gamma.get(), p.get(), path.limit.get());
    let unlimited = window(p, path.per_ack, gamma);
    let (window, rounds) = if unlimited < limit {
        (unlimited, rounds(p, path.per_ack, gamma) + 1.0)
    } else {
        (limit, b * (1.0 - g) * (1.0 - g) / 2.0 * limit + (1.0 - loss) / (loss * limit) + 2.0)
    };
    cycle(p, path, window, path.rtt.get() * rounds)
}

/// The approximate model, equation (16): min(W_max/RTT, 1 / (RTT sqrt(2b(1-gamma)p/(1+gamma)) + T_0 min(1, 3
/// sqrt(b(1-gamma^2)p/2)) p (1 + 32 p^2))).
#[must_use]
pub fn approximate(p: LossRate, path: &TcpPath, gamma: Factor) -> PacketsPerSecond {
    let (loss, rtt) = (p.get(), path.rtt.get());
    let [root, share] = roots(path.per_ack, gamma);
    let share = (3.0 * (share * loss).sqrt()).min(1.0);
    let timeouts = path.rto.get() * share * loss * (1.0 + 32.0 * loss * loss);
    limited(path.limit, rtt, 1.0 / (rtt * (root * loss).sqrt() + timeouts))
}

/// The factors of p under the two roots: 2b(1-gamma)/(1+gamma) and b(1-gamma^2)/2.
pub(super) fn roots(per_ack: PerAck, gamma: Factor) -> [f64; 2] {
    let (b, g) = (per_ack.get(), gamma.get());
    [2.0 * b * (1.0 - g) / (1.0 + g), b * (1.0 - g * g) / 2.0]
}
