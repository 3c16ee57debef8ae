//! Rules that a schema cannot express: references between tables, bounds between keys, combinations. Each rule records
//! its mistakes and continues, so that the user sees all of them at once.

mod bundle;
mod cell;
mod coupled;
mod machine;
mod network;
mod parameters;
mod quic;
mod relay;
mod request;

use crate::error::{Mistake, hint, join, listed, nearest, quoted};
use crate::fill::{WEB_MEAN, home_ends};
use crate::keys::draw::{Draw, MIN_MASS, Value};
use crate::keys::file::{File, Profile, Topology};
use crate::keys::flow::{App, FlowTable};
use crate::keys::repair::{NewrenoVariant, Recovery};
use crate::keys::values::ClientBuffer;
pub use machine::marks_frames;
use machine::no_frames;
use paceline_control::registry::schemes;
use paceline_control::{AckController, AcksController};
use paceline_control::{Machine, MediaController, RateController, RtpController, Scheme, TfrcController};
use paceline_control::{Profile as ControlProfile, Recovery as ControlRecovery, TcpController, WindowController};
use paceline_flow::acks::AcksConfig;
use paceline_flow::quic::QuicConfig;
use paceline_flow::rtp::{FeedbackFormat, RtpConfig};
use paceline_flow::tcp::TcpConfig;
use paceline_flow::tfrc::TfrcConfig;
use paceline_flow::udp::UdpConfig;
use paceline_units::{Size, Span};
use std::collections::BTreeSet;

/// Maximum packet size in bytes, which has 16 bits.
const MAX_PACKET: u64 = 65_535;
/// Maximum packet size over the air in bytes: an MSDU has at most 2304 B, including 8 B of LLC/SNAP (IEEE Std
/// 802.11-2016, clause 9.2.4.7).
const MAX_AIR_PACKET: u64 = 2304 - 8;
/// Maximum media packets of one stream.
const MAX_MEDIA_PACKETS: u64 = 1_000_000_000;
/// Maximum segments of one transfer: sequence numbers have 32 bits.
const MAX_SEGMENTS: u64 = 4_000_000_000;
/// Maximum flows of a scenario, counting all instances: each takes about 12 kB before it begins.
const MAX_FLOWS: u64 = 100_000;

/// Collects mistakes.
pub(super) struct Rules {
    /// The mistakes found.
    pub mistakes: Vec<Mistake>,
}

/// Default payload and header of a full segment; over RTP, with this feedback format.
fn sizes(scheme: &Scheme, profile: ControlProfile, quic: bool, feedback: Option<FeedbackFormat>) -> (u16, u16) {
    match scheme.machine {
        Machine::Tcp(_) if quic => {
            let quic = QuicConfig::new(profile, scheme);
            (quic.datagram, quic.header)
        }
        Machine::Acks => AcksController::new(scheme, profile, &[]).map_or((0, 0), |controller| {
            let acks = AcksConfig::new(profile, controller.settings());
            (acks.segment, acks.header)
        }),
        Machine::Rtp => RtpController::new(scheme, profile, &[]).map_or((0, 0), |controller| {
            let rtp = RtpConfig::new(profile, controller.settings());
            let format = feedback.unwrap_or(rtp.feedback.format);
            let rtp = rtp.with_feedback(format);
            (rtp.segment, rtp.header)
        }),
        Machine::Tcp(_) => {
            let tcp = TcpConfig::new(profile, scheme);
            (tcp.segment, tcp.header)
        }
        Machine::Tfrc => TfrcController::new(scheme, profile, &[]).map_or((0, 0), |controller| {
            let tfrc = TfrcConfig::new(profile, controller.settings());
            (tfrc.segment, tfrc.header)
        }),
        Machine::Udp => {
            let udp = UdpConfig::new(profile);
            (udp.segment, udp.header)
        }
    }
}

