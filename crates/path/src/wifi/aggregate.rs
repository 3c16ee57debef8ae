//! The cell's handling of 802.11n stations: what goes into a frame, and what a response means for each part of it.
//!
//! A transmitter takes packets from its queue when it sends, at most [`MAX_HELD`] at once, and fills an A-MPDU for the
//! station of the oldest one; it keeps the rest, in order. IEEE Std 802.11-2012: 9.12 (A-MPDU), 9.21 (block ACK).

use super::cell::{ACCESS_POINT, Cell, Output};
use super::exchange::{Frames, Kind, Outcome};
use super::ht::Ht;
use super::interface::PendingFrame;
use super::session::{Length, MAX_AMPDU_OCTETS, Mpdu, WINDOW};
use crate::DropReason;
use paceline_engine::Routes;
use paceline_packet::Packet;
use paceline_units::Time;

/// The maximum number of packets that a transmitter takes from its queue in advance: two windows.
pub const MAX_HELD: usize = 2 * WINDOW as usize;

impl Cell {
    /// The session between this interface and a station, in the interface's direction.
    fn session(&self, number: usize, station: usize) -> usize {
        let upward = usize::from(self.interfaces[number].device != ACCESS_POINT);
        (2 * station + upward) * self.categories + number % self.categories
    }

    /// Selects the next frame of an interface that sends aggregates.
    pub(super) fn take_next(&mut self, number: usize, now: Time, ways: &Routes) {
        if self.interfaces[number].held.is_empty() {
            self.hold_next(number, now, ways);
        }
        let mut stations = match self.interfaces[number].device {
            ACCESS_POINT => 0..self.model.stations.len(),
            device => device - 1..device,
        };
        let urgent = stations.find(|station| self.sessions[self.session(number, *station)].urgent);
        let first = self.interfaces[number].held.front().copied();
        let pending = match (urgent, first) {
            (Some(station), _) => PendingFrame::of_several(Frames::request(&self.model, station)),
            (None, None) => return,
            (None, Some(mpdu)) if self.model.stations[mpdu.station].ht.is_none() => {
                self.interfaces[number].held.pop_front();
                PendingFrame::of_one(mpdu.packet, Frames::new(&self.model, mpdu.station, mpdu.octets))
            }
            (None, Some(mpdu)) if self.sessions[self.session(number, mpdu.station)].request => {
                PendingFrame::of_several(Frames::request(&self.model, mpdu.station))
            }
            (None, Some(mpdu)) => {
                let length = Length::default().with(mpdu.octets);
                PendingFrame {
                    tries: mpdu.tries,
                    ..PendingFrame::of_several(Frames::aggregate(&self.model, mpdu.station, length))
                }
            }
        };
        self.interfaces[number].pending = Some(pending);
    }

    /// Moves a packet from the queue to `held`.
    fn hold_next(&mut self, number: usize, now: Time, ways: &Routes) -> Option<Mpdu> {
        let packet = self.dequeue(number, now)?;
        let (_, station) = self.port(&packet, ways);
        let table = &self.model.stations[station];
        let place = self.session(number, station);
        let seq = if table.ht.is_some() { self.sessions[place].number() } else { 0 };
        let octets = self.model.octets(table, packet.size.into());
        let mpdu = Mpdu { packet, station, octets, seq, tries: 0, arrived: false, aboard: false, damaged: false };
        self.interfaces[number].held.push_back(mpdu);
        Some(mpdu)
    }

