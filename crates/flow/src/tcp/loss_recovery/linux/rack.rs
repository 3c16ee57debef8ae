//! RACK: a segment is lost if one sent later has arrived, and the reordering window has passed (RFC 8985).

use crate::tcp::connection::DUPLICATES;
use crate::tcp::scoreboard::{Delivered, Scoreboard};
use paceline_units::{Span, Time};

/// After this number of recoveries without a DSACK, the reordering window returns to its minimum (RFC 8985 section 6.2
/// step 4).
const PERSISTENCE: u32 = 16;

/// The state of RFC 8985 section 5.3.
#[derive(Debug)]
pub(super) struct Rack {
    /// The most recently sent segment that has arrived: its transmission time, its number, its round-trip time.
    newest: Option<(Time, u32)>,
    rtt: Span,
    pub(super) min_rtt: Option<Span>,
    /// A segment has arrived since the last check for losses.
    pub(super) advanced: bool,
    pub(super) reordering_seen: bool,
    /// DSACKs count once per round, which ends with this segment.
    dsack_round: Option<u32>,
    multiple: u32,
    persist: u32,
}

/// The result of a check for losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Retransmissions among the segments now lost.
    pub(super) again: u32,
    /// The time until the next check, if segments must wait.
    pub(super) wait: Option<Span>,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            newest: None,
            rtt: Span::ZERO,
            min_rtt: None,
            advanced: false,
            reordering_seen: false,
            dsack_round: None,
            multiple: 1,
            persist: 0,
        }
    }

    /// Section 6.2 steps 1 and 2: a segment has arrived. `highest`: one past the highest that had arrived before.
    #[inline(always)]
    pub(super) fn arrived(&mut self, now: Time, delivered: &Delivered, highest: u32) {
        let Delivered { seq, sent, retransmitted, .. } = *delivered;
        let rtt = now.since(sent);
        // step 3: below the highest arrived segment, and sent once
        if seq < highest && !retransmitted {
            self.reordering_seen = true;
        }
        if !retransmitted {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        } else if self.min_rtt.is_some_and(|m| rtt < m) {
            return; // the original has arrived, not its retransmission (step 2)
        }
        self.advanced = true;
        self.rtt = rtt;
        if self.newest.is_none_or(|newest| (sent, seq) > newest) {
            self.newest = Some((sent, seq));
        }
    }

    /// Section 6.2 step 4: adapts to DSACKs. `una` and `next`: the bounds of outstanding data.
    pub(super) fn adapt(&mut self, dsack: bool, una: u32, next: u32) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(next);
            self.multiple = (self.multiple + 1).min(255); // Linux keeps a byte
            self.persist = PERSISTENCE;
        }
    }

    /// A recovery has ended.
    pub(super) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }

    /// The reordering window. It is zero without known reordering, if a recovery is under way or DupThresh segments are
    /// SACKed; otherwise a quarter of the minimum round-trip time, times `multiple`, at most SRTT.
    pub(super) fn window(&self, recovering: bool, sacked: u32, srtt: Span) -> Span {
        if !self.reordering_seen && (recovering || sacked >= DUPLICATES) {
            return Span::ZERO;
        }
        let min_rtt = self.min_rtt.unwrap_or(Span::ZERO).0;
        Span((min_rtt * u64::from(self.multiple) / 4).min(srtt.0))
    }

    /// The age at which a segment sent before the newest arrived one is lost.
    pub(super) fn limit(&self, window: Span) -> Span {
        self.rtt + window
    }

    /// Section 6.2 step 5: marks segments lost, in order of transmission.
    #[inline(always)]
    pub(super) fn detect(&mut self, now: Time, segments: &mut Scoreboard, window: Span) -> Found {
        self.advanced = false;
        match self.newest {
            Some(newest) if !segments.is_ordered() || segments.judge(newest) => {
                self.detect_among(now, newest, segments, self.limit(window))
            }
            _ => Found::default(), // usually all segments sent before have arrived or are lost already
        }
    }

    /// [`Rack::detect`] if segments in flight were sent before the newest that has arrived.
    #[inline(never)]
    fn detect_among(&mut self, now: Time, newest: (Time, u32), segments: &mut Scoreboard, limit: Span) -> Found {
        let mut found = Found::default();
        if segments.is_ordered() {
            let last = segments.last_judged();
            while let Some((seq, sent)) = segments.oldest_judged() {
                if now.since(sent) < limit {
                    // The last one must wait longest.
                    found.wait = last.map(|sent| Span(limit.0 - now.since(sent).0));
                    break;
                }
                found.again += u32::from(segments.lose(seq));
            }
            return found;
        }
        let mut at = segments.oldest();
        while let Some((seq, sent)) = at.filter(|&(seq, sent)| (sent, seq) < newest) {
            at = segments.after(seq);
            let elapsed = now.since(sent);
            if elapsed >= limit {
                found.again += u32::from(segments.lose(seq));
            } else {
                let wait = Span(limit.0 - elapsed.0);
                found.wait = Some(found.wait.map_or(wait, |w| w.max(wait)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_packet::Block;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// Sends ten segments, one per millisecond from 0 on; those of `arrive` are reported at `now`.
    fn after(rack: &mut Rack, arrive: &[(u32, u32)], now: Time) -> Scoreboard {
        let mut sent = Scoreboard::new(0, true);
        for seq in 0..10 {
            sent.leaves(seq, ms(u64::from(seq)));
        }
        for &(start, end) in arrive {
            let blocks = [Block { start, end }, Block::default(), Block::default()];
            let highest = sent.forward();
            sent.reported(&blocks, |d| rack.arrived(now, &d, highest));
        }
        sent
    }

    #[test]
    fn rfc_8985_6_2_step_5_lost_is_what_was_sent_before_and_long_enough_ago() {
        let mut rack = Rack::new();
        let mut sent = after(&mut rack, &[(3, 6)], ms(105));
        assert!(rack.advanced);
        // three SACKed: no reordering window; 5 was sent at 5 ms and took 100 ms
        let window = rack.window(false, sent.sacked(), Span::from_millis(100));
        assert_eq!(window, Span::ZERO);
        let found = rack.detect(ms(105), &mut sent, window);
        assert_eq!((sent.lost(), found), (3, Found::default()));
        assert_eq!(sent.oldest().map(|o| o.0), Some(6), "what was sent later is not judged");
    }

    #[test]
    fn rfc_8985_6_2_step_4_the_reordering_window() {
        let srtt = Span::from_millis(100);
        let mut rack = Rack::new();
        let mut sent = after(&mut rack, &[(3, 5)], ms(104));
        // two SACKed: a quarter of the minimum round-trip time, and a timer for the rest
        let window = rack.window(false, sent.sacked(), srtt);
        assert_eq!(window, Span::from_millis(25));
        let found = rack.detect(ms(104), &mut sent, window);
        // 4 took 100 ms; 2 was sent 102 ms ago and may take 125
        assert_eq!((sent.lost(), found.wait), (0, Some(Span::from_millis(23))));
        rack.detect(ms(127), &mut sent, window);
        assert_eq!(sent.lost(), 3);
        // in recovery without reordering: no wait
        assert_eq!(rack.window(true, 0, srtt), Span::ZERO);
        let _ = after(&mut rack, &[(3, 5), (2, 3)], ms(104));
        assert!(rack.reordering_seen, "step 3");
        assert_eq!(rack.window(true, 5, srtt), Span::from_millis(25));
    }

    #[test]
    fn rfc_8985_6_2_step_4_grows_with_dsacks_once_a_round() {
        let srtt = Span::from_millis(100);
        let mut rack = Rack::new();
        let _ = after(&mut rack, &[(3, 5), (2, 3)], ms(104));
        rack.adapt(true, 0, 10);
        rack.adapt(true, 5, 12); // the same round
        assert_eq!(rack.window(false, 0, srtt), Span::from_millis(50));
        rack.adapt(true, 10, 20);
        assert_eq!(rack.window(false, 0, srtt), Span::from_millis(75));
        for round in 2..9 {
            rack.adapt(true, round * 10, round * 10 + 10);
        }
        assert_eq!(rack.window(false, 0, srtt), srtt, "at most SRTT");
        for _ in 0..15 {
            rack.recovered();
        }
        assert_eq!(rack.window(false, 0, srtt), srtt);
        rack.recovered();
        assert_eq!(rack.window(false, 0, srtt), Span::from_millis(25), "16 recoveries without a DSACK");
    }

    #[test]
    fn rfc_8985_6_2_step_2_a_round_trip_below_the_least_is_of_the_original() {
        let mut rack = Rack::new();
        rack.arrived(ms(100), &Delivered { seq: 0, place: 0, sent: ms(0), retransmitted: false, number: None }, 0);
        rack.arrived(ms(110), &Delivered { seq: 1, place: 1, sent: ms(90), retransmitted: true, number: Some(0) }, 1);
        assert_eq!(rack.newest, Some((ms(0), 0)));
        rack.arrived(ms(190), &Delivered { seq: 1, place: 1, sent: ms(90), retransmitted: true, number: Some(0) }, 1);
        assert_eq!(rack.newest, Some((ms(90), 1)));
    }

    /// A list in order of transmission is judged from its ends. The result is that of a full search, whatever is
    /// reported, lost, retransmitted and found again.
    #[test]
    fn judges_by_the_ends_as_one_after_the_other() {
        use paceline_random::{Sequence, Stream};
        let (mut waits, mut disordered) = (0, 0);
        for seed in 0..300 {
            let mut draws = Sequence::new(Stream::new(seed, "rack"));
            let mut below = |n: u32| (draws.unit() * f64::from(n)) as u32;
            let mut pairs = [(Rack::new(), Scoreboard::new(0, true)), (Rack::new(), Scoreboard::new(0, true))];
            let (mut una, mut next, mut now) = (0, 0, 0);
            for _ in 0..200 {
                now += u64::from(below(4));
                let (what, a, b, many) = (below(10), below(40), below(8), below(6));
                let arrives = Block { start: una + a, end: una + a + b };
                let acked = (una + below(4)).min(next);
                let found = pairs.each_mut().map(|(rack, sent)| {
                    let highest = sent.forward();
                    match what {
                        0..3 => (next..next + many).for_each(|seq| _ = sent.leaves(seq, ms(now))),
                        3..5 => {
                            for _ in 0..many {
                                let Some(seq) = sent.next_lost() else { break };
                                sent.leaves(seq, ms(now));
                            }
                        }
                        5..8 => sent.reported(&[arrives, Block::default(), Block::default()], |d| {
                            rack.arrived(ms(now), &d, highest);
                        }),
                        8 => sent.acked(acked, |d| rack.arrived(ms(now), &d, highest)),
                        _ if many == 0 => sent.found(),
                        _ => {}
                    }
                    highest
                });
                assert_eq!(found[0], found[1]);
                next += if what < 3 { many } else { 0 };
                una = if what == 8 { acked } else { una };
                let window = Span::from_millis(u64::from(below(12)));
                disordered += u32::from(!pairs[0].1.is_ordered());
                pairs[1].1.take_for_disordered();
                let found = pairs.each_mut().map(|(rack, sent)| rack.detect(ms(now), sent, window));
                assert_eq!(found[0], found[1], "seed {seed}");
                waits += u32::from(found[0].wait.is_some());
                let [one, other] = pairs.each_ref().map(|(_, sent)| {
                    let listed = core::iter::successors(sent.oldest(), |&(seq, _)| sent.after(seq));
                    (listed.collect::<Vec<_>>(), sent.lost(), sent.retransmitted(), sent.sacked(), sent.in_flight())
                });
                assert_eq!(one, other, "seed {seed}");
            }
        }
        assert!(waits > 1000 && disordered > 100, "{waits} {disordered}");
    }
}
