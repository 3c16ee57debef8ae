//! What every scheme of TCP must do under every profile, on an ideal path.

use crate::common::{Outcome, Path, run};
use paceline_control::{Machine, Profile, Recovery, Scheme, TcpController, WindowController, registry};
use paceline_flow::tcp::TcpConfig;
use paceline_units::Time;

/// Of the seconds 10 to 60.
fn minute(rtt_ms: u64, loss: f64, seed: u64) -> Path {
    lasting(60.0, Path::grid(rtt_ms, loss, seed))
}

/// From the second 10 on.
fn lasting(seconds: f64, path: Path) -> Path {
    Path { duration: Time::from_secs_f64(seconds), warmup: Time::from_secs_f64(10.0), ..path }
}

fn flow(name: &str, profile: Profile, path: &Path, change: impl FnOnce(&mut TcpConfig)) -> Outcome {
    let scheme = registry::scheme(name).unwrap();
    let mut config = TcpConfig::new(profile, scheme);
    change(&mut config);
    run(&config, TcpController::new(scheme, profile, &[]).unwrap(), path)
}

fn outcome(name: &str, profile: Profile, loss: f64, window: Option<u32>) -> Outcome {
    // what the receiver's window holds is the same in each round trip
    let seconds = if window.is_some() { 20.0 } else { 60.0 };
    flow(name, profile, &lasting(seconds, Path::grid(50, loss, 1)), |config| {
        config.receive_window = window.unwrap_or(config.receive_window);
    })
}

/// The schemes that ride on TCP's machine; of them only the one that PACELINE_SCHEME names, if it does.
#[allow(clippy::disallowed_methods, reason = "a test asks what is wanted of it")]
fn schemes() -> Vec<&'static Scheme> {
    let only = std::env::var("PACELINE_SCHEME").ok();
    let wanted = |scheme: &&Scheme| only.as_deref().is_none_or(|name| name == scheme.name);
    let found: Vec<_> = registry::schemes().filter(|s| matches!(s.machine, Machine::Tcp(_))).filter(wanted).collect();
    assert!(!found.is_empty(), "no scheme {only:?}");
    found
}

fn each(test: impl Fn(&str, Profile)) {
    for scheme in schemes() {
        for profile in Profile::ALL.into_iter().filter(|&profile| carries(profile, scheme)) {
            test(scheme.name, profile);
        }
    }
}

/// ns-2 finds no losses by time.
fn carries(profile: Profile, scheme: &Scheme) -> bool {
    !matches!(profile, Profile::Ns2 | Profile::Ns2Linux) || scheme.recovery(profile) != Some(Recovery::Rack)
}

/// Whether it takes its rate from what is delivered, rather than losses for a sign of too much: BBR's, not Prague, which halves.
fn models_its_path(name: &str) -> bool {
    let scheme = registry::scheme(name).unwrap();
    let needs = TcpController::new(scheme, Profile::Rfc, &[]).unwrap().needs();
    needs.deliveries && !needs.l4s
}

#[test]
fn fills_a_clean_path() {
    each(|name, profile| {
        let o = outcome(name, profile, 0.0, None);
        // Tahoe empties the path at every loss; the rfc profile's headers take 2.7 % of it
        let min_goodput = if name == "ledbat-plus-plus" { 8.1 } else { 8.5 }; // its slowdowns take a tenth
        assert!((min_goodput..=10.001).contains(&o.goodput_mbps), "{name} {profile:?}: {o:?}");
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
        // a model of the path makes light of 1 %: picoquic has 7.3 to 8.6 Mbit/s of BBR 3 on such a path
        let (of_one, of_five) = if models_its_path(name) { (5.0..10.0, 0.5..9.5) } else { (0.8..6.0, 0.1..1.5) };
        assert!(of_one.contains(&one.goodput_mbps), "{name} {profile:?}: {one:?}");
        assert!(of_five.contains(&five.goodput_mbps), "{name} {profile:?}: {five:?}");
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
        let of = |seed| flow(name, profile, &lasting(20.0, Path::grid(50, 0.01, seed)), |_| {});
        let whole = of(1);
        assert_eq!(whole, of(1), "{name} {profile:?}");
        assert_ne!(whole, of(2), "{name} {profile:?}");
    });
}

