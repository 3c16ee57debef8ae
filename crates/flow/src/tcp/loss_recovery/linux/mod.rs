//! The sender of profile `linux`: a current kernel's `tcp_ack`, with RACK-TLP and proportional rate reduction.
//!
//! Sources: RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 6298 and RFC 7323 (timer, timestamps), RFC 4015 with RFC 3522
//! (undo), RFC 2883 (DSACK), RFC 3168 (ECN), RFC 7661 (unused windows). Where they leave a choice, it follows
//! `net/ipv4/tcp_input.c`. This file processes acknowledgements, `in_order` and `sack_fast_path` the common ones;
//! `episode` enters and leaves recoveries; `tlp` has sending and the timers.

mod autotune;
mod episode;
mod in_order;
mod mdev;
mod rack;
mod sack_fast_path;
mod tlp;

use super::prr::Prr;
use crate::Transmit;
use crate::tcp::connection::Connection;
use crate::tcp::scoreboard::Delivered;
use autotune::Autotune;
use mdev::Estimator;
use paceline_control::{Controller, Profile, RateSample, TcpEvent, WindowController};
use paceline_packet::{Block, Packet, TcpOptions};
use paceline_units::{Span, Time};
use rack::Rack;
use tlp::{Pending, Probe};

/// `icsk_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    Open,
    /// Segments were SACKed or retransmitted.
    Disorder,
    /// The window is being reduced for a mark (Linux: CWR).
    Cwr,
    /// The window is being reduced for a loss.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What is needed to undo a reduction (`tcp_init_undo`).
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// `una` when the recovery began, if it may be undone.
    pub(super) marker: Option<u32>,
    /// Retransmissions that no DSACK has reported as duplicates; unknown before the first.
    pub(super) retransmissions: Option<u32>,
    /// Window and ssthresh before the reduction.
    pub(super) before: Option<(f64, f64)>,
    /// When the first retransmission left; and the age of the last acknowledgement's timestamp.
    pub(super) stamp: Option<Time>,
    pub(super) echoed: Span,
}

/// Linux's recovery state.
#[derive(Debug)]
pub(in crate::tcp) struct Linux {
    state: State,
    rack: Rack,
    probe: Probe,
    pending: Pending,
    /// The reduction under way, if any.
    prr: Option<Prr>,
    estimator: Estimator,
    tune: Autotune,
    undo: Undo,
    /// The current recovery ends when this segment is acknowledged (`high_seq`).
    high_seq: u32,
    /// Number of consecutive timeouts.
    timeouts: u32,
    /// `is_cwnd_limited`: the window limited the sender in the round that ends with `used_until`; `max_packets_out`:
    /// the most segments outstanding in it (`tcp_cwnd_validate`).
    is_cwnd_limited: bool,
    used_until: u32,
    max_packets_out: u32,
    /// The most segments outstanding since `used_since`, while the window was not the limit.
    used: u32,
    used_since: Time,
}

/// The information in an acknowledgement.
#[derive(Default)]
pub(super) struct News {
    /// Segments SACKed or acknowledged for the first time.
    pub(super) delivered: u32,
    pub(super) acked: bool,
    pub(super) sacked: bool,
    pub(super) dsack: Option<u32>,
    pub(super) echo: bool,
    /// Segments found lost, and whether any of them were retransmissions.
    pub(super) lost: u32,
    pub(super) lost_again: bool,
    /// The timer must be restarted.
    set_timer: bool,
    again_acked: bool,
    /// Transmission times of the first and the last segment among those sent once: acknowledged ones, SACKed ones.
    acked_sent: Option<(Time, Time)>,
    sacked_sent: Option<(Time, Time)>,
}

impl News {
    /// Keeps the timer as it is: it is set to the reordering timeout.
    pub(super) fn leave_timer(&mut self) {
        self.set_timer = false;
    }

    #[inline(always)]
    fn count(&mut self, d: &Delivered, acked: bool) {
        self.delivered += 1;
        if acked {
            self.again_acked |= d.retransmitted;
        } else {
            self.sacked = true;
        }
        if !d.retransmitted {
            let sent = if acked { &mut self.acked_sent } else { &mut self.sacked_sent };
            *sent = Some(sent.map_or((d.sent, d.sent), |(first, _)| (first, d.sent)));
        }
    }
}

