//! Web traffic, reduced to the side that sends the pages: transfers of Pareto sizes, with exponential or Pareto gaps.

use crate::application::{Action, Period, Rounding, Tally, Transfers};
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// The maximum size of a transfer, a cut of the distribution: 10^15 bytes.
const MAX_SIZE: f64 = 1e15;

/// The maximum gap, a cut of the distribution: 30 years.
const MAX_GAP: Span = Span::from_secs(1_000_000_000);

/// The events between which gaps lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebArrivals {
    /// From the acknowledgement of the last byte to the next transfer, each on a new connection.
    #[default]
    Think,
    /// The same on one connection, which keeps its state.
    ThinkPersistent,
    /// From one arrival to the next, whatever is still in progress; all on one connection.
    Open,
}

/// The Pareto distribution of transfer sizes: P(size > x) = (min / x)^shape for x >= min.
///
/// Its mean is min * shape / (shape - 1), infinite for shapes up to 1; its median is min * 2^(1/shape). For shape 1.2
/// and a mean of 50 kB the minimum is 8.33 kB and the median 14.8 kB; for a median of 50 kB they are 28.1 kB and a mean
/// of 168 kB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    min_size: f64,
    shape: f64,
    max_size: f64,
}

impl Pareto {
    /// The distribution with this mean; `None` if the shape is not above 1.
    #[must_use]
    pub fn with_mean(mean: Size, shape: f64) -> Option<Pareto> {
        (shape > 1.0).then(|| Pareto { min_size: mean.0 as f64 * (shape - 1.0) / shape, shape, max_size: MAX_SIZE })
    }

    /// The distribution with this median; `None` if the shape is not above 0.
    #[must_use]
    pub fn with_median(median: Size, shape: f64) -> Option<Pareto> {
        let min = median.0 as f64 / libm::pow(2.0, 1.0 / shape);
        (shape > 0.0).then_some(Pareto { min_size: min, shape, max_size: MAX_SIZE })
    }

    /// The same distribution, with larger draws cut to `max`.
    #[must_use]
    pub fn cut_at(self, max: Size) -> Pareto {
        Pareto { max_size: MAX_SIZE.min(max.0 as f64), ..self }
    }

    /// The minimum size, in bytes.
    #[must_use]
    pub fn min_size(&self) -> f64 {
        self.min_size
    }

    /// Draw number `index`, rounded up to the byte, at least 1 B.
    fn draw(&self, from: Stream, index: u64) -> Size {
        let bytes = (self.min_size * from.pareto(index, self.shape)).min(self.max_size);
        Size((libm::ceil(bytes) as u64).max(1))
    }
}

/// A web source's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebModel {
    /// Mean of the gaps.
    pub gap: Span,
    /// Shape of the gaps' Pareto distribution, above 1; `None`: exponential.
    pub gap_shape: Option<f64>,
    /// The events between which they lie.
    pub arrivals: WebArrivals,
    /// The distribution of sizes.
    pub sizes: Pareto,
    /// Whether sizes are rounded up to whole segments.
    pub rounding: Rounding,
}

impl WebModel {
    /// Sizes and gaps have separate streams, so that a source's draws are the same with and without requests.
    pub(crate) const fn streams(stream: Stream) -> (Stream, Sequence) {
        (stream.fork(0), Sequence::new(stream.fork(1)))
    }

    /// The size of transfer number `index`, drawn from `sizes`.
    #[must_use]
    pub(crate) fn size(&self, sizes: Stream, index: u64) -> Size {
        self.rounding.up(self.sizes.draw(sizes, index))
    }

    /// The next gap.
    pub(crate) fn gap(&self, gaps: &mut Sequence) -> Span {
        let of_mean = match self.gap_shape {
            None => gaps.exponential(),
            // The minimum of the distribution with mean 1 is (shape - 1) / shape.
            Some(shape) => gaps.pareto(shape) * (shape - 1.0) / shape,
        };
        self.gap.mul_f64(of_mean).min(MAX_GAP)
    }
}

/// A web source.
#[derive(Clone, Debug)]
pub struct Web {
    model: WebModel,
    period: Period,
    sizes: Stream,
    gaps: Sequence,
    /// The number of transfers so far.
    count: u64,
    /// When the next transfer arrives; `None` while a thinking client waits for its page.
    next: Option<Time>,
    /// Transfers in progress: the offset of each one's end among all bytes, and when it began.
    under_way: VecDeque<(u64, Time)>,
    /// Bytes written.
    written: u64,
    stopped: bool,
    tally: Tally,
}

impl Web {
    /// A source whose first transfer arrives at the period's start.
    #[must_use]
    pub fn new(model: WebModel, stream: Stream, period: Period) -> Web {
        let (sizes, gaps) = WebModel::streams(stream);
        Web {
            model,
            period,
            sizes,
            gaps,
            count: 0,
            next: Some(period.start),
            under_way: VecDeque::new(),
            written: 0,
            stopped: false,
            tally: Tally::default(),
        }
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time, acked: Size) -> Action {
        while let Some(&(end, since)) = self.under_way.front()
            && acked.0 >= end
        {
            self.under_way.pop_front();
            self.tally.completed(now, since);
            if self.model.arrivals != WebArrivals::Open && !self.stopped {
                self.next = Some(now + self.model.gap(&mut self.gaps));
            }
        }
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            self.next = None;
            return Action::Stop;
        }
        let Some(arrived) = self.next.filter(|&at| now >= at) else { return Action::Wait };
        let size = self.model.size(self.sizes, self.count);
        self.count += 1;
        self.next = (self.model.arrivals == WebArrivals::Open).then(|| arrived + self.model.gap(&mut self.gaps));
        let first = self.written == 0;
        self.written = self.written.saturating_add(size.0);
        self.under_way.push_back((self.written, now));
        self.tally.started();
        if self.model.arrivals == WebArrivals::Think && !first { Action::Restart(size) } else { Action::Send(size) }
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let stop = (!self.stopped && self.period.stop < Time::NEVER).then_some(self.period.stop);
        [self.next, stop].into_iter().flatten().min()
    }

    /// Starts the measurement: transfers count from now on.
    pub fn measure_from_here(&mut self) {
        self.tally.restart();
    }

    /// Statistics of the transfers.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        self.tally.read(self.under_way.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page acknowledged after the stop must not schedule another wake-up: a time in the past would be due forever.
    #[test]
    fn a_page_that_is_acknowledged_after_the_stop_is_followed_by_none() {
        for arrivals in [WebArrivals::Think, WebArrivals::ThinkPersistent] {
            let sizes = Pareto::with_mean(Size(20_000), 1.2).unwrap();
            let model =
                WebModel { gap: Span::from_millis(200), gap_shape: None, arrivals, sizes, rounding: Rounding::Exact };
            let stop = Time(1_000_000_000);
            let mut web = Web::new(model, Stream::new(1, "web"), Period { start: Time::ZERO, stop });
            let Action::Send(size) = web.next_action(Time::ZERO, Size(0)) else { panic!("a page") };
            assert!(matches!(web.next_action(stop, Size(0)), Action::Stop));
            assert!(matches!(web.next_action(stop + Span::from_millis(1), size), Action::Wait));
            assert_eq!((web.transfers().completed, web.next_wake()), (1, None));
        }
    }
}
