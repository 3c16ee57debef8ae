//! The common case during recovery: a duplicate acknowledgement reports segments beyond a hole. It does what `on_ack`
//! does, without the tests whose results are known here; `fast_paths` compares the two.

use super::{Linux, News, State};
use crate::Transmit;
use crate::tcp::connection::Connection;
use paceline_packet::{Block, Packet, TcpOptions};
use paceline_units::Time;

impl Linux {
    /// Whether the acknowledgement can only report segments, and so find losses: no probe, no undo, no end of a
    /// recovery, and no DSACK (RFC 2883 section 4).
    #[inline(always)]
    fn only_reports(&self, conn: &Connection, options: &TcpOptions) -> bool {
        let [first, second, _] = options.sack;
        let duplicate = first.end <= conn.una || (second.start <= first.start && first.end <= second.end);
        let settled = match self.state {
            State::Open | State::Disorder => true,
            State::Recovery => conn.una < self.high_seq,
            State::Cwr | State::Loss => false,
        };
        let plain = first.start < first.end && options.window.is_none() && !duplicate;
        plain && settled && self.probe.is_over() && self.undo.retransmissions != Some(0)
    }

    /// Processes an acknowledgement that does not advance `una` while data is outstanding. `false`: nothing was done,
    /// and it must go to `on_ack`.
    #[inline(never)]
    pub(in crate::tcp) fn on_ack_beyond(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: &TcpOptions,
        out: &mut impl Transmit,
    ) -> bool {
        if !self.only_reports(conn, options) {
            return false;
        }
        let window = if self.prr.is_some() { self.shown_window(conn) } else { conn.own_window() };
        conn.stats.advance(now, window);
        let in_flight = conn.sent.in_flight();
        if conn.needs.deliveries {
            conn.check_app_limited();
        }
        let mut news = News::default();
        let highest = conn.sent.forward();
        if let Some(d) = conn.sent.grown(&options.sack) {
            self.rack.arrived(now, &d, highest);
            news.count(&d, false);
            if let Some(delivery) = &mut conn.delivery {
                delivery.delivered(&d, now);
            }
        } else {
            news = self.news_of(conn, now, &options.sack);
        }
        if news.sacked {
            self.tune.arrived_beyond(conn.una, news.delivered, conn.sent.forward(), conn.sent.sacked());
        }
        conn.receive_window = conn.config.receive_window.max(1).min(self.tune.bound());
        let rtt = self.time(conn, now, packet, &mut news);
        self.rack.adapt(false, conn.una, conn.max);
        if self.state == State::Open {
            self.undo.stamp = None;
        }
        self.find_losses(conn, now, &mut news);
        if self.state != State::Recovery {
            if conn.sent.lost() > 0 {
                self.enter_recovery(conn, now, false);
            } else if self.state == State::Open || conn.sent.sacked() == 0 {
                self.keep_open(conn);
            }
        }
        if news.set_timer {
            self.rearm(conn, now); // no probe while segments are SACKed
        }
        if conn.needs.deliveries {
            self.model_as_usual(conn, now, in_flight);
        } else {
            // a copy, so that the values in registers above need no address
            let News { delivered, sacked, lost, .. } = news;
            self.control(conn, now, in_flight, rtt, &News { delivered, sacked, lost, ..News::default() });
        }
        self.pump_if_due(conn, now, out);
        true
    }

    #[inline(never)]
    fn news_of(&mut self, conn: &mut Connection, now: Time, blocks: &[Block; 3]) -> News {
        let mut news = News::default();
        self.reported(conn, now, blocks, &mut news);
        news
    }
}
