//! The sending end of a live flow: setup and close, then the simulator's source. With a receiver of plain RTP, reports
//! replace the setup ([`super::reports`]): the source runs from the start, slowly before the first of them.

use super::capture_clock::CaptureClock;
use super::codec::{Codec, Decoded};
use super::flow::is_ecn_capable;
use super::quic::Quic;
use super::reports::{CAUTIOUS_BPS, ReportKind, Reported, Reports};
use super::shaper::Shaper;
use super::times::{MAX_DATAGRAMS, Times};
use super::work_limit::{Behind, MAX_WAITING, Work};
use super::{Counts, EcnBits, End, Input, Outbox, REQUEST_INTERVAL, SILENCE, SessionSpec, State};
use crate::quic::Keys;
use paceline_control::{GaugeUnit, Gauges, SentPacket};
use paceline_flow::{Segment, Sender, Transmit};
use paceline_packet::rtcp::Compound;
use paceline_packet::rtp::Ssrc;
use paceline_packet::wire::tfrc::{Accept, Close, Ecn, Message, RateLimit, Reason, Refuse, Request};
use paceline_packet::{Extra, FlowId, Packet};
use paceline_scenario::model::FlowModel;
use paceline_sim::coupling::CoupledState;
use paceline_sim::endpoint::Source;
use paceline_units::{Span, Time};

/// Intervals after which a request is repeated (docs/wire/tfrc.md, "The agreement"); then the sender gives up.
const REPEATS: [Span; 5] =
    [Span::from_secs(1), Span::from_secs(2), Span::from_secs(4), Span::from_secs(8), Span::from_secs(1)];
/// Maximum number of close messages, and their interval, while there is no answer.
const CLOSES: u32 = 4;
const CLOSE_AGAIN: Span = Span::from_millis(250);
/// Minimum time for packets in flight to arrive after everything was sent.
const LINGER: Span = Span::from_millis(500);
/// Interval at which the machine checks again while too many packets are in flight.
const LOOK_AGAIN: Span = Span::from_millis(10);
/// Maximum time for repairing losses after the application's stop.
const REPAIR: Span = Span::from_secs(5);

/// The sending end of a flow.
#[derive(Debug)]
pub struct SenderSession {
    pub(super) spec: SessionSpec,
    pub(super) state: State,
    pub(super) codec: Codec,
    pub(super) shaper: Shaper,
    pub(super) source: Source,
    request: Request,
    pub(super) times: Times,
    /// The machine's time at which the application stops.
    stop: Time,
    /// When the next setup or close message is due, and how many were sent in this state.
    due: Time,
    sent: u32,
    requested_at: Time,
    /// Round-trip time of the request.
    round_trip: Option<Span>,
    /// When the last datagram from the other end arrived.
    pub(super) last_received: Time,
    /// When the session closes because all is done.
    closes: Time,
    /// The end to report once the session closes.
    end: End,
    pub(super) counts: Counts,
    /// Cost of the current input, and since when inputs have ended with work left.
    pub(super) work: Work,
    behind: Behind,
    /// For a flow to a receiver of plain RTP.
    reports: Option<Reports>,
    /// For an RTP flow: its stream's SSRC.
    stream: Option<Ssrc>,
    /// For a led flow: the packet sent in its last turn.
    pub(super) in_turn: Option<SentPacket>,
    /// For a flow over QUIC.
    pub(super) quic: Option<Quic>,
}

/// Sink for the machine's segments.
pub(super) struct Port<'a> {
    codec: &'a mut Codec,
    shaper: &'a mut Shaper,
    counts: &'a mut Counts,
    work: &'a Work,
    /// The machine's time.
    at: Time,
    /// The maximum number of packets is in flight.
    full: bool,
    reports: Option<&'a mut Reports>,
    stream: &'a mut Option<Ssrc>,
    now: Time,
    out: &'a mut Outbox,
    fresh: Outbox,
}

