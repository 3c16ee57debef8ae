//! What DualPI2 is for (RFC 9332, sections 2.1 and 4.3): scalable and Classic senders share one link about equally without taking note of
//! each other, the scalable ones' packets hardly wait, and the others' wait for about the target.
//!
//! The senders are the least that the section needs: Reno, and one that lowers its window by half of the share that was marked (DCTCP,
//! RFC 8257, in congestion avoidance), each with an acknowledgement a packet and once a round trip at most.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    ClassCounts, DualPi2Model, DualScheduler, Fate, Keys, Limit, LinkModel, Measure, QdiscLink, Queue, RateModel,
};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Span, Time};
use std::collections::BinaryHeap;

const MS: u64 = 1_000_000;
const SIZE: u16 = 1500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalable,
    Reno,
    /// Reno without ECN.
    Deaf,
    /// So many kbit/s of ECT(1), whatever comes.
    Blind(u64),
}

struct Sender {
    kind: Kind,
    window: f64,
    in_flight: u32,
    /// Packets sent, and which number ends the round trip that has begun.
    sent: u32,
    round: u32,
    /// Packets and marks since then, and DCTCP's alpha.
    seen: (u32, u32),
    alpha: f64,
    reduced: bool,
    delivered: u64,
}

impl Sender {
    fn new(kind: Kind) -> Sender {
        let alpha = 1.0;
        Sender {
            kind,
            window: 10.0,
            in_flight: 0,
            sent: 0,
            round: 0,
            seen: (0, 0),
            alpha,
            reduced: false,
            delivered: 0,
        }
    }

    /// Packet `seq` is acknowledged (`Some`: whether marked) or known to be lost.
    fn on_feedback(&mut self, seq: u32, marked: Option<bool>) {
        self.in_flight -= 1;
        let signal = marked != Some(false);
        self.seen = (self.seen.0 + 1, self.seen.1 + u32::from(signal));
        if seq >= self.round {
            let share = f64::from(self.seen.1) / f64::from(self.seen.0);
            self.alpha += (share - self.alpha) / 16.0;
            (self.seen, self.round, self.reduced) = ((0, 0), self.sent, false);
        }
        if signal && !self.reduced {
            let scalable = self.kind == Kind::Scalable && marked.is_some();
            self.window = (self.window * if scalable { 1.0 - self.alpha / 2.0 } else { 0.5 }).max(2.0);
            self.reduced = true;
        } else if !signal {
            self.window += 1.0 / self.window;
        }
    }
}

struct Outcome {
    /// Mbit/s of each sender.
    rates: Vec<f64>,
    /// L4S and Classic: mean wait in ms, share marked, share dropped.
    classes: [(f64, f64, f64); 2],
    used: f64,
}

