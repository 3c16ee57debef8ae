//! Writes the defaults that depend on other keys into a file model, so that later steps find every value.

use crate::keys::bounds::Carried;
use crate::keys::file::{File, Topology};
use crate::keys::flow::{App, FlowTable};
use crate::keys::link::{AccessTable, BackwardTable, LinkTable};
use crate::keys::parameters::ParameterValue;
use crate::keys::relay::RELAY_QUEUE;
use crate::keys::repair::{EcnFeedback, NewrenoVariant, Recovery};
use crate::keys::values::{ClientBuffer, DelayedAck, HostDelay};
use paceline_control::{AckController, AcksController};
use paceline_control::{Machine, MediaController, RateController, RtpController, RtpFeedback, TfrcController};
use paceline_flow::acks::AcksConfig;
use paceline_flow::quic::QuicConfig;
use paceline_flow::rtp::RtpConfig;
use paceline_flow::tcp::{PartialAcks, TcpConfig};
use paceline_flow::tfrc::TfrcConfig;
use paceline_flow::udp::UdpConfig;
use paceline_units::{Rate, Size, Span};
use std::collections::BTreeSet;

/// Mean size of a web transfer, unless a median is given.
pub(super) const WEB_MEAN: Size = Size::from_bytes(50_000);

/// Fills in `file`; `stem` is the default of its name. Filling again changes nothing.
pub(super) fn fill(file: &mut File, stem: &str) {
    file.name.get_or_insert_with(|| stem.to_owned());
    let of_hosts = if file.profile.is_ns2() { HostDelay::Within(Span::ZERO) } else { HostDelay::PacketTimes(2.0) };
    file.host_delay.get_or_insert(of_hosts);
    if matches!(file.topology, Topology::Dumbbell | Topology::ParkingLot) {
        file.access.get_or_insert_default();
    }
    file.link.values_mut().for_each(fill_link);
    file.cell.values_mut().for_each(|cell| cell.fill(file.profile));
    let (first, last) = match file.topology {
        Topology::Dumbbell => (Some("left".to_owned()), Some("right".to_owned())),
        Topology::ParkingLot => {
            let hops = *file.hops.get_or_insert(file.link.len() as u32);
            (Some("r0".to_owned()), Some(format!("r{hops}")))
        }
        Topology::Home => home_ends(file),
        Topology::Graph => (None, None),
    };
    let framed: BTreeSet<String> = file
        .flow
        .values()
        .filter(|flow| writes_frames(flow))
        .filter_map(|flow| flow.leader())
        .map(str::to_owned)
        .collect();
    let relays = file.relaying_connections();
    // Leaders first: the others take over their sessions.
    let (leaders, led): (Vec<String>, Vec<String>) =
        file.flow.keys().cloned().partition(|name| file.flow[name].leader().is_none());
    for name in leaders.into_iter().chain(led) {
        let leader = file.flow[&name].leader().and_then(|leader| file.flow.get(leader)).cloned();
        let Some(flow) = file.flow.get_mut(&name) else { continue };
        if let Some(leader) = leader {
            (flow.rtp, flow.segment, flow.header) = (leader.rtp, leader.segment, leader.header);
        }
        flow.from = flow.from.take().or_else(|| first.clone());
        flow.to = flow.to.take().or_else(|| last.clone());
        let profile = *flow.profile.get_or_insert(file.profile);
        flow.group.get_or_insert_with(|| name.clone());
        if let Ok(scheme) = flow.scheme() {
            let profile = profile.control();
            match scheme.machine {
                Machine::Acks => {
                    if let Ok(controller) = AcksController::new(scheme, profile, &[]) {
                        fill_acks(flow, &AcksConfig::new(profile, controller.settings()));
                    }
                }
                Machine::Rtp => {
                    if let Ok(controller) = RtpController::new(scheme, profile, &[]) {
                        let frames = writes_frames(flow) || framed.contains(&name);
                        fill_rtp(flow, RtpConfig::new(profile, controller.settings()), frames);
                    }
                }
                Machine::Tcp(_) if flow.is_quic() => fill_quic(flow, &QuicConfig::new(profile, scheme)),
                Machine::Tcp(_) => fill_tcp(flow, &TcpConfig::new(profile, scheme)),
                Machine::Tfrc => {
                    if let Ok(controller) = TfrcController::new(scheme, profile, &[]) {
                        let frames = writes_frames(flow);
                        fill_tfrc(flow, &TfrcConfig::new(profile, controller.settings()).with_frames(frames));
                    }
                }
                Machine::Udp => fill_udp(flow, &UdpConfig::new(profile)),
            }
        }
        let connection = flow.leader().unwrap_or(&name);
        if relays.contains(connection) {
            flow.quic.get_or_insert_default().queue.get_or_insert(RELAY_QUEUE);
        }
        if let App::Web { mean_size, median_size: None, .. } = &mut flow.app {
            mean_size.get_or_insert(WEB_MEAN);
        }
    }
    // Headers are known now, and voice rates include them.
    for name in file.flow.keys().cloned().collect::<Vec<_>>() {
        let carried = file.carried(&name);
        let Some(flow) = file.flow.get_mut(&name) else { continue };
        let (Ok(scheme), profile) = (flow.scheme(), flow.profile.unwrap_or(file.profile).control()) else { continue };
        for parameter in scheme.parameters {
            let value = ParameterValue::new(parameter, Carried::usual(carried, parameter, profile));
            flow.params.entry(parameter.name.to_owned()).or_insert(value);
        }
    }
}

