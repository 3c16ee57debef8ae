//! C4, Christian's congestion control code, for real-time media: a nominal rate, and the maximum round trip of the path
//! without a queue.
//!
//! Source: C. Huitema, S. Nandakumar, C. Jennings, draft-huitema-ccwg-c4-spec (private-octopus/c4 at e3377b67), with
//! its names; times are in seconds and rates in bytes per second. Details that the text leaves open follow the authors'
//! code (private-octopus/picoquic, `c4.c`); docs/controllers/c4.md lists them, and where text and code differ.

use crate::{Build, Controller, Gauges, LostSegment, Machine, Needs, PathView, Profile, RateSample, Recovery, Scheme};
use crate::{TcpEvent, WindowController, known};
use paceline_units::Span;

const ALPHA_INITIAL: f64 = 2.0;
const ALPHA_RECOVERY: f64 = 15.0 / 16.0;
/// After congestion in Recovery.
const ALPHA_RECOVERY_MORE: f64 = 7.0 / 8.0;
const ALPHA_CRUISING: f64 = 1.0;
/// Of the first push, and of a push after a failed one.
const ALPHA_PUSHING_LOW: f64 = 17.0 / 16.0;
/// Of a push after a successful one.
const ALPHA_PUSHING: f64 = 5.0 / 4.0;
/// Eras without a higher rate that end Initial.
const ERAS_NO_INCREASE: u32 = 3;
/// Eras without a higher rate after which a delay may end Initial.
const ERAS_BEFORE_DELAY: u32 = 2;
/// Packets that must have arrived before losses may end Initial.
const PACKETS_BEFORE_LOSS: u64 = 20;
/// Eras of Cruising.
const ERAS_CRUISING: u32 = 4;
/// Successful pushes in a row that lead back to Initial.
const PUSHES_BEFORE_INITIAL: u32 = 3;
/// MAX_JITTER.
const MAX_JITTER: f64 = 0.25;
/// A delay this much above the nominal maximum round trip is congestion, whatever the sensitivity; in seconds.
const DELAY_THRESHOLD_MAX: f64 = 0.025;
/// The maximum reduction, which is also that after losses.
const BETA: f64 = 0.25;
/// Weight of a packet in the smoothed loss rate.
const WEIGHT: f64 = 1.0 / 16.0;
/// Minimum pacing rate in Initial in bytes per second, once an acknowledgement has arrived.
const RATE_MIN_INITIAL: f64 = 131_072.0;
/// Outside Initial, the window covers this much more than the nominal maximum round trip, or a quarter of that round
/// trip if that is less; in seconds.
const MARGIN: f64 = 0.015;
/// Share by which samples are reduced: the nominal rate is the maximum of many samples, each slightly inaccurate.
const RATE_MARGIN: f64 = 0.01;
/// A quantum is what the rate sends in this time, in seconds.
const QUANTUM_TIME: f64 = 0.001;
const QUANTUM_MAX: f64 = 65536.0;
/// The minimum window, in segments.
const WINDOW_MIN: f64 = 2.0;

/// The state machine's states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Finds the path's rate by sending at twice the nominal rate.
    Initial,
    /// Drains a queue, and evaluates the last push.
    Recovery,
    /// Sends at the nominal rate.
    Cruising,
    /// Sends faster, to find out whether more is available.
    Pushing,
}

impl State {
    /// All states; the gauge `state` is an index into this.
    pub const ALL: [State; 4] = [State::Initial, State::Recovery, State::Cruising, State::Pushing];
}

/// A sign of congestion, and the share by which to reduce the rate.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Congestion {
    beta: f64,
    loss: bool,
    /// Whether it was found with a packet of this push.
    of_push: bool,
}

/// Sensitivity to congestion: from 0 (hardly reacts) to 1.
fn sensitivity(rate: f64) -> f64 {
    match rate {
        r if r < 50e3 => 0.0,
        r if r < 1e6 => 0.92 * (r - 50e3) / 950e3,
        r if r < 10e6 => 0.92 + 0.08 * (r - 1e6) / 9e6,
        _ => 1.0,
    }
}

fn loss_threshold(rate: f64) -> f64 {
    0.02 + 0.50 * (1.0 - sensitivity(rate))
}

/// The state.
#[derive(Clone, Debug)]
pub struct C4 {
    state: State,
    nominal_rate: f64,
    nominal_max_rtt: f64,
    running_min_rtt: f64,
    alpha_current: f64,
    alpha_previous: f64,
    cwnd: f64,
    pacing_rate: f64,
    quantum: f64,
    initial_window: f64,
    smss: f64,

    // ---- the era
    /// C.delivered when the era began: packets sent in it have at least this prior_delivered.
    era_start: u64,
    era_max_rtt: f64,
    era_min_rtt: f64,
    /// Eras spent in Cruising.
    eras: u32,

