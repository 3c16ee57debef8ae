//! The models as a list, with names and units of their arguments and results, for the command `paceline model` and the
//! Python functions. Everything here is a plain number, checked when a model is evaluated.

use super::domain::{
    BytesPerSecond, DomainError, Factor, LossRate, PacketSize, PacketsPerSecond, PerAck, Seconds, Window,
};
use super::vegas::{Backlog, equilibrium};
use super::{Gamma, TcpPath, Tfrc, TfrcPath, reno, veno};

/// An argument of a model.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name, which ends in the unit.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// Its default.
    pub default: Default,
}

/// The default of an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Default {
    /// It must be given.
    Required,
    /// This value.
    Value(f64),
    /// Four round-trip times.
    FourRtt,
}

/// A model.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The published source.
    pub source: &'static str,
    /// Its arguments in order.
    pub arguments: &'static [Argument],
    /// Names of its results in order, each of which ends in the unit.
    pub results: &'static [&'static str],
    /// Evaluates it: takes arguments and returns results in the orders above.
    pub evaluate: Evaluate,
    /// Its inverse, if it has one: the loss rate, from `rate_bytes_per_s` in place of `p`.
    pub inverse: Option<Evaluate>,
}

/// Evaluates a model for numbers.
pub type Evaluate = fn(&[f64], &mut [f64]) -> Result<(), DomainError>;

const fn needed(name: &'static str, doc: &'static str) -> Argument {
    Argument { name, doc, default: Default::Required }
}

const fn or(name: &'static str, default: f64, doc: &'static str) -> Argument {
    Argument { name, doc, default: Default::Value(default) }
}

const P: Argument = needed("p", "loss event rate, in (0, 1]");
const RTT: Argument = needed("rtt_s", "round-trip time");
const RTO: Argument = Argument { name: "rto_s", doc: "first retransmission timeout", default: Default::FourRtt };
const PER_ACK: Argument = or("packets_per_ack", 1.0, "b, packets that an ACK covers; 2 with delayed ACKs");
const LIMIT: Argument =
    or("w_max_packets", f64::INFINITY, "W_max: the receiver's window, or for gamma the largest so far");
const GAMMA: Argument = needed("gamma", "mean factor that a loss multiplies the window by, in [0, 1)");
const SEGMENT: Argument = or("segment_bytes", 1460.0, "segment size");

const RENO: &[Argument] = &[P, RTT, RTO, PER_ACK, LIMIT];
const VENO: &[Argument] = &[P, RTT, GAMMA, RTO, PER_ACK, LIMIT];
const VENO_DUPLICATES: &[Argument] = &[P, RTT, GAMMA, PER_ACK];
const TFRC: &[Argument] = &[P, RTT, SEGMENT, RTO, PER_ACK];
const TFRC_VENO: &[Argument] = &[P, RTT, GAMMA, SEGMENT, RTO, PER_ACK];

const PACKETS: &[&str] = &["rate_packets_per_s"];
const BYTES: &[&str] = &["rate_bytes_per_s"];

const PFTK: &str = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998";
const ZHOU: &str = "Zhou, Fu, Li, TFRC Veno";

