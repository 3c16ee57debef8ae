//! How much flows vary their sending rates: means and deviations over bins of time, if a scenario asks for them
//! (`rate_bin`). Without that there is none of this, and it costs nothing.

use crate::endpoint::Source;
use crate::model::FlowModel;
use paceline_units::{Span, Time};

/// Watches the sources of one host at every multiple of the bin.
#[derive(Debug)]
pub struct RateMeter {
    bin: Span,
    next: Time,
    rates: Vec<Rates>,
}

/// The rates of one source.
#[derive(Debug)]
struct Rates {
    /// Bins count that lie wholly between these instants.
    from: Time,
    to: Time,
    /// Bytes sent before the current bin.
    before: u64,
    bins: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl RateMeter {
    /// For a host whose sources are those of `flows`; bins count from the end of the warm-up and each flow's start on, to
    /// its stop.
    #[must_use]
    pub fn new<'a>(bin: Span, warmup: Span, flows: impl Iterator<Item = &'a FlowModel>) -> RateMeter {
        let warm = Time::ZERO + warmup;
        let rates = flows.map(|flow| Rates {
            from: warm.max(flow.start),
            to: flow.stop,
            before: 0,
            bins: 0,
            mean: 0.0,
            squares: 0.0,
        });
        let bin = Span(bin.0.max(1));
        RateMeter { bin, next: Time::ZERO + bin, rates: rates.collect() }
    }

    /// When to look next.
    #[must_use]
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// A bin ends at [`RateMeter::next_sample`].
    pub fn sample(&mut self, sources: &[Source]) {
        let (began, ended) = (Time(self.next.0 - self.bin.0), self.next);
        for (rates, source) in self.rates.iter_mut().zip(sources) {
            let bytes = source.sender.stats().bytes_sent();
            let sent = bytes - core::mem::replace(&mut rates.before, bytes);
            if began >= rates.from && ended <= rates.to {
                rates.count(sent as f64);
            }
        }
        self.next += self.bin;
    }

    /// Coefficient of variation of source number `source`: standard deviation of the bytes per bin by their mean. `None`
    /// below two bins, or if it sent nothing.
    #[must_use]
    pub fn variation(&self, source: usize) -> Option<f64> {
        let rates = &self.rates[source];
        (rates.bins > 1 && rates.mean > 0.0).then(|| (rates.squares / rates.bins as f64).sqrt() / rates.mean)
    }
}

impl Rates {
    /// Welford's recurrence (Technometrics 4, 1962).
    fn count(&mut self, bytes: f64) {
        self.bins += 1;
        let from_old = bytes - self.mean;
        self.mean += from_old / self.bins as f64;
        self.squares += from_old * (bytes - self.mean);
    }
}
