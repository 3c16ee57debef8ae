//! A queue's limit in time: the bytes that the link would send within it at its rate of the moment.

use crate::opportunities::Passed;
use crate::rate::RateModel;
use crate::schedule::Stepped;
use paceline_units::{Rate, Size, Span};

/// Over how long the rate of a trace of opportunities is taken: an instant of one has none.
const WINDOW: u64 = 1_000_000_000;

/// Follows a link's rate and says how many bytes may wait.
#[derive(Clone, Debug)]
pub(crate) struct TimeLimit {
    span: Span,
    rate: Moment,
}

#[derive(Clone, Debug)]
enum Moment {
    Constant(Rate),
    Stepped(Box<Stepped>),
    /// What has passed up to now, and up to a window before.
    Delivery(Box<(Passed, Passed)>),
}

impl TimeLimit {
    /// What is sent within `span` at this rate.
    pub(crate) fn new(span: Span, rate: &RateModel) -> TimeLimit {
        let rate = match rate {
            RateModel::Constant(rate) => Moment::Constant(*rate),
            RateModel::Schedule(schedule) => Moment::Stepped(Box::new(Stepped::new(schedule.clone()))),
            RateModel::Opportunities(all) => {
                Moment::Delivery(Box::new((Passed::new(all.clone()), Passed::new(all.clone()))))
            }
        };
        TimeLimit { span, rate }
    }

    /// The most that may wait at `now`; calls must come in order of time.
    pub(crate) fn bytes(&mut self, now: u64) -> Size {
        let rate = match &mut self.rate {
            Moment::Constant(rate) => *rate,
            Moment::Stepped(server) => server.rate(now),
            Moment::Delivery(passed) => {
                // Before a whole window is over, the first one.
                let to = now.max(WINDOW);
                Rate((passed.0.before(to) - passed.1.before(to - WINDOW)).saturating_mul(8))
            }
        };
        rate * self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opportunities, Schedule};
    use paceline_units::Time;

    const MS: u64 = 1_000_000;

    #[test]
    fn follows_the_steps() {
        let steps = [(Time(0), Rate(8_000_000)), (Time(10 * MS), Rate(0)), (Time(20 * MS), Rate(16_000_000))];
        let schedule = Schedule::new(&steps, Some(Span(40 * MS))).unwrap();
        let mut limit = TimeLimit::new(Span(50 * MS), &RateModel::Schedule(schedule));
        let at = [0, 10 * MS - 1, 10 * MS, 20 * MS, 40 * MS, 1_000 * MS + 25 * MS];
        assert_eq!(at.map(|now| limit.bytes(now).0), [50_000, 50_000, 0, 100_000, 50_000, 100_000]);
    }

    #[test]
    fn takes_the_last_second_of_a_trace() {
        // 1500 bytes each 10 ms for 2 s, then nothing for 2 s
        let times = (1..=200).map(|i| Time(i * 10 * MS)).chain([Time(4_000 * MS)]);
        let trace = Opportunities::new(times, Opportunities::BYTES).unwrap();
        let mut limit = TimeLimit::new(Span(100 * MS), &RateModel::Opportunities(trace));
        let of = |opportunities: u64| opportunities * 1500 / 10; // a second's, for a tenth of one
        // at an instant, what comes then is not yet before it
        assert_eq!(limit.bytes(0).0, of(99));
        assert_eq!(limit.bytes(1_500 * MS + 1).0, of(100));
        assert_eq!(limit.bytes(2_500 * MS + 1).0, of(50));
        assert_eq!(limit.bytes(3_500 * MS).0, of(0));
        // the last one, and 50 of the next round
        assert_eq!(limit.bytes(4_500 * MS + 1).0, of(51));
        assert_eq!(limit.bytes(5_500 * MS + 1).0, of(100));
    }
}
