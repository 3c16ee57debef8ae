//! Link-layer recovery: failed blocks are retransmitted, and packets are delivered in order.
//!
//! A model of the acknowledged mode of UMTS' radio link control (3GPP TS 25.322), as far as its effects on packets:
//! transmitter time used by retransmissions, delay of packets that wait for a block, and head-of-line blocking.
//! docs/links.md lists what it leaves out.

use crate::loss::Chance;
use crate::rate::Server;
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How a link recovers from losses on the air.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkRecovery {
    /// The transmission time of a block at the link's nominal rate.
    pub block_time: Span,
    /// The probability that a transmission of a block fails.
    pub block_error: Ratio,
    /// From the end of a failed block to the end of its next attempt.
    pub delay: Span,
    /// The maximum number of retransmissions of a block; then its packet is lost.
    pub retransmissions: u32,
}

impl LinkRecovery {
    /// The payload of UMTS' usual protocol data unit, 320 bits: the minimum block size.
    pub const MIN_BLOCK: Size = Size(40);

    /// The block size at this nominal rate.
    #[must_use]
    pub fn block(&self, rate: Rate) -> Size {
        (rate * self.block_time).max(LinkRecovery::MIN_BLOCK)
    }
}

/// The outcome of a packet sent with recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    /// When its transmission began.
    pub start: u64,
    /// When it is delivered: it and all packets before it are complete or given up. `u64::MAX`: never.
    pub end: u64,
    /// Whether a block of it was given up.
    pub lost: bool,
}

/// The recovery state of a link.
#[derive(Clone, Debug)]
pub(crate) struct Recovering {
    block: u32,
    chance: Chance,
    delay: u64,
    retransmissions: u32,
    stream: Stream,
    /// Blocks to be retransmitted: when, and their size. Of blocks due at the same instant a later one may go first;
    /// together they take the same time.
    pending_retransmissions: BinaryHeap<Reverse<(u64, u16)>>,
    /// When the latest packet is delivered.
    last_delivery: u64,
    /// Nanoseconds in which the transmitter idled before a retransmission.
    pub(crate) idle: u64,
}

impl Recovering {
    /// # Panics
    /// If the probability lies outside [0, 1].
    pub(crate) fn new(model: &LinkRecovery, nominal: Rate, stream: Stream) -> Recovering {
        Recovering {
            block: u32::try_from(model.block(nominal).bytes()).unwrap_or(u32::MAX),
            chance: Chance::new(model.block_error),
            delay: model.delay.0,
            retransmissions: model.retransmissions,
            stream,
            pending_retransmissions: BinaryHeap::new(),
            last_delivery: 0,
            idle: 0,
        }
    }

    /// Sends the retransmissions that precede a packet available at `now`.
    pub(crate) fn catch_up(&mut self, server: &mut Server, now: u64) {
        while let Some(&Reverse((due, size))) = self.pending_retransmissions.peek() {
            let free = server.free();
            if due > free.max(now) {
                break;
            }
            self.pending_retransmissions.pop();
            self.idle += due.saturating_sub(free);
            server.serve(due.max(free), size);
        }
    }

