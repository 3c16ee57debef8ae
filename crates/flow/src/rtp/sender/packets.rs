//! The construction of a data packet: its source, its numbers, its ECN field.

use super::RtpSender;
use crate::rtp::{FeedbackFormat, ticks};
use crate::{Segment, Transmit};
use paceline_control::{Controller, RtpEvent, RtpFeedback, SentPacket};
use paceline_packet::rtp::RtpData;
use paceline_packet::{Extra, Flags, Stamp};
use paceline_units::{Size, Time};

/// The fields of a data packet besides its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) captured: Time,
    pub(super) payload_type: u8,
    pub(super) marker: bool,
    /// For a retransmission: the original sequence number.
    pub(super) original: Option<u16>,
}

impl RtpSender {
    /// Sends a data packet.
    #[inline]
    pub(super) fn emit(&mut self, now: Time, what: Outgoing, packet: SentPacket, out: &mut impl Transmit) {
        let size = packet.size.bytes() as u16;
        self.stats.sent(size);
        let aside = self.config.nack && !matches!(what.payload_type, RtpData::PAYLOAD_TYPE | RtpData::KEY);
        if !aside {
            self.session.octets = self.session.octets.wrapping_add(size.saturating_sub(self.config.header).into());
        }
        let transport = match &mut self.led {
            Some(led) => led.leaves(packet),
            None => {
                if self.config.settings.feedback == RtpFeedback::Arrivals {
                    self.note(now, packet);
                }
                packet.number.wrapping_sub(self.first) as u16
            }
        };
        let (ssrc, next) = match aside {
            true => (self.session.aside.0, &mut self.session.aside.1),
            false => (self.session.us.ssrc, &mut self.session.next),
        };
        let sequence = *next;
        *next = next.wrapping_add(1);
        let flags = self.flags(packet.number);
        let flags = if what.original.is_some() { flags.with(Flags::RETRANSMISSION) } else { flags };
        let data = RtpData {
            ssrc,
            timestamp: self.session.numbers.1.wrapping_add(ticks(what.captured)),
            sequence,
            payload_type: what.payload_type,
            marker: what.marker,
            transport: self.is_numbered().then_some(transport),
            original: what.original,
        };
        out.transmit(Segment {
            seq: u32::from(sequence),
            stamp: Stamp::at(what.captured),
            size,
            flags,
            extra: Some(Extra::Rtp(data)),
        });
    }

    /// Records a packet that feedback will cover.
    #[inline]
    pub(super) fn note(&mut self, now: Time, packet: SentPacket) {
        self.sent.push(now, packet);
        if self.config.settings.report_sent {
            let in_flight = Size::from_bytes(self.sent.in_flight());
            self.controller.on_feedback(&RtpEvent::Sent { packet, in_flight }, &self.path(now));
        }
    }

    /// The packet's ECN flags.
    #[inline]
    fn flags(&mut self, number: u32) -> Flags {
        let capable = self.config.ecn && (!self.config.ecn_reports || self.session.ecn.mark(number));
        match (capable, self.config.settings.l4s) {
            (false, _) => Flags::NONE,
            (true, false) => Flags::ECT,
            (true, true) => Flags::ECT.with(Flags::L4S),
        }
    }

    /// Whether packets have transport-wide numbers; they count from 0 in each session.
    #[inline]
    pub(super) fn is_numbered(&self) -> bool {
        self.config.feedback.format == FeedbackFormat::Transport
            && self.config.settings.feedback == RtpFeedback::Arrivals
    }

    /// The 16-bit sequence number of a data packet.
    pub(super) fn on_the_wire(&self, number: u32) -> u16 {
        self.session.numbers.0.wrapping_add(number.wrapping_sub(self.first) as u16)
    }
}
