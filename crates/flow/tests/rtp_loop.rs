//! Every media controller on RTP's machine over a small path that loses packets: the sender never names a time that has passed,
//! keeps to its controller's window, and goes on sending.

use crate::segments;

use paceline_control::{Machine, MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{RtpConfig, RtpReceiver, RtpSender};
use paceline_packet::Extra;
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

const ONE_WAY: Span = Span::from_millis(40);
const FRAME: Span = Span(33_333_333);

/// What is on its way, and when it arrives.
type Way = VecDeque<(Time, Segment)>;

/// Of 20 s: packets that the receiver had, and fillers among those that the sender sent.
fn flow(scheme: &str, lost: f64, seed: u64) -> (u64, usize) {
    let controller = RtpController::new(registry::scheme(scheme).unwrap(), Profile::Rfc, &[]).unwrap();
    let config = RtpConfig { frames: true, frame_period: FRAME, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    let stream = Stream::new(seed, "loop");
    let mut sender = RtpSender::new(&config, controller, stream.fork(1));
    let mut receiver = RtpReceiver::new(&config, stream.fork(2));
    let (mut there, mut back) = (Way::new(), Way::new());
    let (mut now, mut frame, mut draws, mut fillers) = (Time::ZERO, Time::ZERO, 0, 0);
    let mut out: Vec<Segment> = Vec::new();
    sender.start(now, &mut out);
    while now < Time::from_secs_f64(20.0) {
        for segment in out.drain(..) {
            if let Some(Extra::Rtp(data)) = &segment.extra {
                fillers += usize::from(data.payload_type == paceline_packet::rtp::RtpData::FILLER);
            }
            draws += 1;
            if stream.unit(draws) >= lost {
                there.push_back((now + ONE_WAY, segment));
            }
        }
        let first = |queue: &Way| queue.front().map_or(Time::NEVER, |(at, _)| *at);
        let wake = sender.next_wake();
        assert!(wake >= now, "{scheme}: at {now:?} awake at {wake:?}");
        let next = wake.min(receiver.next_wake()).min(first(&there)).min(first(&back)).min(frame);
        now = next;
        let mut answers: Vec<Segment> = Vec::new();
        if first(&there) == now {
            let (_, segment) = there.pop_front().unwrap();
            receiver.on_data(now, &segments::packet(now, &segment), segment.extra.as_ref(), &mut answers);
        } else if first(&back) == now {
            let (_, segment) = back.pop_front().unwrap();
            sender.on_rtcp(now, &segments::packet(now, &segment), segment.extra.as_ref(), &mut out);
        } else if receiver.next_wake() == now {
            receiver.on_timer(now, &mut answers);
        } else if frame == now {
            frame += FRAME;
            let target = sender.target().map_or(3e5, |rate| rate.bps());
            sender.supply((target * FRAME.as_secs_f64() / 8.0) as u64 + 1, now, &mut out);
        } else {
            sender.on_timer(now, &mut out);
            assert!(sender.next_wake() > now, "{scheme}: awake at {now:?} for nothing");
        }
        draws += 1;
        if stream.unit(draws) >= lost {
            back.extend(answers.into_iter().map(|answer| (now + ONE_WAY, answer)));
        }
    }
    (receiver.stats().packets, fillers)
}

#[test]
fn no_time_that_has_passed_and_no_standstill() {
    for scheme in registry::schemes().filter(|scheme| scheme.machine == Machine::Rtp) {
        for (seed, lost) in [(1, 0.0), (2, 0.02), (3, 0.1), (4, 0.3)] {
            let (packets, fillers) = flow(scheme.name, lost, seed);
            // a frame is a packet at least, 600 in all; LDA+'s rate falls below that where 30 % are lost
            assert!(packets > 300, "{}: {packets} with {lost}", scheme.name);
            assert!(fillers == 0 || ["gcc", "scream-libwebrtc"].contains(&scheme.name), "{}: {fillers}", scheme.name);
        }
    }
}

/// What GCC probes with where the encoder gives too little.
#[test]
fn clusters_are_filled_up() {
    let fillers = flow("gcc", 0.0, 1).1;
    // two clusters of five packets at least, less what the encoder gives meanwhile
    assert!(fillers > 5, "{fillers}");
}
