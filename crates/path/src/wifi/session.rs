//! A block ACK session: from the access point to an 802.11n station, or back (IEEE Std 802.11-2012, clause 9.21).
//!
//! The sender's state is the next sequence number and whether a BlockAckReq must be sent for a packet given up; the
//! rest is in each [`Mpdu`]. The receiver forwards packets in order and buffers early ones.

use super::timing::{ACK, BLOCK_ACK};
use paceline_packet::Packet;
use std::collections::VecDeque;

/// The maximum number of sequence numbers in flight: a receiver's buffer, and the size of a compressed BlockAck's
/// bitmap.
pub(super) const WINDOW: u64 = 64;
/// The maximum A-MPDU length (Maximum A-MPDU Length Exponent 3, clause 8.4.2.58.3).
pub(super) const MAX_AMPDU_OCTETS: u32 = 65_535;
/// The delimiter before each MPDU of an A-MPDU (clause 8.6.1).
const DELIMITER: u32 = 4;

/// A packet that a transmitter has taken from its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mpdu {
    pub(super) packet: Packet,
    pub(super) station: usize,
    /// Octets of the frame, MAC header and FCS included.
    pub(super) octets: u32,
    /// Sequence number in its session, from 0, without wrap-around.
    pub(super) seq: u64,
    pub(super) tries: u32,
    /// It has arrived; its sender may not know.
    pub(super) arrived: bool,
    /// It is part of the frame on the air.
    pub(super) aboard: bool,
    /// It was damaged in that frame.
    pub(super) damaged: bool,
}

/// The length of a frame built MPDU by MPDU: a single one is sent as it is, several as an A-MPDU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Length {
    pub(super) mpdus: u32,
    octets: u32,
}

impl Length {
    /// Adds an MPDU.
    pub(super) fn with(self, octets: u32) -> Length {
        // all but the last are padded to four octets
        let before = match self.mpdus {
            0 => 0,
            1 => DELIMITER + self.octets.next_multiple_of(4),
            _ => self.octets.next_multiple_of(4),
        };
        let own = if self.mpdus == 0 { octets } else { DELIMITER + octets };
        Length { mpdus: self.mpdus + 1, octets: before + own }
    }

    /// Octets of the physical layer's frame.
    pub(super) fn octets(self) -> u32 {
        self.octets
    }

    /// Octets of the response: an ACK, or a BlockAck.
    pub(super) fn answer(self) -> u32 {
        if self.mpdus > 1 { BLOCK_ACK } else { ACK }
    }
}

/// Both ends of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    next: u64,
    /// An MPDU was given up that did not arrive: a BlockAckReq must move the receiver's window.
    pub(super) request: bool,
    /// The BlockAckReq goes before all else; after its last attempt, before the next MPDU of the session.
    pub(super) urgent: bool,
    /// The first sequence number that has not been forwarded.
    expected: u64,
    early: VecDeque<(u64, Packet)>,
}

impl Session {
    /// Allocates the next sequence number.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The new start of the receiver's window: the sender's first MPDU, or after its last.
    pub(super) fn start(&self, first: Option<u64>) -> u64 {
        first.unwrap_or(self.next)
    }

    /// Packets that wait for earlier ones.
    pub(super) fn waiting(&self) -> u64 {
        self.early.len() as u64
    }

    /// An MPDU arrives for the first time; forwards what is now in order.
    pub(super) fn arrive(&mut self, seq: u64, packet: Packet, forward: impl FnMut(Packet)) {
        debug_assert!((self.expected..self.expected + WINDOW).contains(&seq), "outside of the window");
        let place = self.early.partition_point(|(early, _)| *early < seq);
        self.early.insert(place, (seq, packet));
        self.release(self.expected, forward);
    }

    /// A BlockAckReq arrives: nothing before `start` will arrive any more.
    pub(super) fn release(&mut self, start: u64, mut forward: impl FnMut(Packet)) {
        self.expected = self.expected.max(start);
        while let Some((seq, packet)) = self.early.front().copied().filter(|(seq, _)| *seq <= self.expected) {
            self.expected = self.expected.max(seq + 1);
            self.early.pop_front();
            forward(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_packet::{ExtraId, Flags, FlowId, Stamp};
    use paceline_units::Time;

    #[test]
    fn delimiters_and_padding() {
        let one = Length::default().with(1538);
        assert_eq!((one.octets(), one.answer()), (1538, 14));
        // 4 + 1538 + 2, then 4 + 1538
        let two = one.with(1538);
        assert_eq!((two.octets(), two.answer()), (1544 + 1542, 32));
        assert_eq!(two.with(100).octets(), 2 * 1544 + 104);
    }

    #[test]
    fn order_is_kept_and_a_request_moves_the_window() {
        let packet = |seq| Packet {
            time: Time::ZERO,
            cursor: 0,
            size: 100,
            flags: Flags::NONE,
            flow: FlowId(0),
            seq,
            stamp: Stamp(0),
            extra: ExtraId::NONE,
        };
        let (mut session, mut got) = (Session::default(), vec![]);
        for seq in [0, 3, 2, 5] {
            session.arrive(u64::from(seq), packet(seq), |packet| got.push(packet.seq));
        }
        assert_eq!((got.as_slice(), session.waiting()), (&[0][..], 3));
        session.release(2, |packet| got.push(packet.seq));
        assert_eq!((got.as_slice(), session.waiting()), (&[0, 2, 3][..], 1));
        session.arrive(4, packet(4), |packet| got.push(packet.seq));
        assert_eq!((got.as_slice(), session.waiting()), (&[0, 2, 3, 4, 5][..], 0));
        session.release(1, |_| panic!("nothing waits"));
        session.arrive(6, packet(6), |packet| got.push(packet.seq));
        assert_eq!(got.last(), Some(&6));
    }
}
