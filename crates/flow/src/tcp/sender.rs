//! The sending end, as a host sees it: writes of the application, acknowledgements, and timers.

use super::TcpConfig;
use super::connection::{Connection, ENDLESS, FastPath};
use super::loss_recovery::LossRecovery;
use crate::{SenderStats, Transmit};
use core::num::NonZeroU32;
use paceline_control::{Controller, Gauges, Profile, TcpController, TcpEvent, WindowController, known};
use paceline_packet::{Flags, Packet, TcpOptions};
use paceline_random as random;
use paceline_units::{Span, Time};

/// The sending end of a connection.
///
/// The caller passes in the application's writes ([`TcpSender::supply`]), acknowledgements and the time. It receives
/// segments through [`Transmit`](crate::Transmit). [`TcpSender::next_wake`] says when to call [`TcpSender::on_timer`];
/// that time may move later without notice, and a call too early does nothing.
#[derive(Debug)]
#[repr(C)]
pub struct TcpSender {
    pub(super) conn: Connection,
    pub(super) repair: LossRecovery,
    /// Acknowledgements that took the fast path for reports beyond a hole.
    #[cfg(test)]
    pub(super) beyond: u32,
}

// The fields that an in-order acknowledgement touches, including the statistics up to the histogram, fit into four
// cache lines together with 24 bytes of the structure around them. The counts of the histogram are elsewhere.
const _: () = assert!(core::mem::offset_of!(TcpSender, conn.stats) <= 104);

impl TcpSender {
    /// Creates a sender that has not started. `stream` supplies the few random draws: `send_overhead` and the phase of
    /// ns-2's tick.
    #[must_use]
    pub fn new(config: &TcpConfig, controller: TcpController, stream: random::Stream) -> TcpSender {
        let mut conn = Connection::new(config, controller, stream);
        conn.begin(0);
        let repair = LossRecovery::new(&mut conn);
        let mut sender = TcpSender {
            conn,
            repair,
            #[cfg(test)]
            beyond: 0,
        };
        sender.choose_path();
        sender
    }

