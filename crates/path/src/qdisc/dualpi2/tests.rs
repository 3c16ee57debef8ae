//! DualPI2 by hand, and against a transcription of RFC 9332's pseudocode of both passes.

use super::*;
use crate::link::tests::packet;
use paceline_units::{Ratio, Size, Span};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const MANY: Limit = Limit::Packets(100_000);
const ECT0: Flags = Flags::ECT;
const ECT1: Flags = Flags::ECT.with(Flags::L4S);

fn queue(model: DualPi2Model) -> DualPi2 {
    DualPi2::new(&model, Stream::new(1, "queue"))
}

fn rfc() -> DualPi2Model {
    DualPi2Model::rfc9332(MANY)
}

fn linux() -> DualPi2Model {
    DualPi2Model::linux(MANY)
}

fn of(at: u64, size: u16, flags: Flags) -> Packet {
    Packet { flags, ..packet(at, size) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

/// RFC 9332 figure 2: gains of 0.15 and 3 Hz at 15 ms; Linux' values are what the text rounds to 0.16 and 3.2 Hz at 16
/// ms. With a shorter maximum round trip the update interval is a third of it, with a longer one the target.
#[test]
fn the_gains_of_figure_2() {
    let gains = |model: DualPi2Model| (model.update.0, model.alpha, model.beta);
    let (update, alpha, beta) = gains(rfc());
    assert!(update == 15 * MS && close(alpha, 0.15) && close(beta, 3.0), "{update} {alpha} {beta}");
    let (update, alpha, beta) = gains(linux());
    assert!(update == 16 * MS && (alpha - 0.16).abs() < 0.001 && (beta - 3.2).abs() < 0.001);
    let (update, alpha, beta) = gains(rfc().tuned(Span::from_millis(30)));
    assert!(update == 10 * MS && close(alpha, 0.1 * 0.010 / 0.0009) && close(beta, 10.0), "{update} {alpha} {beta}");
    assert_eq!(rfc().tuned(Span::from_millis(1000)).update, Span::from_millis(15));
}

/// Figure 8, by hand: alpha 0.15, beta 3, target 15 ms, p_CL = 2 p', p_C = p'^2.
#[test]
fn the_probabilities_by_hand() {
    // the age of the head of the L4S queue and of the Classic one, in ms; p', p_CL, p_C
    let table = [
        ([0, 20], [0.06075, 0.1215, 0.003_690_562_5]), // 0.15 x 5 ms + 3 x 20 ms
        ([0, 30], [0.093, 0.186, 0.008_649]),          // 0.15 x 15 ms + 3 x 10 ms more
        ([0, 30], [0.09525, 0.1905, 0.009_072_562_5]), // 0.15 x 15 ms
        ([30, 10], [0.0975, 0.195, 0.009_506_25]),     // the greater of the two delays counts
        ([1, 30], [0.09975, 0.1995, 0.009_950_062_5]), // and once more
        ([0, 0], [0.0075, 0.015, 0.000_056_25]),       // both empty: 0.15 x -15 ms - 3 x 30 ms
        ([0, 0], [0.00525, 0.0105, 0.000_027_562_5]),
        ([0, 0], [0.003, 0.006, 0.000_009]),
        ([0, 0], [0.00075, 0.0015, 0.000_000_562_5]),
        ([0, 0], [0.0, 0.0, 0.0]),                   // never below zero
        ([0, 300], [0.94275, 1.0, 0.888_777_562_5]), // 2 p' is above one: all are marked
        ([0, 330], [1.0, 1.0, 1.0]),                 // never above one
    ];
    let mut dual = queue(rfc());
    for (row, (ages, expected)) in table.into_iter().enumerate() {
        let now = 1000 * MS;
        dual.queues = Default::default();
        for (class, age) in ages.into_iter().enumerate().filter(|(_, age)| *age > 0) {
            dual.queues[class].push(of(now - age * MS, 1500, Flags::NONE));
        }
        dual.update(now);
        let got = [dual.base, dual.coupled(), dual.base * dual.base];
        assert!((0..3).all(|i| close(got[i], expected[i])), "row {row}: {got:?}, by hand {expected:?}");
    }
}

/// Overdue updates run one by one, each with the head's age at its own instant; an empty queue at rest needs none.
#[test]
fn updates_are_caught_up_with() {
    let (mut late, mut each) = (queue(rfc()), queue(rfc()));
    for dual in [&mut late, &mut each] {
        dual.enqueue(of(7 * MS, 1500, ECT0), |_, _| {});
    }
    (10..400).for_each(|ms| each.catch_up(ms * MS));
    late.catch_up(399 * MS);
    assert!(late.base > 0.0 && late.base == each.base && late.next_update == 405 * MS);
    let mut idle = queue(rfc());
    idle.catch_up(1_000_000 * 15 * MS + 1);
    assert_eq!((idle.base, idle.next_update), (0.0, 1_000_001 * 15 * MS));
}

/// Figure 5, and note c: a step is a ramp without a range. Linux' step marks only above the threshold.
#[test]
fn what_the_l4s_queue_marks_by_its_own_delay() {
    let native = |model: DualPi2Model, us: u64| queue(model).native(us * US);
    for (us, expected) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1199, 0.9975), (1200, 1.0), (9000, 1.0)] {
        assert!(close(native(rfc(), us), expected), "{us} us");
    }
    let step = NativeAqm::Step(Span::from_millis(1));
    let without = NativeAqm::Ramp { from: Span::from_millis(1), range: Span::ZERO };
    for (us, by_rfc, by_linux) in [(999, 0.0, 0.0), (1000, 1.0, 0.0), (1001, 1.0, 1.0)] {
        assert_eq!(native(DualPi2Model { native: step, ..rfc() }, us), by_rfc, "{us} us");
        assert_eq!(native(DualPi2Model { native: without, ..rfc() }, us), by_rfc, "{us} us");
        assert_eq!(native(linux(), us), by_linux, "{us} us");
    }
}

