//! How much flows vary the rates at which they send and are received: means and deviations over bins of time, if a
//! scenario asks for them (`rate_bin`). Without that there is none of this, and it costs nothing.

use crate::endpoint::{Sink, Source};
use crate::model::FlowModel;
use paceline_units::{Span, Time};

/// Watches the endpoints of one host at every multiple of the bin.
#[derive(Debug)]
pub struct RateMeter {
    bin: Span,
    next: Time,
    /// One a source.
    sending: Vec<Rates>,
    /// One a sink.
    receiving: Vec<Rates>,
}

/// The rates at one end of a flow.
#[derive(Debug)]
struct Rates {
    /// Bins count that lie wholly between these instants.
    from: Time,
    to: Time,
    /// Bytes counted before the current bin.
    before: u64,
    bins: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    /// The bins with more bytes than any before: when each ended, and its bytes. A bin that is the first to reach some
    /// rate is one of them, whatever the rate.
    records: Vec<(Time, u64)>,
}

/// The share of its mean rate at which a flow's start-up is over.
const STARTED: f64 = 0.9;

impl RateMeter {
    /// For a host whose sources are those of the flows `sending`, its sinks those of the flows `receiving`; bins count from
    /// the end of the warm-up and each flow's start on, to its stop.
    #[must_use]
    pub fn new(bin: Span, warmup: Span, sending: &[&FlowModel], receiving: &[&FlowModel]) -> RateMeter {
        let warm = Time::ZERO + warmup;
        let rates = |flow: &&FlowModel| Rates {
            from: warm.max(flow.start),
            to: flow.stop,
            before: 0,
            bins: 0,
            mean: 0.0,
            squares: 0.0,
            records: Vec::new(),
        };
        let bin = Span(bin.0.max(1));
        RateMeter {
            bin,
            next: Time::ZERO + bin,
            sending: sending.iter().map(rates).collect(),
            receiving: receiving.iter().map(rates).collect(),
        }
    }

    /// When to look next.
    #[must_use]
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// A bin ends at [`RateMeter::next_sample`].
    pub fn sample(&mut self, sources: &[Source], sinks: &[Sink]) {
        let bin = (Time(self.next.0 - self.bin.0), self.next);
        for (rates, source) in self.sending.iter_mut().zip(sources) {
            rates.end_of_bin(bin, source.sender.stats().bytes_sent());
        }
        for (rates, sink) in self.receiving.iter_mut().zip(sinks) {
            rates.end_of_bin(bin, sink.receiver.stats().bytes);
        }
        self.next += self.bin;
    }

    /// Coefficient of variation of what source number `source` sends: standard deviation of the bytes per bin by their
    /// mean. `None` below two bins, or if it sent nothing.
    #[must_use]
    pub fn sending(&self, source: usize) -> Option<f64> {
        self.sending[source].variation()
    }

    /// The same of what sink number `sink` hands to its application: the burstiness index of Yang, Kim and Lam (INFOCOM
    /// 2001).
    #[must_use]
    pub fn receiving(&self, sink: usize) -> Option<f64> {
        self.receiving[sink].variation()
    }

    /// When the first bin ended in which sink number `sink` received 0.9 of its mean rate or more. `None` below two bins, or
    /// if it received nothing.
    #[must_use]
    pub fn started_up(&self, sink: usize) -> Option<Time> {
        let rates = &self.receiving[sink];
        let enough = |(_, bytes): &&(Time, u64)| *bytes as f64 >= STARTED * rates.mean;
        rates.variation().and_then(|_| rates.records.iter().find(enough)).map(|(ended, _)| *ended)
    }
}

impl Rates {
    /// The bin ends, `bytes` having been counted in all.
    fn end_of_bin(&mut self, (began, ended): (Time, Time), bytes: u64) {
        let of_bin = bytes - core::mem::replace(&mut self.before, bytes);
        if began >= self.from && ended <= self.to {
            self.count(of_bin as f64);
            if self.records.last().is_none_or(|(_, max)| of_bin > *max) {
                self.records.push((ended, of_bin));
            }
        }
    }

    fn variation(&self) -> Option<f64> {
        (self.bins > 1 && self.mean > 0.0).then(|| (self.squares / self.bins as f64).sqrt() / self.mean)
    }

    /// Welford's recurrence (Technometrics 4, 1962).
    fn count(&mut self, bytes: f64) {
        self.bins += 1;
        let from_old = bytes - self.mean;
        self.mean += from_old / self.bins as f64;
        self.squares += from_old * (bytes - self.mean);
    }
}
