//! Values that each instance of a flow has of its own: round trips, starts, rates and losses of access links.

use super::read::scenario;
use paceline_scenario::model::{LinkDirection, Model};
use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, Summary, expand, simulate};
use paceline_units::Span;

fn summary(text: &str) -> Summary {
    simulate(&scenario(text), 1, &RunOptions::default()).unwrap().summary
}

fn model(text: &str) -> Model {
    expand(&scenario(text), 1).unwrap()
}

/// The directions of access links toward receivers, or from senders, in the order of the instances.
fn access<'a>(model: &'a Model, end: &str, direction: &str) -> Vec<&'a LinkDirection> {
    let named = |link: &&LinkDirection| link.link.ends_with(&format!(".{end}")) && link.direction == direction;
    model.links.iter().filter(named).collect()
}

const HEAD: &str = "
duration = \"20 s\"
[link.bottleneck]
rate = \"50 Mbit/s\"
delay = \"10 ms\"
[flow.client]
cc = \"udp\"
app = { kind = \"cbr\", rate = \"400 kbit/s\" }
";

#[test]
fn lists_and_steps_reach_their_instances() {
    let of = |more: &str| {
        let summary = summary(&format!("{HEAD}count = 5\n{more}"));
        let ms = |seconds: f64| (seconds * 1e4).round() / 10.0;
        summary.flows.iter().map(|flow| (ms(flow.propagation_rtt_s), ms(flow.start_s))).collect::<Vec<_>>()
    };
    let list =
        of("rtt = [\"40 ms\", \"40.1 ms\", \"90 ms\", \"41 ms\", \"20 ms\"]\nstart = { from = \"0 s\", to = \"2 s\" }");
    assert_eq!(list, [(40.0, 0.0), (40.1, 500.0), (90.0, 1000.0), (41.0, 1500.0), (20.0, 2000.0)]);
    let steps =
        of("rtt = { from = \"44 ms\", to = \"40 ms\" }\nstart = [\"1 s\", \"0 s\", \"3 s\", \"2 s\", \"1.5 s\"]");
    assert_eq!(steps, [(44.0, 1000.0), (43.0, 0.0), (42.0, 3000.0), (41.0, 2000.0), (40.0, 1500.0)]);
}

#[test]
fn access_links_have_the_rates_and_losses_of_their_instances() {
    let model = model(&format!(
        "{HEAD}count = 3\n\
         access.rate = [\"1 Mbit/s\", \"2 Mbit/s\", \"3 Mbit/s\"]\naccess.loss = {{ from = \"0 %\", to = \"2 %\" }}\n\
         access.receiver = {{ rate = \"700 kbit/s\", loss = [\"1 %\", \"0 %\", \"3 %\"] }}\n\
         [flow.other]\n"
    ));
    let rates = |end, direction| -> Vec<f64> {
        access(&model, end, direction).iter().map(|link| link.model.rate.nominal().bps() / 1e6).collect()
    };
    for direction in ["up", "down"] {
        // what `[access]` says stays for the other flow
        assert_eq!(rates("source", direction)[..3], [1.0, 2.0, 3.0]);
        assert_eq!(rates("sink", direction)[..3], [0.7; 3]);
        assert_eq!(rates("source", direction)[3], rates("sink", direction)[3]);
    }
    let lost = |end, direction| -> Vec<String> {
        access(&model, end, direction).iter().map(|link| format!("{:?}", link.model.loss)).collect()
    };
    let of = |rate: &str| format!("Some(Uniform {{ rate: {rate}, on: All }})");
    assert_eq!(lost("source", "up"), ["None".to_owned(), of("0.01"), of("0.02"), "None".into()]);
    assert_eq!(lost("sink", "down"), [of("0.01"), "None".into(), of("0.03"), "None".into()]);
    assert!(lost("source", "down").iter().chain(&lost("sink", "up")).all(|loss| loss == "None"));
}

/// Of n packets each is lost with probability p: the share lies within four standard errors of p.
#[test]
fn what_a_list_of_losses_takes() {
    let shares = [0.0, 0.02, 0.1, 0.3];
    for at in ["access.loss", "access.receiver.loss"] {
        let summary = summary(&format!("{HEAD}count = 4\n{at} = [\"0 %\", \"2 %\", \"10 %\", 0.3]\n"));
        for (flow, share) in summary.flows.iter().zip(shares) {
            let n = flow.packets_sent as f64;
            let bound = 4.0 * (share * (1.0 - share) / n).sqrt();
            let got = flow.packets_lost as f64 / n;
            assert!(n > 600.0 && (got - share).abs() <= bound, "{at}: {got} of {n}, not {share}");
        }
    }
}

/// A receiver behind a slow line gets no more than it carries.
#[test]
fn what_a_list_of_rates_lets_through() {
    let text = "duration = \"20 s\"\nwarmup = \"5 s\"\n[link.bottleneck]\nrate = \"50 Mbit/s\"\ndelay = \"5 ms\"\n\
                [access]\nqueue = { kind = \"droptail\", limit = \"20 packets\" }\n\
                [flow.bulk]\ncount = 3\naccess.receiver.rate = [\"1 Mbit/s\", \"2 Mbit/s\", \"4 Mbit/s\"]\n";
    for (flow, rate) in summary(text).flows.iter().zip([1e6, 2e6, 4e6]) {
        // 1460 of 1500 B are payload
        let share = flow.goodput_bps / (rate * 1460.0 / 1500.0);
        assert!((0.95..=1.0001).contains(&share), "{share} of {rate}");
    }
}

/// What was drawn before there were lists is drawn as before, and one flow's draws leave the others' alone.
#[test]
fn draws_depend_on_seed_and_instance_alone() {
    let drawn = "rtt = { uniform = [\"20 ms\", \"440 ms\"] }\nstart = { uniform = [\"0 s\", \"1 s\"] }\n";
    let of = |text: &str, seed| {
        let summary = simulate(&scenario(text), seed, &RunOptions::default()).unwrap().summary;
        let own = summary.flows.into_iter().filter(|flow| flow.flow == "client");
        own.map(|flow| (flow.propagation_rtt_s, flow.start_s)).collect::<Vec<_>>()
    };
    let text = format!("{HEAD}count = 3\n{drawn}");
    let first = of(&text, 7);
    // as computed by version 0.1 from the streams `rtt client[k]` and `start client[k]`
    let expected: Vec<(f64, f64)> = (0..3)
        .map(|k| {
            let unit = |what| paceline_random::Stream::new(7, &format!("{what} client[{k}]")).unit(0);
            let rtt = Span::from_millis(20) + Span::from_millis(420).mul_f64(unit("rtt"));
            (rtt.as_secs_f64(), Span::from_secs(1).mul_f64(unit("start")).as_secs_f64())
        })
        .collect();
    assert_eq!(first, expected);
    let law =
        "access.receiver.rate = { lognormal = \"20 Mbit/s\", sigma = 0.7, within = [\"1 Mbit/s\", \"1 Gbit/s\"] }\n";
    assert_eq!(of(&format!("{text}{law}[flow.another]\n{drawn}"), 7), first);
    let rates = |seed| {
        let model = expand(&scenario(&format!("{text}{law}")), seed).unwrap();
        access(&model, "sink", "down").iter().map(|link| link.model.rate.nominal().bps()).collect::<Vec<_>>()
    };
    assert_eq!(rates(7), rates(7));
    assert_ne!(rates(7), rates(8));
    assert!(rates(7).iter().all(|rate| (1e6..=1e9).contains(rate)) && rates(7)[0] != rates(7)[1]);
}

/// A scenario with every form says the same when its filled-in file is read again, and its values can be set.
#[test]
fn forms_survive_reading_again_and_setting() {
    let text = format!(
        "{HEAD}count = 2\nrtt = [\"40 ms\", \"50 ms\"]\nstart = {{ normal = [\"1 s\", \"100 ms\"], within = [\"0 s\", \"2 s\"] }}\n\
         access.rate = {{ uniform = [\"1 Mbit/s\", \"2 Mbit/s\"] }}\n\
         access.loss = {{ exponential = \"1 %\", within = [0, 0.5] }}\n\
         access.receiver.loss = {{ from = 0.0, to = \"1 %\" }}\n"
    );
    let once = scenario(&text).to_toml();
    assert_eq!(scenario(&once).to_toml(), once);
    let mut document = Document::parse(&text, "instances.toml").unwrap();
    document.set("flow.client.rtt[1]", "60 ms").unwrap();
    document.set("flow.client.access.receiver.loss.to", "2 %").unwrap();
    document.set("flow.client.start", "[\"0 s\", \"1 s\"]").unwrap();
    let set = Scenario::check(&document, &mut |_| Err("no files".into())).unwrap();
    let rtts =
        expand(&set, 1).map(|model| access(&model, "source", "up").iter().map(|l| l.model.propagation).collect());
    let rtts: Vec<Span> = rtts.unwrap();
    assert_eq!(rtts[1] - rtts[0], Span::from_millis(10), "half of what is missing lies on the way there");
    assert!(set.to_toml().contains("to = 0.02"), "{}", set.to_toml());
}
