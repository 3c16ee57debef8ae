//! Both ends of a session around NADA, over a path that loses, copies and delays packets and feedback.

use crate::segments::packet;
use paceline_control::{MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{RtpConfig, RtpReceiver, RtpSender};
use paceline_packet::rtcp::Compound;
use paceline_packet::rtp::RtpData;
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{Extra, Flags, UDP_IPV4};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// Both ends, with packets of 960 bytes of payload.
pub fn ends(change: impl FnOnce(&mut RtpConfig)) -> (RtpSender, RtpReceiver) {
    let scheme = registry::scheme("nada").unwrap();
    let controller = RtpController::new(scheme, Profile::Rfc, &[]).unwrap();
    let mut config = RtpConfig { segment: 960, gap_jitter: 0.0, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    change(&mut config);
    (
        RtpSender::new(&config, controller, Stream::new(1, "sender")),
        RtpReceiver::new(&config, Stream::new(1, "receiver")),
    )
}

/// Shares of packets that are lost, copied and held back by up to 30 ms.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub lost: f64,
    pub copied: f64,
    pub late: f64,
}

/// What has gone over a path of 20 ms each way.
#[derive(Default)]
pub struct Log {
    pub data: Vec<(Time, RtpData)>,
    /// Those with feedback on arrivals.
    pub feedback: Vec<(Time, Compound)>,
}

/// Lets both ends run for `seconds`, a frame of `frame` bytes each 33 ms.
pub fn run(
    sender: &mut RtpSender,
    receiver: &mut RtpReceiver,
    seconds: f64,
    frame: u64,
    trouble: Trouble,
    seed: u64,
) -> Log {
    let mut draws = Sequence::new(Stream::new(seed, "trouble"));
    let (mut log, mut now, mut next_frame) = (Log::default(), Time::ZERO, Time::ZERO);
    let mut flying: BTreeMap<(Time, u64), Segment> = BTreeMap::new();
    let mut count = 0;
    let mut out = Vec::new();
    sender.start(now, &mut out);
    while now < Time::from_secs_f64(seconds) {
        for segment in out.drain(..) {
            match &segment.extra {
                Some(Extra::Rtp(data)) => {
                    let mut bytes = Vec::new();
                    rtp::encode(data, &mut bytes).unwrap();
                    assert_eq!(rtp::decode(&bytes), Ok((*data, &[][..])));
                    log.data.push((now, *data));
                }
                Some(Extra::Rtcp(report)) => {
                    // the wire carries it as it is, with the size that it has here
                    let mut bytes = Vec::new();
                    rtcp::encode(report, &mut bytes).unwrap();
                    assert_eq!(bytes.len() + UDP_IPV4, usize::from(segment.size));
                    assert_eq!(rtcp::decode(&bytes).as_ref(), Ok(&**report));
                    if report.arrivals.is_some() || !report.transport.is_empty() {
                        log.feedback.push((now, (**report).clone()));
                    }
                }
                other => panic!("{other:?}"),
            }
            let copies = if draws.unit() < trouble.copied { 2 } else { 1 };
            for _ in 0..copies {
                if draws.unit() >= trouble.lost {
                    let late = if draws.unit() < trouble.late { draws.unit() * 0.03 } else { 0.0 };
                    count += 1;
                    flying.insert((now + Span::from_millis(20) + Span::from_secs_f64(late), count), segment.clone());
                }
            }
        }
        let arrival = flying.keys().next().map_or(Time::NEVER, |key| key.0);
        now = now.max(arrival.min(sender.next_wake()).min(receiver.next_wake()).min(next_frame));
        if next_frame <= now {
            next_frame += Span::from_millis(33);
            sender.supply(frame, now, &mut out);
        } else if sender.next_wake() <= now {
            sender.on_timer(now, &mut out);
            assert!(sender.next_wake() > now, "awake for nothing");
        } else if receiver.next_wake() <= now {
            receiver.on_timer(now, &mut out);
            assert!(receiver.next_wake() > now, "awake for nothing");
        } else if let Some((_, segment)) = flying.pop_first() {
            let carried = packet(now, &segment);
            if segment.flags.has(Flags::ACK) {
                sender.on_rtcp(now, &carried, segment.extra.as_ref(), &mut out);
            } else {
                receiver.on_data(now, &carried, segment.extra.as_ref(), &mut out);
            }
        }
        let rate = sender.controller().rate() * 8.0;
        assert!((150e3..=1.5e6).contains(&rate), "{rate}");
    }
    log
}

/// Nothing is amiss.
pub const FINE: Trouble = Trouble { lost: 0.0, copied: 0.0, late: 0.0 };
