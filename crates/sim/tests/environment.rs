//! A run that stops for decisions: steps are as long as asked, the same decisions give the same bits, and what is told is true.

use paceline_scenario::{Document, Scenario};
use paceline_sim::environment::{Acts, Driver, Environment, FEATURES, Features, MAX_IN_FLIGHT, Step, Stepped};
use paceline_sim::{RunOptions, Summary, simulate};
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

fn driven(text: &str, driver: Driver, step: Step) -> Result<Environment, String> {
    let document = Document::parse(text, "link.toml").unwrap();
    let made = Environment::new(document, &mut |_| Err("no files".to_owned()), &[], ("own", driver, step));
    made.map_err(|error| error.to_string())
}

fn environment(text: &str, acts: Acts, step: Step) -> Environment {
    driven(text, Driver::Agent(acts), step).unwrap()
}

fn ms(many: u64) -> Step {
    Step::Time(Span::from_millis(many))
}

fn of(features: &Features, name: &str) -> f64 {
    features[FEATURES.iter().position(|feature| *feature == name).unwrap()]
}

/// A whole run under one rule.
fn run(environment: &mut Environment, seed: u64, decide: impl Fn(&Features) -> f64) -> Vec<Stepped> {
    let mut steps = vec![environment.reset(seed).unwrap()];
    while !steps.last().unwrap().is_over {
        let decision = decide(&steps.last().unwrap().features);
        steps.push(environment.step(decision).unwrap());
    }
    steps
}

fn sum(steps: &[Stepped], name: &str) -> f64 {
    steps.iter().map(|step| of(&step.features, name)).sum()
}

#[test]
fn a_window_is_what_is_in_flight() {
    let mut own = environment(LINK, Acts::Window, ms(10));
    let steps = run(&mut own, 1, |_| 20.0);
    // 20 segments in each 40 ms, what two segments take to be sent, and what one waits for the second that has it acknowledged
    let rate = sum(&steps, "acked_bytes") * 8.0 / 20.0;
    assert!((5.2e6..5.8e6).contains(&rate), "{rate}");
    assert_eq!(sum(&steps, "lost_bytes"), 0.0);
    let last = steps.iter().rfind(|step| !of(&step.features, "rtt_s").is_nan()).unwrap().features;
    assert!((0.04..0.045).contains(&of(&last, "rtt_s")), "{last:?}");
    assert_eq!(of(&last, "window_segments"), 20.0);
    let durations: Vec<f64> = steps[1..steps.len() - 1].iter().map(|step| of(&step.features, "duration_s")).collect();
    assert!(durations.iter().all(|duration| (duration - 0.01).abs() < 1e-9), "{durations:?}");
}

#[test]
fn a_rate_is_what_is_sent() {
    let mut own = environment(LINK, Acts::Rate, ms(50));
    let steps = run(&mut own, 1, |_| 4e6);
    let rate = sum(&steps, "sent_bytes") * 8.0 / 20.0;
    assert!((3.9e6..4.05e6).contains(&rate), "{rate}");
    assert_eq!(of(&steps.last().unwrap().features, "window_segments"), MAX_IN_FLIGHT);
    // twice what the link carries: a full queue, and half is lost
    let steps = run(&mut own, 1, |_| 24e6);
    let later = &steps[100..];
    let (acked, lost) = (sum(later, "acked_bytes"), sum(later, "lost_bytes"));
    assert!((0.45..0.56).contains(&(lost / (acked + lost))), "{acked} {lost}");
    assert!(of(&steps.last().unwrap().features, "rtt_s") > 0.1);
}

#[test]
fn steps_by_acknowledgements_have_so_many() {
    let mut own = environment(LINK, Acts::Window, Step::Segments(10));
    let steps = run(&mut own, 1, |_| 25.0);
    let segment = of(&steps[1].features, "segment_bytes");
    for step in &steps[1..steps.len() - 1] {
        let acked = of(&step.features, "acked_bytes") / segment;
        assert!((10.0..12.0).contains(&acked), "{step:?}");
    }
    assert!(steps.len() > 1000, "{}", steps.len());
}