/// Fills in the access links; `fastest` is the maximum rate of any link or station at any time. Their queue is left
/// unset, because a configured queue is always reported.
pub(super) fn fill_access(file: &mut File, fastest: Rate) {
    let profile = file.profile;
    let Some(access) = &mut file.access else { return };
    access.rate.get_or_insert_with(|| AccessTable::rate_beside(fastest));
    access.backpressure.get_or_insert(!profile.is_ns2());
    let full = access.at_receivers().0;
    if let Some(receiver) = &mut access.receiver {
        receiver.rate = full.rate;
        receiver.delay = Some(full.delay);
        receiver.queue = full.queue;
    }
}

/// The server and the station of a home with only one of each.
pub(super) fn home_ends(file: &File) -> (Option<String>, Option<String>) {
    fn only<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<String> {
        names.next().filter(|_| names.next().is_none()).cloned()
    }
    let servers = file.link.iter().filter(|(_, link)| link.between.is_none()).map(|(name, _)| name);
    (only(servers), only(file.cell.values().flat_map(|cell| cell.station.keys())))
}

/// Whether its application writes frames.
fn writes_frames(flow: &FlowTable) -> bool {
    matches!(flow.app, App::Encoder { .. })
}

fn fill_rtp(flow: &mut FlowTable, rtp: RtpConfig, writes_frames: bool) {
    let table = flow.rtp.get_or_insert_default();
    let format = table.format().unwrap_or(rtp.feedback.format);
    let rtp = rtp.with_feedback(format).with_nack(table.nack);
    flow.segment.get_or_insert(Size::from_bytes(rtp.segment.into()));
    flow.header.get_or_insert(Size::from_bytes(rtp.header.into()));
    flow.rtp.get_or_insert_default().fill(rtp.settings, writes_frames);
    if rtp.settings.feedback == RtpFeedback::Arrivals {
        flow.ecn.get_or_insert(rtp.ecn);
    }
}

fn fill_acks(flow: &mut FlowTable, acks: &AcksConfig) {
    flow.segment.get_or_insert(Size::from_bytes(acks.segment.into()));
    flow.header.get_or_insert(Size::from_bytes(acks.header.into()));
    flow.ack_size.get_or_insert(Size::from_bytes(acks.ack_size.into()));
}

