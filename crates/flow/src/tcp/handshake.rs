//! Negotiation of ECN in the handshake, and what the handshake shows about ECN on the path.
//!
//! Source: RFC 9768 section 3.1 (tables 2 and 3, which include RFC 3168 section 6.1.1) and sections 3.2.2.1 to 3.2.2.4.
//! DCTCP negotiates as RFC 3168 does (RFC 8257 section 3.2 leaves this open); both ends are configured for it.

use paceline_control::Ecn;
use paceline_packet::{ACE_OFFSET, Flags};

/// The three bits of the ACE field.
const ACE: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);

/// The ECN field of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Codepoint {
    NotEct,
    Ect1,
    Ect0,
    Ce,
}

impl Codepoint {
    /// The codepoint of a packet on arrival.
    pub(super) const fn of(flags: Flags) -> Codepoint {
        if flags.has(Flags::CE) {
            Codepoint::Ce
        } else if flags.has(Flags::L4S) {
            Codepoint::Ect1
        } else if flags.has(Flags::ECT) {
            Codepoint::Ect0
        } else {
            Codepoint::NotEct
        }
    }

    /// The ACE bits that report the codepoint: a SYN's in the SYN/ACK, the SYN/ACK's in the first segment after it
    /// (tables 2 and 3).
    pub(super) const fn reflected(self) -> Flags {
        Flags::NONE.with_ace(match self {
            Codepoint::NotEct => 0b010,
            Codepoint::Ect1 => 0b011,
            Codepoint::Ect0 => 0b100,
            Codepoint::Ce => 0b110,
        })
    }
}

/// The flags with which a SYN requests the ECN mode.
pub(super) const fn request(own: Ecn) -> Flags {
    match own {
        Ecn::Off => Flags::NONE,
        Ecn::Classic | Ecn::Dctcp => Flags(Flags::CWR.0 | Flags::ECE.0),
        Ecn::Accurate => ACE,
    }
}

/// The answer to a SYN: the negotiated ECN mode, and the flags of the SYN/ACK.
pub(super) fn answer(own: Ecn, syn: Flags) -> (Ecn, Flags) {
    match (own, syn.ace()) {
        (Ecn::Off, _) => (Ecn::Off, Flags::NONE),
        (Ecn::Accurate, 0b111) => (Ecn::Accurate, Codepoint::of(syn).reflected()),
        // RFC 3168 does not have AE; a SYN with the ECN nonce does not set it either
        (Ecn::Accurate, 0b011) => (Ecn::Classic, Flags::ECE),
        (Ecn::Classic | Ecn::Dctcp, 0b011 | 0b111) => (own, Flags::ECE),
        // forward compatibility: a value with AE, other than those above, requests an unknown extension (section 3.1.3)
        (Ecn::Accurate, 0b100..) => (Ecn::Accurate, Codepoint::of(syn).reflected()),
        _ => (Ecn::Off, Flags::NONE),
    }
}

/// Evaluates the SYN/ACK's flags at the end that sent the SYN: the negotiated ECN mode and, with accurate ECN, the
/// codepoint with which the SYN arrived; `None`: the answer does not say.
pub(super) fn agreed(own: Ecn, answer: Flags) -> (Ecn, Option<Codepoint>) {
    match (own, answer.ace()) {
        (Ecn::Off, _) => (Ecn::Off, None),
        (Ecn::Accurate, 0b010) => (own, Some(Codepoint::NotEct)),
        (Ecn::Accurate, 0b011) => (own, Some(Codepoint::Ect1)),
        (Ecn::Accurate, 0b100) => (own, Some(Codepoint::Ect0)),
        (Ecn::Accurate, 0b110) => (own, Some(Codepoint::Ce)),
        // reserved: treated as if the SYN had arrived unchanged (section 3.1.3)
        (Ecn::Accurate, 0b101) => (own, None),
        (Ecn::Accurate, 0b001) => (Ecn::Classic, None),
        (Ecn::Classic | Ecn::Dctcp, 0b001 | 0b101) => (own, None),
        // no ECN at the other end; or it only repeats the SYN's bits
        _ => (Ecn::Off, None),
    }
}

/// What the path does to the bits of a connection that has negotiated accurate ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bits {
    /// No fault has been detected.
    Whole,
    /// The SYN's ECN field changed in a way that no queue causes: segments are sent as not ECN-capable (section
    /// 3.2.2.3).
    Mangled,
    /// The ACE counter is cleared on the path: segments are sent as not ECN-capable, and the counter is ignored
    /// (section 3.2.2.4).
    Zeroed,
}

