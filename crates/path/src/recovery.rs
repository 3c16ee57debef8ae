//! Recovery at the link layer: blocks that fail are sent again, and packets are handed over in order.
//!
//! A model of the acknowledged mode of UMTS' radio link control (3GPP TS 25.322), as far as packets above it feel it: time
//! of the transmitter that is used again, delay of the packets that wait for a block, and head-of-line blocking. What it
//! leaves out stands in docs/links.md.

use crate::loss::Chance;
use crate::rate::Server;
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How a link recovers from losses on the air.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkRecovery {
    /// How long the link, at its nominal rate, sends one block.
    pub block_time: Span,
    /// The probability that a block fails, each time that it is sent.
    pub block_error: Ratio,
    /// From the end of a block that failed to the end of its next attempt.
    pub delay: Span,
    /// How often a block is sent again at most; then its packet is lost.
    pub retransmissions: u32,
}

impl LinkRecovery {
    /// The payload of UMTS' usual protocol data unit, 320 bits: no block is smaller.
    pub const MIN_BLOCK: Size = Size(40);

    /// The bytes of a block at this nominal rate.
    #[must_use]
    pub fn block(&self, rate: Rate) -> Size {
        (rate * self.block_time).max(LinkRecovery::MIN_BLOCK)
    }
}

/// What became of a packet that was sent with recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    /// When its transmission began.
    pub start: u64,
    /// When it is handed over: it and every packet before it is whole, or given up. `u64::MAX`: never.
    pub end: u64,
    /// Whether a block of it was given up.
    pub lost: bool,
}

/// Recovery at work on one link.
#[derive(Clone, Debug)]
pub(crate) struct Recovering {
    block: u32,
    chance: Chance,
    delay: u64,
    retransmissions: u32,
    stream: Stream,
    /// Blocks that are to be sent again: from when, and their bytes. A higher block of one instant may come first: all of
    /// one instant take their time together.
    again: BinaryHeap<Reverse<(u64, u16)>>,
    /// Up to when packets have been handed over.
    handed: u64,
    /// Nanoseconds in which the transmitter had nothing to send before something was sent again.
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
            again: BinaryHeap::new(),
            handed: 0,
            idle: 0,
        }
    }

    /// What is to be sent again before anything that is there at `now`, is.
    pub(crate) fn catch_up(&mut self, server: &mut Server, now: u64) {
        while let Some(&Reverse((due, size))) = self.again.peek() {
            let free = server.free();
            if due > free.max(now) {
                break;
            }
            self.again.pop();
            self.idle += due.saturating_sub(free);
            server.serve(due.max(free), size);
        }
    }

    /// Sends the packet that arrived as number `index`, of `size` bytes that are there at `now`, block by block.
    pub(crate) fn serve(&mut self, server: &mut Server, index: u64, now: u64, size: u16) -> Served {
        let draws = self.stream.fork(index);
        let (mut rest, mut block) = (u32::from(size), 0);
        let mut served = Served { start: u64::MAX, end: self.handed, lost: false };
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
                    // It is known to have failed when its next attempt would be over.
                    served.lost = true;
                    break;
                }
                attempt += 1;
                self.again.push(Reverse((end, part)));
            }
            served.end = served.end.max(end);
            block += 1;
        }
        if served.end != u64::MAX {
            self.handed = served.end;
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
        // Sent at 0, again twice, known to be lost 20 ms after the second.
        assert_eq!(served, Served { start: 0, end: 61 * MS, lost: true });
        // What comes in between is sent as soon as the transmitter is free, after what is sent again at 21 ms.
        let (now, free) = (21 * MS + MS / 2, 22 * MS);
        link.catch_up(&mut server, now);
        assert_eq!((server.free(), link.idle), (free, 20 * MS));
        assert_eq!(link.serve(&mut server, 1, now, 1000).start, free);
    }

    /// Attempts are geometric: the mean delay of a block alone is that of its failures, p / (1 - p) of them, and the
    /// transmitter works 1 / (1 - p) times as long.
    #[test]
    fn means_are_those_of_a_geometric_number_of_attempts() {
        let (mut link, mut server) = link(0.3, 50);
        let (n, gap) = (20_000, 1000 * MS);
        let delays: u64 = (0..n).map(|i| link.serve(&mut server, i, i * gap, 1000).end - i * gap).sum();
        let mean = delays as f64 / n as f64 / MS as f64;
        // Standard deviation of the number of failures: sqrt(p) / (1 - p); four of them over the root of n.
        let expected = 1.0 + 20.0 * 0.3 / 0.7;
        assert!((mean - expected).abs() < 4.0 * 20.0 * 0.3f64.sqrt() / 0.7 / (n as f64).sqrt(), "{mean} {expected}");
        // The same under load: what was sent again is in the time that the whole took.
        let (mut link, mut server) = self::link(0.3, 50);
        assert!((0..n).all(|i| !link.serve(&mut server, i, 0, 1000).lost));
        let each = server.free() as f64 / n as f64 / MS as f64;
        assert!((each - 1.0 / 0.7).abs() < 4.0 * 0.3f64.sqrt() / 0.7 / (n as f64).sqrt() + 0.01, "{each}");
    }

    /// With few blocks, the share of packets that are lost is that of blocks that fail every time.
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
