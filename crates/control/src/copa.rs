//! Copa: a window that steers towards the rate 1 / (delta · queueing delay), and competes when other flows fill the
//! queue.
//!
//! Source: V. Arun, H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018,
//! whose sections are cited here. Details that it leaves open follow the authors' code (venkatarun95/genericCC) and
//! Meta's (facebook/mvfst), as docs/controllers/copa.md says.

mod extremes;

use crate::delivery::Rounds;
use crate::{
    Build, Controller, Gauges, LostSegment, Machine, Needs, Parameter, PathView, Profile, RateSample, Recovery,
};
use crate::{Idle, Scheme, TcpEvent, WindowController, known};
use extremes::{WindowedMax, WindowedMin};
use paceline_units::{Span, Time};

const EACH: usize = Profile::ALL.len();

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "delta",
        [0.5; EACH],
        (0.001, 10.0),
        "1",
        "1/delta segments is the queue that a flow aims at; of the default mode, and the most of the competitive one (section 2)",
    ),
    Parameter::switch(
        "competitive",
        [true; EACH],
        "compete where the queue does not empty: mode switching (section 2.2)",
    ),
    Parameter::switch(
        "whole_segments",
        [true; EACH],
        "a queue that holds less than one of the flow's own segments counts as nearly empty too; false: section 2.2 to the letter",
    )
    .idle(Idle::Beside("competitive", 0.0)),
    Parameter::whole(
        "empties_within",
        [10.0; EACH],
        (1.0, 100.0),
        "who has not seen the queue nearly empty for so many round trips competes; 5 in section 2.2, as long as the queue's own sawtooth",
    )
    .idle(Idle::Beside("competitive", 0.0)),
    Parameter::number(
        "standing_window",
        [0.5; EACH],
        (0.1, 4.0),
        "1",
        "the standing round trip is the least of so many smoothed ones (tau of section 2.1)",
    ),
    Parameter::number(
        "min_rtt_window",
        [10.0; EACH],
        (0.1, 1000.0),
        "s",
        "the round trip without a queue is the least of this time (section 2.1)",
    ),
    Parameter::whole(
        "doubling_after",
        [3.0; EACH],
        (1.0, 100.0),
        "the velocity doubles once the window has gone the same way for so many round trips more than one (section 2.1)",
    ),
];

/// The minimum window in segments (the authors' code).
const MIN_CWND: f64 = 2.0;
/// The pacing rate in windows per RTTstanding (section 2.1).
const PACING: f64 = 2.0;
/// The queue counts as nearly empty below this share of the spread of round-trip times (section 2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// Round trips over which the spread is taken.
const SPREAD: u64 = 4;
/// The send quantum, as seconds of sending: how late timers may be.
const QUANTUM_S: f64 = 50e-6;

/// Direction of the window's change (section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    /// Unknown.
    None,
    Up,
    Down,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Copa {
    delta: f64,
    competes: bool,
    whole_segments: bool,
    empties_within: u64,
    standing_window: f64,
    min_rtt_window: Span,
    doubling_after: u32,
    established: bool,
    slow_start: bool,
    cwnd: f64,
    smss: f64,

    // ---- round trips
    min_rtt: WindowedMin,
    standing: WindowedMin,
    greatest: WindowedMax,
    srtt: Span,
    rounds: Rounds,

    // ---- velocity
    velocity: f64,
    direction: Direction,
    /// Consecutive round trips in the same direction, beyond the first.
    same: u32,
    /// The window at the start of this round trip; `None` in slow start.
    began_with: Option<f64>,

    // ---- mode
    /// 1/delta, in segments.
    inverse_delta: f64,
    competing: bool,
    /// How long it has been competing, up to the previous acknowledgement.
    competed: Span,
    acked_at: Time,
    /// When the queue was last nearly empty.
    emptied: Time,
    lost: bool,
    /// When 1/delta was last halved.
    halved: Option<Time>,
    /// A loss has occurred since this round trip began.
    lost_in_round: bool,
}

