//! The sender of profile `linux`: a current kernel's `tcp_ack`, with RACK-TLP and proportional rate reduction.
//!
//! Sources: RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 6298 and RFC 7323 (timer, time stamps), RFC 4015 with RFC 3522
//! (undoing), RFC 2883 (DSACK), RFC 3168 (ECN), RFC 7661 (a window that is not used); where they leave room, the
//! behaviour of `net/ipv4/tcp_input.c`. Here is what an acknowledgement does; `episode` enters and leaves recoveries,
//! `tlp` has sending and the timers.

use super::TcpConfig;
use super::autotune::Autotune;
use super::board::{Board, Delivered};
use super::mdev::Estimator;
use super::prr::Prr;
use super::rack::Rack;
use super::sender::TcpSender;
use super::tlp::{Pending, Probe};
use crate::Transmit;
use paceline_control::{Controller, Profile, TcpEvent, WindowController};
use paceline_packet::{Block, Flags, Packet, TcpOptions};
use paceline_units::{Span, Time};

/// `icsk_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    Open,
    /// Something was reported out of order, or sent again.
    Disorder,
    /// The window is being reduced because of a mark.
    Reducing,
    /// Because of a loss.
    Recovery,
    /// After a timeout.
    Loss,
}

/// What it takes to undo a reduction (`tcp_init_undo`).
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The left edge when recovery began, if it may be undone.
    pub(super) marker: Option<u32>,
    /// Retransmissions of which no DSACK has told; unknown before the first.
    pub(super) retransmissions: Option<u32>,
    /// Window and threshold before.
    pub(super) before: Option<(f64, f64)>,
    /// When the first retransmission left; how long ago the last acknowledgement's time stamp was made.
    pub(super) stamp: Option<Time>,
    pub(super) echoed: Span,
}

/// What the kernel keeps beside the common state.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) state: State,
    pub(super) board: Board,
    pub(super) rack: Rack,
    pub(super) probe: Probe,
    pub(super) pending: Pending,
    /// The reduction under way.
    pub(super) prr: Option<Prr>,
    estimator: Estimator,
    pub(super) tune: Autotune,
    pub(super) undo: Undo,
    /// The present recovery ends with the acknowledgement of this (`high_seq`).
    pub(super) high: u32,
    /// Timeouts in a row.
    pub(super) timeouts: u32,
    /// The window is what limits the sender; it was in the round that ends with `used_until`, or so many segments
    /// were outstanding at most (`tcp_cwnd_validate`).
    limited: bool,
    used_until: u32,
    most_out: u32,
    /// At most so many segments since this time, while the window was not the limit.
    used: u32,
    used_since: Time,
}

/// What an acknowledgement has told.
#[derive(Default)]
pub(super) struct News {
    /// Segments reported or acknowledged for the first time.
    pub(super) delivered: u32,
    pub(super) acked: bool,
    pub(super) sacked: bool,
    pub(super) dsack: Option<u32>,
    pub(super) echo: bool,
    /// Segments that were found lost, and whether retransmissions were among them.
    pub(super) lost: u32,
    pub(super) lost_again: bool,
    /// The timer is to be set anew.
    set_timer: bool,
    again_acked: bool,
    /// When the first and the last of those sent once were sent: acknowledged, reported.
    acked_sent: Option<(Time, Time)>,
    sacked_sent: Option<(Time, Time)>,
}

impl News {
    /// The reordering timer has the timer.
    pub(super) fn leave_timer(&mut self) {
        self.set_timer = false;
    }

    fn count(&mut self, d: &Delivered, acked: bool) {
        self.delivered += 1;
        if acked {
            self.again_acked |= d.again;
        } else {
            self.sacked = true;
        }
        if !d.again {
            let sent = if acked { &mut self.acked_sent } else { &mut self.sacked_sent };
            *sent = Some(sent.map_or((d.sent, d.sent), |(first, _)| (first, d.sent)));
        }
    }
}

impl Kernel {
    pub(super) fn new(config: &TcpConfig, base: u32) -> Kernel {
        Kernel {
            state: State::Open,
            board: Board::new(base),
            rack: Rack::new(),
            probe: Probe::default(),
            pending: Pending::Nothing,
            prr: None,
            estimator: Estimator::default(),
            tune: Autotune::new(config, base),
            undo: Undo::default(),
            high: base,
            timeouts: 0,
            limited: false,
            used_until: base,
            most_out: 0,
            used: 0,
            used_since: Time::ZERO,
        }
    }

