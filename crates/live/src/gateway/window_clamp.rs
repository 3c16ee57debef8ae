//! The window clamp in Rust: does to frames exactly what `bpf/program.rs` does, bit for bit, without I/O.
//!
//! It is used where packets pass through Paceline itself (`paceline path`), and as the reference in tests of the
//! programs. Frames begin with an IP header and may have any content. Start with [`WindowClamp::forward`] and
//! [`WindowClamp::back`].

use super::bpf::attach::{FLOWS, UNVALIDATED};
use super::bpf::program::{Direction, EXTENSIONS, LARGEST_SHIFT, OPTIONS, SIGNED};
use super::table::{Control, Counter, FlowState, Key, flag};
use std::collections::BTreeMap;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Position of a TCP segment in a frame.
#[derive(Clone, Copy)]
struct Segment {
    key: Key,
    /// Offset of its header.
    header: usize,
    /// Offset of its payload.
    payload: usize,
    /// Offset of the packet's end.
    end: usize,
}

enum Parsed {
    Tcp(Segment),
    /// Size of a datagram including its IP header.
    Udp(usize),
    Other,
}

/// The connections on a path, and the windows set for them.
#[derive(Debug, Default)]
pub struct WindowClamp {
    flows: BTreeMap<Key, FlowState>,
    /// Connections without [`flag::VALIDATED`].
    unvalidated: BTreeMap<Key, FlowState>,
    clamps: BTreeMap<Key, u32>,
    /// Settings, with a deadline.
    pub control: Control,
    counts: [u64; Counter::ALL.len()],
}

impl WindowClamp {
    /// A clamp without connections; it lowers nothing until `control` is set.
    #[must_use]
    pub fn new() -> WindowClamp {
        WindowClamp::default()
    }

    /// The state of a connection.
    #[must_use]
    pub fn flow(&self, key: &Key) -> Option<&FlowState> {
        self.flows.get(key).or_else(|| self.unvalidated.get(key))
    }

    /// All connections.
    pub fn flows(&self) -> impl Iterator<Item = (&Key, &FlowState)> {
        self.unvalidated.iter().chain(&self.flows)
    }

    /// Limits the window of a connection to `window` bytes; `None` removes the limit.
    pub fn clamp(&mut self, key: Key, window: Option<u32>) {
        match window {
            Some(window) => drop(self.clamps.insert(key, window)),
            None => drop(self.clamps.remove(&key)),
        }
    }

    /// Forgets a connection.
    pub fn forget(&mut self, key: &Key) {
        self.flows.remove(key);
        self.unvalidated.remove(key);
        self.clamps.remove(key);
    }

    /// The counters, in the order of [`Counter::ALL`].
    #[must_use]
    pub fn counts(&self) -> [u64; Counter::ALL.len()] {
        self.counts
    }

    /// Processes a frame towards a station at `now`.
    pub fn forward(&mut self, now: u64, frame: &[u8]) {
        match parse(frame, Direction::Egress) {
            Parsed::Other => self.count(Counter::Other, 1),
            Parsed::Udp(bytes) => {
                self.count(Counter::UdpDown, 1);
                self.count(Counter::UdpDownBytes, bytes as u64);
            }
            Parsed::Tcp(segment) => {
                self.count(Counter::Down, 1);
                let tcp = &frame[segment.header..segment.end];
                if tcp[13] & SYN != 0 {
                    self.syn(now, Direction::Egress, &segment, tcp);
                    return;
                }
                let state = self.entry(segment.key);
                state.seen = now;
                endings(state, tcp[13], flag::REMOTE_FIN);
                data(state, now, tcp, (segment.end - segment.payload) as u32);
            }
        }
    }

    /// Processes a frame from a station at `now`; returns whether its window was lowered.
    pub fn back(&mut self, now: u64, frame: &mut [u8]) -> bool {
        match parse(frame, Direction::Ingress) {
            Parsed::Other => self.count(Counter::Other, 1),
            Parsed::Udp(bytes) => {
                self.count(Counter::UdpUp, 1);
                self.count(Counter::UdpUpBytes, bytes as u64);
            }
            Parsed::Tcp(segment) => {
                self.count(Counter::Up, 1);
                let tcp = &mut frame[segment.header..segment.end];
                if tcp[13] & SYN != 0 {
                    self.syn(now, Direction::Ingress, &segment, tcp);
                    return false;
                }
                return self.acknowledgement(now, segment.key, segment.payload - segment.header, tcp);
            }
        }
        false
    }

    fn count(&mut self, counter: Counter, amount: u64) {
        self.counts[counter as usize] += amount;
    }

