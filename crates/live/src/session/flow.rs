//! A live flow: a scenario's flow table, validated by the scenario's rules, with the real header sizes.

use super::codec::AHEAD;
use super::foreign::ForeignSchemes;
use crate::quic;
use paceline_flow::Transport;
use paceline_packet::quic::INITIAL_DATAGRAM;
use paceline_packet::wire::tfrc::{
    ACK_LEN, FEEDBACK_LEN, FRAME_LEN, SEGMENT_ACK_LEN, SEGMENT_LEN, SHORT_LEN, SINGLE_LEN, SUBFLOW_LEN,
};
use paceline_scenario::flow::App;
use paceline_scenario::model::FlowModel;
use paceline_scenario::{Document, Mistake, Scenario, ScenarioError};
use paceline_sim::{ExpandError, expand};
use paceline_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// The flow's name in its scenario, unless it leads a bundle.
pub const NAME: &str = "live";
/// Keys that a led flow takes from its leader.
const OF_LEADER: [&str; 9] = ["cc", "params", "profile", "rtp", "ecn", "from", "to", "segment", "header"];
/// Maximum number of settings of a flow, and maximum length of a setting in bytes.
const MAX_SETTINGS: usize = 64;
const MAX_TEXT: usize = 1024;
/// Maximum size of a sent IP packet.
const MTU: u16 = 1500;
/// Maximum number of packets in a frame that leaves at once without congestion control.
const MAX_BURST: f64 = 16384.0;
/// Maximum duration of a flow: ten days.
pub const LONGEST_MS: u64 = 864_000_000;

/// The IP version that a flow uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Bytes of the headers of IP (without options) and UDP.
    #[must_use]
    pub const fn headers(self) -> u16 {
        match self {
            Family::V4 => 28,
            Family::V6 => 48,
        }
    }
}

/// What both ends must know about a flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Keys of a scenario's flow table with their values, in the form that `--set` takes: `cc`, `params.c`, `app.kind`.
    pub settings: Vec<(String, String)>,
    /// How long the application sends, in milliseconds.
    pub for_ms: u64,
    /// Seed of the flow's random draws.
    pub seed: u64,
    /// Its IP version.
    pub family: Family,
    /// For a flow that leads others: the name in their `bundle.with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Schemes that are not compiled in and that `cc` may name: this end's own, which a peer cannot supply.
    #[serde(skip)]
    pub foreign: ForeignSchemes,
}

/// An error about a setting.
fn mistake(key: &str, problem: &str) -> ScenarioError {
    ScenarioError { file: NAME.to_owned(), mistakes: vec![Mistake::new(key, problem)] }
}

impl FlowSpec {
    /// Builds and validates the flow.
    ///
    /// # Errors
    /// Violations of the scenario's rules, and settings that no real flow can have: several instances, trace files,
    /// ns-2's TFRC, whose header has fields that no real packet has.
    pub fn model(&self) -> Result<FlowModel, ScenarioError> {
        if self.settings.len() > MAX_SETTINGS || self.settings.iter().any(|(k, v)| k.len().max(v.len()) > MAX_TEXT) {
            return Err(mistake(
                "",
                &format!("more than {MAX_SETTINGS} settings, or one of more than {MAX_TEXT} bytes"),
            ));
        }
        if !(1..=LONGEST_MS).contains(&self.for_ms) {
            return Err(mistake("for", &format!("{} ms is not in 1 ms to {LONGEST_MS} ms", self.for_ms)));
        }
        let requested = self.with(&[])?;
        if requested.client.is_some() {
            let problem = "requests are simulated: real flows send by themselves, so leave it out";
            return Err(mistake("app.request", problem));
        }
        let machine = requested.transport.name();
        if machine == "tfrc" && matches!(requested.profile, "ns2" | "ns2-linux") {
            let problem =
                "ns-2's TFRC tells its receiver what no real packet has a field for; use profile rfc or linux";
            return Err(mistake("profile", problem));
        }
        if let Transport::Quic { config, controller } = &requested.transport
            && let Some((key, problem)) = quic::unsupported(config, controller)
        {
            return Err(mistake(key, problem));
        }
        let (header, answer) = self.headers(&requested.transport);
        let segment = requested.transport.segment().min(MTU - header);
        let max = MTU - Family::V4.headers();
        let wanted = requested.transport.segment();
        // `max` is the default segment, which means full packets for either family
        if machine == "quic" && wanted > segment && wanted != max {
            let (family, bound, more) = if wanted > max {
                ("IPv4", max, "")
            } else {
                ("IPv6", segment, " there; leave it out for full packets")
            };
            let problem = format!(
                "`{wanted} B` is more than a packet of {MTU} B carries over {family}: a real flow has {bound} B at most{more}"
            );
            return Err(mistake("segment", &problem));
        }
        let frame = self.app(&self.scenario(&[])?).map_or(0.0, frame);
        let packets = frame / f64::from(segment.max(1));
        if machine == "udp" && packets > MAX_BURST {
            let problem = format!("a frame of {packets:.0} packets leaves at once; {MAX_BURST} at most");
            return Err(mistake("app", &problem));
        }
        let mut real = vec![("header", format!("{header} B")), ("segment", format!("{segment} B"))];
        if matches!(machine, "tcp" | "tfrc" | "acks") {
            real.push(("ack_size", format!("{answer} B")));
        }
        if let Transport::Tcp { config, .. } = &requested.transport {
            real.push(("receive_window", config.receive_window.min(AHEAD).to_string()));
        }
        let mut model = self.with(&real)?;
        if matches!(&model.transport, Transport::Quic { config, .. } if !config.track.frames) {
            // one packet per write, but at least QUIC's minimum datagram
            real[1].1 = format!("{} B", (segment - quic::SPARE).max(INITIAL_DATAGRAM));
            model.app = self.with(&real)?.app;
        }
        model.transport.belongs_to(&self.foreign.flow);
        Ok(model)
    }