/// All models.
pub const MODELS: &[Model] = &[
    Model {
        name: "reno",
        summary: "Reno's throughput, full: timeouts and the receiver's window",
        source: PFTK,
        arguments: RENO,
        results: PACKETS,
        evaluate: |a, to| put(to, reno::full(loss(a[0])?, &path(a[1], &a[2..])?).get()),
        inverse: None,
    },
    Model {
        name: "reno-approximate",
        summary: "Reno's throughput, approximate",
        source: PFTK,
        arguments: RENO,
        results: PACKETS,
        evaluate: |a, to| put(to, reno::approximate(loss(a[0])?, &path(a[1], &a[2..])?).get()),
        inverse: None,
    },
    Model {
        name: "veno",
        summary: "Veno's throughput, full: timeouts and the receiver's window",
        source: "Zhou, Fu, Li, TFRC Veno, equations (4) to (13), with the timeouts of PFTK",
        arguments: VENO,
        results: PACKETS,
        evaluate: |a, to| put(to, veno::full(loss(a[0])?, &path(a[1], &a[3..])?, gamma(a[2])?).get()),
        inverse: None,
    },
    Model {
        name: "veno-approximate",
        summary: "Veno's throughput, approximate",
        source: "Zhou, Fu, Li, TFRC Veno, equation (16)",
        arguments: VENO,
        results: PACKETS,
        evaluate: |a, to| put(to, veno::approximate(loss(a[0])?, &path(a[1], &a[3..])?, gamma(a[2])?).get()),
        inverse: None,
    },
    Model {
        name: "veno-duplicates",
        summary: "Veno's throughput without timeouts and window limit",
        source: "Zhou, Fu, Li, TFRC Veno, equation (14)",
        arguments: VENO_DUPLICATES,
        results: PACKETS,
        evaluate: |a, to| {
            let (p, rtt, g, b) = (loss(a[0])?, seconds("rtt_s", a[1])?, gamma(a[2])?, per_ack(a[3])?);
            put(to, veno::duplicates_only(p, rtt, b, g).get())
        },
        inverse: None,
    },
    Model {
        name: "veno-square-root",
        summary: "Veno's throughput for small p: the square-root law",
        source: "Zhou, Fu, Li, TFRC Veno, equation (15)",
        arguments: VENO_DUPLICATES,
        results: PACKETS,
        evaluate: |a, to| {
            let (p, rtt, g, b) = (loss(a[0])?, seconds("rtt_s", a[1])?, gamma(a[2])?, per_ack(a[3])?);
            put(to, veno::square_root(p, rtt, b, g).get())
        },
        inverse: None,
    },
    Model {
        name: "veno-window",
        summary: "Veno's mean window at a loss, without timeouts and window limit",
        source: "Zhou, Fu, Li, TFRC Veno, equation (11)",
        arguments: &[P, GAMMA, PER_ACK],
        results: &["window_packets"],
        evaluate: |a, to| put(to, veno::window(loss(a[0])?, per_ack(a[2])?, gamma(a[1])?)),
        inverse: None,
    },
    Model {
        name: "gamma",
        summary: "Veno's mean window factor at a loss",
        source: "Zhou, Fu, Li, TFRC Veno, equation (20)",
        arguments: &[
            RTT,
            needed("base_rtt_s", "least round-trip time, at most the round-trip time"),
            needed("w_max_packets", "W_max: the largest window so far"),
            or("theta1", 0.8, "factor at a random loss; 0.95 for TFRC Veno"),
            or("theta2", 0.5, "factor at a loss by congestion, at most theta1"),
            or("beta_packets", 3.0, "fewer than this in the queue: a random loss"),
        ],
        results: &["gamma"],
        evaluate: |a, to| {
            let theta = |name, g| Factor::new(g).map_err(|e| e.of(name));
            let law = Gamma::new(theta("theta1", a[3])?, theta("theta2", a[4])?, a[5])
                .map_err(|e| if e.argument == "beta" { e.of("beta_packets") } else { e })?;
            let (rtt, base) = (seconds("rtt_s", a[0])?, seconds("base_rtt_s", a[1])?);
            put(to, law.mean(rtt, base, window("w_max_packets", a[2])?).map_err(|e| e.of("base_rtt_s"))?.get())
        },
        inverse: None,
    },
    Model {
        name: "tfrc",
        summary: "TFRC's equation",
        source: "RFC 5348, section 3.1",
        arguments: TFRC,
        results: BYTES,
        evaluate: |a, to| forward(Tfrc::RFC5348, a, a, to),
        inverse: Some(|a, to| backward(Tfrc::RFC5348, a, a, to)),
    },
    Model {
        name: "tfrc-ns2",
        summary: "TFRC's equation as ns-2 has it: at most all losses end in timeouts",
        source: "ns-2.35, tfrc.cc and formula.h",
        arguments: TFRC,
        results: BYTES,
        evaluate: |a, to| forward(Tfrc::NS2, a, a, to),
        inverse: Some(|a, to| backward(Tfrc::NS2, a, a, to)),
    },
    Model {
        name: "tfrc-veno",
        summary: "TFRC Veno's equation",
        source: "Zhou, Fu, Li, TFRC Veno, equation (22) in the form of RFC 5348",
        arguments: TFRC_VENO,
        results: BYTES,
        evaluate: |a, to| forward(Tfrc::RFC5348.with(gamma(a[2])?), a, &without_gamma(a), to),
        inverse: Some(|a, to| backward(Tfrc::RFC5348.with(gamma(a[2])?), a, &without_gamma(a), to)),
    },
    Model {
        name: "tfrc-veno-ns2",
        summary: "TFRC Veno's equation on ns-2's form",
        source: ZHOU,
        arguments: TFRC_VENO,
        results: BYTES,
        evaluate: |a, to| forward(Tfrc::NS2.with(gamma(a[2])?), a, &without_gamma(a), to),
        inverse: Some(|a, to| backward(Tfrc::NS2.with(gamma(a[2])?), a, &without_gamma(a), to)),
    },
    Model {
        name: "vegas",
        summary: "Vegas's equilibrium without loss at one bottleneck",
        source: "Low, Peterson, Wang, JACM 49(2), 2002",
        arguments: &[
            needed("capacity_packets_per_s", "the bottleneck's rate"),
            needed("base_rtt_s", "round-trip time without a queue"),
            needed("backlog_packets", "what the flow keeps in the queue, from alpha to beta"),
            needed("total_backlog_packets", "what all flows keep there"),
        ],
        results: &["rate_packets_per_s", "window_packets", "queueing_delay_s"],
        evaluate: |a, to| {
            let capacity = PacketsPerSecond::new(a[0]).map_err(|e| e.of("capacity_packets_per_s"))?;
            let backlog = Backlog::new(a[2], a[3])
                .map_err(|e| e.of(if e.argument == "backlog" { "backlog_packets" } else { "total_backlog_packets" }))?;
            let found = equilibrium(capacity, seconds("base_rtt_s", a[1])?, backlog);
            to.copy_from_slice(&[found.rate.get(), found.window, found.queueing_delay]);
            Ok(())
        },
        inverse: None,
    },
];

