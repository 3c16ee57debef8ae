//! Limits a sender to the rate that its receiver granted, whatever its congestion control allows.
//!
//! It acts as a link in front of the network: a datagram leaves when those before it have left at this rate. A datagram
//! is dropped if it would wait for longer than [`LONGEST`], or if [`MAX_WAITING`] are already waiting; to its sender
//! that looks like any full queue.

use super::outbox::Outgoing;
use super::{EcnBits, Outbox};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Maximum waiting time of a datagram.
const LONGEST: Span = Span::from_millis(200);
/// Maximum number of waiting datagrams, however short they are: 200 ms at 2 Gbit/s. Each takes some hundred bytes; its
/// payload takes none.
const MAX_WAITING: usize = 1 << 15;
/// Maximum time by which a datagram may leave early: so short a wait would cost a wake-up per datagram, and no network
/// would preserve the spacing.
const EARLY: Span = Span::from_micros(100);

#[derive(Debug)]
struct Waiting {
    leaves: Time,
    header: Vec<u8>,
    payload: u16,
    ecn: EcnBits,
}

/// The virtual link.
#[derive(Debug, Default)]
pub(super) struct Shaper {
    /// Bytes per second; `None`: everything leaves at once.
    rate: Option<u32>,
    free: Time,
    queue: VecDeque<Waiting>,
}

impl Shaper {
    /// Sets the granted rate from now on. The lowest rate ever granted applies.
    pub(super) fn grant(&mut self, rate: u32) {
        self.rate = Some(self.rate.map_or(rate, |before| before.min(rate)));
    }

    /// Removes the limit: everything leaves at once.
    pub(super) fn lift(&mut self, now: Time, out: &mut Outbox) {
        self.rate = None;
        for waiting in &mut self.queue {
            waiting.leaves = waiting.leaves.min(now);
        }
        self.release(now, out);
    }

    /// Adds a datagram to `out` now or later; returns false if it is dropped.
    pub(super) fn send(&mut self, now: Time, datagram: &Outgoing<'_>, out: &mut Outbox) -> bool {
        let Some(rate) = self.rate else {
            out.push_copy(datagram);
            return true;
        };
        // earlier datagrams leave first
        self.release(now, out);
        let leaves = now.max(Time(self.free.0.saturating_sub(EARLY.0)));
        if leaves.since(now) > LONGEST || self.queue.len() >= MAX_WAITING {
            return false;
        }
        let takes = datagram.len() as f64 / f64::from(rate.max(1));
        self.free = self.free.max(now) + Span::from_secs_f64(takes);
        if leaves <= now {
            out.push_copy(datagram);
        } else {
            let (header, payload, ecn) = (datagram.header.to_vec(), datagram.payload, datagram.ecn);
            self.queue.push_back(Waiting { leaves, header, payload, ecn });
        }
        true
    }

    /// When the next datagram leaves.
    pub(super) fn next_wake(&self) -> Time {
        self.queue.front().map_or(Time::NEVER, |first| first.leaves)
    }

    /// Sends the datagrams that are due.
    pub(super) fn release(&mut self, now: Time, out: &mut Outbox) {
        while self.next_wake() <= now
            && let Some(first) = self.queue.pop_front()
        {
            let Waiting { header, payload, ecn, .. } = first;
            out.push_copy(&Outgoing { header: &header, payload, ecn });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: Outgoing<'_> = Outgoing { header: &[1; 20], payload: 980, ecn: EcnBits::NotEct };

    #[test]
    fn a_rate_is_kept_and_what_waits_too_long_is_dropped() {
        let mut shaper = Shaper::default();
        let mut out = Outbox::default();
        assert!(shaper.send(Time::ZERO, &DATAGRAM, &mut out) && out.len() == 1, "no rate, no wait");
        out.clear();
        shaper.grant(100_000);
        shaper.grant(500_000);
        let sent = (0..40).filter(|_| shaper.send(Time::ZERO, &DATAGRAM, &mut out)).count();
        // 10 ms each: those that wait for up to 200 ms
        assert_eq!((sent, out.len()), (21, 1));
        let mut times = vec![];
        while shaper.next_wake() != Time::NEVER {
            times.push(shaper.next_wake());
            shaper.release(times[times.len() - 1], &mut out);
        }
        assert_eq!(out.len(), 21);
        assert!(times.windows(2).all(|w| w[1].since(w[0]) == Span::from_millis(10)), "{times:?}");
        assert!(out.iter().all(|datagram| datagram == DATAGRAM));
    }

    #[test]
    fn none_overtakes_another() {
        let (mut shaper, mut out) = (Shaper::default(), Outbox::default());
        shaper.grant(100_000);
        let numbers: Vec<[u8; 4]> = (0_u32..60).map(u32::to_be_bytes).collect();
        // bursts of three, of which two are still waiting at the next burst, since no timer runs meanwhile
        for (i, number) in numbers.iter().enumerate() {
            let now = Time(35_000_000 * (i as u64 / 3));
            shaper.send(now, &Outgoing { header: number, payload: 996, ecn: EcnBits::NotEct }, &mut out);
        }
        shaper.release(Time::NEVER, &mut out);
        let left: Vec<&[u8]> = out.iter().map(|datagram| datagram.header).collect();
        assert_eq!(left.len(), 60);
        assert!(left.is_sorted());
    }

    #[test]
    fn what_waits_leaves_when_the_rate_is_lifted() {
        let (mut shaper, mut out) = (Shaper::default(), Outbox::default());
        shaper.grant(100_000);
        (0..5).for_each(|_| assert!(shaper.send(Time::ZERO, &DATAGRAM, &mut out)));
        assert_eq!(out.len(), 1);
        shaper.lift(Time(1), &mut out);
        assert!(out.len() == 5 && shaper.next_wake() == Time::NEVER);
        assert!((0..100).all(|_| shaper.send(Time(1), &DATAGRAM, &mut out)) && out.len() == 105);
    }
}
