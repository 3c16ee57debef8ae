//! The cases and numbers of libwebrtc's loss_based_bwe_v2_test.cc: packets of 15 kB, one or more per quarter of a
//! second.

use super::*;

const QUARTER: u64 = 250;
const NONE: f64 = f64::INFINITY;

fn at(ms: u64) -> Time {
    Time((1000 + ms) * 1_000_000)
}

fn packet(sent_ms: u64, lost: bool) -> PacketResult {
    PacketResult::new(at(sent_ms), (!lost).then(|| at(sent_ms + 250)), 15_000.0)
}

/// Two packets a quarter of a second apart.
fn two(from: u64, lost: [bool; 2]) -> Vec<PacketResult> {
    vec![packet(from, lost[0]), packet(from + QUARTER, lost[1])]
}

fn received(from: u64) -> Vec<PacketResult> {
    two(from, [false, false])
}

fn half_lost(from: u64) -> Vec<PacketResult> {
    two(from, [false, true])
}

/// All of `n` packets lost: all except the last within 10 ms of each other.
fn lost(from: u64, n: u64) -> Vec<PacketResult> {
    (0..n).map(|i| packet(from + if i + 1 == n { QUARTER } else { 10 * i }, true)).collect()
}

/// Ten packets, a quarter of a second apart, of which the last is lost and has `size` bytes.
fn tenth_lost(from: u64, size: f64) -> Vec<PacketResult> {
    let mut packets: Vec<PacketResult> = (0..10).map(|i| packet(from + QUARTER * i, i == 9)).collect();
    packets[9].size = size;
    packets
}

/// Config() in libwebrtc, without its two Newton steps and its smoothing of the sending rate by a hundredth.
fn config() -> Settings {
    Settings {
        rampup_factor: 1.2,
        candidates: vec![1.1, 1.0, 0.95],
        bias: 0.01,
        inherent_balance: 14e3,
        inherent_offset: 0.9,
        step: 0.4,
        instant_weight: 0.97,
        instant_balance: 90e3,
        instant_offset: 0.1,
        weight: 0.98,
        min_observations: 1,
        increase: 1.5,
        ..Settings::default()
    }
}

/// ShortObservationConfig().
fn short() -> Settings {
    Settings { min_observations: 1, window: 2, ..Settings::default() }
}

impl Loss {
    /// SetBandwidthEstimate().
    fn set(&mut self, rate: f64) {
        let inherent = self.best.map_or(self.settings.inherent_first, |best| best.inherent);
        self.best = Some(Channel { inherent, rate });
        self.result = (rate, State::Delay);
    }

    fn rate(&self) -> f64 {
        self.result().0
    }

    fn state(&self) -> State {
        self.result().1
    }
}

fn started(settings: Settings, rate: f64) -> Loss {
    let mut loss = Loss::new(settings);
    loss.set(rate);
    loss
}

#[track_caller]
fn near(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-6 * want, "{got} instead of {want}");
}

#[test]
fn it_is_ready_when_it_knows_a_rate_and_has_seen_a_quarter_of_a_second() {
    let mut loss = started(config(), 600e3);
    assert!(!loss.ready());
    loss.feedback(&[packet(0, false), packet(QUARTER / 2, false)], NONE, false);
    assert!(!loss.ready() && loss.rate() == NONE);
    let mut loss = started(config(), 600e3);
    loss.feedback(&received(0), NONE, false);
    assert!(loss.ready() && loss.rate().is_finite());
    let mut loss = Loss::new(config());
    loss.feedback(&received(0), NONE, false);
    assert!(!loss.ready() && loss.rate() == NONE, "no rate");
    let mut loss = Loss::new(short());
    loss.feedback(&received(0), 600e3, false);
    assert!(loss.ready(), "the delay's");
}

#[test]
fn by_default_it_is_ready_after_three_observations() {
    let mut loss = Loss::default();
    for i in 0..3 {
        assert!(!loss.ready());
        loss.feedback(&received(500 * i), 600e3, false);
    }
    assert!(loss.ready());
}

#[test]
fn without_losses_it_grows_by_the_largest_candidate_or_to_the_delays() {
    let mut loss = started(config(), 600e3);
    loss.feedback(&received(0), NONE, false);
    near(loss.rate(), 660e3);
    loss.set_acknowledged(900e3);
    near(loss.rate(), 660e3);
    loss.feedback(&received(500), NONE, false);
    near(loss.rate(), 900e3);
    let mut loss = started(config(), 600e3);
    for i in 0..2 {
        loss.feedback(&received(500 * i), 5e6, false);
        near(loss.rate(), 5e6);
    }
    let mut loss = started(config(), 600e3);
    loss.feedback(&received(0), NONE, false);
    loss.feedback(&received(500), 500e3, false);
    near(loss.rate(), 500e3);
}

