//! Tracks: flows that share a connection, as MoQ's tracks do (draft-ietf-moq-transport). One leads and has the connection; what the
//! others write is handed to it, and it tells them what became of that.

use super::relay::Onward;
use super::{Carriage, Object, Portion, TrackConfig};
use crate::{ReceiverStats, SenderStats};
use paceline_packet::Transit;
use paceline_units::{Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// How long what a track has sent counts for what it claims.
const LATELY: Span = Span::from_secs(1);

/// What a track has sent lately: payload that was acknowledged, of which a byte counts for less and less over about [`LATELY`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Lately {
    bytes: f64,
    acked: u64,
    at: Time,
}

impl Lately {
    /// Nothing.
    const NOTHING: Lately = Lately { bytes: 0.0, acked: 0, at: Time::ZERO };

    /// Bits of payload a second, of a track of which `acked` have been acknowledged and `unsent` wait: what waits is to leave in
    /// [`LATELY`].
    pub(super) fn claim(&mut self, acked: u64, unsent: u64, now: Time) -> f64 {
        let over = now.since(self.at).as_secs_f64() / LATELY.as_secs_f64();
        self.bytes = self.bytes * (1.0 - over).max(0.0) + acked.saturating_sub(self.acked) as f64;
        (self.acked, self.at) = (acked, now);
        (self.bytes + unsent as f64) * 8.0 / LATELY.as_secs_f64()
    }
}

/// What one of a connection's tracks has written and no stream has taken.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) config: TrackConfig,
    /// The stream that is being written, if writes share one.
    pub(super) current: Option<u32>,
    /// What could not be written: the other end lets no more streams be opened. Bytes, when it was captured, whether it is a key frame.
    pub(super) waiting: VecDeque<(u64, Time, bool)>,
    /// The key frame of the group that is written was given up before it had a stream.
    pub(super) lost_key: bool,
    /// Its writer never runs dry.
    pub(super) endless: bool,
    /// What it has sent lately.
    pub(super) lately: Lately,
    /// Of a relay: by the number of a stream that comes in what becomes of it.
    pub(super) onward: BTreeMap<u32, Onward>,
    /// How old what it sends on is.
    pub(super) transit: Transit,
}

impl Track {
    pub(super) const fn new(config: TrackConfig) -> Track {
        Track {
            config,
            current: None,
            waiting: VecDeque::new(),
            lost_key: false,
            endless: false,
            lately: Lately::NOTHING,
            onward: BTreeMap::new(),
            transit: Transit::since(Time::ZERO),
        }
    }

    /// When the first frame that waits is too old.
    pub(super) fn due(&self) -> Time {
        let first = self.waiting.front().zip(self.config.deadline);
        first.map_or(Time::NEVER, |(&(_, captured, _), deadline)| captured + deadline)
    }

    /// Gives up what waits and is too old, and what is left of its group; how many frames that are.
    pub(super) fn expire(&mut self, now: Time) -> u64 {
        let before = self.waiting.len();
        let is_group = self.config.carriage == Carriage::StreamPerGroup;
        while self.due() <= now {
            self.waiting.pop_front();
            self.lost_key = is_group;
            while self.lost_key && self.waiting.front().is_some_and(|&(.., key)| !key) {
                self.waiting.pop_front();
            }
        }
        (before - self.waiting.len()) as u64
    }

    /// Nothing has been written.
    pub(super) fn clear(&mut self) {
        (self.current, self.endless, self.lost_key) = (None, false, false);
        self.waiting.clear();
        self.onward.clear();
    }
}

/// What the application of a led track did, for the flow that leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackWrite {
    /// It wrote so many bytes, captured then: of a key frame or not.
    Frame {
        /// Bytes.
        bytes: u64,
        /// When they were captured.
        captured: Time,
        /// It is a key frame.
        key: bool,
    },
    /// It is a relay's, and this has come in.
    Portion(Portion),
    /// It will never run dry.
    Endless,
    /// It takes back what has not been sent; if it stops, it writes nothing more.
    Withdraw {
        /// It stops.
        stops: bool,
    },
}

/// How a track is: the leader tells it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackState {
    /// Payload that was acknowledged.
    pub bytes_acked: u64,
    /// Frames that were written, and those of them that were given up at their deadline.
    pub frames: u64,
    /// The latter.
    pub frames_reset: u64,
    /// Frames that a relay gave up since too much waited.
    pub frames_dropped: u64,
    /// Bytes that have not left.
    pub unsent: u64,
    /// All that was written has been acknowledged, or given up.
    pub acked_all: bool,
    /// The rate that it may have; `None` before there is a round trip.
    pub target: Option<Rate>,
}

/// The sending end of a flow that is a track of another's connection.
#[derive(Debug)]
pub struct TrackSender {
    /// What it wrote and the leader has not taken.
    writes: VecDeque<TrackWrite>,
    state: TrackState,
    stats: SenderStats,
}

impl TrackSender {
    /// A track of a connection whose full packets have `wire` bytes.
    #[must_use]
    pub fn new(wire: u16) -> TrackSender {
        let state = TrackState {
            bytes_acked: 0,
            frames: 0,
            frames_reset: 0,
            frames_dropped: 0,
            unsent: 0,
            acked_all: true,
            target: None,
        };
        TrackSender { writes: VecDeque::new(), state, stats: SenderStats::new(wire) }
    }

    /// The application writes.
    pub fn write(&mut self, write: TrackWrite) {
        self.writes.push_back(write);
    }

    /// What the leader is to do next.
    pub fn take(&mut self) -> Option<TrackWrite> {
        self.writes.pop_front()
    }

    /// The leader tells how it is.
    pub fn set_state(&mut self, state: TrackState) {
        self.state = state;
        self.stats.bytes_acked = state.bytes_acked;
        (self.stats.frames, self.stats.frames_reset) = (state.frames, state.frames_reset);
        self.stats.frames_dropped = state.frames_dropped;
    }

    /// Whether all that was written has been acknowledged, or given up.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.writes.is_empty() && self.state.acked_all
    }

    /// What an encoder should aim at.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        self.state.target
    }

    /// How long what has not left takes to leave at that rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        queueing(self.state.unsent, self.state.target)
    }

    /// Writes that the leader has not taken.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        self.writes.len()
    }

    /// Counts up to now: packets, round trips and the window are the leader's.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }
}

/// How long so many bytes take at a rate; none if that is not known.
pub(super) fn queueing(bytes: u64, target: Option<Rate>) -> Span {
    let seconds = |rate: Rate| (8.0 * bytes as f64 / rate.bps().max(1.0)).min(1e6);
    target.map_or(Span::ZERO, |rate| Span::from_secs_f64(seconds(rate)))
}

/// The receiving end of such a flow.
#[derive(Debug, Default)]
pub struct TrackReceiver {
    stats: ReceiverStats,
}

impl TrackReceiver {
    /// Its application has so many bytes by now.
    pub fn given(&mut self, now: Time, bytes: u64) {
        if bytes > self.stats.bytes {
            (self.stats.bytes, self.stats.last) = (bytes, now);
        }
    }

    /// Counts up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}

/// What has come of a led track.
#[derive(Clone, Debug)]
pub struct TrackArrivals {
    /// Bytes that its application has in all.
    pub bytes: u64,
    /// What has come to its end since this was last asked.
    pub objects: Vec<Object>,
}
