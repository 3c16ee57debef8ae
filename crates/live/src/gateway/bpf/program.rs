//! The data path's two programs for the LAN interface: [`Direction::Egress`] sees data on their way to stations,
//! [`Direction::Ingress`] the stations' ACKs, whose windows it lowers. `window_clamp.rs` does the same in Rust; a test
//! runs both with the same packets.
//!
//! Each packet ends with "next" (`TCX_NEXT`, `TC_ACT_UNSPEC`), so other programs and filters see it as if this one did
//! not exist. R6 holds the packet, R7 the connection, R9 the counters.

use super::assembler::{Alu, Assembler, Cond, Helper, Instruction, Label, Reg, Reg::*, Width::*};
use crate::gateway::table::{Control, Counter, FlowState, Key, flag};
use core::mem::offset_of;

/// Direction of the packets that a program sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From stations.
    Ingress,
    /// Towards stations.
    Egress,
}

/// Parameters of a program when it is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Bytes before the IP header: 14 for Ethernet, 0 for a tunnel.
    pub link_header: i32,
    /// Descriptor of the map from [`Key`] to [`FlowState`].
    pub flows: i32,
    /// The same for connections that are not vouched for yet.
    pub unvalidated: i32,
    /// Map from [`Key`] to a window in bytes.
    pub clamps: i32,
    /// Array with one [`Control`].
    pub control: i32,
    /// Array of [`Counter`]s, per processor.
    pub counters: i32,
}

/// Maximum number of IPv6 extension headers skipped before TCP; packets with more are ignored.
pub const EXTENSIONS: usize = 4;
/// Maximum number of options parsed in a segment; segments with more are not changed, nor are connections whose SYN has
/// more.
pub const OPTIONS: usize = 16;
/// Option kinds whose digest covers the window: TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925, section 5.1).
pub const SIGNED: [u8; 2] = [19, 29];
/// Maximum window scale (RFC 7323, section 2.3).
pub const LARGEST_SHIFT: i32 = 14;

// struct __sk_buff, linux/bpf.h
const SKB_LEN: i16 = 0;
const SKB_PROTOCOL: i16 = 16;
const SKB_GSO_SEGS: i16 = 164;
const SKB_GSO_SIZE: i16 = 176;

const TCP: i32 = 6;
const UDP: i32 = 17;
const FIN: i32 = 1;
const SYN: i32 = 2;
const RST: i32 = 4;
const ACK: i32 = 16;

// Offsets in the stack frame, downwards from its end.
const KEY: i16 = -40;
const HEADER: i16 = -80;
const SEGMENT_HEADER: i16 = -104;
const NOW: i16 = -112;
/// Offset of the TCP header.
const L4: i16 = -116;
/// Bytes of the TCP header and payload.
const LEN: i16 = -120;
const OPTION: i16 = -124;
const VALUE: i16 = -128;
const SCALE: i16 = -132;
const MSS: i16 = -136;
const UNMODIFIABLE: i16 = -140;
const INDEX: i16 = -144;
const FIELD: i16 = -148;
const PAYLOAD: i16 = -152;
const END: i16 = -156;
const SHIFT: i16 = -160;
const MODE: i16 = -164;
const FRESH: i16 = -168 - size_of::<FlowState>() as i16;

const NO_SCALE: i32 = 255;

macro_rules! state {
    ($field:ident) => {
        offset_of!(FlowState, $field) as i16
    };
}

macro_rules! key {
    ($field:ident) => {
        KEY + offset_of!(Key, $field) as i16
    };
}

/// The program for a direction.
///
/// # Errors
/// Only errors in this file.
pub fn program(direction: Direction, setting: Setting) -> Result<Vec<Instruction>, String> {
    let mut a = Assembler::new();
    let (pass, other, tcp, udp) = (a.label(), a.label(), a.label(), a.label());
    let mut w = Writer { a, direction, setting, pass, other, tcp, udp };
    w.begin();
    w.ipv4();
    w.ipv6();
    w.tcp();
    w.udp();
    w.end();
    w.a.finish()
}