#[test]
fn all_lost_leaves_the_balance_over_the_rest() {
    let mut loss = started(config(), 600e3);
    loss.feedback(&lost(0, 2), NONE, false);
    near(loss.rate(), 100e3);
}

#[test]
fn heavy_losses_take_it_to_what_comes_through() {
    let mut loss = started(config(), 600e3);
    loss.set_acknowledged(300e3);
    loss.feedback(&half_lost(0), NONE, false);
    loss.feedback(&lost(500, 2), NONE, false);
    assert!(loss.rate() <= 300e3 * (1.0 + 1e-9), "{}", loss.rate());
}

#[test]
fn what_says_nothing_new_changes_nothing() {
    for later in [0, QUARTER - 1] {
        let mut loss = started(config(), 600e3);
        loss.feedback(&received(0), NONE, false);
        let before = loss.rate();
        loss.feedback(&received(later), NONE, false);
        assert_eq!(loss.rate(), before);
    }
}

/// Feeds quarters of a second without losses until the state is `until`; returns the next quarter.
fn recover(loss: &mut Loss, mut quarter: u64, delay_based: f64, alr: bool, until: State) -> u64 {
    for _ in 0..100 {
        if loss.state() == until {
            return quarter;
        }
        loss.feedback(&received(QUARTER * quarter), delay_based, alr);
        quarter += 1;
    }
    panic!("{:?}", loss.result())
}

#[test]
fn after_a_hold_it_grows_by_a_fifth_of_what_comes_through() {
    let mut loss = started(short(), 600e3);
    loss.set_acknowledged(100e3);
    loss.feedback(&lost(0, 2), 5e6, false);
    let at_loss = loss.rate();
    recover(&mut loss, 2, 5e6, false, State::Padding);
    near(loss.rate(), 1.2 * at_loss);
}

