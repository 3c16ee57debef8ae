//! The two ends of a flow: a sender with its application, a receiver with its player or viewer.
//!
//! The driver passes packets, the time, and a sink for outgoing packets ([`Transmit`]). A simulated host passes its
//! port, a live endpoint its socket's queue. Both drive the same objects.

mod sink;

pub use sink::Sink;

use crate::coupling::CoupledState;
use paceline_apps::{Action, Application, Transfers};
use paceline_control::Gauges;
use paceline_flow::quic::TrackWrite;
use paceline_flow::{Sender, Transmit, Transport};
use paceline_packet::quic::AckRange;
use paceline_packet::{Extra, FlowId, Packet};
use paceline_random::Stream;
use paceline_scenario::model::FlowModel;
use paceline_units::{Rate, Size, Span, Time};

/// Maximum actions of an application per call. In real time, an application with a rate that nobody can send would
/// otherwise never catch up with what is due.
const MAX_ACTIONS: usize = 1024;

/// A sender with its application.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Source {
    /// Time of its entry in the host's timers: never later than [`Source::next_wake`].
    pub(crate) entry: Time,
    /// What the host writes on its packets: their flow, and the cursor of their first step.
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    /// Maximum host delay of each packet, in nanoseconds.
    pub(crate) delay: u32,
    /// Whether packets are stamped as they leave the host: those of TCP, which measures round trips by the stamps.
    pub(crate) restamps: bool,
    /// Whether the application waits for everything to be acknowledged.
    curious: bool,
    /// Whether the application answers requests.
    answers: bool,
    /// The transport machine's sender.
    pub sender: Sender,
    /// When the application next acts by itself.
    app_wake: Time,
    started: bool,
    stopped: bool,
    /// Whether the stop came before all data were sent and acknowledged.
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

    /// Sets and returns the time of its timer entry, not before now. A deadline that had passed when its frame arrived
    /// may lie earlier, but a packet sent then would meet packets that arrived since.
    #[inline(always)]
    pub(crate) fn set_entry(&mut self, now: Time) -> Time {
        self.entry = self.next_wake().max(now);
        self.entry
    }

    /// Sets the maximum host delay of each packet.
    pub(crate) fn set_delay(&mut self, max_delay: Span) {
        self.delay = nanoseconds(max_delay);
    }

    /// Whether the flow has started.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Whether it has started and its application has not stopped.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.started && !self.stopped
    }

    /// The maximum rate that its application could send, in bit/s including all headers. Zero before its start and
    /// after its stop; infinite if the application does not limit it.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        if self.is_sending() { self.app.demand(now) } else { 0.0 }
    }

    /// Whether all that the application will ever send has been acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.started && self.sender.acked_all() && (self.stopped || self.app.is_over() || self.is_silent())
    }

    /// Whether its application will do nothing more, not even stop.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.stopped || self.app.next_wake().is_none() && !self.app.is_waiting()
    }

    /// Whether it finished by itself, before its stop: a transfer, a stream or a number of packets, all acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_done() && !self.cut
    }

    /// The application's stop time has arrived.
    fn end(&mut self) {
        self.cut = !(self.app.is_over() && self.sender.acked_all());
        self.stopped = true;
        self.sender.stop();
    }

    /// Statistics of the application's transfers; all zero if it has none.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        self.app.transfers().unwrap_or_default()
    }

    /// How many frames the application has captured since measuring began; `None` if it is no encoder.
    #[must_use]
    pub fn frames(&self) -> Option<u64> {
        self.app.frames()
    }

    /// Whether it sends an encoder's pictures, which freeze when frames stop arriving.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        self.app.has_pictures()
    }

    /// How many frames the application has skipped since measuring began; `None` if it is no encoder.
    #[must_use]
    pub fn frames_skipped(&self) -> Option<u64> {
        self.app.skipped()
    }

    /// Whether its sender may discard queued frames.
    #[must_use]
    pub fn may_discard_frames(&self) -> bool {
        matches!(&self.sender, Sender::Rtp(rtp) if rtp.may_discard_frames()) && self.app.frames().is_some()
    }

    /// The encoder's rate, in bit/s including all headers; `None` if the application is no encoder.
    #[must_use]
    pub fn encoder_rate(&self) -> Option<Rate> {
        self.app.encoder_rate()
    }

    /// State for its coupled group (RFC 8699); `None` if its controller cannot be coupled, or while it sends nothing.
    #[must_use]
    pub fn coupled(&self, now: Time) -> Option<CoupledState> {
        let Sender::Rtp(rtp) = &self.sender else { return None };
        let rate = rtp.coupled()?;
        let demand = self.demand(now);
        let state = CoupledState { calculated: rate.calculated, desired: demand.min(rate.max_rate), rtt: rtp.rtt() };
        (demand > 0.0).then_some(state)
    }

    /// Sets the rate that its coupled group gives to its controller.
    pub fn share(&mut self, rate: Rate, now: Time, out: &mut impl Transmit) {
        if let Sender::Rtp(rtp) = &mut self.sender {
            rtp.share(rate, now, out);
        }
    }

    /// Values to plot: the sender's gauges, and the encoder's rate if there is an encoder or the sender is RTP.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.sender.gauges(to);
        let encoder = self.encoder_rate();
        if encoder.is_some() || matches!(self.sender, Sender::Rtp(_)) {
            to.bits_per_second("encoder", encoder.map_or(f64::NAN, Rate::bps));
        }
    }

    /// Starts measuring transfers, frames and extremes of round trips at `at`.
    pub fn measure_from(&mut self, at: Time) {
        self.app.measure_from(at);
        self.sender.begin_measuring();
    }

    /// The fast path for an acknowledgement without a side record: see [`Sender::on_ack_in_order`]. Returns when the
    /// sender next needs [`Source::on_timer`]; the application's own time has not changed. If the application
    /// [`Source::wants_to_know`], call [`Source::all_acked`] as well. `None` means that nothing was done and
    /// [`Source::on_ack`] must take the packet.
    #[inline(always)]
    pub fn on_ack_in_order(&mut self, packet: &Packet, out: &mut impl Transmit) -> Option<Time> {
        let (burst, wake) = self.sender.on_ack_in_order(packet.time, packet)?;
        burst.for_each(|segment| out.transmit(segment));
        Some(wake)
    }

    /// Whether everything is acknowledged and the application waits for that.
    #[inline(always)]
    #[must_use]
    pub fn wants_to_know(&self) -> bool {
        self.curious && self.sender.acked_all()
    }

    /// Whether an acknowledgement of QUIC without older ranges may use [`Source::on_range`]. If so, its packet has been
    /// recorded.
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

    /// Handles an acknowledgement or a report, at the packet's time; `extra` is its side record. Returns when
    /// [`Source::on_timer`] is needed as a result; the application's earlier wake-up time still applies.
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

    /// Passes received requests to the application; returns whether there were any.
    fn poll_requests(&mut self) -> bool {
        let mut any = false;
        while let Some(number) = self.sender.take_request() {
            self.app.on_request(number);
            any = true;
        }
        any
    }

    /// Polls the application after everything was acknowledged or a request arrived. Returns [`Source::next_wake`].
    // Not inlined into the fast path, because it takes the address of the sink.
    #[cold]
    #[inline(never)]
    pub fn all_acked(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        self.poll_app(now, out);
        self.next_wake()
    }

    /// Call at the time given by [`Source::next_wake`]; an earlier call does no harm.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.app_wake <= now {
            self.poll_app(now, out);
        }
        self.sender.on_timer(now, out);
    }

    /// Stops the application at once, at the user's request. Data that it has handed over but that are unsent are never
    /// sent.
    pub fn stop(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.end();
            self.app_wake = Time::NEVER;
            self.sender.on_timer(now, out);
        }
    }

    /// Carries out the application's actions until it has no more for now.
    #[cold]
    fn poll_app(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started {
            self.started = true;
            self.sender.start(now, out);
        }
        if let Some(target) = self.sender.target() {
            self.app.set_target_rate(target, now);
        }
        if let Sender::Rtp(rtp) = &mut self.sender
            && rtp.take_discarded()
        {
            self.app.on_backlog_discarded(now);
        }
        self.app.on_queueing_delay(self.sender.queueing());
        for _ in 0..MAX_ACTIONS {
            match self.app.next_action(now, Size(self.sender.stats().bytes_acked)) {
                Action::Wait => {
                    self.app_wake = self.app.next_wake().unwrap_or(Time::NEVER);
                    return;
                }
                Action::Send(size) => match &mut self.sender {
                    Sender::Quic(quic) => quic.supply(size.bytes(), self.app.last_is_key_frame(), now, out),
                    Sender::Foreign(foreign) => foreign.supply(size.bytes(), self.app.last_is_key_frame(), now),
                    Sender::Track(track) => {
                        let key = self.app.last_is_key_frame();
                        track.write(TrackWrite::Frame { bytes: size.bytes(), captured: now, key });
                    }
                    Sender::Rtp(rtp) if self.app.frames().is_some() && self.app.last_is_key_frame() => {
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
        // The rest is due at once, but in another call.
        self.app_wake = now;
    }
}

/// A span as endpoints keep it, in 32 bits; saturates at about four seconds.
fn nanoseconds(span: Span) -> u32 {
    u32::try_from(span.0).unwrap_or(u32::MAX)
}