mod handshake;
mod options;
mod window;

struct Writer {
    a: Assembler,
    direction: Direction,
    setting: Setting,
    pass: Label,
    other: Label,
    tcp: Label,
    udp: Label,
}

impl Writer {
    fn is_down(&self) -> bool {
        self.direction == Direction::Egress
    }

    /// Copies `len` bytes of the packet at `offset` to `to` on the stack.
    fn read(&mut self, offset: impl Into<super::assembler::Operand>, to: i16, len: i32, otherwise: Label) {
        self.a.mov(R2, offset);
        self.a.mov(R1, R6);
        self.a.mov(R3, R10);
        self.a.alu(Alu::Add, R3, i32::from(to));
        self.a.mov(R4, len);
        self.a.call(Helper::SkbLoadBytes);
        self.a.jump_if(R0, Cond::Ne, 0, otherwise);
    }

    /// R0 = pointer to the map's value for the key at `key` on the stack, or zero.
    fn look_up(&mut self, map: i32, key: i16) {
        self.a.map(R1, map);
        self.a.mov(R2, R10);
        self.a.alu(Alu::Add, R2, i32::from(key));
        self.a.call(Helper::MapLookup);
    }

    fn count(&mut self, counter: Counter, amount: impl Into<super::assembler::Operand>) {
        let offset = counter as i16 * 8;
        let amount = amount.into();
        self.a.load(D, R0, R9, offset);
        self.a.alu(Alu::Add, R0, amount);
        self.a.store(D, R9, offset, R0);
    }

    /// `dst` = a number of `width` in network order at `at` on the stack.
    fn network(&mut self, width: super::assembler::Width, dst: Reg, at: i16) {
        self.a.load(width, dst, R10, at);
        self.a.swap(dst, if width == H { 16 } else { 32 });
    }

    fn begin(&mut self) {
        self.a.mov(R6, R1);
        self.a.store(W, R10, INDEX, 0);
        self.look_up(self.setting.counters, INDEX);
        self.a.jump_if(R0, Cond::Eq, 0, self.pass);
        self.a.mov(R9, R0);
        for at in (KEY..0).step_by(8) {
            self.a.store(D, R10, at, 0);
        }
    }

    fn ipv4(&mut self) {
        let (next, whole) = (self.a.label(), self.a.label());
        self.a.load(W, R1, R6, SKB_PROTOCOL);
        self.a.jump_if(R1, Cond::Ne, i32::from(0x0800_u16.to_be()), next);
        self.read(self.setting.link_header, HEADER, 20, self.other);
        self.a.load(B, R1, R10, HEADER);
        self.a.mov(R2, R1);
        self.a.alu(Alu::Rsh, R2, 4);
        self.a.jump_if(R2, Cond::Ne, 4, self.other);
        self.a.alu(Alu::And, R1, 15);
        self.a.alu(Alu::Lsh, R1, 2);
        self.a.jump_if(R1, Cond::Lt, 20, self.other);
        self.a.load(W, R3, R6, SKB_LEN);
        self.a.alu(Alu::Sub, R3, self.setting.link_header);
        self.network(H, R8, HEADER + 2);
        // length zero: a GSO packet too long for the field
        self.a.jump_if(R8, Cond::Ne, 0, whole);
        self.a.mov(R8, R3);
        self.a.place(whole);
        self.a.jump_if(R8, Cond::Gt, R3, self.other);
        self.a.jump_if(R8, Cond::Lt, R1, self.other);
        self.a.mov(R2, R8);
        self.a.alu(Alu::Sub, R2, R1);
        self.a.store(W, R10, LEN, R2);
        self.a.alu(Alu::Add, R1, self.setting.link_header);
        self.a.store(W, R10, L4, R1);
        let (source, destination) = self.ends(key!(lan), key!(remote));
        for (from, to) in [(HEADER + 12, source), (HEADER + 16, destination)] {
            self.a.load(W, R1, R10, from);
            self.a.store(W, R10, to, R1);
        }
        self.a.store(B, R10, key!(family), 4);
        self.a.load(B, R1, R10, HEADER + 9);
        self.a.jump_if(R1, Cond::Eq, UDP, self.udp);
        self.a.jump_if(R1, Cond::Ne, TCP, self.other);
        // fragments: more follow, or it is not the first
        self.a.load(H, R1, R10, HEADER + 6);
        self.a.jump_if(R1, Cond::Set, i32::from(0x3fff_u16.to_be()), self.other);
        self.a.jump(self.tcp);
        self.a.place(next);
    }

