//! How much flows vary their sending and receiving rates: means and deviations over bins of time, if the scenario sets
//! `rate_bin`. Without it, this costs nothing.

use crate::endpoint::{Sink, Source};
use paceline_scenario::model::FlowModel;
use paceline_units::{Span, Time};

/// Samples the endpoints of one host at every multiple of the bin.
#[derive(Debug)]
pub struct RateMeter {
    bin: Span,
    next: Time,
    /// One per source.
    sending: Vec<Rates>,
    /// One per sink.
    receiving: Vec<Rates>,
}

/// The rates at one end of a flow.
#[derive(Debug)]
struct Rates {
    /// Only bins that lie wholly between these times count.
    from: Time,
    to: Time,
    /// Bytes counted before the current bin.
    before: u64,
    bins: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    /// Bins with more bytes than any before: the end of each, and its bytes. They include the first bin that reaches
    /// any given rate.
    records: Vec<(Time, u64)>,
}

/// Share of its mean rate at which a flow's start-up ends.
const STARTED: f64 = 0.9;

impl RateMeter {
    /// For a host with the sources of the flows `sending` and the sinks of the flows `receiving`. Bins count from the
    /// end of the warm-up and each flow's start until its stop.
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

    /// When to sample next.
    #[must_use]
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// Ends a bin. Call at [`RateMeter::next_sample`].
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

    /// Coefficient of variation of the sending rate of source number `source`: standard deviation of the bytes per bin
    /// divided by their mean. `None` below two bins, or if it sent nothing.
    #[must_use]
    pub fn sending(&self, source: usize) -> Option<f64> {
        self.sending[source].variation()
    }

    /// The same for the goodput of sink number `sink`: the burstiness index of Yang, Kim and Lam (INFOCOM 2001).
    #[must_use]
    pub fn receiving(&self, sink: usize) -> Option<f64> {
        self.receiving[sink].variation()
    }

    /// End of the first bin in which sink number `sink` received at least 0.9 of its mean rate. `None` below two bins,
    /// or if it received nothing.
    #[must_use]
    pub fn started_up(&self, sink: usize) -> Option<Time> {
        let rates = &self.receiving[sink];
        let enough = |(_, bytes): &&(Time, u64)| *bytes as f64 >= STARTED * rates.mean;
        rates.variation().and_then(|_| rates.records.iter().find(enough)).map(|(ended, _)| *ended)
    }
}

impl Rates {
    /// Ends a bin; `bytes` is the total so far.
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