/// The fractions of 10,000 packets of one class that are marked and dropped when they leave at p' = `base`.
fn shares(model: DualPi2Model, base: f64, flags: Flags) -> (f64, f64) {
    let mut dual = queue(model);
    (0..10_000).for_each(|_| dual.enqueue(of(0, 1500, flags), |_, _| {}));
    (dual.base, dual.next_update) = (base, u64::MAX);
    let (mut marks, mut drops) = (0, 0);
    while dual.dequeue(0, &mut marks, |_, _| drops += 1).is_some() {}
    let class = if flags.has(Flags::L4S) { L4S } else { CLASSIC };
    let counts = dual.classes[class];
    assert_eq!((counts.marks, counts.drops, counts.departures + counts.drops), (marks, drops, 10_000));
    assert_eq!(dual.classes[1 - class], ClassCounts::default());
    (marks as f64 / 1e4, drops as f64 / 1e4)
}

/// Section 2.1, equations 1 and 2: p_CL = k p', p_C = p'^2 = (p_CL / k)^2. Evenly spaced in the RFC, so exact to a
/// packet; random in Linux.
#[test]
fn the_coupled_and_the_squared_probability() {
    for (variant, model, bound) in [("RFC", rfc(), 2e-4), ("Linux", linux(), 0.015)] {
        for (base, coupling) in [(0.01, 2.0), (0.1, 2.0), (0.3, 2.0), (0.49, 2.0), (0.1, 1.19), (0.1, 8.0)] {
            let model = DualPi2Model { coupling, ..model };
            for (flags, marked, dropped) in
                [(ECT1, coupling * base, 0.0), (ECT0, base * base, 0.0), (Flags::NONE, 0.0, base * base)]
            {
                let (marks, drops) = shares(model, base, flags);
                assert!((marks - marked).abs() < bound, "{variant}, p' {base}, k {coupling}: {marks} marked");
                assert!((drops - dropped).abs() < bound, "{variant}, p' {base}, k {coupling}: {drops} dropped");
            }
        }
    }
}