/// Evaluates the model of this name, or its inverse, row by row. Takes one column per argument, all of one length;
/// returns one column per result.
///
/// # Errors
/// A message: there is no such model, it has no inverse, the columns do not fit, or an argument is outside its domain.
pub fn over(name: &str, columns: &[Vec<f64>], inverse: bool) -> Result<Vec<Vec<f64>>, String> {
    let model = model(name).ok_or_else(|| {
        let known: Vec<&str> = MODELS.iter().map(|m| m.name).collect();
        format!("there is no model `{name}`; there are {}", known.join(", "))
    })?;
    let (evaluate, results) = match (inverse, model.inverse) {
        (false, _) => (model.evaluate, model.results.len()),
        (true, Some(function)) => (function, 1),
        (true, None) => return Err(format!("model `{name}` has no inverse")),
    };
    let wanted = model.arguments.len();
    if columns.len() != wanted || columns.iter().any(|c| c.len() != columns[0].len()) {
        return Err(format!("model `{name}` wants {wanted} columns of one length"));
    }
    let rows = columns[0].len();
    let mut found = vec![Vec::with_capacity(rows); results];
    let (mut row, mut to) = (vec![0.0; wanted], vec![0.0; results]);
    for i in 0..rows {
        for (slot, column) in row.iter_mut().zip(columns) {
            *slot = column[i];
        }
        evaluate(&row, &mut to).map_err(|error| error.to_string())?;
        for (column, value) in found.iter_mut().zip(&to) {
            column.push(*value);
        }
    }
    Ok(found)
}

/// The model of that name.
#[must_use]
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|m| m.name == name)
}

fn put(to: &mut [f64], value: f64) -> Result<(), DomainError> {
    to[0] = value;
    Ok(())
}

fn loss(p: f64) -> Result<LossRate, DomainError> {
    LossRate::new(p)
}

fn gamma(g: f64) -> Result<Factor, DomainError> {
    Factor::new(g)
}