impl Rules {
    /// Validates `file`, as the user wrote it, against all rules.
    pub fn check(file: &File) -> Vec<Mistake> {
        let mut rules = Rules { mistakes: Vec::new() };
        let home = rules.supposed_home(file);
        let file = home.as_ref().unwrap_or(file);
        rules.run(file);
        let nodes = rules.network(file);
        if file.flow.is_empty() {
            rules.note("flow", "there is no flow: add a table such as `[flow.media]`");
        }
        let flows: u64 = file.flow.values().map(|flow| u64::from(flow.count)).sum();
        if flows > MAX_FLOWS {
            let tables = file.flow.len();
            rules.note("flow", format!("{tables} tables have {flows} flows in all (`count`): at most {MAX_FLOWS}"));
        }
        for (name, flow) in &file.flow {
            let path = join("flow", name);
            rules.name(&path, name);
            rules.flow(file, &path, flow, &nodes);
        }
        rules.mistakes
    }

    pub(super) fn note(&mut self, key: impl Into<String>, problem: impl Into<String>) {
        self.mistakes.push(Mistake::new(key, problem));
    }

    /// Names appear in paths, labels and file names.
    pub(super) fn name(&mut self, path: &str, name: &str) {
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.chars().count() > 64 || !name.chars().all(fine) {
            self.note(path, format!("{} is not a name: up to 64 letters, digits, `-`, `_` and `.`", quoted(name)));
        }
    }

    fn run(&mut self, file: &File) {
        if let Some(name) = &file.name
            && (name.trim().is_empty() || name.chars().count() > 200 || name.contains(['/', '\\', '\0', '\n', '\r']))
        {
            self.note("name", format!("{} must be one line of 1 to 200 characters without slashes", quoted(name)));
        }
        if file.warmup >= file.duration {
            self.note("warmup", format!("`{}` must be less than the duration, {}", file.warmup, file.duration));
        }
        if let Some(bin) = file.rate_bin
            && file.warmup < file.duration
            && bin > (file.duration - file.warmup) / 2
        {
            self.note("rate_bin", format!("`{bin}` must fit at least twice between warm-up and duration"));
        }
        if let Some(group) = &file.friendliness_to {
            let groups: BTreeSet<&str> =
                file.flow.iter().map(|(name, flow)| flow.group.as_deref().unwrap_or(name)).collect();
            if !groups.contains(group.as_str()) {
                let hint = hint(group, groups.iter().copied());
                let known = listed(groups.into_iter());
                let problem = format!("`{group}` must be the name of a group of flows{hint} (groups: {known})");
                self.note("friendliness_to", problem);
            }
        }
        let Some(name) = &file.stop_after else { return };
        let Some(flow) = file.flow.get(name) else {
            let hint = hint(name, file.flow.keys().map(String::as_str));
            let known = listed(file.flow.keys().map(String::as_str));
            return self.note("stop_after", format!("`{name}` must be the name of a flow{hint} (flows: {known})"));
        };
        if !matches!(flow.app, App::Ftp { size: Some(_), .. } | App::Stream { .. }) {
            self.note(
                "stop_after",
                format!("flow `{name}` is never done: it must be a stream, or an ftp transfer with a `size`"),
            );
        }
    }

