//! The common case: an acknowledgement in order comes to a sender with Reno's window, of which nothing else needs to
//! know. What it does is what `ack` and `output` do, but for the questions whose answers are known.

use super::sender::{Quick, TcpSender};
use crate::{Segment, Transmit};
use paceline_control::{Profile, TcpController, WindowController};
use paceline_packet::{Flags, Packet, Stamp, TcpOptions};
use paceline_units::Time;

/// New full segments that leave at once.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    next: u32,
    end: u32,
    /// One past the last segment that the application has supplied.
    limit: u32,
    stamp: Stamp,
    size: u16,
}

impl Iterator for Burst {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        if self.next >= self.end {
            return None;
        }
        let seq = self.next;
        self.next += 1;
        let flags = if self.next == self.limit { Flags::PUSH } else { Flags::NONE };
        Some(Segment { seq, stamp: self.stamp, size: self.size, flags, extra: None })
    }
}

impl TcpSender {
    /// An acknowledgement has come.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, options: Option<&TcpOptions>, out: &mut impl Transmit) {
        if options.is_none()
            && out.full_until().is_none()
            && let Some(burst) = self.on_ack_in_order(now, packet)
        {
            burst.for_each(|segment| out.transmit(segment));
        } else {
            self.on_ack_out_of_line(now, packet, options, out);
        }
    }

    /// Takes an acknowledgement without options that needs no more than is usual, and gives what it lets go; the sender
    /// then waits for no other time than that of its timer. `None`: nothing has been done, and it is one for
    /// [`TcpSender::on_ack`]. Not to be asked while [`Transmit::full_until`] names a time.
    // Apart from it, so that what a host knows stays in registers in the common case: what both ways use, one of them by
    // its address, would lie in memory.
    #[inline(always)]
    pub fn on_ack_in_order(&mut self, now: Time, packet: &Packet) -> Option<Burst> {
        let ack = packet.seq;
        let plain = packet.flags.0 & (Flags::ECE.0 | Flags::SYN.0) == 0;
        let TcpController::Reno(reno) = &mut self.controller else { return None };
        if !(self.quick == Quick::Reno && plain && ack > self.una && ack <= self.max && self.nxt == self.max) {
            return None;
        }
        self.stats.advance(now, reno.window());
        let (in_flight, segments) = (self.nxt - self.una, ack - self.una);
        reno.acked(segments, in_flight); // spared the view of the path: a tenth of the cost
        let window = (reno.window() as u32).saturating_add(self.inflation).min(self.receive_window);
        self.una = ack;
        self.dupacks = 0;
        self.stats.bytes_acked += u64::from(segments) * u64::from(self.segment);
        self.stats.round_trip(packet.stamp.elapsed(now));
        if self.timing && ack > self.timed {
            self.sample(now);
        }
        let (next, end) = (self.nxt, ack.saturating_add(window).min(self.limit));
        if next < end {
            self.nxt = end;
            self.max = end;
            if !self.timing {
                self.timing = true;
                self.timed = next;
                self.timed_at = now;
            }
            self.last_sent = now;
            self.stats.packets_sent += u64::from(end - next);
        }
        let done = ack == self.max && self.profile == Profile::Rfc;
        self.timer = if done { Time::NEVER } else { now + self.rto };
        Some(Burst { next, end, limit: self.limit, stamp: Stamp::at(now), size: self.wire })
    }
}