    /// For a TCP flow, the requested segment payload and the receive window in segments, which the kernel's TCP adopts.
    /// `None` for other machines, and if a setting is invalid.
    #[must_use]
    pub fn segments(&self) -> Option<(u16, u32)> {
        match self.with(&[]).ok()?.transport {
            Transport::Tcp { config, .. } => Some((config.segment, config.receive_window)),
            _ => None,
        }
    }

    /// When its application starts.
    #[must_use]
    pub fn start(&self) -> Span {
        self.with(&[]).map_or(Span::ZERO, |model| model.start.since(Time::ZERO))
    }

    /// Whether it uses QUIC.
    #[must_use]
    pub fn is_quic(&self) -> bool {
        let said = self.settings.iter().rfind(|(key, _)| key == "transport");
        said.is_some_and(|(_, transport)| transport.trim_matches('"') == "quic")
    }

    /// Payload of a full segment; `None` if a setting is invalid.
    #[must_use]
    pub fn segment(&self) -> Option<u16> {
        Some(self.with(&[]).ok()?.transport.segment())
    }

    /// Number of the application's writes per second, as far as the settings determine it; `None` otherwise, and if a
    /// setting is invalid.
    #[must_use]
    pub fn writes_per_second(&self) -> Option<f64> {
        let scenario = self.scenario(&[]).ok()?;
        let segment = f64::from(self.segment()?.max(1));
        Some(match self.app(&scenario)? {
            App::Cbr { rate } | App::Pareto { rate, .. } => rate.bps() / 8.0 / segment,
            App::Web { gap, .. } => 1.0 / gap.as_secs_f64(),
            App::Stream { heartbeat, .. } => 1.0 / heartbeat.as_secs_f64(),
            app => 1.0 / app.ticks()?.1.as_secs_f64(),
        })
    }

    /// Rate of UDP payload that a flow without congestion control sends while its application does; `None` for other
    /// flows, whose controller decides, and if a setting is invalid.
    #[must_use]
    pub fn uncontrolled(&self) -> Option<Rate> {
        let model = self.model().ok()?;
        let Transport::Udp(config) = &model.transport else { return None };
        let scenario = self.scenario(&[]).ok()?;
        let app = self.app(&scenario)?;
        let payload = match app {
            App::Cbr { rate } | App::Pareto { rate, .. } | App::Video { rate, .. } => rate.0 as f64,
            app => app.ticks().map(|(packet, span)| packet.bytes() as f64 * 8.0 / span.as_secs_f64())?,
        };
        let header = f64::from(config.header.saturating_sub(self.family.headers()));
        // (a cast of a too large value saturates)
        Some(Rate::from_bps((payload * (1.0 + header / f64::from(config.segment.max(1)))) as u64))
    }

    /// The flow with its settings, overridden by `real`.
    fn with(&self, real: &[(&str, String)]) -> Result<FlowModel, ScenarioError> {
        let scenario = self.scenario(real)?;
        let seed = self.seed & i64::MAX as u64;
        let model = expand(&scenario, seed).map_err(|error: ExpandError| mistake("", &error.to_string()))?;
        let own = model.flows.into_iter().find(|flow| flow.name == self.name());
        own.ok_or_else(|| mistake("", "there is no flow"))
    }

