//! Flows' losses on a path: when it dropped each flow's data packets.

use super::emulator::Side;
use super::frame::{Shape, TCP, UDP};
use crate::clock::Clock;
use crate::session::is_data;
use paceline_units::{Span, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// Length of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;

/// When a path has dropped data packets, for any reason, of flows identified by their ports at the near end. Setup,
/// acknowledgement and close messages do not count. Uses 8 bytes per packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowLosses {
    ports: Range<u16>,
    /// By port, and by the side where the packet entered.
    times: BTreeMap<u16, [Vec<Time>; 2]>,
}

impl FlowLosses {
    /// For flows with these ports at the near end.
    #[must_use]
    pub fn of(ports: Range<u16>) -> FlowLosses {
        FlowLosses { ports, times: BTreeMap::new() }
    }

    /// Records that the path drops `frame`, which entered at `from`.
    pub(super) fn dropped(&mut self, from: Side, frame: &[u8], at: Time) {
        if self.ports.is_empty() {
            return;
        }
        let Some(Shape { header, size, ports: Some([source, destination]), .. }) = Shape::of(frame) else { return };
        let near = if from == Side::Near { source } else { destination };
        if self.ports.contains(&near) && has_data(protocol(frame), &frame[header..usize::from(size)]) {
            self.times.entry(near).or_default()[from as usize].push(at);
        }
    }

    /// Number of the flow's data packets that entered at `from` and were dropped within `when`; `port` is the flow's at
    /// the near end.
    #[must_use]
    pub fn count(&self, port: u16, from: Side, when: Range<Time>) -> u64 {
        let times = self.times.get(&port).map(|sides| &sides[from as usize]);
        times.map_or(0, |times| times.iter().filter(|at| when.contains(at)).count() as u64)
    }

    /// Converts the times from `clock`'s to CLOCK_MONOTONIC.
    pub(super) fn in_monotonic(mut self, clock: &Clock) -> FlowLosses {
        let zero = Span(clock.monotonic_at_zero());
        self.times.values_mut().flatten().flatten().for_each(|at| *at += zero);
        self
    }
}

/// The protocol field of a complete IP packet.
fn protocol(frame: &[u8]) -> u8 {
    if frame[0] >> 4 == 4 { frame[9] } else { frame[6] }
}

