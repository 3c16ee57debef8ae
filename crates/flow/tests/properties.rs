//! Properties that hold whatever the network or a hostile peer does, for every scheme under every profile.

use crate::segments::packet;
use paceline_control::{Ecn, Machine, Profile, Recovery, Scheme, TcpController, WindowController, registry};
use paceline_flow::Segment;
use paceline_flow::tcp::{PartialAcks, TcpConfig, TcpReceiver, TcpSender};
use paceline_packet::{Block, Extra, Flags, Stamp, TcpOptions};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use proptest::prelude::*;
use std::num::NonZeroU32;

/// Any scheme, any profile, any settings.
fn setting() -> impl Strategy<Value = (TcpConfig, TcpController)> {
    let schemes: Vec<&'static Scheme> = registry::schemes().filter(|s| matches!(s.machine, Machine::Tcp(_))).collect();
    (
        proptest::sample::select(schemes),
        proptest::sample::select(Profile::ALL.to_vec()),
        proptest::option::of(proptest::sample::select(Recovery::ALL.to_vec())),
        any::<[bool; 6]>(),
        prop_oneof![Just(1 << 30), 1u32..40],
    )
        .prop_map(|(scheme, profile, recovery, [steady, limited, ecn, handshake, spaced, prr], receive_window)| {
            let defaults = TcpConfig::new(profile, scheme);
            let config = TcpConfig {
                recovery: recovery.unwrap_or(defaults.recovery),
                partial_acks: if steady { PartialAcks::SlowButSteady } else { PartialAcks::Impatient },
                limited_transmit: limited,
                ecn: if ecn { Ecn::Classic } else { Ecn::Off },
                prr,
                handshake,
                receive_window,
                send_overhead: if spaced { Span::from_micros(800) } else { Span::ZERO },
                whole_segments: false,
                ..defaults
            };
            (config, TcpController::new(scheme, profile, &[]).unwrap())
        })
}

/// SACK blocks, and a receive window.
type Extras = ([(u32, u32); 3], Option<u32>);

#[derive(Clone, Debug)]
enum Event {
    /// An acknowledgement: of this share of what was sent, with these SACK blocks.
    Ack {
        share: u32,
        beyond: i32,
        flags: u16,
        stamp: u32,
        blocks: Option<Extras>,
    },
    /// Time passes, and the timer is asked.
    Wait {
        micros: u64,
    },
    Supply {
        bytes: u64,
    },
    Restart,
    Stop,
}

fn event() -> impl Strategy<Value = Event> {
    let near = || (0u32..300, 0u32..300);
    let block = || prop_oneof![4 => near().boxed(), 1 => (any::<u32>(), any::<u32>()).boxed()];
    let blocks =
        proptest::option::of(([near().boxed(), block().boxed(), block().boxed()], proptest::option::of(any::<u32>())));
    let beyond = prop_oneof![4 => Just(0), 1 => any::<i32>()];
    let flags = prop_oneof![Just(1u16), any::<u16>()];
    prop_oneof![
        8 => (0u32..=100, beyond, flags, any::<u32>(), blocks)
            .prop_map(|(share, beyond, flags, stamp, blocks)| Event::Ack { share, beyond, flags, stamp, blocks }),
        3 => prop_oneof![0u64..1000, 0u64..3_000_000].prop_map(|micros| Event::Wait { micros }),
        1 => (0u64..200_000).prop_map(|bytes| Event::Supply { bytes }),
        1 => Just(Event::Restart),
        1 => Just(Event::Stop),
    ]
}

