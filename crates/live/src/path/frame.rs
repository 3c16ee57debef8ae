//! What the path needs to know about an IP packet, and the two changes that it makes: to the ECN field, and a flipped
//! bit.
//!
//! For IPv4 (RFC 791) and IPv6 (RFC 8200); all access is bounds-checked, whatever the bytes are.

use crate::session::EcnBits;
use paceline_packet::Flags;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The 32-bit FNV-1a offset basis (Fowler, Noll, Vo; draft-eastlake-fnv).
const HASHED: u32 = 0x811c_9dc5;

fn hash(all: u32, byte: u8) -> u32 {
    (all ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// The hash of a 5-tuple.
fn tuple(protocol: u8, addresses: &[u8], ports: &[u8]) -> u32 {
    addresses.iter().chain(ports).fold(hash(HASHED, protocol), |all, byte| hash(all, *byte))
}

/// A 16-bit hash of an address (draft-eastlake-fnv, section 3: the halves are XOR-folded).
fn folded(address: &[u8]) -> u32 {
    let all = address.iter().fold(HASHED, |all, byte| hash(all, *byte));
    (all >> 16 ^ all) & 0xffff
}

/// Length, flags, header and flow of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Length of the packet in bytes, from its header.
    pub(super) size: u16,
    /// ECT, CE and L4S from the header (RFC 3168, RFC 9331), so never L4S with CE; ACK for a TCP acknowledgement
    /// without data.
    pub(super) flags: Flags,
    /// Length of the IP header in bytes.
    pub(super) header: usize,
    /// A hash of the 5-tuple: addresses, protocol, and the ports of TCP and UDP (none for a fragment).
    pub(super) flow: u32,
    /// A 16-bit hash of the source address in the upper half, of the destination in the lower.
    pub(super) hosts: u32,
    /// Source and destination port of TCP or UDP; `None` for a fragment.
    pub(super) ports: Option<[u16; 2]>,
}

impl Shape {
    /// The shape of a frame that begins with an IP header; bytes after the packet are padding. `None` if it is not a
    /// complete packet.
    pub(super) fn of(frame: &[u8]) -> Option<Shape> {
        let (header, size, protocol, is_first, addresses) = match frame.first()? >> 4 {
            4 => {
                let fixed: &[u8; 20] = frame.first_chunk()?;
                let header = usize::from(fixed[0] & 15) * 4;
                let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
                (header, usize::from(u16::from_be_bytes([fixed[2], fixed[3]])), fixed[9], offset == 0, 12..20)
            }
            6 => {
                let fixed: &[u8; 40] = frame.first_chunk()?;
                (40, 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])), fixed[6], true, 8..40)
            }
            _ => return None,
        };
        if header < 20 || size < header || size > frame.len() {
            return None;
        }
        let mut flags = ecn(frame).flags();
        if protocol == TCP && is_first && is_pure_ack(&frame[header..size]) {
            flags = flags.with(Flags::ACK);
        }
        let has_ports = (protocol == TCP || protocol == UDP) && is_first;
        let ports = frame[header..size].first_chunk::<4>().filter(|_| has_ports);
        let (source, destination) = frame[addresses.clone()].split_at(addresses.len() / 2);
        let hosts = folded(source) << 16 | folded(destination);
        let flow = tuple(protocol, &frame[addresses], ports.map_or(&[], |ports| ports));
        let ports = ports.map(|&[a, b, c, d]| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
        Some(Shape { size: u16::try_from(size).ok()?, flags, header, flow, hosts, ports })
    }

    /// The flow hash that `frame`, which has this shape, would have with these ports.
    pub(super) fn flow_of(&self, frame: &[u8], [source, destination]: [u16; 2]) -> u32 {
        let (protocol, addresses) = if frame[0] >> 4 == 4 { (frame[9], 12..20) } else { (frame[6], 8..40) };
        let ([a, b], [c, d]) = (source.to_be_bytes(), destination.to_be_bytes());
        tuple(protocol, &frame[addresses], &[a, b, c, d])
    }
}

/// Whether a TCP segment is an acknowledgement without data (RFC 9293 section 3.1).
fn is_pure_ack(segment: &[u8]) -> bool {
    let Some(fixed) = segment.first_chunk::<20>() else { return false };
    const ACK: u8 = 1 << 4;
    fixed[13] & ACK != 0 && usize::from(fixed[12] >> 4) * 4 >= segment.len()
}

