//! A run that stops for decisions: steps are as long as asked, the same decisions give the same bits, and what is told is true.

use paceline_sim::environment::{Acts, Environment, FEATURES, Features, MOST_IN_FLIGHT, Step, Stepped};
use paceline_sim::scenario::Document;
use paceline_units::Span;

const LINK: &str = r#"
duration = "20 s"
[link.bottleneck]
rate = "12 Mbit/s"
delay = "20 ms"
queue = { kind = "droptail", limit = "100 packets" }
[flow.own]
cc = "cubic"
params = { beta = 0.7 }
"#;

fn environment(text: &str, acts: Acts, step: Step) -> Environment {
    let document = Document::parse(text, "link.toml").unwrap();
    Environment::new(document, &mut |_| Err("no files".to_owned()), &[], ("own", acts, step)).unwrap()
}

fn ms(many: u64) -> Step {
    Step::Time(Span::from_millis(many))
}

fn of(told: &Features, name: &str) -> f64 {
    told[FEATURES.iter().position(|feature| *feature == name).unwrap()]
}

/// A whole run under one rule.
fn run(environment: &mut Environment, seed: u64, decide: impl Fn(&Features) -> f64) -> Vec<Stepped> {
    let mut told = vec![environment.reset(seed).unwrap()];
    while !told.last().unwrap().is_over {
        let decision = decide(&told.last().unwrap().features);
        told.push(environment.step(decision).unwrap());
    }
    told
}

fn sum(told: &[Stepped], name: &str) -> f64 {
    told.iter().map(|step| of(&step.features, name)).sum()
}

#[test]
fn a_window_is_what_is_in_flight() {
    let mut own = environment(LINK, Acts::Window, ms(10));
    let told = run(&mut own, 1, |_| 20.0);
    // 20 segments in each 40 ms, what two segments take to be sent, and what one waits for the second that has it acknowledged
    let rate = sum(&told, "acked_bytes") * 8.0 / 20.0;
    assert!((5.2e6..5.8e6).contains(&rate), "{rate}");
    assert_eq!(sum(&told, "lost_bytes"), 0.0);
    let last = told.iter().rfind(|step| !of(&step.features, "rtt_s").is_nan()).unwrap().features;
    assert!((0.04..0.045).contains(&of(&last, "rtt_s")), "{last:?}");
    assert_eq!(of(&last, "window_segments"), 20.0);
    let durations: Vec<f64> = told[1..told.len() - 1].iter().map(|step| of(&step.features, "duration_s")).collect();
    assert!(durations.iter().all(|duration| (duration - 0.01).abs() < 1e-9), "{durations:?}");
}

#[test]
fn a_rate_is_what_is_sent() {
    let mut own = environment(LINK, Acts::Rate, ms(50));
    let told = run(&mut own, 1, |_| 4e6);
    let rate = sum(&told, "sent_bytes") * 8.0 / 20.0;
    assert!((3.9e6..4.05e6).contains(&rate), "{rate}");
    assert_eq!(of(&told.last().unwrap().features, "window_segments"), MOST_IN_FLIGHT);
    // twice what the link carries: a full queue, and half is lost
    let told = run(&mut own, 1, |_| 24e6);
    let later = &told[100..];
    let (acked, lost) = (sum(later, "acked_bytes"), sum(later, "lost_bytes"));
    assert!((0.45..0.56).contains(&(lost / (acked + lost))), "{acked} {lost}");
    assert!(of(&told.last().unwrap().features, "rtt_s") > 0.1);
}

#[test]
fn steps_by_acknowledgements_have_so_many() {
    let mut own = environment(LINK, Acts::Window, Step::Segments(10));
    let told = run(&mut own, 1, |_| 25.0);
    let segment = of(&told[1].features, "segment_bytes");
    for step in &told[1..told.len() - 1] {
        let acked = of(&step.features, "acked_bytes") / segment;
        assert!((10.0..12.0).contains(&acked), "{step:?}");
    }
    assert!(told.len() > 1000, "{}", told.len());
}

#[test]
fn the_same_decisions_give_the_same_bits() {
    let lossy = LINK.replace("delay =", "loss = { rate = \"1 %\" }\ndelay =");
    let rule = |told: &Features| {
        let window = of(told, "window_segments");
        if of(told, "lost_bytes") > 0.0 { (window * 0.8).max(2.0) } else { window + 0.5 }
    };
    let bits =
        |told: &[Stepped]| -> Vec<u64> { told.iter().flat_map(|step| step.features.map(f64::to_bits)).collect() };
    let mut own = environment(&lossy, Acts::Window, ms(20));
    let first = run(&mut own, 3, rule);
    let other = run(&mut own, 4, rule);
    let again = run(&mut own, 3, rule);
    let fresh = run(&mut environment(&lossy, Acts::Window, ms(20)), 3, rule);
    assert_eq!(bits(&first), bits(&again));
    assert_eq!(bits(&first), bits(&fresh));
    assert_ne!(bits(&first), bits(&other));
    assert!(sum(&first, "lost_bytes") > 0.0);
}

#[test]
fn nothing_back_is_a_timeout() {
    let dead = LINK.replace("delay =", "outage = [{ from = \"5 s\", to = \"9 s\" }]\ndelay =");
    for acts in [Acts::Window, Acts::Rate] {
        let decision = if acts == Acts::Window { 20.0 } else { 4e6 };
        let told = run(&mut environment(&dead, acts, ms(100)), 1, |_| decision);
        assert!(sum(&told, "timeouts") >= 1.0, "{acts:?}");
        let silent: Vec<_> = told.iter().filter(|s| (6.0..9.0).contains(&of(&s.features, "time_s"))).copied().collect();
        assert_eq!(sum(&silent, "acked_bytes"), 0.0, "{acts:?}");
        let after: Vec<_> = told.iter().filter(|s| of(&s.features, "time_s") > 12.0).copied().collect();
        assert!(sum(&after, "acked_bytes") * 8.0 / 8.0 > 2e6, "{acts:?}: it goes on");
    }
}

#[test]
fn a_transfer_ends() {
    let short = LINK.replace("params =", "app = { kind = \"ftp\", size = \"1 MB\" }\nparams =");
    let mut own = environment(&short, Acts::Window, ms(100));
    own.reset(1).unwrap();
    let steps = (1..).find(|_| own.step(50.0).unwrap().is_done).unwrap();
    assert!((7..12).contains(&steps), "{steps}");
}

#[test]
fn it_begins_when_the_flow_does() {
    let late = LINK.replace("params =", "start = \"3 s\"\nparams =");
    let told = environment(&late, Acts::Window, ms(10)).reset(1).unwrap();
    assert!((of(&told.features, "time_s") - 3.04).abs() < 0.01, "{told:?}");
    assert_eq!(of(&told.features, "begun"), 1.0);
}

#[test]
fn mistakes_are_named() {
    let made = |text: &str, flow: &str| {
        let document = Document::parse(text, "link.toml").unwrap();
        let found = Environment::new(document, &mut |_| Err(String::new()), &[], (flow, Acts::Window, ms(10)));
        found.unwrap_err().to_string()
    };
    assert_eq!(made(LINK, "other"), "link.toml:7: flow.other: there is no such flow (flows: `own`)");
    let many = LINK.replace("params =", "count = 3\nparams =");
    assert!(made(&many, "own").contains("an agent decides for one flow: leave `count` out"), "{}", made(&many, "own"));
}
