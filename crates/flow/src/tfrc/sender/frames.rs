//! Video frames that wait to be sent, and the average size of packets.

use super::TfrcSender;
use paceline_control::RateController;
use paceline_packet::{FramePart, Stamp};
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// The weight of a new frame in the average segment. RFC 5348 section 4.1 requires at least four loss intervals: 64
/// frames are two seconds of video.
const GAIN: f64 = 1.0 / 64.0;

/// The time in which an encoder drains the queue. If it aimed at the full allowed rate, a queue from a time of lower
/// rate would never drain (the RFC leaves this to the application).
const DRAIN: Span = Span::from_millis(500);

/// The frames of a video flow.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// For each frame not sent completely: one past its last packet, and when it was written.
    waiting: VecDeque<(u32, Time)>,
    /// Averages over frames: payload, and number of packets.
    payload: f64,
    packets: f64,
}

impl Frames {
    /// Adds a frame of `bytes`, in `packets` packets that end before `end`. Returns the average segment s (RFC 5348
    /// section 4.1).
    pub(super) fn write(&mut self, end: u32, packets: u32, bytes: u64, now: Time) -> f64 {
        self.waiting.push_back((end, now));
        let gain = if self.packets == 0.0 { 1.0 } else { GAIN };
        self.payload += gain * (bytes as f64 - self.payload);
        self.packets += gain * (f64::from(packets) - self.packets);
        self.payload / self.packets
    }

    /// Discards waiting frames.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The number of waiting frames.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns which part of a frame the packet being sent has.
    pub(super) fn take(&mut self, number: u32) -> Option<FramePart> {
        let &(end, written) = self.waiting.front()?;
        let last = number + 1 >= end;
        if last {
            self.waiting.pop_front();
        }
        Some(FramePart { captured: Stamp::at(written), last })
    }
}

impl TfrcSender {
    /// The target rate for an encoder, in bits a second including all headers. It is the allowed rate in packets of the
    /// average segment, reduced so that the queue drains within [`DRAIN`], by at most half. `None` if the flow carries
    /// no video.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        let wire = self.segment + f64::from(self.config.header);
        let left = 1.0 - self.queueing().as_secs_f64() / DRAIN.as_secs_f64();
        self.config.frames.then(|| Rate((self.controller.rate() / self.segment * wire * 8.0 * left.max(0.5)) as u64))
    }

    /// How long the queue takes to leave at the allowed rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        let waiting = f64::from(self.supply.end() - self.supply.next());
        Span::from_secs_f64((waiting * self.segment / self.controller.rate().max(1.0)).min(1e6))
    }
}