    fn flow(&mut self, file: &File, path: &str, flow: &FlowTable, nodes: &BTreeSet<String>) {
        for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
            match node {
                None if file.topology == Topology::Graph => self.note(join(path, key), "is required in a graph"),
                None if file.topology == Topology::Home && self.home_end(file, key).is_none() => {
                    let what = if key == "from" { "server" } else { "station" };
                    self.note(join(path, key), format!("is required in a home that has not exactly one {what}"));
                }
                // Without any node, links have their own mistakes.
                Some(node) if !nodes.contains(node) && !nodes.is_empty() => {
                    let hint = hint(node, nodes.iter().map(String::as_str));
                    let many = nodes.iter().take(12).map(String::as_str);
                    let known = listed(many) + if nodes.len() > 12 { ", ..." } else { "" };
                    self.note(join(path, key), format!("there is no node `{node}`{hint} (nodes: {known})"));
                }
                _ => {}
            }
        }
        self.endpoints(file, path, flow);
        self.times(file, path, flow);
        self.coupled(file, path, flow);
        self.bundle(file, path, flow);
        self.relay(file, path, flow);
        let profile = flow.profile.unwrap_or(file.profile);
        // An unknown controller is reported elsewhere.
        let feedback = flow.rtp.as_ref().and_then(crate::keys::rtp::RtpTable::format);
        let (segment, header) =
            flow.scheme().map_or((0, 0), |scheme| sizes(scheme, profile.control(), flow.is_quic(), feedback));
        let segment = flow.segment.map_or(segment.into(), Size::bytes);
        let header = flow.header.map_or(header.into(), Size::bytes);
        if segment.saturating_add(header) > MAX_PACKET {
            self.note(
                join(path, "segment"),
                format!(
                    "segment and header make {} B together, but a packet has at most {MAX_PACKET} B",
                    segment + header
                ),
            );
        }
        if segment.saturating_add(header) > MAX_AIR_PACKET && self.is_over_the_air(file, flow) {
            let problem = format!(
                "segment and header make {} B together, but a frame of 802.11 takes a packet of at most {MAX_AIR_PACKET} B",
                segment.saturating_add(header)
            );
            self.note(join(path, "segment"), problem);
        }
        self.controller(file, path, flow, profile);
        self.app(&join(path, "app"), &flow.app, segment);
        self.request(file, path, flow, profile);
    }

    /// Whether a flow begins or ends at a station of a cell.
    fn is_over_the_air(&self, file: &File, flow: &FlowTable) -> bool {
        let default_node = |key| self.home_end(file, key).filter(|_| file.topology == Topology::Home);
        let ends = [flow.from.clone().or_else(|| default_node("from")), flow.to.clone().or_else(|| default_node("to"))];
        let is_station = |node: &String| file.cell.values().any(|cell| cell.station.contains_key(node));
        ends.iter().flatten().any(is_station)
    }

    fn controller(&mut self, file: &File, path: &str, flow: &FlowTable, profile: Profile) {
        let Ok(scheme) = flow.scheme() else {
            let names = || schemes().map(|scheme| scheme.name);
            let problem = match nearest(&flow.cc, names()) {
                _ if crate::keys::named::OWN.iter().any(|prefix| flow.cc.starts_with(prefix)) => {
                    format!("`{}` is loaded by who runs the scenario, and nothing of that name was", flow.cc)
                }
                Some(name) => format!("`{}` is not known; did you mean `{name}`?", flow.cc),
                None => format!(
                    "`{}` must be one of {}, or your own as `python:FILE:CLASS` or `library:FILE`",
                    flow.cc,
                    listed(names())
                ),
            };
            return self.note(join(path, "cc"), problem);
        };
        self.parameters(path, flow, (scheme, file.carried_by(flow)), profile);
        self.rtp(path, flow, scheme);
        if flow.kernel {
            self.kernel(path, flow, scheme, profile);
        }
        self.quic(path, flow, scheme, profile);
        match scheme.machine {
            Machine::Tcp(_) if flow.is_quic() => {}
            Machine::Tcp(_) => {
                if matches!(flow.app, App::Encoder { .. }) {
                    self.note(join(&join(path, "app"), "kind"), no_frames(scheme));
                }
                self.effects(path, flow, scheme, profile);
            }
            Machine::Acks | Machine::Rtp | Machine::Tfrc | Machine::Udp => {
                self.machine(path, flow, scheme, profile);
            }
        }
    }

    /// Rejects keys that would have no effect: a comparison over one would compare a flow with itself.
    fn effects(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme, profile: Profile) {
        let defaults = TcpConfig::new(profile.control(), scheme);
        let own = matches!(profile, Profile::Linux | Profile::Ns2Linux);
        let who = format!("`{}` under profile `{}`", scheme.name, profile.name());
        let strange = match profile {
            Profile::Ns2Linux => matches!(scheme.name, "newreno" | "sack" | "tahoe"), // `select_ca` knows none of them
            Profile::Linux => scheme.name == "tahoe",
            Profile::Ns2 | Profile::Rfc => false,
        };
        if strange {
            let problem = format!(
                "`{}` is not there under profile `{}`, which repairs losses with SACK alone: use `reno`, Reno's window",
                scheme.name,
                profile.name()
            );
            self.note(join(path, "cc"), problem);
        }
        let recovery = flow.recovery.map_or(defaults.recovery, Recovery::control);
        let bound = matches!(defaults.recovery, ControlRecovery::Vegas | ControlRecovery::Rack);
        if matches!(profile, Profile::Ns2 | Profile::Ns2Linux) && recovery == ControlRecovery::Rack {
            let key = if defaults.recovery == ControlRecovery::Rack { "cc" } else { "recovery" };
            let problem = format!(
                "{who}: ns-2 finds no losses by time and paces nothing (RFC 8985); use profile `rfc` or `linux`"
            );
            self.note(join(path, key), problem);
        } else if recovery != defaults.recovery && (own || bound) {
            let problem = format!("{who} repairs losses its own way; leave `{}` out", recovery.name());
            self.note(join(path, "recovery"), problem);
        }
        if flow.ecn_feedback.is_some() && !flow.ecn.unwrap_or(defaults.ecn.is_on()) {
            self.note(join(path, "ecn_feedback"), "tells of no marks without `ecn = true`: set that, or leave it out");
        }
        if flow.prr.is_some() && (profile != Profile::Rfc || recovery != ControlRecovery::Sack) {
            let problem =
                "goes with `recovery = \"sack\"` under profile `rfc`; profile `linux` always has it; leave it out";
            self.note(join(path, "prr"), problem);
        }
        let paces = TcpController::new(scheme, profile.control(), &[]).is_ok_and(|c| c.needs().pacing);
        if flow.ecn == Some(true) && scheme.name == "c4" {
            let problem =
                "its text does not say yet what a mark is to `c4`, which would take no notice of any; leave it out";
            self.note(join(path, "ecn"), problem);
        }
        if flow.pacing.is_some() && paces {
            self.note(join(path, "pacing"), format!("{who} paces anyway; leave the key out"));
        } else if flow.pacing.is_some() && profile != Profile::Linux && recovery != ControlRecovery::Rack {
            let problem = "goes with profile `linux`, and with `recovery = \"rack\"` under profile `rfc`; leave it out";
            self.note(join(path, "pacing"), problem);
        }
        let mut useless = |key: &str, value: &str| {
            self.note(join(path, key), format!("`{value}` has no effect on {who}; leave the key out"));
        };
        if let Some(variant) = flow.newreno.filter(|_| own || recovery != ControlRecovery::NewReno) {
            useless("newreno", if variant == NewrenoVariant::Impatient { "impatient" } else { "slow-but-steady" });
        }
        if profile == Profile::Linux {
            if let Some(limited) = flow.limited_transmit.filter(|limited| *limited != defaults.limited_transmit) {
                useless("limited_transmit", &limited.to_string());
            }
            if flow.send_overhead > Span::ZERO {
                self.note(join(path, "send_overhead"), "is ns-2's, and not there under profile `linux`; leave it out");
            }
        } else {
            for (key, given) in [("receive_buffer", flow.receive_buffer), ("send_buffer", flow.send_buffer)] {
                if given.is_some() {
                    let problem =
                        "is the kernel's: it goes with profile `linux`; elsewhere `receive_window` bounds the flow";
                    self.note(join(path, key), problem);
                }
            }
        }
    }

    /// Where a flow begins and ends; empty if the file must say and does not.
    pub(super) fn ends(&self, file: &File, flow: &FlowTable) -> (String, String) {
        let (first, last) = match file.topology {
            Topology::Dumbbell => ("left".to_owned(), "right".to_owned()),
            Topology::ParkingLot => ("r0".to_owned(), format!("r{}", file.hops.unwrap_or(file.link.len() as u32))),
            Topology::Home => {
                (self.home_end(file, "from").unwrap_or_default(), self.home_end(file, "to").unwrap_or_default())
            }
            Topology::Graph => (String::new(), String::new()),
        };
        (flow.from.clone().unwrap_or(first), flow.to.clone().unwrap_or(last))
    }

    fn endpoints(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let (from, to) = self.ends(file, flow);
        if !from.is_empty() && from == to {
            self.note(join(path, "to"), format!("`{to}` is also where the flow comes from"));
        }
        let named = matches!(file.topology, Topology::Graph | Topology::Home);
        for (key, given) in [("rtt", flow.rtt.is_some()), ("access", flow.access.is_some())] {
            if given && named && file.access.is_none() {
                let problem =
                    "needs access links to lie on: add an `[access]` table, or give the delay to the graph's links";
                self.note(join(path, key), problem);
            }
        }
    }

    /// The default begin or end of flows in a home.
    fn home_end(&self, file: &File, key: &str) -> Option<String> {
        let (from, to) = home_ends(file);
        if key == "from" { from } else { to }
    }

    fn times(&mut self, file: &File, path: &str, flow: &FlowTable) {
        self.draw(&join(path, "start"), Some(&flow.start), flow.count);
        self.draw(&join(path, "rtt"), flow.rtt.as_ref(), flow.count);
        self.own_access(&join(path, "access"), flow);
        let Some(latest) = flow.start.maximum() else { return };
        if latest >= file.duration {
            self.note(join(path, "start"), format!("`{latest}` must be before the run ends, at {}", file.duration));
        }
        if let Some(stop) = flow.stop
            && stop <= latest
        {
            self.note(join(path, "stop"), format!("`{stop}` must be later than the start, {latest}"));
        }
    }

    /// Rules for the values of `count` instances.
    fn draw<T: Value>(&mut self, key: &str, draw: Option<&Draw<T>>, count: u32) {
        let Some(draw) = draw else { return };
        if let Draw::Each(values) = draw
            && values.len() != count as usize
        {
            let many = values.len();
            let problem =
                format!("has {many} values, but the flow has `count = {count}`: it needs one for each instance");
            self.note(key, problem);
        }
        let Some((law, [min, greatest])) = draw.bounds() else { return };
        if min > greatest {
            self.note(join(key, law), format!("`{min}` must not be more than `{greatest}`"));
        } else if draw.mass() < MIN_MASS {
            let problem = format!("less than 1 % of the law lies from `{min}` to `{greatest}`");
            self.note(join(key, law), problem);
        }
    }

    /// Rules for a flow's own access links.
    fn own_access(&mut self, path: &str, flow: &FlowTable) {
        let Some(access) = &flow.access else { return };
        let receiver = access.receiver.clone().unwrap_or_default();
        let receivers = join(path, "receiver");
        for (path, rate, loss) in [(path, &access.rate, &access.loss), (&receivers, &receiver.rate, &receiver.loss)] {
            self.draw(&join(path, "rate"), rate.as_ref(), flow.count);
            let key = join(path, "loss");
            self.draw(&key, loss.as_ref(), flow.count);
            if loss.as_ref().and_then(Draw::maximum).is_some_and(|max| max.0 >= 1.0) {
                self.note(key, "a link that loses everything carries nothing: less than 100 %");
            }
        }
    }

    fn app(&mut self, path: &str, app: &App, segment: u64) {
        match *app {
            App::Ftp { size, ref limited } => {
                if let Some(size) = size.filter(|size| size.bytes().div_ceil(segment.max(1)) > MAX_SEGMENTS) {
                    let problem = format!("`{size}` in segments of {segment} B is more than {MAX_SEGMENTS} segments");
                    self.note(join(path, "size"), problem);
                }
                let path = join(path, "limited");
                if size.is_some() && !limited.is_empty() {
                    self.note(&path, "is of an endless transfer: leave `size` out");
                }
                self.apart(&path, limited.iter().map(|part| (part.from, part.to)), "limited time");
            }
            App::Web { mean_size, median_size, max_size, shape, gap_shape, .. } => {
                // Without a given mean, the default's applies.
                let (key, usual) = match (median_size, mean_size) {
                    (Some(median), _) => ("median_size", median),
                    (None, mean) => ("mean_size", mean.unwrap_or(WEB_MEAN)),
                };
                if let Some(max) = max_size.filter(|max| *max < usual) {
                    let problem = format!("`{max}` must not be less than `{key}`, {usual}");
                    self.note(join(path, "max_size"), problem);
                }
                if let Some(shape) = gap_shape.filter(|&shape| shape <= 1.0) {
                    let problem = format!("`{shape}` must be more than 1: a Pareto law has no mean otherwise");
                    self.note(join(path, "gap_shape"), problem);
                }
                if mean_size.is_some() && median_size.is_some() {
                    self.note(join(path, "median_size"), "only one of `mean_size` and `median_size` may be given");
                }
                if median_size.is_none() && shape <= 1.0 {
                    self.note(
                        join(path, "shape"),
                        format!(
                            "`{shape}` must be more than 1: a Pareto law has no mean otherwise (or give `median_size`)"
                        ),
                    );
                }
            }
            App::Pareto { shape, .. } => {
                if shape <= 1.0 {
                    let problem = format!("`{shape}` must be more than 1: a Pareto law has no mean otherwise");
                    self.note(join(path, "shape"), problem);
                }
            }
            App::Cbr { .. } | App::Relay { .. } | App::Video { .. } | App::VideoTrace { .. } | App::Voice { .. } => {}
            App::Game { jitter, .. } => {
                let interval = app.ticks().map_or(Span::ZERO, |(_, interval)| interval);
                if jitter >= interval {
                    self.note(join(path, "jitter"), format!("`{jitter}` must be less than the interval, {interval}"));
                }
            }
            App::Encoder { min_rate, max_rate, ref pauses, ref jitter_buffer, ref traces, .. } => {
                for (number, two) in traces.windows(2).enumerate().filter(|(_, two)| two[0].rate >= two[1].rate) {
                    let key = format!("{}[{}].rate", join(path, "traces"), number + 1);
                    self.note(key, format!("`{}` must be more than the one before, {}", two[1].rate, two[0].rate));
                }
                if min_rate > max_rate {
                    let problem = format!("`{min_rate}` must not be more than `max_rate`, `{max_rate}`");
                    self.note(join(path, "min_rate"), problem);
                }
                if let Some(buffer) = jitter_buffer
                    && buffer.min_margin > buffer.max_margin
                {
                    let max = buffer.max_margin;
                    let problem = format!("`{}` must not be more than `max_margin`, `{max}`", buffer.min_margin);
                    self.note(join(&join(path, "jitter_buffer"), "min_margin"), problem);
                }
                let pauses = pauses.iter().map(|pause| (pause.from, pause.to));
                self.apart(&join(path, "pauses"), pauses, "pause");
            }
            App::Stream { media_rate, length, buffer, client_buffer, .. } => {
                let media = media_rate * length;
                if media.bytes().div_ceil(segment.max(1)) > MAX_MEDIA_PACKETS || media.bytes() == 0 {
                    let problem = format!("{media_rate} for {length} must make 1 B to {MAX_MEDIA_PACKETS} segments");
                    self.note(join(path, "length"), problem);
                }
                if buffer.0 <= 0.0 {
                    self.note(join(path, "buffer"), "must be more than 0 %");
                }
                let start = Size::from_bytes((media.bytes() as f64 * buffer.0) as u64);
                if let ClientBuffer::Limited(size) = client_buffer
                    && size < start
                {
                    self.note(
                        join(path, "client_buffer"),
                        format!(
                            "`{size}` is less than the {start} that `buffer` waits for: play-out would never begin"
                        ),
                    );
                }
            }
        }
    }
}
