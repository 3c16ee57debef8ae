//! The machine of per-packet acknowledgements by hand: what counts as an answer, and when a packet is overdue.

use paceline_control::registry::scheme;
use paceline_control::{AcksController, GaugeUnit, Gauges, Profile};
use paceline_flow::Segment;
use paceline_flow::acks::{AcksConfig, AcksReceiver, AcksSender};
use paceline_packet::{Extra, ExtraId, Flags, FlowId, LastHole, Packet, Stamp};
use paceline_random::Stream;
use paceline_units::{Span, Time};

fn packet(seq: u32, stamp: Stamp, now: Time) -> Packet {
    Packet { time: now, flow: FlowId(0), seq, stamp, cursor: 0, extra: ExtraId::NONE, size: 1000, flags: Flags::NONE }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn ends(name: &str, profile: Profile) -> (AcksSender, AcksReceiver) {
    let controller = AcksController::new(scheme(name).unwrap(), profile, &[]).unwrap();
    let config = AcksConfig::new(profile, paceline_control::AckController::settings(&controller));
    (AcksSender::new(&config, controller, Stream::new(1, "s")), AcksReceiver::new(&config))
}

#[test]
fn an_answer_with_another_echo_is_none() {
    let (mut sender, _) = ends("rap", Profile::Rfc);
    let mut left: Vec<Segment> = Vec::new();
    sender.supply_endless(Time::ZERO, &mut left);
    sender.start(Time::ZERO, &mut left);
    let hole = Extra::Ack(LastHole { received_end: 1, hole_end: 0, hole_start: 0 });
    let forged = Stamp(left[0].stamp.0.wrapping_add(1));
    sender.on_ack(ms(100), &packet(0, forged, ms(100)), Some(&hole));
    assert_eq!(sender.srtt(), Span::ZERO);
    sender.on_ack(ms(100), &packet(0, left[0].stamp, ms(100)), Some(&hole));
    assert_eq!(sender.srtt(), Span::from_millis(100));
}

/// No packet is sent twice, so that a late answer is as good a sample as any. ns-2 has forgotten the packet.
#[test]
fn an_answer_later_than_the_timeout_is_a_sample_and_none_in_ns2() {
    for (name, profile, srtt) in [("rap", Profile::Rfc, 3000), ("tfrcp", Profile::Rfc, 3000), ("rap", Profile::Ns2, 0)]
    {
        let (mut sender, _) = ends(name, profile);
        let mut left: Vec<Segment> = Vec::new();
        sender.supply_endless(Time::ZERO, &mut left);
        sender.start(Time::ZERO, &mut left);
        sender.on_timer(ms(2000), &mut left);
        assert_eq!(sender.stats().timeouts, 1, "{name}");
        let hole = Extra::Ack(LastHole { received_end: 1, hole_end: 0, hole_start: 0 });
        let forged = Stamp(left[0].stamp.0.wrapping_add(1));
        sender.on_ack(ms(2900), &packet(0, forged, ms(2900)), Some(&hole));
        assert_eq!(sender.srtt(), Span::ZERO, "{name}: another echo");
        let before = sender.window();
        // the answer, and a copy of it
        for at in [3000, 3500] {
            sender.on_ack(ms(at), &packet(0, left[0].stamp, ms(at)), Some(&hole));
            assert_eq!(sender.srtt(), Span::from_millis(srtt), "{name} {profile:?}");
        }
        // the first answer begins with a packet a round trip, late or not
        assert_eq!((before, sender.window()), (0.0, if srtt > 0 { 1.0 } else { 0.0 }), "{name} {profile:?}");
    }
}

/// ns-2 sets the timer of a gap to the gap and a draw from 0 to `overhead_`.
#[test]
fn overhead_makes_gaps_longer_by_a_draw() {
    let controller = AcksController::new(scheme("rap").unwrap(), Profile::Ns2, &[]).unwrap();
    let settings = paceline_control::AckController::settings(&controller);
    let config = AcksConfig { send_overhead: Span::from_millis(500), ..AcksConfig::new(Profile::Ns2, settings) };
    let second = |seed| {
        let mut sender = AcksSender::new(&config, controller.clone(), Stream::new(seed, "s"));
        let mut left: Vec<Segment> = Vec::new();
        sender.supply_endless(Time::ZERO, &mut left);
        sender.start(Time::ZERO, &mut left);
        // the first step ends; the first gap, of 2 s too, goes on
        sender.on_timer(ms(2000), &mut left);
        assert_eq!((left.len(), sender.stats().timeouts), (1, 0));
        sender.next_wake().0 as f64 / 1e6
    };
    let due: Vec<f64> = (0..200).map(second).collect();
    let mean = due.iter().sum::<f64>() / 200.0;
    assert!(due.iter().all(|at| (2000.0..2500.0).contains(at)), "{due:?}");
    assert!((mean - 2250.0).abs() < 41.0, "{mean}"); // four standard errors of 500 / sqrt(12 * 200)
}

#[test]
fn the_last_packet_of_all_is_lost_a_timeout_after_it_left() {
    // rounds of a minute: nothing else wakes it
    let controller = AcksController::new(scheme("tfrcp").unwrap(), Profile::Rfc, &[("interval", 60.0)]).unwrap();
    let config = AcksConfig::new(Profile::Rfc, paceline_control::AckController::settings(&controller));
    let mut sender = AcksSender::new(&config, controller, Stream::new(1, "s"));
    let mut left: Vec<Segment> = Vec::new();
    sender.supply(100, Time::ZERO, &mut left);
    sender.start(Time::ZERO, &mut left);
    assert_eq!((left.len(), sender.next_wake()), (1, ms(2000)), "the timeout before any round trip");
    sender.on_timer(ms(1999), &mut left);
    assert_eq!(sender.stats().timeouts, 0);
    sender.on_timer(ms(2000), &mut left);
    assert_eq!((sender.stats().timeouts, left.len()), (1, 1));
}

/// In ns-2 the timer of a gap looks for losses, and either cuts the rate or sends; in the paper it does both.
#[test]
fn a_gap_that_ends_with_a_timeout_sends_in_the_paper_and_not_in_ns2() {
    for (profile, packets) in [(Profile::Rfc, 2), (Profile::Ns2, 1)] {
        let (mut sender, _) = ends("rap", profile);
        let mut left: Vec<Segment> = Vec::new();
        sender.supply_endless(Time::ZERO, &mut left);
        sender.start(Time::ZERO, &mut left);
        sender.on_timer(ms(2000), &mut left);
        assert_eq!((sender.stats().timeouts, left.len()), (1, packets), "{profile:?}");
    }
}

/// The share lost that TFRCP has found in its last round.
struct P(f64);

impl Gauges for P {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        if name == "loss_event_rate" {
            self.0 = value;
        }
    }
}

