//! Frames: a simulated packet as the bytes on a wire, beginning with its IPv4 header.

use super::pcapng::Direction;
use super::tcp::Tcp;
use super::udp::Udp;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header};
use paceline_flow::Transport;
use paceline_packet::{Flags, FlowId, Packet};
use paceline_sim::Captured;
use paceline_sim::bundling::connections;
use paceline_sim::model::Model;

/// Number of payload bytes kept of a packet beyond its headers. All are zeros.
const KEPT: usize = 8;

/// A packet's source and destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) from: [u8; 4],
    pub(super) to: [u8; 4],
}

/// What follows the IPv4 header: bytes, and the number of zeros after them.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) header: Vec<u8>,
    pub(super) payload: usize,
}

/// Zeros for the longest payload.
pub(super) static ZEROS: [u8; 65_536] = [0; 65_536];

/// The address of a node: 10.0.0.1 for the first.
pub(super) const fn address(node: usize) -> [u8; 4] {
    let [_, b, c, d] = (node as u32 + 1).to_be_bytes();
    [10, b, c, d]
}

/// A random-looking number for a flow: its initial sequence number, its connection id.
pub(super) const fn scramble(flow: u32, connection: u32) -> u32 {
    // the finaliser of SplitMix64
    let mut z = ((flow as u64) << 32 | connection as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as u32
}

struct Flow {
    source: usize,
    sink: usize,
    kind: Kind,
}

enum Kind {
    Tcp(Tcp),
    Udp(Udp),
}

/// The flows of a run, with the state that their headers need.
pub(super) struct Frames {
    flows: Vec<Flow>,
}

impl Frames {
    pub(super) fn new(model: &Model) -> Frames {
        // flows of a bundle have one connection
        let connections = connections(&model.flows);
        let connection = |i: usize| connections.as_ref().map_or(i as u32, |of| of[i]);
        let flows = model.flows.iter().enumerate().map(|(i, flow)| Flow {
            source: flow.source,
            sink: flow.sink,
            kind: match &flow.transport {
                Transport::Tcp { config, .. } => Kind::Tcp(Tcp::new(config, i as u32)),
                other => Kind::Udp(Udp::new(connection(i), other)),
            },
        });
        Frames { flows: flows.collect() }
    }

    /// Writes the kept part of the frame to `bytes`; returns its direction and its length on the wire. It must be
    /// called for every captured packet, in order, because sequence numbers count what has been sent. `None` for an
    /// unknown flow.
    pub(super) fn next(&mut self, captured: &Captured, bytes: &mut Vec<u8>) -> Option<(Direction, u32)> {
        let packet = &captured.packet;
        let FlowId(number) = packet.flow;
        let flow = self.flows.get_mut(number as usize)?;
        let (from, to) = if packet.flags.has(Flags::ACK) { (flow.sink, flow.source) } else { (flow.source, flow.sink) };
        let direction = if captured.node == from { Direction::Out } else { Direction::In };
        let addresses = Addresses { from: address(from), to: address(to) };
        let (protocol, content) = match &mut flow.kind {
            Kind::Tcp(tcp) => (IpNumber::TCP, tcp.content(captured, direction, addresses)),
            Kind::Udp(udp) => (IpNumber::UDP, udp.content(captured, direction, addresses)),
        };
        let len = content.header.len() + content.payload;
        let header = ip_header(packet, protocol, addresses, len);
        bytes.clear();
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(&content.header);
        bytes.extend_from_slice(&ZEROS[..content.payload.min(KEPT)]);
        Some((direction, u32::from(header.total_len)))
    }
}

fn ip_header(packet: &Packet, protocol: IpNumber, addresses: Addresses, len: usize) -> Ipv4Header {
    let mut header = Ipv4Header {
        dscp: IpDscp::ZERO,
        ecn: ecn(packet.flags),
        total_len: u16::try_from(20 + len).unwrap_or(u16::MAX),
        // atomic datagrams (RFC 6864 section 4.1)
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        protocol,
        source: addresses.from,
        destination: addresses.to,
        ..Ipv4Header::default()
    };
    header.header_checksum = header.calc_header_checksum();
    header
}

/// The ECN field (RFC 3168 section 5): a CE mark hides the ECT codepoint.
fn ecn(flags: Flags) -> IpEcn {
    match flags {
        flags if flags.has(Flags::CE) => IpEcn::CongestionExperienced,
        flags if flags.has(Flags::L4S) => IpEcn::Ect1,
        flags if flags.has(Flags::ECT) => IpEcn::Ect0,
        _ => IpEcn::NotEct,
    }
}

/// Returns a wrong checksum for a damaged packet, the `right` one otherwise.
pub(super) const fn checksum(packet: &Packet, right: u16) -> u16 {
    if !packet.flags.has(Flags::CORRUPT) {
        return right;
    }
    // never zero, which in UDP means no checksum
    if right == 1 { 2 } else { right ^ 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ecn_field_has_both_classes() {
        let l4s = Flags::ECT.with(Flags::L4S);
        let of = [Flags::NONE, Flags::ECT, l4s, Flags::ECT.with(Flags::CE), l4s.with(Flags::CE)]
            .map(|flags| ecn(flags).value());
        assert_eq!(of, [0b00, 0b10, 0b01, 0b11, 0b11]);
    }
}
