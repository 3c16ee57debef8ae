//! Losses, which count as congestion if several consecutive round trips have some.

use super::Fated;

/// This many consecutive round trips with losses are congestion; this many without losses end it.
const UP: f64 = 3.0;
const DOWN: f64 = 2.0;
/// The level from which on it is congestion.
const CONGESTION: f64 = 0.99;

/// How close losses are to congestion.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    virtual_rtt: i64,
    /// From 0 to 1.
    pub(super) level: f64,
    lost: bool,
    since: Option<i64>,
}

impl Losses {
    pub(super) fn new(virtual_rtt: i64) -> Losses {
        Losses { virtual_rtt, level: 0.0, lost: false, since: None }
    }

    /// Updates the level; returns whether the feedback reports a loss.
    pub(super) fn update(&mut self, now: i64, packets: &[Fated], rtt: i64) -> bool {
        let lost = packets.iter().any(|packet| packet.arrival.is_none());
        self.lost |= lost;
        if self.since.is_none_or(|since| now - since >= self.virtual_rtt.max(rtt)) {
            self.since = Some(now);
            self.level = if self.lost { (self.level + 1.0 / UP).min(1.0) } else { (self.level - 1.0 / DOWN).max(0.0) };
            self.lost = false;
        }
        lost
    }

    pub(super) fn is_congestion(&self) -> bool {
        self.level >= CONGESTION
    }
}
