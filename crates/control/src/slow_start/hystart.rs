//! HyStart in a current kernel (`hystart_update` of `net/ipv4/tcp_cubic.c`).
//!
//! Source: S. Ha, I. Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011; the behaviour of
//! that file.

use crate::PathView;
use paceline_units::{Span, Time};

/// `hystart_low_window`: HyStart applies from this window on.
const LOW_WINDOW: f64 = 16.0;
/// `hystart_ack_delta_us`: acknowledgements at most this far apart belong to one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// `hystart_ack_delay`: allowance for a host's batching; the kernel's value below 2 Gbit/s.
const TRAIN_SLACK: Span = Span::from_millis(1);
/// `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`.
const SAMPLES: u32 = 8;
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);

/// The current round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hystart {
    /// The segment that ends it; its start; the train's last acknowledgement.
    end: u32,
    began: Time,
    train: Time,
    curr_rtt: Option<Span>,
    samples: u32,
    /// The path was found to be full: HyStart is inactive.
    found: bool,
}

impl Hystart {
    pub(crate) fn begin(&mut self, path: &PathView) {
        self.found = false;
        self.begin_round(path);
    }

    fn begin_round(&mut self, path: &PathView) {
        self.end = path.next;
        self.began = path.now;
        self.train = path.now;
        self.curr_rtt = None;
        self.samples = 0;
    }

    /// Handles an acknowledgement with a round trip of `delay`; `min_rtt` is the minimum so far. Returns whether slow
    /// start should end.
    pub(crate) fn on_ack(&mut self, delay: Span, min_rtt: Span, window: f64, path: &PathView) -> bool {
        let now_found = !self.found && self.is_full(delay, min_rtt, window, path);
        self.found |= now_found;
        now_found
    }

    fn is_full(&mut self, delay: Span, min_rtt: Span, window: f64, path: &PathView) -> bool {
        if path.acked > self.end {
            self.begin_round(path);
        }
        if window < LOW_WINDOW {
            return false;
        }
        // an ACK train as long as half the minimum round trip: the path is full both ways
        if path.now.since(self.train) <= TRAIN_GAP {
            self.train = path.now;
            if path.now.since(self.began).0 > (min_rtt + TRAIN_SLACK).0 / 2 {
                return true;
            }
        }
        // the round's minimum delay has grown by an eighth: a queue
        let round = self.curr_rtt.map_or(delay, |r| r.min(delay));
        self.curr_rtt = Some(round);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        round > min_rtt + Span(min_rtt.0 / 8).max(DELAY_MIN).min(DELAY_MAX)
    }
}
