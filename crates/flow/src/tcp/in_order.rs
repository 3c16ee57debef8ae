//! The most common case: an in-order acknowledgement for a sender with Reno's window. It does what `ack` and `output`
//! do, without the tests whose results are known here; `fast_paths` compares the two.

use super::connection::FastPath;
use super::sender::TcpSender;
use crate::{Segment, Transmit};
use paceline_control::{Profile, TcpController, WindowController};
use paceline_packet::{Flags, Packet, Stamp, TcpOptions};
use paceline_units::Time;

/// New full segments to send at once.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    next: u32,
    end: u32,
    /// One past the last segment supplied by the application.
    limit: u32,
    stamp: Stamp,
    size: u16,
}

impl Burst {
    /// The maximum number of segments: the window grows by one when two segments are acknowledged.
    pub const MAX_SEGMENTS: u32 = 3;
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
    /// Processes an acknowledgement.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, options: Option<&TcpOptions>, out: &mut impl Transmit) {
        if options.is_none()
            && out.takes_burst()
            && let Some(burst) = self.on_ack_in_order(now, packet)
        {
            burst.for_each(|segment| out.transmit(segment));
        } else {
            self.on_ack_out_of_line(now, packet, options, out);
        }
    }

    /// Processes an acknowledgement without options in the common case, and returns the segments to send. The sender
    /// then waits only for its retransmission timer. `None`: nothing was done, and the acknowledgement must go to
    /// [`TcpSender::on_ack`]. Call it only if the host [`takes`](Transmit::takes_burst) a burst.
    // Separate from `on_ack`, so that the host's state stays in registers in the common case. If both paths used it,
    // one of them by address, it would be in memory.
    #[inline(always)]
    pub fn on_ack_in_order(&mut self, now: Time, packet: &Packet) -> Option<Burst> {
        let (conn, ack) = (&mut self.conn, packet.seq);
        let plain = packet.flags.0 & (Flags::ECE.0 | Flags::SYN.0) == 0;
        let TcpController::Reno(reno) = &mut conn.controller else { return None };
        if !(conn.fast_path == FastPath::Reno && plain && ack > conn.una && ack <= conn.max && conn.nxt == conn.max) {
            return None;
        }
        // in u64, where none of this can overflow
        let (inflation, receive_window) = (u64::from(conn.inflation), u64::from(conn.receive_window));
        let edge = |cwnd: f64| u64::from(ack) + (u64::from(cwnd as u32) + inflation).min(receive_window);
        if edge(reno.window()) >= u64::from(conn.nxt) + u64::from(Burst::MAX_SEGMENTS) {
            return None; // it might release more segments than a burst
        }
        conn.stats.advance(now, reno.window());
        let (in_flight, segments) = (conn.nxt - conn.una, ack - conn.una);
        reno.acked(segments, in_flight); // a direct call, without a view of the path, saves a tenth of the cost
        let edge = edge(reno.window());
        conn.una = ack;
        conn.dupacks = 0;
        conn.stats.bytes_acked += u64::from(segments) * u64::from(conn.segment);
        conn.stats.round_trip(packet.stamp.elapsed(now));
        if conn.timing && ack > conn.timed {
            conn.sample(now);
        }
        let (next, end) = (conn.nxt, edge.min(u64::from(conn.limit)) as u32);
        if next < end {
            conn.nxt = end;
            conn.max = end;
            if !conn.timing {
                conn.timing = true;
                conn.timed = next;
                conn.timed_at = now;
            }
            conn.last_sent = now;
            conn.stats.packets_sent += u64::from(end - next);
        }
        let done = ack == conn.max && conn.profile == Profile::Rfc;
        conn.timer = if done { Time::NEVER } else { now + conn.rto };
        Some(Burst { next, end, limit: conn.limit, stamp: Stamp::at(now), size: conn.wire })
    }
}
