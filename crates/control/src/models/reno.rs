//! Reno's throughput: the PFTK model.
//!
//! Source: J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP throughput: a simple model and its empirical
//! validation", SIGCOMM 1998 (IEEE/ACM Transactions on Networking 8(2), 2000): section II-A covers losses found by
//! triple duplicates, II-B adds timeouts, II-C the receive window. p is the probability of loss of a packet that is the
//! first of its round or whose predecessor in the round is not lost; the rest of the round is lost with it, so p counts
//! loss events, not packets.

use super::{LossRate, PacketsPerSecond, PerAck, TcpPath, Window};
use libm::{expm1, log1p};

/// E[W_u] in packets: the mean window at a loss, without a limit.
#[must_use]
pub fn window(p: LossRate, per_ack: PerAck) -> f64 {
    let (p, b) = (p.get(), per_ack.get());
    let offset = (2.0 + b) / (3.0 * b);
    offset + (8.0 * (1.0 - p) / (3.0 * b * p) + offset * offset).sqrt()
}

/// E[X]: the mean number of rounds from a loss to the next one, without a limit.
#[must_use]
pub fn rounds(p: LossRate, per_ack: PerAck) -> f64 {
    let (p, b) = (p.get(), per_ack.get());
    let offset = (2.0 + b) / 6.0;
    offset + (2.0 * b * (1.0 - p) / (3.0 * p) + offset * offset).sqrt()
}

/// Q-hat(w): the share of losses that end in a timeout, if the window was `window` packets. With at most three packets
/// there are too few duplicates; with a large window and a small p, about three in `window` losses end so.
#[must_use]
pub fn timeout_share(p: LossRate, window: f64) -> f64 {
    if window <= 3.0 {
        return 1.0;
    }
    let (p, pass) = (p.get(), log1p(-p.get()));
    let three = (1.0 - p) * (1.0 - p) * (1.0 - p);
    // 1 - (1-p)^n, accurate for small p
    let any = |n: f64| -expm1(n * pass);
    (any(3.0) * (1.0 + three * any(window - 3.0)) / any(window)).min(1.0)
}

/// f(p): a sequence of timeouts lasts T_0 f(p) / (1-p) on average, each twice as long as the one before, up to 64 T_0.
#[must_use]
pub fn backoff(p: LossRate) -> f64 {
    let p = p.get();
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

/// The full model: B(p) with timeouts and the receive window. At p = 1 it is the limit, 1 / (64 T_0).
///
/// The published formula is discontinuous between its two branches unless b = 2: there the rate changes by a quarter of
/// a round at b = 1.
#[must_use]
pub fn full(p: LossRate, path: &TcpPath) -> PacketsPerSecond {
    let (rtt, b, limit) = (path.rtt.get(), path.per_ack.get(), path.limit.get());
    let unlimited = window(p, path.per_ack);
    let loss = p.get();
    let (window, rounds) = if unlimited < limit {
        (unlimited, rounds(p, path.per_ack) + 1.0)
    } else {
        (limit, b / 8.0 * limit + (1.0 - loss) / (loss * limit) + 2.0)
    };
    cycle(p, path, window, rounds * rtt)
}

/// B(p) of a cycle: periods between losses in which (1-p)/p + W packets are sent in `period` seconds; the share
/// Q-hat(W) ends in timeouts. Both sides are multiplied by 1-p, so that p = 1 has a value.
pub(super) fn cycle(p: LossRate, path: &TcpPath, window: f64, period: f64) -> PacketsPerSecond {
    let (loss, pass) = (p.get(), 1.0 - p.get());
    let timeouts = timeout_share(p, window);
    let sent = pass * (pass / loss + window) + timeouts;
    let time = pass * period + timeouts * path.rto.get() * backoff(p);
    debug_assert!(sent > 0.0 && time > 0.0);
    PacketsPerSecond::of(sent / time)
}

/// The approximate model: min(W_max/RTT, 1 / (RTT sqrt(2bp/3) + T_0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))).
#[must_use]
pub fn approximate(p: LossRate, path: &TcpPath) -> PacketsPerSecond {
    let (loss, rtt, b) = (p.get(), path.rtt.get(), path.per_ack.get());
    let duplicates = rtt * (2.0 * b * loss / 3.0).sqrt();
    let share = (3.0 * (3.0 * b * loss / 8.0).sqrt()).min(1.0);
    let timeouts = path.rto.get() * share * loss * (1.0 + 32.0 * loss * loss);
    limited(path.limit, rtt, 1.0 / (duplicates + timeouts))
}

/// Limits the rate to the receive window per round trip.
pub(super) fn limited(limit: Window, rtt: f64, rate: f64) -> PacketsPerSecond {
    PacketsPerSecond::of(rate.min(limit.get() / rtt))
}
