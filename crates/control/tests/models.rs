//! The throughput models against each other, at their limits, and for their shape.

use paceline_control::models::{
    BytesPerSecond, Factor, Gamma, LossRate, PacketSize, PerAck, Seconds, TcpPath, Tfrc, TfrcPath, TimeoutTerm, Window,
    catalog, reno, veno,
};
use proptest::prelude::*;

fn p(value: f64) -> LossRate {
    LossRate::new(value).unwrap()
}

fn path(rtt: f64, rto: f64, b: f64, limit: f64) -> TcpPath {
    TcpPath {
        rtt: Seconds::new(rtt).unwrap(),
        rto: Seconds::new(rto).unwrap(),
        per_ack: PerAck::new(b).unwrap(),
        limit: Window::new(limit).unwrap(),
    }
}

fn tfrc_path(rtt: f64, rto: f64) -> TfrcPath {
    TfrcPath {
        rtt: Seconds::new(rtt).unwrap(),
        rto: Seconds::new(rto).unwrap(),
        segment: PacketSize::new(1000.0).unwrap(),
    }
}

/// Loss rates evenly over the orders of magnitude.
fn losses() -> impl Strategy<Value = f64> {
    (-8.0..0.0_f64).prop_map(|e| libm::pow(10.0, e))
}

fn times() -> impl Strategy<Value = f64> {
    (-4.0..1.0_f64).prop_map(|e| libm::pow(10.0, e))
}

/// Numbers from everywhere, and often from where they mean something.
fn absurd() -> impl Strategy<Value = f64> {
    let ends = [0.0, 0.5, 1.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, f64::NAN, f64::EPSILON];
    prop_oneof![
        1 => any::<f64>(),
        2 => proptest::sample::select(ends.to_vec()),
        3 => (-320.0..308.0_f64).prop_map(|e| libm::pow(10.0, e)),
        4 => 0.0..1.0_f64,
        4 => 1.0..100.0_f64,
    ]
}

fn timeout_terms() -> impl Strategy<Value = TimeoutTerm> {
    prop_oneof![Just(TimeoutTerm::Plain), Just(TimeoutTerm::AtMostOne)]
}

/// The same to twelve digits.
fn same(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= 1e-12
}