fn per_ack(b: f64) -> Result<PerAck, DomainError> {
    PerAck::new(b).map_err(|e| e.of("packets_per_ack"))
}

fn seconds(name: &'static str, value: f64) -> Result<Seconds, DomainError> {
    Seconds::new(value).map_err(|e| e.of(name))
}

fn window(name: &'static str, value: f64) -> Result<Window, DomainError> {
    Window::new(value).map_err(|e| e.of(name))
}

/// From the round-trip time and `rest`: timeout, b and W_max.
fn path(rtt: f64, rest: &[f64]) -> Result<TcpPath, DomainError> {
    Ok(TcpPath {
        rtt: seconds("rtt_s", rtt)?,
        rto: seconds("rto_s", rest[0])?,
        per_ack: per_ack(rest[1])?,
        limit: window("w_max_packets", rest[2])?,
    })
}

/// TFRC Veno's arguments as TFRC's.
fn without_gamma(a: &[f64]) -> [f64; 5] {
    [a[0], a[1], a[3], a[4], a[5]]
}

/// Equation and path of TFRC's arguments.
fn tfrc(equation: Tfrc, a: &[f64]) -> Result<(Tfrc, TfrcPath), DomainError> {
    let path = TfrcPath {
        rtt: seconds("rtt_s", a[1])?,
        rto: seconds("rto_s", a[3])?,
        segment: PacketSize::new(a[2]).map_err(|e| e.of("segment_bytes"))?,
    };
    Ok((Tfrc { per_ack: per_ack(a[4])?, ..equation }, path))
}

fn forward(equation: Tfrc, given: &[f64], a: &[f64], to: &mut [f64]) -> Result<(), DomainError> {
    let (equation, path) = tfrc(equation, a)?;
    put(to, equation.rate(loss(given[0])?, &path).get())
}

fn backward(equation: Tfrc, given: &[f64], a: &[f64], to: &mut [f64]) -> Result<(), DomainError> {
    let (equation, path) = tfrc(equation, a)?;
    let named = |e: DomainError| e.of("rate_bytes_per_s");
    let rate = BytesPerSecond::new(given[0]).map_err(named)?;
    put(to, equation.loss_rate(rate, &path).map_err(named)?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in every argument's domain.
    fn typical(argument: &Argument) -> f64 {
        match (argument.name, argument.default) {
            (_, Default::Value(value)) => value,
            ("p", _) => 0.01,
            ("rtt_s", _) => 0.1,
            ("rto_s", _) => 0.4,
            ("base_rtt_s", _) => 0.08,
            ("gamma", _) => 0.5,
            ("w_max_packets", _) => 40.0,
            ("capacity_packets_per_s", _) => 1000.0,
            ("backlog_packets", _) => 2.0,
            ("total_backlog_packets", _) => 6.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_model_can_be_evaluated_and_names_the_argument_that_is_wrong() {
        for model in MODELS {
            let arguments: Vec<f64> = model.arguments.iter().map(typical).collect();
            let mut results = vec![f64::NAN; model.results.len()];
            (model.evaluate)(&arguments, &mut results).unwrap();
            assert!(results.iter().all(|r| r.is_finite() && *r > 0.0), "{}: {results:?}", model.name);
            if let Some(inverse) = model.inverse {
                let mut back = arguments.clone();
                back[0] = results[0];
                let mut p = [0.0];
                inverse(&back, &mut p).unwrap();
                assert!((p[0] / arguments[0] - 1.0).abs() < 1e-13, "{}", model.name);
                back[0] = 1e-9;
                assert_eq!(inverse(&back, &mut p).unwrap_err().argument, "rate_bytes_per_s", "{}", model.name);
            }
            for (i, argument) in model.arguments.iter().enumerate() {
                for wrong in [f64::NAN, -1.0] {
                    let mut arguments = arguments.clone();
                    arguments[i] = wrong;
                    let error = (model.evaluate)(&arguments, &mut results).unwrap_err();
                    assert_eq!(error.argument, argument.name, "{}: {error}", model.name);
                }
            }
            assert_eq!(MODELS.iter().filter(|m| m.name == model.name).count(), 1);
        }
    }
}
