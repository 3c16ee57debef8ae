//! Video frames that wait to leave, and how full their packets are.

use super::TfrcSender;
use paceline_control::RateController;
use paceline_packet::{FramePart, Stamp};
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// What a new frame counts of the average segment. RFC 5348 section 4.1 asks for four loss intervals or longer: 64 frames are
/// two seconds of video.
const GAIN: f64 = 1.0 / 64.0;

/// An encoder that aimed at all of the allowed rate would never make good for what has piled up at a lower one (the RFC leaves
/// this to the application).
const DRAIN: Span = Span::from_millis(500);

/// The frames of a flow that carries video.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// One past the last packet of each that has not left, and when it was written.
    waiting: VecDeque<(u32, Time)>,
    /// Average payload and number of the packets of a frame.
    payload: f64,
    packets: f64,
}

impl Frames {
    /// A frame of `bytes` is written, as `packets` of which the last is before `end`. Returns the average segment s (RFC 5348
    /// section 4.1).
    pub(super) fn write(&mut self, end: u32, packets: u32, bytes: u64, now: Time) -> f64 {
        self.waiting.push_back((end, now));
        let gain = if self.packets == 0.0 { 1.0 } else { GAIN };
        self.payload += gain * (bytes as f64 - self.payload);
        self.packets += gain * (f64::from(packets) - self.packets);
        self.payload / self.packets
    }

    /// What waits will not leave.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Which part of a frame the packet is that leaves.
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
    /// What an encoder should aim at, in bits a second with all headers: the allowed rate in packets of the average
    /// segment, less what waits, which is to leave within [`DRAIN`]; half of it at least. `None` if the flow carries no video.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        let wire = self.segment + f64::from(self.config.header);
        let left = 1.0 - self.queueing().as_secs_f64() / DRAIN.as_secs_f64();
        self.config.frames.then(|| Rate((self.controller.rate() / self.segment * wire * 8.0 * left.max(0.5)) as u64))
    }

    /// How long what waits takes to leave at the allowed rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        let waiting = f64::from(self.supply.end() - self.supply.next());
        Span::from_secs_f64((waiting * self.segment / self.controller.rate().max(1.0)).min(1e6))
    }
}
