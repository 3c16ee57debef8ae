//! Proportional Integral controller Enhanced.
//!
//! Pan, Natarajan, Baker, White, RFC 8033: packets are dropped at random on arrival; a controller periodically updates
//! the probability from the queue's delay and its change. Always active, as in Linux: the RFC's switch (section 5.3)
//! that deactivates PIE below a third of the limit is left out.

use super::fifo::{Fifo, Waiting};
use super::mark;
use super::model::{DelayEstimate, PieModel};
use crate::DropReason;
use crate::model::Limit;
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;

/// Bytes that must wait, and then leave, for a rate measurement (DQ_THRESHOLD, 2^14).
const MEASURED: u64 = 1 << 14;
/// The weight of a rate measurement: DQ_THRESHOLD / 2^16 (section 5.2).
const WEIGHT: f64 = MEASURED as f64 / 65_536.0;
/// From this probability on it grows by no more than [`STEP`] per update (section 5.5, "cap drop adjustment").
const CAPPED: f64 = 0.1;
const STEP: f64 = 0.02;

/// PIE's state of one queue. Delays are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    probability: f64,
    delay: f64,
    delay_before: f64,
    /// Nanoseconds left of the burst allowance.
    burst: u64,
    /// The sum of probabilities since the last drop, including overflows.
    accumulated: f64,
    next_update: u64,
    /// The start of the current rate measurement, and the bytes that have left since.
    measuring: Option<(u64, u64)>,
    /// The time in which [`MEASURED`] bytes leave; zero before the first measurement.
    departure: f64,
}

impl Controller {
    /// # Panics
    /// If the update interval is zero.
    pub(super) fn new(model: &PieModel) -> Controller {
        assert!(model.update.0 > 0, "PIE must be renewed at an interval");
        Controller {
            probability: 0.0,
            delay: 0.0,
            delay_before: 0.0,
            burst: model.burst.0,
            accumulated: 0.0,
            next_update: model.update.0,
            measuring: None,
            departure: 0.0,
        }
    }

    /// Runs the updates that are due while `bytes` wait. The queue must not have changed since the last call.
    pub(super) fn catch_up(&mut self, model: &PieModel, bytes: u64, now: u64) {
        while self.next_update <= now {
            self.update(model, bytes);
            let step = model.update.0;
            let at_rest = bytes == 0 && self.probability == 0.0;
            if at_rest && self.delay == 0.0 && self.delay_before == 0.0 {
                // Further updates would change nothing.
                self.next_update = now - now % step;
            }
            self.next_update = self.next_update.saturating_add(step);
        }
    }

    /// Updates the probability (section 4.2).
    fn update(&mut self, model: &PieModel, bytes: u64) {
        let target = model.target.as_secs_f64();
        self.delay = match model.estimate {
            _ if bytes == 0 => 0.0,
            DelayEstimate::Timestamps => self.delay,
            DelayEstimate::DepartureRate => bytes as f64 * self.departure / MEASURED as f64,
        };
        let change = model.alpha * (self.delay - target) + model.beta * (self.delay - self.delay_before);
        let change = change * tuning(self.probability);
        let change = if self.probability >= CAPPED { change.min(STEP) } else { change };
        let mut probability = self.probability + change;
        if self.delay == 0.0 && self.delay_before == 0.0 {
            probability *= 0.98;
        }
        self.probability = probability.clamp(0.0, 1.0);
        let calm = |delay: f64| delay < target / 2.0;
        self.burst = if self.probability == 0.0 && calm(self.delay) && calm(self.delay_before) {
            model.burst.0
        } else {
            self.burst.saturating_sub(model.update.0)
        };
        self.delay_before = self.delay;
    }

