//! Feedback on arrivals over RTP's machines (RFC 8888): what both ends do over a path that loses, copies and delays packets and
//! feedback, and what a hostile receiver can do to a sender.

use crate::segments::packet;
use crate::session::{FINE, Log, Trouble, ends, run};
use paceline_control::MediaController;
use paceline_flow::Segment;
use paceline_packet::rtcp::{Arrival, ArrivalFeedback, ArrivalOffset, Compound, Ecn, StreamArrivals};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{Extra, Flags, NtpMiddle};
use paceline_units::{Rate, Span, Time};
use proptest::prelude::*;

/// RFC 8888's feedback of a log, each on the one stream.
fn streams(log: &Log) -> Vec<(Time, &StreamArrivals)> {
    log.feedback.iter().map(|(made, compound)| (*made, &compound.arrivals.as_ref().unwrap().streams[0])).collect()
}

#[test]
fn every_packet_is_reported_once_with_its_time() {
    let (mut sender, mut receiver) = ends(|_| {});
    let log = run(&mut sender, &mut receiver, 10.0, 500, FINE, 1);
    let mut reported = Vec::new();
    for (made, stream) in streams(&log) {
        for (k, arrival) in stream.packets.iter().enumerate() {
            let Arrival::Received { offset, ecn: Ecn::NotEct } = arrival else { panic!("{arrival:?}") };
            reported.push((stream.begin.wrapping_add(k as u16), made, offset.span().unwrap()));
        }
    }
    assert!(reported.len() > 290 && log.data.len() - reported.len() < 6, "{} of {}", reported.len(), log.data.len());
    for ((number, made, ago), (sent, data)) in reported.iter().zip(&log.data) {
        assert_eq!(*number, data.sequence);
        let arrived_at = *sent + Span::from_millis(20);
        assert!(made.since(arrived_at).0.abs_diff(ago.0) <= 500_000, "to 1/1024 s");
    }
    let gaps: Vec<Span> = log.feedback.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(gaps.iter().all(|gap| *gap == Span::from_millis(100)), "{gaps:?}");
    assert_eq!(sender.stats().timeouts, 0);
    let rtt = sender.stats().mean_rtt().unwrap();
    assert!(rtt.0.abs_diff(40_000_000) < 600_000, "without the receiver's wait: {rtt}");
}

#[test]
fn short_packets_have_short_gaps_whatever_feedback_comes() {
    let (mut sender, mut receiver) = ends(|_| {});
    // 120 kbit/s with headers, of the 150 that are allowed, and later of more
    let log = run(&mut sender, &mut receiver, 5.0, 460, FINE, 1);
    assert!((148..=152).contains(&log.data.len()), "a frame each 33 ms leaves before the next: {}", log.data.len());
}

#[test]
fn section_6_feedback_keeps_within_its_share() {
    let (mut sender, mut receiver) = ends(|config| config.timing.bandwidth = paceline_units::Rate::from_bps(50_000));
    let log = run(&mut sender, &mut receiver, 10.0, 500, FINE, 1);
    let bytes: usize = streams(&log).iter().map(|(_, stream)| 2 * stream.packets.len()).sum();
    let (first, last) = (log.feedback[0].0, log.feedback[log.feedback.len() - 1].0);
    // 312 bytes a second, of which each packet of feedback takes at least 28 for UDP and IP
    let min_bytes = bytes + 28 * log.feedback.len();
    assert!((min_bytes as f64) < 313.0 * last.since(first).as_secs_f64() + 200.0, "{min_bytes} bytes");
    assert!(log.feedback.len() >= 15, "{}", log.feedback.len());
}

#[test]
fn packets_of_a_frame_share_its_time_and_the_last_has_the_marker() {
    let (mut sender, mut receiver) = ends(|config| config.frames = true);
    let log = run(&mut sender, &mut receiver, 3.0, 2000, FINE, 1);
    let packets: Vec<&RtpData> = log.data.iter().map(|(_, data)| data).collect();
    assert!(packets.len() > 20);
    for frame in packets.chunks_exact(3) {
        assert!(frame.iter().all(|data| data.timestamp == frame[0].timestamp));
        assert_eq!(frame.iter().map(|data| data.marker).collect::<Vec<_>>(), [false, false, true]);
    }
    for pair in packets.chunks_exact(3).collect::<Vec<_>>().windows(2) {
        assert_eq!(pair[1][0].timestamp.wrapping_sub(pair[0][0].timestamp), 2970, "33 ms");
    }
}

