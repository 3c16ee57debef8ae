//! libwebrtc's unit tests of these parts, with their numbers.

use super::*;

const MS: i64 = 1000;

/// `count` packets of 1000 bytes with this round trip, which arrived half of it after they were sent.
fn packets(now: i64, rtt: i64, count: usize) -> Vec<Fated> {
    let sent = now - rtt;
    vec![Fated { size: 1000, arrival: Some(Arrival { sent, at: sent + rtt / 2, marked: false }) }; count]
}

fn mark(packet: &mut Fated) {
    packet.arrival.as_mut().unwrap().marked = true;
}

fn give_feedback(law: &mut Law, now: i64, packets: &[Fated], in_flight: i64) {
    law.feedback(now, &Feedback { packets, held: 0, in_flight });
}

fn law() -> Law {
    Law::new(Settings::default())
}

#[test]
fn a_short_round_trip_lets_the_window_grow_less() {
    let (mut long, mut short) = (law(), law());
    give_feedback(&mut long, 0, &packets(0, 100 * MS, 20), 20_000);
    give_feedback(&mut short, 0, &packets(0, MS, 20), 20_000);
    assert!(long.window > short.window);
}

#[test]
fn a_mark_lets_the_window_grow_less() {
    let (mut without, mut with) = (law(), law());
    let mut reported = packets(0, 10 * MS, 20);
    give_feedback(&mut without, 0, &reported, 20_000);
    mark(&mut reported[0]);
    give_feedback(&mut with, 0, &reported, 20_000);
    assert!(without.window > with.window);
}

#[test]
fn the_window_grows_to_what_is_in_flight() {
    // also with the packet size at the time when the test was written
    for mss in [1280, 1000] {
        let mut law = Law::new(Settings { mss, ..Settings::default() });
        let reported = packets(0, 10 * MS, 20);
        for now in (0..2000 * MS).step_by(25_000) {
            give_feedback(&mut law, now, &reported, 10_000);
        }
        assert_eq!(law.window, 11_000 + mss);
    }
}

#[test]
fn the_share_of_marks_is_found() {
    let mut law = law();
    let mut reported = packets(0, 10 * MS, 20);
    reported[..4].iter_mut().for_each(mark);
    let mut before = 0.0;
    for now in (0..2000 * MS).step_by(25_000) {
        give_feedback(&mut law, now, &reported, 20_000);
        assert!(law.alpha > before);
        before = law.alpha;
    }
    assert!((law.alpha - 0.2).abs() < 0.01, "{}", law.alpha);
}

#[test]
fn three_round_trips_of_losses_let_the_window_fall() {
    let mut law = law();
    give_feedback(&mut law, 0, &packets(0, 10 * MS, 20), 20_000);
    let before = law.window;
    for i in 1..4 {
        let now = i * 25 * MS;
        let mut reported = packets(now, 10 * MS, 5);
        reported[3].arrival = None;
        give_feedback(&mut law, now, &reported, 5000);
    }
    assert!(law.window < before);
}

#[test]
fn losses_become_congestion_by_thirds_and_cease_by_halves() {
    let mut losses = Losses::new(25 * MS);
    let received = packets(0, 25 * MS, 1)[0];
    let lost = Fated { arrival: None, ..received };
    for (i, (with, level)) in
        [(true, 1.0 / 3.0), (true, 2.0 / 3.0), (true, 1.0), (false, 0.5), (true, 5.0 / 6.0)].into_iter().enumerate()
    {
        let reported = if with { vec![received, lost] } else { vec![received] };
        assert_eq!(losses.update(25 * MS * i as i64, &reported, 25 * MS), with);
        assert!((losses.level - level).abs() < 1e-3, "{i}: {}", losses.level);
        assert_eq!(losses.is_congestion(), i == 2);
    }
}

