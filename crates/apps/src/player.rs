//! The player of a media stream: buffering, play-out, late packets or stalls.
//!
//! The medium is a sequence of packets, numbered from 0, each a segment's payload. The player buffers until `buffer` (a
//! fraction of the length) has arrived: that is the fill time. Then packets leave the buffer at the media rate: packet
//! i begins to play at fill + i * packet time.
//!
//! `clock`: a packet that arrives after its play-out time is late and not stored. A packet that has not arrived when
//! watching ends, and is due by then, is late too. `stall`: when the next packet is missing at its play-out time,
//! play-out stops; it resumes when as much is buffered as at the beginning, or everything has arrived, and all later
//! play-out times shift. If a stream never begins to play, all of it is late, or the whole wait is one stall. A finite
//! buffer discards packets that arrive while it is full; a discarded packet is a gap that is neither late nor a stall.
//! Invariant: arrived = played + buffered + late on arrival + discarded.
//!
//! The player needs no timer: all results follow from the arrivals.

use crate::share;
use crate::stream::{Playout, StreamModel};
use paceline_units::{Rate, Size, Span, Time};
use std::collections::VecDeque;

/// The maximum number of runs of discarded packets stored; with more runs ahead, a player discards nothing.
const MAX_HOLES: usize = 1 << 16;

/// The player.
#[derive(Clone, Debug)]
pub struct Player {
    model: StreamModel,
    start: Time,
    /// The number of packets in the medium.
    packets: u64,
    /// The number of packets needed to start play-out.
    needed: u64,
    /// The buffer's capacity in packets.
    capacity: u64,
    /// The number of packets that have arrived, in order.
    arrived: u64,
    bytes: u64,
    late: u64,
    discarded: u64,
    fill: Option<Time>,
    completed: Option<Time>,
    /// Clock: runs of discarded packets that were not yet due at the last check, as (first, end).
    holes: VecDeque<(u64, u64)>,
    /// The number of packets in them.
    in_holes: u64,
    /// Stall: the play-out state.
    motion: Motion,
    stalls: u64,
    stalled: Span,
}

/// Stall: the play-out state. Stored packets are numbered from 0, without discarded ones.
#[derive(Clone, Copy, Debug)]
enum Motion {
    /// Stopped since then; packet `first` plays next.
    Stopped { first: u64, since: Time },
    /// Packet `first` began to play then.
    Playing { first: u64, since: Time },
}

/// A stream's results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamReport {
    /// From the flow's start to the beginning of play-out; `None` if it never began.
    pub fill: Option<Span>,
    /// Packets that arrived after their play-out time, or were due and never arrived (clock); all if the stream never
    /// began to play.
    pub late_packets: u64,
    /// Packets whose play-out time had passed at the end: all if everything arrived, if play-out has finished, or if it
    /// never began (clock).
    pub due_packets: u64,
    /// Packets in the whole medium.
    pub media_packets: u64,
    /// Late packets over due packets, in [0, 1]; `None` if nothing was due, and in stall mode.
    pub late_share: Option<f64>,
    /// How often play-out stopped (stall). A stream that never began to play counts as one stall.
    pub stalls: u64,
    /// Total stall time, without the initial buffering of a stream that began to play.
    pub stalled: Span,
    /// Stall time over stall and play time, in [0, 1]: the buffering ratio of Dobrian et al. (SIGCOMM 2011); 1 if the
    /// stream never began to play. A stream that has arrived completely counts as played to its end. `None` before any
    /// time has passed, and in clock mode.
    pub stall_share: Option<f64>,
    /// Packets discarded because the player's buffer was full.
    pub discarded_packets: u64,
    /// Whether the whole medium arrived.
    pub completed: bool,
    /// From the flow's start to the arrival of the last packet, the end of play-out, or the end of watching, whichever
    /// came first.
    pub duration: Span,
    /// Bytes delivered in that time.
    pub delivered: Size,
    /// Delivered bytes over that time.
    pub throughput: Rate,
}

/// The state of all packets that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Packets that arrived, in order.
    pub arrived: u64,
    /// Packets that have begun to play.
    pub played: u64,
    /// Packets waiting to play.
    pub buffered: u64,
    /// Packets that arrived too late to play.
    pub late: u64,
    /// Packets discarded because the buffer was full.
    pub discarded: u64,
}