    /// Places of a packet's source and destination: the station's and the remote end's.
    fn ends(&self, lan: i16, remote: i16) -> (i16, i16) {
        if self.is_down() { (remote, lan) } else { (lan, remote) }
    }

    fn ipv6(&mut self) {
        let (whole, found) = (self.a.label(), self.a.label());
        self.a.jump_if(R1, Cond::Ne, i32::from(0x86dd_u16.to_be()), self.other);
        self.read(self.setting.link_header, HEADER, 40, self.other);
        self.a.load(B, R1, R10, HEADER);
        self.a.alu(Alu::Rsh, R1, 4);
        self.a.jump_if(R1, Cond::Ne, 6, self.other);
        self.a.load(W, R3, R6, SKB_LEN);
        self.a.alu(Alu::Sub, R3, self.setting.link_header);
        self.network(H, R1, HEADER + 4);
        self.a.mov(R8, R3);
        self.a.jump_if(R1, Cond::Eq, 0, whole);
        self.a.mov(R8, R1);
        self.a.alu(Alu::Add, R8, 40);
        self.a.place(whole);
        self.a.jump_if(R8, Cond::Gt, R3, self.other);
        let (source, destination) = self.ends(key!(lan), key!(remote));
        for (from, to) in [(HEADER + 8, source), (HEADER + 24, destination)] {
            for word in [0, 8] {
                self.a.load(D, R1, R10, from + word);
                self.a.store(D, R10, to + word, R1);
            }
        }
        self.a.store(B, R10, key!(family), 6);
        self.a.load(B, R1, R10, HEADER + 6);
        self.a.mov(R7, 40);
        for _ in 0..EXTENSIONS {
            let extension = self.a.label();
            self.a.jump_if(R1, Cond::Eq, TCP, found);
            self.a.jump_if(R1, Cond::Eq, UDP, self.udp);
            // hop-by-hop, routing, destination options (RFC 8200, section 4)
            for kind in [0, 43, 60] {
                self.a.jump_if(R1, Cond::Eq, kind, extension);
            }
            self.a.jump(self.other);
            self.a.place(extension);
            self.a.mov(R2, R7);
            self.a.alu(Alu::Add, R2, self.setting.link_header);
            self.read(R2, OPTION, 2, self.other);
            self.a.load(B, R2, R10, OPTION + 1);
            self.a.alu(Alu::Add, R2, 1);
            self.a.alu(Alu::Lsh, R2, 3);
            self.a.alu(Alu::Add, R7, R2);
            self.a.jump_if(R7, Cond::Gt, R8, self.other);
            self.a.load(B, R1, R10, OPTION);
        }
        self.a.jump_if(R1, Cond::Eq, UDP, self.udp);
        self.a.jump_if(R1, Cond::Ne, TCP, self.other);
        self.a.place(found);
        self.a.mov(R1, R8);
        self.a.alu(Alu::Sub, R1, R7);
        self.a.store(W, R10, LEN, R1);
        self.a.alu(Alu::Add, R7, self.setting.link_header);
        self.a.store(W, R10, L4, R7);
    }