    // ---- Initial
    eras_no_increase: u32,
    /// A window that grows by what is acknowledged, as in slow start.
    slow_start: f64,
    /// Whether every sample of the era was application-limited.
    app_limited: bool,
    received: u64,
    /// The rate when the era began.
    rate_before: f64,
    had_high_jitter: bool,

    // ---- pushes
    /// The rate when the last Recovery ended.
    rate_recovered: f64,
    alpha_push: f64,
    /// Whether this Recovery follows a push.
    pushed: bool,
    /// The first new segment of this push.
    push_seq: u32,
    /// Whether there was a sign of congestion since the push began, or in this Recovery.
    congested: bool,
    successes: u32,

    // ---- losses
    smoothed_loss: f64,
    lost: Option<Congestion>,
    timed_out: bool,
}

impl C4 {
    fn delay_threshold(&self) -> f64 {
        let fraction = 1.0 / 16.0 + (1.0 - sensitivity(self.nominal_rate)) * 3.0 / 16.0;
        (fraction * self.nominal_max_rtt).min(DELAY_THRESHOLD_MAX)
    }

    fn begin_era(&mut self, total: u64) {
        self.era_start = total.max(1);
        self.era_max_rtt = 0.0;
        self.era_min_rtt = f64::INFINITY;
        self.alpha_previous = self.alpha_current;
        self.rate_before = self.nominal_rate;
        self.app_limited = true;
    }

    fn enter_initial(&mut self, total: u64) {
        self.state = State::Initial;
        self.alpha_current = ALPHA_INITIAL;
        self.eras_no_increase = 0;
        self.slow_start = self.cwnd;
        self.received = 0;
        self.successes = 0;
        self.congested = false;
        self.begin_era(total);
    }

    fn enter_recovery(&mut self, total: u64) {
        self.pushed = self.state == State::Pushing;
        self.state = State::Recovery;
        self.begin_era(total);
        self.alpha_current = ALPHA_RECOVERY;
    }

    fn enter_cruising(&mut self, total: u64) {
        self.state = State::Cruising;
        self.eras = 0;
        self.begin_era(total);
        self.alpha_current = ALPHA_CRUISING;
    }

    fn enter_pushing(&mut self, total: u64, next: u32) {
        self.state = State::Pushing;
        self.push_seq = next;
        self.congested = false;
        self.begin_era(total);
        self.alpha_push = if self.successes > 0 { ALPHA_PUSHING } else { ALPHA_PUSHING_LOW };
        self.alpha_current = self.alpha_push;
    }

    /// Updates the nominal rate from the delivery rate; it can only rise, and does not while congested.
    fn update_rate(&mut self, sample: &RateSample) {
        let rate = (1.0 - RATE_MARGIN) * sample.rate();
        let congested = self.state == State::Recovery && self.congested;
        if !congested {
            self.nominal_rate = self.nominal_rate.max(rate);
        }
    }

    fn update_rtt(&mut self, rtt: f64) {
        self.era_max_rtt = self.era_max_rtt.max(rtt);
        self.era_min_rtt = self.era_min_rtt.min(rtt);
        if self.nominal_max_rtt == 0.0 {
            self.nominal_max_rtt = rtt;
            self.running_min_rtt = rtt;
        }
    }

    /// "On end of era": packets sent at no more than the nominal rate measure the round trip without a queue of the
    /// flow's own.
    fn update_max_rtt(&mut self) {
        if self.alpha_previous > 1.0 || self.era_max_rtt == 0.0 {
            return;
        }
        let min = self.era_min_rtt;
        let running = if min < self.running_min_rtt { min } else { (7.0 * self.running_min_rtt + min) / 8.0 };
        self.running_min_rtt = running;
        let max = self.era_max_rtt.min(running + MAX_JITTER);
        let nominal = self.nominal_max_rtt;
        self.nominal_max_rtt = if max > nominal { max } else { (7.0 * nominal + max) / 8.0 };
    }

    /// Handles the end of an era without congestion.
    fn end_era(&mut self, sample: &RateSample, next: u32) {
        let total = sample.total;
        match self.state {
            State::Initial => {
                if self.nominal_rate >= 1.25 * self.rate_before {
                    self.eras_no_increase = 0;
                } else if !self.app_limited {
                    self.eras_no_increase += 1;
                }
                if self.eras_no_increase >= ERAS_NO_INCREASE { self.exit_initial(total) } else { self.begin_era(total) }
            }
            State::Recovery => {
                self.update_max_rtt();
                self.exit_recovery(total);
            }
            State::Cruising => {
                self.update_max_rtt();
                self.eras += 1;
                if self.eras >= ERAS_CRUISING && !sample.app_limited {
                    self.enter_pushing(total, next);
                } else {
                    self.begin_era(total);
                }
            }
            State::Pushing => {
                self.update_max_rtt();
                self.enter_recovery(total);
            }
        }
    }

