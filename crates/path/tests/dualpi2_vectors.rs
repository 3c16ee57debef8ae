//! The vectors of docs/queues: what comes to a DualPI2 queue, and what becomes of it. `PACELINE_BLESS=1` makes them anew.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{Discipline, DropReason, DualPi2Model, Interface, Keys, Limit, Queue};
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// 10 Mbit/s.
const BYTE_NS: u64 = 800;
const MTU: u64 = 1500;
/// How far p' may be from the file's, which another order of additions may make.
const BOUND: f64 = 1e-9;

/// What comes: when, how long, with which ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Input {
    at: u64,
    size: u16,
    ecn: u8,
}

/// What becomes of it, when it is taken from its queue (or refused), p' then, and the bytes left in both queues.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Outcome {
    fate: &'static str,
    at: u64,
    base: f64,
    left: u64,
}

fn flags(ecn: u8) -> Flags {
    match ecn {
        0 => Flags::NONE,
        1 => Flags::ECT.with(Flags::L4S),
        2 => Flags::ECT,
        _ => Flags::ECT.with(Flags::CE),
    }
}

/// A transmitter that asks for the next packet when it has sent the last; a packet that comes at that instant comes after.
struct Link {
    queue: Discipline,
    wake: Option<u64>,
    free: u64,
    outcomes: Vec<Option<Outcome>>,
}

impl Link {
    fn serve(&mut self, inputs: &[Input]) {
        let Some(now) = self.wake else { return };
        let mut dropped = Vec::new();
        let sent = self.queue.dequeue(Time(now), |packet, _| dropped.push(packet.seq));
        let (base, left) = (self.queue.base_probability().unwrap(), self.queue.bytes());
        for seq in dropped {
            self.outcomes[seq as usize] = Some(Outcome { fate: "dropped", at: now, base, left });
        }
        self.wake = sent.map(|packet| {
            let was = inputs[packet.seq as usize].ecn == 3;
            let fate = if packet.flags.has(Flags::CE) && !was { "marked" } else { "sent" };
            self.outcomes[packet.seq as usize] = Some(Outcome { fate, at: now, base, left });
            self.free = now + u64::from(packet.size) * BYTE_NS;
            self.free
        });
    }
}

fn run(model: DualPi2Model, inputs: &[Input]) -> Vec<Outcome> {
    let interface = Interface { rate: Rate::from_mbps(10.0), propagation: Span::ZERO, keys: Keys::Flow };
    let queue = Discipline::new(&Queue::DualPi2(model), interface, Stream::new(1, "vectors"));
    let mut link = Link { queue, wake: None, free: 0, outcomes: vec![None; inputs.len()] };
    for (seq, input) in (0..).zip(inputs) {
        while link.wake.is_some_and(|wake| wake <= input.at) {
            link.serve(inputs);
        }
        let packet = Packet {
            time: Time(input.at),
            cursor: 0,
            size: input.size,
            flags: flags(input.ecn),
            flow: FlowId(0),
            seq,
            stamp: Stamp(0),
            extra: ExtraId::NONE,
        };
        let mut refused = false;
        link.queue.enqueue(Time(input.at), packet, |_, reason| refused = reason == DropReason::Overflow);
        if refused {
            let (base, left) = (link.queue.base_probability().unwrap(), link.queue.bytes());
            link.outcomes[seq as usize] = Some(Outcome { fate: "refused", at: input.at, base, left });
        }
        link.wake = link.wake.or(Some(link.free.max(input.at)));
    }
    while link.wake.is_some() {
        link.serve(inputs);
    }
    link.outcomes.into_iter().map(|outcome| outcome.expect("every packet meets a fate")).collect()
}

fn rfc() -> DualPi2Model {
    DualPi2Model::rfc9332(Limit::Bytes(Size(62_500)))
}

fn linux() -> DualPi2Model {
    DualPi2Model::linux(Limit::Packets(10_000))
}

/// Phases of load: how long in ms, Mbit/s of Not-ECT, ECT(1), ECT(0) and CE.
type Phase = (u64, [f64; 4]);

/// Some load of each class alone, both, an overload of each, a burst that overflows, and a quiet end.
const ALL: [Phase; 8] = [
    (150, [0.0, 7.0, 0.0, 0.0]),
    (150, [4.0, 3.0, 4.0, 0.2]),
    (250, [3.0, 5.0, 3.0, 0.2]),
    (150, [1.0, 14.0, 1.0, 0.0]),
    (200, [10.0, 4.0, 8.0, 0.0]),
    (15, [60.0, 30.0, 30.0, 0.0]),
    (300, [0.5, 2.0, 0.5, 0.1]),
    (100, [2.0, 9.0, 0.0, 0.0]),
];

/// Nothing that is dropped: all are ECN-capable, and p' stays below 1/2.
const CAPABLE: [Phase; 5] = [
    (150, [0.0, 9.0, 0.0, 0.0]),
    (300, [0.0, 5.2, 5.0, 0.2]),
    (200, [0.0, 6.0, 5.0, 0.0]),
    (300, [0.0, 3.0, 3.0, 0.2]),
    (200, [0.0, 10.0, 1.0, 0.0]),
];

