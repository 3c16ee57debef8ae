//! Bundles of a host: several flows that share one flow's controller, pacer and feedback (WebRTC's BUNDLE).
//!
//! Each flow keeps its source, its sink and its results. After each event at a member, the host reports the member's
//! backlog to the leader's sender, grants members their turns to send, and divides the leader's rate among all
//! encoders. Packets that arrive for a member enter the feedback of the leader's receiver. The machine's half is in
//! `paceline_flow::rtp`.
//!
//! Over QUIC, the flows are tracks of one connection. The host passes members' writes to the leader's sender and
//! reports their state back, and passes arrivals on the leader's connection to members' sinks. The machine's half is in
//! `paceline_flow::quic`.

use crate::endpoint::{Sink, Source};
use paceline_control::allocation::{Claim, allocate};
use paceline_flow::quic::{TrackArrivals, TrackConfig};
use paceline_flow::rtp::{Carried, Grant, Turn, Waiting};
use paceline_flow::{Receiver, Sender, Transmit, Transport};
use paceline_scenario::model::FlowModel;
use paceline_units::{Rate, Time};

/// Ranks QUIC tracks by priority: within a bundle, a higher priority is sent first.
pub(crate) fn rank_tracks(flows: &mut [FlowModel]) {
    let priority = |flow: &FlowModel| flow.bundle.as_ref().map_or(0.0, |bundle| bundle.claim.priority);
    let is_one = |flow: &FlowModel, leader: &FlowModel| flow.goes_with(leader) || std::ptr::eq(flow, leader);
    let rank = |flow: &FlowModel| {
        let leader = flows.iter().find(|leader| flow.goes_with(leader)).unwrap_or(flow);
        let others = flows.iter().filter(|other| is_one(other, leader)).map(priority);
        let mut greater: Vec<f64> = others.filter(|other| *other > priority(flow)).collect();
        greater.sort_by(f64::total_cmp);
        greater.dedup();
        greater.len().min(usize::from(u8::MAX)) as u8
    };
    let bundled = flows.iter().map(|flow| flow.bundle.is_some().then(|| rank(flow)));
    for (at, rank) in bundled.collect::<Vec<_>>().into_iter().enumerate() {
        if let (Transport::Quic { config, .. }, Some(rank)) = (&mut flows[at].transport, rank) {
            config.track.rank = rank;
        }
    }
}

/// How the rate of a bundle is divided; the leader is its first member.
#[derive(Debug)]
pub struct Division {
    claims: Vec<Claim>,
    /// A higher priority gets its whole claim before a lower one gets anything.
    strict: bool,
}

impl Division {
    /// For members with these claims.
    #[must_use]
    pub fn new(claims: Vec<Claim>) -> Division {
        Division { claims, strict: false }
    }

    /// Each member's share of `rate`, given each member's maximum rate in bit/s; `None` for members that send nothing
    /// now.
    pub fn parts(&self, rate: Rate, demands: &[f64]) -> Vec<Option<Rate>> {
        let active: Vec<usize> = (0..self.claims.len()).filter(|member| demands[*member] > 0.0).collect();
        let claim = |&member: &usize| Claim {
            max_rate: self.claims[member].max_rate.min(demands[member]),
            ..self.claims[member]
        };
        let claims: Vec<Claim> = active.iter().map(claim).collect();
        let mut parts = vec![None; self.claims.len()];
        let divided = if self.strict { strictly(rate.bps(), &claims) } else { allocate(rate.bps(), &claims) };
        for (member, part) in active.into_iter().zip(divided) {
            parts[member] = Some(Rate(part as u64));
        }
        parts
    }
}

/// Divides `rate` among the claims with the highest priority, the rest among those with the next, and so on.
fn strictly(rate: f64, claims: &[Claim]) -> Vec<f64> {
    let mut priorities: Vec<f64> = claims.iter().map(|claim| claim.priority).collect();
    priorities.sort_by(|one, other| other.total_cmp(one));
    priorities.dedup();
    let (mut left, mut parts) = (rate, vec![0.0; claims.len()]);
    for priority in priorities {
        let alike: Vec<usize> = (0..claims.len()).filter(|&at| claims[at].priority == priority).collect();
        let divided = allocate(left, &alike.iter().map(|&at| claims[at]).collect::<Vec<_>>());
        for (at, part) in alike.into_iter().zip(divided) {
            parts[at] = part;
            left = (left - part).max(0.0);
        }
    }
    parts
}

