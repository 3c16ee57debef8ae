//! Transport-wide feedback over RTP's machines, when feedback leaves, and feedback that stands alone.

use crate::segments::packet;
use crate::session::{FINE, Log, Trouble, ends, run};
use paceline_control::MediaController;
use paceline_flow::Segment;
use paceline_flow::rtp::{FeedbackConfig, FeedbackFormat, RtpConfig, RtpReceiver, RtpSender};
use paceline_packet::rtcp::{ArrivalDelta, Compound, ReferenceTime, TransportFeedback};
use paceline_packet::rtp::Ssrc;
use paceline_packet::{Extra, Flags};
use paceline_units::{Rate, Span, Time};
use proptest::prelude::*;

/// Both ends with transport-wide numbers.
fn numbered(change: impl FnOnce(&mut RtpConfig)) -> (RtpSender, RtpReceiver) {
    ends(|config| {
        *config = config.clone().with_feedback(FeedbackFormat::Transport);
        change(config);
    })
}

/// A packet's number, and when it came.
type Numbered = (u16, Option<Time>);

/// What each feedback tells of packets by their numbers: those that have come, with their times.
fn packets_reported(log: &Log) -> Vec<(Time, Vec<Numbered>)> {
    let one = |feedback: &TransportFeedback| {
        let mut at = Time(u64::from(feedback.reference.bits()) * ReferenceTime::TICK.0);
        let packet = |(place, delta): (usize, &Option<ArrivalDelta>)| {
            at = delta.map_or(at, |delta| delta.after(at));
            (feedback.base.wrapping_add(place as u16), delta.map(|_| at))
        };
        feedback.packets.iter().enumerate().map(packet).collect::<Vec<_>>()
    };
    log.feedback.iter().map(|(made, compound)| (*made, compound.transport.iter().flat_map(one).collect())).collect()
}

#[test]
fn every_packet_is_told_of_once_with_its_time() {
    let (mut sender, mut receiver) = numbered(|_| {});
    let log = run(&mut sender, &mut receiver, 10.0, 500, FINE, 1);
    assert!(log.feedback.iter().all(|(_, compound)| compound.arrivals.is_none() && !compound.reduced));
    let reported: Vec<_> = packets_reported(&log).into_iter().flat_map(|(_, packets)| packets).collect();
    assert!(reported.len() > 290 && log.data.len() - reported.len() < 6, "{} of {}", reported.len(), log.data.len());
    for (index, ((number, at), (sent, data))) in reported.iter().zip(&log.data).enumerate() {
        assert_eq!((Some(*number), *number), (data.transport, index as u16), "from 0 on");
        let arrived_at = *sent + Span::from_millis(20);
        assert!(at.unwrap().0.abs_diff(arrived_at.0) <= 125_000, "to a quarter of a millisecond");
    }
    let counts: Vec<u8> = log.feedback.iter().map(|(_, compound)| compound.transport[0].count).collect();
    assert!(counts.iter().enumerate().all(|(index, count)| *count == index as u8), "{counts:?}");
    let gaps: Vec<Span> = log.feedback.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert!(gaps.iter().all(|gap| *gap == Span::from_millis(100)), "{gaps:?}");
    assert_eq!(sender.stats().timeouts, 0);
    // a packet each 33 ms, feedback each 100 ms: the wait since the last packet is between 0 and 33 ms
    let rtt = sender.stats().mean_rtt().unwrap();
    assert!((45_000_000..70_000_000).contains(&rtt.0), "with the receiver's wait since the last packet: {rtt}");
}

/// The same controller hears of the same losses and, to the two fields' resolutions, times, whichever feedback tells.
#[test]
fn both_kinds_of_feedback_tell_the_controller_alike() {
    let trouble = Trouble { lost: 0.02, copied: 0.01, late: 0.05 };
    let losses = |(mut sender, mut receiver): (RtpSender, RtpReceiver)| {
        run(&mut sender, &mut receiver, 20.0, 1500, trouble, 3);
        assert_eq!(sender.stats().timeouts, 0);
        sender.stats().window_cuts
    };
    let (cuts, others) = (losses(ends(|_| {})), losses(numbered(|_| {})));
    assert!(cuts > 10 && cuts.abs_diff(others) <= cuts / 3, "{cuts} {others}");
}

