//! UDP payloads of flows without TCP: RTP, RTCP, Paceline's own messages, or plain datagrams.

use super::content::{Addresses, Content, ZEROS, checksum};
use super::pcapng::Direction;
use super::tfrc::Tfrc;
use etherparse::UdpHeader;
use paceline_flow::Transport;
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{Extra, Flags, Packet, UDP_IPV4};
use paceline_sim::Captured;

/// Destination port of RTP data (RFC 3551 section 8); reports use the next port.
const RTP: u16 = 5004;
/// Destination port of TFRC, and of packets that are acknowledged individually.
const TFRC: u16 = 5010;
/// Destination port of other datagrams: discard (RFC 863).
const DISCARD: u16 = 9;
/// The first port used by senders; even, as for RTP.
const FIRST: u16 = 32_768;

/// A flow's datagrams.
pub(super) struct Udp {
    flow: u32,
    /// Whether its packets are acknowledged individually.
    acks: bool,
    tfrc: Tfrc,
}

impl Udp {
    /// The datagrams of the flow with this number.
    pub(super) fn new(flow: u32, transport: &Transport) -> Udp {
        let several = matches!(transport, Transport::Tfrc { config, .. } if config.settings.multiple_connections);
        let acks = matches!(transport, Transport::Acks { .. });
        Udp { flow, acks, tfrc: Tfrc::new(flow, several) }
    }

    pub(super) fn content(&mut self, captured: &Captured, direction: Direction, addresses: Addresses) -> Content {
        let packet = &captured.packet;
        let mut message = Vec::new();
        let (port, second) = match &captured.extra {
            // what cannot be encoded becomes a plain datagram of the same size
            Some(Extra::Rtp(data)) if rtp::encode(data, &mut message).is_ok() => (RTP, 0),
            Some(Extra::Rtcp(compound)) if rtcp::encode(compound, &mut message).is_ok() => (RTP, 1),
            Some(Extra::TfrcData(subflow, data)) => {
                message = self.tfrc.data(packet, direction, *subflow, data);
                (TFRC, 0)
            }
            Some(Extra::TfrcReport(subflow, report)) => {
                message = self.tfrc.report(packet, direction, *subflow, report);
                (TFRC, 0)
            }
            Some(Extra::Ack(hole)) => {
                message = self.tfrc.ack(packet, *hole);
                (TFRC, 0)
            }
            None if self.acks => {
                message = self.tfrc.single(packet);
                (TFRC, 0)
            }
            _ => (DISCARD, 0),
        };
        let near = FIRST + (self.flow * 2 % u32::from(FIRST)) as u16 + second;
        let ports = if packet.flags.has(Flags::ACK) { (port + second, near) } else { (near, port + second) };
        // a report's size is that of its bytes
        let whole = match captured.extra {
            Some(Extra::Ack(_) | Extra::Rtcp(_) | Extra::TfrcReport(..)) if !message.is_empty() => message.len(),
            _ => usize::from(packet.size).saturating_sub(UDP_IPV4).max(message.len()),
        };
        let payload = (whole - message.len()).min(ZEROS.len());
        datagram(packet, addresses, ports, message, payload)
    }
}

fn datagram(
    packet: &Packet,
    addresses: Addresses,
    (from, to): (u16, u16),
    message: Vec<u8>,
    payload: usize,
) -> Content {
    let len = message.len() + payload;
    let mut header = UdpHeader {
        source_port: from,
        destination_port: to,
        length: u16::try_from(UdpHeader::LEN + len).unwrap_or(u16::MAX),
        checksum: 0,
    };
    // trailing zeros do not change the checksum, except through the length, which the header contains
    let right = header.calc_checksum_ipv4_raw(addresses.from, addresses.to, &message).unwrap_or(0);
    header.checksum = checksum(packet, right);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(message);
    Content { header: bytes, payload }
}