    fn tcp(&mut self) {
        let (syn, found, known) = (self.a.label(), self.a.label(), self.a.label());
        self.a.place(self.tcp);
        self.a.load(W, R1, R10, LEN);
        self.a.jump_if(R1, Cond::Lt, 20, self.other);
        self.a.load(W, R2, R10, L4);
        self.read(R2, SEGMENT_HEADER, 20, self.other);
        self.a.load(B, R1, R10, SEGMENT_HEADER + 12);
        self.a.alu(Alu::Rsh, R1, 4);
        self.a.alu(Alu::Lsh, R1, 2);
        self.a.jump_if(R1, Cond::Lt, 20, self.other);
        self.a.load(W, R2, R10, LEN);
        self.a.jump_if(R1, Cond::Gt, R2, self.other);
        self.a.alu(Alu::Sub, R2, R1);
        self.a.store(W, R10, PAYLOAD, R2);
        self.a.load(W, R2, R10, L4);
        self.a.alu(Alu::Add, R2, R1);
        self.a.store(W, R10, END, R2);
        let (source, destination) = self.ends(key!(lan_port), key!(remote_port));
        for (from, to) in [(SEGMENT_HEADER, source), (SEGMENT_HEADER + 2, destination)] {
            self.a.load(H, R1, R10, from);
            self.a.store(H, R10, to, R1);
        }
        self.count(if self.is_down() { Counter::Down } else { Counter::Up }, 1);
        self.a.call(Helper::KtimeGetNs);
        self.a.store(D, R10, NOW, R0);
        // before the connection is looked up, so that the verifier checks it once, not once per lookup result
        self.offer();
        // The first map is searched again at the end: another processor may be moving the connection to it, and inserts
        // it there before removing it from the other one.
        for map in [self.setting.flows, self.setting.unvalidated, self.setting.flows] {
            self.look_up(map, KEY);
            self.a.mov(R7, R0);
            self.a.jump_if(R7, Cond::Ne, 0, found);
        }
        self.a.place(found);
        self.a.load(B, R1, R10, SEGMENT_HEADER + 13);
        self.a.jump_if(R1, Cond::Set, SYN, syn);
        self.a.jump_if(R7, Cond::Ne, 0, known);
        self.fresh();
        self.a.place(known);
        self.a.load(D, R1, R10, NOW);
        self.a.store(D, R7, state!(seen), R1);
        self.endings();
        if self.is_down() {
            self.data()
        } else {
            self.acknowledgement()
        }
        self.a.place(syn);
        self.syn();
    }

    fn set_flag(&mut self, flag: u32) {
        self.a.load(W, R1, R7, state!(flags));
        self.a.alu32(Alu::Or, R1, flag as i32);
        self.a.store(W, R7, state!(flags), R1);
    }

    /// Handles FIN and RST.
    fn endings(&mut self) {
        let fin_flag = if self.is_down() { flag::REMOTE_FIN } else { flag::LAN_FIN };
        for (bit, flag) in [(FIN, fin_flag), (RST, flag::RST)] {
            let (set, next) = (self.a.label(), self.a.label());
            self.a.load(B, R2, R10, SEGMENT_HEADER + 13);
            self.a.jump_if(R2, Cond::Set, bit, set);
            self.a.jump(next);
            self.a.place(set);
            self.set_flag(flag);
            self.a.place(next);
        }
    }

    /// R2 = microseconds since the time in R1, at least 1.
    fn microseconds_since(&mut self) {
        let some = self.a.label();
        self.a.load(D, R2, R10, NOW);
        self.a.alu(Alu::Sub, R2, R1);
        self.a.alu(Alu::Div, R2, 1000);
        self.a.jump_if(R2, Cond::Ne, 0, some);
        self.a.mov(R2, 1);
        self.a.place(some);
    }

    /// Ends the measurement of the WAN side's round-trip time when the remote end answers.
    fn answered(&mut self) {
        let done = self.a.label();
        self.a.load(D, R1, R7, state!(handshake));
        self.a.jump_if(R1, Cond::Eq, 0, done);
        self.microseconds_since();
        self.a.store(W, R7, state!(wan_rtt), R2);
        self.a.store(D, R7, state!(handshake), 0);
        self.a.place(done);
    }

