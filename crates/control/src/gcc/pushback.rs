//! Congestion window pushback: reduces the encoder's rate while more is in flight than the path should hold.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/congestion_window_pushback_controller.cc, and
//! UpdateCongestionWindowSize of goog_cc_network_control.cc. The defaults are those of
//! rtc_base/experiments/rate_control_settings.cc (QueueSize 350, MinBitrate 30000, DropFrame).

use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Queueing delay to allow besides the path's round-trip time, in seconds (QueueSize).
const QUEUE: f64 = 0.350;
/// Pushback lowers the target at most to this (MinBitrate), unless the target itself is lower.
const MIN_BITRATE: f64 = 30e3;
/// The minimum window in bytes: kMinCwnd.
const MIN_CWND: f64 = 3000.0;
/// The round-trip time is the minimum over this many feedbacks: kMaxFeedbackRttWindow.
const FEEDBACKS: usize = 32;

/// The window, and the share of the target that remains.
#[derive(Clone, Debug)]
pub struct Pushback {
    /// For each of the last feedbacks, the longest time since a packet's departure, in whole milliseconds.
    rtts: VecDeque<u64>,
    window: Option<f64>,
    in_flight: f64,
    ratio: f64,
}

impl Default for Pushback {
    fn default() -> Pushback {
        Pushback { rtts: VecDeque::with_capacity(FEEDBACKS + 1), window: None, in_flight: 0.0, ratio: 1.0 }
    }
}

impl Pushback {
    /// Sets the bytes in flight.
    pub fn set_in_flight(&mut self, bytes: f64) {
        self.in_flight = bytes;
    }

    /// Feedback arrived at `now`; its earliest packet was sent at `sent`.
    pub fn feedback(&mut self, sent: Time, now: Time) {
        self.rtts.push_back(now.since(sent).0 / Span::from_millis(1).0);
        if self.rtts.len() > FEEDBACKS {
            self.rtts.pop_front();
        }
    }

    /// Moves the window halfway to what the target needs to fill the path and the queue.
    pub fn update_window(&mut self, target: f64) {
        let Some(&rtt) = self.rtts.iter().min() else { return };
        let filled = target / 8.0 * (rtt as f64 / 1e3 + QUEUE);
        let window = self.window.map_or(filled, |before| (filled + before) / 2.0);
        self.window = Some(window.max(MIN_CWND));
    }

    /// The window in bytes; `None` before the first feedback.
    pub fn window(&self) -> Option<f64> {
        self.window
    }

    /// The reduced target; each call is a step.
    pub fn step(&mut self, target: f64) -> f64 {
        let Some(window) = self.window.filter(|&window| window > 0.0) else { return target };
        let fill = self.in_flight / window;
        self.ratio = if fill > 1.5 {
            self.ratio * 0.9
        } else if fill > 1.0 {
            self.ratio * 0.95
        } else if fill < 0.1 {
            1.0
        } else {
            (self.ratio * 1.05).min(1.0)
        };
        let pushed = target * self.ratio;
        if pushed < MIN_BITRATE { target.min(MIN_BITRATE) } else { pushed }
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's congestion_window_pushback_controller_unittest.cc.

    use super::*;

    fn pushback(window: Option<f64>, in_flight: f64) -> Pushback {
        Pushback { window, in_flight, ..Pushback::default() }
    }

    #[track_caller]
    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6, "{got} instead of {want}");
    }

    #[test]
    fn a_full_window_takes_a_tenth_at_each_step() {
        let mut pushback = pushback(Some(50e3), 100e3);
        near(pushback.step(80e3), 72e3);
        near(pushback.step(72e3), 72e3 * 0.9 * 0.9);
    }

    #[test]
    fn a_window_with_room_takes_nothing() {
        near(pushback(Some(200e3), 199_999.0).step(80e3), 80e3);
        near(pushback(None, 1e8).step(80e3), 80e3);
    }

    #[test]
    fn it_pushes_no_lower_than_30_kbit() {
        let mut pushback = pushback(Some(50e3), 100e3);
        near(pushback.step(35e3), 31.5e3);
        pushback.window = Some(20e3);
        near(pushback.step(31.5e3), 30e3);
        near(pushback.step(20e3), 20e3);
    }

    #[test]
    fn what_was_taken_comes_back_by_steps_or_at_once() {
        let mut pushback = pushback(Some(50e3), 60e3);
        near(pushback.step(100e3), 95e3);
        pushback.set_in_flight(49e3);
        near(pushback.step(100e3), 99.75e3);
        near(pushback.step(100e3), 100e3);
        pushback.set_in_flight(100e3);
        near(pushback.step(100e3), 90e3);
        pushback.set_in_flight(4.9e3);
        near(pushback.step(100e3), 100e3);
    }

    /// By hand: 1 Mbit/s over 100 ms and the queue's 350 ms.
    #[test]
    fn the_window_is_the_path_and_350_ms() {
        let mut pushback = Pushback::default();
        pushback.update_window(1e6);
        assert_eq!(pushback.window(), None);
        pushback.feedback(Time::ZERO, Time(100_900_000));
        pushback.update_window(1e6);
        near(pushback.window().unwrap(), 56_250.0);
        // the minimum of 32: a longer round trip does not count until the short one has expired
        for _ in 0..31 {
            pushback.feedback(Time::ZERO, Time(300_000_000));
        }
        pushback.update_window(0.5e6);
        near(pushback.window().unwrap(), (56_250.0 + 28_125.0) / 2.0);
        pushback.feedback(Time::ZERO, Time(300_000_000));
        pushback.window = None;
        pushback.update_window(1e6);
        near(pushback.window().unwrap(), 81_250.0);
        pushback.update_window(0.0);
        pushback.window = Some(100.0);
        pushback.update_window(10.0);
        near(pushback.window().unwrap(), 3000.0);
    }
}