impl Bits {
    /// Evaluates a SYN that was sent as Not-ECT: no queue may mark it, and nothing may make it ECN-capable.
    pub(super) fn of_handshake(arrived: Option<Codepoint>) -> Bits {
        if arrived.is_none_or(|arrived| arrived == Codepoint::NotEct) { Bits::Whole } else { Bits::Mangled }
    }

    /// Evaluates the first acknowledgement after the handshake, of `acked` segments beyond the SYN: the counter begins
    /// with 5, so three marks make it zero legitimately.
    pub(super) fn of_first_count(self, count: u32, acked: u32) -> Bits {
        if count == 0 && acked < 8 - ACE_OFFSET { Bits::Zeroed } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Flags = Flags::NONE;

    fn bits(ace: u32) -> Flags {
        NONE.with_ace(ace)
    }

    /// RFC 9768 table 2: A's request, B's answer, and the mode that both then have.
    #[test]
    fn the_table_of_negotiations() {
        let ect1 = Flags::ECT.with(Flags::L4S);
        let table = [
            // A, B, the SYN's ECN field on arrival, SYN, SYN/ACK, negotiated mode
            (Ecn::Accurate, Ecn::Accurate, NONE, 0b111, 0b010, Ecn::Accurate),
            (Ecn::Accurate, Ecn::Accurate, ect1, 0b111, 0b011, Ecn::Accurate),
            (Ecn::Accurate, Ecn::Accurate, Flags::ECT, 0b111, 0b100, Ecn::Accurate),
            (Ecn::Accurate, Ecn::Accurate, Flags::ECT.with(Flags::CE), 0b111, 0b110, Ecn::Accurate),
            (Ecn::Accurate, Ecn::Classic, NONE, 0b111, 0b001, Ecn::Classic),
            (Ecn::Accurate, Ecn::Off, NONE, 0b111, 0b000, Ecn::Off),
            (Ecn::Classic, Ecn::Accurate, NONE, 0b011, 0b001, Ecn::Classic),
            (Ecn::Classic, Ecn::Classic, NONE, 0b011, 0b001, Ecn::Classic),
            (Ecn::Dctcp, Ecn::Dctcp, NONE, 0b011, 0b001, Ecn::Dctcp),
            (Ecn::Classic, Ecn::Off, NONE, 0b011, 0b000, Ecn::Off),
            (Ecn::Off, Ecn::Accurate, NONE, 0b000, 0b000, Ecn::Off),
            (Ecn::Off, Ecn::Classic, NONE, 0b000, 0b000, Ecn::Off),
        ];
        for (a, b, arrives, syn, syn_ack, both) in table {
            assert_eq!(request(a).ace(), syn, "{a:?}");
            let (theirs, answer) = answer(b, request(a).with(arrives));
            assert_eq!((theirs, answer.ace()), (both, syn_ack), "{a:?} {b:?} {arrives:?}");
            assert_eq!(agreed(a, answer).0, both, "{a:?} {b:?} {arrives:?}");
        }
        // a nonce's answer is now reserved, and a broken one repeats the request
        assert_eq!(agreed(Ecn::Accurate, bits(0b101)), (Ecn::Accurate, None));
        assert_eq!(agreed(Ecn::Accurate, bits(0b111)), (Ecn::Off, None));
        assert_eq!(agreed(Ecn::Classic, bits(0b011)), (Ecn::Off, None));
    }

    /// Table 3, and its inverse at the other end.
    #[test]
    fn the_two_bits_come_back_as_they_arrived() {
        let all = [(NONE, 0b010), (Flags::ECT.with(Flags::L4S), 0b011), (Flags::ECT, 0b100), (Flags::CE, 0b110)];
        for (arrived, ace) in all {
            let codepoint = Codepoint::of(arrived);
            assert_eq!(codepoint.reflected(), bits(ace));
            assert_eq!(agreed(Ecn::Accurate, bits(ace)), (Ecn::Accurate, Some(codepoint)));
        }
    }

    /// Sections 3.2.2.3 and 3.2.2.4.
    #[test]
    fn a_path_that_mangles_or_clears_is_seen() {
        assert_eq!(Bits::of_handshake(None), Bits::Whole);
        assert_eq!(Bits::of_handshake(Some(Codepoint::NotEct)), Bits::Whole);
        for arrived in [Codepoint::Ect0, Codepoint::Ect1, Codepoint::Ce] {
            assert_eq!(Bits::of_handshake(Some(arrived)), Bits::Mangled);
        }
        assert_eq!(Bits::Whole.of_first_count(0, 2), Bits::Zeroed);
        assert_eq!(Bits::Whole.of_first_count(0, 3), Bits::Whole, "three marks make it zero");
        assert_eq!(Bits::Mangled.of_first_count(5, 2), Bits::Mangled);
    }
}