impl Source {
    /// The backlog of this source, for the leader's sender.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.waiting(),
            _ => Waiting::NOTHING,
        }
    }

    /// For a leader: the next turn to send, and the member that it is for.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.turn(),
            _ => None,
        }
    }

    /// For a leader: what its members may send; `None` before its controller sets a rate.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.grant(),
            _ => None,
        }
    }
}

impl Sink {
    /// The packet that has arrived, for the leader's receiver.
    pub fn take_carried(&mut self) -> Option<Carried> {
        match &mut self.receiver {
            Receiver::Rtp(rtp) => rtp.take_carried(),
            _ => None,
        }
    }

    /// For a leader's sink: handles a packet that arrived for a member.
    pub fn carry(&mut self, now: Time, packet: Carried, out: &mut impl Transmit) {
        if let Receiver::Rtp(rtp) = &mut self.receiver {
            rtp.carry(now, packet, out);
        }
    }

    /// For a leader's sink over QUIC: takes what has arrived on a track.
    pub fn take_track(&mut self, track: u8) -> Option<TrackArrivals> {
        match &mut self.receiver {
            Receiver::Quic(quic) => Some(quic.take_track(track)),
            _ => None,
        }
    }
}

/// A bundle among the sources of a host, by index; the leader is first.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) members: Vec<usize>,
    pub(crate) division: Division,
    /// Tracks of the members after the first, over QUIC.
    tracks: Vec<TrackConfig>,
}

/// The bundles of a host in the simulator.
#[derive(Debug)]
pub struct Bundling {
    bundles: Vec<Bundle>,
    /// For each source, its bundle, and its index among the led members.
    of: Vec<Option<(usize, Option<usize>)>>,
    /// For each sink, the leader's sink if it is led; in `led`, the sinks that it leads.
    leads: Vec<Option<usize>>,
    led: Vec<Vec<usize>>,
}

impl Bundling {
    /// For a host with these senders and receivers, numbered from 0; `None` if none is in a bundle.
    #[must_use]
    pub fn of(sending: &[&FlowModel], receiving: &[&FlowModel]) -> Option<Box<Bundling>> {
        let is_any = sending.iter().chain(receiving).any(|flow| flow.is_led());
        if !is_any {
            return None;
        }
        let of = vec![None; sending.len()];
        let mut bundling = Bundling { bundles: Vec::new(), of, leads: Vec::new(), led: Vec::new() };
        for (slot, leader) in sending.iter().enumerate() {
            let led: Vec<usize> = (0..sending.len()).filter(|other| sending[*other].goes_with(leader)).collect();
            if led.is_empty() {
                continue;
            }
            let number = bundling.bundles.len();
            bundling.of[slot] = Some((number, None));
            led.iter().enumerate().for_each(|(place, member)| bundling.of[*member] = Some((number, Some(place))));
            let members: Vec<usize> = std::iter::once(slot).chain(led).collect();
            let claims = members.iter().filter_map(|member| Some(sending[*member].bundle.as_ref()?.claim)).collect();
            let strict = matches!(leader.transport, Transport::Quic { .. });
            let track = |member: &usize| match &sending[*member].transport {
                Transport::Quic { config, .. } => Some(config.track),
                _ => None,
            };
            let tracks = members.iter().skip(1).filter_map(track).collect();
            bundling.bundles.push(Bundle { members, division: Division { claims, strict }, tracks });
        }
        let leader = |flow: &&FlowModel| receiving.iter().position(|leader| flow.goes_with(leader));
        bundling.leads = receiving.iter().map(leader).collect();
        let led = |slot| (0..receiving.len()).filter(|other| bundling.leads[*other] == Some(slot)).collect();
        bundling.led = (0..receiving.len()).map(led).collect();
        Some(Box::new(bundling))
    }

    /// Passes the tracks to leaders over QUIC.
    pub(crate) fn lead(&self, sources: &mut [Source]) {
        for bundle in &self.bundles {
            if let Sender::Quic(quic) = &mut sources[bundle.members[0]].sender {
                quic.lead(bundle.tracks.iter().copied());
            }
        }
    }

    /// The sinks that this one leads, in the order of their tracks.
    pub(crate) fn led_sinks(&self, sink: usize) -> &[usize] {
        &self.led[sink]
    }

    /// The bundle of a source, and the source's index among the led members.
    pub(crate) fn bundle(&self, source: usize) -> Option<(&Bundle, Option<usize>)> {
        let (number, place) = self.of[source]?;
        Some((&self.bundles[number], place))
    }

    /// The leader's sink, for a sink that is led.
    pub(crate) fn leader_of_sink(&self, sink: usize) -> Option<usize> {
        self.leads[sink]
    }
}
