//! What a sender's session is.

use crate::rtp::ecn::EcnCheck;
use crate::rtp::participant::Participant;
use crate::rtp::timing::ReportTimer;
use paceline_packet::NtpMiddle;
use paceline_packet::rtp::Ssrc;
use paceline_random::Stream;
use paceline_units::Time;
use std::collections::VecDeque;

/// What a session has of its own: a restart begins another.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) us: Participant,
    /// The first packet's number on the wire, and what is added to the clock for timestamps.
    pub(super) numbers: (u16, u32),
    /// The next packet's number on the wire.
    pub(super) next: u16,
    pub(super) octets: u32,
    /// The source of retransmissions and fillers where there are any, and its next number.
    pub(super) aside: (Ssrc, u16),
    pub(super) timer: Option<ReportTimer>,
    /// The sender reports that the receiver may still echo.
    pub(super) echoes: VecDeque<(NtpMiddle, Time)>,
    /// Data packets sent up to the last report of ours, and up to the one before.
    pub(super) at_report: (u32, u32),
    /// The receiver has been heard of.
    pub(super) answered: bool,
    /// A report of ours has left.
    pub(super) spoken: bool,
    /// Whether packets may be ECN-capable, where that is tried.
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
