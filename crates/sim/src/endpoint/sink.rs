//! The receiving end of a flow: a receiver with its player, viewer or client.

use super::nanoseconds;
use crate::arrivals::{ArrivalMeter, ArrivalReport};
use paceline_apps::Transfers;
use paceline_apps::client::Client;
use paceline_apps::player::{Player, StreamReport};
use paceline_apps::playout::{FrameBuffer, MediaPacket, Part};
use paceline_apps::viewer::{FramePacket, ViewReport, Viewer};
use paceline_flow::quic::{Object, TrackArrivals};
use paceline_flow::rtp::FeedbackSent;
use paceline_flow::{Receiver, Transmit, Transport};
use paceline_packet::quic::StreamPiece;
use paceline_packet::rtp::RtpData;
use paceline_packet::{Extra, FlowId, Packet, TfrcData, TfrcMore, Transit};
use paceline_random::Stream;
use paceline_scenario::model::FlowModel;
use paceline_units::{Offset, Size, Span, Time};

/// The consumer of a receiver's data.
#[derive(Debug)]
enum Show {
    /// None.
    Nothing,
    /// The player of a stream.
    Player(Player),
    /// The viewer of an encoder's video.
    Viewer(Viewer),
    /// The same, with a jitter buffer.
    Buffer(Box<FrameBuffer>),
}

/// Observers of arriving packets, beside the receiver.
#[derive(Debug)]
struct Consumers {
    show: Show,
    /// Whether fillers are outside the media's sequence numbers.
    aside: bool,
    /// Transit times of frames, from their capture.
    transit: Transit,
    arrivals: Option<ArrivalMeter>,
    /// The client that requests what is shown.
    client: Option<Client>,
}

impl Consumers {
    /// Handles an arriving packet; `bytes` is the total received so far.
    #[cold]
    fn on_packet(&mut self, packet: &Packet, extra: Option<&Extra>, bytes: u64) {
        match (&mut self.show, extra) {
            (Show::Player(player), _) => player.on_delivery(packet.time, Size(bytes)),
            // With retransmissions, fillers have their own sequence numbers.
            (Show::Viewer(_) | Show::Buffer(_), Some(Extra::Rtp(data)))
                if self.aside && data.payload_type == RtpData::FILLER => {}
            (Show::Viewer(viewer), Some(Extra::Rtp(data))) => {
                let media = media(packet, data, &mut self.transit);
                let (MediaPacket { sequence, captured, last, .. }, timestamp) = (media, data.timestamp);
                viewer.on_packet(packet.time, &FramePacket { sequence, timestamp, last, captured });
            }
            (Show::Viewer(viewer), Some(Extra::TfrcData(_, TfrcData { more: TfrcMore::Frame(part), .. }))) => {
                let captured = self.transit.written(part.captured, packet.time);
                let (sequence, timestamp) = (packet.seq as u16, part.captured.0);
                viewer.on_packet(packet.time, &FramePacket { sequence, timestamp, last: part.last, captured });
            }
            (Show::Buffer(buffer), Some(Extra::Rtp(data))) => {
                buffer.on_packet(packet.time, &media(packet, data, &mut self.transit));
            }
            _ => {}
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.on_packet(packet, extra);
        }
    }
}

/// Shows frames that became complete at `now`.
fn show(now: Time, objects: impl Iterator<Item = Object>, consumers: &mut Option<Box<Consumers>>) {
    for object in objects.filter(|object| !object.reset) {
        if let Some(Consumers { show: Show::Viewer(viewer), transit, .. }) = consumers.as_deref_mut() {
            viewer.on_frame(now, transit.written(object.captured, now));
        }
    }
}

/// Describes a packet for the buffer; a retransmission is described as its original.
fn media(packet: &Packet, data: &RtpData, transit: &mut Transit) -> MediaPacket {
    let part = match RtpData::retransmitted_type(data.payload_type).unwrap_or(data.payload_type) {
        RtpData::KEY => Part::Key,
        RtpData::FILLER => Part::Filler,
        _ => Part::Delta,
    };
    let captured = transit.written(packet.stamp, packet.time);
    MediaPacket { sequence: data.original.unwrap_or(data.sequence), part, captured, last: data.marker }
}