    /// The blocks of an acknowledgement; the first may tell of a duplicate (RFC 2883 section 4).
    fn take_blocks(&mut self, now: Time, ack: u32, next: u32, extra: Option<&TcpOptions>, news: &mut News) {
        let Some(extra) = extra else { return };
        let [first, second, _] = extra.sack;
        let inside = second.start < second.end && second.start <= first.start && first.end <= second.end;
        let mut blocks = extra.sack;
        if first.start < first.end && (first.end <= ack || inside) {
            news.dsack = Some(first.end);
            blocks[0] = Block::default();
        }
        for block in &mut blocks {
            block.end = block.end.min(next);
            if block.start >= block.end {
                *block = Block::default();
            }
        }
        let (rack, highest) = (&mut self.rack, self.board.forward());
        self.board.reported(blocks, |d| {
            rack.arrived(now, &d, highest);
            news.count(&d, false);
        });
    }
}

impl TcpSender {
    /// An acknowledgement (`tcp_ack`).
    pub(super) fn on_ack_kernel(
        &mut self,
        now: Time,
        packet: &Packet,
        extra: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let Some(mut kernel) = self.kernel.take() else { return };
        let k = &mut *kernel;
        let before = self.una;
        let in_flight = k.board.in_flight();
        let highest = k.board.forward();
        let mut news = News { acked: packet.seq > before, ..News::default() };
        k.take_blocks(now, packet.seq, self.max, extra, &mut news);
        if news.acked {
            self.advance(now, packet);
            let rack = &mut k.rack;
            k.board.acked(packet.seq, |d| {
                rack.arrived(now, &d, highest);
                news.count(&d, true);
            });
        }
        if before > self.base || !self.config.handshake {
            k.tune.arrived(now, self.una, self.una - before, k.board.forward(), self.rtt.srtt());
        }
        if news.sacked {
            k.tune.arrived_beyond(self.una, news.delivered, k.board.forward(), k.board.sacked());
        }
        self.receive_window = self.receive_window.min(k.tune.bound());
        news.set_timer = news.acked;
        news.echo = packet.flags.has(Flags::ECE) && self.config.ecn && self.una > self.base + 1;
        let rtt = self.time_kernel(k, now, packet, &mut news);
        if news.acked && before == self.base && self.config.handshake {
            let window = if k.timeouts > 1 { 1.0 } else { f64::from(self.config.initial_window) };
            k.used_since = now;
            k.tune.begin(now, self.una);
            k.timeouts = 0;
            k.undo = Undo::default();
            self.tell(TcpEvent::Established { window }, now);
            self.rearm_kernel(k, now);
            self.kernel = Some(kernel);
            return self.pump_kernel(now, out);
        }
        if news.acked {
            k.timeouts = 0;
        }
        k.rack.adapt(news.dsack.is_some(), self.una, self.max);
        self.probe_acked(k, now, packet.seq, extra.is_some(), &news);
        let dubious = !news.acked || news.sacked || news.echo || news.dsack.is_some() || k.state != State::Open;
        if dubious {
            self.alert_kernel(k, now, before, &mut news);
        }
        if self.una == self.max || (news.set_timer && !self.schedule_probe(k, now, true)) {
            self.rearm_kernel(k, now);
        }
        self.control_kernel(k, now, in_flight, rtt, &news);
        self.kernel = Some(kernel);
        self.pump_kernel(now, out);
    }

    /// `tcp_ack_update_rtt`: segments sent once give the samples, else the time stamp (RFC 7323 section 4). Gives the
    /// newest segment's round-trip time.
    fn time_kernel(&mut self, k: &mut Kernel, now: Time, packet: &Packet, news: &mut News) -> Option<Span> {
        let acked = news.acked_sent.filter(|_| !news.again_acked);
        let first = acked.or(news.sacked_sent).map(|(first, _)| now.since(first));
        if let (Some((sent, _)), None, Some((head, _))) = (news.sacked_sent, acked, k.board.head()) {
            // the report is of something newer than the first segment's last transmission: the timer may start anew
            news.set_timer |= sent >= head;
        }
        let echoed = packet.stamp.elapsed(now);
        k.undo.echoed = echoed;
        let sample = first.or((news.acked && echoed < Span::from_secs(600)).then_some(echoed));
        if let Some(rtt) = sample {
            k.estimator.sample(rtt, self.una, self.max, self.config.min_rto);
            let limits = self.limits();
            self.rtt.set(k.estimator.srtt(), k.estimator.margin(), &limits);
            self.rto = self.rtt.timeout();
        }
        acked.or(news.sacked_sent).map(|(_, last)| now.since(last))
    }