proptest! {
    #[test]
    fn gamma_of_a_half_is_reno(
        loss in losses(), rtt in times(), rto in times(), b in 1.0..4.0_f64, limit in 1.0..1000.0_f64,
    ) {
        for limit in [limit, f64::INFINITY] {
            let path = path(rtt, rto, b, limit);
            let (p, b, half) = (p(loss), path.per_ack, Factor::HALF);
            prop_assert!(same(veno::window(p, b, half), reno::window(p, b)));
            prop_assert!(same(veno::rounds(p, b, half), reno::rounds(p, b)));
            // on either side of the limit, not in the last digit before it
            if (veno::window(p, b, half) / limit - 1.0).abs() > 1e-12 {
                prop_assert!(same(veno::full(p, &path, half).get(), reno::full(p, &path).get()));
            }
            prop_assert!(same(veno::approximate(p, &path, half).get(), reno::approximate(p, &path).get()));
        }
    }

    #[test]
    fn tfrc_is_the_approximate_model_without_a_limit(
        loss in losses(), rtt in times(), rto in times(), gamma in 0.0..0.99_f64,
    ) {
        let gamma = Factor::new(gamma).unwrap();
        let model = veno::approximate(p(loss), &path(rtt, rto, 1.0, f64::INFINITY), gamma);
        let tfrc = Tfrc::NS2.with(gamma).rate(p(loss), &tfrc_path(rtt, rto));
        prop_assert!(same(tfrc.get(), 1000.0 * model.get()));
        prop_assert!(Tfrc::RFC5348.with(gamma).rate(p(loss), &tfrc_path(rtt, rto)).get() <= tfrc.get() * (1.0 + 1e-15));
    }

    #[test]
    fn the_inverse_comes_back(
        loss in losses(), rtt in times(), rto in times(), gamma in 0.0..0.99_f64, b in 1.0..4.0_f64,
        timeout_term in timeout_terms(),
    ) {
        let equation = Tfrc { gamma: Factor::new(gamma).unwrap(), per_ack: PerAck::new(b).unwrap(), timeout_term };
        let path = tfrc_path(rtt, rto);
        let back = equation.loss_rate(equation.rate(p(loss), &path), &path).unwrap();
        prop_assert!((back.get() / loss - 1.0).abs() < 1e-13, "{} for {loss}", back.get());
    }

    #[test]
    fn any_rate_above_the_least_comes_back(
        rate in (-6.0..15.0_f64).prop_map(|e| libm::pow(10.0, e)), rtt in times(), rto in times(),
        timeout_term in timeout_terms(),
    ) {
        let (equation, path) = (Tfrc { timeout_term, ..Tfrc::RFC5348 }, tfrc_path(rtt, rto));
        let min_rate = equation.rate(LossRate::new(1.0).unwrap(), &path).get();
        match equation.loss_rate(BytesPerSecond::new(rate).unwrap(), &path) {
            Ok(p) => prop_assert!((equation.rate(p, &path).get() / rate - 1.0).abs() < 1e-13),
            Err(error) => prop_assert!(rate < min_rate, "{error}"),
        }
    }

    #[test]
    fn more_loss_or_delay_is_never_faster(
        loss in losses(), more in 1.0..2.0_f64, rtt in times(), rto in 1.0..100.0_f64, b in 1.0..4.0_f64,
        gamma in 0.0..0.99_f64,
    ) {
        // a timeout is never shorter than a round trip; were it, more timeouts could be quicker
        let rto = rto * rtt * more;
        let (low, high) = (p(loss), p((loss * more).min(1.0)));
        let gamma = Factor::new(gamma).unwrap();
        let (near, far) = (path(rtt, rto, b, f64::INFINITY), path(rtt * more, rto, b, f64::INFINITY));
        let slack = 1.0 + 1e-12;
        for (better, worse) in [((low, &near), (high, &near)), ((low, &near), (low, &far))] {
            for model in [veno::full, veno::approximate] {
                prop_assert!(model(worse.0, worse.1, gamma).get() <= model(better.0, better.1, gamma).get() * slack);
            }
            let td = |at: (LossRate, &TcpPath)| veno::duplicates_only(at.0, at.1.rtt, at.1.per_ack, gamma).get();
            prop_assert!(td(worse) <= td(better) * slack);
            let tfrc = |at: (LossRate, &TcpPath)| {
                Tfrc::RFC5348.with(gamma).rate(at.0, &TfrcPath::new(at.1.rtt, PacketSize::new(1.0).unwrap())).get()
            };
            prop_assert!(tfrc(worse) < tfrc(better) || more < 1.0 + 1e-9 || loss * more > 1.0);
        }
    }

    #[test]
    fn a_smaller_cut_is_never_slower_without_timeouts(
        loss in losses(), gamma in 0.0..0.95_f64, more in 0.0..0.04_f64, b in 1.0..4.0_f64,
    ) {
        let at = |g: f64| {
            let [rtt, b] = [0.1, b];
            veno::duplicates_only(p(loss), Seconds::new(rtt).unwrap(), PerAck::new(b).unwrap(), Factor::new(g).unwrap())
        };
        prop_assert!(at(gamma + more).get() >= at(gamma).get() * (1.0 - 1e-12));
    }

    #[test]
    fn gamma_falls_with_the_queue_and_with_the_window(
        base in times(), queueing in times(), more in 1.0..3.0_f64, w_max in 1.0..1000.0_f64,
    ) {
        for law in [Gamma::TCP, Gamma::TFRC] {
            let at = |queueing: f64, w_max: f64| {
                let s = |s: f64| Seconds::new(s).unwrap();
                law.mean(s(base + queueing), s(base), Window::new(w_max).unwrap()).unwrap().get()
            };
            let g = at(queueing, w_max);
            prop_assert!((law.theta2().get()..=law.theta1().get()).contains(&g));
            prop_assert!(at(queueing * more, w_max) <= g && at(queueing, w_max * more) <= g);
        }
    }

    /// Whatever numbers come: an error that names an argument, or a result that is a number.
    #[test]
    fn absurd_arguments(which in 0..catalog::MODELS.len(), given in proptest::collection::vec(absurd(), 8)) {
        let model = &catalog::MODELS[which];
        let arguments = &given[..model.arguments.len()];
        let mut results = vec![f64::NAN; model.results.len()];
        match (model.evaluate)(arguments, &mut results) {
            Ok(()) => prop_assert!(results.iter().all(|r| r.is_finite() && *r >= 0.0), "{}: {results:?}", model.name),
            Err(error) => prop_assert!(model.arguments.iter().any(|a| a.name == error.argument), "{error}"),
        }
        if let Some(inverse) = model.inverse {
            let mut p = [f64::NAN];
            match inverse(arguments, &mut p) {
                Ok(()) => prop_assert!(p[0] > 0.0 && p[0] <= 1.0, "{}: {p:?}", model.name),
                Err(error) => prop_assert!(error.argument != "p", "{error}"),
            }
        }
    }

    #[test]
    fn the_share_of_timeouts_is_a_share(loss in losses(), window in 0.5..1e6_f64, more in 1.0..2.0_f64) {
        let share = reno::timeout_share(p(loss), window);
        prop_assert!(share > 0.0 && share <= 1.0);
        prop_assert!(reno::timeout_share(p(loss), window * more) <= share * (1.0 + 1e-12), "larger windows have more duplicates");
        prop_assert!((1.0..=64.0).contains(&reno::backoff(p(loss))));
    }
}

