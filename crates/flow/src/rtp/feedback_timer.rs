//! The timing of a receiver's feedback on arrivals.
//!
//! By time, feedback is due an interval after the first packet not yet reported, and while packets arrive, an interval
//! after the previous feedback. The interval is fixed, or feedback takes a share of the arriving rate, as libwebrtc
//! lets it take 5 % of its host's send rate (`transport_sequence_number_feedback_generator.cc`), with libwebrtc's
//! bounds. Feedback is sent earlier after a number of packets, or at the end of a frame, as SCReAM requires
//! (draft-ietf-ccwg-rfc8298bis-screamv2, the feedback's requirements); but never earlier than the session's bandwidth
//! allows.

use super::RtpConfig;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// The time over which the arriving rate is measured.
const WINDOW: Span = Span::from_secs(1);

/// The timer of feedback on arrivals.
#[derive(Clone, Debug)]
pub(super) struct FeedbackTimer {
    due: Time,
    /// The earliest time that the session's bandwidth allows.
    free: Time,
    /// Packets since the last feedback, including duplicates, and their bytes on the wire.
    packets: u32,
    bytes: u64,
    meter: Meter,
}

impl FeedbackTimer {
    pub(super) fn new() -> FeedbackTimer {
        let (due, free) = (Time::NEVER, Time::ZERO);
        FeedbackTimer { due, free, packets: 0, bytes: 0, meter: Meter::default() }
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Processes a packet of `size` bytes on the wire; `ends_frame`: it is the last of a frame; `news`: there is
    /// something to report. Returns whether to send feedback now.
    pub(super) fn arrived(&mut self, now: Time, size: u16, ends_frame: bool, news: bool, config: &RtpConfig) -> bool {
        self.packets += 1;
        self.bytes += u64::from(size);
        if !news {
            return false;
        }
        if self.due == Time::NEVER {
            self.due = now + config.feedback_interval.max(Span(1));
            self.meter.begin(now);
        }
        let when = &config.feedback;
        let early = when.packets > 0 && self.packets >= when.packets || when.frames && ends_frame;
        if early {
            self.due = self.due.min(self.free.max(now));
        }
        early && self.due <= now
    }

    /// Stops the timer: there is nothing to report, and the next packet starts an interval.
    pub(super) fn nothing(&mut self) {
        self.due = Time::NEVER;
    }

    /// Records that feedback of `size` bytes on the wire was sent.
    pub(super) fn sent(&mut self, now: Time, size: u16, config: &RtpConfig) {
        self.packets = 0;
        let bytes = std::mem::take(&mut self.bytes);
        self.free = now + config.feedback_share(size).max(Span(1));
        let interval = match config.feedback.share {
            None => config.feedback_interval,
            Some(share) => {
                let rate = self.meter.rate(now, bytes);
                let wanted = Span::from_secs_f64((f64::from(size) / (share * rate).max(1e-3)).min(1e6));
                wanted.clamp(RtpConfig::SHORTEST_BY_SHARE, RtpConfig::LONGEST_BY_SHARE)
            }
        };
        self.due = self.free.max(now + interval);
    }
}

/// The bytes on the wire received recently.
#[derive(Clone, Debug, Default)]
struct Meter {
    /// The beginning of the measured time.
    since: Time,
    /// The bytes received between consecutive feedbacks, with the time of the later one.
    pieces: VecDeque<(Time, u64)>,
}

impl Meter {
    /// Restarts the measurement after a pause.
    fn begin(&mut self, now: Time) {
        self.pieces.clear();
        self.since = now;
    }