/// Where each retransmission arrives, selective acknowledgements need no timeout: RFC 6675 has no loss wait for one but those
/// of the end of a transfer and of a window too small for three duplicates, which there are not.
#[test]
fn a_loss_whose_repair_arrives_costs_no_timeout() {
    for (name, profile) in [("sack", Profile::Rfc), ("cubic", Profile::Rfc), ("cubic", Profile::Linux)] {
        for (loss, goodput) in [(0.003, 4.2..5.4), (0.01, 2.1..2.8)] {
            let paths: Vec<Path> = (1..=8).map(|seed| Path { spared: true, ..minute(50, loss, seed) }).collect();
            let all: Vec<Outcome> = paths.iter().map(|path| flow(name, profile, path, |_| {})).collect();
            let timeouts: u64 = all.iter().map(|o| o.timeouts).sum();
            assert_eq!(timeouts, 0, "{name} {profile:?} {loss}");
            let mean = all.iter().map(|o| o.goodput_mbps).sum::<f64>() / all.len() as f64;
            // between Reno's 1.3 / sqrt(p) and CUBIC's Reno-friendly region with its 9/17
            assert!(goodput.contains(&mean), "{name} {profile:?} {loss}: {mean}");
        }
    }
}

/// A lost SYN costs seconds at most and no threshold. The receiver's window is the path's, so nothing else is lost: slow start
/// is there within ten round trips of 200 ms, congestion avoidance from two segments on would take 160 to 320 of them.
#[test]
fn a_lost_syn_costs_little() {
    for scheme in schemes() {
        for profile in [Profile::Rfc, Profile::Linux] {
            let name = scheme.name;
            let of = |lost_first| {
                // Vegas and LEDBAT grow by a segment a round trip, LEDBAT++ slows down now and then, Prague starts at 100 kbit/s;
                // all others are there by then or not
                let slow = matches!(name, "vegas" | "ledbat" | "ledbat-plus-plus" | "prague");
                let seconds = if slow { 60.0 } else { 20.0 };
                // what a burst of slow start queues, waits: up to half of the window, and none is lost
                let path = Path { lost_first, waiting: 160, ..lasting(seconds, Path::grid(200, 0.0, 1)) };
                flow(name, profile, &path, |config| config.receive_window = 160)
            };
            let (whole, late) = (of(0), of(1));
            assert_eq!((whole.timeouts, late.timeouts, late.retransmitted), (0, 0, 0), "{name} {profile:?}");
            let share = late.goodput_mbps / whole.goodput_mbps;
            // Vegas leaves slow start on the way, and grows by a segment a round trip from there
            let min_share = if name == "vegas" { 0.85 } else { 0.97 };
            // one slowdown of LEDBAT++ more or less falls into the minute
            let max_share = if name == "ledbat-plus-plus" { 1.05 } else { 1.01 };
            assert!((min_share..=max_share).contains(&share), "{name} {profile:?}: {late:?} of {whole:?}");
        }
    }
}

/// A first window of 10,000 segments, of which all but 60 or so are lost, under RFC 5681's threshold for each segment's first
/// timeout: with selective acknowledgements the path is full again within seconds, without them after a few timeouts.
#[test]
fn an_absurd_initial_window_is_survived() {
    let of = |name: &str| flow(name, Profile::Rfc, &minute(50, 0.0, 1), |config| config.initial_window = 10_000);
    for (name, goodput) in [
        ("sack", 9.0..10.5), // bytes of before the tenth second are acknowledged after it
        ("cubic", 9.0..10.5),
        ("tahoe", 6.0..9.5),
        ("newreno", 1.2..9.8),
        ("reno", 1.2..9.8),
        ("veno", 1.2..9.8),
        ("vegas", 0.6..9.8), // slow start in every other round trip, and delayed acknowledgements in its differences
    ] {
        let o = of(name);
        assert!(goodput.contains(&o.goodput_mbps), "{name}: {o:?}");
        assert!(o.timeouts <= 4, "{name}: {o:?}");
    }
}