impl Linux {
    /// Creates the state of a new connection. The connection's buffers limit its receive window.
    pub(super) fn new(conn: &mut Connection) -> Linux {
        let base = conn.base;
        let tune = Autotune::new(&conn.config, base);
        conn.receive_window = conn.receive_window.min(tune.bound());
        Linux {
            state: State::Open,
            rack: Rack::new(),
            probe: Probe::default(),
            pending: Pending::Nothing,
            prr: None,
            estimator: Estimator::default(),
            tune,
            undo: Undo::default(),
            high_seq: base,
            timeouts: 0,
            is_cwnd_limited: false,
            used_until: base,
            max_packets_out: 0,
            used: 0,
            used_since: Time::ZERO,
        }
    }

    /// Processes the SACK blocks of an acknowledgement; the first may be a DSACK (RFC 2883 section 4).
    fn take_blocks(
        &mut self,
        conn: &mut Connection,
        now: Time,
        ack: u32,
        options: Option<&TcpOptions>,
        news: &mut News,
    ) {
        let Some(options) = options else { return };
        let [first, second, _] = options.sack;
        let inside = second.start < second.end && second.start <= first.start && first.end <= second.end;
        let mut blocks = options.sack;
        if first.start < first.end && (first.end <= ack || inside) {
            news.dsack = Some(first.end);
            blocks[0] = Block::default();
        }
        self.reported(conn, now, &blocks, news);
    }

    /// Marks the segments in `blocks` as SACKed.
    fn reported(&mut self, conn: &mut Connection, now: Time, blocks: &[Block; 3], news: &mut News) {
        let (rack, delivery, highest) = (&mut self.rack, &mut conn.delivery, conn.sent.forward());
        conn.sent.reported(blocks, |d| {
            rack.arrived(now, &d, highest);
            news.count(&d, false);
            if let Some(delivery) = delivery {
                delivery.delivered(&d, now);
            }
        });
    }

    /// Processes an acknowledgement (`tcp_ack`).
    pub(super) fn on_ack(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let before = conn.una;
        let in_flight = conn.sent.in_flight();
        if conn.needs.deliveries {
            conn.check_app_limited();
        }
        let highest = conn.sent.forward();
        let mut news = News { acked: packet.seq > before, ..News::default() };
        self.take_blocks(conn, now, packet.seq, options, &mut news);
        if news.acked {
            conn.advance(now, packet);
            let (rack, delivery) = (&mut self.rack, &mut conn.delivery);
            conn.sent.acked(packet.seq, |d| {
                rack.arrived(now, &d, highest);
                news.count(&d, true);
                if let Some(delivery) = delivery {
                    delivery.delivered(&d, now);
                }
            });
        }
        if before > conn.base || !conn.config.handshake {
            self.tune.arrived(now, conn.una, conn.una - before, conn.sent.forward(), conn.rtt.srtt());
        }
        if news.sacked {
            self.tune.arrived_beyond(conn.una, news.delivered, conn.sent.forward(), conn.sent.sacked());
        }
        conn.receive_window = conn.receive_window.min(self.tune.bound());
        news.set_timer = news.acked;
        news.echo = conn.echo && conn.una > conn.base + 1;
        let rtt = self.time(conn, now, packet, &mut news);
        if news.acked && before == conn.base && conn.config.handshake {
            // Linux allows one lost SYN, as RFC 6928 does
            let lost = if conn.profile == Profile::Rfc { self.timeouts > 0 } else { self.timeouts > 1 };
            let window = conn.window_after_syn(lost);
            self.used_since = now;
            self.tune.begin(now, conn.una);
            self.timeouts = 0;
            self.undo = Undo::default();
            conn.delivery.iter_mut().for_each(|delivery| delivery.established());
            conn.notify(TcpEvent::Established { window }, now);
            self.rearm(conn, now);
            self.pump(conn, now, out);
            return;
        }
        if news.acked {
            self.timeouts = 0;
        }
        self.rack.adapt(news.dsack.is_some(), conn.una, conn.max);
        self.probe_acked(conn, now, packet.seq, options.is_some(), &news);
        let dubious = !news.acked || news.sacked || news.echo || news.dsack.is_some() || self.state != State::Open;
        if dubious {
            self.alert(conn, now, before, &mut news);
        }
        if conn.una == conn.max || (news.set_timer && !self.schedule_probe(conn, now, true)) {
            self.rearm(conn, now);
        }
        self.control(conn, now, in_flight, rtt, &news);
        self.pump(conn, now, out);
    }

