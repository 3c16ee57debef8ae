//! Requests of a receiver to a media sender (RFC 4585), as plain values.

use crate::rtp::Ssrc;

/// A receiver's request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Retransmission of missing packets (generic NACK, RFC 4585 section 6.2.1).
    Nack(Nack),
    /// A key frame of this source, because a picture is lost (PLI, section 6.3.1).
    Pli(Ssrc),
}

impl Repair {
    /// Bytes of its packet.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        // the header and two sources, and four bytes per item
        12 + match self {
            Repair::Nack(nack) => 4 * nack.items().count(),
            Repair::Pli(_) => 0,
        }
    }
}

/// Missing packets of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nack {
    /// The source.
    pub ssrc: Ssrc,
    /// Their sequence numbers, without duplicates, each ahead of the one before it.
    pub lost: Vec<u16>,
}

impl Nack {
    /// The number of packets that an item's bitmask covers after its first.
    const BLP_BITS: u16 = 16;

    /// The items of the packet: a sequence number (PID), and which of the next 16 packets are missing too (BLP).
    pub fn items(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let mut rest = self.lost.as_slice();
        core::iter::from_fn(move || {
            let (&first, after) = rest.split_first()?;
            let ahead = |number: u16| number.wrapping_sub(first);
            let many = after.iter().take_while(|&&number| (1..=Nack::BLP_BITS).contains(&ahead(number))).count();
            let mask = after[..many].iter().fold(0, |mask, &number| mask | 1 << (ahead(number) - 1));
            rest = &after[many..];
            Some((first, mask))
        })
    }

    /// The sequence numbers in an item.
    pub fn numbers((first, mask): (u16, u16)) -> impl Iterator<Item = u16> {
        let after = (0..Nack::BLP_BITS).filter(move |bit| mask >> bit & 1 == 1);
        core::iter::once(first).chain(after.map(move |bit| first.wrapping_add(bit + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_6_2_1_an_item_has_a_packet_and_those_of_the_16_after_it() {
        let items = |lost: &[u16]| Nack { ssrc: Ssrc(1), lost: lost.to_vec() }.items().collect::<Vec<_>>();
        assert_eq!(items(&[]), []);
        assert_eq!(items(&[7]), [(7, 0)]);
        assert_eq!(items(&[7, 8, 23]), [(7, 0b1000_0000_0000_0001)]);
        assert_eq!(items(&[7, 24, 25]), [(7, 0), (24, 1)], "the 17th after it begins another");
        assert_eq!(items(&[65_535, 0, 3]), [(65_535, 0b1001)]);
        for lost in [vec![7, 8, 23], vec![65_530, 65_535, 0, 10, 40, 41]] {
            let nack = Nack { ssrc: Ssrc(1), lost: lost.clone() };
            assert_eq!(nack.items().flat_map(Nack::numbers).collect::<Vec<_>>(), lost);
        }
    }
}
