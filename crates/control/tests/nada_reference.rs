//! NADA beside its authors' own code (cisco/ns3-rmcat @30d9d861, model/congestion-control), open loop: both are told the same, and the
//! rate (bit/s) and the signal (ms) each 1.5 s are that code's, run by itself with the functions below.

use crate::media::{draw, path};
use paceline_control::nada::Nada;
use paceline_control::rtp::{Arrivals, Fate, PacketResult, RtpEvent, RtpSession, SentPacket};
use paceline_control::{Build, Controller, GaugeUnit, Gauges, Interval, Profile};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
/// A packet of 1000 B leaves each 10 ms; feedback is made each 100 ms and takes 50; clocks begin at a second.
const GAP: u64 = 10;
const FEEDBACK: u64 = 100;
const BACK: u64 = 50;
const BEGIN: u64 = 1000;
const DELAY: u64 = 40;

/// What the path does to packets that leave at `s` seconds: queueing delay in ms, and the share lost.
type Path = fn(f64) -> (f64, f64);

#[derive(Clone, Copy)]
struct Packet {
    number: u32,
    sent: u64,
    arrived: u64,
    lost: bool,
}

#[derive(Default)]
struct Seen {
    rate: f64,
    signal: f64,
}

impl Gauges for Seen {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        match name {
            "allowed" => self.rate = value,
            "signal" => self.signal = value * 1e3,
            _ => {}
        }
    }
}

/// Rate and signal after each feedback of 30 s.
fn run(seed: u64, of: Path) -> Vec<(u64, f64, f64)> {
    let scheme = &Nada::SCHEMES[0];
    let values: Vec<f64> = scheme.parameters.iter().map(|p| p.default[0]).collect();
    let mut nada = Nada::build(Profile::Rfc, &values);
    let session = RtpSession { packet: Size::from_bytes(1000), interval: Span::from_millis(FEEDBACK) };
    nada.on_feedback(&RtpEvent::Started(session), &path(Time(BEGIN * MS)));
    let (mut draws, mut next, mut last) = (seed, 0u32, 0);
    let mut under_way: VecDeque<Packet> = VecDeque::new();
    let mut round_trips: VecDeque<u64> = VecDeque::new();
    let mut rows = Vec::new();
    for made in (FEEDBACK..=30_000).step_by(FEEDBACK as usize) {
        while GAP * u64::from(next) < made {
            let sent = BEGIN + GAP * u64::from(next);
            let (queue, loss) = of(f64::from(next) / 100.0);
            // as that code's driver draws
            let lost = draw(&mut draws) < loss;
            let arrived = (sent + DELAY + queue as u64).max(last);
            if !lost {
                last = arrived;
            }
            under_way.push_back(Packet { number: next, sent, arrived, lost });
            next += 1;
        }
        let now = BEGIN + made + BACK;
        let Some(newest) = under_way.iter().rposition(|p| !p.lost && p.arrived <= BEGIN + made) else { continue };
        let reported: Vec<Packet> = under_way.drain(..=newest).collect();
        // that code's round trip is the least of 15 packets, each with what its feedback waited
        round_trips.extend(reported.iter().filter(|p| !p.lost).map(|p| now - p.sent));
        while round_trips.len() > 15 {
            round_trips.pop_front();
        }
        let size = Size::from_bytes(1000);
        let packets = reported.iter().map(|p| PacketResult {
            sent: Time(p.sent * MS),
            packet: SentPacket { number: p.number, size, payload: size, ..SentPacket::default() },
            fate: if p.lost { Fate::Lost } else { Fate::Arrived { at: Some(Time(p.arrived * MS)), marked: false } },
        });
        let arrivals = Arrivals {
            packets: packets.collect(),
            rtt: round_trips.iter().min().map(|&rtt| Span(rtt * MS)),
            since: Span::from_millis(FEEDBACK),
            backlog: Size::from_bytes(0),
            waiting: Span::ZERO,
            in_flight: Size::from_bytes(0),
            interval: Interval::Used,
        };
        nada.on_feedback(&RtpEvent::Arrivals(arrivals), &path(Time(now * MS)));
        let mut seen = Seen::default();
        nada.gauges(&mut seen);
        rows.push((made, seen.rate, seen.signal));
    }
    rows
}

/// By how much rate and signal differ from that code's: the rate as a share, the signal in ms.
fn apart(seed: u64, of: Path, theirs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let rows = run(seed, of);
    let pairs = theirs.iter().enumerate().map(|(i, (rate, signal))| {
        let made = 1500 * (i as u64 + 1);
        let ours = rows.iter().find(|row| row.0 == made).expect("feedback comes each 100 ms");
        (ours.1 / rate - 1.0, ours.2 - signal)
    });
    pairs.collect()
}

/// To what that code's 32 bits hold.
#[track_caller]
fn alike(seed: u64, of: Path, theirs: &[(f64, f64)]) {
    let apart = apart(seed, of, theirs);
    assert_eq!(apart.len(), 20);
    assert!(apart.iter().all(|(rate, signal)| rate.abs() < 2e-6 && signal.abs() < 1e-4), "{apart:?}");
}