#[test]
fn the_same_decisions_give_the_same_bits() {
    let lossy = LINK.replace("delay =", "loss = { rate = \"1 %\" }\ndelay =");
    let rule = |features: &Features| {
        let window = of(features, "window_segments");
        if of(features, "lost_bytes") > 0.0 { (window * 0.8).max(2.0) } else { window + 0.5 }
    };
    let all =
        |steps: &[Stepped]| -> Vec<u64> { steps.iter().flat_map(|step| step.features.map(f64::to_bits)).collect() };
    let mut own = environment(&lossy, Acts::Window, ms(20));
    let first = run(&mut own, 3, rule);
    let other = run(&mut own, 4, rule);
    let again = run(&mut own, 3, rule);
    let fresh = run(&mut environment(&lossy, Acts::Window, ms(20)), 3, rule);
    assert_eq!(all(&first), all(&again));
    assert_eq!(all(&first), all(&fresh));
    assert_ne!(all(&first), all(&other));
    assert!(sum(&first, "lost_bytes") > 0.0);
}

#[test]
fn nothing_back_is_a_timeout() {
    let dead = LINK.replace("delay =", "outage = [{ from = \"5 s\", to = \"9 s\" }]\ndelay =");
    for acts in [Acts::Window, Acts::Rate] {
        let decision = if acts == Acts::Window { 20.0 } else { 4e6 };
        let steps = run(&mut environment(&dead, acts, ms(100)), 1, |_| decision);
        assert!(sum(&steps, "timeouts") >= 1.0, "{acts:?}");
        let silent: Vec<_> =
            steps.iter().filter(|s| (6.0..9.0).contains(&of(&s.features, "time_s"))).copied().collect();
        assert_eq!(sum(&silent, "acked_bytes"), 0.0, "{acts:?}");
        let after: Vec<_> = steps.iter().filter(|s| of(&s.features, "time_s") > 12.0).copied().collect();
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
    let step = environment(&late, Acts::Window, ms(10)).reset(1).unwrap();
    assert!((of(&step.features, "time_s") - 3.04).abs() < 0.01, "{step:?}");
    assert_eq!(of(&step.features, "begun"), 1.0);
}

#[test]
fn mistakes_are_named() {
    let made = |text: &str, flow: &str| {
        let document = Document::parse(text, "link.toml").unwrap();
        let found =
            Environment::new(document, &mut |_| Err(String::new()), &[], (flow, Driver::Agent(Acts::Window), ms(10)));
        found.unwrap_err().to_string()
    };
    assert_eq!(made(LINK, "other"), "link.toml:7: flow.other: there is no such flow (flows: `own`)");
    let many = LINK.replace("params =", "count = 3\nparams =");
    assert!(made(&many, "own").contains("an agent decides for one flow: leave `count` out"), "{}", made(&many, "own"));
}

const CALL: &str = r#"
duration = "20 s"
warmup = "3 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "25 ms"
queue = { kind = "droptail", limit = "100 ms" }
[flow.own]
cc = "nada"
params = { max_rate = 2.5e6 }
rtp = { feedback_interval = "50 ms" }
app = { kind = "encoder", frame_rate = 30, max_rate = "2.5 Mbit/s" }
[flow.rival]
cc = "cubic"
start = "8 s"
"#;

/// What the same scenario gives without anybody who looks; numbers as their text, in which all their bits stand.
fn undisturbed(text: &str, cc: &str, seed: u64) -> Summary {
    let mut document = Document::parse(text, "link.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err(String::new())).unwrap();
    if scenario.flows()[0].cc != cc {
        document.hand_over("own", cc).unwrap();
    }
    let scenario = Scenario::check(&document, &mut |_| Err(String::new())).unwrap();
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary
}

fn bits(summary: &Summary) -> String {
    let Summary { flows, queues, groups, engine, .. } = summary;
    format!("{flows:?} {queues:?} {groups:?} {engine:?}")
}

/// A run of a baseline, in steps of a length that fits nothing, and what it was held against itself.
fn baseline(text: &str, cc: &str, seed: u64) -> (Vec<Stepped>, Summary) {
    let mut own = driven(text, Driver::Baseline(cc.to_owned()), Step::Time(Span::from_micros(33_333))).unwrap();
    let steps = run(&mut own, seed, |_| 1.0);
    let summary = own.summary().unwrap().unwrap();
    assert_eq!(bits(&summary), bits(&undisturbed(text, cc, seed)), "{cc}");
    assert!(own.summary().unwrap().is_none(), "the run is over");
    (steps, summary)
}

#[test]
fn a_baseline_is_the_flow_that_it_is_without_anybody_looking() {
    let lossy = LINK.replace("delay =", "loss = { rate = \"1 %\" }\ndelay =");
    for cc in [
        "newreno",
        "sack",
        "cubic",
        "vegas",
        "veno",
        "bbr",
        "bbr3",
        "dctcp",
        "c4",
        "copa",
        "ledbat",
        "ledbat-plus-plus",
    ] {
        let (steps, summary) = baseline(&lossy, cc, 2);
        let flow = &summary.flows[0];
        let segment = of(&steps[1].features, "segment_bytes");
        let acked = sum(&steps, "acked_bytes");
        // at the end a path's full of it is not acknowledged, or is reported beyond a hole
        let delivered = flow.bytes_delivered as f64;
        assert!((acked - delivered).abs() < 160.0 * segment, "{cc}: {acked} of {delivered}");
        assert_eq!(sum(&steps, "lost_bytes"), flow.packets_retransmitted as f64 * segment, "{cc}");
        assert_eq!(sum(&steps, "timeouts"), flow.timeouts as f64, "{cc}");
        // the SYN and the first window left before the first step
        let before = flow.packets_sent as f64 - sum(&steps, "sent_bytes") / segment;
        assert!((1.0..=11.0).contains(&before), "{cc}: {before}");
        let rtts = steps.iter().map(|step| of(&step.features, "rtt_s")).filter(|rtt| !rtt.is_nan());
        let (least, most) = (flow.rtt_min_s.unwrap(), flow.rtt_max_s.unwrap());
        assert!(rtts.clone().all(|rtt| (least..=most).contains(&rtt)) && rtts.count() > 100, "{cc}");
        assert_eq!(of(&steps.last().unwrap().features, "rtt_min_s"), least, "{cc}");
        assert!(steps.iter().all(|step| of(&step.features, "window_segments") >= 1.0), "{cc}");
    }
}

#[test]
fn a_baseline_that_is_done_is_measured_to_the_end() {
    let short = LINK.replace("params =", "app = { kind = \"ftp\", size = \"1 MB\" }\nparams =");
    let mut own = driven(&short, Driver::Baseline("cubic".to_owned()), ms(50)).unwrap();
    own.reset(1).unwrap();
    while !own.step(0.0).unwrap().is_done {}
    assert_eq!(bits(&own.summary().unwrap().unwrap()), bits(&undisturbed(&short, "cubic", 1)));
}

#[test]
fn the_controller_of_a_call_is_heard_and_not_changed() {
    for cc in ["nada", "gcc", "scream", "scream-ericsson", "scream-libwebrtc", "ndtc"] {
        let (steps, summary) = baseline(CALL, cc, 3);
        let (flow, early) = (&summary.flows[0], |step: &&Stepped| of(&step.features, "time_s") < 3.0);
        let measured: Vec<Stepped> = steps.iter().filter(|step| !early(step)).copied().collect();
        let (acked, delivered) = (sum(&measured, "acked_bytes"), flow.bytes_delivered as f64);
        assert!((acked / delivered - 1.0).abs() < 0.03, "{cc}: {acked} of {delivered}");
        let seen: Vec<f64> = steps.iter().map(|step| of(&step.features, "one_way_queueing_s")).collect();
        let most = seen.iter().copied().filter(|waited| !waited.is_nan()).fold(0.0, f64::max);
        assert!((0.02..0.13).contains(&most), "{cc}: {most}, of a queue of 100 ms");
        assert!(steps.iter().all(|step| of(&step.features, "encoder_bps") > 0.0), "{cc}");
    }
}

#[test]
fn the_agent_of_a_call_sets_what_its_encoder_aims_at() {
    let alone = CALL.replace("start = \"8 s\"", "start = \"19.9 s\"");
    let mut own = environment(&alone, Acts::Rate, ms(100));
    let steps = run(&mut own, 1, |features| if of(features, "time_s") < 10.0 { 1e6 } else { 1.5e6 });
    let part = |from: f64, to: f64| -> Vec<Stepped> {
        steps.iter().filter(|step| (from..to).contains(&of(&step.features, "time_s"))).copied().collect()
    };
    for (rate, part) in [(1e6, part(4.0, 9.9)), (1.5e6, part(11.0, 19.0))] {
        let seconds = sum(&part, "duration_s");
        let goodput = sum(&part, "acked_bytes") * 8.0 / seconds;
        assert!((0.92..1.0).contains(&(goodput / rate)), "{goodput} of {rate}, of which headers take a part");
        assert!(part.iter().all(|step| of(&step.features, "rate_bps") == rate));
        assert!(sum(&part, "one_way_queueing_s") / (part.len() as f64) < 0.03);
        assert_eq!(sum(&part, "lost_bytes"), 0.0);
    }
    let flow = own.summary().unwrap().unwrap().flows.remove(0);
    assert!(flow.frame_delay_mean_s.unwrap() < 0.08, "{flow:?}");
    // more than the link carries: a queue, and losses
    let steps = run(&mut own, 1, |_| 2.4e6);
    assert!(sum(&steps, "lost_bytes") > 0.0);
    assert!(of(&steps[150].features, "one_way_queueing_s") > 0.08, "{:?}", steps[150]);
}

#[test]
fn a_call_through_an_outage_goes_on() {
    let dead = CALL.replace("delay =", "outage = [{ from = \"5 s\", to = \"9 s\" }]\ndelay =");
    let steps = run(&mut environment(&dead, Acts::Rate, ms(100)), 1, |_| 5e5);
    assert!(sum(&steps, "timeouts") >= 1.0);
    assert!(sum(&steps[120..], "acked_bytes") > 1e5);
}

#[test]
fn what_cannot_be_a_baseline_is_named() {
    let wrong = |text: &str, driver: Driver| driven(text, driver, ms(10)).unwrap_err();
    let named = |cc: &str| Driver::Baseline(cc.to_owned());
    let tfrc = wrong(LINK, named("tfrc"));
    assert!(tfrc.contains("flow.own.cc: as a baseline `tfrc` cannot be seen step by step"), "{tfrc}");
    assert!(wrong(CALL, named("cubic")).contains("`encoder` writes video frames"));
    let window = wrong(CALL, Driver::Agent(Acts::Window));
    assert!(window.contains("flow.own: on RTP an agent sets a rate, not a window"), "{window}");
    let led = CALL.replace("rtp = { ", "bundle = { priority = 2 }\nrtp = { feedback = \"twcc\", ");
    assert!(wrong(&led, named("nada")).contains("flow.own.bundle"), "{}", wrong(&led, named("nada")));
    let requested = LINK.replace("[flow.own]\n", "[flow.own]\napp = { kind = \"web\", request = {} }\n");
    let requested = wrong(&requested, named("cubic"));
    assert!(requested.contains("flow.own.app.request: has connections that its receiver opens"), "{requested}");
}