    /// Processes an acknowledgement that later ones have overtaken; its SACK blocks may still be new.
    pub(in crate::tcp) fn on_stale(
        &mut self,
        conn: &mut Connection,
        now: Time,
        ack: u32,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let mut news = News::default();
        self.take_blocks(conn, now, ack, options, &mut news);
        if news.sacked || news.dsack.is_some() {
            self.alert(conn, now, conn.una, &mut news);
            self.pump(conn, now, out);
        }
    }

    /// `tcp_ack_update_rtt`: takes the sample from segments sent once, otherwise from the timestamp (RFC 7323 section
    /// 4). Returns the newest segment's round-trip time.
    #[inline(always)]
    fn time(&mut self, conn: &mut Connection, now: Time, packet: &Packet, news: &mut News) -> Option<Span> {
        let acked = news.acked_sent.filter(|_| !news.again_acked);
        let first = acked.or(news.sacked_sent).map(|(first, _)| now.since(first));
        if let (Some((sent, _)), None, Some((head, _))) = (news.sacked_sent, acked, conn.sent.head()) {
            // the SACKed segment was sent after the first outstanding one was last sent: the timer may restart
            news.set_timer |= sent >= head;
        }
        let echoed = packet.stamp.elapsed(now);
        self.undo.echoed = echoed;
        let sample = first.or((news.acked && echoed < Span::from_secs(600)).then_some(echoed));
        if let Some(rtt) = sample {
            self.sample(conn, now, rtt);
        }
        acked.or(news.sacked_sent).map(|(_, last)| now.since(last))
    }

    /// Takes a round-trip time sample: `tcp_rtt_estimator` and `tcp_set_rto`.
    #[inline(always)]
    fn sample(&mut self, conn: &mut Connection, now: Time, rtt: Span) {
        let limits = conn.limits();
        if conn.profile == Profile::Linux {
            self.estimator.sample(rtt, conn.una, conn.max, conn.config.min_rto);
            conn.rtt.set(self.estimator.srtt(), self.estimator.margin(), &limits);
        } else {
            conn.rtt.reset_backoff(&limits);
            conn.rtt.measured(now, rtt, 0, &limits);
        }
        conn.rto = conn.rtt.timeout();
    }

    /// `tcp_cong_control`: continues the reduction, or grows the window.
    fn control(&mut self, conn: &mut Connection, now: Time, in_flight: u32, rtt: Option<Span>, news: &News) {
        if conn.needs.deliveries {
            return self.model(conn, now, in_flight);
        }
        let segments = news.delivered;
        // tcp_may_raise_cwnd: with known reordering, SACKs count as acknowledgements do
        let grows = self.prr.is_none() && (news.acked || news.sacked && self.rack.reordering_seen);
        if let Some(prr) = &mut self.prr {
            prr.on_ack(conn.sent.in_flight(), segments, news.acked && news.lost == 0);
        }
        if segments == 0 {
            return;
        }
        let event = if grows {
            let window = conn.controller.window();
            // tcp_is_cwnd_limited: slow start may grow to twice the outstanding segments
            let slow = window < conn.controller.threshold() && window < 2.0 * f64::from(self.max_packets_out);
            let edge = window.ceil() as u32;
            let in_flight = if self.is_cwnd_limited || slow { in_flight.max(edge) } else { in_flight.min(edge - 1) };
            TcpEvent::Acked { segments, in_flight, rtt }
        } else {
            TcpEvent::Repaired { segments, rtt }
        };
        let path = conn.path(now, in_flight);
        conn.controller.on_feedback(&event, &path);
    }

    /// [`Linux::control`] for a controller that models its path and sets its window in recoveries too (`cong_control`).
    fn model(&mut self, conn: &mut Connection, now: Time, prior_in_flight: u32) {
        if let Some(sample) = self.rate_sample(conn, now, prior_in_flight) {
            Linux::deliver(conn, now, &sample);
        }
    }

