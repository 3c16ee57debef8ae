//! What a sender of RFC 6675 owes to the network, whatever that does: nothing that was reported is sent again, no more is in
//! flight than the window lets, and a receiver that drops what it has reported gets it all the same.

use crate::segments::packet;
use paceline_control::{Profile, TcpController, WindowController, registry};
use paceline_flow::Segment;
use paceline_flow::tcp::{TcpConfig, TcpSender};
use paceline_packet::{Block, Flags, Stamp, TcpOptions};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// An acknowledgement under way: the next segment expected, and blocks.
type Ack = (u32, Vec<(u32, u32)>);

/// A receiver that acknowledges every segment.
#[derive(Default)]
struct Receiver {
    next: u32,
    beyond: BTreeSet<u32>,
}

impl Receiver {
    fn arrived(&mut self, seq: u32) -> Ack {
        if seq >= self.next {
            self.beyond.insert(seq);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        // the block with the segment first, then the highest (RFC 2018 section 4)
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        for &seq in &self.beyond {
            match blocks.last_mut().filter(|b| b.1 == seq) {
                Some(block) => block.1 += 1,
                None => blocks.push((seq, seq + 1)),
            }
        }
        blocks.reverse();
        blocks.sort_by_key(|b| !(b.0..b.1).contains(&seq));
        blocks.truncate(3);
        (self.next, blocks)
    }
}

/// What the sender has been told.
#[derive(Default)]
struct SenderView {
    una: u32,
    reported: BTreeSet<u32>,
    highest: u32,
}

impl SenderView {
    fn of(&mut self, (next, blocks): &Ack) {
        if *next < self.una {
            return;
        }
        self.una = *next;
        self.reported.extend(blocks.iter().flat_map(|&(start, end)| start..end));
        self.reported = self.reported.split_off(&self.una);
    }

    /// Neither reported nor lost by RFC 6675's IsLost: SetPipe without its second step, and so at most the pipe.
    fn pipe(&self) -> usize {
        let lost_below = self.reported.iter().nth_back(2).copied().unwrap_or(0);
        (self.una.max(lost_below)..=self.highest).filter(|s| !self.reported.contains(s)).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sender_keeps_to_what_it_is_told(
        scheme in proptest::sample::select(vec!["sack", "cubic"]),
        window in prop_oneof![1u32..20, Just(100)],
        limited_transmit in any::<bool>(),
        prr in any::<bool>(),
        segments in 1u64..300,
        fates in proptest::collection::vec(any::<u8>(), 0..600),
        drops in prop_oneof![Just(0u8), 1u8..40],
    ) {
        let named = registry::scheme(scheme).unwrap();
        let config = TcpConfig { initial_window: window, limited_transmit, prr, ..TcpConfig::new(Profile::Rfc, named) };
        let controller = TcpController::new(named, Profile::Rfc, &[]).unwrap();
        let mut sender = TcpSender::new(&config, controller, Stream::new(1, "test"));
        let (mut now, mut out) = (Time(1_000_000), Vec::new());
        sender.supply(segments * 1460, now, &mut out);
        sender.start(now, &mut out);
        let (mut receiver, mut view) = (Receiver::default(), SenderView::default());
        let (mut there, mut back): (VecDeque<u32>, VecDeque<Ack>) = Default::default();
        let mut fates = fates.into_iter();
        let mut steps = 0;
        let (mut fresh, mut before, mut prior, mut cuts) = (false, 0, 0, 0);
        while !sender.acked_all() {
            steps += 1;
            prop_assert!(steps < 40_000, "stalled: {sender:?}");
            let segments: Vec<Segment> = core::mem::take(&mut out);
            for s in &segments {
                prop_assert!(s.seq >= view.una);
                // unless the receiver is one that drops what it has, of which the sender cannot know at once
                prop_assert!(drops > 0 || !view.reported.contains(&s.seq), "{} again, though reported", s.seq);
                fresh |= s.seq > view.highest;
                view.highest = view.highest.max(s.seq);
                there.push_back(s.seq);
            }
            let allowed = sender.controller().window();
            prop_assert!(allowed >= 1.0 && sender.controller().threshold() >= 2.0);
            // an acknowledgement that lets new segments go does not lessen the window
            // and what is in flight when it begins to be reduced does not grow while it shrinks (RFC 9937)
            let (pipe, allowed) = (view.pipe(), allowed as usize);
            if sender.stats().window_cuts > cuts {
                (cuts, prior) = (sender.stats().window_cuts, before);
            }
            let max_pipe = if prr { allowed.max(prior) } else { allowed };
            prop_assert!(drops > 0 || !fresh || pipe <= max_pipe, "{pipe} in {max_pipe}");
            before = pipe;
            fresh = false;
            let fate = fates.next().unwrap_or(0);
            if fate > 255 - drops {
                receiver.beyond.clear();
            }
            now += Span::from_millis(1);
            // lost, late, or in order; acknowledgements likewise
            match (fate % 8, there.is_empty(), back.is_empty()) {
                (_, true, true) => {
                    now = now.max(sender.next_wake());
                    sender.on_timer(now, &mut out);
                }
                (7, false, _) => drop(there.pop_front()),
                (6, false, _) if there.len() > 1 => there.swap(0, 1),
                (5, _, false) => drop(back.pop_front()),
                (4, _, false) if back.len() > 1 => back.swap(0, 1),
                (n, false, _) if n < 2 || back.is_empty() => {
                    let seq = there.pop_front().unwrap();
                    back.push_back(receiver.arrived(seq));
                }
                _ => {
                    let Some(ack) = back.pop_front() else { continue };
                    view.of(&ack);
                    let mut extra = TcpOptions::NONE;
                    for (slot, &(start, end)) in extra.sack.iter_mut().zip(&ack.1) {
                        *slot = Block { start, end };
                    }
                    let s = Segment { seq: ack.0, stamp: Stamp::at(now), size: 40, flags: Flags::ACK, extra: None };
                    sender.on_ack(now, &packet(now, &s), (!ack.1.is_empty()).then_some(&extra), &mut out);
                }
            }
            sender.on_timer(now, &mut out);
        }
        prop_assert_eq!(u64::from(receiver.next), segments + 1);
    }
}
