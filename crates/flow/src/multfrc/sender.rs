//! The sending end.

use super::supply::Supply;
use crate::stats::Counted;
use crate::tfrc::{TfrcConfig, TfrcSender};
use crate::{Segment, SenderStats, Transmit};
use paceline_control::multfrc::{Connections, Rules};
use paceline_control::{GaugeUnit, Gauges, TfrcController};
use paceline_packet::{Extra, Packet, Subflow};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// The sending end of a flow of several TFRC connections.
///
/// It is driven like [`TfrcSender`]. A new connection takes the next place and starts as any TFRC connection does; the
/// one opened last is closed first. Reports on packets of a closed connection are ignored.
#[derive(Debug)]
pub struct MultfrcSender {
    /// The open connections, by place.
    open: Vec<Open>,
    /// The number of connections opened so far at each place.
    openings: Vec<u16>,
    law: Connections,
    supply: Supply,
    started: bool,
    stopped: bool,
    /// No connection needs to wake before this time.
    wake: Time,
    /// The connection that is offered new data first.
    turn: usize,
    stats: SenderStats,
    rules: Rules,
    config: TfrcConfig,
    fresh: TfrcController,
    stream: Stream,
    opened: u64,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    subflow: Subflow,
    sender: TfrcSender,
}

/// Fills a connection's packets with the flow's data, counts them, and adds the connection's number.
struct Out<'a, T> {
    to: &'a mut T,
    subflow: Subflow,
    supply: &'a mut Supply,
    stats: &'a mut SenderStats,
    config: &'a TfrcConfig,
}

impl<T: Transmit> Transmit for Out<'_, T> {
    fn transmit(&mut self, mut segment: Segment) {
        let payload = self.supply.take().unwrap_or(self.config.segment);
        segment.size = payload.saturating_add(self.config.header);
        if let Some(Extra::TfrcData(subflow, _)) = &mut segment.extra {
            *subflow = self.subflow;
        }
        self.stats.sent(segment.size);
        self.stats.bytes_acked += u64::from(payload);
        self.to.transmit(segment);
    }

    fn full_until(&self) -> Option<Time> {
        self.to.full_until()
    }
}

impl MultfrcSender {
    /// Creates a sender that has not started; its connections get copies of `controller`, and `rules` set their number.
    /// `stream` supplies the jitter of gaps, if there is any.
    #[must_use]
    pub fn new(config: &TfrcConfig, rules: Rules, controller: TfrcController, stream: Stream) -> MultfrcSender {
        MultfrcSender {
            open: Vec::new(),
            openings: Vec::new(),
            law: Connections::new(rules),
            supply: Supply::default(),
            started: false,
            stopped: false,
            wake: Time::NEVER,
            turn: 0,
            stats: SenderStats::new(config.wire()),
            rules,
            config: config.clone(),
            fresh: controller,
            stream,
            opened: 0,
        }
    }

