//! Retransmission (RFC 4588), as in libwebrtc (`modules/rtp_rtcp/source/rtp_packet_history.cc`).
//!
//! A retransmission belongs to a separate source, and its payload begins with the original sequence number (section 4).
//! It is sent before new media, under the same pacer and window, and has its own transport-wide number, so it counts
//! like any packet and feedback covers it. Padding packets belong to that source too, so that gaps in the media's
//! sequence numbers are always losses. Not modelled: libwebrtc's limit of retransmissions to the target rate in each
//! 500 ms.

use super::{Outgoing, RtpSender, SentPacket};
use crate::Transmit;
use paceline_control::MediaController;
use paceline_packet::rtcp::{Compound, Repair};
use paceline_packet::rtp::RtpData;
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// A packet is kept for the longer of this time and three round-trip times.
const MIN_KEPT: Span = Span::from_secs(1);
const ROUND_TRIPS: u64 = 3;
/// While at most `FEW` packets are kept, it is kept three times as long.
const FEW: usize = 600;
const PATIENCE: u64 = 3;
/// Maximum number of packets kept.
const MAX_PACKETS: usize = 9600;

/// A sent media packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) captured: Time,
    pub(super) payload: u16,
    pub(super) ends_frame: bool,
    pub(super) key: bool,
    /// When it was last sent, and how often it was retransmitted.
    sent: Time,
    again: u32,
    waits: bool,
}

/// The media packets that may be retransmitted.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Number of media packets before the first one kept.
    first: u32,
    kept: VecDeque<Kept>,
    /// Packets to retransmit, by their place in the session.
    waiting: VecDeque<u32>,
}

impl History {
    /// Adds a sent media packet.
    pub(super) fn push(&mut self, now: Time, rtt: Span, packet: Kept) {
        self.kept.push_back(Kept { sent: now, ..packet });
        let min_age = MIN_KEPT.max(rtt * ROUND_TRIPS);
        while let Some(oldest) = self.kept.front() {
            let over = |span: Span| oldest.sent + span <= now;
            let many = self.kept.len() > FEW;
            if self.kept.len() <= MAX_PACKETS && !(over(min_age) && (many || over(min_age * PATIENCE))) {
                break;
            }
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Whether any packet waits for retransmission.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Number of media packets so far.
    pub(super) fn media(&self) -> u32 {
        self.first + self.kept.len() as u32
    }

    /// Processes a request for the packet at `place`. It is ignored if the packet already waits, or was retransmitted
    /// within a round-trip time. Otherwise, returns the payload size.
    fn on_request(&mut self, now: Time, rtt: Span, place: u32) -> Option<u16> {
        let kept = self.kept.get_mut(place.checked_sub(self.first)? as usize)?;
        if kept.waits || kept.again > 0 && kept.sent + rtt > now {
            return None;
        }
        kept.waits = true;
        self.waiting.push_back(place);
        Some(kept.payload)
    }

    /// Takes the next packet to retransmit, with its place.
    fn take(&mut self, now: Time) -> Option<(u32, Kept)> {
        loop {
            let place = self.waiting.pop_front()?;
            if let Some(kept) = place.checked_sub(self.first).and_then(|at| self.kept.get_mut(at as usize)) {
                (kept.waits, kept.again, kept.sent) = (false, kept.again + 1, now);
                return Some((place, *kept));
            }
        }
    }

    /// Cancels waiting retransmissions.
    pub(super) fn withdraw(&mut self) {
        self.waiting.clear();
        self.kept.iter_mut().for_each(|kept| kept.waits = false);
    }
}

impl Kept {
    pub(super) fn new(captured: Time, payload: u16, ends_frame: bool, key: bool) -> Kept {
        Kept { captured, payload, ends_frame, key, sent: captured, again: 0, waits: false }
    }
}

impl RtpSender {
    /// Whether the receiver has requested a key frame since the last call.
    pub fn take_key_request(&mut self) -> bool {
        core::mem::take(&mut self.wants_key)
    }

    /// How long the queue takes to leave at the controller's rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        if let Some(led) = &self.led {
            return led.queueing;
        }
        Span::from_secs_f64((self.backlog_of_all() as f64 / self.controller.rate().max(1.0)).min(1e6))
    }

