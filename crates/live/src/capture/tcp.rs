//! A simulated TCP segment as bytes: converts segment numbers to sequence numbers.
//!
//! The simulator numbers segments, and a flow's next connection continues the numbers of the previous one. On the wire
//! each connection has its own port at its sender, and counts bytes from an initial sequence number. Segments at the
//! end of a write may be shorter than the others: which ones is recorded when they leave the sender.

use super::content::{Addresses, Content, ZEROS, checksum, scramble};
use super::pcapng::Direction;
use etherparse::{TcpHeader, TcpOptionElement};
use paceline_control::{Ecn, Profile};
use paceline_flow::tcp::TcpConfig;
use paceline_packet::{Block, Extra, Flags, Packet, TcpOptions};
use paceline_sim::Captured;

/// Destination port of connections: iperf's.
const SERVER: u16 = 5001;
/// The first ephemeral port (RFC 6335 section 6).
const EPHEMERAL: u16 = 49_152;
/// Length of IPv4 and TCP headers without options.
const HEADERS: u16 = 40;
/// Length of the timestamps option with two fillers before it (RFC 7323 appendix A).
const STAMPS: u16 = 12;
/// Maximum window shift (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

/// A flow's connections.
pub(super) struct Tcp {
    flow: u32,
    sack: bool,
    ecn: Ecn,
    /// Whether simulated segments carry the ECN negotiation themselves.
    negotiates: bool,
    stamps: bool,
    bare_syn: bool,
    /// Bytes of a data segment except its payload.
    header: u16,
    /// Payload of a full segment.
    full: u16,
    /// The receiver's default window in segments.
    window: u64,
    shift: u8,
    connections: Vec<Connection>,
}

struct Connection {
    number: u32,
    /// Its first segment.
    base: u32,
    /// One past its last segment so far.
    end: u32,
    /// Whether the first segment is a SYN, which has its own sequence number.
    syn: bool,
    /// Segments shorter than the others, with the total shortfall of each and all before it.
    shorts: Vec<(u32, i64)>,
}

impl Connection {
    /// Bytes from the initial sequence number to this segment.
    fn offset(&self, seq: u32, full: u16) -> i64 {
        let segments = i64::from(seq) - i64::from(self.base);
        let shorter = match self.shorts.partition_point(|&(short, _)| short < seq) {
            0 => 0,
            i => self.shorts[i - 1].1,
        };
        segments * i64::from(full) - shorter + i64::from(self.syn && segments > 0)
    }
}

impl Tcp {
    pub(super) fn new(config: &TcpConfig, flow: u32) -> Tcp {
        let stamps = config.profile == Profile::Linux;
        let header = HEADERS + if stamps { STAMPS } else { 0 };
        // if headers have no size, as in ns-2, the wire's headers reduce the payload
        let full = config.wire().saturating_sub(header).max(1);
        let window = u64::from(config.receive_window);
        let bytes = window * u64::from(full);
        let shift = (0..MAX_SHIFT).find(|shift| bytes >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT);
        Tcp {
            flow,
            sack: config.sack(),
            ecn: config.ecn,
            negotiates: config.negotiates(),
            stamps,
            bare_syn: config.bare_syn(),
            header,
            full,
            window,
            shift,
            connections: Vec::new(),
        }
    }

    pub(super) fn content(&mut self, captured: &Captured, direction: Direction, addresses: Addresses) -> Content {
        let packet = &captured.packet;
        let ack = packet.flags.has(Flags::ACK);
        if !ack && direction == Direction::Out {
            self.note(packet);
        }
        let payload = if ack { 0 } else { self.payload(packet) };
        let mut header = self.segment(packet, captured.extra.as_ref().and_then(Extra::tcp));
        let zeros = &ZEROS[..usize::from(payload)];
        let right = header.calc_checksum_ipv4_raw(addresses.from, addresses.to, zeros).unwrap_or(0);
        header.checksum = checksum(packet, right);
        Content { header: header.to_bytes().to_vec(), payload: zeros.len() }
    }

    fn payload(&self, packet: &Packet) -> u16 {
        if packet.flags.has(Flags::SYN) && self.bare_syn { 0 } else { packet.size.saturating_sub(self.header).max(1) }
    }