    /// Whether to drop a packet that finds `bytes` waiting (sections 4.1 and 5.4).
    fn takes(&mut self, model: &PieModel, bytes: u64, size: u16, draw: impl FnOnce() -> f64) -> bool {
        let target = model.target.as_secs_f64();
        let calm = self.delay_before < target / 2.0 && self.probability < 0.2;
        if self.burst > 0 || calm || bytes <= 2 * model.mean_packet.0 {
            return false;
        }
        let mut probability = self.probability;
        if model.by_size {
            probability = (probability * f64::from(size) / model.mean_packet.0 as f64).min(1.0);
        }
        if model.derandomize {
            self.accumulated = if self.probability == 0.0 { 0.0 } else { self.accumulated + probability };
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                self.accumulated = 0.0;
                return true;
            }
        }
        let drop = draw() < probability;
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }

    /// Whether to admit a packet that finds `bytes` waiting, possibly with a mark. Adds to `marks`.
    pub(super) fn admits(
        &mut self,
        model: &PieModel,
        bytes: u64,
        packet: &mut Packet,
        marks: &mut u64,
        draw: impl FnOnce() -> f64,
    ) -> bool {
        if self.takes(model, bytes, packet.size, draw) {
            let capable = packet.flags.has(Flags::ECT);
            if !capable || model.mark_below.is_none_or(|below| self.probability >= below.0) {
                return false;
            }
            *marks += u64::from(mark(packet));
        }
        true
    }

    /// A packet was dropped on overflow.
    pub(super) fn overflows(&mut self) {
        self.accumulated = 0.0;
    }

    /// A packet leaves at `now`, and `bytes` are left.
    pub(super) fn leaves(&mut self, model: &PieModel, bytes: u64, now: u64, packet: &Packet) {
        match model.estimate {
            DelayEstimate::Timestamps => self.delay = (now - packet.time.0) as f64 * 1e-9,
            DelayEstimate::DepartureRate => self.measure(now, packet.size, bytes),
        }
    }

    /// Measures the departure rate: a packet of this size leaves, and `waiting` bytes are left (section 5.2).
    fn measure(&mut self, now: u64, size: u16, waiting: u64) {
        if let Some((since, bytes)) = &mut self.measuring {
            *bytes += u64::from(size);
            if *bytes >= MEASURED {
                let taken = (now - *since) as f64 * 1e-9;
                self.departure =
                    if self.departure == 0.0 { taken } else { taken * WEIGHT + self.departure * (1.0 - WEIGHT) };
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && waiting >= MEASURED {
            self.measuring = Some((now, 0));
        }
    }
}

/// PIE's queue and state.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    model: PieModel,
    pub(super) fifo: Fifo,
    draws: Stream,
    arrivals: u64,
    controller: Controller,
}

impl Pie {
    /// # Panics
    /// If the update interval is zero.
    pub(super) fn new(model: &PieModel, draws: Stream) -> Pie {
        let controller = Controller::new(model);
        Pie { model: *model, fifo: Fifo::default(), draws, arrivals: 0, controller }
    }

    pub(super) fn limit_to(&mut self, limit: Limit) {
        self.model.limit = limit;
    }

    pub(super) fn enqueue(
        &mut self,
        mut packet: Packet,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) {
        let Pie { model, fifo, draws, controller, .. } = self;
        let waiting = fifo.bytes();
        controller.catch_up(model, waiting, packet.time.0);
        self.arrivals += 1;
        if !fifo.fits(model.limit, packet.size) {
            controller.overflows();
            return dropped(&packet, DropReason::Overflow);
        }
        if !controller.admits(model, waiting, &mut packet, marks, || draws.unit(self.arrivals)) {
            return dropped(&packet, DropReason::Early);
        }
        fifo.push(packet);
    }

    pub(super) fn dequeue(&mut self, now: u64) -> Option<Packet> {
        let Pie { model, fifo, controller, .. } = self;
        controller.catch_up(model, fifo.bytes(), now);
        let packet = fifo.pop()?;
        controller.leaves(model, fifo.bytes(), now, &packet);
        Some(packet)
    }
}

