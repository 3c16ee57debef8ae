//! Every scheme has the same measures in the emulated world as in the simulator, on three paths.
//!
//! A window-based run is deterministic in both: phases decide which packet finds the last place in a queue. Whether the
//! single segment sent after a timeout meets the full queue can decide about seconds of silence
//! (docs/decisions/host-delay.md). So each mean covers several delays and has a confidence interval; twenty delays
//! settle what five leave open. Hosts take no time in this world, and therefore none in the simulator here.

use super::emulate;
use super::measures::Rows;
use paceline_control::{Machine, Scheme, registry};

/// Number of delays per mean, at first and where these do not suffice, and Student's t for the 95 % interval of the
/// difference of two such means.
const RUNS: [(u64, f64); 2] = [(5, 2.306), (20, 2.024)];

/// The flow of a scheme, with an application if the scheme has none of its own.
fn flow(scheme: &Scheme) -> String {
    let app = match scheme.machine {
        Machine::Rtp => "app = { kind = \"encoder\", max_rate = \"2 Mbit/s\" }\n",
        Machine::Udp => "app = { kind = \"cbr\", rate = \"1 Mbit/s\" }\n",
        Machine::Tcp(_) | Machine::Tfrc | Machine::Acks => "",
    };
    format!("[flow.a]\ncc = \"{}\"\n{app}", scheme.name)
}

/// The mean and its variance.
fn mean(of: &[f64]) -> (f64, f64) {
    let n = of.len() as f64;
    let mean = of.iter().sum::<f64>() / n;
    (mean, of.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / (n - 1.0) / n)
}

/// Checks that both means of a measure differ by at most `share` of the greater one, or by at most their joint
/// interval.
fn holds(simulated: &[f64], emulated: &[f64], share: f64, student: f64) -> Result<(), String> {
    let ((expected, one), (found, other)) = (mean(simulated), mean(emulated));
    let joint = student * (one + other).sqrt();
    let allowed = joint.max(share * expected.abs().max(found.abs()));
    // NaN: no report of the receiver's has arrived, in both
    if (found - expected).abs() <= allowed || expected.is_nan() && found.is_nan() {
        return Ok(());
    }
    Err(format!("emulated {found}, simulated {expected}, joint interval {joint}"))
}

/// The measures in which a scheme differs behind this link.
fn differs(scheme: &Scheme, link: &str) -> Vec<String> {
    let run = |run: u64| {
        let delay = 20_000 + 311 * run;
        let text = format!(
            "duration = \"6 s\"\nwarmup = \"500 ms\"\nhost_delay = \"0 s\"\n[link.bottleneck]\ndelay = \"{delay} us\"\n{link}{}",
            flow(scheme)
        );
        [Rows::simulated(&text, run), Rows::emulated(&emulate(&text, run))]
    };
    let mut runs: Vec<[Rows; 2]> = Vec::new();
    let mut wrong = Vec::new();
    for (count, student) in RUNS {
        runs.extend((runs.len() as u64 + 1..=count).map(run));
        let of = |world: usize, name| runs.iter().map(|run| run[world].of("a", name)).collect::<Vec<f64>>();
        // the simulator's datagrams have no return path
        let measures = [("goodput_bps", 0.02), ("rtt_mean_s", 0.03)];
        let measures = measures.iter().filter(|(name, _)| *name == "goodput_bps" || scheme.machine != Machine::Udp);
        let found = measures.filter_map(|(name, share)| {
            let why = holds(&of(0, name), &of(1, name), *share, student).err()?;
            Some(format!("{} of {}: {why}", name, scheme.name))
        });
        wrong = found.collect();
        if wrong.is_empty() {
            break;
        }
    }
    wrong
}

fn alike(link: &str) {
    let wrong: Vec<String> = registry::schemes().flat_map(|scheme| differs(scheme, link)).collect();
    assert!(wrong.is_empty(), "{link}{}", wrong.join("\n"));
}

#[test]
fn behind_a_queue_of_two_bandwidth_delay_products() {
    alike("rate = \"10 Mbit/s\"\nqueue = { limit = \"60 packets\" }\n");
}

#[test]
fn with_random_loss() {
    alike(
        "rate = \"4 Mbit/s\"\nqueue = { limit = \"40 packets\" }\n\
         loss = { kind = \"uniform\", rate = \"1 %\", on = \"data\" }\n",
    );
}

#[test]
fn behind_codel() {
    alike("rate = \"3 Mbit/s\"\nqueue = { kind = \"codel\", limit = \"200 packets\" }\n");
}
