//! Vegas' own recovery: fine-grained timeouts, checked on duplicate ACKs.
//!
//! Source: Brakmo and Peterson, IEEE JSAC 13(8), 1995, section 3.1. The details are those of `tcp-vegas.cc` of ns-2.35.
//! One difference under `rfc` is the coarse timer, which is not backed off at a fast retransmission.

use crate::Transmit;
use crate::tcp::connection::{Action, Connection, DUPLICATES};
use paceline_control::{Controller, Profile, TcpEvent};
use paceline_packet::Packet;
use paceline_units::{Span, Time};

/// The state of the fine-grained timeout.
#[derive(Debug, Default)]
pub(in crate::tcp) struct FineTimer {
    /// 8 x smoothed round-trip time and 4 x variation, in seconds (`v_sa_`, `v_sd_`); `None` before the first sample.
    smoothed: Option<(f64, f64)>,
    /// The timeout in seconds.
    timeout: f64,
    /// The number of further new acknowledgements that check the timer.
    worried: u32,
    /// When the window was last reduced: a loss of a segment sent before does not reduce it again.
    cut_at: Option<Time>,
}

impl FineTimer {
    fn begin(&mut self, rtt: f64) {
        self.smoothed = Some((8.0 * rtt, rtt));
        self.timeout = (2.0 * rtt + rtt) / 2.0;
    }

    /// Gains of 1/8 and 1/4. The timeout is (2 srtt + 4 variation) / 2, plus a sixteenth of that.
    fn sample(&mut self, rtt: f64) {
        let Some((sa, sd)) = &mut self.smoothed else { return };
        let error = rtt - *sa / 8.0;
        *sa += error;
        *sd += error.abs() - *sd / 4.0;
        self.timeout = (*sa / 4.0 + *sd) / 2.0;
        self.timeout += self.timeout / 16.0;
    }

    /// Whether an acknowledgement need not check the timer.
    pub(super) fn is_calm(&self) -> bool {
        self.worried == 0 && self.smoothed.is_some()
    }

    #[cfg(test)]
    pub(super) fn cut_at(&self) -> Option<Time> {
        self.cut_at
    }

    pub(super) fn window_changed(&mut self, now: Time) {
        self.cut_at = Some(now);
    }

    /// Whether the first outstanding segment is older than the timeout.
    fn expired(&self, conn: &Connection, now: Time) -> bool {
        conn.sent.get(conn.una).is_some_and(|(sent, _)| now.since(sent).as_secs_f64() >= self.timeout)
    }

    /// Processes an acknowledgement that took no fast path.
    pub(super) fn on_ack(&mut self, conn: &mut Connection, now: Time, packet: &Packet, out: &mut impl Transmit) {
        if self.smoothed.is_none() {
            self.begin(now.since(conn.first_sent).as_secs_f64());
        }
        if packet.seq > conn.una {
            self.new_ack(conn, now, packet, out);
        } else if conn.una < conn.max {
            self.duplicate(conn, now, out);
        }
        if conn.dupacks == 0 || conn.dupacks >= DUPLICATES {
            conn.pump(now, u32::MAX, out);
        }
    }

    /// The round-trip time of the newest segment below `una`, if it was sent once; drops all segments below `una`.
    #[inline]
    fn round_trip(conn: &mut Connection, now: Time, una: u32) -> Option<Span> {
        let mut newest = None;
        conn.sent.acked(una, |delivered| newest = Some(delivered));
        newest.filter(|d| !d.retransmitted).map(|d| now.since(d.sent))
    }

    /// The fast path: new data is acknowledged, without a recent loss. `una` is already advanced.
    #[inline]
    pub(in crate::tcp) fn on_ack_in_order(&mut self, conn: &mut Connection, now: Time, segments: u32, in_flight: u32) {
        let rtt = FineTimer::round_trip(conn, now, conn.una);
        let path = conn.path(now, in_flight);
        conn.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt }, &path);
        if let Some(rtt) = rtt.filter(|r| *r > Span::ZERO) {
            self.sample(rtt.0 as f64 * 1e-9);
        }
    }

    fn new_ack(&mut self, conn: &mut Connection, now: Time, packet: &Packet, out: &mut impl Transmit) {
        let ns2 = conn.profile == Profile::Ns2;
        if ns2 && conn.una == conn.base + 1 && conn.config.handshake {
            let window = f64::from(conn.config.initial_window);
            conn.notify(TcpEvent::Established { window }, now);
        }
        if conn.dupacks > DUPLICATES && (ns2 || conn.action == Action::Duplicates) {
            conn.notify(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        // the SYN is sent at time 0 of ns-2's agent, which means "never" there
        let rtt = FineTimer::round_trip(conn, now, packet.seq).filter(|_| packet.seq - 1 != conn.base);
        conn.new_ack(now, packet, rtt);
        if let Some(rtt) = rtt.filter(|r| *r > Span::ZERO) {
            self.sample(rtt.0 as f64 * 1e-9);
        }
        // section 3.1: the first and second acknowledgement after a retransmission also check the timer
        if self.worried > 0 {
            self.worried -= 1;
            if conn.una < conn.max && self.expired(conn, now) {
                conn.dupacks = DUPLICATES;
                conn.emit(now, conn.una, out);
            } else {
                self.worried = 0;
            }
        }
    }

    fn duplicate(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        let ns2 = conn.profile == Profile::Ns2;
        conn.dupacks = conn.dupacks.saturating_add(1);
        if !(self.expired(conn, now) || conn.dupacks == DUPLICATES) {
            // after a timeout, duplicate ACKs come from unnecessary retransmissions, and do not inflate the window
            let repairing = ns2 || conn.action == Action::Duplicates;
            if conn.dupacks > DUPLICATES && repairing {
                conn.notify(TcpEvent::Duplicate, now);
            }
            return;
        }
        // everything sent before the timeout must be acknowledged first; in ns-2, one more segment
        if conn.action == Action::Timeout && (conn.una < conn.recover || ns2 && conn.una == conn.recover) {
            return;
        }
        let (sent, again) = conn.sent.get(conn.una).unwrap_or((now, false));

        conn.action = Action::Duplicates;
        conn.recover = conn.max;
        let outstanding = conn.nxt - conn.una + 1;
        let duplicates = conn.dupacks;
        self.worried = outstanding.min(2);
        self.timeout += if again { self.timeout } else { self.timeout / 8.0 };
        if self.cut_at.is_none_or(|cut| cut < sent) {
            self.cut_at = Some(now);
            if !ns2 {
                conn.reduced = conn.max;
                conn.cwr |= conn.config.ecn.is_on();
            }
            conn.notify(TcpEvent::Lost { duplicates, again }, now);
        }
        if ns2 {
            let limits = conn.limits();
            conn.rtt.back_off(&limits);
        }
        conn.set_timer(now);
        conn.timing = false;
        conn.stats.fast_retransmits += 1;
        conn.emit(now, conn.una, out);
        if !again {
            conn.dupacks = DUPLICATES;
        }
    }
}