    /// The values of these keys after defaults are filled in.
    pub(super) fn filled(&self, keys: &[&str]) -> Vec<(String, String)> {
        let Ok(scenario) = self.scenario(&[]) else { return Vec::new() };
        let own = scenario.flows().iter().find(|flow| flow.name == self.name());
        let table = own.and_then(|flow| toml::Table::try_from(&**flow).ok()).unwrap_or_default();
        let said = |key: &&str| Some(((*key).to_owned(), table.get(*key)?.to_string()));
        keys.iter().filter_map(said).collect()
    }

    /// Its name in its scenario.
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(NAME)
    }

    /// The name of its leader, if it has one.
    fn leader(&self) -> Option<&str> {
        let with = self.settings.iter().rfind(|(key, _)| key == "bundle.with")?;
        Some(with.1.trim_matches('"'))
    }

    /// Its application.
    fn app<'a>(&self, scenario: &'a Scenario) -> Option<&'a App> {
        scenario.flows().iter().find(|flow| flow.name == self.name()).map(|flow| &flow.app)
    }

    /// A scenario with only this flow.
    fn scenario(&self, real: &[(&str, String)]) -> Result<Scenario, ScenarioError> {
        let (name, leader) = (self.name(), self.leader());
        if [Some(name), leader].into_iter().flatten().any(|name| !is_name(name)) || leader == Some(name) {
            return Err(mistake("bundle", "names are up to 64 letters, digits and `-`, and a flow's own is another's"));
        }
        let (lasts, stops) = (self.for_ms.saturating_add(1000), self.for_ms);
        let mut text = format!(
            "name = \"{NAME}\"\nseed = 1\nduration = \"{lasts} ms\"\n[link.bottleneck]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [flow.{name}]\nstop = \"{stops} ms\"\n"
        );
        if let Some(leader) = leader {
            // the leader is in another session: this only has the keys that both share
            text += &format!("[flow.{leader}]\nstop = \"{stops} ms\"\nbundle = {{}}\napp = {{ kind = \"voice\" }}\n");
        }
        let mut document = Document::parse(&text, NAME)?;
        let settings = self.settings.iter().map(|(key, value)| (key.as_str(), value));
        for (key, value) in settings.chain(real.iter().map(|(key, value)| (*key, value))) {
            document.set(&format!("flow.{name}.{key}"), value)?;
            let of = key.split('.').next().unwrap_or_default();
            if let Some(leader) = leader.filter(|_| OF_LEADER.contains(&of)) {
                document.set(&format!("flow.{leader}.{key}"), value)?;
            }
        }
        let mut no_files = |_: &str| Err("a live flow reads no files".to_owned());
        let scenario = Scenario::check_with(&document, &mut no_files, &self.foreign.schemes)?;
        if scenario.flows().iter().any(|flow| flow.count != 1) {
            return Err(mistake("count", "a live flow is one flow: ask for more with --flows"));
        }
        Ok(scenario)
    }

    /// Bytes of a data packet except its payload, and of its answer, all headers included.
    fn headers(&self, transport: &Transport) -> (u16, u16) {
        let (header, answer) = match transport {
            Transport::Rtp { config, .. } => (config.data_header(), 0),
            Transport::Acks { .. } => (SINGLE_LEN, ACK_LEN),
            Transport::Tcp { .. } => (SEGMENT_LEN, SEGMENT_ACK_LEN),
            Transport::Tfrc { config, .. } => {
                let more = if config.settings.multiple_connections { SUBFLOW_LEN } else { 0 };
                let frame = if config.frames { FRAME_LEN } else { 0 };
                (SHORT_LEN + more + frame, FEEDBACK_LEN + more)
            }
            // QUIC's own headers are part of a datagram's contents
            Transport::Quic { .. } => (0, 0),
            Transport::Udp(_) => (SEGMENT_LEN, 0),
        };
        (header as u16 + self.family.headers(), answer as u16 + self.family.headers())
    }
}

/// Whether a name is a valid key in a scenario.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Bytes that a video application writes at once: its mean frame times the size factor of a key frame. Zero without
/// frames.
fn frame(app: &App) -> f64 {
    match app {
        App::Video { rate, frame_rate, key_size, .. } => rate.0 as f64 / 8.0 / frame_rate * key_size,
        _ => 0.0,
    }
}

/// Whether a flow's data packets are ECN-capable.
pub(crate) fn is_ecn_capable(transport: &Transport) -> bool {
    match transport {
        Transport::Quic { config, .. } => config.ecn,
        Transport::Rtp { config, .. } => config.ecn,
        Transport::Tcp { config, .. } => config.ecn.is_on(),
        Transport::Tfrc { config, .. } => config.ecn,
        Transport::Acks { .. } | Transport::Udp(_) => false,
    }
}