/// These senders over a round trip of `rtt` ms and 40 Mbit/s for 40 s, the last 30 of which count.
fn outcome(model: DualPi2Model, kinds: &[Kind], rtt: u64) -> Outcome {
    let rate = RateModel::Constant(Rate::from_mbps(40.0));
    let link = LinkModel { rate, ..LinkModel::new(Rate::from_mbps(40.0), Span::ZERO, Queue::DualPi2(model)) };
    let window = Measure { from: Time(10_000 * MS), to: Time(40_000 * MS) };
    let mut link = QdiscLink::new(&link, window, Keys::Flow, Stream::new(1, "link"));
    let mut senders: Vec<Sender> = kinds.iter().copied().map(Sender::new).collect();
    // (when, flow, seq, event); the earliest first
    let mut heap = BinaryHeap::new();
    let at = |time: u64, event: (u32, u32, u8)| std::cmp::Reverse((time, event));
    const LOST: u8 = 0;
    const PLAIN: u8 = 1;
    const MARKED: u8 = 2;
    const SEND: u8 = 3;
    for flow in 0..kinds.len() as u32 {
        heap.push(at(u64::from(flow) * 7 * MS, (flow, 0, SEND)));
    }
    let mut fates = Vec::new();
    loop {
        let wake = link.next_wake().0;
        let next = heap.peek().map_or(u64::MAX, |std::cmp::Reverse((time, _))| *time);
        if wake.min(next) >= 40_000 * MS {
            break;
        }
        let mut on_fate = |fate: Fate, packet: Packet, when: Time| fates.push((fate, packet, when));
        if wake <= next {
            link.advance(Time(wake + 1), &mut on_fate);
        } else if let Some(std::cmp::Reverse((now, (flow, seq, what)))) = heap.pop() {
            let sender = &mut senders[flow as usize];
            let blind = if let Kind::Blind(kbps) = sender.kind { Some(kbps) } else { None };
            if what != SEND && blind.is_none() {
                sender.on_feedback(seq, [None, Some(false), Some(true)][usize::from(what)]);
            }
            if now >= 10_000 * MS && (what == PLAIN || what == MARKED) {
                sender.delivered += u64::from(SIZE);
            }
            let more = if blind.is_some() {
                u32::from(what == SEND)
            } else {
                (sender.window as u32).saturating_sub(sender.in_flight)
            };
            for _ in 0..more {
                let flags = match sender.kind {
                    Kind::Scalable | Kind::Blind(_) => Flags::ECT.with(Flags::L4S),
                    Kind::Reno => Flags::ECT,
                    Kind::Deaf => Flags::NONE,
                };
                let (time, flow) = (Time(now), FlowId(flow));
                let packet = Packet {
                    time,
                    cursor: 0,
                    size: SIZE,
                    flags,
                    flow,
                    seq: sender.sent,
                    stamp: Stamp(0),
                    extra: ExtraId::NONE,
                };
                (sender.sent, sender.in_flight) = (sender.sent + 1, sender.in_flight + 1);
                link.advance(Time(now + 1), &mut on_fate);
                link.arrive(packet, &mut on_fate);
            }
            if let Some(kbps) = blind.filter(|_| what == SEND) {
                heap.push(at(now + u64::from(SIZE) * 8 * MS / kbps, (flow, 0, SEND)));
            }
        }
        for (fate, packet, when) in fates.drain(..) {
            let (time, what) = match fate {
                Fate::Drop(_) => (when.0, LOST),
                _ => (packet.time.0, if packet.flags.has(Flags::CE) { MARKED } else { PLAIN }),
            };
            heap.push(at(time + rtt * MS, (packet.flow.0, packet.seq, what)));
        }
    }
    let report = link.finish(Time(40_000 * MS));
    let class = |counts: ClassCounts| {
        let of = |count: u64| count as f64 / (counts.departures + counts.drops).max(1) as f64;
        (counts.waited as f64 / counts.departures.max(1) as f64 * 1e-6, of(counts.marks), of(counts.drops))
    };
    let rates = senders.iter().map(|sender| sender.delivered as f64 * 8.0 / 30.0 / 1e6).collect();
    Outcome { rates, classes: report.classes.unwrap().map(class), used: report.utilisation.0 }
}