impl Player {
    /// A player whose flow starts at `start`. A finite buffer always has the capacity for what play-out needs to start.
    #[must_use]
    pub fn new(model: StreamModel, start: Time) -> Player {
        let packets = model.packets();
        let segment = model.segment.0.max(1);
        let wanted = (model.total().0 as f64 * model.buffer.0 + 0.5) as u64;
        let needed = wanted.div_ceil(segment).clamp(1, packets);
        Player {
            start,
            packets,
            needed,
            capacity: model.client_buffer.map_or(u64::MAX, |size| (size.0 / segment).max(needed)),
            arrived: 0,
            bytes: 0,
            late: 0,
            discarded: 0,
            fill: None,
            completed: None,
            holes: VecDeque::new(),
            in_holes: 0,
            motion: Motion::Stopped { first: 0, since: start },
            stalls: 0,
            stalled: Span::ZERO,
            model,
        }
    }

    /// In-order data up to byte `received` of the medium have arrived at `now`. Calls must be in order of time;
    /// arrivals after the end of play-out do not count.
    pub fn on_delivery(&mut self, now: Time, received: Size) {
        if self.is_done(now) {
            return;
        }
        let total = self.model.total().0;
        self.bytes = self.bytes.max(received.0.min(total));
        let upto = if self.bytes == total { self.packets } else { self.bytes / self.model.segment.0.max(1) };
        if upto > self.arrived && self.model.playout == Playout::Stall {
            self.notice_stall(now);
        }
        for index in self.arrived..upto {
            match self.model.playout {
                Playout::Clock => self.arrive_by_clock(now, index),
                Playout::Stall => self.arrive_or_resume(now, index),
            }
        }
        if self.arrived == self.packets {
            self.completed = Some(now);
        }
    }

    fn arrive_by_clock(&mut self, now: Time, index: u64) {
        self.arrived = index + 1;
        let Some(fill) = self.fill else {
            if self.arrived >= self.needed {
                self.fill = Some(now);
            }
            return;
        };
        if now > fill + self.model.due_after(index) {
            self.late += 1;
        } else if self.capacity < u64::MAX {
            let due = self.model.due_within(now.since(fill));
            while let Some(&(first, end)) = self.holes.front()
                && end <= due
            {
                self.in_holes -= end - first;
                self.holes.pop_front();
            }
            if self.ahead(due, index) >= self.capacity && self.holes.len() < MAX_HOLES {
                self.discarded += 1;
                self.in_holes += 1;
                match self.holes.back_mut() {
                    Some((_, end)) if *end == index => *end += 1,
                    _ => self.holes.push_back((index, index + 1)),
                }
            }
        }
    }

    /// Clock: stored packets from number `due` on, when `arrived` have arrived.
    fn ahead(&self, due: u64, arrived: u64) -> u64 {
        let begun = self.holes.iter().take_while(|&&(first, _)| first < due);
        let passed: u64 = begun.map(|&(first, end)| end.min(due) - first).sum();
        arrived.saturating_sub(due).saturating_sub(self.in_holes - passed)
    }

    /// Packets that were stored, played or not.
    fn stored(&self) -> u64 {
        self.arrived - self.late - self.discarded
    }

    /// Stall: when the buffer underruns, unless more packets arrive.
    fn runs_dry(&self) -> Option<Time> {
        match self.motion {
            Motion::Playing { first, since } => Some(since + self.model.due_after(self.stored() - first)),
            Motion::Stopped { .. } => None,
        }
    }

    fn notice_stall(&mut self, now: Time) {
        if let Some(since) = self.runs_dry().filter(|&at| now > at) {
            self.stalls += 1;
            self.motion = Motion::Stopped { first: self.stored(), since };
        }
    }

    fn arrive_or_resume(&mut self, now: Time, index: u64) {
        let full = self.waiting(now) >= self.capacity;
        self.arrived = index + 1;
        self.discarded += u64::from(full);
        let Motion::Stopped { first, since } = self.motion else { return };
        if self.stored() - first >= self.needed || self.arrived == self.packets {
            match self.fill {
                None => self.fill = Some(now),
                Some(_) => self.stalled += now.since(since),
            }
            self.motion = Motion::Playing { first, since: now };
        }
    }

