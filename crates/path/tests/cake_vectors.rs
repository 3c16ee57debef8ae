//! The vectors of CAKE in docs/queues, which an implementation in Python makes (`tests/test_cake_vectors.py`): every packet
//! meets the same fate at the same nanosecond.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{CakeModel, Discipline, DropReason, Framing, Hosts, Interface, Isolation, Keys, Limit, Queue};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};
use std::path::Path;
use std::sync::Arc;

/// What comes: when, how long, with which ECN field, of which flow and hosts.
#[derive(Clone, Copy, Debug)]
struct Input {
    at: u64,
    size: u16,
    ecn: u8,
    flow: u32,
    hosts: [u32; 2],
}

type Fates = Vec<(String, u64)>;

fn flags(ecn: u8) -> Flags {
    match ecn {
        0 => Flags::NONE,
        1 => Flags::ECT.with(Flags::L4S),
        2 => Flags::ECT,
        _ => Flags::ECT.with(Flags::CE),
    }
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Overflow => "overflow",
        DropReason::Delay => "codel",
        DropReason::Early => "blue",
        other => unreachable!("{other:?}"),
    }
}

/// A link that asks for a packet when it is idle and one comes, when it has sent one, and when the shaper opens.
fn run(model: CakeModel, byte_ns: u64, inputs: &[Input]) -> Fates {
    let interface = Interface { rate: Rate::from_mbps(100.0), propagation: Span::ZERO, keys: Keys::Flow };
    let mut queue = Discipline::new(&Queue::Cake(model), interface, Stream::new(1, "vectors"));
    let mut fates: Fates = vec![(String::new(), 0); inputs.len()];
    let (mut free, mut wake): (u64, Option<u64>) = (0, None);
    let mut coming = (0..).zip(inputs).peekable();
    loop {
        if let Some((seq, input)) = coming.next_if(|(_, input)| wake.is_none_or(|wake| input.at < wake)) {
            let (time, flags) = (Time(input.at), flags(input.ecn));
            let packet = Packet {
                time,
                cursor: 0,
                size: input.size,
                flags,
                flow: FlowId(input.flow),
                seq,
                stamp: Stamp(0),
                extra: ExtraId::NONE,
            };
            queue.enqueue(time, packet, |lost, reason| {
                fates[lost.seq as usize] = (word(reason).to_owned(), input.at);
            });
            wake = wake.or(Some(free.max(input.at)));
            continue;
        }
        let Some(now) = wake else { return fates };
        let sent = queue.dequeue(Time(now), |lost, reason| fates[lost.seq as usize] = (word(reason).to_owned(), now));
        wake = if let Some(packet) = sent {
            let was = inputs[packet.seq as usize].ecn == 3;
            let fate = if packet.flags.has(Flags::CE) && !was { "marked" } else { "sent" };
            fates[packet.seq as usize] = (fate.to_owned(), now);
            free = now + u64::from(packet.size) * byte_ns;
            Some(free)
        } else {
            (queue.packets() > 0).then(|| queue.next_release().0)
        };
    }
}

/// The file's inputs, and of each setting its name and the fates.
fn read(name: &str) -> (Vec<Input>, Vec<(String, Fates)>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queues").join(format!("cake-{name}.csv"));
    let text = std::fs::read_to_string(file).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let names = head[7..].chunks(2).map(|pair| pair[0].trim_end_matches("_fate").to_owned());
    let mut settings: Vec<(String, Fates)> = names.map(|name| (name, Fates::new())).collect();
    let mut inputs = Vec::new();
    for row in rows {
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        inputs.push(Input {
            at: number(1),
            size: number(2) as u16,
            ecn: number(3) as u8,
            flow: number(4) as u32,
            hosts: [5, 6].map(|column| number(column) as u32),
        });
        for (i, (_, fates)) in settings.iter_mut().enumerate() {
            fates.push((row[7 + 2 * i].to_owned(), number(8 + 2 * i)));
        }
    }
    (inputs, settings)
}

fn hosts(inputs: &[Input]) -> Hosts {
    let mut table = vec![[0; 2]; 1 + inputs.iter().map(|input| input.flow as usize).max().unwrap_or(0)];
    for input in inputs {
        table[input.flow as usize] = input.hosts;
    }
    Hosts::Of(Arc::from(table))
}

fn isolation(name: &str) -> Isolation {
    match name {
        "flowblind" => Isolation::FlowBlind,
        "srchost" => Isolation::SrcHost,
        "dsthost" => Isolation::DstHost,
        "hosts" => Isolation::Hosts,
        "flows" => Isolation::Flows,
        "dual-srchost" => Isolation::DualSrcHost,
        "dual-dsthost" => Isolation::DualDstHost,
        "triple-isolate" => Isolation::Triple,
        other => unreachable!("{other}"),
    }
}

fn bytes(limit: u64) -> Limit {
    Limit::Bytes(Size(limit))
}

/// Runs each setting of a file and compares.
fn hold(name: &str, byte_ns: u64, settings: usize, model: impl Fn(&str) -> CakeModel) {
    let (inputs, said) = read(name);
    assert_eq!(said.len(), settings, "{name}");
    for (setting, fates) in said {
        let model = CakeModel { hosts: hosts(&inputs), ..model(&setting) };
        let found = run(model, byte_ns, &inputs);
        for (number, (found, said)) in found.iter().zip(&fates).enumerate() {
            assert_eq!(found, said, "cake-{name}.csv, {setting}: packet {number}, {:?}", inputs[number]);
        }
    }
}

#[test]
fn cobalt_signals_and_blue() {
    hold("cobalt", 800, 2, |setting| {
        let flows = CakeModel { isolation: Isolation::Flows, ..CakeModel::new(None) };
        let ms = Span::from_millis;
        match setting {
            "near" => CakeModel { rtt: ms(20), limit: bytes(60_000), ..flows },
            _ => CakeModel { rtt: ms(60), limit: bytes(40_000), ingress: true, ..flows },
        }
    });
}

#[test]
fn each_isolation() {
    hold("hosts", 800, 8, |setting| {
        let (rtt, limit) = (Span::from_millis(40), bytes(80_000));
        CakeModel { isolation: isolation(setting), rtt, limit, ..CakeModel::new(None) }
    });
}

#[test]
fn more_flows_than_queues() {
    hold("collisions", 80, 2, |setting| CakeModel {
        isolation: isolation(setting),
        rtt: Span::from_millis(200),
        ..CakeModel::new(None)
    });
}

#[test]
fn the_shaper_and_what_lies_below() {
    hold("shaper", 80, 4, |setting| {
        let of = |bps: u64, overhead: u64, mpu: u64| CakeModel {
            rtt: Span::from_millis(30),
            limit: bytes(50_000),
            overhead: Size(overhead),
            mpu: Size(mpu),
            ..CakeModel::new(Some(Rate(bps)))
        };
        match setting {
            "ethernet" => of(5_000_000, 14, 0),
            "adsl" => CakeModel { framing: Framing::Atm, ..of(3_000_000, 40, 96) },
            "vdsl-ingress" => CakeModel { framing: Framing::Ptm, ingress: true, ..of(4_321_000, 30, 68) },
            _ => CakeModel { limit: bytes(20_000), ..of(1_000_000, 0, 600) },
        }
    });
}