/// A.2: from p_C = 1/k^2 on, which is 25 % for k = 2, both classes are dropped with p'^2, ECN-capable or not, and the
/// remaining L4S packets are marked. Linux counts as overloaded only above it.
#[test]
fn overload_drops_of_either_class() {
    for (variant, model, bound) in [("RFC", rfc(), 3e-4), ("Linux", linux(), 0.015)] {
        for base in [0.5001, 0.6, 0.8] {
            let squared = base * base;
            for (flags, marked) in [(ECT1, 1.0 - squared), (ECT0, 0.0), (Flags::NONE, 0.0)] {
                let (marks, drops) = shares(model, base, flags);
                assert!((drops - squared).abs() < bound, "{variant}, p' {base}: {drops} dropped of {flags:?}");
                assert!((marks - marked).abs() < bound, "{variant}, p' {base}: {marks} marked of {flags:?}");
            }
        }
        let (marks, drops) = shares(model, 0.5, ECT0);
        let (is, not) = if variant == "RFC" { (drops, marks) } else { (marks, drops) };
        assert!((is - 0.25).abs() < bound && not == 0.0, "{variant}: {marks} {drops}");
        // without overload drops, p' stops at 1/k: all of L4S is marked, and Classic with 1/k^2
        let mut kept = queue(DualPi2Model { drop_overload: false, ..model });
        kept.queues[CLASSIC].push(of(0, 1500, ECT0));
        kept.update(10_000 * MS);
        assert!(close(kept.base, 0.5) && !kept.is_overloaded());
        let of_l4s = shares(kept.model, 0.5, ECT1);
        assert!(of_l4s.0 >= 0.9998 && of_l4s.1 == 0.0, "{variant}: {of_l4s:?}");
    }
}

/// Figure 4, lines 23 to 30: at a quarter every fourth, beginning with the fifth; at 1/3 the count is off by no more
/// than one.
#[test]
fn recurrence_is_even() {
    let mut dual = queue(rfc());
    let due: Vec<usize> = (1..=13).filter(|_| dual.recur(L4S, 0.25)).collect();
    assert_eq!(due, [5, 9, 13]);
    assert_eq!(dual.counts, [0.25, 0.0], "a count for each queue");
    let mut dual = queue(rfc());
    let due = (0..3000).filter(|_| dual.recur(CLASSIC, 1.0 / 3.0)).count();
    assert!((999..=1000).contains(&due), "{due}");
}

/// Lines 5a to 5d: with at most one packet left behind the departing one, the L4S queue's delay causes no marks; in
/// Linux, with fewer than `min_qlen_step` at its arrival.
#[test]
fn a_short_l4s_queue_is_not_marked() {
    let marked = |model: DualPi2Model, count: usize| -> Vec<bool> {
        let mut dual = queue(model);
        (0..count).for_each(|_| dual.enqueue(of(0, 100, ECT1), |_, _| {}));
        (0..count).map(|_| dual.dequeue(5 * MS, &mut 0, |_, _| {}).unwrap().flags.has(Flags::CE)).collect()
    };
    // the first one only brings the count to one
    assert_eq!(marked(rfc(), 5), [false, true, true, false, false]);
    assert_eq!(marked(DualPi2Model { native_packets: 0, ..rfc() }, 5), [false, true, true, true, false]);
    assert_eq!(marked(linux(), 5), [true; 5]);
    assert_eq!(marked(DualPi2Model { native_packets: 2, ..linux() }, 5), [false, false, true, true, true]);
}

/// Linux skips the coupled law while less than two MTUs are left, but not the step.
#[test]
fn linux_spares_the_last_two_mtus() {
    for (size, flags, spared) in [(1500, ECT0, 2), (1499, ECT0, 3), (700, ECT0, 5), (1500, ECT1, 2)] {
        let mut dual = queue(linux());
        (0..9).for_each(|_| dual.enqueue(of(0, size, flags), |_, _| {}));
        (dual.base, dual.next_update) = (1.0, u64::MAX);
        let mut left = 0;
        while dual.dequeue(0, &mut 0, |_, _| {}).is_some() {
            left += 1;
        }
        assert_eq!(left, spared, "{size} B, {flags:?}");
    }
}

