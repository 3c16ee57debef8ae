//! Several streams of a host under one controller (WebRTC's BUNDLE; RFC 8843), as libwebrtc's pacer has them
//! (`modules/pacing/prioritized_packet_queue.cc`, `pacing_controller.cc`).
//!
//! One sender leads: its controller, its pacer, its window and its transport-wide numbers are those of all. The others keep what they
//! have to send, and a source of their own ([`RtpConfig::bundled`](crate::rtp::RtpConfig::bundled)). Their owner says to the leader what
//! [waits](RtpSender::waiting) there, gives them the [`Turn`]s that the leader has for them, and tells it what has left
//! ([`RtpSender::took`]). Sound goes first, and waits for neither the pace nor the window, but counts for both; then comes what is
//! sent again, then pictures, of each kind one packet of a stream after one of another; then fillers.

use super::{CATCH_UP, RtpSender};
use crate::Transmit;
use paceline_control::{Controller, MediaController, RtpEvent, SentPacket};
use paceline_units::{Rate, Size, Span, Time};

/// A leader leads so many at most: those of a place beyond have no turn.
const MOST_STREAMS: usize = 4096;

/// Kinds of packets, first those that go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Sound.
    Sound,
    /// What is sent again.
    Again,
    /// Pictures.
    Picture,
}

/// What waits at a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// What its next packet is; `None` if there is none.
    pub next: Option<Class>,
    /// Bytes on the wire of all that waits.
    pub backlog: u64,
    /// When the oldest frame was written; never if none waits.
    pub since: Time,
    /// Bytes on the wire of all frames so far.
    pub written: u64,
}

impl Waiting {
    /// Of a stream that has not begun.
    pub const NOTHING: Waiting = Waiting { next: None, backlog: 0, since: Time::NEVER, written: 0 };
}

/// What the streams of a bundle may have together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The rate that the leader's controller names, with all headers.
    pub target: Rate,
    /// How long what waits at all of them takes to leave.
    pub queueing: Span,
    /// The round-trip time.
    pub rtt: Span,
}

/// A stream's turn to send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The packet's number among all of the bundle, and what of it goes by the wire.
    pub number: u32,
    /// That.
    pub transport: u16,
    /// The cluster that it is of.
    pub probe: Option<u32>,
}

/// What a leader knows of the others.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    others: Vec<Waiting>,
    /// Whose packet was the last of its kind: the leader's is 0.
    last: usize,
    /// The turn that nobody has been given yet, and whose it is.
    turn: Option<(usize, Turn)>,
    /// The host's interface takes no sound before.
    pub(super) full: Time,
    /// What waits at the others is to be thrown away.
    pub(super) thrown: bool,
}

/// What a stream that is led knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Led {
    /// The turn that it has.
    turn: Option<Turn>,
    /// What has left in it.
    sent: Option<SentPacket>,
    /// How long what waits in the whole bundle takes to leave.
    pub(super) queueing: Span,
}

impl Led {
    /// A packet leaves; gives its transport-wide number.
    pub(super) fn leaves(&mut self, packet: SentPacket) -> u16 {
        let turn = self.turn.unwrap_or(Turn { number: packet.number, transport: 0, probe: None });
        self.sent = Some(SentPacket { number: turn.number, ..packet });
        turn.transport
    }
}

impl Bundle {
    fn new() -> Bundle {
        Bundle { others: Vec::new(), last: 0, turn: None, full: Time::ZERO, thrown: false }
    }

    /// Whose packet is next, and what it is; `own` is the leader's.
    fn next(&self, own: Option<Class>) -> Option<(Class, usize)> {
        let count = self.others.len() + 1;
        let of = |place: usize| if place == 0 { own } else { self.others[place - 1].next };
        // from the one after the last on: of several of a kind the one that has waited longest
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
    /// What a leader is to know of a stream that it leads.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        let next = if self.started && !self.is_over() { self.own_class() } else { None };
        let since = self.frames.front().map_or(Time::NEVER, |frame| frame.written);
        Waiting { next, backlog: self.backlog, since, written: self.written }
    }

    /// What its own next packet is.
    fn own_class(&self) -> Option<Class> {
        if self.history.waits() {
            return Some(Class::Again);
        }
        let fresh = if self.config.sound { Class::Sound } else { Class::Picture };
        self.supply.is_left().then_some(fresh)
    }

    /// Of a leader: whether the next packet of all waits for nothing.
    pub(super) fn is_sound_next(&self) -> bool {
        let Some(bundle) = &self.bundle else { return false };
        matches!(bundle.next(self.own_class()), Some((Class::Sound, _)))
    }

    /// Of a leader: the next packet is another's, who is to be given a turn.
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

    /// Of a leader: the turn that is to be given, and the place of the stream whose it is.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        self.bundle.as_ref()?.turn
    }

    /// Of a leader: whether what waits at those that it leads is to be thrown away ([`RtpSender::throw_away`]), since this was last asked.
    pub fn take_thrown_of_others(&mut self) -> bool {
        self.bundle.as_mut().is_some_and(|bundle| core::mem::take(&mut bundle.thrown))
    }

    /// Of a leader: what waits at the stream of this place, from 0 on, among those that it leads.
    pub fn others(&mut self, place: usize, waiting: Waiting, now: Time, out: &mut impl Transmit) {
        self.note_others(place, waiting, now);
        self.run(now, out);
    }

    fn note_others(&mut self, place: usize, waiting: Waiting, now: Time) {
        let bundle = self.bundle.get_or_insert_with(|| Box::new(Bundle::new()));
        if place >= bundle.others.len() {
            bundle.others.resize(place.min(MOST_STREAMS) + 1, Waiting::NOTHING);
        }
        let Some(other) = bundle.others.get_mut(place) else { return };
        let frames = waiting.written.saturating_sub(other.written);
        *other = waiting;
        if frames > 0 && self.started && self.config.settings.tells_sending {
            self.controller.on_feedback(&RtpEvent::Frame { size: Size::from_bytes(frames) }, &self.path(now));
            self.heed_discard();
        }
    }

    /// Of a stream that is led: it has its turn. Gives what has left, if anything was there.
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

    /// Of a leader: what the stream that had its turn has sent, and what waits there now.
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

    /// Of a leader: what its streams may have together; `None` before its controller names a rate.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        let target = self.controller.target().filter(|_| self.started)?;
        Some(Grant { target, queueing: self.queueing(), rtt: self.rtt })
    }

    /// Its part of what its bundle may have, for its encoder.
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

    /// The places whose packets are next, each served once and then as before.
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
        use Class::{Again, Picture, Sound};
        assert_eq!(served(Some(Picture), &[Some(Again), Some(Sound)], 2), [2, 2]);
        assert_eq!(served(Some(Picture), &[Some(Again), None], 2), [1, 1]);
        assert_eq!(served(Some(Sound), &[Some(Again), Some(Picture)], 2), [0, 0]);
        assert_eq!(served(None, &[None, None], 1), [0usize; 0]);
    }

    #[test]
    fn streams_of_a_kind_take_turns() {
        let picture = Some(Class::Picture);
        assert_eq!(served(picture, &[picture, picture], 6), [1, 2, 0, 1, 2, 0]);
        assert_eq!(served(None, &[picture, None, picture], 4), [1, 3, 1, 3]);
    }
}