    /// `tcp_cong_control`: the reduction goes on, or the window grows.
    fn control_kernel(&mut self, k: &mut Kernel, now: Time, in_flight: u32, rtt: Option<Span>, news: &News) {
        let segments = news.delivered;
        // tcp_may_raise_cwnd: where reordering is known, reports count as acknowledgements do
        let grows = k.prr.is_none() && (news.acked || news.sacked && k.rack.reordering_seen);
        if let Some(prr) = &mut k.prr {
            prr.on_ack(k.board.in_flight(), segments, news.acked && news.lost == 0);
        }
        if segments == 0 {
            return;
        }
        let event = if grows {
            let window = self.controller.window();
            // tcp_is_cwnd_limited: slow start may go to twice what was outstanding
            let slow = window < self.controller.threshold() && window < 2.0 * f64::from(k.most_out);
            let edge = window.ceil() as u32;
            let in_flight = if k.limited || slow { in_flight.max(edge) } else { in_flight.min(edge - 1) };
            TcpEvent::Acked { segments, in_flight, rtt }
        } else {
            TcpEvent::Repaired { segments, rtt }
        };
        let path = self.path(now, in_flight);
        self.controller.on_feedback(&event, &path);
    }

    /// The window as the kernel has it: while it is being reduced, what it has come down to.
    pub(super) fn window_kernel(&self, k: &Kernel) -> u32 {
        match &k.prr {
            Some(prr) => prr.window,
            None => self.window_of_loss(),
        }
    }

    fn window_of_loss(&self) -> u32 {
        (self.controller.window() as u32).saturating_add(self.inflation)
    }

    /// What a plot shows as the window.
    #[cold]
    pub(super) fn shown_kernel(&self) -> f64 {
        let reduced = self.kernel.as_ref().and_then(|k| k.prr.as_ref()).map(|prr| f64::from(prr.window));
        reduced.unwrap_or_else(|| self.controller.window())
    }

    /// `tcp_cwnd_validate`, after sending: whether the window was the limit (RFC 7661); not for longer than a timeout,
    /// and it shrinks half the way to what was used (RFC 2861).
    pub(super) fn validate_kernel(&mut self, k: &mut Kernel, now: Time, limited: bool) {
        let out = k.board.out();
        if self.una >= k.used_until || limited || (!k.limited && out > k.most_out) {
            k.limited = limited;
            k.most_out = out;
            k.used_until = self.max;
        }
        let window = self.controller.window();
        if k.limited || (window < self.controller.threshold() && window < 2.0 * f64::from(k.most_out)) {
            k.used = 0;
            k.used_since = now;
            return;
        }
        k.used = k.used.max(out);
        if now.since(k.used_since) >= self.rto {
            let used = f64::from(k.used.max(self.config.initial_window));
            if k.state == State::Open && used < window {
                self.tell(TcpEvent::Idle { window: ((window + used) / 2.0).floor() }, now);
            }
            k.used = 0;
            k.used_since = now;
        }
    }

    /// `tcp_cwnd_restart`, before sending after nothing was outstanding: half the window for every timeout since the
    /// last segment, at least the initial window (RFC 2861, RFC 5681 section 4.1).
    pub(super) fn idle_kernel(&mut self, now: Time) {
        let mut idle = now.since(self.last_sent);
        let restart = f64::from(self.config.initial_window).min(self.controller.window());
        let mut window = self.controller.window();
        if self.profile != Profile::Linux || idle <= self.rto {
            return;
        }
        while idle > self.rto && window > restart {
            idle = Span(idle.0 - self.rto.0.max(1));
            window = (window / 2.0).floor();
        }
        self.tell(TcpEvent::Idle { window: window.max(restart) }, now);
        if let Some(k) = &mut self.kernel {
            k.used = 0;
            k.used_since = now;
        }
    }
}