    fn entry(&mut self, key: Key) -> &mut FlowState {
        if self.flows.contains_key(&key) {
            return self.flows.entry(key).or_default();
        }
        if !self.unvalidated.contains_key(&key) {
            make_room(&mut self.unvalidated, UNVALIDATED);
        }
        self.unvalidated.entry(key).or_default()
    }

    /// Moves a connection of known scale, whose station acknowledges data that passed, to the map from which strangers
    /// cannot evict it.
    fn vouch(&mut self, key: Key, ack: u32) {
        let Some(state) = self.unvalidated.get(&key).copied() else { return };
        let sent = state.highest.wrapping_sub(ack) as i32 >= 0;
        // The SYN has the first sequence number.
        let data = ack.wrapping_sub(state.remote_isn) as i32 >= 2;
        if state.scale().is_some() && state.bytes != 0 && sent && data {
            self.unvalidated.remove(&key);
            make_room(&mut self.flows, FLOWS);
            self.flows.insert(key, FlowState { flags: state.flags | flag::VALIDATED, ..state });
        }
    }

    fn acknowledgement(&mut self, now: u64, key: Key, payload: usize, tcp: &mut [u8]) -> bool {
        let control = self.control;
        let clamp = self.clamps.get(&key).copied().unwrap_or(control.window);
        let state = self.entry(key);
        state.seen = now;
        endings(state, tcp[13], flag::LAN_FIN);
        if tcp[13] & (RST | ACK) != ACK {
            return false;
        }
        let ack = word(tcp, 8);
        acknowledged(state, now, ack, control.interval);
        self.vouch(key, ack);
        let state = self.entry(key);
        let Some(shift) = state.scale() else {
            self.count(Counter::Unknown, 1);
            return false;
        };
        let field = half(tcp, 14);
        state.window = u32::from(field) << shift;
        if field == 0 || now >= control.deadline || clamp == 0 {
            return false;
        }
        // not below the bytes in flight, nor below two segments; rounded up to the scale
        let ahead = state.highest.wrapping_sub(ack) as i32;
        let window = clamp.max(ahead.max(0) as u32).max(2 * state.min_segment());
        let lowered = (u64::from(window) + (1 << shift) - 1) >> shift;
        if lowered >= u64::from(field) {
            return false;
        }
        if Options::of(&tcp[20..payload]).any(|option| option.is_none_or(|option| SIGNED.contains(&option[0]))) {
            self.count(Counter::Unknown, 1);
            return false;
        }
        state.lowered += 1;
        self.count(Counter::Lowered, 1);
        if control.mode & Control::DRY != 0 {
            return false;
        }
        let lowered = lowered as u16;
        let checksum = mended(half(tcp, 16), field, lowered);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        tcp[14..16].copy_from_slice(&lowered.to_be_bytes());
        true
    }

    fn syn(&mut self, now: u64, direction: Direction, segment: &Segment, tcp: &[u8]) {
        let down = direction == Direction::Egress;
        let offer = Offer::of(&tcp[20..segment.payload - segment.header]);
        let isn = word(tcp, 4);
        let (mine, theirs) = if down { (flag::REMOTE_SYN, flag::LAN_SYN) } else { (flag::LAN_SYN, flag::REMOTE_SYN) };
        let scale = if down { flag::REMOTE_SCALE } else { flag::LAN_SCALE };
        let known = self.flow(&segment.key).copied();
        let flags = known.map_or(0, |state| state.flags);
        let before = known.map_or(0, |state| if down { state.remote_isn } else { state.lan_isn });
        let again = flags & mine != 0 && before == isn;
        let at_once = flags & mine == 0 && flags & theirs != 0;
        let answers = tcp[13] & ACK != 0;
        // a SYN-ACK with another number after the station has answered one: neither end would accept it
        let stray = !again && !at_once && answers && flags & flag::ACK != 0;
        if known.is_none() || !(again || at_once || answers) {
            self.flows.remove(&segment.key);
            *self.entry(segment.key) = FlowState::default();
        }
        let state = self.entry(segment.key);
        let mut unmodifiable = offer.unmodifiable || stray;
        if again {
            // The handshake's time is ambiguous now. If two offers differ, it is unknown which one the other end
            // accepted.
            state.handshake = 0;
            state.flags &= !flag::ENDED;
            let offered = state.flags & scale != 0;
            unmodifiable |= offered != offer.shift.is_some() || (!down && offered && offer.shift != Some(state.shift));
        } else if stray {
            // ignore its contents
        } else if down {
            state.flags = state.flags & !scale | mine | flag::DATA;
            state.remote_isn = isn;
            state.highest = isn.wrapping_add((segment.end - segment.payload) as u32).wrapping_add(1);
            state.probe = 0;
            answered(state, now);
        } else {
            state.flags = state.flags & !(scale | flag::ACK) | mine;
            state.lan_isn = isn;
            state.handshake = now;
            (state.shift, state.mss) = (0, 0);
        }
        if let Some(shift) = offer.shift {
            state.flags |= scale;
            if !down {
                state.shift = shift;
            }
        }
        if !down && offer.mss != 0 {
            state.mss = offer.mss;
        }
        if unmodifiable {
            state.flags |= flag::UNMODIFIABLE;
        }
        state.seen = now;
    }
}