#[test]
fn a_packet_that_comes_late_or_twice_is_told_of_again() {
    let (mut sender, mut receiver) = numbered(|config| {
        config.timing.bandwidth = Rate::from_bps(10_000_000);
        config.feedback_interval = Span::from_millis(20);
    });
    let trouble = Trouble { lost: 0.01, copied: 0.05, late: 0.2 };
    let log = run(&mut sender, &mut receiver, 20.0, 1500, trouble, 5);
    let reports = packets_reported(&log);
    let mut end = 0u16;
    let (mut again, mut late) = (0, 0);
    for (_, packets) in &reports {
        let first = packets[0].0;
        assert!(first.wrapping_sub(end) as i16 <= 0, "no number is left out");
        again += u32::from(first != end);
        late += u32::from(packets.windows(2).any(|pair| pair[0].1 > pair[1].1 && pair[1].1.is_some()));
        assert!(packets.last().is_some_and(|(_, at)| at.is_some()));
        end = packets[packets.len() - 1].0.wrapping_add(1);
    }
    assert!(again > 5 && late > 5, "{again} {late}");
    assert_eq!(sender.stats().timeouts, 0);
}

#[test]
fn feedback_leaves_after_packets_and_at_frames_ends() {
    let lag = |change: fn(&mut RtpConfig)| {
        let (mut sender, mut receiver) = ends(|config| {
            config.frames = true;
            config.timing.bandwidth = Rate::from_bps(10_000_000);
            change(config);
        });
        let log = run(&mut sender, &mut receiver, 5.0, 2000, FINE, 1);
        let ends_frame =
            |at: &Time| log.data.iter().any(|(sent, data)| data.marker && *sent + Span::from_millis(20) == *at);
        let at_ends = log.feedback.iter().filter(|(made, _)| ends_frame(made)).count();
        (log.feedback.len(), at_ends, log.data.iter().filter(|(_, data)| data.marker).count(), log.data.len())
    };
    let (by_time, ..) = lag(|_| {});
    assert!((48..=50).contains(&by_time), "{by_time}");
    let (all, at_ends, frames, _) = lag(|config| config.feedback.frames = true);
    assert!(at_ends * 20 >= frames * 19 && all < frames + 60, "{all} {at_ends} of {frames} frames");
    let (all, _, _, packets) = lag(|config| config.feedback.packets = 2);
    assert!((packets / 2 - 3..=packets / 2).contains(&all), "{all} of {packets} packets");
    let (all, at_ends, frames, _) = lag(|config| {
        config.feedback = FeedbackConfig { packets: 16, frames: true, ..config.feedback };
        config.feedback_interval = Span::from_millis(20);
    });
    assert!(at_ends * 20 >= frames * 19 && all > frames + 40, "{all} {at_ends} of {frames} frames");
}

#[test]
fn an_interval_by_share_follows_what_arrives() {
    let gaps = |frame| {
        let (mut sender, mut receiver) = numbered(|config| {
            config.timing.bandwidth = Rate::from_bps(10_000_000);
            config.feedback.share = Some(0.01);
        });
        let log = run(&mut sender, &mut receiver, 20.0, frame, FINE, 1);
        assert_eq!(sender.stats().timeouts, 0);
        let gaps = log.feedback.windows(2).map(|pair| pair[1].0.since(pair[0].0));
        // by then what waited at first has left
        let gaps: Vec<Span> = gaps.rev().take(20).collect();
        (gaps.iter().min().copied().unwrap(), gaps.iter().max().copied().unwrap())
    };
    assert_eq!(gaps(100), (Span::from_millis(250), Span::from_millis(250)), "4 kbyte/s");
    // 1 % of 65 kbyte/s are 650 bytes/s: feedback of 100 bytes, and a few deltas, each 150 ms and a bit
    let (min_gap, max_gap) = gaps(2000);
    assert!(Span::from_millis(140) < min_gap && max_gap < Span::from_millis(200), "{min_gap} {max_gap}");
}

