//! The state of a sender's session.

use crate::rtp::ecn::EcnCheck;
use crate::rtp::participant::Participant;
use crate::rtp::timing::ReportTimer;
use paceline_packet::NtpMiddle;
use paceline_packet::rtp::Ssrc;
use paceline_random::Stream;
use paceline_units::Time;
use std::collections::VecDeque;

/// The state of one session; a restart begins a new one.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) us: Participant,
    /// The first packet's sequence number, and the offset of timestamps from the clock.
    pub(super) numbers: (u16, u32),
    /// The next packet's sequence number.
    pub(super) next: u16,
    pub(super) octets: u32,
    /// The SSRC of retransmissions and padding, and its next sequence number.
    pub(super) aside: (Ssrc, u16),
    pub(super) timer: Option<ReportTimer>,
    /// Sender reports that the receiver may still echo.
    pub(super) echoes: VecDeque<(NtpMiddle, Time)>,
    /// Number of data packets sent up to the sender's last report, and up to the one before.
    pub(super) at_report: (u32, u32),
    /// A packet of the receiver has arrived.
    pub(super) answered: bool,
    /// A report was sent.
    pub(super) spoken: bool,
    /// The check of ECN on the path, if enabled.
    pub(super) ecn: EcnCheck,
}

impl Session {
    pub(super) fn new(stream: Stream, first: u32) -> Session {
        let us = Participant::new(stream);
        let (numbers, aside) = (us.first_numbers(), us.aside());
        let (timer, echoes) = (None, VecDeque::new());
        Session {
            us,
            numbers,
            next: numbers.0,
            octets: 0,
            aside,
            timer,
            echoes,
            at_report: (first, first),
            answered: false,
            spoken: false,
            ecn: EcnCheck::new(),
        }
    }
}