    /// Sends the packet with arrival index `index`, of `size` bytes, available at `now`, block by block.
    pub(crate) fn serve(&mut self, server: &mut Server, index: u64, now: u64, size: u16) -> Served {
        let draws = self.stream.fork(index);
        let (mut rest, mut block) = (u32::from(size), 0);
        let mut served = Served { start: u64::MAX, end: self.last_delivery, lost: false };
        while rest > 0 || block == 0 {
            self.catch_up(server, now);
            let part = rest.min(self.block) as u16;
            rest -= u32::from(part);
            let (start, mut end) = server.serve(now, part);
            served.start = served.start.min(start);
            let mut attempt = 0;
            while end != u64::MAX && self.chance.happens(draws.fork(block).bits(u64::from(attempt))) {
                end = end.saturating_add(self.delay);
                if attempt == self.retransmissions {
                    // The failure is known when the next attempt would have ended.
                    served.lost = true;
                    break;
                }
                attempt += 1;
                self.pending_retransmissions.push(Reverse((end, part)));
            }
            served.end = served.end.max(end);
            block += 1;
        }
        if served.end != u64::MAX {
            self.last_delivery = served.end;
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateModel;

    const MS: u64 = 1_000_000;

    /// Blocks of 1000 bytes that take 1 ms.
    fn link(block_error: f64, retransmissions: u32) -> (Recovering, Server) {
        let model = LinkRecovery {
            block_time: Span::from_millis(1),
            block_error: Ratio(block_error),
            delay: Span::from_millis(20),
            retransmissions,
        };
        let rate = Rate::from_bps(8_000_000);
        let server = Server::new(&RateModel::Constant(rate));
        (Recovering::new(&model, rate, Stream::new(1, "recovery")), server)
    }

    #[test]
    fn without_errors_it_is_the_link_alone() {
        let (mut link, mut server) = link(0.0, 3);
        for (index, now, size, start, end) in
            [(0, 0, 1500, 0, 1500), (1, 0, 300, 1500, 1800), (2, 9000, 40, 9000, 9040)]
        {
            let served = link.serve(&mut server, index, now * 1000, size);
            assert_eq!(served, Served { start: start * 1000, end: end * 1000, lost: false });
        }
    }

    #[test]
    fn a_block_that_always_fails_is_given_up_and_uses_the_transmitter_each_time() {
        let (mut link, mut server) = link(1.0, 2);
        let served = link.serve(&mut server, 0, 0, 1000);
        // Sent at 0, retransmitted twice, known to be lost 20 ms after the second retransmission.
        assert_eq!(served, Served { start: 0, end: 61 * MS, lost: true });
        // A packet in between is sent when the transmitter is free, after the retransmission at 21 ms.
        let (now, free) = (21 * MS + MS / 2, 22 * MS);
        link.catch_up(&mut server, now);
        assert_eq!((server.free(), link.idle), (free, 20 * MS));
        assert_eq!(link.serve(&mut server, 1, now, 1000).start, free);
    }

    /// The number of attempts is geometric: a lone block fails p / (1 - p) times on average, which gives its mean
    /// delay, and the transmitter works 1 / (1 - p) times as long.
    #[test]
    fn means_are_those_of_a_geometric_number_of_attempts() {
        let (mut link, mut server) = link(0.3, 50);
        let (n, gap) = (20_000, 1000 * MS);
        let delays: u64 = (0..n).map(|i| link.serve(&mut server, i, i * gap, 1000).end - i * gap).sum();
        let mean = delays as f64 / n as f64 / MS as f64;
        // Standard deviation of the number of failures: sqrt(p) / (1 - p); four of them over the square root of n.
        let expected = 1.0 + 20.0 * 0.3 / 0.7;
        assert!((mean - expected).abs() < 4.0 * 20.0 * 0.3f64.sqrt() / 0.7 / (n as f64).sqrt(), "{mean} {expected}");
        // Under load: the total time includes the retransmissions.
        let (mut link, mut server) = self::link(0.3, 50);
        assert!((0..n).all(|i| !link.serve(&mut server, i, 0, 1000).lost));
        let each = server.free() as f64 / n as f64 / MS as f64;
        assert!((each - 1.0 / 0.7).abs() < 4.0 * 0.3f64.sqrt() / 0.7 / (n as f64).sqrt() + 0.01, "{each}");
    }

    /// With few blocks, the packet loss rate follows from the probability that a block fails every time.
    #[test]
    fn what_is_lost_has_failed_every_time() {
        let (mut link, mut server) = link(0.4, 3);
        let n = 40_000u64;
        let lost = (0..n).filter(|&i| link.serve(&mut server, i, i * 1000 * MS, 2000).lost).count() as f64;
        let block = 0.4f64 * 0.4 * 0.4 * 0.4;
        let expected = 1.0 - (1.0 - block) * (1.0 - block);
        let deviation = (expected * (1.0 - expected) * n as f64).sqrt();
        assert!((lost - expected * n as f64).abs() < 4.0 * deviation, "{lost} {}", expected * n as f64);
    }

    #[test]
    fn order_is_kept() {
        let (mut link, mut server) = link(0.4, 5);
        let (mut last, mut blocked) = (0, 0);
        for i in 0..10_000 {
            let served = link.serve(&mut server, i, i * 3 * MS, 900);
            assert!(served.end >= last && served.end >= served.start);
            blocked += u64::from(served.end == last);
            last = served.end;
        }
        assert!(blocked > 1000, "packets wait for a block of one ahead of them: {blocked}");
    }
}