    /// The arriving rate in bytes per second; `bytes` have arrived since the previous feedback.
    fn rate(&mut self, now: Time, bytes: u64) -> f64 {
        self.pieces.push_back((now, bytes));
        while let Some((until, _)) = self.pieces.front().filter(|(until, _)| *until + WINDOW <= now) {
            self.since = *until;
            self.pieces.pop_front();
        }
        let all: u64 = self.pieces.iter().map(|(_, bytes)| bytes).sum();
        all as f64 / now.since(self.since).as_secs_f64().max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::FeedbackConfig;
    use paceline_control::{MediaController, Profile, RtpController, registry};
    use paceline_units::Rate;

    fn config(feedback: FeedbackConfig) -> RtpConfig {
        let controller = RtpController::new(registry::scheme("nada").unwrap(), Profile::Rfc, &[]).unwrap();
        let mut config = RtpConfig { feedback, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
        config.timing.bandwidth = Rate::from_bps(100_000_000);
        config
    }

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// When feedback of 80 bytes is sent, if packets of `size` bytes arrive every `gap`, every fourth with a marker.
    fn leaves(config: &RtpConfig, size: u16, gap: Span, seconds: u64) -> Vec<u64> {
        let (mut timer, mut times) = (FeedbackTimer::new(), Vec::new());
        let (mut now, mut k) = (Time::ZERO, 0u64);
        while now < Time::from_secs_f64(seconds as f64) {
            let next = Time(gap.0 * k);
            let sends = if timer.due() < next {
                now = timer.due();
                true
            } else {
                (now, k) = (next, k + 1);
                timer.arrived(now, size, k % 4 == 0, true, config)
            };
            if sends {
                timer.sent(now, 80, config);
                times.push(now.0 / 1_000_000);
            }
        }
        times
    }

    #[test]
    fn by_time_alone() {
        let times = leaves(&config(FeedbackConfig::default()), 1200, Span::from_millis(7), 1);
        assert_eq!(times, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
        let mut idle = FeedbackTimer::new();
        let config = config(FeedbackConfig::default());
        assert!(!idle.arrived(ms(5), 1200, true, false, &config));
        assert_eq!(idle.due(), Time::NEVER, "no news, no feedback");
        idle.arrived(ms(5), 1200, true, true, &config);
        assert_eq!(idle.due(), ms(105));
        idle.nothing();
        assert_eq!(idle.due(), Time::NEVER);
    }

    #[test]
    fn after_so_many_packets_or_at_a_frames_end_or_after_the_interval() {
        let by = |packets, frames, ms| {
            let feedback_interval = Span::from_millis(ms);
            RtpConfig { feedback_interval, ..config(FeedbackConfig { packets, frames, ..FeedbackConfig::default() }) }
        };
        let each = Span::from_millis(10);
        assert_eq!(leaves(&by(3, false, 1000), 100, each, 1)[..4], [20, 50, 80, 110]);
        assert_eq!(leaves(&by(0, true, 1000), 100, each, 1)[..4], [30, 70, 110, 150]);
        assert_eq!(leaves(&by(3, true, 1000), 100, each, 1)[..5], [20, 30, 60, 70, 100]);
        // as SCReAM requires; packets are too rare for the first two
        assert_eq!(leaves(&by(16, true, 40), 100, Span::from_millis(15), 1)[..4], [40, 45, 85, 105]);
        assert_eq!(leaves(&by(1, false, 40), 100, each, 1)[..3], [0, 10, 20]);
    }

    #[test]
    fn no_sooner_than_the_bandwidth_allows() {
        let mut slow = config(FeedbackConfig { packets: 1, ..FeedbackConfig::default() });
        // 80 bytes in 5 % of 640 kbit/s: 20 ms
        slow.timing.bandwidth = Rate::from_bps(640_000);
        assert_eq!(leaves(&slow, 100, Span::from_millis(3), 1)[..4], [0, 20, 40, 60]);
        // also not earlier by time
        slow.timing.bandwidth = Rate::from_bps(64_000);
        assert_eq!(leaves(&slow, 100, Span::from_millis(3), 1)[..4], [0, 200, 400, 600]);
    }

    #[test]
    fn a_share_of_what_arrives() {
        let by = config(FeedbackConfig { share: Some(0.05), ..FeedbackConfig::default() });
        let gaps = |size, gap| {
            let times = leaves(&by, size, gap, 5);
            (times[0], times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>())
        };
        // 80 bytes in 5 % of 16 kbyte/s: 100 ms
        let (first, apart) = gaps(160, Span::from_millis(10));
        assert_eq!(first, 100, "the interval until a rate is known");
        assert!(apart[12..].iter().all(|gap| (99..=101).contains(gap)), "{apart:?}");
        let (_, fast) = gaps(1200, Span::from_millis(2));
        assert!(fast.iter().all(|gap| *gap == 50), "{fast:?}");
        let (_, slow) = gaps(100, Span::from_millis(200));
        assert!(slow.iter().all(|gap| *gap == 250), "{slow:?}");
    }
}