#[test]
fn a_copy_of_an_answer_tells_of_no_packet() {
    let (mut sender, mut receiver) = ends("tfrcp", Profile::Rfc);
    let mut left: Vec<Segment> = Vec::new();
    sender.supply_endless(Time::ZERO, &mut left);
    sender.start(Time::ZERO, &mut left);
    let (mut sent_at, mut answered, mut arrivals) = (vec![Time::ZERO], 0, 0);
    // the first answer comes after 100 ms, and a round of 2 s begins
    for now in (0..2100).map(ms) {
        sender.on_timer(now, &mut left);
        sent_at.resize(left.len(), now);
        while answered < left.len() && sent_at[answered] + Span::from_millis(100) <= now {
            let segment = left[answered].clone();
            answered += 1;
            if segment.seq == 5 {
                continue; // lost
            }
            arrivals += 1;
            let mut answers: Vec<Segment> = Vec::new();
            receiver.on_data(now, &packet(segment.seq, segment.stamp, now), &mut answers);
            for _ in 0..5 {
                sender.on_ack(now, &packet(answers[0].seq, answers[0].stamp, now), answers[0].extra.as_ref());
            }
        }
    }
    sender.on_timer(ms(2100), &mut left);
    let mut p = P(0.0);
    sender.gauges(&mut p);
    assert!(arrivals > 10 && (p.0 * f64::from(arrivals + 1) - 1.0).abs() < 1e-9, "{} of {arrivals}", p.0);
}