impl Copa {
    /// RTTmin and RTTstanding in seconds, once there is a sample.
    fn trips(&self) -> Option<(f64, f64)> {
        Some((self.min_rtt.get()?.as_secs_f64(), self.standing.get()?.as_secs_f64()))
    }

    /// Handles a round-trip sample.
    fn sample(&mut self, rtt: Span, path: &PathView) {
        let now = path.now;
        self.srtt = path.srtt;
        let of_srtt = |share: f64| Span::from_secs_f64(path.srtt.as_secs_f64() * share);
        self.min_rtt.push(now, rtt, self.min_rtt_window);
        self.standing.push(now, rtt, of_srtt(self.standing_window));
        self.greatest.push(now, rtt, path.srtt * SPREAD);
    }

    /// Handles an acknowledgement of `acked` segments.
    fn acked(&mut self, acked: f64, limited: bool, path: &PathView) {
        let Some((min_rtt, standing)) = self.trips() else { return };
        let queue = standing - min_rtt;
        self.switch_mode(queue, min_rtt, standing, path.now);
        // cwnd / RTTstanding <= 1 / (delta dq); with dq = 0 every rate is too low
        let grows = self.cwnd * queue <= self.inverse_delta * standing;
        if self.slow_start {
            if grows {
                self.cwnd += if limited { acked } else { 0.0 };
                return;
            }
            self.slow_start = false;
            self.began_with = Some(self.cwnd);
        } else if self.rounds.start {
            self.end_round_trip();
        }
        let to = if grows { Direction::Up } else { Direction::Down };
        if self.direction != to && self.velocity > 1.0 {
            // fast in the wrong direction: waiting for the end of the round trip would be too late (mvfst's
            // changeDirection)
            self.turn(to);
            self.began_with = Some(self.cwnd);
        }
        let step = self.velocity * acked / (self.cwnd / self.inverse_delta);
        match to {
            Direction::Up if limited => self.cwnd += step,
            Direction::Down => self.cwnd = (self.cwnd - step).max(MIN_CWND),
            Direction::Up | Direction::None => {}
        }
    }

    /// Section 2.1: once per window, compares the window with that when the segments now acknowledged were sent.
    fn end_round_trip(&mut self) {
        let before = self.began_with.replace(self.cwnd).unwrap_or(self.cwnd);
        let to = if self.cwnd > before { Direction::Up } else { Direction::Down };
        if to != self.direction {
            self.turn(to);
            return;
        }
        self.same += 1;
        if self.same >= self.doubling_after {
            self.velocity *= 2.0;
        }
        // within a round trip the window changes by at most itself (the authors' code; mvfst has no such bound)
        if self.velocity > self.cwnd / self.inverse_delta {
            self.velocity = (self.velocity / 2.0).max(1.0);
        }
    }

    fn turn(&mut self, to: Direction) {
        self.direction = to;
        self.velocity = 1.0;
        self.same = 0;
    }

    /// Section 2.2: decides whether other flows fill the queue, and adapts 1/delta when competing with them.
    fn switch_mode(&mut self, queue: f64, min_rtt: f64, standing: f64, now: Time) {
        if !self.competes {
            return;
        }
        let spread = self.greatest.get().map_or(0.0, Span::as_secs_f64) - min_rtt;
        // this flow's segments in the queue, estimated from its rate
        let own = self.cwnd / standing * queue;
        if queue <= 0.0 || queue < NEARLY_EMPTY * spread || self.whole_segments && own < 1.0 {
            self.emptied = now;
        }
        let lost = core::mem::take(&mut self.lost);
        let was = self.competing;
        let since = core::mem::replace(&mut self.acked_at, now);
        if was {
            self.competed += now.since(since);
        }
        self.competing = !self.slow_start && now.since(self.emptied) > self.srtt * self.empties_within;
        if !self.competing {
            self.inverse_delta = 1.0 / self.delta;
        } else if lost && self.halved.is_none_or(|then| now.since(then) > self.srtt) {
            self.inverse_delta = (self.inverse_delta / 2.0).max(1.0 / self.delta);
            self.halved = Some(now);
            self.lost_in_round = true;
        } else if was && self.rounds.start && !core::mem::take(&mut self.lost_in_round) {
            self.inverse_delta += 1.0;
        }
    }
}