    /// Handles data towards a station.
    fn data(&mut self) {
        let (sized, larger, newer, again, probing) =
            (self.a.label(), self.a.label(), self.a.label(), self.a.label(), self.a.label());
        self.answered();
        self.a.load(W, R3, R10, PAYLOAD);
        self.a.load(D, R1, R7, state!(bytes));
        self.a.alu(Alu::Add, R1, R3);
        self.a.store(D, R7, state!(bytes), R1);
        // segments of a GSO packet have the size into which the device will split them
        self.a.load(W, R1, R6, SKB_GSO_SIZE);
        self.a.jump_if(R1, Cond::Ne, 0, sized);
        self.a.mov(R1, R3);
        self.a.place(sized);
        self.a.load(W, R2, R7, state!(segment));
        self.a.jump_if(R1, Cond::Le, R2, larger);
        self.a.store(W, R7, state!(segment), R1);
        self.a.place(larger);
        // R4 = the end of its sequence space, including a FIN
        self.a.load(B, R1, R10, SEGMENT_HEADER + 13);
        self.a.alu(Alu::And, R1, FIN);
        self.a.alu(Alu::Add, R1, R3);
        self.a.jump_if(R1, Cond::Eq, 0, self.pass);
        self.network(W, R4, SEGMENT_HEADER + 4);
        self.a.alu32(Alu::Add, R4, R1);
        self.a.load(W, R1, R7, state!(flags));
        self.a.alu(Alu::And, R1, flag::DATA as i32);
        self.a.jump_if(R1, Cond::Eq, 0, newer);
        self.a.load(W, R1, R7, state!(highest));
        self.a.mov(R2, R4);
        self.a.alu32(Alu::Sub, R2, R1);
        self.a.jump_if32(R2, Cond::Sgt, 0, newer);
        // retransmitted: the acknowledgement would be ambiguous (Karn's algorithm)
        self.a.store(D, R7, state!(probe), 0);
        self.a.jump(self.pass);
        self.a.place(newer);
        self.a.store(W, R7, state!(highest), R4);
        self.set_flag(flag::DATA);
        self.a.load(D, R1, R7, state!(probe));
        self.a.jump_if(R1, Cond::Ne, 0, probing);
        self.a.jump_if(R3, Cond::Eq, 0, again);
        self.a.store(W, R7, state!(probe_end), R4);
        self.a.load(D, R1, R10, NOW);
        self.a.store(D, R7, state!(probe), R1);
        self.a.place(again);
        self.a.place(probing);
        self.a.jump(self.pass);
    }

    /// Handles an ACK from a station, and lowers its window.
    fn acknowledgement(&mut self) {
        let (unknown, scaled, fell) = (self.a.label(), self.a.label(), self.a.label());
        self.a.load(B, R1, R10, SEGMENT_HEADER + 13);
        self.a.jump_if(R1, Cond::Set, RST, self.pass);
        let ack = self.a.label();
        self.a.jump_if(R1, Cond::Set, ACK, ack);
        self.a.jump(self.pass);
        self.a.place(ack);
        self.look_up(self.setting.control, INDEX);
        self.a.jump_if(R0, Cond::Eq, 0, self.pass);
        self.a.mov(R8, R0);
        self.acknowledged();
        self.a.load(W, R1, R7, state!(flags));
        self.a.mov(R2, R1);
        self.a.alu(Alu::And, R2, (flag::BOTH | flag::UNMODIFIABLE) as i32);
        self.a.jump_if(R2, Cond::Ne, flag::BOTH as i32, unknown);
        self.vouch();
        self.a.load(W, R1, R7, state!(flags));
        self.a.alu(Alu::And, R1, flag::SCALED as i32);
        self.a.mov(R2, 0);
        self.a.jump_if(R1, Cond::Ne, flag::SCALED as i32, scaled);
        self.a.load(W, R2, R7, state!(shift));
        self.a.alu(Alu::And, R2, 15);
        self.a.place(scaled);
        self.a.store(W, R10, SHIFT, R2);
        self.network(H, R1, SEGMENT_HEADER + 14);
        self.a.mov(R3, R1);
        self.a.alu(Alu::Lsh, R3, R2);
        self.a.store(W, R7, state!(window), R3);
        self.a.jump_if(R1, Cond::Eq, 0, self.pass);
        self.a.load(D, R1, R8, offset_of!(Control, deadline) as i16);
        self.a.load(D, R2, R10, NOW);
        self.a.jump_if(R2, Cond::Ge, R1, self.pass);
        self.look_up(self.setting.clamps, KEY);
        self.a.load(W, R1, R8, offset_of!(Control, window) as i16);
        self.a.jump_if(R0, Cond::Eq, 0, fell);
        self.a.load(W, R1, R0, 0);
        self.a.place(fell);
        self.a.jump_if(R1, Cond::Eq, 0, self.pass);
        self.lower(unknown);
        self.a.place(unknown);
        self.count(Counter::Unknown, 1);
        self.a.jump(self.pass);
    }