#[test]
fn without_a_queue_it_climbs_to_what_comes_through() {
    alike(
        1,
        |_| (0.0, 0.0),
        &[
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (929032.2, 0.0000),
        ],
    );
}

#[test]
fn a_queue_that_stays() {
    alike(
        2,
        |s| (if s < 3.0 { 0.0 } else { 30.0 }, 0.0),
        &[
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (850101.5, 30.0000),
            (819881.9, 30.0000),
            (792270.9, 30.0000),
            (767043.0, 30.0000),
            (743992.8, 30.0000),
            (722932.2, 30.0000),
            (703689.5, 30.0000),
            (686107.7, 30.0000),
            (670043.4, 30.0000),
            (655365.8, 30.0000),
            (641955.1, 30.0000),
            (629701.9, 30.0000),
            (618506.6, 30.0000),
            (608277.5, 30.0000),
            (598931.3, 30.0000),
            (590391.8, 30.0000),
            (582589.4, 30.0000),
            (575460.4, 30.0000),
        ],
    );
}

#[test]
fn a_queue_that_grows_and_empties() {
    alike(
        3,
        |s| (if s < 3.0 { 0.0 } else { 12.0 * f64::from((s * 10.0) as i32 % 10) }, 0.0),
        &[
            (929032.2, 0.0000),
            (929032.2, 0.0000),
            (828933.6, 24.0000),
            (658294.8, 84.0000),
            (680654.6, 24.0000),
            (547496.4, 84.0000),
            (573422.1, 24.0000),
            (467369.2, 84.0000),
            (495874.0, 24.0000),
            (409423.1, 84.0000),
            (439792.9, 24.0000),
            (367517.6, 84.0000),
            (399236.2, 24.0000),
            (337212.5, 84.0000),
            (369906.5, 24.0000),
            (315296.5, 84.0000),
            (348695.9, 24.0000),
            (299447.4, 84.0000),
            (333356.9, 24.0000),
            (287985.5, 84.0000),
        ],
    );
}

/// That code counts the losses between the first and the last packet that have come of those sent within 0.5 s, ours those of which
/// the last 0.5 s of feedback tell: losses at the edges count in ours alone, and the squared share with them.
#[test]
fn one_in_a_hundred_lost() {
    let apart = apart(
        4,
        |s| (if s < 2.0 { 0.0 } else { 5.0 }, 0.01),
        &[
            (929032.2, 10.7491),
            (925000.0, 9.8593),
            (925000.0, 5.2060),
            (925000.0, 6.8983),
            (924719.2, 7.2062),
            (925000.0, 11.1960),
            (872828.0, 32.0435),
            (886146.8, 28.3415),
            (925000.0, 11.5866),
            (925000.0, 5.2792),
            (925000.0, 12.0558),
            (925000.0, 11.0191),
            (865817.3, 38.5407),
            (925000.0, 7.1957),
            (747242.4, 86.1544),
            (859031.6, 48.3533),
            (925000.0, 33.4723),
            (925000.0, 6.2070),
            (902382.3, 21.5972),
            (916608.6, 19.2186),
        ],
    );
    let late = &apart[1..];
    assert!(late.iter().all(|(rate, _)| (-0.03..0.001).contains(rate)), "{late:?}");
    let mean = late.iter().map(|(rate, _)| rate).sum::<f64>() / late.len() as f64;
    assert!(mean > -0.005, "{mean}");
    assert!(late.iter().all(|(_, signal)| (-0.001..11.5).contains(signal)), "{late:?}");
}

/// A burst of losses, and five seconds later a queue of 80 ms. That code's mean interval between losses has the running one in it, a
/// sixth of which it is at least, and seven times it is never passed: delays stay warped for the rest of the call. Ours ends seven
/// intervals after the burst (docs/controllers/nada.md), and takes the queue for what it is.
#[test]
fn losses_are_expected_for_a_while_only() {
    let of = |s: f64| (if s > 8.0 && s < 20.0 { 80.0 } else { 0.0 }, if (2.0..3.0).contains(&s) { 0.2 } else { 0.0 });
    let theirs: &[(f64, f64)] = &[
        (929032.2, 0.0000),
        (183016.8, 500.0000),
        (929032.2, 94.9508),
        (929032.2, 4.0251),
        (929032.2, 0.1706),
        (836087.5, 37.0481),
        (790591.8, 37.0412),
        (749891.6, 37.0409),
        (713487.1, 37.0409),
        (680924.5, 37.0409),
        (651798.5, 37.0409),
        (625746.6, 37.0409),
        (602444.4, 37.0409),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
        (929032.2, 0.0000),
    ];
    let apart = apart(6, of, theirs);
    assert!(apart[3..5].iter().all(|(rate, _)| rate.abs() < 2e-6), "{apart:?}");
    assert!(apart[5..13].iter().all(|(rate, signal)| *rate < -0.1 && *signal > 42.9), "{apart:?}");
    assert!(theirs[5..13].iter().all(|(_, signal)| *signal < 37.1), "warped by exp(-0.3)");
}
