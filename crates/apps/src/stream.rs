//! A stored medium sent over a connection: the sender's side.
//!
//! Every heartbeat the sender writes chunk = xfactor * media rate * heartbeat to the connection, until the medium ends
//! (Boyden, Mahanti, Williamson: "TCP Vegas performance with streaming media", section 4.2).

use crate::application::{Action, Period, Rounding};
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// A media stream's parameters, for sender and player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamModel {
    /// Encoding rate of the medium; not zero.
    pub media_rate: Rate,
    /// Its playing time.
    pub length: Span,
    /// The sender writes at this multiple of the media rate.
    pub xfactor: f64,
    /// The interval between writes.
    pub heartbeat: Span,
    /// The fraction of the length that the player buffers before it plays.
    pub buffer: Ratio,
    /// The player's behaviour when data arrive too late.
    pub playout: Playout,
    /// The maximum that the player buffers; `None`: everything.
    pub client_buffer: Option<Size>,
    /// The size of a media packet: a segment's payload; not zero.
    pub segment: Size,
    /// Whether the sender writes only whole segments.
    pub rounding: Rounding,
}

/// A player's behaviour when data arrive too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playout {
    /// It plays on by the clock; a packet that arrives after its play-out time is late and not stored.
    #[default]
    Clock,
    /// It stops and waits until as much is buffered as at the beginning.
    Stall,
}

impl StreamModel {
    /// The medium's size as sent.
    #[must_use]
    pub fn total(&self) -> Size {
        let bytes = self.media_rate * self.length;
        self.rounding.up(Size(bytes.0.max(1)))
    }

    /// The medium's size in media packets; the last may be shorter.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.total().0.div_ceil(self.segment.0.max(1))
    }

    /// When packet `index` (from 0) is due, relative to the start of play-out: index * segment / media rate, rounded
    /// down to the nanosecond.
    #[must_use]
    pub fn due_after(&self, index: u64) -> Span {
        let bits = u128::from(index) * u128::from(self.segment.bits());
        let ns = bits * 1_000_000_000 / u128::from(self.media_rate.0.max(1));
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many packets are due within `span` of the start of play-out, its end included.
    #[must_use]
    pub fn due_within(&self, span: Span) -> u64 {
        let bits = u128::from(span.0) * u128::from(self.media_rate.0) / 1_000_000_000;
        let guess = (bits / u128::from(self.segment.bits().max(1))) as u64;
        // due_after is rounded down to the nanosecond, so one more may be due at this very instant.
        guess + 1 + u64::from(self.due_after(guess + 1) <= span)
    }
}

/// The sender.
#[derive(Clone, Debug)]
pub struct StreamSender {
    period: Period,
    heartbeat: Span,
    /// Bytes per heartbeat, fractions included.
    chunk: f64,
    rounding: Rounding,
    total: u64,
    /// Bytes written.
    written: u64,
    beats: u64,
    next: Option<Time>,
    stopped: bool,
}

impl StreamSender {
    /// A sender whose first chunk is written at the period's start.
    #[must_use]
    pub fn new(model: &StreamModel, period: Period) -> StreamSender {
        let rate = model.xfactor * model.media_rate.bps() / 8.0;
        StreamSender {
            period,
            heartbeat: model.heartbeat.max(Span(1)),
            chunk: rate * model.heartbeat.as_secs_f64(),
            rounding: model.rounding,
            total: model.total().0,
            written: 0,
            beats: 0,
            next: Some(period.start),
            stopped: false,
        }
    }

    /// See [`crate::Application::next_action`]; a stream does not depend on acknowledgements.
    pub fn next_action(&mut self, now: Time) -> Action {
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            return Action::Stop;
        }
        while let Some(at) = self.next.filter(|&at| now >= at) {
            self.beats += 1;
            // Computed from the beginning, so that fractions of bytes (and of segments) are carried over.
            let due = Size((self.beats as f64 * self.chunk + 1e-6) as u64);
            let due = self.rounding.down(due).0.min(self.total);
            let more = due.saturating_sub(self.written);
            self.written += more;
            self.next = (self.written < self.total).then_some(at + self.heartbeat);
            if more > 0 {
                return Action::Send(Size(more));
            }
        }
        Action::Wait
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let stop = (self.period.stop < Time::NEVER).then_some(self.period.stop);
        [self.next, stop].into_iter().flatten().min().filter(|_| !self.stopped)
    }

    /// See [`crate::Application::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next.is_none()
    }

    /// The number of bytes written.
    #[must_use]
    pub fn written(&self) -> Size {
        Size(self.written)
    }
}