    /// Records a data segment that leaves its sender.
    fn note(&mut self, packet: &Packet) {
        let syn = packet.flags.has(Flags::SYN);
        let payload = self.payload(packet);
        let begins = self.connections.last().is_none_or(|last| syn && packet.seq >= last.end);
        if begins {
            let number = self.connections.last().map_or(0, |last| last.number + 1);
            let (base, end, shorts) = (packet.seq, packet.seq, Vec::new());
            self.connections.push(Connection { number, base, end, syn, shorts });
            // segments of all but the last few connections are no longer on their way
            if self.connections.len() > 8 {
                self.connections.remove(0);
            }
        }
        let Some(last) = self.connections.last_mut() else { return };
        if packet.seq < last.end {
            return;
        }
        last.end = packet.seq + 1;
        let shorter = i64::from(self.full) - i64::from(payload);
        if shorter != 0 {
            let before = last.shorts.last().map_or(0, |&(_, before)| before);
            last.shorts.push((packet.seq, before + shorter));
        }
    }

    fn segment(&self, packet: &Packet, extra: Option<&TcpOptions>) -> TcpHeader {
        let ack = packet.flags.has(Flags::ACK);
        let syn = packet.flags.has(Flags::SYN);
        // an acknowledgement has the number after the one it acknowledges
        let last = if ack { packet.seq.saturating_sub(1) } else { packet.seq };
        let nothing = Connection { number: 0, base: 0, end: 0, syn: false, shorts: Vec::new() };
        let connection = self.connections.iter().rfind(|connection| connection.base <= last).unwrap_or(&nothing);
        let number = connection.number;
        let isn = scramble(self.flow, 2 * number);
        let at = |seq: u32| isn.wrapping_add(connection.offset(seq, self.full) as u32);
        let near = EPHEMERAL + (self.flow.wrapping_add(number.wrapping_mul(997)) % 16_384) as u16;
        let far_isn = scramble(self.flow, 2 * number + 1);
        let mut header = TcpHeader::default();
        (header.source_port, header.destination_port) = if ack { (SERVER, near) } else { (near, SERVER) };
        header.sequence_number = match (ack, syn) {
            (false, _) => at(packet.seq),
            (true, true) => far_isn,
            (true, false) => far_isn.wrapping_add(1),
        };
        header.syn = syn;
        header.ack = ack || !syn;
        if header.ack {
            header.acknowledgment_number = if ack { at(packet.seq) } else { far_isn.wrapping_add(1) };
        }
        header.psh = packet.flags.has(Flags::PUSH);
        // a SYN requests ECN, its acknowledgement agrees (RFC 3168 section 6.1.1); ns-2's simulated segments lack these
        // flags
        let requests_ecn = syn && self.ecn.is_on() && !self.negotiates;
        header.ece = packet.flags.has(Flags::ECE) || requests_ecn;
        header.cwr = packet.flags.has(Flags::CWR) || (requests_ecn && !ack);
        header.ns = packet.flags.has(Flags::AE);
        let segments = extra.and_then(|options| options.window).map_or(self.window, |window| u64::from(window.get()));
        // without a SYN the shift is unknown; a SYN's own window is unscaled
        let shift = if connection.syn && !syn { self.shift } else { 0 };
        let units = (segments * u64::from(self.full)).div_ceil(1 << shift);
        header.window_size = u16::try_from(units).unwrap_or(u16::MAX);
        let blocks: Vec<Block> = extra.into_iter().flat_map(TcpOptions::blocks).collect();
        let options = self.options(packet, blocks.iter().map(|block| (at(block.start), at(block.end))).collect());
        // they fit: 20 bytes in a SYN, 40 with timestamps and three blocks
        let fits = header.set_options(&options);
        debug_assert!(fits.is_ok(), "{fits:?}");
        header
    }

    fn options(&self, packet: &Packet, blocks: Vec<(u32, u32)>) -> Vec<TcpOptionElement> {
        let (ack, syn) = (packet.flags.has(Flags::ACK), packet.flags.has(Flags::SYN));
        let mut options = Vec::new();
        if syn {
            let stamps = if self.stamps { STAMPS } else { 0 };
            options.push(TcpOptionElement::MaximumSegmentSize(self.full.saturating_add(stamps)));
            options.extend(self.sack.then_some(TcpOptionElement::SelectiveAcknowledgementPermitted));
            options.push(TcpOptionElement::WindowScale(self.shift));
        }
        if self.stamps {
            // the receiver's own clock is not simulated: it sends the value that it echoes
            let echo = if ack { packet.stamp.0 } else { 0 };
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::Timestamp(packet.stamp.0, echo));
        }
        if let [first, rest @ ..] = &blocks[..] {
            let rest = core::array::from_fn(|i| rest.get(i).copied());
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::SelectiveAcknowledgement(*first, rest));
        }
        options
    }
}