impl Transmit for Port<'_> {
    fn transmit(&mut self, segment: Segment) {
        if let Some(reports) = &mut self.reports {
            reports.sends(&segment);
        }
        if let Some(Extra::Rtp(data)) = &segment.extra {
            *self.stream = Some(data.ssrc);
        }
        self.work.on_packet_made();
        self.fresh.clear();
        self.codec.encode(&segment, &mut self.fresh);
        for datagram in self.fresh.iter() {
            if !self.shaper.send(self.now, &datagram, self.out) {
                self.counts.over_limit += 1;
            }
        }
    }

    /// If the window opens very far at once, its packets leave in several inputs; with too many in flight, none leaves
    /// until feedback arrives.
    fn full_until(&self) -> Option<Time> {
        match self.full {
            true => Some(self.at + LOOK_AGAIN),
            false => self.work.is_full().then_some(self.at + Span(1)),
        }
    }

    fn enough(&self) -> bool {
        self.work.is_enough()
    }
}

/// Picks the gauge that an event log records.
#[derive(Default)]
struct Figure {
    window: Option<f64>,
    rate: Option<f64>,
}

impl Gauges for Figure {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        match name {
            "cwnd" => self.window = Some(value),
            "allowed" => self.rate = Some(value),
            _ => {}
        }
    }
}

impl SenderSession {
    /// A session that has not started; `keys` are for a flow over QUIC.
    #[must_use]
    pub fn new(spec: &SessionSpec, model: &FlowModel, keys: Option<&Keys>) -> SenderSession {
        let below = spec.flow.family.headers();
        let mut shaper = Shaper::default();
        if let Some(limit) = spec.limit {
            shaper.grant(limit);
        }
        let reports = spec.rtp.map(|_| Reports::new(&model.transport));
        if reports.is_some() {
            shaper.grant(CAUTIOUS_BPS / 8);
        }
        let mut codec = Codec::new(spec.id(), &model.transport, below);
        if let Some(peer) = spec.rtp {
            codec.set_peer(peer);
        }
        let mut source = Source::new(model, spec.flow.seed, FlowId(0), Packet::NOWHERE);
        let quic = Quic::of(model);
        if let Some(quic) = &quic {
            quic.sender(model, spec.flow.seed, keys, &mut source.sender);
        }
        let ecn = if is_ecn_capable(&model.transport) { Ecn::On } else { Ecn::Off };
        SenderSession {
            state: State::Idle,
            codec,
            shaper,
            source,
            request: Request { nonce: spec.secret(), packet_size: model.transport.segment(), ecn },
            times: Times::default(),
            stop: model.stop,
            due: Time::NEVER,
            sent: 0,
            requested_at: Time::ZERO,
            round_trip: None,
            last_received: Time::ZERO,
            closes: Time::NEVER,
            end: End::Done,
            counts: Counts::default(),
            work: Work::default(),
            behind: Behind::default(),
            reports,
            stream: None,
            in_turn: None,
            quic,
            spec: spec.clone(),
        }
    }

