//! The common case: an in-order acknowledgement outside recovery. It does what `on_ack` does, without the tests whose
//! results are known here; `fast_paths` compares the two.

use super::{Linux, News, State};
use crate::Transmit;
use crate::tcp::connection::Connection;
use paceline_packet::Packet;
use paceline_units::{Span, Time};

impl Linux {
    /// Whether there is no recovery, no SACKed segment and no probe.
    pub(in crate::tcp::loss_recovery) fn is_calm(&self, conn: &Connection) -> bool {
        let calm = self.state == State::Open && self.prr.is_none() && self.probe.is_over();
        calm && conn.sent.sacked() + conn.sent.lost() + conn.sent.retransmitted() == 0
    }

    /// Processes an acknowledgement without options, of segments that were sent once. `false`: nothing was done, and it
    /// must go to `on_ack`.
    #[inline(never)]
    pub(in crate::tcp) fn on_ack_in_order(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        out: &mut impl Transmit,
    ) -> bool {
        let (before, ack) = (conn.una, packet.seq);
        let highest = conn.sent.forward();
        if highest > before || !conn.sent.are_plain(ack) {
            return false;
        }
        conn.stats.advance(now, conn.own_window());
        let in_flight = conn.sent.in_flight();
        if conn.needs.deliveries {
            conn.check_app_limited();
        }
        let segments = ack - before;
        conn.stats.bytes_acked += u64::from(segments) * u64::from(conn.segment);
        conn.una = ack;
        conn.nxt = conn.nxt.max(ack);
        let echoed = packet.stamp.elapsed(now);
        if echoed < Span::from_secs(600) {
            conn.stats.round_trip(echoed);
        }
        self.undo.echoed = echoed;
        let (rack, delivery) = (&mut self.rack, &mut conn.delivery);
        let mut times = None;
        conn.sent.acked_in_order(ack, |d| {
            rack.arrived(now, &d, highest);
            times = Some((times.map_or(d.sent, |(first, _)| first), d.sent));
            if let Some(delivery) = delivery {
                delivery.delivered(&d, now);
            }
        });
        conn.receive_window = conn.config.receive_window.max(1);
        self.tune.arrived(now, ack, segments, ack, conn.rtt.srtt());
        conn.receive_window = conn.receive_window.min(self.tune.bound());
        let (first, last) = times.unwrap_or((now, now));
        self.sample(conn, now, now.since(first));
        self.timeouts = 0;
        self.rack.adapt(false, ack, conn.max);
        if conn.needs.deliveries {
            self.model_as_usual(conn, now, in_flight);
        } else {
            let news = News { delivered: segments, acked: true, ..News::default() };
            self.control(conn, now, in_flight, Some(now.since(last)), &news);
        }
        // Sending restarts the timer, and nothing reads it before that.
        if !self.pump_if_due(conn, now, out) && (ack == conn.max || !self.schedule_probe(conn, now, true)) {
            self.rearm(conn, now);
        }
        true
    }
}
