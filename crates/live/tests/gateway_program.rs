//! The gateway's programs in the kernel, packet by packet: against their twin in Rust, and against what must hold.

#[path = "../../../tests/needs.rs"]
mod needs;

use paceline_live::gateway::bpf::attach::DataPath;
use paceline_live::gateway::bpf::system::Program;
use paceline_live::gateway::keeper::WindowKeeper;
use paceline_live::gateway::table::{Control, FlowState, Key};
use proptest::prelude::*;

fn ready() -> bool {
    needs::have("root") && needs::probed("BPF", DataPath::load(14).is_ok())
}

/// A frame of TCP, as a test writes it.
#[derive(Clone, Debug)]
struct Frame {
    down: bool,
    six: bool,
    flow: u8,
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    payload: usize,
    options: Vec<u8>,
    extensions: usize,
    padding: usize,
}

const ACK: u8 = 16;
const SYN: u8 = 2;

impl Frame {
    fn of(down: bool, flags: u8, seq: u32, ack: u32) -> Frame {
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
    fn ip(&self) -> Vec<u8> {
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
fn is_right(packet: &[u8]) -> bool {
    let (header, ends) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
    let len = (packet.len() - header) as u16;
    sum(&[&packet[ends], &[0, 6], &len.to_be_bytes(), &packet[header..]].concat()) == 0xffff
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet.first().is_some_and(|b| b >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, packet].concat()
}

/// What does not depend on the clock.
fn timeless(state: &FlowState) -> FlowState {
    FlowState {
        seen: 0,
        handshake: u64::from(state.handshake != 0),
        probe: u64::from(state.probe != 0),
        wan_rtt: u32::from(state.wan_rtt != 0),
        lan_rtt: u32::from(state.lan_rtt != 0),
        lan_rtt_min: u32::from(state.lan_rtt_min != 0),
        longest: state.longest.map(|longest| u32::from(longest != 0)),
        ..*state
    }
}

/// The programs and their twin, fed with the same frames.
struct Pair {
    kernel: DataPath,
    twin: WindowKeeper,
    now: u64,
}

impl Pair {
    fn new() -> Pair {
        Pair { kernel: DataPath::load(14).unwrap(), twin: WindowKeeper::new(), now: 1_000_000 }
    }

    fn control(&mut self, control: Control) {
        self.kernel.tell(&control).unwrap();
        self.twin.control = control;
    }

    /// The packet as both left it.
    fn pass(&mut self, down: bool, packet: &[u8]) -> Vec<u8> {
        let program: &Program = if down { &self.kernel.egress } else { &self.kernel.ingress };
        let run = program.test_run(&ethernet(packet), 1).unwrap();
        assert_eq!(run.verdict, -1);
        let mut twin = packet.to_vec();
        self.now += 1_000_000;
        if down {
            self.twin.forward(self.now, &twin);
        } else {
            self.twin.back(self.now, &mut twin);
        }
        assert_eq!(run.packet[14..], twin, "of {packet:02x?}");
        assert_eq!(self.kernel.counts().unwrap(), self.twin.counts(), "of {packet:02x?}");
        twin
    }

    fn agree(&self) {
        let mut kernel = self.kernel.flows.all().unwrap();
        kernel.sort_by_key(|(key, _)| *key);
        let kernel: Vec<_> = kernel.iter().map(|(key, state)| (*key, timeless(state))).collect();
        let twin: Vec<_> = self.twin.flows().map(|(key, state)| (*key, timeless(state))).collect();
        assert_eq!(kernel, twin);
    }
}

fn on(window: u32) -> Control {
    Control { deadline: u64::MAX, window, ..Control::default() }
}

fn window_of(packet: &[u8]) -> u16 {
    let header = if packet[0] >> 4 == 4 { usize::from(packet[0] & 15) * 4 } else { 40 };
    u16::from_be_bytes([packet[header + 14], packet[header + 15]])
}

/// A handshake, with the station's SYN first or the remote one.
fn handshake(pair: &mut Pair, six: bool, remote_opens: bool) {
    let scale = |shift| vec![2, 4, 5, 0xb4, 1, 3, 3, shift];
    let lan = Frame { six, window: 64_000, options: scale(7), ..Frame::of(false, SYN, 1000, 0) };
    let remote = Frame { six, window: 64_000, options: scale(9), ..Frame::of(true, SYN, 5000, 0) };
    for down in [remote_opens, !remote_opens] {
        let frame = if down { remote.clone() } else { lan.clone() };
        let first = down == remote_opens;
        let packet = Frame { flags: if first { SYN } else { SYN | ACK }, ..frame }.ip();
        assert_eq!(pair.pass(down, &packet), packet, "a SYN is left as it is");
    }
}

#[test]
fn a_window_is_lowered_and_its_checksum_right() {
    if !ready() {
        return;
    }
    for (six, remote_opens) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut pair = Pair::new();
        pair.control(on(30_000));
        handshake(&mut pair, six, remote_opens);
        let ack = Frame { six, window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
        let after = pair.pass(false, &ack.ip());
        // 30,000 bytes in units of 128, rounded up.
        assert_eq!(window_of(&after), 235);
        assert!(is_right(&ack.ip()) && is_right(&after));
        // Never raised.
        let small = Frame { window: 200, ..ack.clone() };
        assert_eq!(pair.pass(false, &small.ip()), small.ip());
        // Never below what the sender has sent: 40,000 bytes are on their way.
        for i in 0..40 {
            let data = Frame { six, payload: 1000, ..Frame::of(true, ACK, 5001 + 1000 * i, 1001) };
            pair.pass(true, &data.ip());
        }
        assert_eq!(window_of(&pair.pass(false, &ack.ip())), 313);
        let later = Frame { ack: 5001 + 30_000, ..ack.clone() };
        assert_eq!(window_of(&pair.pass(false, &later.ip())), 235);
        // Zero windows and resets stay.
        for frame in [Frame { window: 0, ..ack.clone() }, Frame { flags: 4 | ACK, ..ack.clone() }] {
            assert_eq!(pair.pass(false, &frame.ip()), frame.ip());
        }
        pair.agree();
    }
}

#[test]
fn never_below_two_segments() {
    if !ready() {
        return;
    }
    let mut pair = Pair::new();
    pair.control(on(1));
    handshake(&mut pair, false, false);
    let ack = Frame { window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
    // The MSS of the SYN, 1460.
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), (2_u16 * 1460).div_ceil(128));
    let data = Frame { payload: 3000, ..Frame::of(true, ACK, 5001, 1001) };
    pair.pass(true, &data.ip());
    let ack = Frame { ack: 8001, ..ack };
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), 6000_u16.div_ceil(128));
}

