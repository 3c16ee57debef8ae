use super::*;

/// `count` packets of 1000 bytes with this one-way delay.
fn arrivals(count: usize, delay: f64, marked: usize) -> Vec<Fated> {
    (0..count).map(|i| Fated { size: 1000.0, arrival: Some((delay, i < marked)) }).collect()
}

fn give_feedback(law: &mut Law, now: f64, packets: &[Fated], in_flight: f64) {
    law.feedback(now, &Feedback { packets, rtt: Some(0.1), in_flight });
}

/// A sender whose window is this after a time without congestion, with as much in flight.
fn at(window: f64, settings: Settings) -> Law {
    let mut law = Law::new(settings);
    law.sent(0, window);
    give_feedback(&mut law, 0.1, &arrivals(1, 0.05, 0), window);
    law.window = window;
    law.rate_of_window();
    law
}

#[test]
fn the_window_grows_by_its_equations() {
    let mut law = Law::new(Settings::default());
    law.sent(0, 100_000.0);
    give_feedback(&mut law, 1.0, &arrivals(3, 0.05, 0), 0.0);
    // 3000 * 1000/3000 * 1 * 1 * (1 + 0.02 * 3 * (1 / (100 * 0.1)) * 1)
    assert_eq!(law.window, 3000.0 + (1000.0f64 * 1.006).trunc());
    // 8 * 4006 / 0.1 * (1 - (1000/4006 - 0.1)) * 1000/1020 / 1.2
    let expected = 8.0 * 4006.0 / 0.1 * (1.1 - 1000.0 / 4006.0) / 1.02 / 1.2;
    assert!((law.target - expected).abs() < 1.0, "{} {expected}", law.target);
    assert_eq!(law.allowed(), 3.0 * 4006.0);
    assert!((law.pace() - 1.5 * law.target).abs() < 1e-6);
}

#[test]
fn what_is_in_flight_bounds_it() {
    let mut law = Law::new(Settings::default());
    law.sent(0, 2000.0);
    give_feedback(&mut law, 1.0, &arrivals(3, 0.05, 0), 0.0);
    // 1000 + 1.5 * 2000 = 4000 < 4006
    assert_eq!(law.window, 3000.0);
}

#[test]
fn a_loss_takes_three_tenths_and_is_remembered() {
    let mut law = at(50_000.0, Settings::default());
    let lost = [Fated { size: 0.0, arrival: None }];
    give_feedback(&mut law, 1.0, &lost, 0.0);
    assert_eq!((law.window, law.inflection), (35_000.0, 50_000.0));
    // another loss within 25 ms waits until they have passed, and the inflection point stays
    give_feedback(&mut law, 1.01, &lost, 0.0);
    assert_eq!(law.window, 35_000.0);
    give_feedback(&mut law, 1.03, &[], 0.0);
    assert_eq!((law.window, law.inflection), (24_500.0, 50_000.0));
}

#[test]
fn a_loss_below_the_threshold_does_not_count() {
    let mut law = at(50_000.0, Settings { loss_threshold: true, ..Settings::default() });
    let lost = [Fated { size: 0.0, arrival: None }];
    for i in 0..4 {
        give_feedback(&mut law, 1.0 + f64::from(i), &lost, 0.0);
        assert_eq!(law.window, 50_000.0, "{i}");
    }
    // 1 - (1 - 0.0025)^5 is above 1 %
    give_feedback(&mut law, 5.0, &lost, 0.0);
    assert_eq!(law.window, 35_000.0);
}

#[test]
fn a_classic_mark_takes_a_fifth_and_a_scalable_one_by_the_share() {
    let marked = [Fated { size: 0.0, arrival: Some((0.05, true)) }];
    let mut classic = at(50_000.0, Settings::default());
    give_feedback(&mut classic, 1.0, &marked, 0.0);
    assert_eq!(classic.window, 40_000.0);
    let mut scalable = at(50_000.0, Settings { l4s: true, ..Settings::default() });
    give_feedback(&mut scalable, 1.0, &marked, 0.0);
    // alpha = 1/8, halved, over 0.1 s / 25 ms; the inflection point is far away
    assert_eq!((scalable.alpha, scalable.window), (0.125, (50_000.0 * (1.0 - 0.125 / 2.0 / 4.0f64)).trunc()));
}

