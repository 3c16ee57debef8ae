//! The two ends of a flow: a sender with its application, a receiver with its player or viewer.
//!
//! What drives them passes packets and the time, and a sink for what leaves ([`Transmit`]): a simulated host its port, a
//! live endpoint its socket's queue. Both drive the same objects.

use crate::arrivals::{ArrivalMeter, ArrivalReport};
use crate::coupling::Told;
use crate::model::FlowModel;
use paceline_apps::player::{Player, StreamReport};
use paceline_apps::playout::{FrameBuffer, MediaPacket, Part};
use paceline_apps::viewer::{FramePacket, ViewReport, Viewer};
use paceline_apps::{Action, Application, Transfers};
use paceline_control::Gauges;
use paceline_flow::quic::{Object, TrackArrivals, TrackWrite};
use paceline_flow::rtp::FeedbackSent;
use paceline_flow::{Receiver, Sender, Transmit, Transport};
use paceline_packet::quic::{AckRange, StreamPiece};
use paceline_packet::rtp::RtpData;
use paceline_packet::{Extra, FlowId, Packet, TfrcData, TfrcMore};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

/// What an application does in a call, at most: one of a rate that nobody can send would never come to an end with what is due
/// by a real clock.
const MOST_ACTIONS: usize = 1024;

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
    /// The machine's half of it.
    pub sender: Sender,
    /// When the application next does something of itself.
    app_wake: Time,
    started: bool,
    stopped: bool,
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
            delay: nanoseconds(flow.sender_delay),
            restamps: flow.sender_delay > Span::ZERO && matches!(flow.transport, Transport::Tcp { .. }),
            entry: flow.start,
            app_wake: flow.start,
            curious: flow.app.transfers().is_some(),
            started: false,
            stopped: false,
            app: Box::new(flow.app.clone()),
        }
    }

    /// When [`Source::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.sender.next_wake().min(self.app_wake)
    }

    /// Whether the flow has begun.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// What its application could send at most, in bits a second with all headers: nothing before it has started and once it has
    /// stopped; infinite for what has no rate of its own.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        if self.started && !self.stopped { self.app.demand(now) } else { 0.0 }
    }

    /// Whether all that the application will ever send has been acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.started && self.sender.acked_all() && (self.stopped || self.app.next_wake().is_none())
    }

    /// Whether it has come to its end by itself, not by its stop: a transfer or a stream, all of it acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_done() && !self.stopped
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

    /// How many frames the application has skipped since measuring began; `None` if it is no encoder.
    #[must_use]
    pub fn frames_skipped(&self) -> Option<u64> {
        self.app.skipped()
    }

    /// The rate of the encoder, in bits a second with all headers; `None` if the application is none.
    #[must_use]
    pub fn encoder_rate(&self) -> Option<Rate> {
        self.app.encoder_rate()
    }

    /// What its group is told (RFC 8699); `None` if its controller cannot be coupled, and while it sends nothing.
    #[must_use]
    pub fn coupled(&self, now: Time) -> Option<Told> {
        let Sender::Rtp(rtp) = &self.sender else { return None };
        let rate = rtp.coupled()?;
        let demand = self.demand(now);
        let told = Told { calculated: rate.calculated, desired: demand.min(rate.most), rtt: rtp.rtt() };
        (demand > 0.0).then_some(told)
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

    /// Transfers and frames count from `at` on.
    pub fn measure_from(&mut self, at: Time) {
        self.app.measure_from(at);
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
        if self.wants_to_know() {
            return self.all_acked(packet.time, out);
        }
        wake
    }

    /// Everything is acknowledged, which the application wants to know. Returns what [`Source::next_wake`] says then.
    // Not called on the fast path itself: the sink's address would be taken there.
    #[cold]
    #[inline(never)]
    pub fn all_acked(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        self.ask_app(now, out);
        self.next_wake()
    }

    /// The time that [`Source::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.app_wake <= now {
            self.ask_app(now, out);
        }
        self.sender.on_timer(now, out);
    }

    /// The user wants an end: the application stops at once. What it has handed over and is not sent yet never will be.
    pub fn stop(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.stopped = true;
            self.app_wake = Time::NEVER;
            self.sender.stop();
            self.sender.on_timer(now, out);
        }
    }

    /// Carries out what the application wants, until it wants nothing more for now.
    #[cold]
    fn ask_app(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started {
            self.started = true;
            self.sender.start(now, out);
        }
        if let Some(target) = self.sender.target() {
            self.app.aim(target, now);
        }
        self.app.press(self.sender.queueing());
        for _ in 0..MOST_ACTIONS {
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
                Action::Endless => self.sender.supply_endless(now, out),
                Action::Withdraw => self.sender.withdraw(),
                Action::Restart(size) => {
                    self.sender.restart(now);
                    self.sender.supply(size.bytes(), now, out);
                    self.sender.start(now, out);
                }
                Action::Stop => {
                    self.sender.stop();
                    self.stopped = true;
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

/// What a receiver gives its data to.
#[derive(Debug)]
enum Show {
    /// Nobody.
    Nothing,
    /// The player of a stream.
    Player(Player),
    /// The viewer of an encoder's video.
    Viewer(Viewer),
    /// The same, with a jitter buffer.
    Buffer(Box<FrameBuffer>),
}

/// What looks at the packets that come, beside the receiver.
#[derive(Debug)]
struct Screen {
    show: Show,
    /// Fillers are no part of the media's sequence.
    aside: bool,
    arrivals: Option<ArrivalMeter>,
}

impl Screen {
    /// A packet has come, of what is `bytes` in all by now.
    #[cold]
    fn on_packet(&mut self, packet: &Packet, extra: Option<&Extra>, bytes: u64) {
        match (&mut self.show, extra) {
            (Show::Player(player), _) => player.on_delivery(packet.time, Size(bytes)),
            // beside retransmissions fillers have numbers of their own
            (Show::Viewer(_) | Show::Buffer(_), Some(Extra::Rtp(data)))
                if self.aside && data.payload_type == RtpData::FILLER => {}
            (Show::Viewer(viewer), Some(Extra::Rtp(data))) => {
                let (MediaPacket { sequence, captured, last, .. }, timestamp) = (media(packet, data), data.timestamp);
                viewer.on_packet(packet.time, &FramePacket { sequence, timestamp, last, captured });
            }
            (Show::Viewer(viewer), Some(Extra::TfrcData(_, TfrcData { more: TfrcMore::Frame(part), .. }))) => {
                let captured = packet.time - part.captured.age(packet.time);
                let (sequence, timestamp) = (packet.seq as u16, part.captured.0);
                viewer.on_packet(packet.time, &FramePacket { sequence, timestamp, last: part.last, captured });
            }
            (Show::Buffer(buffer), Some(Extra::Rtp(data))) => buffer.on_packet(packet.time, &media(packet, data)),
            _ => {}
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.on_packet(packet, extra);
        }
    }
}

/// Shows frames that have come whole at `now`.
fn show(now: Time, objects: impl Iterator<Item = Object>, screen: &mut Option<Box<Screen>>) {
    for object in objects.filter(|object| !object.reset) {
        if let Some(Show::Viewer(viewer)) = screen.as_mut().map(|screen| &mut screen.show) {
            viewer.on_frame(now, now - object.captured.age(now));
        }
    }
}

/// What the buffer is told of a packet: of one that is sent again, what it was.
fn media(packet: &Packet, data: &RtpData) -> MediaPacket {
    let part = match RtpData::retransmitted_type(data.payload_type).unwrap_or(data.payload_type) {
        RtpData::KEY => Part::Key,
        RtpData::FILLER => Part::Filler,
        _ => Part::Delta,
    };
    let captured = packet.time - packet.stamp.elapsed(packet.time);
    MediaPacket { sequence: data.original.unwrap_or(data.sequence), part, captured, last: data.marker }
}

/// A receiver with its player, if the flow carries a stream, or its viewer, if it carries an encoder's video.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sink {
    /// What the host writes on its packets: whose they are, and where they go first.
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    /// The host delays each packet by up to so many nanoseconds.
    pub(crate) delay: u32,
    screen: Option<Box<Screen>>,
    /// The machine's half of it.
    pub receiver: Receiver,
    /// When its entry in the host's timers lies: never later than [`Sink::next_wake`].
    pub(crate) entry: Time,
    /// When a key frame is to be asked for.
    key_wake: Time,
}

impl Sink {
    /// The sink of a flow; its acknowledgements start with `cursor`.
    #[must_use]
    pub fn new(flow: &FlowModel, seed: u64, id: FlowId, cursor: u32) -> Sink {
        let stream = Stream::new(seed, &format!("receiver {}", flow.label()));
        let player = flow.stream.map(|model| Show::Player(Player::new(model, flow.start)));
        let viewer = flow.has_frames().then(|| match flow.playout {
            Some(model) => Show::Buffer(Box::new(FrameBuffer::new(model, flow.start))),
            None => Show::Viewer(Viewer::new(flow.start)),
        });
        let show = player.or(viewer);
        let screen = (show.is_some() || flow.delays).then(|| {
            let arrivals = flow.delays.then(ArrivalMeter::default);
            let aside = matches!(&flow.transport, Transport::Rtp { config, .. } if config.nack);
            Box::new(Screen { show: show.unwrap_or(Show::Nothing), aside, arrivals })
        });
        let delay = nanoseconds(flow.receiver_delay);
        let key_wake = Time::NEVER;
        Sink {
            entry: Time::NEVER,
            key_wake,
            flow: id,
            cursor,
            delay,
            screen,
            receiver: flow.transport.receiver(stream),
        }
    }

    /// When [`Sink::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.receiver.next_wake().min(self.key_wake)
    }

    /// The fast path for a data packet without a side record: see [`Receiver::on_data_in_order`]. Returns when
    /// [`Sink::on_timer`] is needed on its account. `None`: nothing has been done, and it is one for [`Sink::on_data`].
    #[inline(always)]
    pub fn on_data_in_order(&mut self, packet: &Packet, out: &mut impl Transmit) -> Option<Time> {
        let ack = self.receiver.on_data_in_order(packet.time, packet)?;
        out.transmit(ack);
        if let Some(screen) = &mut self.screen {
            screen.on_packet(packet, None, self.receiver.stats().bytes);
        }
        Some(Time::NEVER)
    }

    /// The fast path for data of a stream that nobody looks at: see [`QuicReceiver::takes_in_order`], after which
    /// [`Sink::on_piece_taken`] is due.
    #[inline]
    pub(crate) fn takes_piece(&mut self, packet: &Packet, piece: &StreamPiece) -> bool {
        let Receiver::Quic(quic) = &mut self.receiver else { return false };
        self.screen.is_none() && quic.takes_in_order(packet.time, packet, piece)
    }

    /// What the data that [`Sink::takes_piece`] took ask for. Returns what [`Sink::on_data`] does.
    #[inline]
    pub(crate) fn on_piece_taken(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        let Receiver::Quic(quic) = &mut self.receiver else { return Time::NEVER };
        quic.acknowledge(now, out)
    }

    /// A data packet has come, at its time; `extra` is its side record. Returns when [`Sink::on_timer`] is needed on its
    /// account.
    pub fn on_data(&mut self, packet: &Packet, extra: Option<Extra>, out: &mut impl Transmit) -> Time {
        let wake = self.receiver.on_data(packet.time, packet, extra.as_ref(), out);
        match &mut self.receiver {
            Receiver::Quic(quic) if quic.has_objects() => show(packet.time, quic.take_objects(), &mut self.screen),
            Receiver::Foreign(foreign) => show(packet.time, foreign.take_objects().into_iter(), &mut self.screen),
            _ => {}
        }
        if let Some(screen) = &mut self.screen {
            screen.on_packet(packet, extra.as_ref(), self.receiver.stats().bytes);
            if let Show::Buffer(_) = screen.show {
                self.ask_for_key(packet.time, out);
            }
        }
        match extra {
            // holds nothing that is to be freed; asking what it is costs
            Some(Extra::QuicStream(_)) => core::mem::forget(extra),
            None => {}
            Some(extra) => drop(extra),
        }
        wake.min(self.key_wake)
    }

    /// Of a track of another's connection: so much of it has come there.
    pub fn on_arrivals(&mut self, now: Time, arrivals: &TrackArrivals) {
        let Receiver::Track(track) = &mut self.receiver else { return };
        track.given(now, arrivals.bytes);
        if let Some(Show::Player(player)) = self.screen.as_mut().map(|screen| &mut screen.show) {
            player.on_delivery(now, Size(arrivals.bytes));
        }
        show(now, arrivals.objects.iter().copied(), &mut self.screen);
    }

    /// The time that [`Sink::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.receiver.on_timer(now, out);
        if self.key_wake <= now {
            self.ask_for_key(now, out);
        }
    }

    /// Asks for a key frame, if one is to be asked for.
    #[cold]
    fn ask_for_key(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(Screen { show: Show::Buffer(buffer), .. }) = self.screen.as_deref_mut() else { return };
        if buffer.asks(now)
            && let Receiver::Rtp(rtp) = &mut self.receiver
        {
            rtp.ask_for_key(now, out);
        }
        self.key_wake = buffer.next_wake();
    }

    fn player(&self) -> Option<&Player> {
        match self.screen.as_deref() {
            Some(Screen { show: Show::Player(player), .. }) => Some(player),
            _ => None,
        }
    }

    /// How much playing time the player holds; `None` without a player.
    #[must_use]
    pub fn buffered(&self, now: Time) -> Option<Span> {
        self.player().map(|player| player.buffered(now))
    }

    /// Whether the play-out is over; `None` without a player.
    #[must_use]
    pub fn player_is_done(&self, now: Time) -> Option<bool> {
        self.player().map(|player| player.is_done(now))
    }

    /// What became of the stream; `None` without a player.
    #[must_use]
    pub fn stream_report(&self, end: Time) -> Option<StreamReport> {
        self.player().map(|player| player.finish(end))
    }

    /// What became of the frames, watched until `end`; `None` without a viewer.
    #[must_use]
    pub fn view_report(&self, end: Time) -> Option<ViewReport> {
        match self.screen.as_deref() {
            Some(Screen { show: Show::Viewer(viewer), .. }) => Some(viewer.report(end)),
            Some(Screen { show: Show::Buffer(buffer), .. }) => Some(buffer.report(end)),
            _ => None,
        }
    }

    /// What the receiver has sent back since measuring began; `None` if it is none of RTP.
    #[must_use]
    pub fn feedback_sent(&self) -> Option<FeedbackSent> {
        match &self.receiver {
            Receiver::Rtp(rtp) => Some(rtp.feedback_sent()),
            _ => None,
        }
    }

    /// How packets arrived; `None` if that is not asked of the flow.
    #[must_use]
    pub fn arrival_report(&self) -> Option<&ArrivalReport> {
        self.screen.as_deref()?.arrivals.as_ref().map(ArrivalMeter::report)
    }

    /// A row of the recording of arrivals ([`ArrivalMeter::sample`]); `None` if they are not measured.
    pub fn sample_arrivals(&mut self) -> Option<[f64; 4]> {
        self.screen.as_deref_mut()?.arrivals.as_mut().map(ArrivalMeter::sample)
    }

    /// A row of the recording of frames ([`Viewer::sample`]); `None` without a viewer.
    pub fn sample_frames(&mut self, now: Time) -> Option<[f64; 4]> {
        match &mut self.screen.as_deref_mut()?.show {
            Show::Viewer(viewer) => Some(viewer.sample(now)),
            Show::Buffer(buffer) => Some(buffer.sample(now)),
            Show::Nothing | Show::Player(_) => None,
        }
    }

    /// Frames and arrivals count from `at` on, which is now.
    pub fn measure_from(&mut self, at: Time) {
        if let Receiver::Rtp(rtp) = &mut self.receiver {
            rtp.count_feedback_from_here();
        }
        let Some(screen) = self.screen.as_deref_mut() else { return };
        match &mut screen.show {
            Show::Viewer(viewer) => viewer.measure_from(at),
            Show::Buffer(buffer) => buffer.measure_from(at),
            Show::Nothing | Show::Player(_) => {}
        }
        screen.arrivals.iter_mut().for_each(ArrivalMeter::measure_from_here);
    }
}