    /// Starts sending. Data supplied earlier has waited for this.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        if self.started {
            return;
        }
        self.stats.begin(now);
        self.started = true;
        self.adapt(now, out);
    }

    /// Resets the sender: all connections close, nothing is supplied, and n is 1. Statistics continue to count. Call
    /// [`MultfrcSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.open.clear();
        self.law = Connections::new(self.rules);
        self.supply.clear();
        self.started = false;
        self.stopped = false;
        self.wake = Time::NEVER;
    }

    /// The application writes `bytes`: full packets and, for a remainder, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.stopped {
            return;
        }
        let segment = u64::from(self.config.segment.max(1));
        let (full, rest) = (bytes / segment, (bytes % segment) as u16);
        if self.config.whole_segments {
            self.supply.add(full + u64::from(rest > 0), 0);
        } else {
            self.supply.add(full, rest);
        }
        self.supplied(now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.supply.add_endlessly();
            self.supplied(now, out);
        }
    }

    /// Offers new data to each connection in turn, until nothing is left.
    fn supplied(&mut self, now: Time, out: &mut impl Transmit) {
        let count = self.open.len();
        for k in 0..count {
            if self.supply.left() == 0 {
                self.turn = (self.turn + k) % count;
                break;
            }
            self.drive((self.turn + k) % count, out, |sender, out| sender.supplied(now, out));
        }
    }

    /// The application stops: unsent data is discarded.
    pub fn stop(&mut self) {
        self.supply.clear();
        self.stopped = true;
        self.open.iter_mut().for_each(|open| open.sender.stop());
        self.wake = Time::NEVER;
    }

    /// Whether everything supplied has been sent.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && self.supply.left() == 0
    }

    /// The number of entries kept for single writes: those that did not fill a packet.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.supply.shorts()
    }

    /// When to call [`MultfrcSender::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.wake
    }

    /// Sends due packets of the connections, and handles their nofeedback timers; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if now < self.wake {
            return;
        }
        for i in 0..self.open.len() {
            if self.open[i].sender.next_wake() <= now {
                self.drive(i, out, |sender, out| sender.on_timer(now, out));
            }
        }
        self.wake = Time::NEVER;
        for open in &mut self.open {
            open.sender.share(self.supply.left()); // another connection may have sent it
            self.wake = self.wake.min(open.sender.next_wake());
        }
    }

    /// Processes a report for one of the connections. Its round-trip time also counts in the computation of n. A report
    /// for a closed connection is ignored.
    pub fn on_report(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let Some(Extra::TfrcReport(subflow, _)) = extra else { return };
        let i = usize::from(subflow.place);
        if self.open.get(i).is_none_or(|open| open.subflow != *subflow) {
            return;
        }
        if let Some(rtt) = self.drive(i, out, |sender, out| sender.on_report(now, packet, extra, out)) {
            self.law.report(rtt, now);
            self.adapt(now, out);
        }
    }

    /// Opens or closes connections to reach the number that the algorithm sets.
    fn adapt(&mut self, now: Time, out: &mut impl Transmit) {
        let wanted = usize::from(self.law.open());
        while self.open.len() > wanted {
            let last = self.open.len() - 1;
            self.drive(last, out, |sender, _| sender.account(now));
            self.open.pop();
        }
        while self.open.len() < wanted {
            let place = self.open.len();
            if place == self.openings.len() {
                self.openings.push(0);
            }
            let subflow = Subflow { place: place as u16, opening: self.openings[place] };
            self.openings[place] = subflow.opening.wrapping_add(1);
            // the first one draws as a single TFRC flow would
            let stream = if self.opened == 0 { self.stream } else { self.stream.fork(self.opened) };
            self.opened += 1;
            self.open.push(Open { subflow, sender: TfrcSender::new(&self.config, self.fresh.clone(), stream) });
            self.drive(place, out, |sender, out| sender.start(now, out));
        }
    }

    /// Lets connection `i` act on the flow's data; returns the round-trip time that it has measured, if any.
    fn drive<T: Transmit>(
        &mut self,
        i: usize,
        out: &mut T,
        act: impl FnOnce(&mut TfrcSender, &mut Out<'_, T>),
    ) -> Option<Span> {
        let Open { subflow, sender } = &mut self.open[i];
        sender.share(self.supply.left());
        let before = Counted::of(sender.stats());
        let (supply, stats, config) = (&mut self.supply, &mut self.stats, &self.config);
        act(sender, &mut Out { to: out, subflow: *subflow, supply, stats, config });
        self.wake = self.wake.min(sender.next_wake());
        let p = sender.loss_event_rate();
        self.stats.add(&before, &Counted::of(sender.stats()), p)
    }

    /// Counters up to now of all connections together. The window is the sum of their windows; a round-trip time and a
    /// loss event rate are counted with each report on any of them.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }

    /// Integrates the windows up to `now`, so that [`MultfrcSender::stats`] is complete.
    pub fn account(&mut self, now: Time) {
        if self.started || self.stats.packets_sent > 0 {
            for i in 0..self.open.len() {
                self.drive(i, &mut Vec::new(), |sender, _| sender.account(now));
            }
            self.stats.until = now;
        }
    }

    /// The open connections, by place.
    pub fn connections(&self) -> impl ExactSizeIterator<Item = &TfrcSender> {
        self.open.iter().map(|open| &open.sender)
    }

    /// n; the number of [`MultfrcSender::connections`] is its integer part.
    #[must_use]
    pub fn n(&self) -> f64 {
        self.law.n()
    }

    /// Whether [`MultfrcSender::start`] has been called.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Reports the values to plot: the connections' gauges, summed or averaged depending on their units, and `n`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        let mut all = Together::default();
        if self.open.is_empty() {
            TfrcSender::new(&self.config, self.fresh.clone(), self.stream).gauges(&mut all);
            all.0.iter_mut().for_each(|part| (part.sum, part.count) = (0.0, 0.0));
        }
        self.connections().for_each(|sender| sender.gauges(&mut all));
        for part in all.0 {
            let value = match part.count > 0.0 {
                true if part.unit.adds_up() => part.sum,
                true => part.sum / part.count,
                // without connections, rate and window are zero
                false if part.unit.adds_up() && self.open.is_empty() => 0.0,
                false => f64::NAN,
            };
            to.gauge(part.name, part.unit, value);
        }
        to.number("n", self.n());
    }
}

/// The combined gauges of the connections.
#[derive(Default)]
struct Together(Vec<Part>);

/// A gauge, combined over the connections.
struct Part {
    name: &'static str,
    unit: GaugeUnit,
    sum: f64,
    /// The number of connections with a value.
    count: f64,
}

impl Gauges for Together {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, value: f64) {
        let place = self.0.iter().position(|part| part.name == name).unwrap_or_else(|| {
            self.0.push(Part { name, unit, sum: 0.0, count: 0.0 });
            self.0.len() - 1
        });
        if !value.is_nan() {
            self.0[place].sum += value;
            self.0[place].count += 1.0;
        }
    }
}
