//! Whatever datagrams arrive at `paceline receive`, it answers only with reports, of at most a twentieth of the bytes
//! received. An input is a byte of settings, then datagrams: a length, the milliseconds before it, its bytes.

use paceline_control::{Profile, RtpFeedback, RtpSettings};
use paceline_flow::rtp::{FeedbackConfig, FeedbackFormat, LISTENER_SHARE, ReceivedPacket, RtpConfig, RtpListener};
use paceline_flow::{Segment, Transmit};
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{Extra, Flags};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// Bytes of IP's and UDP's headers.
const BELOW: usize = 28;

#[derive(Default)]
struct Sent {
    bytes: u64,
    last: u64,
}

impl Transmit for Sent {
    fn transmit(&mut self, segment: Segment) {
        let Some(Extra::Rtcp(report)) = segment.extra else { panic!("a listener sends reports alone") };
        let mut encoded = Vec::new();
        rtcp::encode(&report, &mut encoded).expect("what is sent can be written");
        assert_eq!(encoded.len() + BELOW, usize::from(segment.size));
        self.last = u64::from(segment.size);
        self.bytes += self.last;
    }
}

/// The target `listener`.
pub fn listener(bytes: &[u8]) {
    let Some((&kind, mut rest)) = bytes.split_first() else { return };
    let format = if kind & 1 == 0 { FeedbackFormat::Transport } else { FeedbackFormat::Rfc8888 };
    let feedback = if kind & 2 == 0 { RtpFeedback::Arrivals } else { RtpFeedback::Reports };
    let config = FeedbackConfig { format, share: Some(0.05), reduced: kind & 4 == 0, ..FeedbackConfig::PLAIN };
    let settings = RtpSettings { feedback, feedback_config: config, ..RtpSettings::default() };
    let mut listener = RtpListener::new(&RtpConfig::new(Profile::Rfc, settings), Stream::new(1, "fuzz"));
    let (mut now, mut received, mut sent) = (Time::ZERO, 0, Sent::default());
    while let [length, gap, after @ ..] = rest {
        let (datagram, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        now += Span::from_millis(u64::from(*gap));
        while listener.next_wake() <= now {
            listener.on_timer(listener.next_wake(), &mut sent);
        }
        let size = (datagram.len() + BELOW) as u16;
        if datagram.get(1).is_some_and(|kind| (192..=223).contains(kind)) {
            if let Ok(report) = rtcp::decode(datagram) {
                listener.on_rtcp(now, size, &report);
                received += u64::from(size);
            }
        } else if let Ok((data, payload)) = rtp::decode_with(datagram, 5) {
            let packet = ReceivedPacket { data: &data, size, payload: payload.len() as u16, flags: Flags::NONE };
            listener.on_data(now, packet, &mut sent);
            received += u64::from(size);
        }
        assert!((sent.bytes - sent.last) as f64 <= LISTENER_SHARE * received as f64, "{} of {received}", sent.bytes);
    }
    listener.leave(now, &mut sent);
}
