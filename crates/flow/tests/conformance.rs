//! What every scheme of TCP must do under every profile, on an ideal path.

mod common;

use common::{Outcome, Path, run};
use paceline_control::{Machine, Profile, TcpController, registry};
use paceline_flow::tcp::TcpConfig;
use paceline_units::Time;

fn outcome(name: &str, profile: Profile, loss: f64, window: Option<u32>) -> Outcome {
    let scheme = registry::scheme(name).unwrap();
    let mut config = TcpConfig::new(profile, scheme);
    config.receive_window = window.unwrap_or(config.receive_window);
    let path =
        Path { duration: Time::from_secs_f64(60.0), warmup: Time::from_secs_f64(10.0), ..Path::grid(50, loss, 1) };
    let controller = TcpController::new(scheme, profile, &[]).unwrap();
    run(&config, controller, &path)
}

fn each(test: impl Fn(&str, Profile)) {
    for scheme in registry::schemes().filter(|scheme| matches!(scheme.machine, Machine::Tcp(_))) {
        for profile in Profile::ALL {
            test(scheme.name, profile);
        }
    }
}

#[test]
fn fills_a_clean_path() {
    each(|name, profile| {
        let o = outcome(name, profile, 0.0, None);
        // Tahoe empties the path at every loss; the rfc profile's headers take 2.7 % of it
        assert!((8.5..=10.001).contains(&o.goodput_mbps), "{name} {profile:?}: {o:?}");
        assert!(o.loss_rate < 0.01, "{name} {profile:?}: {o:?}");
        assert!(o.mean_queue <= 49.0, "{name} {profile:?}: {o:?}");
        assert_eq!(o.timeouts, 0, "{name} {profile:?}: {o:?}");
    });
}

#[test]
fn survives_random_loss_and_gives_way() {
    each(|name, profile| {
        let one = outcome(name, profile, 0.01, None);
        let five = outcome(name, profile, 0.05, None);
        assert!((0.8..6.0).contains(&one.goodput_mbps), "{name} {profile:?}: {one:?}");
        assert!((0.1..1.5).contains(&five.goodput_mbps), "{name} {profile:?}: {five:?}");
        assert!(five.goodput_mbps < one.goodput_mbps, "{name} {profile:?}");
        assert!(five.mean_window < one.mean_window, "{name} {profile:?}");
    });
}

#[test]
fn keeps_to_the_receivers_window() {
    each(|name, profile| {
        let o = outcome(name, profile, 0.0, Some(10));
        let scheme = registry::scheme(name).unwrap();
        let segment = f64::from(TcpConfig::new(profile, scheme).segment);
        // 10 segments in 50 ms, and little more than that
        let ceiling = 10.0 * segment * 8.0 / 0.05 / 1e6;
        assert!((0.9 * ceiling..=1.001 * ceiling).contains(&o.goodput_mbps), "{name} {profile:?}: {o:?} {ceiling}");
        assert!(o.loss_rate == 0.0, "{name} {profile:?}: {o:?}");
    });
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    each(|name, profile| {
        let (a, b) = (outcome(name, profile, 0.01, None), outcome(name, profile, 0.01, None));
        assert_eq!(a, b);
    });
}