impl Build for Copa {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "copa",
        summary: "Copa: aims at a queue of 1/delta segments, paced; competes where others fill the queue",
        source: "Arun and Balakrishnan, NSDI 2018",
        machine: Machine::Tcp([Recovery::Rack; EACH]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Copa {
        Copa {
            delta: values[0],
            competes: values[1] > 0.0,
            whole_segments: values[2] > 0.0,
            empties_within: values[3] as u64,
            standing_window: values[4],
            min_rtt_window: Span::from_secs_f64(values[5]),
            doubling_after: values[6] as u32,
            established: false,
            slow_start: true,
            cwnd: 1.0,
            smss: 1460.0,
            min_rtt: WindowedMin::default(),
            standing: WindowedMin::default(),
            greatest: WindowedMax::default(),
            srtt: Span::ZERO,
            rounds: Rounds::default(),
            velocity: 1.0,
            direction: Direction::None,
            same: 0,
            began_with: None,
            inverse_delta: 1.0 / values[0],
            competing: false,
            competed: Span::ZERO,
            acked_at: Time::ZERO,
            emptied: Time::ZERO,
            lost: false,
            halved: None,
            lost_in_round: false,
        }
    }
}

impl Controller for Copa {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Established { window } => {
                self.established = true;
                self.smss = f64::from(path.segment);
                self.srtt = path.srtt;
                self.cwnd = window.max(1.0);
                self.emptied = path.now;
            }
            TcpEvent::EcnEcho => self.lost = true,
            TcpEvent::Timeout(_) => {
                self.cwnd = MIN_CWND;
                self.slow_start = true;
                self.began_with = None;
                self.turn(Direction::None);
            }
            TcpEvent::Undo { window, .. } => self.cwnd = self.cwnd.max(window),
            TcpEvent::Acked { .. }
            | TcpEvent::Deflate { .. }
            | TcpEvent::Duplicate
            | TcpEvent::Idle { .. }
            | TcpEvent::Lost { .. }
            | TcpEvent::Recovered { .. }
            | TcpEvent::Repaired { .. }
            | TcpEvent::Resumed { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let trips = self.trips();
        to.packets("cwnd", self.cwnd);
        to.bits_per_second("pacing_rate", known(8.0 * self.pacing_rate()));
        to.seconds("min_rtt", trips.map_or(f64::NAN, |(min_rtt, _)| min_rtt));
        to.seconds("queueing_delay", trips.map_or(f64::NAN, |(min_rtt, standing)| standing - min_rtt));
        to.number("delta", 1.0 / self.inverse_delta);
        to.number("velocity", self.velocity);
        to.number("competing", f64::from(u8::from(self.competing)));
        to.seconds("competed", self.competed.as_secs_f64());
    }
}

impl WindowController for Copa {
    fn window(&self) -> f64 {
        self.cwnd
    }
    fn threshold(&self) -> f64 {
        f64::INFINITY
    }
    fn base_rtt(&self) -> Option<f64> {
        self.trips().map(|(min_rtt, _)| min_rtt)
    }
    fn needs(&self) -> Needs {
        Needs::MODEL
    }
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.rounds.update(sample);
        // a SYN is smaller than a segment: its round trip is one that no segment can have
        if !self.established {
            return;
        }
        if let Some(rtt) = sample.rtt {
            self.sample(rtt, path);
        }
        self.acked(sample.newly_acked as f64 / self.smss, sample.window_limited, path);
    }
    fn on_lost(&mut self, _lost: &LostSegment, _path: &PathView) {
        self.lost = true;
    }
    fn pacing_rate(&self) -> f64 {
        let trip = self.standing.get().unwrap_or(self.srtt).as_secs_f64();
        if trip > 0.0 { PACING * self.cwnd * self.smss / trip } else { f64::INFINITY }
    }
    fn send_quantum(&self) -> u32 {
        let rate = self.pacing_rate();
        let lately = if rate.is_finite() { (rate * QUANTUM_S).min(65_536.0) } else { 0.0 };
        lately.max(self.smss) as u32
    }
}