/// Feeds one packet or two, 10 ms apart, each with this queueing delay over 100 ms.
fn feed(delay: &mut Delay, now: &mut i64, queueing: &[i64], times: usize) {
    for _ in 0..times {
        *now += 10 * MS;
        let arrival = |q: &i64| Some(Arrival { sent: *now - 100 * MS - q, at: *now, marked: false });
        let reported: Vec<Fated> = queueing.iter().map(|q| Fated { size: 1000, arrival: arrival(q) }).collect();
        delay.update(*now, &reported, 100 * MS, false);
    }
}

#[test]
fn the_mean_of_the_least_delay_scales_as_its_own_test_has_it() {
    let (mut delay, mut now) = (Delay::new(60 * MS), 0);
    assert_eq!(delay.mean, None);
    feed(&mut delay, &mut now, &[0], 100);
    assert_eq!(delay.scale_due_to_avg_min_delay(), 1.0);
    for (queueing, scale) in [(20 * MS, 0.1), (5 * MS, 0.7), (2500, 1.0)] {
        feed(&mut delay, &mut now, &[queueing], 250);
        assert!(
            (delay.scale_due_to_avg_min_delay() - scale).abs() < 0.01,
            "{queueing}: {}",
            delay.scale_due_to_avg_min_delay()
        );
    }
}

#[test]
fn the_spread_of_delay_scales_as_its_own_test_has_it() {
    let (mut delay, mut now) = (Delay::new(60 * MS), 0);
    feed(&mut delay, &mut now, &[0, 0], 100);
    assert_eq!(delay.scale_due_to_latency_difference(), 1.0);
    for (spread, scale) in [(20 * MS, 0.1), (5 * MS, 0.7), (2500, 1.0)] {
        feed(&mut delay, &mut now, &[0, spread], 250);
        assert!(
            (delay.scale_due_to_latency_difference() - scale).abs() < 0.01,
            "{spread}: {}",
            delay.scale_due_to_latency_difference()
        );
    }
}

#[test]
fn packets_of_different_bursts_are_not_compared() {
    let (mut delay, mut now) = (Delay::new(60 * MS), 0);
    for _ in 0..10 {
        now += 100 * MS;
        let packet = |sent, at| Fated { size: 1000, arrival: Some(Arrival { sent, at, marked: false }) };
        let reported = [packet(now - 150 * MS, now - 50 * MS), packet(now - 50 * MS, now)];
        delay.update(now, &reported, 50 * MS, false);
    }
    assert_eq!(delay.scale_due_to_latency_difference(), 1.0);
}

#[test]
fn the_round_trip_of_a_limited_application_moves_slowly() {
    for (first, second, limited, mean) in
        [(200, 100, false, 187.5), (200, 100, true, 199.2), (100, 200, false, 112.5), (100, 200, true, 100.8)]
    {
        let mut delay = Delay::new(60 * MS);
        let reported = packets(0, 50 * MS, 1);
        delay.update(0, &reported, first * MS, false);
        assert_eq!(delay.rtt, first * MS);
        delay.update(100 * MS, &reported, second * MS, limited);
        assert!((delay.rtt as f64 / 1000.0 - mean).abs() < 0.1, "{}", delay.rtt);
    }
}

/// As in libwebrtc's feedback generator: packets paced at a rate, through a link of this capacity (bit/s) with 25 ms of
/// delay one way; feedback each 25 ms, 25 ms later.
struct Link {
    capacity: i64,
    now: i64,
    budget: f64,
    free: i64,
    fed_back: i64,
    out: std::collections::VecDeque<Arrival>,
    size: i64,
    delay: i64,
}

impl Link {
    fn new(capacity: i64, size: i64, delay: i64) -> Link {
        let budget = size as f64;
        Link { capacity, now: 0, budget, free: 0, fed_back: 0, out: std::collections::VecDeque::new(), size, delay }
    }