    /// Initial continues if the rate is still unknown, before the end of the first era.
    fn exit_initial(&mut self, total: u64) {
        if self.nominal_rate > 0.0 {
            self.congested = false;
            self.rate_recovered = self.nominal_rate;
            self.enter_recovery(total);
        }
    }

    fn exit_recovery(&mut self, total: u64) {
        let high_jitter = self.running_min_rtt < self.nominal_max_rtt * 2.0 / 5.0;
        let before = self.rate_recovered;
        let enough = if self.alpha_push <= ALPHA_PUSHING_LOW {
            self.nominal_rate > before
        } else {
            self.nominal_rate >= before * (1.0 + (self.alpha_push - 1.0) / 4.0)
        };
        let success = self.pushed && enough && !self.congested;
        self.successes = if success { self.successes + 1 } else { 0 };
        self.rate_recovered = self.nominal_rate;
        self.congested = false;
        self.smoothed_loss = 0.0;
        if self.successes >= PUSHES_BEFORE_INITIAL || (high_jitter && !self.had_high_jitter) {
            self.had_high_jitter |= high_jitter;
            self.enter_initial(total);
        } else {
            self.enter_cruising(total);
        }
    }

    /// Handles a sign of congestion.
    fn on_congestion(&mut self, signal: Congestion, total: u64) {
        match self.state {
            State::Initial if signal.loss && self.received <= PACKETS_BEFORE_LOSS => {}
            State::Initial if !signal.loss && self.eras_no_increase < ERAS_BEFORE_DELAY => {}
            State::Initial => self.exit_initial(total),
            State::Recovery => {
                self.congested = true;
                if self.alpha_current > ALPHA_RECOVERY_MORE {
                    self.alpha_current = ALPHA_RECOVERY_MORE;
                    self.era_start = total.max(1);
                }
            }
            State::Cruising | State::Pushing => {
                self.congested = true;
                if !signal.of_push {
                    self.nominal_rate *= 1.0 - signal.beta;
                    if signal.loss {
                        self.nominal_max_rtt *= 1.0 - signal.beta;
                    }
                }
                self.enter_recovery(total);
            }
        }
    }

    /// Excess delay of packets sent faster than the nominal rate; the others measure the path's round trip
    /// (`update_max_rtt`).
    fn excess_delay(&self, rtt: f64, of_push: bool) -> Option<Congestion> {
        if self.nominal_max_rtt == 0.0 || self.alpha_previous <= 1.0 {
            return None;
        }
        let threshold = self.delay_threshold();
        let excess = rtt - (self.nominal_max_rtt + threshold);
        (excess > 0.0).then(|| Congestion { beta: (excess / threshold).min(BETA), loss: false, of_push })
    }

    fn set_rate_and_window(&mut self) {
        let min = WINDOW_MIN * self.smss;
        if self.nominal_rate > 0.0 && self.nominal_max_rtt > 0.0 {
            self.pacing_rate = self.alpha_current * self.nominal_rate;
            let nominal = self.pacing_rate * self.nominal_max_rtt;
            if self.state == State::Initial {
                self.pacing_rate = self.pacing_rate.max(RATE_MIN_INITIAL);
                self.slow_start = self.slow_start.max(nominal);
                self.cwnd = self.slow_start;
            } else {
                self.cwnd = nominal + self.pacing_rate * MARGIN.min(self.nominal_max_rtt / 4.0);
            }
            if self.state == State::Pushing {
                // a push needs at least one segment more
                let more = (self.alpha_current - 1.0) * self.nominal_rate * self.nominal_max_rtt;
                self.cwnd += (self.smss - more).max(0.0);
            }
            self.cwnd = self.cwnd.max(min);
            self.quantum = (self.pacing_rate * QUANTUM_TIME).min(QUANTUM_MAX).max(min);
        } else {
            self.pacing_rate = f64::INFINITY;
            self.cwnd = self.initial_window;
            self.quantum = 0.0;
        }
    }
}