    /// [`Linux::model`] for the common case, in which the controller has little to do.
    #[inline(never)]
    fn model_as_usual(&mut self, conn: &mut Connection, now: Time, prior_in_flight: u32) {
        let Some(sample) = self.rate_sample(conn, now, prior_in_flight) else { return };
        if conn.controller.on_delivery_fast(&sample, now) {
            #[cfg(test)]
            {
                conn.usual += 1;
            }
            return;
        }
        let copy = sample; // so that the original stays in registers
        Linux::deliver(conn, now, &copy);
    }

    #[inline(always)]
    fn rate_sample(&mut self, conn: &mut Connection, now: Time, prior_in_flight: u32) -> Option<RateSample> {
        if conn.sent.has_lost() {
            conn.notify_losses(now);
        }
        let segment = u64::from(conn.segment);
        let in_flight = conn.sent.in_flight();
        let delivery = conn.delivery.as_mut()?;
        let mut sample = delivery.sample(now, segment, in_flight)?;
        sample.prior_in_flight = u64::from(prior_in_flight) * segment;
        sample.window_limited = self.is_cwnd_limited;
        sample.newly_marked = conn.marks.wrapping_sub(core::mem::replace(&mut conn.marks_sampled, conn.marks));
        Some(sample)
    }

    #[inline(never)]
    fn deliver(conn: &mut Connection, now: Time, sample: &RateSample) {
        let in_flight = conn.sent.in_flight();
        let path = conn.path(now, in_flight);
        conn.controller.on_delivery(sample, &path);
        if conn.controller.limits_itself()
            && let Some(delivery) = &mut conn.delivery
        {
            delivery.limit(in_flight);
        }
    }

    /// The window in the kernel's sense: during a reduction, its current value.
    #[inline(always)]
    fn window(&self, conn: &Connection) -> u32 {
        match &self.prr {
            Some(prr) => prr.window,
            None => (conn.own_window() as u32).saturating_add(conn.inflation),
        }
    }

    #[cfg(test)]
    pub(super) fn retransmitted_at(&self) -> Option<Time> {
        self.undo.stamp
    }

    /// The window for plots.
    #[cold]
    pub(super) fn shown_window(&self, conn: &Connection) -> f64 {
        self.prr.as_ref().map_or_else(|| conn.controller.window(), |prr| f64::from(prr.window))
    }

    /// `tcp_cwnd_validate`, after sending: records whether the window was the limit (RFC 7661). If it was not for a
    /// timeout, the window moves halfway to the used part (RFC 2861).
    #[inline(always)]
    pub(super) fn validate(&mut self, conn: &mut Connection, now: Time, is_cwnd_limited: bool) {
        let out = conn.sent.out();
        if conn.una >= self.used_until || is_cwnd_limited || (!self.is_cwnd_limited && out > self.max_packets_out) {
            self.is_cwnd_limited = is_cwnd_limited;
            self.max_packets_out = out;
            self.used_until = conn.max;
        }
        if conn.needs.deliveries {
            return;
        }
        let window = conn.controller.window();
        if self.is_cwnd_limited
            || (window < conn.controller.threshold() && window < 2.0 * f64::from(self.max_packets_out))
        {
            self.used = 0;
            self.used_since = now;
            return;
        }
        self.used = self.used.max(out);
        if now.since(self.used_since) >= conn.rto {
            let used = f64::from(self.used.max(conn.config.initial_window));
            if self.state == State::Open && used < window {
                conn.notify(TcpEvent::Idle { window: ((window + used) / 2.0).floor() }, now);
            }
            self.used = 0;
            self.used_since = now;
        }
    }

    /// `tcp_cwnd_restart`, before sending when nothing was outstanding: halves the window for each timeout since the
    /// last segment, down to the initial window (RFC 2861, RFC 5681 section 4.1).
    pub(super) fn restart_window(&mut self, conn: &mut Connection, now: Time) {
        if conn.needs.deliveries || conn.profile != Profile::Linux {
            return; // controllers with a path model restart by themselves; `rfc` uses RFC 5681's rule
        }
        let mut idle = now.since(conn.last_sent);
        let restart = f64::from(conn.config.initial_window).min(conn.controller.window());
        let mut window = conn.controller.window();
        if idle <= conn.rto {
            return;
        }
        while idle > conn.rto && window > restart {
            idle = Span(idle.0 - conn.rto.0.max(1));
            window = (window / 2.0).floor();
        }
        conn.notify(TcpEvent::Idle { window: window.max(restart) }, now);
        self.used = 0;
        self.used_since = now;
    }
}