#[test]
fn the_delay_limits_again_when_losses_do_not() {
    let settings = Settings {
        candidates: vec![100.0, 1.0, 0.5],
        instant_balance: 10e6,
        increase: 100.0,
        not_increase_if_inherent_loss_less: false,
        ..short()
    };
    let mut loss = started(settings.clone(), 600e3);
    loss.set_acknowledged(300e3);
    loss.feedback(&lost(0, 2), 600e3, false);
    assert_eq!(loss.state(), State::Falling);
    loss.set_acknowledged(600e3);
    for i in 1..3 {
        loss.feedback(&received(QUARTER * i), 600e3, false);
        assert_eq!(loss.state(), State::Delay);
    }
    let mut loss = started(Settings { not_increase_if_inherent_loss_less: true, ..settings }, 600e3);
    loss.feedback(&lost(0, 2), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    loss.set_acknowledged(600e3);
    loss.feedback(&received(QUARTER), NONE, false);
    assert_ne!(loss.state(), State::Delay, "there is no delay's");
}

fn ramp() -> (Loss, f64) {
    let settings = Settings { preference: 0.99, rampup_factor: 1.2, instant_balance: 10e6, ..short() };
    let mut loss = started(settings, 600e3);
    loss.set_acknowledged(300e3);
    loss.feedback(&lost(0, 2), 5e6, false);
    assert_eq!(loss.state(), State::Falling);
    let at_loss = loss.rate();
    assert!(at_loss < 600e3);
    (loss, at_loss)
}

#[test]
fn growing_it_is_bound_by_what_comes_through() {
    let (mut loss, at_loss) = ramp();
    loss.set_acknowledged(0.9 * at_loss);
    let quarter = recover(&mut loss, 1, 5e6, false, State::Padding);
    near(loss.rate(), at_loss * 0.9 * 1.2);
    let before = loss.rate();
    loss.set_acknowledged(0.9 * at_loss);
    loss.feedback(&received(QUARTER * quarter), 5e6, false);
    near(loss.rate(), before);
}

#[test]
fn where_too_little_comes_through_it_grows_by_one_bit_a_second() {
    let (mut loss, at_loss) = ramp();
    loss.set_acknowledged(at_loss / 2.0);
    recover(&mut loss, 1, 5e6, false, State::Padding);
    assert!((loss.rate() - at_loss - 1.0).abs() < 1e-6, "{} after {at_loss}", loss.rate());
}

#[test]
fn within_a_window_it_does_not_grow_twice() {
    let mut loss = started(config(), 600e3);
    loss.set_acknowledged(300e3);
    loss.feedback(&received(0), 5e6, false);
    loss.set_acknowledged(5e6);
    loss.feedback(&half_lost(298), 5e6, false);
    let before = loss.rate();
    loss.feedback(&received(299), 5e6, false);
    assert_eq!(loss.rate(), before);
}

#[test]
fn losses_above_the_inherent_ones_forbid_growth() {
    let mut loss = started(Settings { candidates: vec![1.2], ..short() }, 600e3);
    for i in 0..2 {
        loss.feedback(&tenth_lost(QUARTER * i, 15e3), NONE, false);
    }
    near(loss.rate(), 600e3);
}

/// A tenth is lost.
#[test]
fn the_preference_decides_between_high_and_low_rates() {
    let mut loss = started(Settings { preference: 0.2, not_increase_if_inherent_loss_less: false, ..short() }, 600e3);
    for i in 0..2 {
        loss.feedback(&tenth_lost(QUARTER * i, 15e3), 5e6, false);
    }
    assert!(loss.rate() > 600e3, "{}", loss.rate());
    let mut loss = started(Settings { preference: 0.05, ..short() }, 600e3);
    for i in 0..2 {
        loss.feedback(&tenth_lost(QUARTER * i, 15e3), 5e6, false);
    }
    assert!(loss.rate() < 600e3, "{}", loss.rate());
}

#[test]
fn the_bounds_hold() {
    let mut loss = started(config(), 1e6);
    loss.set_bounds(10e3, 1e6);
    loss.feedback(&received(0), NONE, false);
    assert!(loss.rate() <= 1e6);
}

#[test]
fn what_comes_through_is_a_candidate_unless_the_application_is_the_limit() {
    let run = |alr: bool| {
        let mut loss = started(short(), 600e3);
        loss.set_bounds(10e3, 1e9);
        loss.set_acknowledged(100e3);
        loss.feedback(&lost(0, 2), 5e6, alr);
        loss.rate()
    };
    assert!((100e3 + 1.0..600e3).contains(&run(true)), "{}", run(true));
    near(run(false), 100e3);
}

#[test]
fn it_is_no_less_than_what_comes_through() {
    for (factor, above) in [(1.0, true), (0.0, false)] {
        let mut loss = started(Settings { acknowledged_lower_bound: factor, ..short() }, 600e3);
        loss.set_bounds(10e3, 1e9);
        loss.set_acknowledged(500e3);
        loss.feedback(&lost(0, 2), NONE, false);
        if above {
            near(loss.rate(), 500e3);
        } else {
            assert!(loss.rate() < 500e3);
        }
    }
    let mut loss = started(short(), 2.5e6);
    loss.feedback(&lost(0, 2), NONE, false);
    assert!(loss.rate() < 1e6);
    loss.set_acknowledged(1e6);
    loss.feedback(&lost(QUARTER, 2), NONE, false);
    near(loss.rate(), 1e6);
    for i in 2..4 {
        loss.feedback(&received(QUARTER * i), NONE, false);
    }
    assert!(loss.rate() > 1e6, "it recovers from there");
}

#[test]
fn the_upper_bound_lowers_it() {
    let mut loss = started(Settings { candidates: vec![1.0], instant_balance: 10e3, ..short() }, 500e3);
    loss.set_bounds(10e3, 1e9);
    loss.set_acknowledged(100e3);
    loss.feedback(&tenth_lost(0, 15e3), NONE, false);
    near(loss.rate(), 200e3);
    assert_eq!(loss.state(), State::Falling);
}

#[test]
fn the_lower_bound_raises_it() {
    let mut loss = started(Settings { candidates: vec![1.0], acknowledged_lower_bound: 10.0, ..short() }, 500e3);
    loss.set_bounds(10e3, 1e9);
    loss.set_acknowledged(1e3);
    loss.feedback(&half_lost(0), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    loss.set_acknowledged(200e3);
    loss.feedback(&half_lost(500), NONE, false);
    near(loss.rate(), 2e6);
    assert_eq!(loss.state(), State::Padding);
}

#[test]
fn at_the_maximum_nothing_limits() {
    let mut loss = Loss::new(short());
    loss.set_bounds(10e3, 1e6);
    loss.feedback(&received(0), 2e6, false);
    assert_eq!(loss.result(), (1e6, State::Delay));
    loss.feedback(&half_lost(QUARTER), 2e6, false);
    assert!(loss.state() == State::Falling && loss.rate() < 1e6);
    recover(&mut loss, 2, 2e6, false, State::Delay);
    near(loss.rate(), 1e6);
}

#[test]
fn after_a_fall_to_the_upper_bound_it_grows_slowly() {
    let mut loss = started(Settings { padding: Span::from_secs(1), ..short() }, 2.5e6);
    loss.feedback(&half_lost(0), NONE, true);
    assert_eq!(loss.state(), State::Falling);
    let at_loss = loss.rate();
    for i in 1..3 {
        loss.feedback(&received(QUARTER * i), NONE, true);
    }
    assert_eq!(loss.state(), State::Padding);
    assert!((loss.rate() - at_loss).abs() <= 100e3, "{} after {at_loss}", loss.rate());
}

#[test]
fn padding_makes_what_comes_through_a_candidate() {
    let mut loss = started(Settings { padding: Span::from_secs(1), instant_balance: 10e6, ..short() }, 1e6);
    let mut quarter = 0;
    while loss.state() != State::Falling {
        loss.feedback(&lost(QUARTER * quarter, 2), NONE, true);
        quarter += 1;
    }
    let quarter = recover(&mut loss, quarter, NONE, true, State::Padding);
    assert!(loss.rate() > 900e3);
    loss.set_acknowledged(100e3);
    loss.feedback(&lost(QUARTER * quarter, 2), NONE, true);
    assert_eq!(loss.state(), State::Falling);
    near(loss.rate(), 100e3);
}

#[test]
fn padding_lasts_its_time_unless_the_estimate_grows() {
    let mut loss = started(Settings { padding: Span::from_secs(1), rampup_factor: 2.0, ..short() }, 2.5e6);
    loss.set_acknowledged(51e3);
    loss.feedback(&half_lost(0), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    near(loss.rate(), 51e3);
    loss.set_acknowledged(26e3);
    let from = recover(&mut loss, 1, NONE, false, State::Padding);
    let to = recover(&mut loss, from, NONE, false, State::Falling);
    assert_eq!(QUARTER * (to - 1 - from), 1000);
}

#[test]
fn without_padding_it_only_grows() {
    let mut loss = started(Settings { padding: Span::ZERO, ..short() }, 2.5e6);
    loss.feedback(&half_lost(0), NONE, false);
    recover(&mut loss, 1, NONE, false, State::Growing);
}

#[test]
fn the_rate_held_is_no_less_than_what_comes_through() {
    let mut loss = started(Settings { hold_factor: 10, ..short() }, 2.5e6);
    loss.feedback(&half_lost(0), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    loss.set_acknowledged(1e6);
    loss.feedback(&half_lost(QUARTER), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    near(loss.rate(), 1e6);
}

#[test]
fn the_hold_ends_when_the_delay_limits() {
    let mut loss = started(short(), 2.5e6);
    loss.feedback(&half_lost(0), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    let delay_based = loss.rate() + 10e3;
    for i in 1..3 {
        loss.feedback(&received(QUARTER * i), delay_based, false);
    }
    assert_eq!(loss.result(), (delay_based, State::Delay));
}

/// A tenth of the packets, but two thirds of the bytes.
#[test]
fn bytes_count() {
    let mut loss = started(short(), 500e3);
    loss.feedback(&tenth_lost(0, 20.0 * 15e3), NONE, false);
    assert_eq!(loss.state(), State::Falling);
    assert!(loss.rate() < 160e3, "{}", loss.rate());
}

#[test]
fn a_spike_of_losses_is_none_yet_but_a_second_is_and_one_at_a_burst_too() {
    let five = || {
        let mut loss = started(Settings { window: 5, ..Settings::default() }, 500e3);
        for i in 0..5 {
            loss.feedback(&received(QUARTER * i), 500e3, false);
        }
        loss
    };
    let mut loss = five();
    loss.feedback(&lost(5 * QUARTER, 2), 500e3, false);
    loss.feedback(&received(6 * QUARTER), 500e3, false);
    assert_eq!(loss.result(), (500e3, State::Delay));
    loss.feedback(&lost(7 * QUARTER, 2), 500e3, false);
    assert!(loss.state() == State::Falling && loss.rate() < 500e3);
    let mut loss = five();
    loss.feedback(&lost(5 * QUARTER, 5), 500e3, false);
    assert!(loss.state() == State::Falling && loss.rate() <= 500e3);
}
