//! Any flow that a client may request, drawn from bytes: its controller with parameters, its application, segments,
//! timers, reports.

use paceline_control::registry::schemes;
use paceline_control::{Kind, Parameter};
use paceline_live::session::{Family, FlowSpec, ForeignSchemes};

/// The values that a key accepts.
#[derive(Clone, Copy)]
enum Takes {
    Rate,
    Span,
    Size,
    Segment,
    Number,
    Switch,
    One(&'static [&'static str]),
    Parameter(&'static Parameter),
}
use Takes::{Number, One, Rate, Segment, Size, Span, Switch};

/// Keys of every flow.
const KEYS: [(&str, Takes); 38] = [
    ("profile", One(&["rfc", "linux", "ns2", "ns2-linux"])),
    ("segment", Segment),
    ("header", Size),
    ("ack_size", Size),
    ("initial_window", Number),
    ("receive_window", Number),
    ("receive_buffer", Size),
    ("send_buffer", Size),
    ("receive_buffer", One(&["unlimited"])),
    ("send_buffer", One(&["unlimited"])),
    ("delayed_ack", Span),
    ("delayed_ack", One(&["off"])),
    ("recovery", One(&["tahoe", "reno", "newreno", "sack", "vegas"])),
    ("newreno", One(&["impatient", "slow-but-steady"])),
    ("limited_transmit", Switch),
    ("prr", Switch),
    ("pacing", Switch),
    ("ecn", Switch),
    ("min_rto", Span),
    ("handshake", Switch),
    ("send_overhead", Span),
    ("delays", Switch),
    ("kernel", Switch),
    ("start", Span),
    ("rtp.timing", One(&["rfc3550", "reduced", "fixed"])),
    ("rtp.report_interval", Span),
    ("rtp.bandwidth", Rate),
    ("rtp.loss_field", One(&["8 bits", "32 bits"])),
    ("rtp.gap_jitter", Number),
    ("rtp.probe_burst", Number),
    ("rtp.probe_width", Number),
    ("rtp.probe_history", Number),
    ("rtp.feedback_interval", Span),
    ("rtp.feedback", One(&["rfc8888", "twcc"])),
    ("rtp.feedback_packets", Number),
    ("rtp.feedback_frames", Switch),
    ("rtp.feedback_share", Number),
    ("rtp.reduced_size", Switch),
];

/// Kinds of applications, each with its keys.
const APPS: [(&str, &[(&str, Takes)]); 11] = [
    ("ftp", &[("app.size", Size)]),
    (
        "web",
        &[
            ("app.gap", Span),
            ("app.gap_shape", Number),
            ("app.arrivals", One(&["think", "think-persistent", "open"])),
            ("app.mean_size", Size),
            ("app.median_size", Size),
            ("app.shape", Number),
            ("app.max_size", Size),
        ],
    ),
    ("pareto", &[("app.rate", Rate), ("app.burst", Span), ("app.idle", Span), ("app.shape", Number)]),
    ("cbr", &[("app.rate", Rate)]),
    ("game", &[("app.way", One(&["down", "up"])), ("app.packet", Size), ("app.interval", Span), ("app.jitter", Span)]),
    (
        "voice",
        &[
            ("app.codec", One(&["g711", "g722", "g723", "g729", "amr", "opus"])),
            ("app.packet", Size),
            ("app.interval", Span),
            ("app.spurts", Switch),
            ("app.talk", Span),
            ("app.pause", Span),
        ],
    ),
    (
        "video",
        &[
            ("app.rate", Rate),
            ("app.frame_rate", Number),
            ("app.group", Number),
            ("app.key_size", Number),
            ("app.variation", Number),
            ("app.correlation", Number),
        ],
    ),
    ("video-trace", &[("app.file", One(&["frames"])), ("app.frame_rate", Number)]),
    (
        "encoder",
        &[
            ("app.frame_rate", Number),
            ("app.min_rate", Rate),
            ("app.max_rate", Rate),
            ("app.jitter", Number),
            ("app.reaction", Span),
            ("app.key_interval", Span),
            ("app.key_size", Number),
        ],
    ),
    ("relay", &[("app.of", One(&["flow", "other"]))]),
    (
        "stream",
        &[
            ("app.media_rate", Rate),
            ("app.length", Span),
            ("app.xfactor", Number),
            ("app.heartbeat", Span),
            ("app.buffer", Number),
            ("app.playout", One(&["clock", "stall"])),
            ("app.client_buffer", Size),
            ("app.client_buffer", One(&["unlimited"])),
        ],
    ),
];

