//! Pacing of TCP and of QUIC's rate controllers: a quantum is sent at once, and the next one when the rate has covered
//! it.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Pacing Rate" and "Send Quantum". As in Linux
//! `tcp_update_skb_after_send`, a late timer gives credit, which shortens each following gap by at most half.

use paceline_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    /// C.next_send_time, and a fraction of a nanosecond to add to it.
    next: Time,
    fraction: f64,
    /// The start of the current quantum, and the bytes left of it.
    began: Time,
    left: u32,
    /// How late the current quantum is, minus what following gaps have made up for, in nanoseconds.
    credit: f64,
}

impl Pacing {
    pub(crate) fn new() -> Pacing {
        Pacing { next: Time::ZERO, fraction: 0.0, began: Time::NEVER, left: 0, credit: 0.0 }
    }

    /// When the next segment may be sent; a time not after `now` means at once, with up to `quantum` bytes.
    #[inline]
    pub(crate) fn due(&mut self, now: Time, quantum: impl FnOnce() -> u32) -> Time {
        if self.began == now && self.left > 0 {
            return now;
        }
        if self.next <= now {
            (self.began, self.left) = (now, quantum().max(1));
            self.credit = 0.0;
            if self.next < now {
                self.credit = if self.next > Time::ZERO { float(now.since(self.next)) } else { 0.0 };
                (self.next, self.fraction) = (now, 0.0);
            }
        }
        self.next
    }

    /// When the next segment may be sent, if not now.
    #[inline(always)]
    pub(crate) fn waits(&self, now: Time) -> Option<Time> {
        let begun = self.began == now && self.left > 0;
        (self.next > now && !begun).then_some(self.next)
    }

    /// Charges a segment of `bytes` at `rate` bytes per second.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, bytes: u32, rate: f64) {
        self.left = self.left.saturating_sub(bytes);
        if self.next < now {
            (self.next, self.fraction) = (now, 0.0); // a probe, sent without calling `due`
        }
        let whole = f64::from(bytes) * 1e9 / rate;
        // never negative
        let early = if self.credit < whole / 2.0 { self.credit } else { whole / 2.0 };
        self.credit -= early;
        let nanos = whole - early + self.fraction;
        let span = Span(nanos as i64 as u64);
        self.next += span;
        self.fraction = nanos - float(span);
    }
}

/// Converts nanoseconds, below 292 years; through i64, which takes one instruction.
#[inline(always)]
fn float(span: Span) -> f64 {
    span.0 as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 B at 3 MB/s take 333,333.3 ns; two are sent at once.
    #[test]
    fn a_quantum_leaves_at_once_and_the_rate_is_exact() {
        let mut pacing = Pacing::new();
        let (mut now, mut sent) = (Time::ZERO, 0_u64);
        let mut bursts = Vec::new();
        while sent < 3_000_000 {
            let before = sent;
            while pacing.due(now, || 2000) <= now {
                pacing.sent(now, 1000, 3e6);
                sent += 1000;
            }
            bursts.push(sent - before);
            now = pacing.due(now, || 2000);
        }
        assert!(bursts.iter().all(|&b| b == 2000), "{bursts:?}");
        assert!(now.0.abs_diff(1_000_000_000) <= 1, "{now:?}");
    }

    #[test]
    fn a_late_timer_is_made_up_for_by_half_at_most() {
        let mut pacing = Pacing::new();
        assert_eq!(pacing.due(Time::ZERO, || 1000), Time::ZERO);
        pacing.sent(Time::ZERO, 1000, 1e6); // 1 ms each
        let late = Time(1_200_000);
        assert!(pacing.due(late, || 1000) <= late);
        pacing.sent(late, 1000, 1e6);
        assert_eq!(pacing.due(late, || 1000), Time(2_000_000), "0.2 ms late, and as if it had not been");
        let later = Time(20_000_000);
        assert!(pacing.due(later, || 1000) <= later);
        pacing.sent(later, 1000, 1e6);
        assert_eq!(pacing.due(later, || 1000), Time(20_500_000), "a pause gives no more than half a gap");
    }
}