/// The factor by which alpha and beta are reduced while the probability is small (section 4.2, "auto-tuning").
fn tuning(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    STEPS.into_iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use crate::link::tests::packet;

    impl Pie {
        fn update(&mut self) {
            self.controller.update(&self.model, self.fifo.bytes());
        }

        fn takes(&mut self, size: u16) -> bool {
            let draw = || self.draws.unit(self.arrivals);
            self.controller.takes(&self.model, self.fifo.bytes(), size, draw)
        }
    }

    /// RFC 8033 section 4.2, by hand: a constant delay of 40 ms with a target of 15 ms.
    #[test]
    fn the_probability_by_hand() {
        let mut pie = Pie::new(&PieModel::new(Limit::Packets(100)), Stream::new(1, "pie"));
        pie.fifo.push(packet(0, 1500));
        (pie.controller.delay, pie.controller.delay_before) = (0.040, 0.040);
        for (before, divisor) in
            [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (0.05, 2.0), (0.2, 1.0)]
        {
            pie.controller.probability = before;
            pie.update();
            assert!((pie.controller.probability - before - 0.125 * 0.025 / divisor).abs() < 1e-12, "{before}");
        }
        // 100 ms more: 5/4 of that, capped at 0.02; then a decrease, which is not capped.
        (pie.controller.probability, pie.controller.delay) = (0.2, 0.140);
        pie.update();
        assert!((pie.controller.probability - 0.22).abs() < 1e-12);
        pie.controller.delay = 0.030;
        pie.update();
        assert!((pie.controller.probability - (0.22 + 0.125 * 0.015 - 1.25 * 0.11)).abs() < 1e-12);
        // The queue is empty, but was not at the last update: down by alpha and beta alone.
        assert!(pie.fifo.pop().is_some());
        (pie.controller.probability, pie.controller.delay_before) = (0.5, 0.004);
        pie.update();
        assert!((pie.controller.probability - (0.5 - 0.125 * 0.015 - 1.25 * 0.004)).abs() < 1e-12);
        // The queue is empty: down by alpha times the target, and by a fiftieth once it is empty twice.
        (pie.controller.probability, pie.controller.delay_before) = (0.5, 0.0);
        pie.update();
        assert!((pie.controller.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    /// RFC 8033 section 5.4: no drop until the probabilities sum up to 0.85, always one before 8.5.
    #[test]
    fn pie_spaces_drops_out() {
        let gaps = |derandomize| {
            let model = PieModel { derandomize, alpha: 1e-9, beta: 1e-9, ..PieModel::new(Limit::Packets(100)) };
            let mut pie = Pie::new(&model, Stream::new(1, "pie"));
            (pie.controller.probability, pie.controller.burst, pie.controller.delay_before) = (0.05, 0, 1.0);
            for _ in 0..10 {
                pie.fifo.push(packet(0, 1500));
            }
            let (mut gaps, mut since) = (Vec::new(), 0);
            for _ in 0..200_000 {
                pie.arrivals += 1;
                since += 1;
                if pie.takes(1500) {
                    gaps.push(since);
                    since = 0;
                }
            }
            (gaps.iter().min().copied().unwrap_or(0), gaps.iter().max().copied().unwrap_or(0))
        };
        let (spaced, random) = (gaps(true), gaps(false));
        assert!(spaced.0 == 17 && spaced.1 <= 171, "{spaced:?}");
        assert!(random.0 == 1 && random.1 > 170, "{random:?}");
    }

    /// RFC 8033 section 4.4: the allowance falls by one interval per update, and is reset when the probability is zero
    /// and the delay was below half the target twice.
    #[test]
    fn the_burst_allowance_by_hand() {
        let mut pie = Pie::new(&PieModel::new(Limit::Packets(100)), Stream::new(1, "pie"));
        pie.fifo.push(packet(0, 1500));
        let millis = |pie: &Pie| pie.controller.burst / 1_000_000;
        (pie.controller.delay, pie.controller.delay_before) = (0.020, 0.020);
        for left in (0..150).rev().step_by(15) {
            pie.update();
            assert_eq!(millis(&pie), left - 14);
        }
        pie.update();
        assert_eq!(millis(&pie), 0);
        // Below half the target, but only once; then twice with a nonzero probability; then twice with zero.
        for (before, probability, left) in [(0.020, 0.0, 0), (0.007, 0.5, 0), (0.007, 0.0, 150)] {
            (pie.controller.delay, pie.controller.delay_before, pie.controller.probability) =
                (0.007, before, probability);
            pie.update();
            assert_eq!(millis(&pie), left, "{before} s before, probability {probability}");
        }
    }

    /// RFC 8033 section 4.1: when no draw can drop a packet; and a probability proportional to the size.
    #[test]
    fn what_is_never_dropped() {
        let share = |by_size, probability, delay_before, waiting: u16, size| {
            let model = PieModel { by_size, ..PieModel::new(Limit::Packets(100)) };
            let mut pie = Pie::new(&model, Stream::new(1, "pie"));
            (pie.controller.burst, pie.controller.probability, pie.controller.delay_before) =
                (0, probability, delay_before);
            [1500, waiting].into_iter().for_each(|size| pie.fifo.push(packet(0, size)));
            let drops = (0..4000).filter(|_| {
                pie.arrivals += 1;
                pie.takes(size)
            });
            drops.count() as f64 / 4000.0
        };
        // Two mean packets may wait. Below half the target nothing is dropped while the probability is below 0.2.
        assert_eq!((share(false, 1.0, 1.0, 1500, 1500), share(false, 1.0, 1.0, 1501, 1500)), (0.0, 1.0));
        assert_eq!(share(false, 0.199, 0.0074, 9000, 1500), 0.0);
        for (probability, before) in [(0.2, 0.0074), (0.199, 0.0076)] {
            assert!((share(false, probability, before, 9000, 1500) - 0.2).abs() < 0.03, "{probability} {before}");
        }
        assert!((share(true, 0.4, 1.0, 9000, 750) - 0.2).abs() < 0.03);
        assert!((share(true, 0.4, 1.0, 9000, 3000) - 0.8).abs() < 0.03);
    }

    /// RFC 8033 section 5.2: 16 KiB leave in 10 ms, then in 20; the newer measurement has a weight of a quarter.
    #[test]
    fn the_rate_of_departures_by_hand() {
        let model = PieModel { estimate: DelayEstimate::DepartureRate, ..PieModel::new(Limit::Packets(100)) };
        let mut pie = Pie::new(&model, Stream::new(1, "pie"));
        (0..10).for_each(|_| pie.fifo.push(packet(0, 8192)));
        for (ms, expected) in [(100, 0.0), (105, 0.0), (110, 0.010), (120, 0.010), (130, 0.0125)] {
            assert!(pie.dequeue(ms * 1_000_000).is_some());
            assert!((pie.controller.departure - expected).abs() < 1e-12, "at {ms} ms: {}", pie.controller.departure);
        }
        // Five packets wait: two and a half times 16 KiB.
        pie.update();
        assert!((pie.controller.delay - 2.5 * 0.0125).abs() < 1e-12, "{}", pie.controller.delay);
    }
}