    /// Bytes on the wire that wait, including those of the streams that it leads.
    pub(super) fn backlog_of_all(&self) -> u64 {
        self.backlog + self.bundle.as_ref().map_or(0, |bundle| bundle.backlog())
    }

    /// Processes the requests in a report.
    #[cold]
    pub(super) fn on_repair_requests(&mut self, now: Time, report: &Compound) {
        let us = self.session.us.ssrc;
        for repair in &report.repair {
            match repair {
                Repair::Pli(source) => self.wants_key |= *source == us && !self.is_over(),
                Repair::Nack(nack) if nack.ssrc == us && self.config.nack && !self.is_over() => {
                    for &lost in &nack.lost {
                        self.on_nack(now, lost);
                    }
                }
                Repair::Nack(_) => {}
            }
        }
    }

    fn on_nack(&mut self, now: Time, lost: u16) {
        let media = self.history.media();
        let newest = self.session.numbers.0.wrapping_add(media as u16).wrapping_sub(1);
        let place = media.checked_sub(1 + u32::from(newest.wrapping_sub(lost)));
        if let Some(payload) = place.and_then(|place| self.history.on_request(now, self.rtt, place)) {
            self.backlog += u64::from(self.again_size(payload));
        }
    }

    /// Bytes on the wire of a retransmission.
    fn again_size(&self, payload: u16) -> u16 {
        self.config.header + RtpData::ORIGINAL_LEN as u16 + payload
    }

    /// Sends the next retransmission, if there is one.
    pub(super) fn resend(&mut self, now: Time, probe: Option<u32>, out: &mut impl Transmit) -> Option<u16> {
        let (place, kept) = self.history.take(now)?;
        let size = self.again_size(kept.payload);
        self.backlog = self.backlog.saturating_sub(size.into());
        let number = self.next();
        self.aside += 1;
        let packet = SentPacket {
            number,
            size: Size::from_bytes(size.into()),
            payload: Size::from_bytes(kept.payload.into()),
            ends_frame: false,
            probe,
        };
        self.stats.retransmitted += 1;
        let original = Some(self.session.numbers.0.wrapping_add(place as u16));
        let payload_type = if kept.key { RtpData::KEY_RETRANSMISSION } else { RtpData::RETRANSMISSION };
        let what = Outgoing { captured: kept.captured, payload_type, marker: kept.ends_frame, original };
        self.emit(now, what, packet, out);
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    const RTT: Span = Span::from_millis(50);

    fn history(packets: u64) -> History {
        let mut history = History::default();
        for n in 0..packets {
            history.push(ms(n), RTT, Kept::new(ms(n), n as u16, false, false));
        }
        history
    }

    #[test]
    fn a_repeat_within_a_round_trip_is_ignored() {
        let mut history = history(10);
        assert_eq!(history.on_request(ms(10), RTT, 3), Some(3), "the first at once");
        assert_eq!(history.on_request(ms(11), RTT, 3), None, "it waits");
        assert_eq!(history.take(ms(20)).map(|(place, kept)| (place, kept.payload)), Some((3, 3)));
        assert_eq!(history.on_request(ms(69), RTT, 3), None);
        assert_eq!(history.on_request(ms(70), RTT, 3), Some(3));
        assert_eq!(history.on_request(ms(70), RTT, 10), None, "not sent yet");
        history.withdraw();
        assert!(!history.waits() && history.take(ms(70)).is_none());
    }

    #[test]
    fn a_second_is_kept_and_more_while_they_are_few() {
        let of = |packets| (history(packets).first, history(packets).kept.len());
        assert_eq!(of(900), (0, 900), "younger than a second");
        assert_eq!(of(1500), (500, 1000));
        let mut slow = History::default();
        for n in 0..400 {
            slow.push(ms(n * 10), RTT, Kept::new(ms(n * 10), 1, false, false));
        }
        assert_eq!((slow.first, slow.kept.len()), (100, 300), "three seconds");
        let mut fast = History::default();
        for _ in 0..10_000 {
            fast.push(ms(0), RTT, Kept::new(ms(0), 1, false, false));
        }
        assert_eq!(fast.kept.len(), MAX_PACKETS);
        let mut far = History::default();
        for n in 0..1000 {
            far.push(ms(n * 10), Span::from_secs(1), Kept::new(ms(n * 10), 1, false, false));
        }
        assert_eq!(far.kept.len(), 600, "six seconds: longer than three round trips, and no more than 600");
    }
}
