//! The two ends of a flow: a sender with its application, a receiver with its player or viewer.
//!
//! What drives them passes packets and the time, and a sink for what leaves ([`Transmit`]): a simulated host its port, a
//! live endpoint its socket's queue. Both drive the same objects.

mod sink;

pub use sink::Sink;

use crate::coupling::CoupledState;
use crate::model::FlowModel;
use paceline_apps::{Action, Application, Transfers};
use paceline_control::Gauges;
use paceline_flow::quic::TrackWrite;
use paceline_flow::{Sender, Transmit, Transport};
use paceline_packet::quic::AckRange;
use paceline_packet::{Extra, FlowId, Packet};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

/// What an application does in a call, at most: one of a rate that nobody can send would never come to an end with what is due
/// by a real clock.
const MAX_ACTIONS: usize = 1024;

/// A sender with its application.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Source {
    /// When its entry in the host's timers lies: never later than [`Source::next_wake`].
    pub(crate) entry: Time,
    /// What the host writes on its packets: whose they are, and where they go first.
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    /// The host delays each packet by up to so many nanoseconds.
    pub(crate) delay: u32,
    /// Whether its packets are stamped as they leave the host: TCP's, which measures round trips by them.
    pub(crate) restamps: bool,
    /// Whether the application wants to know when everything is acknowledged.
    curious: bool,
    /// Whether it answers requests.
    answers: bool,
    /// The machine's half of it.
    pub sender: Sender,
    /// When the application next does something of itself.
    app_wake: Time,
    started: bool,
    stopped: bool,
    /// Whether its stop came before all that there was had arrived.
    cut: bool,
    app: Box<Application>,
}

impl Source {
    /// The source of a flow; its packets start with `cursor`.
    #[must_use]
    pub fn new(flow: &FlowModel, seed: u64, id: FlowId, cursor: u32) -> Source {
        let stream = Stream::new(seed, &format!("sender {}", flow.label()));
        Source {
            sender: flow.transport.sender(stream),
            flow: id,
            cursor,
            delay: nanoseconds(flow.sender_delay.first()),
            restamps: flow.sender_delay.any() && matches!(flow.transport, Transport::Tcp { .. }),
            entry: flow.start,
            app_wake: flow.start,
            curious: flow.app.transfers().is_some(),
            answers: matches!(flow.app, Application::Server(_)),
            started: false,
            stopped: false,
            cut: false,
            app: Box::new(flow.app.clone()),
        }
    }

