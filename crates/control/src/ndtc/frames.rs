//! Assembles frames from packets: the time that each took to send and to arrive, its losses, its marks.
//!
//! Source: draft-ageneau-ccwg-ndtc (July 2026), "Frame Dithering Available Capacity Estimation", "Frame Size
//! Calculation" and "Loss Detection".

use super::law::Frame;
use crate::rtp::Fate;
use paceline_units::Time;

/// A packet that feedback has reported, in sending order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packet {
    /// Numbers the packets of the session.
    pub number: u32,
    /// When it was sent.
    pub sent: Time,
    /// Its payload in bytes.
    pub payload: f64,
    /// Whether it is the last of its frame (the RTP marker).
    pub ends_frame: bool,
    /// Its fate.
    pub fate: Fate,
}

/// The frame whose packets are being reported.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Open {
    first: Packet,
    /// Sum of all payloads so far.
    payload: f64,
    packets: u32,
    lost: u32,
    marked: u32,
    /// Whether the fate of one of its packets is unknown.
    unknown: bool,
}

/// Assembles frames.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Frames {
    open: Option<Open>,
    /// The number after the last reported packet.
    next: Option<u32>,
}

impl Frames {
    /// Handles a reported packet; returns the frame if this is its last packet.
    ///
    /// A missing number belongs to a packet that the sender has forgotten: only its existence is known, and not which
    /// of the frames around it was its own.
    pub fn packet(&mut self, packet: &Packet) -> Option<Frame> {
        let gap = self.next.is_some_and(|next| next != packet.number);
        self.next = Some(packet.number.wrapping_add(1));
        let fresh = Open { first: *packet, payload: 0.0, packets: 0, lost: 0, marked: 0, unknown: false };
        let mut open = self.open.take().unwrap_or(fresh);
        open.payload += packet.payload;
        open.packets += 1;
        open.unknown |= gap;
        match packet.fate {
            Fate::Arrived { marked, .. } => open.marked += u32::from(marked),
            Fate::Lost => open.lost += 1,
            Fate::Unknown => open.unknown = true,
        }
        if packet.ends_frame {
            return Some(open.whole(packet));
        }
        self.open = Some(open);
        None
    }
}

impl Open {
    /// The frame that `last` completes.
    fn whole(&self, last: &Packet) -> Frame {
        let one = self.packets == 1;
        let length = if one { last.payload } else { self.payload - (self.first.payload + last.payload) / 2.0 };
        let recv = match (arrival(&self.first), arrival(last)) {
            // the last packet arrived before the first: they were reordered, and the time between them is not
            // meaningful
            (Some(first), Some(last)) if first <= last => Some(last.since(first).as_secs_f64()),
            _ => None,
        };
        Frame {
            length,
            send: last.sent.since(self.first.sent).as_secs_f64(),
            recv: recv.unwrap_or(0.0),
            sent: self.first.sent,
            packets: self.packets,
            lost: self.lost,
            marked: self.marked,
            timed: recv.is_some() && !self.unknown,
        }
    }
}

/// When a packet arrived, if known.
fn arrival(packet: &Packet) -> Option<Time> {
    match packet.fate {
        Fate::Arrived { at, .. } => at,
        Fate::Lost | Fate::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn arrived(at: u64) -> Fate {
        Fate::Arrived { at: Some(ms(at)), marked: false }
    }

    /// Packets numbered from 7, 2 ms apart: payload, whether it ends a frame, fate.
    fn frames_of(packets: &[(f64, bool, Fate)]) -> Vec<Frame> {
        let mut frames = Frames::default();
        let packets = (7_u32..).zip(packets).map(|(number, (payload, ends_frame, fate))| Packet {
            number,
            sent: ms(u64::from(number) * 2),
            payload: *payload,
            ends_frame: *ends_frame,
            fate: *fate,
        });
        packets.filter_map(|packet| frames.packet(&packet)).collect()
    }

    #[test]
    fn a_frame_lasts_from_its_first_packet_to_its_last_and_counts_one_of_the_extremes() {
        let mark = Fate::Arrived { at: Some(ms(122)), marked: true };
        let frames = frames_of(&[
            (1000.0, false, arrived(115)),
            (1000.0, false, mark),
            (400.0, true, arrived(125)),
            (300.0, true, arrived(140)),
            (900.0, false, arrived(150)),
            (500.0, true, arrived(151)),
        ]);
        let first = Frame {
            length: 1700.0,
            send: 0.004,
            recv: 0.010,
            sent: ms(14),
            packets: 3,
            lost: 0,
            marked: 1,
            timed: true,
        };
        assert_eq!(frames[0], first);
        // LENGTH of a single packet is its own size; of two, their mean
        assert_eq!((frames[1].length, frames[1].send, frames[1].packets), (300.0, 0.0, 1));
        assert_eq!((frames[2].length, frames[2].send, frames[2].recv), (700.0, 0.002, 0.001));
        assert_eq!(frames.len(), 3);
    }

    #[test]
    fn a_frame_whose_times_are_not_known_is_untimed_but_its_losses_count() {
        let at_no_time = Fate::Arrived { at: None, marked: false };
        for (fates, lost, timed) in [
            ([arrived(100), Fate::Lost, arrived(104)], 1, true),
            ([arrived(100), arrived(102), Fate::Lost], 1, false),
            ([Fate::Lost, Fate::Lost, arrived(104)], 2, false),
            ([arrived(100), Fate::Unknown, arrived(104)], 0, false),
            ([arrived(100), arrived(102), at_no_time], 0, false),
            ([arrived(100), at_no_time, arrived(104)], 0, true),
            // the last has overtaken the first
            ([arrived(104), arrived(105), arrived(103)], 0, false),
            // the middle packet arrived last: the draft's RECV is between the first and the last packet sent
            ([arrived(100), arrived(109), arrived(104)], 0, true),
        ] {
            let frames = frames_of(&[(500.0, false, fates[0]), (500.0, false, fates[1]), (500.0, true, fates[2])]);
            assert_eq!((frames[0].lost, frames[0].timed, frames[0].packets), (lost, timed, 3), "{fates:?}");
        }
    }

    #[test]
    fn a_packet_that_is_never_told_of_leaves_its_frame_without_times() {
        let mut frames = Frames::default();
        let packet = |number: u32, ends_frame| Packet {
            number,
            sent: ms(number.into()),
            payload: 500.0,
            ends_frame,
            fate: arrived(100 + u64::from(number)),
        };
        assert!(frames.packet(&packet(0, false)).is_none());
        let frame = frames.packet(&packet(2, true)).unwrap();
        assert!(!frame.timed && frame.packets == 2);
        assert!(frames.packet(&packet(3, false)).is_none());
        assert!(frames.packet(&packet(4, true)).unwrap().timed, "the next is whole again");
        // the last packet of one frame and the first of the next are missing
        assert!(frames.packet(&packet(5, false)).is_none());
        assert!(!frames.packet(&packet(8, true)).unwrap().timed);
    }
}
