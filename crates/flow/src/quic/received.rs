//! Received packets, and when they are acknowledged (RFC 9000 section 13.2).

use super::ranges::Ranges;
use paceline_packet::quic::AckRange;
use paceline_packet::{Block, Flags, Packet};
use paceline_units::{Span, Time};

/// Maximum number of ranges in an acknowledgement; older ones are dropped (section 13.2.3).
const MAX_ACK_RANGES: usize = 32;

/// The packet numbers received, and when and how to acknowledge them.
#[derive(Debug)]
pub(super) struct Received {
    ranges: Ranges,
    /// Packets below this are ignored, because they may be duplicates.
    floor: u64,
    /// When the largest number arrived.
    largest_at: Time,
    /// Ack-eliciting packets: the number not acknowledged yet, and the largest number.
    waiting: u32,
    largest_ack_eliciting: Option<u32>,
    /// When an acknowledgement must be sent at the latest.
    due: Time,
    /// Number of packets received with ECT and with CE.
    ect: u32,
    ce: u32,
    /// Acknowledge after this many packets, and after this delay (draft-ietf-quic-ack-frequency may change both).
    threshold: u32,
    delay: Span,
    /// When to send the next PING, so that the other end acknowledges this end's acknowledgements.
    pub(super) next_ping: Time,
}

impl Received {
    /// The state before the first packet, whose number is at least `base`.
    pub(super) fn new(threshold: u16, delay: Span, base: u32) -> Received {
        Received {
            ranges: Ranges::default(),
            floor: u64::from(base),
            largest_at: Time::ZERO,
            waiting: 0,
            largest_ack_eliciting: None,
            due: Time::NEVER,
            ect: 0,
            ce: 0,
            threshold: u32::from(threshold.max(1)),
            delay,
            next_ping: Time::ZERO,
        }
    }

    /// One past the largest number received.
    pub(super) fn next(&self) -> u32 {
        self.ranges.last().map_or(0, |last| last.end as u32)
    }

    /// Sets the first number; lower ones belong to the previous connection.
    pub(super) fn start_at(&mut self, base: u32) {
        self.floor = u64::from(base);
    }

    /// The other end requests acknowledgements after this many packets and this delay (ACK_FREQUENCY).
    pub(super) fn set_frequency(&mut self, threshold: u16, delay: Span) {
        (self.threshold, self.delay) = (u32::from(threshold.max(1)), delay);
    }

    /// Whether a packet with this number may be new.
    #[inline]
    pub(super) fn may_be_new(&self, number: u32) -> bool {
        u64::from(number) >= self.floor
    }

    /// Takes an unmarked ack-eliciting packet with the next number; `false`: nothing was done.
    #[inline(always)]
    pub(super) fn note_in_order(&mut self, now: Time, number: u32, flags: Flags) -> bool {
        let plain = self.ect == 0 && flags.0 & (Flags::CE.0 | Flags::ECT.0) == 0;
        let follows = self.largest_ack_eliciting.is_some_and(|largest| largest + 1 == number);
        if !(plain && follows && self.ranges.follow(u64::from(number)..u64::from(number) + 1)) {
            return false;
        }
        (self.largest_at, self.largest_ack_eliciting) = (now, Some(number));
        self.wait(now, false);
        true
    }

    /// Takes an unmarked non-ack-eliciting packet with the next number; `false`: nothing was done.
    #[inline]
    pub(super) fn note_silent_in_order(&mut self, packet: &Packet) -> bool {
        let number = u64::from(packet.seq);
        let plain = packet.flags.0 & (Flags::CE.0 | Flags::ECT.0) == 0;
        if !(plain && self.ranges.follow(number..number + 1)) {
            return false;
        }
        self.largest_at = packet.time;
        true
    }

    /// Schedules the acknowledgement of one more packet.
    #[inline]
    fn wait(&mut self, now: Time, at_once: bool) {
        self.waiting += 1;
        if at_once || self.waiting >= self.threshold {
            self.due = now;
        } else if self.due == Time::NEVER {
            self.due = now + self.delay;
        }
    }

    /// Takes a packet; `false`: it is a duplicate.
    #[inline]
    pub(super) fn note(&mut self, now: Time, number: u32, flags: Flags) -> bool {
        let largest = self.ranges.last().map(|range| range.end);
        let mut new = false;
        if !self.may_be_new(number) {
            return false;
        }
        let number = u64::from(number);
        self.ranges.insert(number..number + 1, |_| new = true);
        if !new {
            return false;
        }
        if largest.is_none_or(|end| number >= end) {
            self.largest_at = now;
        }
        if self.ranges.len() > MAX_ACK_RANGES {
            self.ranges.keep_last(MAX_ACK_RANGES);
            self.raise_floor();
        }
        // CE replaces the codepoint that the sender set
        if flags.has(Flags::CE) {
            self.ce += 1;
        } else if flags.has(Flags::ECT) {
            self.ect += 1;
        }
        true
    }

    /// Schedules the acknowledgement of an ack-eliciting packet; `at_once`: without delay, as in the handshake (section
    /// 13.2.1).
    #[inline]
    pub(super) fn want(&mut self, now: Time, number: u32, flags: Flags, at_once: bool) {
        // out of order, or after a hole
        let next = self.largest_ack_eliciting.map_or(number, |largest| largest + 1);
        let regular = number == next || number > next && self.is_whole(next, number);
        self.largest_ack_eliciting = Some(self.largest_ack_eliciting.map_or(number, |largest| largest.max(number)));
        self.wait(now, at_once || !regular || flags.has(Flags::CE));
    }

