//! Several streams of a host under one controller (WebRTC's BUNDLE; RFC 8843), as in libwebrtc's pacer
//! (`modules/pacing/prioritized_packet_queue.cc`, `pacing_controller.cc`).
//!
//! One sender leads: its controller, pacer, window and transport-wide numbers serve all streams. The others keep their
//! queues and their own sources ([`RtpConfig::bundled`](crate::rtp::RtpConfig::bundled)). Their owner tells the leader
//! what they have [`waiting`](RtpSender::waiting), passes on the leader's [`Turn`]s, and reports what they sent
//! ([`RtpSender::took`]). Audio goes first; it waits for neither pacer nor window, but is charged to both.
//! Retransmissions follow, then video; within a class, streams take turns packet by packet. Padding goes last.

use super::{CATCH_UP, RtpSender};
use crate::Transmit;
use paceline_control::{Controller, MediaController, RtpEvent, SentPacket};
use paceline_units::{Rate, Size, Span, Time};

/// Maximum number of streams that a leader leads; streams beyond get no turn.
const MAX_STREAMS: usize = 4096;

/// Classes of packets, in order of priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Audio.
    Audio,
    /// A retransmission.
    Retransmission,
    /// Video.
    Video,
}

/// The queue of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The class of its next packet; `None` if there is none.
    pub next: Option<Class>,
    /// Bytes on the wire of all waiting packets.
    pub backlog: u64,
    /// When the oldest waiting frame was written; `NEVER` if none waits.
    pub since: Time,
    /// Bytes on the wire of all frames so far.
    pub written: u64,
}

impl Waiting {
    /// The queue of a stream that has not started.
    pub const NOTHING: Waiting = Waiting { next: None, backlog: 0, since: Time::NEVER, written: 0 };
}

/// The rate that the streams of a bundle share, and their state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The target rate of the leader's controller, including all headers.
    pub target: Rate,
    /// How long everything that waits in the bundle takes to leave.
    pub queueing: Span,
    /// The round-trip time.
    pub rtt: Span,
}

/// A stream's turn to send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The packet's number, over all packets of the bundle.
    pub number: u32,
    /// The transport-wide sequence number on the wire.
    pub transport: u16,
    /// The probe cluster that it belongs to.
    pub probe: Option<u32>,
}

/// A leader's state of the other streams.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    others: Vec<Waiting>,
    /// The place of the stream that sent last; the leader's is 0.
    last: usize,
    /// The turn that was not passed on yet, with the place of its stream.
    turn: Option<(usize, Turn)>,
    /// The host's interface accepts no audio before this time.
    pub(super) full: Time,
    /// The queues of the other streams are to be discarded.
    pub(super) discarded: bool,
}

/// The state of a stream led by another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Led {
    /// Its current turn.
    turn: Option<Turn>,
    /// The packet sent in it.
    sent: Option<SentPacket>,
    /// How long everything that waits in the bundle takes to leave.
    pub(super) queueing: Span,
}

impl Led {
    /// Records a sent packet; returns its transport-wide number.
    pub(super) fn leaves(&mut self, packet: SentPacket) -> u16 {
        let turn = self.turn.unwrap_or(Turn { number: packet.number, transport: 0, probe: None });
        self.sent = Some(SentPacket { number: turn.number, ..packet });
        turn.transport
    }
}

impl Bundle {
    fn new() -> Bundle {
        Bundle { others: Vec::new(), last: 0, turn: None, full: Time::ZERO, discarded: false }
    }

    /// The class of the next packet, and the place of its stream; `own`: the leader's next packet.
    fn next(&self, own: Option<Class>) -> Option<(Class, usize)> {
        let count = self.others.len() + 1;
        let of = |place: usize| if place == 0 { own } else { self.others[place - 1].next };
        // beginning after the last one: within a class, the stream that has waited longest
        let around = (1..=count).map(|step| (self.last + step) % count);
        around.filter_map(|place| Some((of(place)?, place))).min_by_key(|(class, _)| *class)
    }

    pub(super) fn waits(&self) -> bool {
        self.others.iter().any(|other| other.next.is_some())
    }

    pub(super) fn backlog(&self) -> u64 {
        self.others.iter().map(|other| other.backlog).sum()
    }

    pub(super) fn since(&self) -> Time {
        self.others.iter().map(|other| other.since).min().unwrap_or(Time::NEVER)
    }

    pub(super) fn is_handing(&self) -> bool {
        self.turn.is_some()
    }
}