#[test]
fn alpha_rises_fast_and_falls_slowly() {
    let mut law = Law::new(Settings { l4s: true, ..Settings::default() });
    for i in 0..200 {
        give_feedback(&mut law, 0.1 + 0.02 * f64::from(i), &arrivals(20, 0.05, 4), 20_000.0);
    }
    assert!((law.alpha - 0.2).abs() < 1e-6, "{}", law.alpha);
    give_feedback(&mut law, 10.0, &arrivals(20, 0.05, 0), 20_000.0);
    assert!((law.alpha - 0.2 * 127.0 / 128.0).abs() < 1e-6);
}

#[test]
fn delay_counts_from_half_of_its_target_on() {
    let mut law = at(50_000.0, Settings::default());
    let late = [Fated { size: 0.0, arrival: Some((0.05 + 0.045, false)) }];
    let mut now = 0.1;
    for mean in [0.01125, 0.0196875, 0.026015625] {
        now += 0.1;
        give_feedback(&mut law, now, &late, 0.0);
        assert!((law.delay_mean - mean).abs() < 1e-12);
        assert_eq!(law.window, 50_000.0);
    }
    give_feedback(&mut law, now + 0.1, &late, 0.0);
    let alpha = (law.delay_mean - 0.03) / 0.03;
    assert!(alpha > 0.0);
    assert_eq!(law.window, (50_000.0 * (1.0 - alpha / 2.0 / 4.0)).trunc());
    // a lower delay is taken over at once
    give_feedback(&mut law, now + 0.2, &[Fated { size: 0.0, arrival: Some((0.05, false)) }], 0.0);
    assert_eq!(law.delay_mean, 0.0);
}

#[test]
fn jitter_narrows_what_may_be_in_flight() {
    let mut law = at(50_000.0, Settings { reduce_jitter: true, ..Settings::default() });
    for i in 0..200 {
        let delay = if i % 2 == 0 { 0.05 } else { 0.07 };
        give_feedback(&mut law, 0.2 + 0.03 * f64::from(i), &[Fated { size: 0.0, arrival: Some((delay, false)) }], 0.0);
    }
    assert_eq!((law.ref_wnd_delay_scale, law.allowed()), (0.0, 1.5 * law.window));
}

#[test]
fn frames_that_wait_or_are_large_lower_the_target() {
    let mut law = at(12_000.0, Settings::default());
    law.frame(1.0, 3000);
    assert!(law.frame_deviation > 0.0, "{}", law.target);
    // the first frame has not waited; with a period of 20 ms, the allowed wait is 5 ms
    assert_eq!(law.adjust, 0.0);
    law.frame(1.04, 1000);
    // the period is 0.02 + 0.9 (0.04 - 0.02) = 38 ms, and the first frame has waited 40 ms
    assert!((law.adjust - (0.040 - 0.038 / 4.0) / 0.038 / 16.0).abs() < 1e-9, "{}", law.adjust);
    let before = law.target;
    give_feedback(&mut law, 2.0, &[], 0.0);
    assert!(law.target < 0.97 * before, "{} {before}", law.target);
    for i in 0..100 {
        law.frame(3.0 + 0.04 * f64::from(i), 1000);
    }
    assert_eq!((law.adjust, law.frame_deviation <= 0.2), (0.5, true));
}

#[test]
fn pacing_is_relaxed_near_the_greatest_rate() {
    let mut law = Law::new(Settings::default());
    for (share, scale) in [(0.5, 1.0), (0.8, 1.0), (0.9, 2.0), (0.95, 4.0), (1.0, 4.0)] {
        law.target = share * 1.5e6;
        assert!((law.pace() / (1.5 * law.target) - scale).abs() < 1e-9, "{share}");
    }
    law.target = 10e3;
    assert_eq!(law.pace(), 75e3);
}
