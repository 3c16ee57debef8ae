//! Frames: a simulated packet as the bytes on a wire, beginning with its IPv4 header.

use super::content::{Addresses, ZEROS};
use super::pcapng::Direction;
use super::tcp::Tcp;
use super::udp::Udp;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header};
use paceline_flow::Transport;
use paceline_packet::{Flags, FlowId, Packet};
use paceline_scenario::model::{Model, connections};
use paceline_sim::Captured;

/// Number of payload bytes kept of a packet beyond its headers. All are zeros.
const KEPT: usize = 8;

/// The address of a node: 10.0.0.1 for the first.
pub(super) const fn address(node: usize) -> [u8; 4] {
    let [_, b, c, d] = (node as u32 + 1).to_be_bytes();
    [10, b, c, d]
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