    /// Processes an ACK's information about earlier data.
    fn acknowledged(&mut self) {
        let (older, newer, sampled, new_min, kept, same) =
            (self.a.label(), self.a.label(), self.a.label(), self.a.label(), self.a.label(), self.a.label());
        self.network(W, R4, SEGMENT_HEADER + 8);
        self.a.load(W, R1, R7, state!(flags));
        self.a.alu(Alu::And, R1, flag::ACK as i32);
        self.a.jump_if(R1, Cond::Eq, 0, newer);
        self.a.load(W, R1, R7, state!(ack));
        self.a.mov(R2, R4);
        self.a.alu32(Alu::Sub, R2, R1);
        self.a.jump_if32(R2, Cond::Slt, 0, older);
        self.a.place(newer);
        self.a.store(W, R7, state!(ack), R4);
        self.set_flag(flag::ACK);
        self.a.place(older);
        self.a.load(D, R1, R7, state!(probe));
        self.a.jump_if(R1, Cond::Eq, 0, sampled);
        self.a.load(W, R2, R7, state!(probe_end));
        self.a.alu32(Alu::Sub, R4, R2);
        self.a.jump_if32(R4, Cond::Slt, 0, sampled);
        self.a.store(D, R7, state!(probe), 0);
        self.microseconds_since();
        self.a.store(W, R7, state!(lan_rtt), R2);
        self.a.load(W, R1, R7, state!(lan_rtt_min));
        self.a.jump_if(R1, Cond::Eq, 0, new_min);
        self.a.jump_if(R1, Cond::Le, R2, kept);
        self.a.place(new_min);
        self.a.store(W, R7, state!(lan_rtt_min), R2);
        self.a.place(kept);
        // maximum of the interval, in the slot for even or odd ones
        self.a.load(W, R1, R8, offset_of!(Control, interval) as i16);
        self.a.mov(R3, R1);
        self.a.alu(Alu::And, R3, 1);
        self.a.alu(Alu::Lsh, R3, 2);
        self.a.alu(Alu::Add, R3, R7);
        self.a.load(W, R4, R3, state!(interval));
        let fresh = self.a.label();
        self.a.jump_if(R4, Cond::Ne, R1, fresh);
        self.a.load(W, R4, R3, state!(longest));
        self.a.jump_if(R4, Cond::Ge, R2, same);
        self.a.place(fresh);
        self.a.store(W, R3, state!(interval), R1);
        self.a.store(W, R3, state!(longest), R2);
        self.a.place(same);
        self.a.place(sampled);
    }

    /// Counts a datagram of R8 bytes; a GSO packet counts as its number of segments.
    fn udp(&mut self) {
        let one = self.a.label();
        self.a.place(self.udp);
        let (packets, bytes) = match self.direction {
            Direction::Egress => (Counter::UdpDown, Counter::UdpDownBytes),
            Direction::Ingress => (Counter::UdpUp, Counter::UdpUpBytes),
        };
        self.count(bytes, R8);
        self.a.load(W, R1, R6, SKB_GSO_SEGS);
        self.a.jump_if(R1, Cond::Ne, 0, one);
        self.a.mov(R1, 1);
        self.a.place(one);
        self.count(packets, R1);
        self.a.jump(self.pass);
    }

    fn end(&mut self) {
        self.a.place(self.other);
        self.count(Counter::Other, 1);
        self.a.place(self.pass);
        self.a.mov(R0, -1);
        self.a.exit();
    }
}