#[test]
fn what_began_before_is_left_alone_and_a_passed_deadline_ends_it() {
    if !ready() {
        return;
    }
    let mut pair = Pair::new();
    pair.control(on(3000));
    let ack = Frame { window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    handshake(&mut pair, false, false);
    assert_ne!(pair.pass(false, &ack.ip()), ack.ip());
    pair.control(Control { mode: Control::DRY, ..on(3000) });
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    // A nanosecond after the machine's start.
    pair.control(Control { deadline: 1, ..on(3000) });
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    pair.control(on(0));
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    let key = *pair.twin.flows().next().unwrap().0;
    pair.kernel.clamps.set(&key, &5000).unwrap();
    pair.twin.clamp(key, Some(5000));
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), 40);
}

fn frame() -> impl Strategy<Value = Frame> {
    let near = |base: u32| {
        prop_oneof![
            8 => (0..20_000_u32).prop_map(move |d| base.wrapping_add(d)),
            1 => any::<u32>(),
            1 => (0..3000_u32).prop_map(move |d| base.wrapping_sub(d)),
        ]
    };
    let flags = prop_oneof![
        6 => Just(ACK), 2 => Just(SYN), 2 => Just(SYN | ACK), 1 => Just(ACK | 1), 1 => Just(ACK | 4), 1 => any::<u8>()
    ];
    let window = prop_oneof![4 => any::<u16>(), 1 => Just(0), 2 => 0..400_u16];
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![0]),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        any::<[u8; 2]>().prop_map(|[a, b]| vec![2, 4, a, b]),
        Just(vec![4, 2]),
        Just(vec![8, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let options = proptest::collection::vec(option, 0..8).prop_map(|options| options.concat());
    let shape = (any::<bool>(), any::<bool>(), 0..3_u8, 0..7_usize, 0..3_usize, 0..1500_usize);
    (shape, flags, near(1 << 31), near(1 << 31), window, options).prop_map(
        |((down, six, flow, extensions, padding, payload), flags, seq, ack, window, options)| Frame {
            down,
            six,
            flow,
            flags,
            seq,
            ack,
            window,
            payload: if payload % 3 == 0 { 0 } else { payload },
            options: if flags & SYN != 0 { options } else { Vec::new() },
            extensions: extensions.saturating_sub(1),
            padding: padding * 3,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The programs in the kernel and the twin in Rust agree on each packet, each count and each connection's state.
    #[test]
    fn programs_and_twin_agree(
        frames in proptest::collection::vec((frame(), any::<u32>()), 1..60),
        window in prop_oneof![Just(0_u32), 1..100_000_u32],
    ) {
        if !ready() {
            return Ok(());
        }
        let mut pair = Pair::new();
        pair.control(on(window));
        for (i, (frame, damage)) in frames.iter().enumerate() {
            let mut packet = frame.ip();
            match damage % 16 {
                // A bit flips, or the end is missing: the programs must bear anything.
                0 => {
                    let at = (*damage >> 4) as usize % (packet.len().min(80) * 8);
                    packet[at / 8] ^= 1 << (at % 8);
                }
                // The kernel runs programs over whole IP headers alone.
                1 => {
                    let header = if frame.six { 40 } else { 20 };
                    packet.truncate(header + (*damage >> 4) as usize % (packet.len() - header));
                }
                2 => {
                    let keys: Vec<Key> = pair.twin.flows().map(|(key, _)| *key).collect();
                    for key in keys {
                        let clamp = (*damage >> 8) % 50_000;
                        pair.kernel.clamps.set(&key, &clamp).unwrap();
                        pair.twin.clamp(key, Some(clamp));
                    }
                }
                3 => pair.control(Control { interval: i as u32, ..on(window) }),
                _ => {}
            }
            pair.pass(frame.down, &packet);
        }
        pair.agree();
    }
}

#[test]
fn all_connections_are_listed() {
    if !ready() {
        return;
    }
    let path = DataPath::load(14).unwrap();
    for port in 0..3000_u16 {
        let mut packet = Frame::of(false, SYN, 1000, 0).ip();
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        path.ingress.test_run(&ethernet(&packet), 1).unwrap();
    }
    let mut ports: Vec<_> = path.flows.all().unwrap().iter().map(|(key, _)| key.lan_port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 3000);
}
