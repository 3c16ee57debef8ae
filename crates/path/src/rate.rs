//! How fast a link sends, and the server that evaluates it: from when and until when a packet is in transmission.

use paceline_units::Rate;

/// How fast a link sends.
#[derive(Clone, Debug)]
pub enum RateModel {
    /// Always the same; not zero.
    Constant(Rate),
}

/// A server of constant rate. Instants are fixed point, 64 bits of nanoseconds and 64 of fraction, so that nothing of
/// a nanosecond is lost from one packet of a busy period to the next.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    free: u128,
    per_byte: u128,
}

impl Constant {
    /// # Panics
    /// If the rate is zero.
    pub(crate) fn new(rate: Rate) -> Constant {
        assert!(rate.0 > 0, "a constant rate must not be zero");
        // At most 2^97; times a size below 2^16 it stays below 2^113.
        Constant { free: 0, per_byte: (8_000_000_000u128 << 64) / u128::from(rate.0) }
    }

    /// When everything admitted so far has been sent.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        (self.free >> 64) as u64
    }

    /// Sends `size` bytes that are there at `now`: start and end of the transmission.
    #[inline]
    pub(crate) fn serve(&mut self, now: u64, size: u16) -> (u64, u64) {
        let start = self.free.max(u128::from(now) << 64);
        self.free = start.saturating_add(self.per_byte.wrapping_mul(u128::from(size)));
        ((start >> 64) as u64, (self.free >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_do_not_drift() {
        let mut server = Constant::new(Rate(3_700_000));
        for _ in 0..1_000_000 {
            server.serve(0, 1000);
        }
        assert_eq!(server.free(), (8_000_000_000u128 * 1_000_000_000 / 3_700_000) as u64);
    }

    #[test]
    fn what_is_never_stays_so() {
        let mut server = Constant::new(Rate(1));
        assert_eq!(server.serve(u64::MAX, u16::MAX).1, u64::MAX);
        assert_eq!(server.serve(5, 1).1, u64::MAX);
    }
}