    /// Ends the connection and begins a new one with nothing supplied; statistics continue to count. The new segments
    /// are numbered above the old ones, so that late packets of the old connection are recognised. Call
    /// [`TcpSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.conn.begin(self.conn.max.saturating_add(1));
        self.repair = LossRecovery::new(&mut self.conn);
        self.choose_path();
    }

    /// Takes the handshake time of the connection's other half as the first round-trip sample. Call it before
    /// [`TcpSender::start`].
    pub(super) fn first_round_trip(&mut self, now: Time, rtt: Span) {
        let conn = &mut self.conn;
        conn.stats.round_trip(rtt);
        let limits = conn.limits();
        conn.rtt.measured(now, rtt, conn.phase_of_tick, &limits);
        conn.rto = conn.rtt.timeout();
    }

    /// Starts sending. Data supplied earlier has waited for this; if there is none, the SYN waits for data.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.conn.stats.begin(now);
        self.integrate(now);
        self.conn.first_sent = now;
        let window = f64::from(self.conn.config.initial_window);
        if !self.conn.config.handshake || self.conn.profile == Profile::Ns2Linux {
            // TCP-Linux does not wait for its SYN to be acknowledged
            self.conn.notify(TcpEvent::Established { window }, now);
        }
        self.repair.pump(&mut self.conn, now, out);
    }

    /// The application writes `bytes`: full segments and, for a remainder, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.conn.limit == ENDLESS || self.conn.stopped {
            return;
        }
        self.conn.write(bytes);
        self.supplied(now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.conn.stopped {
            self.conn.limit = ENDLESS;
            self.supplied(now, out);
        }
    }

    fn supplied(&mut self, now: Time, out: &mut impl Transmit) {
        let conn = &mut self.conn;
        if conn.first_sent == Time::NEVER {
            return; // not started
        }
        if conn.max == conn.base {
            conn.first_sent = now;
        }
        conn.check_app_limited();
        if conn.una == conn.max && conn.max > conn.base {
            if conn.profile == Profile::Rfc && now.since(conn.last_sent) > conn.rto {
                let window = f64::from(conn.config.initial_window);
                conn.notify(TcpEvent::Idle { window }, now); // RFC 5681 section 4.1
            }
            self.repair.resumed(conn, now);
        }
        self.repair.pump(&mut self.conn, now, out);
    }

    /// The application withdraws unsent data, and may write again. Sent data is still repaired.
    pub fn withdraw(&mut self) {
        self.conn.withdraw();
    }

    /// The application stops: unsent data is discarded. Sent data is still repaired.
    pub fn stop(&mut self) {
        self.conn.stop();
    }

    /// Processes an acknowledgement that [`TcpSender::on_ack_in_order`] did not take.
    #[inline(always)]
    pub(crate) fn on_ack_out_of_line(
        &mut self,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let conn = &mut self.conn;
        let plain = packet.flags.0 & (Flags::ECE.0 | Flags::SYN.0) == 0;
        if let (Some(options), true) = (options, plain && packet.seq == conn.una && !conn.irregular) {
            return self.on_ack_beyond(now, packet, options, out);
        }
        if !(conn.fast_path != FastPath::No
            && plain
            && options.is_none()
            && packet.seq > conn.una
            && packet.seq <= conn.max)
        {
            return self.on_ack_slow(now, packet, options, out);
        }
        if let LossRecovery::Linux(linux) = &mut self.repair {
            if !linux.on_ack_in_order(conn, now, packet, out) {
                self.on_ack_slow(now, packet, options, out);
            }
            return;
        }
        let (segments, in_flight, rtt) = conn.take_in_order(now, packet);
        match &mut self.repair {
            LossRecovery::Vegas(vegas) => vegas.on_ack_in_order(conn, now, segments, in_flight),
            _ => conn.grow(now, segments, in_flight, rtt),
        }
        conn.fill(now, u32::MAX, out);
    }

    /// Processes an acknowledgement that does not advance `una` and carries options, on a connection with regular
    /// segments.
    #[inline(always)]
    fn on_ack_beyond(&mut self, now: Time, packet: &Packet, options: &TcpOptions, out: &mut impl Transmit) {
        #[cfg(test)]
        if self.conn.slow_only {
            return self.on_ack_slow(now, packet, Some(options), out);
        }
        let conn = &mut self.conn;
        if let LossRecovery::Linux(linux) = &mut self.repair
            && conn.una < conn.max
            && linux.on_ack_beyond(conn, now, packet, options, out)
        {
            #[cfg(test)]
            {
                self.beyond += 1;
            }
            if conn.sent.sacked() > 0 {
                conn.fast_path = FastPath::No;
            } else {
                self.choose_path();
            }
            return;
        }
        self.on_ack_slow(now, packet, Some(options), out);
    }

    #[inline(never)]
    fn on_ack_slow(&mut self, now: Time, packet: &Packet, options: Option<&TcpOptions>, out: &mut impl Transmit) {
        let conn = &self.conn;
        if packet.seq > conn.max || conn.first_sent == Time::NEVER {
            return; // acknowledges a segment that was never sent
        }
        if packet.seq < conn.una {
            if options.is_some() && matches!(self.repair, LossRecovery::Linux(_)) {
                self.integrate(now);
                if let LossRecovery::Linux(linux) = &mut self.repair {
                    linux.on_stale(&mut self.conn, now, packet.seq, options, out);
                }
                self.choose_path();
            }
            return;
        }
        if packet.seq == conn.una && packet.flags.has(Flags::SYN) && conn.profile == Profile::Rfc {
            return; // a repeated SYN/ACK is not a duplicate ACK (RFC 5681 section 2)
        }
        self.integrate(now);
        let conn = &mut self.conn;
        conn.receive_window = options.and_then(|e| e.window).map_or(conn.config.receive_window, NonZeroU32::get).max(1);
        if conn.ecn.is_on() {
            let known = self.repair.reported_below(conn, packet.seq);
            conn.read_marks(now, packet, known);
            let here = conn.echo && matches!(conn.profile, Profile::Rfc | Profile::Ns2) && !conn.config.rack();
            if here && conn.marked(now, packet.seq) {
                self.repair.marked(conn, now);
            }
        }
        self.repair.on_ack(conn, now, packet, options, out);
        self.choose_path();
    }

    /// Chooses the fast path for the next acknowledgement.
    #[inline]
    pub(super) fn choose_path(&mut self) {
        let conn = &mut self.conn;
        conn.irregular = conn.ecn.is_on() || !conn.shorts.is_empty() || conn.una <= conn.base;
        conn.fast_path = self.repair.fast_path(conn);
        #[cfg(test)]
        if conn.slow_only {
            conn.fast_path = FastPath::No;
        }
    }

    /// Handles expired timers; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.conn.resumes <= now {
            self.conn.resumes = Time::NEVER;
            self.integrate(now);
            self.choose_path();
            self.repair.pump(&mut self.conn, now, out);
        }
        if self.conn.delayed_send <= now && self.conn.pacing.is_some() {
            self.conn.delayed_send = Time::NEVER;
            match &mut self.repair {
                // the recovery of most paced senders
                LossRecovery::Linux(linux) => _ = linux.pump(&mut self.conn, now, out),
                repair => repair.pump(&mut self.conn, now, out),
            }
        } else if self.conn.delayed_send <= now {
            self.integrate(now);
            self.conn.delayed_send = Time::NEVER;
            self.conn.delays_sends = false; // the timer forces out everything that the window allows
            self.repair.pump(&mut self.conn, now, out);
            // the timer may also have held back one segment after a mark
            self.conn.delays_sends = self.conn.config.send_overhead > Span::ZERO;
        }
        if self.conn.timer <= now {
            self.integrate(now);
            self.repair.expired(&mut self.conn, now, out);
            self.choose_path();
        }
    }

    /// Whether everything supplied has been acknowledged.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.conn.una >= self.conn.limit && self.conn.first_sent != Time::NEVER
    }

    /// The number of writes with an entry of their own: those that did not fill a segment.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.conn.shorts.len()
    }

    /// When to call [`TcpSender::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.conn.timer.min(self.conn.delayed_send).min(self.conn.resumes)
    }

    /// When the retransmission timer expires.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        self.conn.timer
    }

    /// Counters up to now. Call [`TcpSender::account`] first to integrate the window up to a given time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.conn.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.conn.stats
    }

    /// Integrates the window up to `now`, so that [`TcpSender::stats`] is complete. It does nothing before the start.
    pub fn account(&mut self, now: Time) {
        if self.conn.first_sent != Time::NEVER || self.conn.stats.packets_sent > 0 {
            self.integrate(now);
            self.conn.stats.window_max = self.conn.stats.window_max.max(self.conn.controller.window());
        }
    }

    #[inline]
    fn integrate(&mut self, now: Time) {
        let window = self.repair.shown_window(&self.conn);
        self.conn.stats.advance(now, window);
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &TcpController {
        &self.conn.controller
    }

    /// Smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.conn.rtt.srtt()
    }

    /// Segments sent and not yet acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.conn.max - self.conn.una
    }

    /// Reports the values to plot: the controller's gauges, `srtt` and `in_flight`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.conn.controller.gauges(to);
        to.seconds("srtt", known(self.srtt().as_secs_f64()));
        to.packets("in_flight", f64::from(self.in_flight()));
    }
}