fn inputs(phases: &[Phase]) -> Vec<Input> {
    let mut draws = Sequence::new(Stream::new(1, "vectors"));
    let (mut all, mut begin) = (Vec::new(), 0);
    for &(length, loads) in phases {
        let end = begin + length * 1_000_000;
        for (ecn, load) in (0..).zip(loads).filter(|(_, load)| *load > 0.0) {
            let mut at = begin as f64;
            loop {
                let size = [1500, 1500, 1200, 400][(draws.unit() * 4.0) as usize];
                at += draws.unit() * 2.0 * f64::from(size) * 8e3 / load;
                if at >= end as f64 {
                    break;
                }
                // whole microseconds and one nanosecond more, so that none comes at the instant of an update
                all.push(Input { at: at as u64 / 1000 * 1000 + 1, size, ecn });
            }
        }
        begin = end;
    }
    all.sort_by_key(|input| (input.at, input.ecn));
    all
}

/// The probability of the coupled law for a packet that was taken (Linux): none while less than two MTUs are left.
fn coupled(input: &Input, outcome: &Outcome) -> f64 {
    match (outcome.left >= 2 * MTU, input.ecn % 2) {
        (false, _) => 0.0,
        (true, 1) => (2.0 * outcome.base).min(1.0),
        (true, _) => outcome.base * outcome.base,
    }
}

fn page(head: &str, inputs: &[Input], row: impl Fn(&Input) -> String, rows: impl Fn(usize) -> String) -> String {
    let mut page = format!("packet,arrival_ns,size_bytes,ecn,{head}\n");
    for (i, input) in inputs.iter().enumerate() {
        let _ = writeln!(page, "{i},{},{}", row(input), rows(i));
    }
    page
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queues").join(name)
}

/// Writes what `make` says if it is asked for; the rows of the file, without its head.
fn rows(name: &str, make: impl Fn() -> String) -> Vec<Vec<String>> {
    if std::env::var("PACELINE_BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(place(name), make()).unwrap();
    }
    let text = std::fs::read_to_string(place(name)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn inputs_of(rows: &[Vec<String>]) -> Vec<Input> {
    let input = |row: &Vec<String>| Input {
        at: row[1].parse().unwrap(),
        size: row[2].parse().unwrap(),
        ecn: row[3].parse().unwrap(),
    };
    rows.iter().map(input).collect()
}

fn input_row(input: &Input) -> String {
    format!("{},{},{}", input.at, input.size, input.ecn)
}

#[test]
fn the_vector_of_the_rfc() {
    let rows = rows("dualpi2-rfc9332.csv", || {
        let inputs = inputs(&ALL);
        let outcomes = run(rfc(), &inputs);
        page("fate,taken_ns,p", &inputs, input_row, |i| {
            let Outcome { fate, at, base, .. } = outcomes[i];
            format!("{fate},{at},{base:.12}")
        })
    });
    let inputs = inputs_of(&rows);
    let outcomes = run(rfc(), &inputs);
    for (outcome, row) in outcomes.iter().zip(&rows) {
        assert_eq!((outcome.fate, outcome.at.to_string()), (row[4].as_str(), row[5].clone()), "packet {}", row[0]);
        let base: f64 = row[6].parse().unwrap();
        assert!((outcome.base - base).abs() < BOUND, "packet {}: p' is {}, not {base}", row[0], outcome.base);
    }
    // it has all that there is to see
    let count = |ecn: u8, fate: &str| {
        inputs.iter().zip(&outcomes).filter(|(input, outcome)| input.ecn == ecn && outcome.fate == fate).count()
    };
    let seen =
        [(0, "dropped"), (1, "dropped"), (2, "dropped"), (1, "marked"), (2, "marked"), (0, "refused"), (1, "refused")];
    for (ecn, fate) in seen {
        assert!(count(ecn, fate) >= 5, "{fate} of ECN {ecn}: {}", count(ecn, fate));
    }
    assert_eq!(count(0, "marked") + count(3, "marked"), 0);
}

#[test]
fn the_vector_of_linux() {
    let step = |input: &Input, outcome: &Outcome| input.ecn % 2 == 1 && outcome.at - input.at > 1_000_000;
    let rows = rows("dualpi2-linux.csv", || {
        let inputs = inputs(&CAPABLE);
        let outcomes = run(linux(), &inputs);
        page("taken_ns,p,coupled,step", &inputs, input_row, |i| {
            let (input, outcome) = (&inputs[i], &outcomes[i]);
            let Outcome { at, base, .. } = *outcome;
            format!("{at},{base:.12},{:.12},{}", coupled(input, outcome), u8::from(step(input, outcome)))
        })
    });
    let inputs = inputs_of(&rows);
    let outcomes = run(linux(), &inputs);
    let (mut marked, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for ((input, outcome), row) in inputs.iter().zip(&outcomes).zip(&rows) {
        assert_eq!(outcome.at.to_string(), row[4], "packet {}", row[0]);
        let close = |of: f64, text: &str| (of - text.parse::<f64>().unwrap()).abs() < BOUND;
        assert!(close(outcome.base, &row[5]) && outcome.base < 0.5, "packet {}: {}", row[0], outcome.base);
        let probability = coupled(input, outcome);
        assert!(close(probability, &row[6]), "packet {}: {probability}", row[0]);
        assert_eq!(row[7] == "1", step(input, outcome));
        match (row[7].as_str(), outcome.fate) {
            _ if input.ecn == 3 => assert_eq!(outcome.fate, "sent"),
            ("1", fate) => assert_eq!(fate, "marked", "packet {}", row[0]),
            (_, fate) => {
                assert!(fate == "sent" || fate == "marked" && probability > 0.0, "packet {}", row[0]);
                marked += f64::from(fate == "marked");
                expected += probability;
                variance += probability * (1.0 - probability);
            }
        }
    }
    assert!(
        expected > 20.0 && (marked - expected).abs() < 4.0 * variance.sqrt(),
        "{marked} marks, {expected} expected"
    );
}