/// Factors of a number.
const POWERS: [f64; 14] = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// `digits`, followed by zeros.
fn number(digits: u8, zeros: u32) -> u64 {
    u64::from(digits).saturating_mul(10_u64.saturating_pow(zeros))
}

fn value(takes: Takes, [digits, power]: [u8; 2]) -> String {
    let power = u32::from(power);
    match takes {
        // Beyond what a scenario's rules allow: 100 Gbit/s, segments of a byte, gaps of a nanosecond.
        Rate => format!("{} bit/s", number(digits, power % 12)),
        Span => format!("{} ns", number(digits, power % 16)),
        Size => format!("{} B", number(digits, power % 14)),
        Segment => format!("{} B", number(digits, power % 3)),
        Number => (f64::from(digits) * POWERS[power as usize % POWERS.len()]).to_string(),
        Switch => (digits % 2 == 0).to_string(),
        One(names) => names[usize::from(digits) % names.len()].to_owned(),
        Takes::Parameter(parameter) => match parameter.kind {
            // Its bounds, values between them, and anything else.
            Kind::Number { min, max, .. } if power % 4 < 2 => {
                (min + (max - min) * f64::from(digits) / 255.0).to_string()
            }
            Kind::Whole { min, max } if power % 4 < 2 => {
                (min + (max - min) * f64::from(digits) / 255.0).floor().to_string()
            }
            Kind::Number { .. } | Kind::Whole { .. } => value(Number, [digits, (power / 4) as u8]),
            Kind::Switch => value(Switch, [digits, 0]),
            Kind::Choice(names) => value(One(names), [digits, 0]),
        },
    }
}

/// The bytes that set a key of every flow, for first inputs (`fuzz/examples/seeds.rs`).
///
/// # Panics
/// If there is no such key.
#[must_use]
pub fn setting(key: &str, digits: u8, power: u8) -> [u8; 3] {
    let at = KEYS.iter().position(|(name, _)| *name == key).expect("it is one of them");
    [at as u8, digits, power]
}

/// Reads a flow from the bytes: controller, application (0: one that suits the controller), duration, count of
/// settings, and three bytes for each setting. A setting that conflicts with an earlier one is left out.
pub fn drawn(bytes: &mut &[u8]) -> Option<FlowSpec> {
    let [scheme, app, digits, power, more, rest @ ..] = bytes else { return None };
    let scheme = schemes().nth(usize::from(*scheme) % schemes().count())?;
    let mut settings = vec![("cc".to_owned(), scheme.name.to_owned())];
    let mut keys = KEYS.to_vec();
    if *app > 0 {
        let (kind, of_app) = APPS[usize::from(*app - 1) % APPS.len()];
        settings.push(("app.kind".to_owned(), kind.to_owned()));
        keys.extend(of_app);
    } else if let Some(kind) = match scheme.name {
        "nada" | "gcc" | "ndtc" | "scream" | "scream-ericsson" | "scream-libwebrtc" => Some("encoder"),
        "udp" => Some("cbr"),
        _ => None,
    } {
        settings.push(("app.kind".to_owned(), kind.to_owned()));
    }
    let parameters: Vec<String> = scheme.parameters.iter().map(|p| format!("params.{}", p.name)).collect();
    keys.extend(parameters.iter().zip(scheme.parameters).map(|(name, p)| (name.as_str(), Takes::Parameter(p))));
    let family = if more & 0x80 == 0 { Family::V4 } else { Family::V6 };
    let for_ms = number(*digits, u32::from(power % 10));
    let mut flow = FlowSpec { settings, for_ms, seed: 1, family, name: None, foreign: ForeignSchemes::default() };
    let (wanted, left) = rest.split_at((3 * usize::from(more % 8)).min(rest.len()));
    *bytes = left;
    let wanted = wanted.chunks_exact(3).map(|at| {
        let (key, takes) = keys[usize::from(at[0]) % keys.len()];
        (key.to_owned(), value(takes, [at[1], at[2]]))
    });
    let all = FlowSpec { settings: flow.settings.iter().cloned().chain(wanted.clone()).collect(), ..flow.clone() };
    if wanted.len() == 0 || all.model().is_ok() {
        return Some(all);
    }
    for setting in wanted {
        flow.settings.push(setting);
        if flow.model().is_err() {
            flow.settings.pop();
        }
    }
    Some(flow)
}