    /// Fills the frame that this interface is about to send, at `start`.
    pub(super) fn fill(&mut self, number: usize, start: Time, now: Time, ways: &Routes) {
        let Some(PendingFrame { frames, .. }) = self.interfaces[number].pending else { return };
        let (Kind::Aggregate, Some(ht)) = (frames.kind, self.model.stations[frames.station].ht) else { return };
        let time_left = self.interfaces[number].txop_end().map(|end| end.since(start));
        let mut first = None;
        let mut length = Length::default();
        let mut i = 0;
        loop {
            let held = self.interfaces[number].held.get(i).copied();
            let mpdu = match held {
                Some(mpdu) => mpdu,
                None if i >= MAX_HELD => break,
                None => match self.hold_next(number, now, ways) {
                    Some(mpdu) => mpdu,
                    None => break,
                },
            };
            if mpdu.station == frames.station {
                let begin = *first.get_or_insert(mpdu.seq);
                let longer = length.with(mpdu.octets);
                let fits = longer.octets() <= MAX_AMPDU_OCTETS && ht.airtime(longer.octets()) <= Ht::MAX_DURATION;
                let within =
                    |time_left| Frames::aggregate(&self.model, frames.station, longer).lasts(&self.model) <= time_left;
                if length.mpdus > 0 && !(fits && mpdu.seq < begin + WINDOW && time_left.is_none_or(within)) {
                    break;
                }
                length = longer;
                self.interfaces[number].held[i].aboard = true;
                if u64::from(length.mpdus) == WINDOW {
                    break;
                }
            }
            i += 1;
        }
        if let Some(pending) = &mut self.interfaces[number].pending {
            pending.frames = Frames::aggregate(&self.model, frames.station, length);
        }
    }

    /// Receives a frame at `time` and forwards the packets that are in order. Returns whether a part of it was damaged.
    pub(super) fn deliver(&mut self, number: usize, frames: &Frames, time: Time) -> bool {
        let place = self.session(number, frames.station);
        let (held, outputs) = (&mut self.interfaces[number].held, &mut self.outputs);
        let session = &mut self.sessions[place];
        let mut forward = |packet| outputs.push_back(Output::Forward(Packet { time, ..packet }));
        if frames.kind == Kind::Request {
            let first = held.iter().find(|mpdu| mpdu.station == frames.station).map(|mpdu| mpdu.seq);
            session.release(session.start(first), forward);
            return false;
        }
        let mut damaged = false;
        for mpdu in held.iter_mut().filter(|mpdu| mpdu.aboard) {
            damaged |= mpdu.damaged;
            if !mpdu.damaged && !mpdu.arrived {
                mpdu.arrived = true;
                session.arrive(mpdu.seq, mpdu.packet, &mut forward);
            }
        }
        damaged
    }

    /// Handles the end of an attempt at an aggregate or a BlockAckReq.
    pub(super) fn settle_parts(&mut self, number: usize, outcome: Outcome, now: Time) {
        let (rules, limit) = (self.model.rules, self.model.limits.short);
        let Some(pending) = self.interfaces[number].pending else { return };
        let station = pending.frames.station;
        let place = self.session(number, station);
        let (interface, session) = (&mut self.interfaces[number], &mut self.sessions[place]);
        let is_over = |tries: u32| limit.is_some_and(|limit| tries >= limit);
        let answered = outcome == Outcome::Acknowledged;
        let exhausted = !answered && is_over(pending.tries);
        if pending.frames.kind == Kind::Request {
            if answered {
                (session.request, session.urgent) = (false, false);
            } else if exhausted {
                // It is sent again in its turn, at the expense of the oldest packet.
                session.urgent = false;
                if let Some(mpdu) = interface.held.iter_mut().find(|mpdu| mpdu.station == station) {
                    (mpdu.aboard, mpdu.tries) = (true, u32::MAX - 1);
                }
            }
        }
        let outputs = &mut self.outputs;
        let (departed, lost) = (&mut interface.departed, &mut interface.queue.dropped[DropReason::Retries]);
        interface.held.retain_mut(|mpdu| {
            if !core::mem::take(&mut mpdu.aboard) {
                return true;
            }
            mpdu.tries += 1;
            let acknowledged = answered && mpdu.arrived;
            if !acknowledged && !is_over(mpdu.tries) {
                return true;
            }
            if mpdu.arrived {
                departed.0 += 1;
                departed.1 += u64::from(mpdu.packet.size);
            } else {
                *lost += 1;
                (session.request, session.urgent) = (true, pending.frames.kind == Kind::Aggregate);
                outputs.push_back(Output::Drop(mpdu.packet, DropReason::Retries, now));
            }
            false
        });
        interface.back_off(answered || exhausted, rules);
        if answered || exhausted || pending.frames.kind == Kind::Aggregate {
            interface.pending = None;
        }
    }
}