fn sound(sender: &TcpSender) {
    let window = sender.controller().window();
    assert!(window.is_finite() && window >= 1.0, "window {window}");
    assert!(sender.controller().threshold() >= 1.0);
    assert!(sender.stats().window_integral.is_finite());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// No sequence of acknowledgements, however absurd, panics, spoils the window, or stalls the sender for ever.
    #[test]
    fn a_sender_survives_anything((config, controller) in setting(), events in proptest::collection::vec(event(), 0..120)) {
        let mut now = Time(1_000_000);
        let mut out: Vec<Segment> = Vec::new();
        let mut sender = TcpSender::new(&config, controller, Stream::new(1, "test"));
        sender.supply(50_000, now, &mut out);
        sender.start(now, &mut out);
        let (mut highest, mut stopped) = (0u32, false);
        for event in events {
            if let Some(top) = out.iter().map(|s| s.seq + 1).max() {
                highest = highest.max(top);
            }
            out.clear();
            match event {
                Event::Ack { share, beyond, flags, stamp, blocks } => {
                    let seq = ((u64::from(highest) * u64::from(share) / 100) as u32).wrapping_add_signed(beyond);
                    let extra = blocks.map(|(blocks, window)| TcpOptions {
                        sack: blocks.map(|(start, end)| Block { start, end }),
                        window: window.and_then(NonZeroU32::new),
                    });
                    let ack = Segment { seq, stamp: Stamp(stamp), size: 40, flags: Flags(flags), extra: None };
                    sender.on_ack(now, &packet(now, &ack), extra.as_ref(), &mut out);
                }
                Event::Wait { micros } => {
                    now += Span::from_micros(micros);
                    sender.on_timer(now, &mut out);
                }
                Event::Supply { bytes } => sender.supply(bytes, now, &mut out),
                Event::Restart => {
                    sender.restart(now);
                    sender.start(now, &mut out);
                    stopped = false;
                }
                Event::Stop => {
                    sender.stop();
                    stopped = true;
                }
            }
            sound(&sender);
        }
        // an honest peer from here on: everything is acknowledged, and the window stands open
        let _ = stopped;
        if let Some(top) = out.iter().map(|s| s.seq + 1).max() {
            highest = highest.max(top);
        }
        let mut steps = 0;
        while !sender.acked_all() {
            steps += 1;
            prop_assert!(steps < 20_000, "stalled: {sender:?}");
            out.clear();
            let wake = sender.next_wake();
            let ack = Segment { seq: highest, stamp: Stamp::at(now), size: 40, flags: Flags::ACK, extra: None };
            now += Span::from_millis(10);
            sender.on_ack(now, &packet(now, &ack), None, &mut out);
            if out.is_empty() && !sender.acked_all() {
                let wake = sender.next_wake().min(wake);
                prop_assert!(wake != Time::NEVER, "nothing left to wake for: {sender:?}");
                now = now.max(wake);
                sender.on_timer(now, &mut out);
            }
            if let Some(top) = out.iter().map(|s| s.seq + 1).max() {
                highest = highest.max(top);
            }
            sound(&sender);
        }
    }

    /// Whatever is lost, duplicated or reordered, every byte arrives exactly once, and the transfer ends.
    #[test]
    fn a_transfer_is_exact(
        (config, controller) in setting(),
        writes in proptest::collection::vec(1u64..30_000, 1..6),
        fates in proptest::collection::vec(0u8..=255, 0..400),
        twice in any::<bool>(),
    ) {
        let mut now = Time(1_000_000);
        let mut sender = TcpSender::new(&config, controller, Stream::new(1, "test"));
        let mut receiver = TcpReceiver::new(&config);
        let mut fates = fates.into_iter();
        let mut expected = 0;
        for _ in 0..=u8::from(twice) {
            let mut out: Vec<Segment> = Vec::new();
            for bytes in &writes {
                sender.supply(*bytes, now, &mut out);
                expected += bytes;
            }
            sender.start(now, &mut out);
            let mut network: Vec<(Segment, bool)> = Vec::new();
            let mut steps = 0;
            while !sender.acked_all() {
                steps += 1;
                prop_assert!(steps < 50_000, "stalled: {sender:?} {receiver:?}");
                network.extend(out.drain(..).map(|s| (s, false)));
                if network.is_empty() {
                    let wake = sender.next_wake().min(receiver.next_wake());
                    prop_assert!(wake != Time::NEVER, "nothing left to wake for: {sender:?} {receiver:?}");
                    now = now.max(wake);
                } else {
                    now += Span::from_millis(1);
                    let fate = fates.next().unwrap_or(0);
                    // in order, or any other; lost one time in eight while fates last; doubled one time in eight
                    let i = if fate & 3 == 3 { usize::from(fate >> 2) % network.len() } else { 0 };
                    let (segment, back) = if fate >> 5 == 6 { network[i].clone() } else { network.remove(i) };
                    if fate >> 5 != 7 {
                        if back {
                            let ack = packet(now, &segment);
                            sender.on_ack(now, &ack, segment.extra.as_ref().and_then(Extra::tcp), &mut out);
                        } else {
                            let mut data = packet(now, &segment);
                            if fate >> 5 == 5 && data.flags.has(Flags::ECT) {
                                data.flags = data.flags.with(Flags::CE);
                            }
                            let mut acks: Vec<Segment> = Vec::new();
                            receiver.on_data(now, &data, &mut acks);
                            network.extend(acks.into_iter().map(|s| (s, true)));
                        }
                    }
                }
                sender.on_timer(now, &mut out);
                let mut acks: Vec<Segment> = Vec::new();
                receiver.on_timer(now, &mut acks);
                network.extend(acks.into_iter().map(|s| (s, true)));
                sound(&sender);
            }
            prop_assert_eq!(receiver.bytes_in_order(), expected);
            prop_assert_eq!(sender.stats().bytes_acked, expected);
            sender.restart(now);
        }
    }

    /// The receiver delivers every byte once under any order of arrival, and its blocks are true.
    #[test]
    fn a_receiver_is_exact(
        sizes in proptest::collection::vec(1u16..=1460, 1..60),
        order in proptest::collection::vec(any::<u16>(), 0..300),
        sack in any::<bool>(),
    ) {
        let scheme = registry::scheme(if sack { "sack" } else { "newreno" }).unwrap();
        let config = TcpConfig { handshake: false, ..TcpConfig::new(Profile::Rfc, scheme) };
        let mut receiver = TcpReceiver::new(&config);
        let mut had = vec![false; sizes.len()];
        let mut delivered = 0;
        let all: Vec<usize> = order.iter().map(|&i| usize::from(i) % sizes.len()).chain(0..sizes.len()).collect();
        for (i, &seq) in all.iter().enumerate() {
            let segment = Segment {
                seq: seq as u32,
                stamp: Stamp(i as u32),
                size: sizes[seq] + 40,
                flags: if seq == 0 { Flags::SYN } else { Flags::NONE },
                extra: None,
            };
            let now = Time(i as u64 * 1_000_000);
            let mut acks: Vec<Segment> = Vec::new();
            delivered += receiver.on_data(now, &packet(now, &segment), &mut acks).bytes;
            had[seq] = true;
            let next = had.iter().position(|h| !h).unwrap_or(sizes.len());
            prop_assert_eq!(delivered, sizes[..next].iter().map(|&s| u64::from(s)).sum::<u64>());
            for ack in &acks {
                prop_assert_eq!(ack.seq as usize, next);
                for block in ack.extra.iter().filter_map(Extra::tcp).flat_map(TcpOptions::blocks) {
                    prop_assert!(block.start as usize > next);
                    prop_assert!(had[block.start as usize..block.end as usize].iter().all(|&h| h));
                    prop_assert!(!had[block.start as usize - 1]);
                    prop_assert!(had.get(block.end as usize) != Some(&true));
                }
            }
        }
        prop_assert_eq!(delivered, sizes.iter().map(|&s| u64::from(s)).sum::<u64>());
    }
}