/// As p falls to 0, rate times sqrt(p) comes to rest at the square-root law's constant.
#[test]
fn towards_no_loss() {
    for b in [1.0, 2.0] {
        for gamma in [0.0, 0.5, 0.8, 0.95] {
            let (g, path) = (Factor::new(gamma).unwrap(), path(0.1, 0.4, b, f64::INFINITY));
            let constant = ((1.0 + gamma) / (2.0 * b * (1.0 - gamma))).sqrt();
            for (loss, within) in [(1e-8_f64, 1e-3), (1e-12, 1e-5), (1e-16, 1e-7)] {
                let root = 0.1 * loss.sqrt() / constant;
                for rate in [
                    veno::duplicates_only(p(loss), path.rtt, path.per_ack, g).get() * root,
                    veno::square_root(p(loss), path.rtt, path.per_ack, g).get() * root,
                    veno::full(p(loss), &path, g).get() * root,
                    veno::approximate(p(loss), &path, g).get() * root,
                    Tfrc { gamma: g, per_ack: path.per_ack, timeout_term: TimeoutTerm::Plain }
                        .rate(p(loss), &tfrc_path(0.1, 0.4))
                        .get()
                        * root
                        / 1000.0,
                ] {
                    assert!((rate - 1.0).abs() < within, "b {b} gamma {gamma} p {loss}: {rate}");
                }
            }
            // with a limit, that limit
            let limited = TcpPath { limit: Window::new(20.0).unwrap(), ..path };
            assert!((veno::full(p(1e-12), &limited, g).get() / 200.0 - 1.0).abs() < 1e-6);
            assert!((veno::approximate(p(1e-12), &limited, g).get() / 200.0 - 1.0).abs() < 1e-12);
        }
    }
}

/// At p = 1 only timeouts are left, 64 T_0 each; the approximations come to their own values.
#[test]
fn towards_nothing_but_loss() {
    for (b, gamma) in [(1.0, 0.5), (2.0, 0.8)] {
        let (g, path) = (Factor::new(gamma).unwrap(), path(0.1, 0.4, b, 20.0));
        assert!(same(veno::full(p(1.0), &path, g).get(), 1.0 / (64.0 * 0.4)));
        assert!(same(reno::full(p(1.0), &path).get(), 1.0 / (64.0 * 0.4)));
        let near = veno::full(p(1.0 - 1e-9), &path, g).get();
        assert!((near * 64.0 * 0.4 - 1.0).abs() < 1e-6, "continuous there: {near}");
        let root = (2.0 * b * (1.0 - gamma) / (1.0 + gamma)).sqrt();
        assert!(same(veno::approximate(p(1.0), &path, g).get(), 1.0 / (0.1 * root + 0.4 * 33.0)));
    }
}

/// Where the receiver's window begins to bind the two branches of the full model meet for Reno with b = 2, and are
/// (1 - b (1-gamma)) / 2 of a round apart otherwise.
#[test]
fn where_the_limit_begins_to_bind() {
    for (b, gamma) in [(2.0, 0.5), (1.0, 0.5), (1.0, 0.8), (2.0, 0.95)] {
        let (g, loss) = (Factor::new(gamma).unwrap(), p(0.002));
        let window = veno::window(loss, PerAck::new(b).unwrap(), g);
        let rate = |limit: f64| veno::full(loss, &path(0.1, 1e-12, b, limit), g).get();
        let (free, bound) = (rate(window * (1.0 + 1e-13)), rate(window * (1.0 - 1e-13)));
        let sent = (1.0 - 0.002) / 0.002 + window;
        let timeouts = reno::timeout_share(loss, window) / (1.0 - 0.002);
        let rounds_apart = (sent + timeouts) / bound / 0.1 - (sent + timeouts) / free / 0.1;
        assert!((rounds_apart - (1.0 - b * (1.0 - gamma)) / 2.0).abs() < 1e-6, "b {b} gamma {gamma}: {rounds_apart}");
    }
}

/// Numbers worked out apart from the program, from the formulas of PFTK as they are printed.
#[test]
fn reno_by_hand() {
    // p = 0.02, b = 2: E[W] = 2/3 + sqrt(8*0.98/0.12 + 4/9) = 2/3 + sqrt(65.333333 + 0.444444)
    let loss = p(0.02);
    assert!((reno::window(loss, PerAck::TWO) - (2.0 / 3.0 + 65.777_777_778_f64.sqrt())).abs() < 1e-9);
    // E[X] = 2/3 + sqrt(4*0.98/0.06 + 4/9): b/2 E[W] with b = 2
    assert!((reno::rounds(loss, PerAck::TWO) - reno::window(loss, PerAck::TWO)).abs() < 1e-9);
    // f(0.02) = 1 + 0.02 + 2*0.0004 + 4*0.000008 + 8*1.6e-7 + 16*3.2e-9 + 32*6.4e-11
    assert!((reno::backoff(loss) - 1.020_833_333_248).abs() < 1e-12);
    // Q-hat(10): 1-0.98^3 = 0.058808, 0.98^3 = 0.941192, 1-0.98^7 = 0.131874, 1-0.98^10 = 0.182927
    let share = 0.058_808 * (1.0 + 0.941_192 * 0.131_874_488) / 0.182_927_193;
    assert!((reno::timeout_share(loss, 10.0) - share).abs() < 1e-6);
}