    /// When [`Source::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.sender.next_wake().min(self.app_wake)
    }

    /// Notes in its entry when it is to be woken, and gives that: not before now. A deadline that had passed when its frame came may lie
    /// earlier, but what left then would meet what came since.
    #[inline(always)]
    pub(crate) fn set_entry(&mut self, now: Time) -> Time {
        self.entry = self.next_wake().max(now);
        self.entry
    }

    /// From now on the host delays each packet by up to this.
    pub(crate) fn set_delay(&mut self, max_delay: Span) {
        self.delay = nanoseconds(max_delay);
    }

    /// Whether the flow has begun.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Whether it has begun, and its application has not stopped.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.started && !self.stopped
    }

    /// What its application could send at most, in bits a second with all headers: nothing before it has started and once it has
    /// stopped; infinite for what has no rate of its own.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        if self.is_sending() { self.app.demand(now) } else { 0.0 }
    }

    /// Whether all that the application will ever send has been acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.started && self.sender.acked_all() && (self.stopped || self.app.is_over() || self.is_silent())
    }

    /// Whether its application wants nothing more, not even its stop.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.stopped || self.app.next_wake().is_none() && !self.app.is_waiting()
    }

    /// Whether it has come to its end by itself, whether its stop has passed since or not: a transfer, a stream or so many
    /// packets, all of it acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_done() && !self.cut
    }

    /// Its stop has come.
    fn end(&mut self) {
        self.cut = !(self.app.is_over() && self.sender.acked_all());
        self.stopped = true;
        self.sender.stop();
    }

    /// How the application's transfers went; all zero for what does not consist of transfers.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        self.app.transfers().unwrap_or_default()
    }

    /// How many frames the application has captured since measuring began; `None` if it is no encoder.
    #[must_use]
    pub fn frames(&self) -> Option<u64> {
        self.app.frames()
    }

    /// Whether what it writes are pictures of an encoder, which freeze if no more come.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        self.app.has_pictures()
    }

    /// How many frames the application has skipped since measuring began; `None` if it is no encoder.
    #[must_use]
    pub fn frames_skipped(&self) -> Option<u64> {
        self.app.skipped()
    }

    /// Whether its sender may throw away frames that wait.
    #[must_use]
    pub fn throws_away(&self) -> bool {
        matches!(&self.sender, Sender::Rtp(rtp) if rtp.throws_away()) && self.app.frames().is_some()
    }

    /// The rate of the encoder, in bits a second with all headers; `None` if the application is none.
    #[must_use]
    pub fn encoder_rate(&self) -> Option<Rate> {
        self.app.encoder_rate()
    }

    /// What its group is told (RFC 8699); `None` if its controller cannot be coupled, and while it sends nothing.
    #[must_use]
    pub fn coupled(&self, now: Time) -> Option<CoupledState> {
        let Sender::Rtp(rtp) = &self.sender else { return None };
        let rate = rtp.coupled()?;
        let demand = self.demand(now);
        let state = CoupledState { calculated: rate.calculated, desired: demand.min(rate.max_rate), rtt: rtp.rtt() };
        (demand > 0.0).then_some(state)
    }

    /// Its group gives its controller this rate.
    pub fn share(&mut self, rate: Rate, now: Time, out: &mut impl Transmit) {
        if let Sender::Rtp(rtp) = &mut self.sender {
            rtp.share(rate, now, out);
        }
    }

    /// What a plot should show: the sender's gauges, and the encoder's rate under RTP and where there is one.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.sender.gauges(to);
        let encoder = self.encoder_rate();
        if encoder.is_some() || matches!(self.sender, Sender::Rtp(_)) {
            to.bits_per_second("encoder", encoder.map_or(f64::NAN, Rate::bps));
        }
    }

    /// Transfers, frames and the extremes of round trips count from `at` on.
    pub fn measure_from(&mut self, at: Time) {
        self.app.measure_from(at);
        self.sender.begin_measuring();
    }

    /// The fast path for an acknowledgement without a side record: see [`Sender::on_ack_in_order`]. Returns when
    /// [`Source::on_timer`] is needed on its account, which [`Source::all_acked`] has a say in if the application
    /// [`Source::wants_to_know`]; what it had wanted before was known already. `None`: nothing has been done, and it is one for
    /// [`Source::on_ack`].
    #[inline(always)]
    pub fn on_ack_in_order(&mut self, packet: &Packet, out: &mut impl Transmit) -> Option<Time> {
        let (burst, wake) = self.sender.on_ack_in_order(packet.time, packet)?;
        burst.for_each(|segment| out.transmit(segment));
        Some(wake)
    }

    /// Whether everything is acknowledged, and the application is one that waits for that.
    #[inline(always)]
    #[must_use]
    pub fn wants_to_know(&self) -> bool {
        self.curious && self.sender.acked_all()
    }

    /// Whether an acknowledgement of QUIC without older ranges may go by [`Source::on_range`]; its packet has been noted then.
    #[inline]
    pub(crate) fn takes_range(&mut self, packet: &Packet) -> bool {
        let Sender::Quic(quic) = &mut self.sender else { return false };
        !self.curious && quic.note_ack_in_order(packet)
    }

    /// The fast path of [`Source::on_ack`], after [`Source::takes_range`].
    #[inline]
    pub(crate) fn on_range(&mut self, now: Time, range: &AckRange, out: &mut impl Transmit) -> Time {
        let Sender::Quic(quic) = &mut self.sender else { return Time::NEVER };
        quic.on_range(now, range, out);
        quic.next_wake()
    }

    /// An acknowledgement, a report has come, at the time of the packet; `extra` is its side record. Returns when
    /// [`Source::on_timer`] is needed on its account: what the application had wanted before was known already.
    pub fn on_ack(&mut self, packet: &Packet, extra: Option<Extra>, out: &mut impl Transmit) -> Time {
        let wake = self.sender.on_ack(packet.time, packet, extra.as_ref(), out);
        if let Some(extra) = extra {
            drop(extra);
            if let Sender::Rtp(rtp) = &mut self.sender
                && rtp.take_key_request()
            {
                self.app.request_key(packet.time);
            }
        }
        if self.answers && self.poll_requests() || self.wants_to_know() {
            return self.all_acked(packet.time, out);
        }
        wake
    }

    /// Tells the application of requests that have come; gives whether any have.
    fn poll_requests(&mut self) -> bool {
        let mut any = false;
        while let Some(number) = self.sender.take_request() {
            self.app.on_request(number);
            any = true;
        }
        any
    }

    /// Everything is acknowledged, which the application wants to know, or it was asked for something. Returns what [`Source::next_wake`] says then.
    // Not called on the fast path itself: the sink's address would be taken there.
    #[cold]
    #[inline(never)]
    pub fn all_acked(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        self.poll_app(now, out);
        self.next_wake()
    }

    /// The time that [`Source::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.app_wake <= now {
            self.poll_app(now, out);
        }
        self.sender.on_timer(now, out);
    }

    /// The user wants an end: the application stops at once. What it has handed over and is not sent yet never will be.
    pub fn stop(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.end();
            self.app_wake = Time::NEVER;
            self.sender.on_timer(now, out);
        }
    }

    /// Carries out what the application wants, until it wants nothing more for now.
    #[cold]
    fn poll_app(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started {
            self.started = true;
            self.sender.start(now, out);
        }
        if let Some(target) = self.sender.target() {
            self.app.aim(target, now);
        }
        if let Sender::Rtp(rtp) = &mut self.sender
            && rtp.take_thrown()
        {
            self.app.begin_anew(now);
        }
        self.app.press(self.sender.queueing());
        for _ in 0..MAX_ACTIONS {
            match self.app.next_action(now, Size(self.sender.stats().bytes_acked)) {
                Action::Wait => {
                    self.app_wake = self.app.next_wake().unwrap_or(Time::NEVER);
                    return;
                }
                Action::Send(size) => match &mut self.sender {
                    Sender::Quic(quic) => quic.supply(size.bytes(), self.app.made_key(), now, out),
                    Sender::Foreign(foreign) => foreign.supply(size.bytes(), self.app.made_key(), now),
                    Sender::Track(track) => {
                        let key = self.app.made_key();
                        track.write(TrackWrite::Frame { bytes: size.bytes(), captured: now, key });
                    }
                    Sender::Rtp(rtp) if self.app.frames().is_some() && self.app.made_key() => {
                        rtp.supply_key(size.bytes(), now, out)
                    }
                    sender => sender.supply(size.bytes(), now, out),
                },
                Action::Answer { request, size, last } => {
                    self.sender.answer(request, size.bytes(), last, now, out);
                }
                Action::Endless => self.sender.supply_endless(now, out),
                Action::Withdraw => self.sender.withdraw(),
                Action::Restart(size) => {
                    self.sender.restart(now);
                    self.sender.supply(size.bytes(), now, out);
                    self.sender.start(now, out);
                }
                Action::Stop => {
                    self.end();
                    self.app_wake = self.app.next_wake().unwrap_or(Time::NEVER);
                    return;
                }
            }
            if out.enough() {
                break;
            }
        }
        // the rest at once, but in a call of its own
        self.app_wake = now;
    }
}

/// As endpoints keep it, beside other numbers of 32 bits; up to four seconds.
fn nanoseconds(span: Span) -> u32 {
    u32::try_from(span.0).unwrap_or(u32::MAX)
}
