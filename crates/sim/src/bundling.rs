//! Bundles of a host: streams of several flows that leave by one's controller, pace and feedback (WebRTC's BUNDLE).
//!
//! Each flow keeps its source, its sink and its row. After each event at a member the host tells the leader's sender what waits
//! there, gives members the turns that it has for them, and divides its rate among all encoders; what arrives for a member goes
//! into the feedback of the leader's receiver. The machines' half is `paceline_flow::rtp`'s.
//!
//! Over QUIC they are tracks of one connection: the host hands the leader's sender what members write and tells them what became of it,
//! and hands members' sinks what has come to the leader's. The machine's half is `paceline_flow::quic`'s.

use crate::endpoint::{Sink, Source};
use crate::model::FlowModel;
use paceline_control::allocation::{Claim, allocate};
use paceline_flow::quic::{TrackArrivals, TrackConfig};
use paceline_flow::rtp::{Carried, Grant, Turn, Waiting};
use paceline_flow::{Receiver, Sender, Transmit, Transport};
use paceline_units::{Rate, Time};

/// What a flow is in its bundle.
#[derive(Clone, PartialEq, Debug)]
pub struct BundleModel {
    /// The name of the flow that leads: another's, or its own.
    pub leader: String,
    /// What it claims of the rate.
    pub claim: Claim,
}

impl FlowModel {
    /// Whether another flow leads it.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.bundle.as_ref().is_some_and(|bundle| bundle.leader != self.name)
    }

    /// Whether `leader` leads it.
    #[must_use]
    pub fn goes_with(&self, leader: &FlowModel) -> bool {
        let named = self.bundle.as_ref().is_some_and(|bundle| bundle.leader == leader.name);
        named && self.instance == leader.instance && self.is_led() && !leader.is_led()
    }
}

/// Over QUIC, what has a greater priority in its bundle leaves first.
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

/// By flow, the number of its connection: flows of a bundle have that of the flow that leads. `None` if there is no bundle.
#[must_use]
pub fn connections(flows: &[FlowModel]) -> Option<Vec<u32>> {
    let of = |(number, flow): (usize, &FlowModel)| {
        let leads = flow.is_led().then(|| flows.iter().position(|leader| flow.goes_with(leader)));
        leads.flatten().unwrap_or(number) as u32
    };
    flows.iter().any(FlowModel::is_led).then(|| flows.iter().enumerate().map(of).collect())
}

/// How the rate of a bundle is divided; the leader is its first member.
#[derive(Debug)]
pub struct Division {
    claims: Vec<Claim>,
    /// Who has a greater priority has all that he claims before others have anything.
    strict: bool,
}

impl Division {
    /// Of members with these claims.
    #[must_use]
    pub fn new(claims: Vec<Claim>) -> Division {
        Division { claims, strict: false }
    }

    /// What each member has of `rate`, by what each could send in bits a second; `None` of those that send nothing now.
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

/// Divides `rate` among those of the greatest priority, what they leave among those of the next, and so on.
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
    /// What waits here, for the leader.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.waiting(),
            _ => Waiting::NOTHING,
        }
    }

    /// Of a leader: the turn that it has for another.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.turn(),
            _ => None,
        }
    }

    /// Of a leader: what its members may have; `None` before its controller names a rate.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        match &self.sender {
            Sender::Rtp(rtp) => rtp.grant(),
            _ => None,
        }
    }
}

impl Sink {
    /// The packet that has come, for the leader's receiver.
    pub fn take_carried(&mut self) -> Option<Carried> {
        match &mut self.receiver {
            Receiver::Rtp(rtp) => rtp.take_carried(),
            _ => None,
        }
    }

    /// Of a leader's sink: a packet of a member has come.
    pub fn carry(&mut self, now: Time, packet: Carried, out: &mut impl Transmit) {
        if let Receiver::Rtp(rtp) = &mut self.receiver {
            rtp.carry(now, packet, out);
        }
    }

    /// Of a leader's sink over QUIC: what has come of a track.
    pub fn take_track(&mut self, track: u8) -> Option<TrackArrivals> {
        match &mut self.receiver {
            Receiver::Quic(quic) => Some(quic.take_track(track)),
            _ => None,
        }
    }
}

/// A bundle among the sources of a host, by their slots; the leader's is the first.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) members: Vec<usize>,
    pub(crate) division: Division,
    /// Of members after the first, over QUIC.
    tracks: Vec<TrackConfig>,
}

/// The bundles of a host in the simulator.
#[derive(Debug)]
pub struct Bundling {
    bundles: Vec<Bundle>,
    /// By source: its bundle, and its place among those that are led.
    of: Vec<Option<(usize, Option<usize>)>>,
    /// By sink: the leader's, if it is led; those that it leads, if it leads.
    leads: Vec<Option<usize>>,
    led: Vec<Vec<usize>>,
}

impl Bundling {
    /// Of a host with these senders and receivers, numbered from 0; `None` if none is of a bundle.
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

    /// Leaders over QUIC are told of their tracks.
    pub(crate) fn lead(&self, sources: &mut [Source]) {
        for bundle in &self.bundles {
            if let Sender::Quic(quic) = &mut sources[bundle.members[0]].sender {
                quic.lead(bundle.tracks.iter().copied());
            }
        }
    }

    /// The sinks that one leads, in the order of their tracks.
    pub(crate) fn led_sinks(&self, sink: usize) -> &[usize] {
        &self.led[sink]
    }

    /// The bundle of a source, and the source's place among those that are led.
    pub(crate) fn bundle(&self, source: usize) -> Option<(&Bundle, Option<usize>)> {
        let (number, place) = self.of[source]?;
        Some((&self.bundles[number], place))
    }

    /// The sink of the leader of a sink that is led.
    pub(crate) fn leader_of_sink(&self, sink: usize) -> Option<usize> {
        self.leads[sink]
    }
}
