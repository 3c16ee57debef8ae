//! The sending end, as a host sees it: what the application does with it, acknowledgements, the time.

use super::TcpConfig;
use super::connection::{Connection, ENDLESS, FastPath};
use super::repair::Repair;
use crate::{SenderStats, Transmit};
use core::num::NonZeroU32;
use paceline_control::{Controller, Gauges, Profile, TcpController, TcpEvent, WindowController, known};
use paceline_packet::{Flags, Packet, TcpOptions};
use paceline_random as random;
use paceline_units::{Span, Time};

/// The sending end of a connection.
///
/// The caller hands over what the application writes ([`TcpSender::supply`]), acknowledgements and the time; it
/// gets segments through [`Transmit`](crate::Transmit). [`TcpSender::next_wake`] says when to call [`TcpSender::on_timer`]; it may
/// move later without notice, and a call too early does nothing.
#[derive(Debug)]
#[repr(C)]
pub struct TcpSender {
    pub(super) conn: Connection,
    pub(super) repair: Repair,
    /// Acknowledgements that took the fast path of those that report beyond a hole.
    #[cfg(test)]
    pub(super) beyond: u32,
}

// What an acknowledgement in order touches, the statistics up to the histogram included, fits into four cache lines with
// 24 bytes of its holder's; the counts of the histogram lie elsewhere.
const _: () = assert!(core::mem::offset_of!(TcpSender, conn.stats) <= 104);

impl TcpSender {
    /// A sender that has not started. `stream` feeds the little randomness there is: `send_overhead`, ns-2's tick.
    #[must_use]
    pub fn new(config: &TcpConfig, controller: TcpController, stream: random::Stream) -> TcpSender {
        let mut conn = Connection::new(config, controller, stream);
        conn.begin(0);
        let repair = Repair::new(&mut conn);
        let mut sender = TcpSender {
            conn,
            repair,
            #[cfg(test)]
            beyond: 0,
        };
        sender.choose_path();
        sender
    }

    /// Ends the connection and begins a fresh one with nothing supplied; statistics go on counting. Its segments
    /// are numbered beyond the old ones, so that stragglers of the old connection are recognised. Call
    /// [`TcpSender::start`] for it.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.conn.begin(self.conn.max.saturating_add(1));
        self.repair = Repair::new(&mut self.conn);
        self.choose_path();
    }

    /// The handshake of the connection's other half took so long: the first round trip that is known. Before
    /// [`TcpSender::start`].
    pub(super) fn first_round_trip(&mut self, now: Time, rtt: Span) {
        let conn = &mut self.conn;
        conn.stats.round_trip(rtt);
        let limits = conn.limits();
        conn.rtt.measured(now, rtt, conn.phase_of_tick, &limits);
        conn.rto = conn.rtt.timeout();
    }

    /// Starts sending; before it, supplied data waits, and after it the SYN waits for data.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.conn.stats.begin(now);
        self.integrate(now);
        self.conn.first_sent = now;
        let window = f64::from(self.conn.config.initial_window);
        if !self.conn.config.handshake || self.conn.profile == Profile::Ns2Linux {
            // TCP-Linux does not wait for its SYN
            self.conn.notify(TcpEvent::Established { window }, now);
        }
        self.repair.pump(&mut self.conn, now, out);
    }

    /// An application writes `bytes`: whole segments and, unless it fits, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.conn.limit == ENDLESS || self.conn.stopped {
            return;
        }
        self.conn.write(bytes);
        self.supplied(now, out);
    }

    /// The application will never run dry.
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

    /// The application takes back what has not been sent yet, and may write again. What has been sent, is still repaired.
    pub fn withdraw(&mut self) {
        self.conn.withdraw();
    }

    /// The application stops: what has not been sent yet never will be. What has, is still repaired.
    pub fn stop(&mut self) {
        self.conn.stop();
    }

    /// An acknowledgement that has no fast path at all, or not that of [`TcpSender::on_ack_in_order`].
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
        if let Repair::Linux(linux) = &mut self.repair {
            if !linux.on_ack_in_order(conn, now, packet, out) {
                self.on_ack_slow(now, packet, options, out);
            }
            return;
        }
        let (segments, in_flight, rtt) = conn.take_in_order(now, packet);
        match &mut self.repair {
            Repair::Vegas(vegas) => vegas.on_ack_in_order(conn, now, segments, in_flight),
            _ => conn.grow(now, segments, in_flight, rtt),
        }
        conn.fill(now, u32::MAX, out);
    }

    /// An acknowledgement of the left edge, with options, where segments are regular.
    #[inline(always)]
    fn on_ack_beyond(&mut self, now: Time, packet: &Packet, options: &TcpOptions, out: &mut impl Transmit) {
        #[cfg(test)]
        if self.conn.slow_only {
            return self.on_ack_slow(now, packet, Some(options), out);
        }
        let conn = &mut self.conn;
        if let Repair::Linux(linux) = &mut self.repair
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
            return; // of something never sent
        }
        if packet.seq < conn.una {
            if options.is_some() && matches!(self.repair, Repair::Linux(_)) {
                self.integrate(now);
                if let Repair::Linux(linux) = &mut self.repair {
                    linux.on_stale(&mut self.conn, now, packet.seq, options, out);
                }
                self.choose_path();
            }
            return;
        }
        if packet.seq == conn.una && packet.flags.has(Flags::SYN) && conn.profile == Profile::Rfc {
            return; // the SYN/ACK once more: not a duplicate (RFC 5681 section 2)
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

    /// Chooses the fast path of the next acknowledgement in order.
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

    /// A timer may have expired; a call too early does nothing.
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
                Repair::Linux(linux) => _ = linux.pump(&mut self.conn, now, out), // most that pace
                repair => repair.pump(&mut self.conn, now, out),
            }
        } else if self.conn.delayed_send <= now {
            self.integrate(now);
            self.conn.delayed_send = Time::NEVER;
            self.conn.delays_sends = false; // forced: everything that the window allows
            self.repair.pump(&mut self.conn, now, out);
            // or one segment had waited for its timer after a mark
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

    /// Writes that are remembered by themselves: those that did not fill a packet.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.conn.shorts.len()
    }

    /// When [`TcpSender::on_timer`] should be called; it may move later without notice.
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

    /// Counts up to now. Call [`TcpSender::account`] first to integrate the window up to a given time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.conn.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.conn.stats
    }

    /// Integrates the window up to `now`, so that [`TcpSender::stats`] is complete; before the start there is none.
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

    /// What a plot should show: the controller's gauges, `srtt` and `in_flight`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.conn.controller.gauges(to);
        to.seconds("srtt", known(self.srtt().as_secs_f64()));
        to.packets("in_flight", f64::from(self.in_flight()));
    }
}
