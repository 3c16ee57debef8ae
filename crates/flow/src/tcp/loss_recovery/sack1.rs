//! ns-2's Sack1, where it differs from RFC 6675: its pipe is a counter, and every hole below the highest block is
//! treated as lost.
//!
//! Source: the behaviour of `tcp-sack1.cc` and `scoreboard-rq.cc` of ns-2.35.

use super::sack::Sack;
use crate::Transmit;
use crate::tcp::connection::{Action, Connection, DUPLICATES, Phase};
use paceline_control::TcpEvent;
use paceline_packet::{Packet, TcpOptions};
use paceline_units::Time;

impl Sack {
    /// Processes an acknowledgement that took no fast path, under `ns2`.
    pub(super) fn on_ack_sack1(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let new = packet.seq > conn.una;
        if conn.phase == Phase::Recovery {
            self.pipe -= 1;
            if packet.seq >= conn.recover {
                conn.phase = Phase::Open;
                conn.recover = conn.base + 1;
                conn.take(now, packet);
                conn.dupacks = 0;
                self.mute = false;
                self.reported.clear();
                conn.notify(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
            } else if new {
                conn.advance(now, packet);
                let (una, max) = (conn.una, conn.max);
                self.reported.update(una, max, options);
                self.pipe -= 1;
                conn.reset_backoff();
                conn.set_timer(now);
            } else if !self.mute {
                let (una, max) = (conn.una, conn.max);
                if self.reported.update(una, max, options) && conn.dupacks > 0 {
                    conn.dupacks += 1;
                }
            }
            return if conn.phase == Phase::Recovery {
                self.pump(conn, now, out);
            } else {
                conn.pump(now, u32::MAX, out);
            };
        }
        if new {
            let rtt = packet.stamp.elapsed(now);
            conn.new_ack(now, packet, Some(rtt));
            let una = conn.una;
            self.mute = false;
            self.reported.clear();
            self.high_rxt = una;
        } else if !self.mute && conn.una < conn.max {
            let (una, max) = (conn.una, conn.max);
            if self.reported.update(una, max, options) {
                conn.dupacks += 1;
                if conn.dupacks == DUPLICATES {
                    self.enter_sack1(conn, now, out);
                } else if conn.dupacks < DUPLICATES && conn.config.limited_transmit {
                    conn.limited_transmit(now, out);
                }
            }
        }
        if conn.phase == Phase::Recovery {
            return; // Sack1 sends nothing more with the acknowledgement that begins recovery
        }
        if conn.dupacks == 0 {
            conn.pump(now, u32::MAX, out);
        }
    }

    fn enter_sack1(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        let marked = conn.action == Action::Ecn;
        if conn.una <= conn.recover && conn.una != conn.base + 1 && !marked {
            return;
        }
        let cut = conn.una > conn.recover || conn.una == conn.base + 1;
        if cut {
            conn.recover = conn.max;
        }
        conn.action = Action::Duplicates;
        conn.phase = Phase::Recovery;
        conn.timing = false;
        conn.set_timer(now);
        conn.stats.fast_retransmits += 1;
        if cut {
            conn.notify(TcpEvent::Lost { duplicates: 0, again: false }, now);
        }
        conn.limited = 0;
        let (una, max) = (conn.una, conn.max);
        self.pipe = i64::from(max - una) - i64::from(DUPLICATES);
        self.high_rxt = self.high_rxt.max(una + 1);
        conn.emit(now, una, out);
    }
}