/// The Classic queue's fraction of the bytes that leave while both have packets, and the classes of the departures.
fn turns(scheduler: DualScheduler, sizes: [u16; 2]) -> (f64, Vec<usize>) {
    let mut dual = queue(DualPi2Model { scheduler, ..rfc() });
    for _ in 0..4000 {
        for (size, flags) in sizes.into_iter().zip([ECT1, ECT0]) {
            dual.enqueue(of(0, size, flags), |_, _| {});
        }
    }
    let mut order = Vec::new();
    while dual.queues.iter().all(|queue| queue.packets() > 0) {
        let packet = dual.dequeue(0, &mut 0, |_, _| {}).unwrap();
        order.push(usize::from(!packet.flags.has(Flags::L4S)));
    }
    let bytes = |class: usize| dual.classes[class].departed_bytes as f64;
    (bytes(CLASSIC) / (bytes(L4S) + bytes(CLASSIC)), order)
}

/// The Classic queue gets its share of the bytes, whatever the sizes, and the L4S queue goes first.
#[test]
fn the_weighted_round_robin_shares_bytes() {
    for share in [1.0 / 16.0, 0.1, 0.5] {
        for sizes in [[1500, 1500], [300, 1500], [1500, 300]] {
            let (got, order) = turns(DualScheduler::Weighted(Ratio(share)), sizes);
            assert!((got / share - 1.0).abs() < 0.02, "{share}, {sizes:?}: {got}");
            assert_eq!(order[0], L4S);
        }
    }
    // 1500 x (1 - 15)/16 of credit at the start: fourteen sixteenths of a packet are made up for after fifteen of L4S
    let (_, order) = turns(DualScheduler::Weighted(Ratio(1.0 / 16.0)), [1500, 1500]);
    let classic: Vec<usize> = (0..60).filter(|at| order[*at] == CLASSIC).collect();
    assert_eq!(classic, [15, 31, 47]);
    let (_, order) = turns(DualScheduler::Weighted(Ratio(0.0)), [1500, 1500]);
    assert!(order.iter().all(|class| *class == L4S), "without a share the L4S queue has priority");
}

/// A.1: the credit changes only while both queues have packets; when the link goes idle, it is reset.
#[test]
fn credit_is_for_contention() {
    let mut dual = queue(rfc());
    let start = dual.credit;
    assert_eq!(start, 1500 * (62_500 - 937_500));
    (0..3).for_each(|_| dual.enqueue(of(0, 1500, ECT1), |_, _| {}));
    (0..2).for_each(|_| assert!(dual.dequeue(0, &mut 0, |_, _| {}).is_some()));
    assert_eq!(dual.credit, start, "nobody else waited");
    dual.enqueue(of(0, 1500, ECT0), |_, _| {});
    assert!(dual.dequeue(0, &mut 0, |_, _| {}).is_some());
    assert_eq!(dual.credit, start + 1500 * 62_500);
    assert!(dual.dequeue(0, &mut 0, |_, _| {}).is_some());
    assert_eq!(dual.credit, start + 1500 * 62_500, "the Classic one was alone");
    assert!(dual.dequeue(0, &mut 0, |_, _| {}).is_none());
    assert_eq!(dual.credit, start);
}

/// Appendix B, figure 10: the Classic packet goes first once it has waited longer by more than the shift.
#[test]
fn the_time_shifted_fifo_by_hand() {
    for (low, classic, first) in [(100, 50, L4S), (100, 49, CLASSIC), (10, 0, L4S), (200, 0, CLASSIC)] {
        let mut dual = queue(DualPi2Model { scheduler: DualScheduler::TimeShifted(Span::from_millis(50)), ..rfc() });
        dual.queues[L4S].push(of(low * MS, 1500, ECT1));
        dual.queues[CLASSIC].push(of(classic * MS, 1500, ECT0));
        assert_eq!(dual.scheduled(300 * MS), Some(first), "L4S came at {low} ms, Classic at {classic} ms");
    }
}

