//! Tracks: flows that share a connection, as MoQ's tracks do (draft-ietf-moq-transport). One flow leads and has the
//! connection; it receives the writes of the others, and reports their state back.

use super::relay::RelayedStream;
use super::{Carriage, Object, RelayedData, TrackConfig};
use crate::{ReceiverStats, SenderStats};
use paceline_packet::Transit;
use paceline_units::{Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// The time constant of a track's recent rate.
const RECENT: Span = Span::from_secs(1);

/// The recently acknowledged payload of a track; each byte's weight falls linearly over about [`RECENT`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentRate {
    bytes: f64,
    acked: u64,
    at: Time,
}

impl RecentRate {
    /// The initial state.
    const NOTHING: RecentRate = RecentRate { bytes: 0.0, acked: 0, at: Time::ZERO };

    /// The rate in bits of payload per second that a track claims, with `acked` bytes acknowledged and `unsent` bytes
    /// waiting. It lets the waiting data leave within [`RECENT`].
    pub(super) fn claim(&mut self, acked: u64, unsent: u64, now: Time) -> f64 {
        let over = now.since(self.at).as_secs_f64() / RECENT.as_secs_f64();
        self.bytes = self.bytes * (1.0 - over).max(0.0) + acked.saturating_sub(self.acked) as f64;
        (self.acked, self.at) = (acked, now);
        (self.bytes + unsent as f64) * 8.0 / RECENT.as_secs_f64()
    }
}

/// A track of a connection, with the writes that no stream has taken.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) config: TrackConfig,
    /// The stream to write to, if writes share one.
    pub(super) current: Option<u32>,
    /// Writes that wait because the other end allows no more streams: bytes, capture time, whether it is a key frame.
    pub(super) waiting: VecDeque<(u64, Time, bool)>,
    /// The key frame of the current group was dropped before it had a stream.
    pub(super) lost_key: bool,
    /// Its writer always has data.
    pub(super) endless: bool,
    /// Its recent rate.
    pub(super) recent_rate: RecentRate,
    /// For a relay: the outgoing side of each incoming stream, by the stream's number.
    pub(super) relayed: BTreeMap<u32, RelayedStream>,
    /// The age of relayed data.
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
            recent_rate: RecentRate::NOTHING,
            relayed: BTreeMap::new(),
            transit: Transit::since(Time::ZERO),
        }
    }

    /// When the deadline of the first waiting frame passes.
    pub(super) fn due(&self) -> Time {
        let first = self.waiting.front().zip(self.config.deadline);
        first.map_or(Time::NEVER, |(&(_, captured, _), deadline)| captured + deadline)
    }

    /// Drops waiting frames whose deadline has passed, and the rest of their groups; returns the number of frames.
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

    /// Resets the track: nothing is written.
    pub(super) fn clear(&mut self) {
        (self.current, self.endless, self.lost_key) = (None, false, false);
        self.waiting.clear();
        self.relayed.clear();
    }
}

/// An action of a led track's application, for the leading flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackWrite {
    /// It wrote a frame.
    Frame {
        /// Bytes.
        bytes: u64,
        /// When it was captured.
        captured: Time,
        /// It is a key frame.
        key: bool,
    },
    /// It is a relay's, and this data has arrived.
    Relayed(RelayedData),
    /// The application always has data.
    Endless,
    /// It withdraws unsent data; if it stops, it writes nothing more.
    Withdraw {
        /// It stops.
        stops: bool,
    },
}

/// The state of a track, as reported by the leading flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackState {
    /// Acknowledged payload in bytes.
    pub bytes_acked: u64,
    /// Frames written.
    pub frames: u64,
    /// Frames dropped at their deadline.
    pub frames_reset: u64,
    /// Frames that a relay dropped because too much waited.
    pub frames_dropped: u64,
    /// Unsent bytes.
    pub unsent: u64,
    /// Everything written has been acknowledged or given up.
    pub acked_all: bool,
    /// Its share of the rate; `None` before the first round-trip sample.
    pub target: Option<Rate>,
}

/// The sending end of a flow that is a track of another flow's connection.
#[derive(Debug)]
pub struct TrackSender {
    /// Writes that the leading flow has not taken.
    writes: VecDeque<TrackWrite>,
    state: TrackState,
    stats: SenderStats,
}

impl TrackSender {
    /// Creates a track of a connection whose full packets have `wire` bytes.
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

    /// Queues an action of the application.
    pub fn write(&mut self, write: TrackWrite) {
        self.writes.push_back(write);
    }

    /// Takes the next action, for the leading flow.
    pub fn take(&mut self) -> Option<TrackWrite> {
        self.writes.pop_front()
    }

    /// Sets the state, as reported by the leading flow.
    pub fn set_state(&mut self, state: TrackState) {
        self.state = state;
        self.stats.bytes_acked = state.bytes_acked;
        (self.stats.frames, self.stats.frames_reset) = (state.frames, state.frames_reset);
        self.stats.frames_dropped = state.frames_dropped;
    }

    /// Whether everything written has been acknowledged or given up.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.writes.is_empty() && self.state.acked_all
    }

    /// The target rate for an encoder.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        self.state.target
    }

    /// How long the unsent data takes to leave at that rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        queueing(self.state.unsent, self.state.target)
    }

    /// The number of writes that the leading flow has not taken.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        self.writes.len()
    }

    /// Counters up to now; packets, round trips and the window are counted by the leading flow.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }
}

/// How long `bytes` take at a rate; zero if the rate is unknown.
pub(super) fn queueing(bytes: u64, target: Option<Rate>) -> Span {
    let seconds = |rate: Rate| (8.0 * bytes as f64 / rate.bps().max(1.0)).min(1e6);
    target.map_or(Span::ZERO, |rate| Span::from_secs_f64(seconds(rate)))
}

/// The receiving end of a flow that is a track of another flow's connection.
#[derive(Debug, Default)]
pub struct TrackReceiver {
    stats: ReceiverStats,
}

impl TrackReceiver {
    /// Sets the number of bytes delivered to its application.
    pub fn given(&mut self, now: Time, bytes: u64) {
        if bytes > self.stats.bytes {
            (self.stats.bytes, self.stats.last) = (bytes, now);
        }
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}

/// The received data of a led track.
#[derive(Clone, Debug)]
pub struct TrackArrivals {
    /// Bytes delivered to its application in total.
    pub bytes: u64,
    /// Frames completed, and streams reset, since the last query.
    pub objects: Vec<Object>,
}
