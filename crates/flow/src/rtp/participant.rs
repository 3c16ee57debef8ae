//! The state that both ends of a session share: identity, and reports.

use super::ticks;
use crate::{Segment, Transmit};
use paceline_packet::rtcp::{Bye, Compound, SenderInfo};
use paceline_packet::rtp::Ssrc;
use paceline_packet::{Extra, Flags, Ntp, Stamp, UDP_IPV4};
use paceline_random::Stream;
use paceline_units::Time;
use std::sync::Arc;

/// Numbers of a participant's random draws.
const SSRC: u64 = 0;
const NAME: u64 = 1;
const NUMBERS: u64 = 2;
const TIMER: u64 = 3;
const ASIDE: u64 = 4;

/// One end of a session.
#[derive(Clone, Debug)]
pub(super) struct Participant {
    pub(super) ssrc: Ssrc,
    cname: Arc<str>,
    stream: Stream,
}

impl Participant {
    /// Creates a participant with a random SSRC and canonical name (RFC 3550 section 8.1, RFC 7022).
    pub(super) fn new(stream: Stream) -> Participant {
        let cname = format!("{:016x}@paceline", stream.bits(NAME)).into();
        Participant { ssrc: Ssrc((stream.bits(SSRC) >> 32) as u32), cname, stream }
    }

    /// The first sequence number and the timestamp offset (section 5.1).
    pub(super) fn first_numbers(&self) -> (u16, u32) {
        let bits = self.stream.bits(NUMBERS);
        (bits as u16, (bits >> 32) as u32)
    }

    /// The SSRC of retransmissions and its first sequence number (RFC 4588 section 5.3: SSRC multiplexing).
    pub(super) fn aside(&self) -> (Ssrc, u16) {
        let bits = self.stream.bits(ASIDE);
        (Ssrc((bits >> 32) as u32), bits as u16)
    }

    /// The random stream of the report timer.
    pub(super) fn timer_stream(&self) -> Stream {
        self.stream.fork(TIMER)
    }

    /// An empty report.
    pub(super) fn report(&self) -> Compound {
        Compound {
            ssrc: self.ssrc,
            sender: None,
            reports: Vec::new(),
            cname: self.cname.clone(),
            apps: Vec::new(),
            arrivals: None,
            transport: Vec::new(),
            ecn: Vec::new(),
            ecn_summary: Vec::new(),
            repair: Vec::new(),
            bye: None,
            reduced: false,
        }
    }

    /// An empty report to which feedback is added; `alone`: without the other parts of a report (RFC 5506).
    pub(super) fn feedback(&self, alone: bool) -> Compound {
        match alone {
            true => Compound { cname: "".into(), reduced: true, ..self.report() },
            false => self.report(),
        }
    }

    /// A BYE of this participant.
    pub(super) fn bye(&self) -> Bye {
        Bye { sources: vec![self.ssrc], reason: None }
    }
}

/// The sender information of a report.
pub(super) fn sender_info(now: Time, timestamps: u32, packets: u32, octets: u32) -> SenderInfo {
    SenderInfo { ntp: Ntp::at(now), rtp: timestamps.wrapping_add(ticks(now)), packets, octets }
}

/// Size of a report on the wire in bytes.
pub(super) fn size(report: &Compound) -> u16 {
    u16::try_from(report.wire_len() + UDP_IPV4).unwrap_or(u16::MAX)
}

/// Sends a report; `flags` give its direction. Returns its bytes on the wire.
pub(super) fn transmit(report: Compound, flags: Flags, now: Time, out: &mut impl Transmit) -> u16 {
    let size = size(&report);
    out.transmit(Segment { seq: 0, stamp: Stamp::at(now), size, flags, extra: Some(Extra::Rtcp(Box::new(report))) });
    size
}
