//! A queue's limit that changes: a limit in time (the bytes that the link sends within it at its current rate), and
//! steps from one limit to another.

use crate::model::{Limit, LinkModel, QueueLimit};
use crate::opportunities::Passed;
use crate::rate::RateModel;
use crate::schedule::Stepped;
use paceline_units::{Rate, Size, Span};

/// The averaging window for the rate of an opportunity trace, which has no instantaneous rate, in nanoseconds.
const WINDOW: u64 = 1_000_000_000;

/// Follows a link's limits and its rate, and yields the current limit.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    limit: QueueLimit,
    /// Later steps, the next one last.
    steps: Vec<(u64, QueueLimit)>,
    rate: RateSource,
}

#[derive(Clone, Debug)]
enum RateSource {
    Constant(Rate),
    Stepped(Box<Stepped>),
    /// Bytes delivered up to now, and up to one window earlier.
    Delivery(Box<(Passed, Passed)>),
}

impl Limits {
    /// The limits of this link; `None` if its queue's limit never changes.
    ///
    /// # Panics
    /// If the steps are not in order, or there are some and the queue has no limit.
    pub(crate) fn new(model: &LinkModel) -> Option<Limits> {
        let steps = &model.limit_steps;
        assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0), "steps of a limit must be in order");
        let limit = match (model.limit_in_time, steps.is_empty()) {
            (Some(span), _) => QueueLimit::InTime(span),
            (None, true) => return None,
            (None, false) => QueueLimit::Fixed(model.queue.limit().expect("a queue whose limit changes has one")),
        };
        let rate = match &model.rate {
            RateModel::Constant(rate) => RateSource::Constant(*rate),
            RateModel::Schedule(schedule) => RateSource::Stepped(Box::new(Stepped::new(schedule.clone()))),
            RateModel::Opportunities(all) => {
                RateSource::Delivery(Box::new((Passed::new(all.clone()), Passed::new(all.clone()))))
            }
        };
        Some(Limits { limit, steps: steps.iter().rev().map(|&(at, limit)| (at.0, limit)).collect(), rate })
    }

    /// The limit at `now`; calls must come in order of time.
    pub(crate) fn at(&mut self, now: u64) -> Limit {
        while let Some(&(_, limit)) = self.steps.last().filter(|(at, _)| *at <= now) {
            self.limit = limit;
            self.steps.pop();
        }
        match self.limit {
            QueueLimit::Fixed(limit) => limit,
            QueueLimit::InTime(span) => Limit::Bytes(self.bytes(span, now)),
        }
    }

    /// The bytes sent within `span` at the rate at `now`.
    fn bytes(&mut self, span: Span, now: u64) -> Size {
        let rate = match &mut self.rate {
            RateSource::Constant(rate) => *rate,
            RateSource::Stepped(server) => server.rate(now),
            RateSource::Delivery(passed) => {
                // During the first window, use the whole of it.
                let to = now.max(WINDOW);
                Rate((passed.0.before(to) - passed.1.before(to - WINDOW)).saturating_mul(8))
            }
        };
        rate * span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opportunities, Queue, Schedule};
    use paceline_units::Time;

    const MS: u64 = 1_000_000;

    /// The limit in bytes of a queue limited to `ms`, before a link of this rate.
    fn in_time(ms: u64, rate: RateModel) -> impl FnMut(u64) -> u64 {
        let queue = Queue::DropTail(Limit::Packets(1));
        let model =
            LinkModel { rate, limit_in_time: Some(Span(ms * MS)), ..LinkModel::new(Rate(1), Span::ZERO, queue) };
        let mut limits = Limits::new(&model).unwrap();
        move |now| match limits.at(now) {
            Limit::Bytes(Size(bytes)) => bytes,
            Limit::Packets(_) => panic!("bytes"),
        }
    }

    /// Packets, then bytes, then a time at each of two rates, then packets again.
    #[test]
    fn steps_from_one_limit_to_another() {
        let rates = [(Time(0), Rate(8_000_000)), (Time(40 * MS), Rate(16_000_000))];
        let mut model = LinkModel::new(Rate(1), Span::ZERO, Queue::DropTail(Limit::Packets(7)));
        assert!(Limits::new(&model).is_none());
        model.rate = RateModel::Schedule(Schedule::new(&rates, None).unwrap());
        model.limit_steps = vec![
            (Time(10 * MS), QueueLimit::Fixed(Limit::Bytes(Size(500)))),
            (Time(30 * MS), QueueLimit::InTime(Span(5 * MS))),
            (Time(50 * MS), QueueLimit::Fixed(Limit::Packets(3))),
        ];
        let mut limits = Limits::new(&model).unwrap();
        let [bytes, packets] = [|n| Limit::Bytes(Size(n)), |n: u64| Limit::Packets(n as u32)];
        for (at, limit) in [
            (0, packets(7)),
            (10 * MS - 1, packets(7)),
            (10 * MS, bytes(500)),
            (30 * MS, bytes(5_000)),
            (40 * MS, bytes(10_000)),
            (60 * MS, packets(3)),
        ] {
            assert_eq!(limits.at(at), limit, "{at}");
        }
        // several at once
        assert_eq!(Limits::new(&model).unwrap().at(90 * MS), packets(3));
    }

    #[test]
    fn follows_the_steps() {
        let steps = [(Time(0), Rate(8_000_000)), (Time(10 * MS), Rate(0)), (Time(20 * MS), Rate(16_000_000))];
        let schedule = Schedule::new(&steps, Some(Span(40 * MS))).unwrap();
        let limit = in_time(50, RateModel::Schedule(schedule));
        let at = [0, 10 * MS - 1, 10 * MS, 20 * MS, 40 * MS, 1_000 * MS + 25 * MS];
        assert_eq!(at.map(limit), [50_000, 50_000, 0, 100_000, 50_000, 100_000]);
    }

    #[test]
    fn takes_the_last_second_of_a_trace() {
        // 1500 bytes each 10 ms for 2 s, then nothing for 2 s
        let times = (1..=200).map(|i| Time(i * 10 * MS)).chain([Time(4_000 * MS)]);
        let trace = Opportunities::new(times, Opportunities::BYTES).unwrap();
        let mut limit = in_time(100, RateModel::Opportunities(trace));
        let of = |opportunities: u64| opportunities * 1500 / 10; // a second's, for a tenth of one
        // an opportunity at `now` itself does not count yet
        assert_eq!(limit(0), of(99));
        assert_eq!(limit(1_500 * MS + 1), of(100));
        assert_eq!(limit(2_500 * MS + 1), of(50));
        assert_eq!(limit(3_500 * MS), of(0));
        // the last one, and 50 of the next repetition
        assert_eq!(limit(4_500 * MS + 1), of(51));
        assert_eq!(limit(5_500 * MS + 1), of(100));
    }
}