impl Build for C4 {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "c4",
        summary: "C4: holds a rate and the greatest round trip of an empty path, for real-time media",
        source: "draft-huitema-ccwg-c4-spec; private-octopus/picoquic c4.c",
        machine: Machine::Tcp([Recovery::Rack; Profile::ALL.len()]),
        parameters: &[],
        foreign: None,
    }];

    fn build(_profile: Profile, _values: &[f64]) -> C4 {
        C4 {
            state: State::Initial,
            nominal_rate: 0.0,
            nominal_max_rtt: 0.0,
            running_min_rtt: f64::INFINITY,
            alpha_current: ALPHA_INITIAL,
            alpha_previous: ALPHA_INITIAL,
            cwnd: 1460.0,
            pacing_rate: f64::INFINITY,
            quantum: 0.0,
            initial_window: 1460.0,
            smss: 1460.0,
            era_start: 1,
            era_max_rtt: 0.0,
            era_min_rtt: f64::INFINITY,
            eras: 0,
            eras_no_increase: 0,
            slow_start: 0.0,
            app_limited: true,
            received: 0,
            rate_before: 0.0,
            had_high_jitter: false,
            rate_recovered: 0.0,
            alpha_push: ALPHA_PUSHING_LOW,
            pushed: false,
            push_seq: 0,
            congested: false,
            successes: 0,
            smoothed_loss: 0.0,
            lost: None,
            timed_out: false,
        }
    }
}

impl Controller for C4 {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Established { window } => {
                *self = C4::build(Profile::Rfc, &[]);
                self.smss = f64::from(path.segment);
                self.initial_window = window.max(1.0) * self.smss;
                self.slow_start = self.initial_window;
                if path.srtt > Span::ZERO {
                    self.update_rtt(path.srtt.as_secs_f64());
                }
                self.set_rate_and_window();
            }
            // section "Do not react to Probe Time Out"
            TcpEvent::Timeout(_) => self.timed_out = true,
            TcpEvent::Acked { .. }
            | TcpEvent::Deflate { .. }
            | TcpEvent::Duplicate
            | TcpEvent::EcnEcho
            | TcpEvent::Idle { .. }
            | TcpEvent::Lost { .. }
            | TcpEvent::Recovered { .. }
            | TcpEvent::Repaired { .. }
            | TcpEvent::Resumed { .. }
            | TcpEvent::Undo { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let place = State::ALL.iter().position(|&s| s == self.state).unwrap_or_default();
        to.packets("cwnd", self.cwnd / self.smss);
        to.bits_per_second("pacing_rate", known(8.0 * self.pacing_rate));
        to.number("state", place as f64);
        to.number("alpha_current", self.alpha_current);
        to.bits_per_second("nominal_rate", known(8.0 * self.nominal_rate));
        to.seconds("nominal_max_rtt", known(self.nominal_max_rtt));
        to.seconds("running_min_rtt", known(self.running_min_rtt));
        to.number("smoothed_loss_rate", if self.nominal_rate > 0.0 { self.smoothed_loss } else { f64::NAN });
    }
}

impl WindowController for C4 {
    fn window(&self) -> f64 {
        (self.cwnd / self.smss).max(1.0)
    }
    fn threshold(&self) -> f64 {
        f64::INFINITY
    }
    fn base_rtt(&self) -> Option<f64> {
        (self.running_min_rtt < f64::INFINITY).then_some(self.running_min_rtt)
    }
    fn needs(&self) -> Needs {
        Needs::RATE_MODEL
    }
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.smss = f64::from(path.segment);
        self.timed_out = false;
        let packets = sample.newly_acked as f64 / self.smss;
        self.received += packets as u64;
        if self.state == State::Initial && !sample.app_limited {
            self.slow_start += sample.newly_acked as f64 / f64::from(1_u32 << (3 * self.eras_no_increase));
        }
        self.app_limited &= sample.app_limited;
        let era_ends = sample.prior_delivered >= self.era_start;
        let of_push = self.state == State::Pushing && era_ends;
        self.update_rate(sample);
        let mut signal = self.lost.take();
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.as_secs_f64();
            signal = signal.or_else(|| self.excess_delay(rtt, of_push));
            self.update_rtt(rtt);
        }
        self.smoothed_loss *= libm::pow(1.0 - WEIGHT, packets);
        let before = self.state;
        if let Some(signal) = signal {
            self.on_congestion(signal, sample.total);
        }
        let era_ends = sample.prior_delivered >= self.era_start;
        if era_ends && self.state == before {
            self.end_era(sample, path.next);
        }
        self.set_rate_and_window();
    }
    fn on_lost(&mut self, lost: &LostSegment, _path: &PathView) {
        if self.timed_out {
            return;
        }
        self.smoothed_loss += (1.0 - self.smoothed_loss) * WEIGHT;
        if self.smoothed_loss > loss_threshold(self.nominal_rate) {
            let of_push = self.state == State::Pushing && lost.seq >= self.push_seq;
            self.lost = Some(Congestion { beta: BETA, loss: true, of_push });
        }
    }
    fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }
    fn send_quantum(&self) -> u32 {
        self.quantum as u32
    }
}

#[cfg(test)]
mod tests;