/// Figure 3: ECT(1) and CE go to the L4S queue, since the header has no other hint; the RFC requires space for an MTU.
#[test]
fn classes_and_room() {
    let mut dual = queue(rfc());
    for flags in [Flags::NONE, ECT0, ECT1, ECT0.with(Flags::CE), ECT1.with(Flags::CE)] {
        dual.enqueue(of(0, 100, flags), |_, _| {});
    }
    assert_eq!([L4S, CLASSIC].map(|class| dual.queues[class].packets()), [3, 2]);
    let accepted = |model: DualPi2Model| {
        let mut dual = queue(model);
        let mut lost = 0;
        (0..40).for_each(|_| {
            dual.enqueue(of(0, 500, ECT0), |_, reason| lost += u32::from(reason == DropReason::Overflow))
        });
        assert_eq!(dual.classes[CLASSIC].drops, u64::from(lost));
        dual.packets()
    };
    let bytes = Limit::Bytes(Size(5000));
    assert_eq!((accepted(DualPi2Model::rfc9332(bytes)), accepted(DualPi2Model::linux(bytes))), (8, 10));
    let packets = Limit::Packets(7);
    assert_eq!((accepted(DualPi2Model::rfc9332(packets)), accepted(DualPi2Model::linux(packets))), (7, 7));
    assert_eq!(accepted(DualPi2Model::rfc9332(Limit::Bytes(Size(100)))), 1, "one always may");
}

/// RFC 9332's figures, transcribed; the caller is the scheduler.
struct Figures {
    /// Figures of A.2; if false, of A.1.
    second_pass: bool,
    lq: VecDeque<(u64, u8)>,
    cq: VecDeque<(u64, u8)>,
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    lq_count: f64,
    cq_count: f64,
}

impl Figures {
    fn new(second_pass: bool) -> Figures {
        let (lq, cq) = Default::default();
        Figures { second_pass, lq, cq, p: 0.0, p_cl: 0.0, p_c: 0.0, prevq: 0.0, lq_count: 0.0, cq_count: 0.0 }
    }

    /// Figure 6, or 8, with the bounds from the text.
    fn dualpi2_update(&mut self, now: u64) {
        let time =
            |queue: &VecDeque<(u64, u8)>| queue.front().map_or(0.0, |(arrived_at, _)| (now - arrived_at) as f64 * 1e-9);
        let mut curq = time(&self.cq);
        if self.second_pass {
            curq = curq.max(time(&self.lq));
        }
        self.p += 0.15 * (curq - 0.015) + 3.0 * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = (self.p * 2.0).min(1.0); // p_Lmax
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }

    fn laqm(qdelay: f64) -> f64 {
        if qdelay >= 0.0012 {
            1.0
        } else if qdelay > 0.0008 {
            (qdelay - 0.0008) / 0.0004
        } else {
            0.0
        }
    }

    fn recur(count: &mut f64, likelihood: f64) -> bool {
        *count += likelihood;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }

    /// Figure 4, or 7, for one packet: `None` if it is dropped, otherwise its ECN field.
    fn dualpi2_dequeue(&mut self, now: u64, from_lq: bool) -> Option<u8> {
        if from_lq {
            let (arrived_at, mut ecn) = self.lq.pop_front().unwrap();
            if !self.second_pass || self.p_cl < 1.0 {
                let long = !self.second_pass || self.lq.len() > 1;
                let p_native = if long { Figures::laqm((now - arrived_at) as f64 * 1e-9) } else { 0.0 };
                if Figures::recur(&mut self.lq_count, p_native.max(self.p_cl)) {
                    ecn = 3;
                }
            } else {
                if Figures::recur(&mut self.lq_count, self.p_c) {
                    return None;
                }
                if Figures::recur(&mut self.lq_count, self.p_cl) {
                    ecn = 3;
                }
            }
            return Some(ecn);
        }
        let (_, mut ecn) = self.cq.pop_front().unwrap();
        if Figures::recur(&mut self.cq_count, self.p_c) {
            if ecn == 0 || self.second_pass && self.p_c >= 0.25 {
                return None;
            }
            ecn = 3;
        }
        Some(ecn)
    }
}

/// Paceline's code and the figures side by side, on a link with a given time per byte in nanoseconds.
struct Both {
    dual: DualPi2,
    figures: Figures,
    next_update: u64,
    wake: Option<u64>,
    free: u64,
    byte_ns: u64,
    marks: u64,
    drops: u64,
    highest: f64,
}

impl Both {
    fn new(second_pass: bool, byte_ns: u64) -> Both {
        let (dual, figures) = (queue(rfc()), Figures::new(second_pass));
        let (wake, free) = (None, 0);
        Both { dual, figures, next_update: 15 * MS, wake, free, byte_ns, marks: 0, drops: 0, highest: 0.0 }
    }