impl RtpSender {
    /// Its queue, as its leader must know it.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        let next = if self.started && !self.is_over() { self.own_class() } else { None };
        let since = self.frames.front().map_or(Time::NEVER, |frame| frame.written);
        Waiting { next, backlog: self.backlog, since, written: self.written }
    }

    /// The class of its own next packet.
    fn own_class(&self) -> Option<Class> {
        if self.history.waits() {
            return Some(Class::Retransmission);
        }
        let fresh = if self.config.sound { Class::Audio } else { Class::Video };
        self.supply.is_left().then_some(fresh)
    }

    /// For a leader: whether the next packet of the bundle is audio, and so waits for nothing.
    pub(super) fn is_sound_next(&self) -> bool {
        let Some(bundle) = &self.bundle else { return false };
        matches!(bundle.next(self.own_class()), Some((Class::Audio, _)))
    }

    /// For a leader: hands the turn to another stream if the next packet is that stream's; returns whether it did.
    pub(super) fn hands_over(&mut self, probe: Option<u32>) -> bool {
        let (own, number, first) = (self.own_class(), self.next(), self.first);
        let Some(bundle) = &mut self.bundle else { return false };
        match bundle.next(own) {
            Some((_, place)) if place > 0 => {
                let turn = Turn { number, transport: number.wrapping_sub(first) as u16, probe };
                bundle.turn = Some((place - 1, turn));
                true
            }
            _ => {
                bundle.last = 0;
                false
            }
        }
    }

    /// For a leader: the turn to pass on, with the place of its stream.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        self.bundle.as_ref()?.turn
    }

    /// For a leader: whether a discard of the queues that it leads was requested since the last call
    /// ([`RtpSender::discard_queue`]).
    pub fn take_discarded_of_others(&mut self) -> bool {
        self.bundle.as_mut().is_some_and(|bundle| core::mem::take(&mut bundle.discarded))
    }

    /// For a leader: sets the queue of the stream at this place, from 0 on, among those that it leads.
    pub fn others(&mut self, place: usize, waiting: Waiting, now: Time, out: &mut impl Transmit) {
        self.note_others(place, waiting, now);
        self.run(now, out);
    }

    fn note_others(&mut self, place: usize, waiting: Waiting, now: Time) {
        let bundle = self.bundle.get_or_insert_with(|| Box::new(Bundle::new()));
        if place >= bundle.others.len() {
            bundle.others.resize(place.min(MAX_STREAMS) + 1, Waiting::NOTHING);
        }
        let Some(other) = bundle.others.get_mut(place) else { return };
        let frames = waiting.written.saturating_sub(other.written);
        *other = waiting;
        if frames > 0 && self.started && self.config.settings.report_sent {
            self.controller.on_feedback(&RtpEvent::Frame { size: Size::from_bytes(frames) }, &self.path(now));
            self.heed_discard();
        }
    }

    /// For a stream led by another: sends a packet in its turn. Returns the packet, if there was one.
    pub fn send_in_turn(&mut self, turn: Turn, now: Time, out: &mut impl Transmit) -> Option<SentPacket> {
        if !self.started || self.is_over() || !self.is_left() {
            return None;
        }
        self.led.as_mut()?.turn = Some(turn);
        self.send(now, turn.probe, out);
        let led = self.led.as_mut()?;
        led.turn = None;
        led.sent.take()
    }

    /// For a leader: processes the packet that a stream sent in its turn, and that stream's queue.
    pub fn took(&mut self, sent: Option<SentPacket>, waiting: Waiting, now: Time, out: &mut impl Transmit) {
        let Some((place, turn)) = self.bundle.as_mut().and_then(|bundle| bundle.turn.take()) else { return };
        self.note_others(place, waiting, now);
        if let Some(bundle) = &mut self.bundle {
            bundle.last = place + 1;
        }
        if let Some(packet) = sent {
            self.aside += 1;
            self.note(now, packet);
            let size = packet.size.bytes() as u16;
            let credit = if turn.probe.is_some() { Span::ZERO } else { CATCH_UP };
            self.left(now, size, credit, turn.probe);
        }
        self.run(now, out);
    }

    /// For a leader: the rate that its streams share; `None` before its controller sets a target.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        let target = self.controller.target().filter(|_| self.started)?;
        Some(Grant { target, queueing: self.queueing(), rtt: self.rtt })
    }

    /// Sets its share of the bundle's rate, for its encoder.
    pub fn allot(&mut self, part: Rate, grant: &Grant, now: Time) {
        let Some(led) = &mut self.led else {
            self.kept = Some(part);
            return;
        };
        led.queueing = grant.queueing;
        self.account(now);
        self.controller.share(part, now);
        self.rtt = grant.rtt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(next: Option<Class>) -> Waiting {
        Waiting { next, ..Waiting::NOTHING }
    }

    /// The places of the next packets' streams, each served in turn.
    fn served(own: Option<Class>, others: &[Option<Class>], turns: usize) -> Vec<usize> {
        let mut bundle = Bundle { others: others.iter().map(|next| waiting(*next)).collect(), ..Bundle::new() };
        let mut serve = || {
            let (_, place) = bundle.next(own)?;
            bundle.last = place;
            Some(place)
        };
        (0..turns).map_while(|_| serve()).collect()
    }

    #[test]
    fn sound_goes_first_then_what_is_sent_again_then_pictures() {
        use Class::{Audio, Retransmission, Video};
        assert_eq!(served(Some(Video), &[Some(Retransmission), Some(Audio)], 2), [2, 2]);
        assert_eq!(served(Some(Video), &[Some(Retransmission), None], 2), [1, 1]);
        assert_eq!(served(Some(Audio), &[Some(Retransmission), Some(Video)], 2), [0, 0]);
        assert_eq!(served(None, &[None, None], 1), [0usize; 0]);
    }

    #[test]
    fn streams_of_a_kind_take_turns() {
        let picture = Some(Class::Video);
        assert_eq!(served(picture, &[picture, picture], 6), [1, 2, 0, 1, 2, 0]);
        assert_eq!(served(None, &[picture, None, picture], 4), [1, 3, 1, 3]);
    }
}