#[test]
fn a_silent_receiver_halves_the_rate_and_an_idle_sender_does_not() {
    let (mut sender, mut receiver) = ends(|_| {});
    run(&mut sender, &mut receiver, 5.0, 500, Trouble { lost: 1.0, ..FINE }, 1);
    assert!(sender.stats().timeouts > 10, "{}", sender.stats().timeouts);
    let (mut sender, mut receiver) = ends(|_| {});
    run(&mut sender, &mut receiver, 5.0, 0, FINE, 1);
    assert_eq!(sender.stats().timeouts, 0);
}

/// Where feedback is more frequent than packets are, or than a round trip, none is missing before it can have come.
#[test]
fn who_sends_seldom_hears_seldom_and_that_is_no_silence() {
    let (mut sender, mut receiver) = ends(|config| {
        config.feedback_interval = Span::from_millis(1);
        config.timing.bandwidth = Rate::from_bps(100_000_000);
    });
    run(&mut sender, &mut receiver, 10.0, 2000, FINE, 1);
    assert_eq!(sender.stats().timeouts, 0);
    // 485 kbit/s arrive
    assert!(sender.controller().rate() * 8.0 > 485e3, "{}", sender.controller().rate());
    // lost packets are missed all the same, ten intervals and a round trip after they left
    let before = sender.stats().timeouts;
    sender.supply_endless(Time::from_secs_f64(10.0), &mut Vec::new());
    for ms in 0..100 {
        sender.on_timer(Time::from_secs_f64(10.0 + f64::from(ms) / 1e3), &mut Vec::new());
    }
    assert!(sender.stats().timeouts > before);
}

/// Feedback as anybody may send it.
fn feedback() -> impl Strategy<Value = (u16, Vec<Option<u16>>, u32, bool)> {
    (
        prop_oneof![3 => 0..40u16, 1 => any::<u16>()],
        prop::collection::vec(proptest::option::of(0..0x2000u16), 0..40),
        prop_oneof![3 => 0..100_000u32, 1 => any::<u32>()],
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_ends_stand_any_path(
        lost in 0.0..0.5f64, copied in 0.0..0.3f64, late in 0.0..1.0f64, frame in 1..20_000u64, seed in any::<u64>(),
    ) {
        let (mut sender, mut receiver) = ends(|config| config.frames = seed % 2 == 0);
        let log = run(&mut sender, &mut receiver, 4.0, frame, Trouble { lost, copied, late }, seed);
        let sent = log.data.len() as u64;
        prop_assert!(receiver.stats().bytes <= sender.stats().bytes_acked);
        prop_assert!(sent > 0 && streams(&log).iter().all(|(_, stream)| stream.packets.len() as u64 <= sent));
    }

    #[test]
    fn a_hostile_receiver_drives_nothing_out_of_bounds(
        reports in prop::collection::vec((feedback(), 0..300_000_000u64), 1..60),
    ) {
        let (mut sender, _) = ends(|config| config.frames = true);
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        sender.start(now, &mut out);
        sender.supply_endless(now, &mut out);
        let mut newest = None;
        for ((behind, packets, clock, ours), wait) in reports {
            let until = now + Span(wait);
            while sender.next_wake() <= until {
                now = now.max(sender.next_wake());
                sender.on_timer(now, &mut out);
                prop_assert!(sender.next_wake() > now);
            }
            now = until;
            for segment in out.drain(..) {
                if let Some(Extra::Rtp(data)) = segment.extra {
                    newest = Some(data);
                }
            }
            let Some(newest) = newest else { continue };
            let arrival = |ago: Option<u16>| ago.map_or(Arrival::Missing, |ago| Arrival::Received {
                ecn: Ecn::Ce,
                offset: ArrivalOffset::from_bits(ago),
            });
            let stream = StreamArrivals {
                ssrc: if ours { newest.ssrc } else { Ssrc(newest.ssrc.0 ^ 1) },
                begin: newest.sequence.wrapping_sub(behind),
                packets: packets.into_iter().map(arrival).collect(),
            };
            let reported = NtpMiddle(NtpMiddle::at(now).0.wrapping_sub(clock));
            let report = Compound {
                ssrc: Ssrc(newest.ssrc.0 ^ 2),
                sender: None,
                reports: Vec::new(),
                cname: "x".into(),
                apps: Vec::new(),
                arrivals: Some(ArrivalFeedback { reported, streams: vec![stream] }),
                transport: Vec::new(),
                ecn: vec![],
                ecn_summary: vec![],
                repair: Vec::new(),
                reduced: false,
                bye: None,
            };
            let segment = Segment {
                seq: 0,
                stamp: paceline_packet::Stamp::at(now),
                size: 100,
                flags: Flags::ACK,
                extra: Some(Extra::Rtcp(Box::new(report))),
            };
            sender.on_rtcp(now, &packet(now, &segment), segment.extra.as_ref(), &mut out);
            let rate = sender.controller().rate() * 8.0;
            prop_assert!((150e3..=1.5e6).contains(&rate), "{rate}");
        }
    }
}
