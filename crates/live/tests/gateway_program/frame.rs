//! Packets of TCP, as tests of the gateway write and read them.

/// A frame of TCP, as a test writes it.
#[derive(Clone, Debug)]
pub struct Frame {
    pub down: bool,
    pub six: bool,
    pub flow: u8,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub payload: usize,
    pub options: Vec<u8>,
    pub extensions: usize,
    pub padding: usize,
}

pub const ACK: u8 = 16;
pub const SYN: u8 = 2;

impl Frame {
    pub fn of(down: bool, flags: u8, seq: u32, ack: u32) -> Frame {
        Frame {
            down,
            six: false,
            flow: 0,
            flags,
            seq,
            ack,
            window: 0,
            payload: 0,
            options: Vec::new(),
            extensions: 0,
            padding: 0,
        }
    }

    /// The IP packet, its checksum right.
    pub fn ip(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut tcp = Vec::new();
        let (lan, remote) = (40_000_u16, 443_u16 + u16::from(self.flow));
        let (from, to) = if self.down { (remote, lan) } else { (lan, remote) };
        tcp.extend(from.to_be_bytes());
        tcp.extend(to.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&options);
        tcp.extend((0..self.payload).map(|i| i as u8));
        let mut ends =
            if self.six { [[0xfd, 1].repeat(8), [0xfd, 2].repeat(8)] } else { [vec![10, 0, 0, 2], vec![192, 0, 2, 1]] };
        if self.down {
            ends.reverse();
        }
        let pseudo = [&ends[0][..], &ends[1][..], &[0, 6], &(tcp.len() as u16).to_be_bytes()].concat();
        let checksum = !sum(&[&pseudo[..], &tcp[..]].concat());
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = if self.six {
            let mut extensions = Vec::new();
            for i in 0..self.extensions {
                let last = i + 1 == self.extensions;
                extensions.extend([if last { 6 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
            }
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(((tcp.len() + extensions.len()) as u16).to_be_bytes());
            header.extend([if self.extensions == 0 { 6 } else { 0 }, 64]);
            [header, ends.concat(), extensions].concat()
        } else {
            let words = self.extensions.min(10);
            let mut header = vec![0x45 + words as u8, 0];
            header.extend(((20 + 4 * words + tcp.len()) as u16).to_be_bytes());
            header.extend([0, 0, 0, 0, 64, 6, 0, 0]);
            let mut header = [header, ends.concat(), vec![1; 4 * words]].concat();
            let checksum = !sum(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        };
        packet.extend(tcp);
        packet.resize(packet.len() + self.padding, 0);
        packet
    }
}

fn sum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| (u32::from(pair[0]) << 8) | pair.get(1).map_or(0, |&low| u32::from(low));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether the checksum of a packet without padding, options and extensions is right.
pub fn is_right(packet: &[u8]) -> bool {
    let (header, ends) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
    let len = (packet.len() - header) as u16;
    sum(&[&packet[ends], &[0, 6], &len.to_be_bytes(), &packet[header..]].concat()) == 0xffff
}

pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet.first().is_some_and(|b| b >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, packet].concat()
}

pub fn window_of(packet: &[u8]) -> u16 {
    let header = if packet[0] >> 4 == 4 { usize::from(packet[0] & 15) * 4 } else { 40 };
    u16::from_be_bytes([packet[header + 14], packet[header + 15]])
}