/// The two ECN bits.
fn ecn(frame: &[u8]) -> EcnBits {
    EcnBits::of_tos(if frame[0] >> 4 == 4 { frame[1] } else { frame[1] >> 4 })
}

/// Sets the two ECN bits, and updates IPv4's header checksum (RFC 1624, equation 3).
pub(super) fn set_ecn(packet: &mut [u8], bits: EcnBits) {
    let bits = bits.tos();
    if packet[0] >> 4 == 6 {
        packet[1] = packet[1] & !0x30 | bits << 4;
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = packet[1] & !3 | bits;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    packet[10..12].copy_from_slice(&(!(new as u16)).to_be_bytes());
}

/// Flips one bit after the IP header, chosen by `draw`; returns `false` if there is nothing after it.
pub(super) fn damage(packet: &mut [u8], header: usize, draw: u64) -> bool {
    let Some(payload) = packet.get_mut(header..).filter(|payload| !payload.is_empty()) else { return false };
    let bit = (u128::from(draw) * (payload.len() as u128 * 8)) >> 64;
    payload[(bit / 8) as usize] ^= 1 << (bit % 8);
    true
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, SlicedPacket};
    use proptest::prelude::*;

    /// A UDP packet of `size` bytes that contains `number`.
    pub(in crate::path) fn udp(size: usize, number: u32) -> Vec<u8> {
        let mut frame = Vec::new();
        let mut payload = vec![0; size - 28];
        let kept = payload.len().min(4);
        payload[..kept].copy_from_slice(&number.to_be_bytes()[4 - kept..]);
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        builder.write(&mut frame, &payload).unwrap();
        frame
    }

    /// Whether an IPv4 header's checksum is correct.
    fn holds(frame: &[u8]) -> bool {
        let (header, _) = Ipv4Header::from_slice(frame).unwrap();
        header.calc_header_checksum() == header.header_checksum
    }

    #[test]
    fn another_ecn_field_keeps_the_checksum() {
        for tos in 0..=255u8 {
            let mut frame = udp(100, 7);
            frame[1] = tos;
            let (mut header, _) = Ipv4Header::from_slice(&frame).unwrap();
            header.header_checksum = header.calc_header_checksum();
            frame[10..12].copy_from_slice(&header.header_checksum.to_be_bytes());
            for bits in [EcnBits::Ce, EcnBits::NotEct, EcnBits::Ect1, EcnBits::Ect0] {
                set_ecn(&mut frame, bits);
                assert!(holds(&frame) && frame[1] == tos & !3 | bits.tos(), "{tos}, {bits:?}");
            }
        }
        let header = Ipv6Header { traffic_class: 0xa9, payload_length: 0, ..Ipv6Header::default() };
        let mut frame = header.to_bytes().to_vec();
        for (bits, class) in [(EcnBits::Ce, 0xab), (EcnBits::NotEct, 0xa8), (EcnBits::Ect0, 0xaa)] {
            set_ecn(&mut frame, bits);
            assert_eq!(Ipv6Header::from_slice(&frame).unwrap().0.traffic_class, class);
            assert_eq!(EcnBits::of_flags(Shape::of(&frame).unwrap().flags), bits);
        }
    }

    /// RFC 3168 section 5, figure 1.
    #[test]
    fn flags_tell_the_four_codepoints_apart() {
        let ce = Flags::ECT.with(Flags::CE);
        for (bits, flags) in (0..).zip([Flags::NONE, Flags::ECT.with(Flags::L4S), Flags::ECT, ce]) {
            let mut frame = udp(100, 7);
            frame[1] = 0xb8 | bits;
            assert_eq!(Shape::of(&frame).unwrap().flags, flags, "IPv4, {bits}");
            let header = Ipv6Header { traffic_class: 0xb8 | bits, payload_length: 0, ..Ipv6Header::default() };
            assert_eq!(Shape::of(&header.to_bytes()).unwrap().flags, flags, "IPv6, {bits}");
        }
    }

    #[test]
    fn padding_is_no_part_of_a_packet_and_what_is_cut_is_none() {
        let mut frame = udp(40, 7);
        let whole = Shape::of(&frame).unwrap();
        frame.resize(60, 0);
        assert_eq!(Shape::of(&frame), Some(Shape { size: 40, flags: Flags::NONE, header: 20, ..whole }));
        assert_eq!(Shape::of(&frame[..39]), None);
        // A length of zero, as in a GSO segment that the network card splits.
        frame[2..4].fill(0);
        assert_eq!(Shape::of(&frame), None);
    }

    #[test]
    fn an_acknowledgement_is_a_segment_without_data() {
        let tcp = |syn, ack, payload: &[u8], v6| {
            let builder = if v6 {
                PacketBuilder::ipv6([1; 16], [2; 16], 64)
            } else {
                PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            };
            let mut builder = builder.tcp(1, 2, 3, 4);
            builder = if syn { builder.syn() } else { builder };
            builder = if ack { builder.ack(9) } else { builder };
            let mut frame = Vec::new();
            builder.write(&mut frame, payload).unwrap();
            Shape::of(&frame).unwrap().flags.has(Flags::ACK)
        };
        for v6 in [false, true] {
            assert!(tcp(false, true, b"", v6) && tcp(true, true, b"", v6));
            assert!(!tcp(false, true, b"x", v6) && !tcp(true, false, b"", v6));
        }
        let mut frame = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 9).tcp(1, 2, 3, 4).ack(1).write(&mut frame, b"").unwrap();
        frame[7] = 1; // a later fragment has no TCP header
        assert!(!Shape::of(&frame).unwrap().flags.has(Flags::ACK));
    }

    #[test]
    fn ports_are_those_of_tcp_and_udp_and_of_no_fragment() {
        let mut frame = udp(60, 7);
        assert_eq!(Shape::of(&frame).unwrap().ports, Some([1, 2]));
        frame[7] = 1;
        assert_eq!(Shape::of(&frame).unwrap().ports, None);
        frame[7] = 0;
        frame[9] = 1; // ICMP
        assert_eq!(Shape::of(&frame).unwrap().ports, None);
        let header = [&[0x45, 0, 0, 23][..], &[0; 5], &[TCP], &[0; 13]].concat();
        assert_eq!(Shape::of(&header).unwrap().ports, None, "three bytes of TCP");
    }

    #[test]
    fn a_flow_is_a_5_tuple_in_one_way() {
        let flow = |from: u8, to: u8, ports: (u16, u16), payload: &[u8]| {
            let mut frame = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, from], [10, 0, 0, to], 64).tcp(ports.0, ports.1, 7, 9);
            builder.ack(1).write(&mut frame, payload).unwrap();
            Shape::of(&frame).unwrap().flow
        };
        let one = flow(1, 2, (80, 81), b"data");
        assert_eq!(one, flow(1, 2, (80, 81), b""), "data and acknowledgements of one way are one flow");
        let others = [flow(2, 1, (81, 80), b""), flow(1, 2, (80, 82), b""), flow(1, 3, (80, 81), b"")];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
        let mut frame = udp(60, 7);
        let whole = Shape::of(&frame).unwrap().flow;
        frame[7] = 1; // a later fragment has no ports
        assert_ne!(Shape::of(&frame).unwrap().flow, whole);
    }

    #[test]
    fn damage_is_one_bit_behind_the_header_that_checksums_find() {
        for draw in [0, 1 << 63, u64::MAX] {
            let frame = udp(60, 7);
            let mut damaged = frame.clone();
            assert!(damage(&mut damaged, 20, draw));
            let flipped: u32 = frame.iter().zip(&damaged).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!((flipped, &frame[..20]), (1, &damaged[..20]));
            let sliced = SlicedPacket::from_ip(&damaged).unwrap();
            let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport else { panic!("still UDP") };
            let sum = udp.to_header().calc_checksum_ipv4_raw([10, 0, 0, 1], [10, 0, 0, 2], udp.payload());
            assert_ne!(sum.unwrap(), udp.checksum());
        }
        let header = Ipv4Header::new(0, 9, IpNumber::UDP, [1; 4], [2; 4]).unwrap();
        assert!(!damage(&mut header.to_bytes().to_vec(), 20, 5));
    }

    proptest! {
        /// Any bytes, and bytes that begin like IP, are recognised as a complete packet or rejected.
        #[test]
        fn any_bytes(mut frame in prop::collection::vec(any::<u8>(), 0..200), first in 0x40..0x6fu8, draw: u64) {
            for replace in [false, true] {
                if let (true, Some(byte)) = (replace, frame.first_mut()) {
                    *byte = first;
                }
                if let Some(shape) = Shape::of(&frame) {
                    let size = usize::from(shape.size);
                    prop_assert!(shape.header >= 20 && shape.header <= size && size <= frame.len());
                    let packet = &mut frame[..size];
                    set_ecn(packet, EcnBits::Ce);
                    prop_assert_eq!(damage(packet, shape.header, draw), size > shape.header);
                }
            }
        }
    }
}
