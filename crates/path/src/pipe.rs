//! The plain link: constant rate, unlimited queue, and propagation.

use crate::rate::Constant;
use paceline_packet::Packet;
use paceline_units::{Rate, Span, Time};

/// A link of constant rate with an unlimited first-in-first-out queue, without loss and without measurements. Together
/// with the tag of its kind it fits a cache line.
#[derive(Clone, Debug)]
pub struct Pipe {
    server: Constant,
    propagation: Span,
}

const _: () = assert!(size_of::<Pipe>() <= 48, "a pipe and its tag fit a cache line");

impl Pipe {
    /// A pipe of this rate and propagation delay.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn new(rate: Rate, propagation: Span) -> Pipe {
        Pipe { server: Constant::new(rate), propagation }
    }

    /// Enqueues a packet that reaches the queue at `packet.time`, and sets `packet.time` to its arrival at the far end.
    /// Calls must come in order of time.
    #[inline]
    pub fn admit(&mut self, packet: &mut Packet) {
        let (_, end) = self.server.serve(packet.time.0, packet.size);
        packet.time = Time(end) + self.propagation;
    }

    /// The minimum delay across.
    #[must_use]
    pub fn delay_floor(&self) -> Span {
        self.propagation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::packet;

    #[test]
    fn sends_one_after_the_other() {
        let mut pipe = Pipe::new(Rate(8_000_000), Span(500));
        let times = [(0, 1000), (10, 1000), (5_000_000, 40)].map(|(at, size)| {
            let mut p = packet(at, size);
            pipe.admit(&mut p);
            p.time.0
        });
        assert_eq!(times, [1_000_500, 2_000_500, 5_040_500]);
    }
}
