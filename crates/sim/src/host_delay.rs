//! How long hosts delay their packets, at each time of a run (docs/decisions/host-delay.md).

use crate::endpoint::{Sink, Source};
use paceline_path::RateModel;
use paceline_scenario::model::{Delays, FlowModel};
use paceline_units::{Rate, Size, Span, Time};
use std::sync::Arc;

/// How long this many packets of this size take on the slowest link of a path, as steps over time, the first at zero.
/// `None` if no link ever sends.
///
/// A link counts with its current rate; repeating schedules and recorded opportunities count with their mean. A step of
/// a schedule in which not one packet passes is left out, since it does not say how far apart packets are: the rate
/// before it applies (the next one if there is none).
pub fn packet_times<'a>(
    way: impl Iterator<Item = &'a RateModel>,
    (packets, size): (f64, Size),
) -> Option<Arc<[(Time, Span)]>> {
    let links: Vec<Vec<(Time, Rate)>> = way.map(|rate| moving(rate, size)).filter(|steps| !steps.is_empty()).collect();
    let mut instants: Vec<Time> = links.iter().flatten().map(|step| step.0).collect();
    instants.sort_unstable();
    instants.dedup();
    let mut places = vec![0; links.len()];
    let mut times: Vec<(Time, Span)> = Vec::new();
    for at in instants {
        let now = links.iter().zip(&mut places).map(|(steps, place)| {
            *place += usize::from(steps.get(*place + 1).is_some_and(|next| next.0 <= at));
            steps[*place].1
        });
        let span = now.min()?.time_for(size).mul_f64(packets);
        if times.last().is_none_or(|last| last.1 != span) {
            times.push((at, span));
        }
    }
    (!times.is_empty()).then(|| times.into())
}

/// A link's rates over time, without the steps in which no packet passes.
fn moving(rate: &RateModel, size: Size) -> Vec<(Time, Rate)> {
    let mut steps = rate.steps();
    let ends: Vec<Time> = steps.iter().skip(1).map(|next| next.0).chain([Time::NEVER]).collect();
    let mut ends = ends.into_iter();
    steps.retain(|&(from, rate)| {
        let end = ends.next().unwrap_or(Time::NEVER);
        rate > Rate(0) && (end == Time::NEVER || from + rate.time_for(size) <= end)
    });
    if let Some(first) = steps.first_mut() {
        first.0 = Time::ZERO;
    }
    steps
}

/// Scheduled changes of delay for a host's ends.
#[derive(Debug)]
pub struct Changes(Vec<Change>);

#[derive(Debug)]
struct Change {
    /// Index into the host's sources followed by its sinks.
    end: usize,
    delays: Delays,
    /// The next step.
    next: usize,
}

impl Changes {
    /// For a host with the sources and sinks of these flows; `None` if all of their delays are constant.
    #[must_use]
    pub fn of(sending: &[&FlowModel], receiving: &[&FlowModel]) -> Option<Box<Changes>> {
        let ends = sending.iter().map(|flow| &flow.sender_delay);
        let ends = ends.chain(receiving.iter().map(|flow| &flow.receiver_delay));
        let changing = ends.enumerate().filter_map(|(end, delays)| {
            let next = delays.change(1, delays.first())?;
            Some(Change { end, delays: delays.clone(), next })
        });
        let changes: Vec<Change> = changing.collect();
        (!changes.is_empty()).then(|| Box::new(Changes(changes)))
    }

    /// When to change a delay next: a nanosecond before the rate changes, so that all events of its host at that time
    /// see the new delay, in whatever order they run.
    #[must_use]
    pub fn due(&self) -> Time {
        let next = |change: &Change| change.delays.begins(change.next);
        self.0.iter().map(next).min().map_or(Time::NEVER, |at| Time(at.0 - 1))
    }

    /// Applies the changes that are due at `now`.
    pub fn make(&mut self, now: Time, sources: &mut [Source], sinks: &mut [Sink]) {
        self.0.retain_mut(|Change { end, delays, next }| {
            if delays.begins(*next).0 > now.0 + 1 {
                return true;
            }
            let span = delays.at(*next);
            match end.checked_sub(sources.len()) {
                None => sources[*end].set_delay(span),
                Some(sink) => sinks[sink].set_delay(span),
            }
            match delays.change(*next + 1, span) {
                Some(later) => *next = later,
                None => return false,
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_path::Schedule;

    fn schedule(steps: &[(u64, u64)], period: Option<u64>) -> RateModel {
        let steps: Vec<_> = steps.iter().map(|&(ms, rate)| (Time(ms * 1_000_000), Rate(rate))).collect();
        RateModel::Schedule(Schedule::new(&steps, period.map(Span::from_millis)).unwrap())
    }

    /// Milliseconds at which the time for two packets of 1250 bytes changes, and that time in microseconds.
    fn times(way: &[RateModel]) -> Option<Vec<(u64, u64)>> {
        let times = packet_times(way.iter(), (2.0, Size(1250)))?;
        Some(times.iter().map(|(at, span)| (at.0 / 1_000_000, span.0 / 1000)).collect())
    }

    const M: u64 = 1_000_000;

    #[test]
    fn the_slowest_link_of_the_moment_counts() {
        let falls = schedule(&[(0, 100 * M), (10_000, 10 * M), (30_000, 50 * M)], None);
        let rises = schedule(&[(0, 5 * M), (20_000, 40 * M)], None);
        assert_eq!(times(std::slice::from_ref(&falls)), Some(vec![(0, 200), (10_000, 2000), (30_000, 400)]));
        let both = [falls.clone(), RateModel::Constant(Rate(1000 * M)), rises];
        assert_eq!(times(&both), Some(vec![(0, 4000), (20_000, 2000), (30_000, 500)]));
        let slow = [falls, RateModel::Constant(Rate(10 * M))];
        assert_eq!(times(&slow), Some(vec![(0, 2000)]), "a step that changes nothing is none");
        assert_eq!(times(&[]), None);
    }

    #[test]
    fn where_a_link_stands_still_its_rate_before_counts() {
        let stalls = schedule(&[(0, 1), (5, 10 * M), (500, 0), (900, 1), (1000, 20 * M)], None);
        assert_eq!(times(&[stalls]), Some(vec![(0, 2000), (1000, 1000)]));
        let ends = schedule(&[(0, 10 * M), (500, 0)], None);
        assert_eq!(times(&[ends]), Some(vec![(0, 2000)]));
        assert_eq!(times(&[schedule(&[(0, 0)], None)]), None);
    }

    #[test]
    fn what_repeats_counts_by_its_mean() {
        assert_eq!(times(&[schedule(&[(0, 0), (2, 100 * M), (3, 0)], Some(10))]), Some(vec![(0, 2000)]));
    }
}