/// Microseconds from `then` to `now`, at least 1.
fn microseconds(then: u64, now: u64) -> u32 {
    (now.wrapping_sub(then) / 1000).max(1) as u32
}

/// Ends the measurement of the WAN side's round-trip time when the remote end answers.
fn answered(state: &mut FlowState, now: u64) {
    if state.handshake != 0 {
        state.wan_rtt = microseconds(state.handshake, now);
        state.handshake = 0;
    }
}

fn endings(state: &mut FlowState, flags: u8, fin: u32) {
    if flags & FIN != 0 {
        state.flags |= fin;
    }
    if flags & RST != 0 {
        state.flags |= flag::RST;
    }
}

fn data(state: &mut FlowState, now: u64, tcp: &[u8], payload: u32) {
    answered(state, now);
    state.bytes += u64::from(payload);
    state.segment = state.segment.max(payload);
    let occupied = payload + u32::from(tcp[13] & FIN);
    if occupied == 0 {
        return;
    }
    let end = word(tcp, 4).wrapping_add(occupied);
    if state.flags & flag::DATA != 0 && end.wrapping_sub(state.highest) as i32 <= 0 {
        // retransmitted: the acknowledgement would be ambiguous (Karn's algorithm)
        state.probe = 0;
        return;
    }
    state.highest = end;
    state.flags |= flag::DATA;
    if state.probe == 0 && payload != 0 {
        (state.probe, state.probe_end) = (now, end);
    }
}

/// Processes an ACK's information about earlier data.
fn acknowledged(state: &mut FlowState, now: u64, ack: u32, interval: u32) {
    if state.flags & flag::ACK == 0 || ack.wrapping_sub(state.ack) as i32 >= 0 {
        state.ack = ack;
        state.flags |= flag::ACK;
    }
    if state.probe == 0 || (ack.wrapping_sub(state.probe_end) as i32) < 0 {
        return;
    }
    let sample = microseconds(state.probe, now);
    state.probe = 0;
    state.lan_rtt = sample;
    if state.lan_rtt_min == 0 || sample < state.lan_rtt_min {
        state.lan_rtt_min = sample;
    }
    let place = (interval & 1) as usize;
    if state.interval[place] != interval || state.longest[place] < sample {
        state.interval[place] = interval;
        state.longest[place] = sample;
    }
}

/// Updates a checksum after one of its words was changed (RFC 1624, equation 3).
fn mended(checksum: u16, from: u16, to: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!from) + u32::from(to);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    // Zero results only if all words were zero: the kernel, which computes with 32 bits, has the other representation
    // of zero then.
    if sum == 0 { 0 } else { !(sum as u16) }
}

/// What a SYN's options offer.
#[derive(Default)]
struct Offer {
    shift: Option<u32>,
    mss: u32,
    unmodifiable: bool,
}

impl Offer {
    fn of(options: &[u8]) -> Offer {
        let mut offer = Offer::default();
        for option in Options::of(options) {
            match option {
                Some([2, 4, mss @ ..]) => offer.mss = u32::from(half(mss, 0)),
                Some([3, 3, shift]) => offer.shift = Some(u32::from(*shift).min(LARGEST_SHIFT as u32)),
                Some([kind, ..]) if !SIGNED.contains(kind) => {}
                _ => return Offer { unmodifiable: true, ..offer },
            }
        }
        offer
    }
}

/// A segment's options; `None` stands for a damaged option or for one too many, and is the last item.
struct Options<'a> {
    rest: &'a [u8],
    left: usize,
}

impl Options<'_> {
    fn of(options: &[u8]) -> Options<'_> {
        Options { rest: options, left: OPTIONS }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let len = match *self.rest {
                [] => return None,
                _ if self.left == 0 => 0,
                [0, ..] => return None,
                [1, ..] => 1,
                [_, len, ..] if len >= 2 && usize::from(len) <= self.rest.len() => usize::from(len),
                _ => 0,
            };
            let (option, rest) = self.rest.split_at(len);
            if len == 0 {
                self.rest = &[];
                return Some(None);
            }
            (self.rest, self.left) = (rest, self.left - 1);
            if len > 1 {
                return Some(Some(option));
            }
        }
    }
}