    /// The session's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Counts of received datagrams.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The sender and its application.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The sender and its application, mutable so that the owner can bring its integrals up to date.
    pub fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }

    /// The state at `now` that its coupling group needs (RFC 8699); `None` if the flow cannot be coupled, or does not
    /// send now.
    #[must_use]
    pub fn coupled(&self, now: Time) -> Option<CoupledState> {
        (self.state == State::Running).then(|| self.source.coupled(self.times.machine(now)))?
    }

    /// The timestamp of the first RTP packet sent or received, and the machine's time of its capture or arrival.
    pub(crate) fn captures(&self) -> Option<CaptureClock> {
        self.codec.captures().or_else(|| self.quic.as_ref()?.shared.captures.get().copied())
    }

    /// The session's time at which the machine's time began; zero before that.
    #[must_use]
    pub fn epoch(&self) -> Time {
        self.times.epoch()
    }

    /// Round-trip time of the last accepted request: the only one that a flow without feedback has.
    #[must_use]
    pub fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The reports of a receiver of plain RTP; `None` for other flows, and before its first report.
    #[must_use]
    pub fn reported(&self) -> Option<Reported> {
        self.reports.as_ref().and_then(Reports::reported)
    }

    /// The window in packets, or the allowed rate in bit/s; zero without either.
    #[must_use]
    pub fn figure(&self) -> f64 {
        let mut figure = Figure::default();
        self.source.sender.gauges(&mut figure);
        figure.window.or(figure.rate).unwrap_or(0.0)
    }

    /// When [`Input::Timer`] is needed next.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let silence = self.last_received + self.patience();
        match self.state {
            State::Idle | State::Ended(_) => Time::NEVER,
            _ if self.quic.as_ref().is_some_and(|quic| quic.more) => Time::ZERO,
            State::Opening => self.due,
            State::Closing => self.due.min(self.shaper.next_wake()),
            State::Running => {
                let machine = self.times.wake(self.source.next_wake());
                machine.min(self.due).min(silence).min(self.closes).min(self.shaper.next_wake())
            }
        }
    }

    /// Processes an input; resulting datagrams are added to `out`.
    pub fn input(&mut self, now: Time, input: Input<'_>, out: &mut Outbox) {
        let now = self.times.input(now);
        self.work.begin();
        match input {
            Input::Start if self.state == State::Idle => {
                self.last_received = now;
                if self.reports.is_some() {
                    self.begin(now, Time::NEVER, out);
                } else {
                    self.state = State::Opening;
                    self.send_request(now, out);
                }
            }
            Input::Start => {}
            Input::Datagram(bytes, ecn) => self.datagram(now, bytes, ecn, out),
            Input::Timer => self.timer(now, out),
            Input::Share(rate) if self.state == State::Running => {
                self.run(now, out);
                let time = self.times.at();
                let (source, mut port) = self.port(now, out);
                source.share(rate, time, &mut port);
            }
            Input::Share(_) => {}
            Input::Bundled(bundled) => self.bundled(now, bundled, out),
            Input::Stop => self.stop(now, out),
            Input::Unreachable => match self.state {
                State::Running | State::Closing => self.state = State::Ended(End::Unreachable),
                // the expected peer has not come
                State::Idle => self.state = State::Ended(End::NoAnswer),
                _ => {}
            },
        }
        self.drain_quic(now, out);
        self.settle(now, out);
    }

    fn send_request(&mut self, now: Time, out: &mut Outbox) {
        self.requested_at = now;
        self.codec.agreement(Message::Request(self.request), out);
        self.due = match self.state {
            State::Running => now + REQUEST_INTERVAL,
            _ => now + REPEATS[(self.sent as usize).min(REPEATS.len() - 1)],
        };
        self.sent += 1;
    }

    fn datagram(&mut self, now: Time, bytes: &[u8], ecn: EcnBits, out: &mut Outbox) {
        if matches!(self.state, State::Idle | State::Ended(_)) {
            return; // not active: neither processed nor counted
        }
        if self.quic.is_some() && Quic::takes(bytes) {
            return self.take_quic(now, bytes, ecn, out);
        }
        let time = self.times.machine(now);
        match self.codec.decode_answer(bytes, time) {
            Decoded::Garbage => self.counts.garbage += 1,
            Decoded::Implausible => self.counts.disregarded += 1,
            // a receiver of plain RTP does not know such messages: the sender is somebody else
            Decoded::Agreement(_) if self.reports.is_some() => self.counts.garbage += 1,
            Decoded::Agreement(message) => self.agree(now, message, out),
            Decoded::Machine((packet, extra)) if self.state == State::Running => {
                self.counts.taken += 1;
                self.run(now, out);
                if self.state != State::Running {
                    return;
                }
                if !self.accepts(now, extra.as_ref(), out) {
                    return;
                }
                let time = self.times.pass(time);
                let packet = Packet { time, ..packet };
                let (source, mut port) = self.port(now, out);
                source.on_ack(&packet, extra, &mut port);
            }
            // feedback for the last packets, after the sender has finished: valid, but no longer needed
            Decoded::Machine(_) if self.state == State::Closing => self.counts.taken += 1,
            Decoded::Machine(_) => self.counts.disregarded += 1,
        }
    }

    /// Whether to pass this input to the machine. It resets the silence timer; for a receiver of plain RTP only if it
    /// has news.
    fn accepts(&mut self, now: Time, extra: Option<&Extra>, out: &mut Outbox) -> bool {
        let Some(reports) = &mut self.reports else {
            // the only thing in RTCP that others could not guess is the stream's SSRC
            if !matches!(extra, Some(Extra::Rtcp(said)) if !speaks_of(said, self.stream)) {
                self.last_received = now;
            }
            return true;
        };
        let Some(Extra::Rtcp(compound)) = extra else { return false };
        match reports.on_compound(compound) {
            ReportKind::NewArrivals => {
                self.last_received = now;
                self.shaper.lift(now, out);
                true
            }
            ReportKind::Nothing => true,
            ReportKind::Left => {
                self.state = State::Ended(End::Left);
                false
            }
        }
    }

    /// Starts the data flow.
    fn begin(&mut self, now: Time, due: Time, out: &mut Outbox) {
        self.state = State::Running;
        self.times.begin(now);
        self.due = due;
        self.run(now, out);
    }

    /// Time without a sign of life after which the other end counts as gone.
    fn patience(&self) -> Span {
        self.reports.as_ref().map_or(SILENCE, Reports::patience)
    }

    fn agree(&mut self, now: Time, message: Message, out: &mut Outbox) {
        let nonce = self.spec.secret();
        match message {
            Message::Accept(Accept { nonce: theirs, limit }) if theirs == nonce => {
                self.counts.taken += 1;
                if let RateLimit::BytesPerSecond(rate) = limit {
                    self.shaper.grant(rate);
                }
                self.last_received = now;
                self.round_trip = Some(now.since(self.requested_at));
                if self.state == State::Opening {
                    self.begin(now, now + REQUEST_INTERVAL, out);
                }
            }
            Message::Refuse(Refuse { nonce: theirs, reason }) if theirs == nonce && self.state == State::Opening => {
                self.counts.taken += 1;
                self.state = State::Ended(End::Refused(reason));
            }
            Message::Close(Close { nonce: theirs, reason }) if theirs == nonce => {
                self.counts.taken += 1;
                let answered = self.state == State::Closing;
                if !answered {
                    self.codec.agreement(Message::Close(Close { nonce, reason: Reason::DONE }), out);
                }
                self.state = State::Ended(match reason {
                    _ if answered => self.end,
                    Reason::DONE => End::Done,
                    other => End::Closed(other),
                });
            }
            _ => self.counts.disregarded += 1,
        }
    }

    fn timer(&mut self, now: Time, out: &mut Outbox) {
        self.shaper.release(now, out);
        match self.state {
            State::Opening if self.due <= now => {
                if self.sent as usize >= REPEATS.len() {
                    self.state = State::Ended(End::NoAnswer);
                } else {
                    self.send_request(now, out);
                }
            }
            State::Running => {
                if self.last_received + self.patience() <= now {
                    self.state = State::Ended(self.reports.as_ref().map_or(End::Silence, Reports::why));
                    return;
                }
                if self.due <= now {
                    self.send_request(now, out);
                }
                self.run(now, out);
            }
            State::Closing if self.due <= now => self.close(now, out),
            _ => {}
        }
    }

    fn stop(&mut self, now: Time, out: &mut Outbox) {
        match self.state {
            State::Idle | State::Opening => self.state = State::Ended(End::Stopped),
            State::Running => {
                self.run(now, out);
                self.end = End::Stopped;
                let time = self.times.at();
                let (source, mut port) = self.port(now, out);
                source.stop(time, &mut port);
                // do not wait for packets in flight: the user wants to end the flow
                self.closes = now;
            }
            State::Closing | State::Ended(_) => {}
        }
    }

    /// Runs the machine's timers up to now, each at the time that it is due, as far as one input may go.
    pub(super) fn run(&mut self, now: Time, out: &mut Outbox) {
        let to = self.times.machine(now);
        while self.state == State::Running
            && self.source.next_wake() <= to
            && out.len() < MAX_DATAGRAMS
            && self.work.step()
        {
            let due = self.times.timer(self.source.next_wake(), to);
            let (source, mut port) = self.port(now, out);
            source.on_timer(due, &mut port);
            self.drain_quic(now, out); // at the timer's time, as pacing requires
        }
        if self.state != State::Running {
            return;
        }
        let lags = self.behind.look(now, &self.work);
        let waiting = self.source.sender.remembered_writes() as u64;
        let end = if lags {
            End::TooMuchWork
        } else if waiting.max(self.source.transfers().unfinished) > MAX_WAITING {
            End::TooManyWrites
        } else {
            return;
        };
        if self.reports.is_none() {
            let close = Close { nonce: self.spec.secret(), reason: Reason::BUSY };
            self.codec.agreement(Message::Close(close), out);
        }
        self.state = State::Ended(end);
    }

    /// Closes the session if everything is done.
    fn settle(&mut self, now: Time, out: &mut Outbox) {
        if self.state != State::Running {
            return;
        }
        if self.closes == Time::NEVER {
            let over = self.times.machine(now) >= self.stop + REPAIR;
            // a sender that finishes early stays until its stop, as in a simulated run
            if self.source.is_done() && self.source.is_silent() {
                self.closes = now + LINGER.max(self.round_trip.unwrap_or(Span::ZERO) * 2);
            } else if over {
                self.closes = now;
            }
        }
        if self.closes <= now {
            if self.reports.is_some() {
                // the machine has sent BYE
                self.shaper.lift(now, out);
                self.state = State::Ended(self.end);
                return;
            }
            self.state = State::Closing;
            self.close_quic(now, out);
            self.sent = 0;
            self.close(now, out);
        }
    }

    fn close(&mut self, now: Time, out: &mut Outbox) {
        if self.sent == CLOSES {
            // an unanswered close changes nothing, since the data were sent
            self.state = State::Ended(self.end);
            return;
        }
        self.sent += 1;
        self.due = now + CLOSE_AGAIN;
        let close = Close { nonce: self.spec.secret(), reason: Reason::DONE };
        self.codec.agreement(Message::Close(close), out);
    }

    pub(super) fn port<'a>(&'a mut self, now: Time, out: &'a mut Outbox) -> (&'a mut Source, Port<'a>) {
        let (codec, shaper, counts) = (&mut self.codec, &mut self.shaper, &mut self.counts);
        let (reports, stream, work, at) = (self.reports.as_mut(), &mut self.stream, &self.work, self.times.at());
        // other machines are limited by windows, or keep no state per packet
        let full = matches!(&self.source.sender, Sender::Acks(acks) if u64::from(acks.outstanding()) >= MAX_WAITING);
        let fresh = Outbox::default();
        (&mut self.source, Port { codec, shaper, counts, work, at, full, reports, stream, now, out, fresh })
    }
}

/// Whether a compound packet reports on this stream.
fn speaks_of(said: &Compound, stream: Option<Ssrc>) -> bool {
    let arrivals = said.arrivals.iter().flat_map(|arrivals| &arrivals.streams).map(|of| of.ssrc);
    let numbered = said.transport.iter().map(|feedback| feedback.ssrc);
    said.reports.iter().map(|block| block.ssrc).chain(arrivals).chain(numbered).any(|ssrc| Some(ssrc) == stream)
}