fn variants() -> [(&'static str, DualPi2Model); 2] {
    let limit = Limit::Packets(10_000);
    [("rfc9332", DualPi2Model::rfc9332(limit)), ("linux", DualPi2Model::linux(limit))]
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// L4S waits for less than a millisecond, Classic for about its target. With k = 2 windows are about equal (section 2.1), so rates
/// differ by the round trips at most, which are 25 ms with the Classic queue and 10.4 with the other.
#[test]
fn both_kinds_share_a_link_and_only_one_waits() {
    for (name, model) in variants() {
        for (scalable, classic, deaf) in [(1, 1, 0), (2, 2, 0), (5, 5, 0), (2, 0, 2), (1, 8, 0), (8, 1, 0)] {
            let mut kinds = vec![Kind::Scalable; scalable];
            kinds.extend(vec![Kind::Reno; classic]);
            kinds.extend(vec![Kind::Deaf; deaf]);
            let Outcome { rates, classes: [l4s, rest], used } = outcome(model, &kinds, 10);
            let ratio = mean(&rates[..scalable]) / mean(&rates[scalable..]);
            println!(
                "{name} {scalable}+{classic}+{deaf}: ratio {ratio:.2}, L4S {l4s:.3?}, Classic {rest:.3?}, used {used:.3}"
            );
            assert!((0.65..2.4).contains(&ratio), "{name}, {scalable} and {classic}, {deaf}: {ratio}");
            assert!(l4s.0 < 1.0 && l4s.2 == 0.0, "{name}: L4S {l4s:?}");
            assert!((13.0..17.0).contains(&rest.0), "{name}: Classic {rest:?}");
            assert!(used > 0.99, "{name}: {used}");
            if (scalable, classic) == (5, 5) {
                // with many flows the coupled law does nearly all of it: p_C = (p_CL / 2)^2
                let squared = l4s.1 * l4s.1 / 4.0;
                assert!((rest.1 / squared - 1.0).abs() < 0.15, "{name}: {} and {}", rest.1, l4s.1);
            }
            assert!(
                if deaf > 0 { rest.1 == 0.0 && rest.2 > 0.0 } else { rest.2 == 0.0 && rest.1 > 0.0 },
                "{name}: {rest:?}"
            );
        }
    }
}

/// Alone, either has the link; scalable senders keep it busy with a queue of a millisecond.
#[test]
fn each_kind_alone() {
    for (name, model) in variants() {
        for count in [1, 4] {
            let Outcome { classes: [l4s, rest], used, .. } = outcome(model, &vec![Kind::Scalable; count], 10);
            println!("{name} {count} scalable: {l4s:.3?}, used {used:.3}");
            assert!(l4s.0 < 1.5 && l4s.1 > 0.0 && used > 0.97 && rest.0 == 0.0, "{name}, {count}: {l4s:?}, {used}");
            let Outcome { classes: [l4s, rest], used, .. } = outcome(model, &vec![Kind::Reno; count], 10);
            println!("{name} {count} Reno: {rest:.3?}, used {used:.3}");
            assert!((4.0..20.0).contains(&rest.0) && used > 0.95 && l4s.0 == 0.0, "{name}, {count}: {rest:?}, {used}");
        }
    }
}

/// Section 4.2.3: 60 Mbit/s of ECT(1) that heeds nothing on a link of 40. It loses what is too much, its delay is held at the Classic target, and
/// the Classic flow keeps its weight of the link. Who does not drop at overload has the queue run full instead.
#[test]
fn overload_is_shed_and_classic_survives() {
    for (name, model) in variants() {
        let kinds = [Kind::Blind(60_000), Kind::Reno];
        let Outcome { rates, classes: [l4s, rest], used } = outcome(model, &kinds, 10);
        let weight = if let DualScheduler::Weighted(Ratio(share)) = model.scheduler { share } else { 1.0 };
        println!("{name} overload: {rates:.2?}, L4S {l4s:.3?}, Classic {rest:.3?}, used {used:.3}");
        assert!((l4s.2 - (1.0 - rates[0] / 60.0)).abs() < 0.01 && used > 0.99, "{name}: {l4s:?}, {rates:?}");
        assert!((8.0..25.0).contains(&l4s.0) && rates[1] > 0.5 * weight * 40.0 * 0.5, "{name}: {l4s:?} {rates:?}");
        let kept = DualPi2Model { drop_overload: false, limit: Limit::Packets(1000), ..model };
        let Outcome { classes: [l4s, _], .. } = outcome(kept, &kinds, 10);
        assert!(l4s.0 > 100.0 && l4s.1 > 0.6, "{name}: {l4s:?}");
    }
}