    /// Whether all numbers between these have arrived: packets that elicit no acknowledgement leave gaps between those
    /// that do.
    fn is_whole(&self, from: u32, to: u32) -> bool {
        self.ranges.last().is_some_and(|last| last.start <= u64::from(from) && u64::from(to) < last.end)
    }

    /// When an acknowledgement must be sent at the latest.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Cancels the scheduled acknowledgement.
    pub(super) fn end(&mut self) {
        self.due = Time::NEVER;
    }

    /// Whether an acknowledgement is due, now or later.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting > 0
    }

    /// Whether there are more ranges than [`Received::take`] returns.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.ranges.len() > 2
    }

    /// Whether there are several ranges, so that older ones need to be dropped at some time.
    #[inline]
    pub(super) fn has_holes(&self) -> bool {
        self.ranges.len() > 1
    }

    /// Builds the acknowledgement to send now, except for [`Received::more`]; `None` if nothing has arrived.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<AckRange> {
        let last = self.ranges.last()?;
        self.waiting = 0;
        self.due = Time::NEVER;
        let delay = super::rtt::between(self.largest_at, now).0 / 1000;
        Some(AckRange {
            largest: (last.end - 1) as u32,
            smallest: last.start as u32,
            delay: delay.min(u64::from(u32::MAX)) as u32,
            ect: self.ect,
            ce: self.ce,
            older: self.older().next().unwrap_or_default(),
        })
    }

    /// The acknowledgement's ranges after the first two.
    #[inline(never)]
    pub(super) fn more(&self) -> Box<[Block]> {
        self.older().skip(1).collect()
    }

    /// All ranges but the highest, in descending order.
    #[inline]
    fn older(&self) -> impl Iterator<Item = Block> {
        let block = |range: &core::ops::Range<u64>| Block { start: range.start as u32, end: range.end as u32 };
        self.ranges.iter().rev().skip(1).map(block)
    }

    /// The other end has received the acknowledgement of all packets up to `largest`: older ranges are dropped.
    pub(super) fn on_ack_acked(&mut self, largest: u32) {
        // the range that contains it stays, as the next acknowledgement begins there
        self.ranges.forget_below(u64::from(largest));
        self.raise_floor();
    }

    /// Raises the floor: packets of dropped ranges would be taken for new (section 13.2.3).
    fn raise_floor(&mut self) {
        self.floor = self.ranges.first().map_or(self.floor, |first| self.floor.max(first.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Span = Span::from_millis(25);

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn comes(received: &mut Received, at: u64, number: u32, flags: Flags) -> Time {
        assert!(received.note(ms(at), number, flags));
        received.want(ms(at), number, flags, false);
        received.due()
    }

    /// Section 13.2: acknowledge every second packet, after 25 ms, or at once after a gap or a mark.
    #[test]
    fn when_an_acknowledgement_leaves() {
        let mut received = Received::new(2, DELAY, 0);
        assert_eq!(comes(&mut received, 0, 0, Flags::NONE), ms(25));
        assert_eq!(comes(&mut received, 1, 1, Flags::NONE), ms(1));
        let (range, more) = (received.take(ms(1)).unwrap(), received.more());
        assert_eq!((range.largest, range.smallest, range.delay, more.len()), (1, 0, 0, 0));
        assert_eq!((received.due(), received.is_wanted()), (Time::NEVER, false));
        assert_eq!(comes(&mut received, 2, 3, Flags::NONE), ms(2), "a hole");
        received.take(ms(2));
        assert_eq!(comes(&mut received, 3, 2, Flags::NONE), ms(3), "late");
        received.take(ms(3));
        assert_eq!(comes(&mut received, 4, 4, Flags::NONE), ms(29));
        received.take(ms(4));
        assert_eq!(comes(&mut received, 5, 5, Flags::CE), ms(5), "marked");
        let range = received.take(ms(6)).unwrap();
        assert_eq!((range.ce, range.delay, range.smallest), (1, 1000, 0));
        // a non-ack-eliciting packet leaves no hole
        assert!(received.note(ms(7), 6, Flags::NONE));
        assert_eq!(comes(&mut received, 7, 7, Flags::NONE), ms(32));
        assert!(!received.note(ms(8), 7, Flags::NONE), "a copy");
    }

    #[test]
    fn many_holes_are_told_the_newest_first_and_forgotten_once_told() {
        let mut received = Received::new(2, DELAY, 0);
        for number in (0..200).step_by(2) {
            received.note(ms(0), number, Flags::NONE);
        }
        let (range, more) = (received.take(ms(0)).unwrap(), received.more());
        assert_eq!((range.largest, range.smallest, more.len()), (198, 198, MAX_ACK_RANGES - 2));
        assert_eq!(range.older, Block { start: 196, end: 197 });
        received.on_ack_acked(190);
        let more = received.more();
        assert_eq!(more.last(), Some(&Block { start: 190, end: 191 }));
        assert!(!received.note(ms(1), 100, Flags::NONE), "a copy of what was forgotten, for all that is known");
    }
}
