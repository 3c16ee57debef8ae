//! Queueing delay for background transports: the minimum delay of ten minutes is the path's, the rest the queue's (RFC
//! 6817, section 2.4.2).

use paceline_units::{Span, Time};

/// The base delay is the minimum of this many minutes, the current delay that of this many samples (section 2.5).
const MINUTES: usize = 10;
const MINUTE: Span = Span::from_secs(60);
const SAMPLES: usize = 4;

/// Round-trip times, and the base and queueing delay from them.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// The minimum of each minute, the current one last; `Span::MAX` without a sample.
    minutes: [Span; MINUTES],
    began: Option<Time>,
    /// Time and value of the last samples.
    recent: [(Time, Span); SAMPLES],
    count: usize,
}

impl Delays {
    pub(crate) const NONE: Delays =
        Delays { minutes: [Span::MAX; MINUTES], began: None, recent: [(Time::ZERO, Span::MAX); SAMPLES], count: 0 };

    pub(crate) fn sample(&mut self, rtt: Span, now: Time) {
        let began = self.began.get_or_insert(now);
        while now.since(*began) >= MINUTE {
            self.minutes.rotate_left(1);
            self.minutes[MINUTES - 1] = Span::MAX;
            *began += MINUTE;
        }
        let last = &mut self.minutes[MINUTES - 1];
        *last = rtt.min(*last);
        self.recent[self.count % SAMPLES] = (now, rtt);
        self.count += 1;
    }

    /// Base and queueing delay in seconds, once there is a sample.
    pub(crate) fn known(&self) -> Option<(f64, f64)> {
        self.known_since(Time::ZERO)
    }

    /// The same from samples since `since`, or from the last one if all are older.
    pub(crate) fn known_since(&self, since: Time) -> Option<(f64, f64)> {
        let base = self.minutes.iter().copied().min().filter(|base| *base < Span::MAX)?;
        let (last, _) = self.recent[self.count.checked_sub(1)? % SAMPLES];
        let recent = self.recent.iter().filter(|(at, _)| *at >= since.min(last));
        let current = recent.map(|(_, rtt)| *rtt).min()?;
        Some((base.as_secs_f64(), current.as_secs_f64() - base.as_secs_f64()))
    }
}