#[test]
fn feedback_alone_is_shorter_and_tells_the_same() {
    let run = |reduced, format| {
        let (mut sender, mut receiver) = ends(|config| {
            *config = config.clone().with_feedback(format);
            config.feedback.reduced = reduced;
        });
        let log = run(&mut sender, &mut receiver, 10.0, 500, FINE, 1);
        assert!(log.feedback.iter().all(|(_, compound)| compound.reduced == reduced));
        assert_eq!(sender.stats().timeouts, 0);
        let bytes: Vec<usize> = log.feedback.iter().map(|(_, compound)| compound.wire_len()).collect();
        (bytes, sender.controller().rate())
    };
    for format in [FeedbackFormat::Rfc8888, FeedbackFormat::Transport] {
        let ((whole, rate), (alone, of_alone)) = (run(false, format), run(true, format));
        // an empty RR takes 8 bytes, SDES with a CNAME of 25 bytes 36
        assert!(whole.iter().zip(&alone).all(|(whole, alone)| whole - alone == 44), "{whole:?} {alone:?}");
        assert_eq!((rate, whole.len()), (of_alone, alone.len()));
    }
}

/// An end with numbers tells nothing to one that wants RFC 8888's feedback, and the other way round.
#[test]
fn the_other_kind_of_feedback_is_none() {
    let (mut sender, _) = numbered(|_| {});
    let (_, mut receiver) = ends(|_| {});
    let log = run(&mut sender, &mut receiver, 3.0, 500, FINE, 1);
    assert!(!log.feedback.is_empty() && sender.stats().mean_rtt().is_none());
    let (mut sender, _) = ends(|_| {});
    let (_, mut receiver) = numbered(|_| {});
    assert!(run(&mut sender, &mut receiver, 3.0, 500, FINE, 1).feedback.is_empty(), "packets without numbers");
}

/// Feedback as anybody may send it.
type Forged = ((u16, Vec<Option<i16>>, u32, bool), u64);

fn forged() -> impl Strategy<Value = Forged> {
    let numbers = prop_oneof![3 => 0..40u16, 1 => any::<u16>()];
    let deltas = prop::collection::vec(proptest::option::of(any::<i16>()), 1..40);
    ((numbers, deltas, any::<u32>(), prop::bool::weighted(0.9)), 0..300_000_000u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_path_does_no_number_is_left_out(
        lost in 0.0..0.4, copied in 0.0..0.3, late in 0.0..0.5, seed: u64,
    ) {
        let (mut sender, mut receiver) = numbered(|_| {});
        let log = run(&mut sender, &mut receiver, 3.0, 1500, Trouble { lost, copied, late }, seed);
        let sent = log.data.len() as u64;
        let mut end = None;
        for (_, packets) in packets_reported(&log) {
            prop_assert!(packets.len() as u64 <= sent);
            prop_assert!(end.is_none_or(|end: u16| packets[0].0.wrapping_sub(end) as i16 <= 0));
            end = Some(packets[packets.len() - 1].0.wrapping_add(1));
        }
    }

    #[test]
    fn a_hostile_receiver_drives_nothing_out_of_bounds(all in prop::collection::vec(forged(), 1..60)) {
        let (mut sender, _) = numbered(|config| config.frames = true);
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        sender.start(now, &mut out);
        sender.supply_endless(now, &mut out);
        let mut newest = None;
        for ((behind, deltas, time, ours), wait) in all {
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
            let feedback = TransportFeedback {
                ssrc: if ours { newest.ssrc } else { Ssrc(newest.ssrc.0 ^ 1) },
                base: newest.transport.unwrap().wrapping_sub(behind),
                reference: ReferenceTime::from_bits(time),
                count: 0,
                packets: deltas.into_iter().map(|delta| delta.map(ArrivalDelta)).collect(),
            };
            let report = Compound {
                ssrc: Ssrc(newest.ssrc.0 ^ 2),
                sender: None,
                reports: Vec::new(),
                cname: "".into(),
                apps: Vec::new(),
                arrivals: None,
                transport: vec![feedback.clone(), feedback],
                ecn: vec![],
                ecn_summary: vec![],
                repair: vec![],
                bye: None,
                reduced: true,
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
