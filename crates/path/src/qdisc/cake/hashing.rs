//! Maps a packet to its queue and hosts, with hashes into eight-way sets: flows share a queue only when more than eight
//! active ones fall into one set.

use super::model::{Hosts, Isolation};
use super::{Cake, FlowState};
use paceline_packet::Packet;

/// The number of queues, and of host slots.
pub(super) const QUEUES: usize = 1024;
const WAYS: usize = 8;

/// A host slot: the hash of its owner in each role, and its number of bulk flows in each role.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    tags: [u32; 2],
    pub(super) bulk_flow_count: [u16; 2],
}

/// The roles of a host: sender and receiver.
pub(super) const SOURCE: usize = 0;
pub(super) const DESTINATION: usize = 1;

/// How a slot was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Own,
    Free,
    /// All ways belong to others.
    Shared,
}

/// The slot of a hash among [`QUEUES`], set-associative.
fn place(hash: u32, is_own: impl Fn(usize) -> bool, is_free: impl Fn(usize) -> bool) -> (usize, Found) {
    let home = hash as usize % QUEUES;
    let ways = || (0..WAYS).map(|way| home - home % WAYS + (home + way) % WAYS);
    if let Some(own) = ways().find(|at| is_own(*at)) {
        return (own, Found::Own);
    }
    ways().find(|at| is_free(*at)).map_or((home, Found::Shared), |free| (free, Found::Free))
}

impl Cake {
    /// The hosts of a packet: sender and receiver.
    fn hosts_of(&self, packet: &Packet) -> [u64; 2] {
        let (flow, stamp) = (packet.flow.0, packet.stamp.0);
        let own = [u64::from(flow) << 1 | 1 << 40, u64::from(flow) << 1 | 1 << 40 | 1];
        let [from, to] = match &self.hosts {
            Hosts::OfEachFlow => own,
            Hosts::Of(table) => table.get(flow as usize).map_or(own, |hosts| hosts.map(u64::from)),
            Hosts::Stamped => return [stamp >> 16, stamp & 0xffff].map(u64::from),
        };
        if self.keys.goes_back(packet) { [to, from] } else { [from, to] }
    }

    pub(super) fn hash_of_hosts(&self, packet: &Packet) -> [u32; 2] {
        let [from, to] = self.hosts_of(packet);
        [from << 1, to << 1 | 1].map(|key| (self.hashes[1].bits(key) >> 32) as u32)
    }

    /// Returns the queue of a packet and assigns it to the packet's flow.
    pub(super) fn classify(&mut self, packet: &Packet) -> usize {
        let hash = match self.isolation {
            Isolation::FlowBlind => return 0,
            Isolation::SrcHost => self.hash_of_hosts(packet)[SOURCE],
            Isolation::DstHost => self.hash_of_hosts(packet)[DESTINATION],
            Isolation::Hosts => {
                let [from, to] = self.hash_of_hosts(packet);
                from ^ to
            }
            Isolation::Flows | Isolation::DualSrcHost | Isolation::DualDstHost | Isolation::Triple => {
                (self.hashes[0].bits(self.keys.key(packet)) >> 32) as u32
            }
        };
        let home = &self.flows[hash as usize % QUEUES];
        if home.tag == hash && home.state != FlowState::None {
            return hash as usize % QUEUES;
        }
        let flows = &self.flows;
        let (number, found) = place(hash, |at| flows[at].tag == hash, |at| flows[at].state == FlowState::None);
        let (was, roles) = (self.flows[number].state, self.roles());
        self.flows[number].tag = hash;
        if found == Found::Own && was != FlowState::None || roles == [false; 2] {
            return number;
        }
        // new here, or shared with other flows: the hosts are now this packet's
        if was == FlowState::Bulk {
            self.update_bulk_flow_counts(number, false);
        }
        let hashes = self.hash_of_hosts(packet);
        for role in [SOURCE, DESTINATION] {
            if roles[role] {
                let (hosts, hash) = (&self.places, hashes[role]);
                let (at, _) = place(hash, |at| hosts[at].tags[role] == hash, |at| hosts[at].bulk_flow_count[role] == 0);
                self.places[at].tags[role] = hash;
                self.flows[number].hosts[role] = at as u16;
            }
        }
        if was == FlowState::Bulk {
            self.update_bulk_flow_counts(number, true);
        }
        number
    }

    /// Whether sending hosts and receiving hosts share fairly.
    fn roles(&self) -> [bool; 2] {
        [self.isolation.shares_by_source(), self.isolation.shares_by_destination()]
    }

    /// Updates its hosts' bulk flow counts when a queue becomes bulk, or stops being bulk.
    pub(super) fn update_bulk_flow_counts(&mut self, number: usize, is: bool) {
        let roles = self.roles();
        for role in [SOURCE, DESTINATION] {
            if roles[role] {
                let count = &mut self.places[usize::from(self.flows[number].hosts[role])].bulk_flow_count[role];
                *count = if is { *count + 1 } else { *count - 1 };
            }
        }
    }

    /// The divisor of a queue's quantum: the larger bulk flow count of its two hosts.
    pub(super) fn load(&self, number: usize) -> u32 {
        let roles = self.roles();
        let bulk_flow_count = |role: usize| {
            let host = &self.places[usize::from(self.flows[number].hosts[role])];
            if roles[role] { u32::from(host.bulk_flow_count[role]) } else { 0 }
        };
        bulk_flow_count(SOURCE).max(bulk_flow_count(DESTINATION)).max(1)
    }
}