/// Whether an IP packet's payload contains data of a flow.
fn has_data(protocol: u8, carried: &[u8]) -> bool {
    match protocol {
        TCP => carried.get(12).is_some_and(|offset| usize::from(offset >> 4) * 4 < carried.len()),
        UDP => carried.get(UDP_HEADER..).is_some_and(is_data),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulator::Emulator;
    use super::super::spec::{Folder, PathSpec};
    use super::*;
    use etherparse::PacketBuilder;
    use paceline_packet::Stamp;
    use paceline_packet::wire::tfrc::{Close, ConnectionId, Datagram, Message, Nonce, Plain, Reason};
    use paceline_scenario::Document;

    const FIRST: u16 = 20_000;

    fn datagram(message: Message, payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        Datagram { connection: ConnectionId(7), message }.encode(&mut bytes);
        bytes.resize(bytes.len() + payload, 0);
        bytes
    }

    fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 9).udp(ports.0, ports.1).write(&mut frame, payload).unwrap();
        frame
    }

    fn data() -> Vec<u8> {
        datagram(Message::Plain(Plain { sequence: 5, timestamp: Stamp(1) }), 900)
    }

    fn close() -> Vec<u8> {
        datagram(Message::Close(Close { nonce: Nonce(1), reason: Reason::DONE }), 0)
    }

    fn path(links: &str) -> PathSpec {
        let text = format!(
            "duration = \"9 s\"\n[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n{links}\n[flow.a]\ncount = 2\n"
        );
        let document = Document::parse(&text, "lost.toml").unwrap();
        PathSpec::of_run(document, &Folder::Profiles, Some(1), Some(FIRST)).unwrap_or_else(|error| panic!("{error}"))
    }

    const ALWAYS: Range<Time> = Time::ZERO..Time::NEVER;

    fn lost(emulator: &mut Emulator, when: Range<Time>) -> [[u64; 2]; 2] {
        let lost = emulator.take_lost();
        [FIRST, FIRST + 1].map(|port| Side::BOTH.map(|side| lost.count(port, side, when.clone())))
    }

    #[test]
    fn packets_under_way_are_not_lost_and_those_dropped_are() {
        let spec = path("queue = { limit = \"4 packets\" }");
        let mut emulator = Emulator::new(&spec, None, Emulator::MEMORY);
        for number in 0..10 {
            emulator.arrive(Side::Near, Time(number), &udp((FIRST, 5), &data()));
            emulator.arrive(Side::Far, Time(number), &udp((5, FIRST + 1), &data()));
            emulator.arrive(Side::Far, Time(number), &udp((5, FIRST + 2), &data()));
        }
        let [there, back] = Side::BOTH.map(|side| emulator.counts(side));
        assert!(there.dropped() > 3 && there.in_flight > 3 && back.in_flight > 3);
        let [near, far] = lost(&mut emulator, ALWAYS);
        assert_eq!(near, [there.dropped(), 0]);
        assert!(far[0] == 0 && 0 < far[1] && far[1] < back.dropped(), "the third port is none of the file's flows");
    }

    #[test]
    fn only_data_within_the_time_count() {
        let mut emulator = Emulator::new(&path("queue = { limit = \"2 packets\" }"), None, Emulator::MEMORY);
        // other flows' packets fill the queue, and nothing else gets through
        (0..5).for_each(|_| emulator.arrive(Side::Near, Time::ZERO, &udp((FIRST + 9, 5), &data())));
        let before = emulator.counts(Side::Near).dropped();
        let sender_report = [0x80, 200, 0, 6, 0, 0, 0, 1];
        let rtp = [&[0x80, 96, 0, 6][..], &[1; 40]].concat();
        for (number, payload) in [&data()[..], &close(), &sender_report, &rtp, &data()].into_iter().enumerate() {
            emulator.arrive(Side::Near, Time(number as u64), &udp((FIRST, 5), payload));
        }
        let tcp = |payload: &[u8]| {
            let mut frame = Vec::new();
            let builder = PacketBuilder::ipv4([1; 4], [2; 4], 9).tcp(FIRST + 1, 5, 1, 2);
            builder.syn().write(&mut frame, payload).unwrap();
            frame
        };
        emulator.arrive(Side::Near, Time(5), &tcp(b""));
        emulator.arrive(Side::Near, Time(5), &tcp(b"data"));
        assert_eq!(emulator.counts(Side::Near).dropped() - before, 7);
        let lost = emulator.take_lost();
        let count = |port, from, to| lost.count(port, Side::Near, Time(from)..Time(to));
        assert_eq!([count(FIRST, 0, 9), count(FIRST, 0, 4), count(FIRST, 1, 4)], [3, 2, 1]);
        assert_eq!(count(FIRST + 1, 0, 9), 1, "a segment without data is none");
    }

    #[test]
    fn damaged_packets_and_copies_that_are_dropped_are_lost_and_copies_make_up_for_none() {
        let mut emulator = Emulator::new(&path("corrupt = { rate = \"100 %\" }"), None, Emulator::MEMORY);
        emulator.arrive(Side::Near, Time(0), &udp((FIRST, 5), &data()));
        assert!(emulator.poll(Time(1_000_000_000)).is_some(), "it comes out, and its checksum is wrong");
        emulator.not_taken(Side::Far);
        assert_eq!(lost(&mut emulator, ALWAYS)[0], [1, 0]);
        let spec = path("duplicate = { rate = \"100 %\" }\nqueue = { limit = \"1 packets\" }");
        let mut emulator = Emulator::new(&spec, None, Emulator::MEMORY);
        for number in 0..4 {
            emulator.arrive(Side::Near, Time(number), &udp((FIRST, 5), &data()));
        }
        let counts = emulator.counts(Side::Near);
        assert!(counts.duplicated > 0 && counts.dropped() > 0);
        assert_eq!(lost(&mut emulator, ALWAYS)[0], [counts.dropped(), 0]);
    }
}