    /// Stored packets that have not begun to play at `now`.
    fn waiting(&self, now: Time) -> u64 {
        match (self.model.playout, self.fill, self.motion) {
            (Playout::Clock, Some(fill), _) => self.ahead(self.model.due_within(now.since(fill)), self.arrived),
            (Playout::Stall, _, Motion::Playing { first, since }) => {
                self.stored().saturating_sub(first + self.model.due_within(now.since(since)))
            }
            (Playout::Stall, _, Motion::Stopped { first, .. }) => self.stored() - first,
            (Playout::Clock, None, _) => self.stored(),
        }
    }

    /// The buffered playing time at `now`, which must not be before the last delivery.
    #[must_use]
    pub fn buffered(&self, now: Time) -> Span {
        self.model.due_after(self.waiting(now))
    }

    /// The state of all packets at `now`, which must not be before the last delivery.
    #[must_use]
    pub fn account(&self, now: Time) -> Account {
        let buffered = self.waiting(now);
        Account {
            arrived: self.arrived,
            played: self.stored() - buffered,
            buffered,
            late: self.late,
            discarded: self.discarded,
        }
    }

    /// When play-out by the clock ends.
    fn clock_ends(&self) -> Option<Time> {
        let fill = self.fill.filter(|_| self.model.playout == Playout::Clock)?;
        Some(fill + self.model.due_after(self.packets))
    }

    /// Whether the results are final: everything has arrived, or play-out by the clock has ended.
    #[must_use]
    pub fn is_done(&self, now: Time) -> bool {
        self.completed.is_some() || self.clock_ends().is_some_and(|end| now >= end)
    }

    /// The results of the stream, watched until `end`.
    #[must_use]
    pub fn finish(&self, end: Time) -> StreamReport {
        let end = [Some(end), self.completed, self.clock_ends()].into_iter().flatten().min().unwrap_or(end);
        let (mut late_packets, mut due_packets, mut stalls, mut stalled) = (0, 0, 0, Span::ZERO);
        let mut stall_share = None;
        match self.model.playout {
            Playout::Clock => {
                due_packets = self.due_by(end);
                let never_arrived = due_packets.saturating_sub(self.arrived);
                late_packets = if self.fill.is_some() { self.late + never_arrived } else { due_packets };
            }
            Playout::Stall => {
                (stalls, stalled) = self.stalls_until(end);
                let played = match self.fill {
                    Some(_) if self.completed.is_some() => self.model.due_after(self.stored()),
                    Some(fill) => end.since(fill) - stalled,
                    None => Span::ZERO,
                };
                stall_share = share(stalled.0, stalled.0 + played.0);
            }
        }
        let duration = end.since(self.start);
        let per_second = self.bytes as f64 * 8.0 / duration.as_secs_f64();
        StreamReport {
            fill: self.fill.map(|at| at.since(self.start)),
            late_packets,
            due_packets,
            media_packets: self.packets,
            late_share: share(late_packets, due_packets),
            stalls,
            stalled,
            stall_share,
            discarded_packets: self.discarded,
            completed: self.completed.is_some(),
            duration,
            delivered: Size(self.bytes),
            throughput: Rate(if per_second.is_finite() { (per_second + 0.5) as u64 } else { 0 }),
        }
    }

    /// Clock: the number of packets with a play-out time before `end`. All packets if everything arrived, or if
    /// play-out never began, unless no time has passed.
    fn due_by(&self, end: Time) -> u64 {
        match self.fill {
            _ if self.completed.is_some() => self.packets,
            Some(fill) if end > fill => self.model.due_within(end.since(fill) - Span(1)).min(self.packets),
            None if end > self.start => self.packets,
            _ => 0,
        }
    }

    /// Stall: the number of stalls and their total time, if nothing more arrives before `end`.
    fn stalls_until(&self, end: Time) -> (u64, Span) {
        let runs_dry = self.runs_dry().filter(|&at| end > at && self.completed.is_none());
        match (self.fill, self.motion) {
            (None, _) => (u64::from(end > self.start), end.since(self.start)),
            (Some(_), Motion::Stopped { since, .. }) => (self.stalls, self.stalled + end.since(since)),
            (Some(_), Motion::Playing { .. }) => match runs_dry {
                Some(since) => (self.stalls + 1, self.stalled + end.since(since)),
                None => (self.stalls, self.stalled),
            },
        }
    }
}