    /// Runs to the next feedback.
    fn next(&mut self, rate: i64, mut sent: impl FnMut(i64)) -> (Vec<Fated>, i64, i64) {
        loop {
            while self.budget >= self.size as f64 {
                self.budget -= self.size as f64;
                self.free = self.free.max(self.now) + self.size * 8_000_000 / self.capacity;
                self.out.push_back(Arrival { sent: self.now, at: self.free + self.delay, marked: false });
                sent(self.out.len() as i64 * self.size);
            }
            let due = |arrival: &Arrival| self.now - arrival.at >= self.delay;
            if self.now - self.fed_back >= 25 * MS && self.out.front().is_some_and(due) {
                let count = self.out.iter().take_while(|arrival| due(arrival)).count();
                let packets: Vec<Fated> =
                    self.out.drain(..count).map(|arrival| Fated { size: self.size, arrival: Some(arrival) }).collect();
                let last = packets.last().and_then(|p| p.arrival).unwrap();
                self.fed_back = self.now;
                return (packets, self.now - last.at - self.delay, self.out.len() as i64 * self.size);
            }
            self.now += MS;
            self.budget += rate as f64 / 8000.0;
        }
    }
}

#[test]
fn a_wide_link_is_used_up_to_the_greatest_rate() {
    let mut law = Law::new(Settings { max_rate: 2_000_000, ..Settings::default() });
    let mut link = Link::new(1_000_000_000_000, 1000, 25 * MS);
    let mut rate = 100_000;
    for _ in 0..100 {
        let (packets, held, in_flight) = link.next(rate, |in_flight| law.sent(in_flight));
        law.feedback(link.now, &Feedback { packets: &packets, held, in_flight });
        rate = law.target();
    }
    assert_eq!(rate, 2_000_000);
}

#[test]
fn delay_alone_bounds_the_rate_on_2_mbit_s() {
    let mut law = law();
    let mut link = Link::new(2_000_000, 255, 10 * MS);
    let (mut rate, mut min_rate, mut max_rate, mut max_delay) = (100_000, i64::MAX, 0, 0);
    while link.now < 15_000 * MS {
        let (packets, held, in_flight) = link.next(rate, |in_flight| law.sent(in_flight));
        law.feedback(link.now, &Feedback { packets: &packets, held, in_flight });
        rate = law.target();
        if link.now > 10_000 * MS {
            (min_rate, max_rate, max_delay) = (min_rate.min(rate), max_rate.max(rate), max_delay.max(law.delays().0));
        }
    }
    assert!(min_rate > 1_500_000 && max_rate < 2_500_000 && max_delay < 80 * MS, "{min_rate} {max_rate} {max_delay}");
}

#[test]
fn a_queue_that_does_not_drain_is_found_within_its_time() {
    let mut law = law();
    let mut link = Link::new(100_000, 1000, 25 * MS);
    while law.delay.is_drained(link.now) {
        let (packets, held, in_flight) = link.next(150_000, |in_flight| law.sent(in_flight));
        law.feedback(link.now, &Feedback { packets: &packets, held, in_flight });
        assert!(link.now < 30_000 * MS);
    }
    assert!(link.now > 10_000 * MS);
    // the target is halved for five round trips, then all measurements are reset
    let mut halved = 0;
    while law.delays().1.is_some() {
        let (packets, held, in_flight) = link.next(100_000, |in_flight| law.sent(in_flight));
        law.feedback(link.now, &Feedback { packets: &packets, held, in_flight });
        halved += usize::from(law.target() < law.window * 8_000_000 / (law.delays().0 + law.hold) * 6 / 10);
        assert!(link.now < 120_000 * MS);
    }
    assert!(halved > 100, "{halved}");
    let (packets, held, in_flight) = link.next(100_000, |in_flight| law.sent(in_flight));
    law.feedback(link.now, &Feedback { packets: &packets, held, in_flight });
    assert_eq!((law.delays().1, law.delay.is_drained(link.now)), (Some(0), true));
}