/// A receiver with its player, if the flow carries a stream, or its viewer, if it carries an encoder's video.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sink {
    /// What the host writes on its packets: their flow, and the cursor of their first step.
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    /// Maximum host delay of each packet, in nanoseconds.
    pub(crate) delay: u32,
    consumers: Option<Box<Consumers>>,
    /// The transport machine's receiver.
    pub receiver: Receiver,
    /// Time of its entry in the host's timers: never later than [`Sink::next_wake`].
    pub(crate) entry: Time,
    /// When to request a key frame, or when the client next sends a request.
    app_wake: Time,
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
        let client = flow.client.clone();
        let entry = client.as_ref().and_then(Client::next_wake).unwrap_or(Time::NEVER);
        let consumers = (show.is_some() || flow.delays || client.is_some()).then(|| {
            let arrivals = flow.delays.then(|| ArrivalMeter::since(flow.start));
            let aside = matches!(&flow.transport, Transport::Rtp { config, .. } if config.nack);
            let transit = Transit::since(flow.start);
            Box::new(Consumers { show: show.unwrap_or(Show::Nothing), aside, transit, arrivals, client })
        });
        let delay = nanoseconds(flow.receiver_delay.first());
        Sink { entry, app_wake: entry, flow: id, cursor, delay, consumers, receiver: flow.transport.receiver(stream) }
    }

    /// When [`Sink::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.receiver.next_wake().min(self.app_wake)
    }

    /// As [`super::Source::set_entry`].
    #[inline(always)]
    pub(crate) fn set_entry(&mut self, now: Time) -> Time {
        self.entry = self.next_wake().max(now);
        self.entry
    }

    /// As [`super::Source::set_delay`].
    pub(crate) fn set_delay(&mut self, max_delay: Span) {
        self.delay = nanoseconds(max_delay);
    }

    /// The fast path for a data packet without a side record: see [`Receiver::on_data_in_order`]. Returns when
    /// [`Sink::on_timer`] is needed as a result. `None` means that nothing was done and [`Sink::on_data`] must take the
    /// packet.
    #[inline(always)]
    pub fn on_data_in_order(&mut self, packet: &Packet, out: &mut impl Transmit) -> Option<Time> {
        let ack = self.receiver.on_data_in_order(packet.time, packet)?;
        out.transmit(ack);
        if let Some(consumers) = &mut self.consumers {
            consumers.on_packet(packet, None, self.receiver.stats().bytes);
        }
        Some(Time::NEVER)
    }

    /// The fast path for stream data without an observer: see [`QuicReceiver::takes_in_order`]. Afterwards,
    /// [`Sink::rests`] returns what is left to do.
    #[inline]
    pub(crate) fn takes_piece(&mut self, packet: &Packet, piece: &StreamPiece) -> bool {
        let Receiver::Quic(quic) = &mut self.receiver else { return false };
        self.consumers.is_none() && quic.takes_in_order(packet.time, packet, piece)
    }

    /// When [`Sink::on_timer`] is needed after [`Sink::takes_piece`]. `None` means that the data must be acknowledged
    /// at once, by [`Sink::acknowledge_piece`].
    #[inline]
    pub(crate) fn rests(&self, now: Time) -> Option<Time> {
        let Receiver::Quic(quic) = &self.receiver else { return Some(Time::NEVER) };
        (!quic.owes(now)).then(|| quic.next_wake())
    }

    /// Acknowledges the received data. Returns what [`Sink::on_data`] does.
    #[inline]
    pub(crate) fn acknowledge_piece(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        let Receiver::Quic(quic) = &mut self.receiver else { return Time::NEVER };
        quic.acknowledge(now, out)
    }

    /// Handles a data packet, at its time; `extra` is its side record. Returns when [`Sink::on_timer`] is needed as a
    /// result.
    pub fn on_data(&mut self, packet: &Packet, extra: Option<Extra>, out: &mut impl Transmit) -> Time {
        let wake = self.receiver.on_data(packet.time, packet, extra.as_ref(), out);
        match &mut self.receiver {
            Receiver::Quic(quic) if quic.has_objects() && !quic.sends_requests() => {
                show(packet.time, quic.take_objects(), &mut self.consumers)
            }
            Receiver::Foreign(foreign) => show(packet.time, foreign.take_objects().into_iter(), &mut self.consumers),
            _ => {}
        }
        if let Some(consumers) = &mut self.consumers {
            consumers.on_packet(packet, extra.as_ref(), self.receiver.stats().bytes);
            if consumers.client.is_some() {
                self.answered(packet.time, out);
                return self.next_wake();
            }
            if let Show::Buffer(_) = consumers.show {
                self.request_key_frame(packet.time, out);
            }
        }
        match extra {
            // It owns nothing to free, and running `drop` would cost a check of its kind.
            Some(Extra::QuicStream(_)) => core::mem::forget(extra),
            None => {}
            Some(extra) => drop(extra),
        }
        wake.min(self.app_wake)
    }

    /// Handles data of a track that arrived on the bundle leader's connection.
    pub fn on_arrivals(&mut self, now: Time, arrivals: &TrackArrivals) {
        let Receiver::Track(track) = &mut self.receiver else { return };
        track.given(now, arrivals.bytes);
        if let Some(Show::Player(player)) = self.consumers.as_mut().map(|consumers| &mut consumers.show) {
            player.on_delivery(now, Size(arrivals.bytes));
        }
        show(now, arrivals.objects.iter().copied(), &mut self.consumers);
    }

    /// Call at the time given by [`Sink::next_wake`]; an earlier call does no harm.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.receiver.on_timer(now, out);
        if self.app_wake <= now {
            self.send_requests(now, out);
            self.request_key_frame(now, out);
        }
    }

    /// Passes received answers to the client, which may send further requests.
    #[cold]
    fn answered(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(client) = self.consumers.as_deref_mut().and_then(|consumers| consumers.client.as_mut()) else {
            return;
        };
        match &mut self.receiver {
            Receiver::Quic(quic) => quic.take_answers().for_each(|number| client.on_answer(now, number)),
            other => client.on_bytes(now, Size(other.stats().bytes)),
        }
        self.send_requests(now, out);
    }

    /// Sends the client's requests that are due.
    fn send_requests(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(Consumers { show, client: Some(client), .. }) = self.consumers.as_deref_mut() else { return };
        let held = match show {
            Show::Player(player) => player.buffered(now),
            _ => Span::ZERO,
        };
        while let Some(fresh) = client.next_request(now, held) {
            self.receiver.request(fresh, now, out);
        }
        self.app_wake = client.next_wake().unwrap_or(Time::NEVER);
    }

    /// Requests a key frame, if the buffer needs one.
    #[cold]
    fn request_key_frame(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(Consumers { show: Show::Buffer(buffer), .. }) = self.consumers.as_deref_mut() else { return };
        if buffer.take_key_request(now)
            && let Receiver::Rtp(rtp) = &mut self.receiver
        {
            rtp.request_key_frame(now, out);
        }
        self.app_wake = buffer.next_wake();
    }

    fn player(&self) -> Option<&Player> {
        match self.consumers.as_deref() {
            Some(Consumers { show: Show::Player(player), .. }) => Some(player),
            _ => None,
        }
    }

    /// Statistics of its requests, from the request to the last byte of the answer; `None` without a client.
    #[must_use]
    pub fn transfers(&self) -> Option<Transfers> {
        Some(self.consumers.as_deref()?.client.as_ref()?.transfers())
    }

    /// Buffered playing time; `None` without a player.
    #[must_use]
    pub fn buffered(&self, now: Time) -> Option<Span> {
        self.player().map(|player| player.buffered(now))
    }

    /// Whether the play-out is over; `None` without a player.
    #[must_use]
    pub fn player_is_done(&self, now: Time) -> Option<bool> {
        self.player().map(|player| player.is_done(now))
    }

    /// Results of the stream; `None` without a player.
    #[must_use]
    pub fn stream_report(&self, end: Time) -> Option<StreamReport> {
        self.player().map(|player| player.finish(end))
    }

    /// Results of the frames, watched until `end`; `None` without a viewer.
    #[must_use]
    pub fn view_report(&self, end: Time) -> Option<ViewReport> {
        match self.consumers.as_deref() {
            Some(Consumers { show: Show::Viewer(viewer), .. }) => Some(viewer.report(end)),
            Some(Consumers { show: Show::Buffer(buffer), .. }) => Some(buffer.report(end)),
            _ => None,
        }
    }

    /// Feedback sent since measuring began; `None` if the receiver is not RTP.
    #[must_use]
    pub fn feedback_sent(&self) -> Option<FeedbackSent> {
        match &self.receiver {
            Receiver::Rtp(rtp) => Some(rtp.feedback_sent()),
            _ => None,
        }
    }

    /// Delays and interarrival times of packets; `None` if they are not measured.
    #[must_use]
    pub fn arrival_report(&self) -> Option<&ArrivalReport> {
        self.consumers.as_deref()?.arrivals.as_ref().map(ArrivalMeter::report)
    }

    /// A row of the recording of arrivals ([`ArrivalMeter::sample`]); `None` if they are not measured.
    pub fn sample_arrivals(&mut self) -> Option<[f64; 4]> {
        self.consumers.as_deref_mut()?.arrivals.as_mut().map(ArrivalMeter::sample)
    }

    /// A row of the recording of frames ([`Viewer::sample`]); `None` without a viewer.
    pub fn sample_frames(&mut self, now: Time) -> Option<[f64; 4]> {
        match &mut self.consumers.as_deref_mut()?.show {
            Show::Viewer(viewer) => Some(viewer.sample(now)),
            Show::Buffer(buffer) => Some(buffer.sample(now)),
            Show::Nothing | Show::Player(_) => None,
        }
    }

    /// Minimum delay of a frame that was complete, or could be decoded; `None` without any.
    #[must_use]
    pub fn min_frame_delay(&self) -> Option<Offset> {
        match &self.consumers.as_deref()?.show {
            Show::Viewer(viewer) => viewer.min_delay(),
            Show::Buffer(buffer) => buffer.min_delay(),
            Show::Nothing | Show::Player(_) => None,
        }
    }

    /// Starts measuring: arrivals from `at`, which is now, and frames `captured` then or later.
    pub fn measure_from(&mut self, at: Time, captured: Offset) {
        if let Receiver::Rtp(rtp) = &mut self.receiver {
            rtp.count_feedback_from_here();
        }
        let Some(consumers) = self.consumers.as_deref_mut() else { return };
        match &mut consumers.show {
            Show::Viewer(viewer) => viewer.measure_from(at, captured),
            Show::Buffer(buffer) => buffer.measure_from(at, captured),
            Show::Nothing | Show::Player(_) => {}
        }
        consumers.arrivals.iter_mut().for_each(ArrivalMeter::measure_from_here);
        consumers.client.iter_mut().for_each(Client::measure_from_here);
    }
}