    fn tick(&mut self, now: u64) {
        while self.next_update <= now {
            self.figures.dualpi2_update(self.next_update);
            self.next_update += 15 * MS;
        }
    }

    fn arrive(&mut self, now: u64, size: u16, ecn: u8) {
        while self.wake.is_some_and(|wake| wake <= now) {
            self.serve();
        }
        self.tick(now);
        let flags = [Flags::NONE, ECT1, ECT0, ECT0.with(Flags::CE)][usize::from(ecn)];
        self.dual.enqueue(of(now, size, flags), |_, _| {});
        if ecn % 2 == 1 { &mut self.figures.lq } else { &mut self.figures.cq }.push_back((now, ecn));
        self.wake = self.wake.or(Some(self.free.max(now)));
    }

    /// The transmitter dequeues.
    fn serve(&mut self) {
        let now = self.wake.unwrap();
        self.tick(now);
        let mut before = self.dual.clone();
        let mut dropped = 0;
        let sent = self.dual.dequeue(now, &mut self.marks, |_, _| dropped += 1);
        assert!(
            (self.dual.base - self.figures.p).abs() < 1e-9,
            "p' is {}, of the figures {}",
            self.dual.base,
            self.figures.p
        );
        self.highest = self.highest.max(self.dual.base);
        self.drops += dropped;
        // tell the figures which queue each dequeued packet came from; drops leave the credit unchanged
        for i in 0..dropped + u64::from(sent.is_some()) {
            let class = before.scheduled(now).unwrap();
            before.queues[class].pop();
            let ecn = self.figures.dualpi2_dequeue(now, class == L4S);
            assert_eq!(ecn.is_none(), i < dropped, "dropped at {now} ns");
            if let (Some(ecn), Some(packet)) = (ecn, &sent) {
                assert_eq!(ecn == 3, packet.flags.has(Flags::CE), "marked at {now} ns");
            }
        }
        if let Some(packet) = &sent {
            self.free = now + u64::from(packet.size) * self.byte_ns;
        }
        self.wake = sent.map(|_| self.free);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every mark and every drop matches figures 7 and 8, for any arrivals.
    #[test]
    fn as_the_second_pass_of_the_pseudocode(
        arrivals in prop::collection::vec((0..2000u64, 40..1500u16, 0..4u8), 1..600),
        byte_ns in prop_oneof![Just(500u64), Just(1500), Just(5000)],
    ) {
        let mut both = Both::new(true, byte_ns);
        let mut now = 0;
        for (gap, size, ecn) in arrivals {
            now += gap * US + 1;
            both.arrive(now, size, ecn);
        }
        while both.wake.is_some() {
            both.serve();
        }
    }
}

/// The second pass becomes overloaded where the first does not; this run reaches the overload.
#[test]
fn the_second_pass_into_overload_and_back() {
    let mut both = Both::new(true, 1000);
    for n in 0..4000u64 {
        // 12 Mbit/s of each class for two seconds on a link of 8, then 4 in total
        let gap = if n < 2000 { 1000 } else { 3000 };
        both.arrive(n * gap * US / 2 + 7, 1500, [1, 0, 1, 2][n as usize % 4]);
    }
    assert!(both.highest > 0.6 && both.marks > 100 && both.drops > 100, "{} {}", both.marks, both.drops);
    assert!(both.dual.base < 0.1, "{}", both.dual.base);
}

/// Figures 4 and 6, without the edge cases: the same marks and drops while the Classic queue's delay is the greater
/// one, more than one packet is left in the L4S queue, and marks suffice.
#[test]
fn as_the_first_pass_of_the_pseudocode() {
    let mut both = Both::new(false, 1000);
    for n in 0..700u64 {
        both.arrive(0, 100, [1, 1, 1, 1, 0, 1, 2][n as usize % 7]);
    }
    while both.dual.queues[L4S].packets() > 2 {
        both.serve();
    }
    assert!(both.highest > 0.1 && both.highest < 0.5, "{}", both.highest);
    assert!(both.marks > 400, "{}", both.marks);
}