fn fill_tcp(flow: &mut FlowTable, tcp: &TcpConfig) {
    flow.segment.get_or_insert(Size::from_bytes(tcp.segment.into()));
    flow.header.get_or_insert(Size::from_bytes(tcp.header.into()));
    flow.ack_size.get_or_insert(Size::from_bytes(tcp.ack_size.into()));
    flow.initial_window.get_or_insert(tcp.initial_window);
    flow.receive_window.get_or_insert(tcp.receive_window);
    if tcp.profile == paceline_control::Profile::Linux {
        flow.receive_buffer.get_or_insert(ClientBuffer::of(tcp.receive_buffer));
        flow.send_buffer.get_or_insert(ClientBuffer::of(tcp.send_buffer));
    }
    flow.delayed_ack.get_or_insert(tcp.delayed_ack.map_or(DelayedAck::Off, DelayedAck::Within));
    flow.recovery.get_or_insert(Recovery::from_control(tcp.recovery));
    use paceline_control::Profile::{Linux, Ns2Linux};
    if flow.recovery == Some(Recovery::Newreno) && !matches!(tcp.profile, Linux | Ns2Linux) {
        flow.newreno.get_or_insert(match tcp.partial_acks {
            PartialAcks::Impatient => NewrenoVariant::Impatient,
            PartialAcks::SlowButSteady => NewrenoVariant::SlowButSteady,
        });
    }
    flow.limited_transmit.get_or_insert(tcp.limited_transmit);
    flow.ecn.get_or_insert(tcp.ecn.is_on());
    if flow.ecn == Some(true) {
        flow.ecn_feedback = flow.ecn_feedback.or(EcnFeedback::from_control(tcp.ecn)).or(Some(EcnFeedback::Classic));
    }
    if tcp.profile == paceline_control::Profile::Rfc && flow.recovery == Some(Recovery::Sack) {
        flow.prr.get_or_insert(tcp.prr);
    }
    flow.min_rto.get_or_insert(tcp.min_rto);
    flow.handshake.get_or_insert(tcp.handshake);
}

fn fill_quic(flow: &mut FlowTable, quic: &QuicConfig) {
    flow.segment.get_or_insert(Size::from_bytes(quic.datagram.into()));
    flow.header.get_or_insert(Size::from_bytes(quic.header.into()));
    flow.ecn.get_or_insert(quic.ecn);
    flow.quic.get_or_insert_default().fill(&flow.app, quic);
}

fn fill_tfrc(flow: &mut FlowTable, tfrc: &TfrcConfig) {
    flow.segment.get_or_insert(Size::from_bytes(tfrc.segment.into()));
    flow.header.get_or_insert(Size::from_bytes(tfrc.header.into()));
    flow.ack_size.get_or_insert(Size::from_bytes(tfrc.report_size.into()));
    flow.ecn.get_or_insert(tfrc.ecn);
}

fn fill_udp(flow: &mut FlowTable, udp: &UdpConfig) {
    flow.segment.get_or_insert(Size::from_bytes(udp.segment.into()));
    flow.header.get_or_insert(Size::from_bytes(udp.header.into()));
}

fn fill_link(link: &mut LinkTable) {
    if link.delay_schedule.is_none() {
        link.delay.get_or_insert_default();
    }
    let queue = link.queue.get_or_insert_default().clone();
    let backward = link.backward.get_or_insert_with(|| Box::new(BackwardTable::default()));
    if backward.rate.is_none() && backward.rate_schedule.is_none() && backward.rate_trace.is_none() {
        backward.rate = link.rate;
        backward.rate_schedule.clone_from(&link.rate_schedule);
    }
    if backward.delay.is_none() && backward.delay_schedule.is_none() {
        backward.delay = link.delay;
        backward.delay_schedule.clone_from(&link.delay_schedule);
    }
    if backward.queue.is_none() && backward.limit_schedule.is_none() {
        backward.limit_schedule.clone_from(&link.limit_schedule);
    }
    backward.queue.get_or_insert(queue);
}