/// Makes room for one more connection: if the map is full, removes the eighth with the longest silence.
fn make_room(flows: &mut BTreeMap<Key, FlowState>, max: u32) {
    if flows.len() < max as usize {
        return;
    }
    let mut seen: Vec<u64> = flows.values().map(|state| state.seen).collect();
    let (_, last, _) = seen.select_nth_unstable(flows.len() / 8);
    flows.retain(|_, state| state.seen > *last);
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn parse(frame: &[u8], direction: Direction) -> Parsed {
    ip(frame, direction).unwrap_or(Parsed::Other)
}

/// `None`: truncated, or of no interest.
fn ip(frame: &[u8], direction: Direction) -> Option<Parsed> {
    let mut key = Key { family: frame.first()? >> 4, ..Key::default() };
    let (protocol, header, end) = match key.family {
        4 => {
            let fixed: &[u8; 20] = frame.first_chunk()?;
            let header = usize::from(fixed[0] & 15) * 4;
            // length zero: a GSO packet too long for the field
            let end = match usize::from(half(fixed, 2)) {
                0 => frame.len(),
                end => end,
            };
            if header < 20 || end < header || end > frame.len() {
                return None;
            }
            key.lan[..4].copy_from_slice(&fixed[12..16]);
            key.remote[..4].copy_from_slice(&fixed[16..20]);
            if fixed[9] == 6 && half(fixed, 6) & 0x3fff != 0 {
                return None;
            }
            (fixed[9], header, end)
        }
        6 => {
            let fixed: &[u8; 40] = frame.first_chunk()?;
            let end = match usize::from(half(fixed, 4)) {
                0 => frame.len(),
                payload => payload + 40,
            };
            if end > frame.len() {
                return None;
            }
            key.lan.copy_from_slice(&fixed[8..24]);
            key.remote.copy_from_slice(&fixed[24..40]);
            let (mut next, mut header) = (fixed[6], 40);
            for _ in 0..EXTENSIONS {
                // hop-by-hop, routing, destination options (RFC 8200, section 4)
                if !matches!(next, 0 | 43 | 60) {
                    break;
                }
                let extension = frame.get(header..header + 2)?;
                next = extension[0];
                header += (usize::from(extension[1]) + 1) * 8;
                if header > end {
                    return None;
                }
            }
            (next, header, end)
        }
        _ => return None,
    };
    match protocol {
        17 => Some(Parsed::Udp(end)),
        6 => {
            let tcp: &[u8; 20] = frame.get(header..end)?.first_chunk()?;
            let payload = header + usize::from(tcp[12] >> 4) * 4;
            if payload < header + 20 || payload > end {
                return None;
            }
            key.lan_port.copy_from_slice(&tcp[..2]);
            key.remote_port.copy_from_slice(&tcp[2..4]);
            if direction == Direction::Egress {
                std::mem::swap(&mut key.lan, &mut key.remote);
                std::mem::swap(&mut key.lan_port, &mut key.remote_port);
            }
            Some(Parsed::Tcp(Segment { key, header, payload, end }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(protocol: u8, tcp: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 192, 0, 2, 1];
        frame.extend(tcp);
        let len = (frame.len() as u16).to_be_bytes();
        frame[2..4].copy_from_slice(&len);
        frame
    }

    #[test]
    fn a_checksum_is_mended_as_if_computed_anew() {
        let whole = |words: [u16; 3]| {
            let mut sum: u32 = words.iter().map(|&word| u32::from(word)).sum();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            !(sum as u16)
        };
        for (a, from, to) in [(0x1234, 900, 35), (0xffff, 0xffff, 1), (0, 1, 0), (0xfffe, 1, 0)] {
            assert_eq!(mended(whole([a, from, 7]), from, to), whole([a, to, 7]), "{a} {from} {to}");
        }
    }

    proptest! {
        /// Frames of any content pass; only windows are lowered, and their checksums updated.
        #[test]
        fn any_frames_pass(
            frames in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..40),
            shaped in any::<bool>(),
        ) {
            let mut keeper = WindowClamp::new();
            keeper.control = Control { deadline: u64::MAX, window: 3000, interval: 1, ..Control::default() };
            for (n, (down, bytes)) in frames.into_iter().enumerate() {
                let mut after = if shaped { frame(6, &bytes) } else { bytes };
                let before = after.clone();
                if down {
                    keeper.forward(n as u64, &after);
                } else if keeper.back(n as u64, &mut after) {
                    let changed = (0..before.len()).filter(|&at| before[at] != after[at]);
                    prop_assert!(changed.clone().all(|at| (34..38).contains(&at)), "{:?}", changed.collect::<Vec<_>>());
                    prop_assert!(half(&after, 34) < half(&before, 34));
                } else {
                    prop_assert_eq!(&before, &after);
                }
            }
        }
    }
}
