//! Frames that leave by times of their own: what RTP's machine makes of what its controller says, with NDTC's arithmetic
//! (draft-ageneau-ccwg-ndtc, "Adaptive Frame Pacer").

use paceline_control::{MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{RtpConfig, RtpSender};
use paceline_packet::{Extra, Flags};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// 25 frames a second: TFRAME 40 ms, TRECV 24 ms, TSEND 12 ms; SLOPE is 1 before there is feedback. A full packet has 960 bytes
/// of payload, and TARGET is five of them.
fn sender(given: &[(&str, f64)], change: impl FnOnce(&mut RtpConfig)) -> RtpSender {
    let given = [&[("init_target", 4800.0)], given].concat();
    let controller = RtpController::new(registry::scheme("ndtc").unwrap(), Profile::Rfc, &given).unwrap();
    let mut config = RtpConfig {
        segment: 960,
        frames: true,
        frame_period: Span::from_millis(40),
        ..RtpConfig::new(Profile::Rfc, controller.settings())
    };
    change(&mut config);
    let mut sender = RtpSender::new(&config, controller, Stream::new(1, "sender"));
    sender.start(Time::ZERO, &mut Vec::new());
    sender
}

fn ms(n: f64) -> Time {
    Time::from_secs_f64(n / 1e3)
}

/// Writes frames at these times in ms and runs until all has left: when each data packet left in ms, and whether it has the
/// marker.
fn run(sender: &mut RtpSender, frames: &[(f64, u64)]) -> (Vec<(f64, bool)>, Vec<Segment>) {
    let (mut left, mut segments) = (Vec::new(), Vec::new());
    let mut frames = frames.iter().peekable();
    loop {
        let next = frames.peek().map_or(Time::NEVER, |frame| ms(frame.0));
        let now = next.min(sender.next_wake());
        if frames.peek().is_none() && sender.acked_all() {
            return (left, segments);
        }
        let mut out = Vec::new();
        if next <= now {
            let (_, bytes) = frames.next().unwrap();
            sender.supply(*bytes, now, &mut out);
        } else {
            sender.on_timer(now, &mut out);
            assert!(sender.next_wake() > now, "awake for nothing");
        }
        for segment in out {
            if let Some(Extra::Rtp(data)) = &segment.extra {
                left.push((now.as_secs_f64() * 1e3, data.marker));
                segments.push(segment);
            }
        }
    }
}

fn close(left: &[(f64, bool)], expected: &[(f64, bool)]) {
    let same = |(a, b): (&(f64, bool), &(f64, bool))| (a.0 - b.0).abs() < 1e-3 && a.1 == b.1;
    assert!(left.len() == expected.len() && left.iter().zip(expected).all(same), "{left:?}\n{expected:?}");
}

#[test]
fn a_frame_leaves_evenly_after_its_delay_and_within_its_time() {
    let mut sender = sender(&[("dither", 0.0)], |_| {});
    // LENGTH is all but the last packet: TARGET, so SEND = TSEND and DELAY = 0
    let (left, _) = run(&mut sender, &[(100.0, 5000)]);
    let even = [(100.0, false), (102.4, false), (104.8, false), (107.2, false), (109.6, false), (112.0, true)];
    close(&left, &even);
    // two fifths of it: SEND = 4.8 ms, and DELAY the 7.2 ms that are left of PACE
    let (left, _) = run(&mut sender, &[(140.0, 2880)]);
    close(&left, &[(147.2, false), (149.6, false), (152.0, true)]);
    // a single packet is a frame of its own length: a fifth of TARGET, so DELAY = 9.6 ms
    let (left, _) = run(&mut sender, &[(180.0, 960)]);
    close(&left, &[(189.6, true)]);
    // four times TARGET: TFRAME
    let (left, _) = run(&mut sender, &[(220.0, 960 * 21)]);
    assert_eq!(left.len(), 21);
    close(&[left[0], left[10], left[20]], &[(220.0, false), (240.0, false), (260.0, true)]);
}

#[test]
fn what_is_left_of_a_frame_goes_when_the_next_one_s_time_has_come() {
    let mut sender = sender(&[("dither", 0.0)], |_| {});
    let (left, _) = run(&mut sender, &[(100.0, 5000), (105.0, 5000), (106.0, 960)]);
    // the first by its pace until 105 ms, then its last three at once; the second likewise until the third's 106 + 9.6 ms
    let first = [(100.0, false), (102.4, false), (104.8, false), (105.0, false), (105.0, false), (105.0, true)];
    let second = [(105.0, false), (107.4, false), (109.8, false), (112.2, false), (114.6, false), (115.6, true)];
    close(&left, &[&first[..], &second[..], &[(115.6, true)]].concat());
}

#[test]
fn the_time_is_drawn_around_tsend() {
    // nobody answers
    let mut sender = sender(&[("silence", 0.0)], |_| {});
    let frames: Vec<(f64, u64)> = (0..1000).map(|n| (f64::from(n) * 40.0, 5000)).collect();
    let (left, _) = run(&mut sender, &frames);
    let spans: Vec<f64> = left.chunks(6).map(|frame| frame[5].0 - frame[0].0).collect();
    let mean = spans.iter().sum::<f64>() / 1000.0;
    let spread = spans.iter().map(|span| (span - mean) * (span - mean)).sum::<f64>() / 1000.0;
    // uniform from 6 to 18 ms, and DELAY is always DELTA: PACE is what SEND is
    assert!((mean - 12.0).abs() < 0.4 && (spread - 12.0).abs() < 1.0, "{mean} {spread}");
    assert!(spans.iter().all(|span| (5.999..18.001).contains(span)));
    assert!(left.chunks(6).zip(&frames).all(|(frame, (written, _))| (frame[0].0 - written - 6.0).abs() < 1e-3));
    // another flow's draws are others
    let controller = RtpController::new(registry::scheme("ndtc").unwrap(), Profile::Rfc, &[]).unwrap();
    let config = RtpConfig { frames: true, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    let firsts = ["a", "b"].map(|name| {
        let mut sender = RtpSender::new(&config, controller.clone(), Stream::new(1, name));
        sender.start(Time::ZERO, &mut Vec::new());
        run(&mut sender, &[(0.0, 5000)]).0[3].0
    });
    assert!((firsts[0] - firsts[1]).abs() > 1e-3, "{firsts:?}");
}

#[test]
fn packets_that_can_be_marked_are_a_scalable_sender_s() {
    for (ecn, flags) in [(false, Flags::NONE), (true, Flags::ECT.with(Flags::L4S))] {
        let (_, segments) = run(&mut sender(&[], |config| config.ecn = ecn), &[(0.0, 5000)]);
        assert!(segments.len() == 6 && segments.iter().all(|segment| segment.flags == flags));
    }
}

#[test]
fn frames_written_before_the_start_are_asked_for_at_the_start() {
    let controller = RtpController::new(registry::scheme("ndtc").unwrap(), Profile::Rfc, &[("dither", 0.0)]).unwrap();
    let config = RtpConfig { segment: 960, frames: true, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    let mut sender = RtpSender::new(&config, controller, Stream::new(1, "sender"));
    let mut out = Vec::new();
    sender.supply(960 * 3, Time::ZERO, &mut out);
    assert!(out.is_empty() && sender.next_wake() == Time::NEVER);
    sender.start(Time::ZERO, &mut out);
    // 30 frames a second unless told otherwise, TARGET 4000: SEND = 10 ms 1920 / 4000, DELAY the rest of 10 ms
    let (left, _) = run(&mut sender, &[]);
    close(&left, &[(5.2, false), (7.6, false), (10.0, true)]);
}

/// What waits at SCReAM's sender, as its authors have it, is thrown away once the oldest has waited for 0.2 s: with the frame that is
/// just written, and with what is left of one of which a part has left. Nobody answers, and so little leaves.
#[test]
fn frames_that_have_waited_are_thrown_away() {
    let controller = RtpController::new(registry::scheme("scream-ericsson").unwrap(), Profile::Rfc, &[]).unwrap();
    let config = RtpConfig { segment: 960, frames: true, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    let mut sender = RtpSender::new(&config, controller, Stream::new(1, "sender"));
    sender.start(Time::ZERO, &mut Vec::new());
    let mut numbers = Vec::new();
    let mut until = |sender: &mut RtpSender, end: f64, frame: Option<u64>| {
        let mut out = Vec::new();
        while sender.next_wake() < ms(end) {
            let now = sender.next_wake();
            sender.on_timer(now, &mut out);
        }
        if let Some(bytes) = frame {
            sender.supply(bytes, ms(end), &mut out);
        }
        let data = out.iter().filter_map(|segment| match &segment.extra {
            Some(Extra::Rtp(data)) => Some((data.sequence, data.marker)),
            _ => None,
        });
        numbers.extend(data);
    };
    for n in 0..3 {
        until(&mut sender, f64::from(n) * 100.0, Some(20_000));
    }
    until(&mut sender, 299.0, None);
    assert!(!sender.acked_all() && !sender.take_discarded(), "the first has waited for 0.2 s, and no 0.25 s are over");
    let before = sender.stats().packets_sent;
    until(&mut sender, 300.0, Some(20_000));
    assert!(
        sender.acked_all() && sender.queueing() == Span::ZERO && sender.take_discarded() && !sender.take_discarded()
    );
    assert_eq!((sender.stats().frames_dropped, sender.stats().packets_sent), (4, before), "the first in part");
    // then the window opens for a packet, as it does after half a second without one
    until(&mut sender, 400.0, Some(960));
    until(&mut sender, 1000.0, None);
    assert!(sender.acked_all() && sender.stats().frames_dropped == 4);
    let (marked, first) = (numbers.iter().filter(|number| number.1).count(), numbers[0].0);
    assert!(numbers.len() > 2 && marked == 1 && numbers.last().unwrap().1, "{numbers:?}");
    let follow = (0..).zip(&numbers).all(|(n, number)| number.0 == first.wrapping_add(n));
    assert!(follow, "no number is missing: {numbers:?}");
}
