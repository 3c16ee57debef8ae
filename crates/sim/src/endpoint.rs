//! The two ends of a flow inside a host: a sender with its application, a receiver with its player or viewer.

use crate::build::Folded;
use crate::host::{EmissionClock, Port};
use crate::model::FlowModel;
use paceline_apps::player::{Player, StreamReport};
use paceline_apps::viewer::{FramePacket, ViewReport, Viewer};
use paceline_apps::{Action, Source as App, Transfers};
use paceline_engine::Network;
use paceline_engine::random::Stream;
use paceline_flow::{Receiver, Sender, Transmit};
use paceline_packet::{Extra, ExtraId, FlowId, Packet};
use paceline_units::{Size, Span, Time};

/// A sender with its application.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Source {
    /// When its entry in the host's timers lies: never later than [`Source::next_wake`].
    pub(crate) entry: Time,
    flow: FlowId,
    cursor: u32,
    /// Whether the application wants to know when everything is acknowledged.
    curious: bool,
    /// The machine's half of it.
    pub sender: Sender,
    /// When the application next does something of itself.
    app_wake: Time,
    started: bool,
    stopped: bool,
    app: Box<App>,
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

    /// Transfers and frames count from `at` on.
    pub fn measure_from(&mut self, at: Time) {
        self.app.measure_from(at);
    }

    /// An acknowledgement has come. Returns when [`Source::on_timer`] is needed on its account: what the application had
    /// wanted before stands in [`Source::entry`] already.
    #[inline(always)]
    pub fn on_ack(&mut self, packet: &Packet, network: &mut Network<Folded>, clock: &mut EmissionClock) -> Time {
        let (now, flow, cursor) = (packet.time, self.flow, self.cursor);
        if packet.extra == ExtraId::NONE
            && let Some((burst, wake)) = self.sender.on_ack_in_order(now, packet)
        {
            burst.for_each(|segment| Port { network, clock, now, flow, cursor }.transmit(segment));
            if self.curious && self.sender.acked_all() {
                return self.done(now, &mut Port { network, clock, now, flow, cursor });
            }
            return wake;
        }
        self.on_ack_out_of_line(packet, network, clock)
    }

    #[inline(never)]
    fn on_ack_out_of_line(
        &mut self,
        packet: &Packet,
        network: &mut Network<Folded>,
        clock: &mut EmissionClock,
    ) -> Time {
        let extra = network.extras.take(packet.extra);
        let mut port = Port { network, clock, now: packet.time, flow: self.flow, cursor: self.cursor };
        let wake = self.sender.on_ack(packet.time, packet, extra.as_ref(), &mut port);
        if let Some(extra) = extra {
            drop(extra);
        }
        if self.curious && self.sender.acked_all() {
            return self.done(packet.time, &mut port);
        }
        wake
    }

    /// Everything is acknowledged, which the application wants to know. Returns what [`Source::next_wake`] says then.
    #[cold]
    #[inline(never)]
    fn done(&mut self, now: Time, port: &mut Port<'_>) -> Time {
        self.ask_app(now, port);
        self.next_wake()
    }

    /// The time that [`Source::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let mut port = Port { network, clock, now, flow: self.flow, cursor: self.cursor };
        if self.app_wake <= now {
            self.ask_app(now, &mut port);
        }
        self.sender.on_timer(now, &mut port);
    }

    /// Carries out what the application wants, until it wants nothing more for now.
    #[cold]
    fn ask_app(&mut self, now: Time, port: &mut Port<'_>) {
        if !self.started {
            self.started = true;
            self.sender.start(now, port);
        }
        if let Some(target) = self.sender.target() {
            self.app.aim(target, now);
        }
        loop {
            match self.app.next_action(now, Size(self.sender.stats().bytes_acked)) {
                Action::Wait => break,
                Action::Send(size) => self.sender.supply(size.bytes(), now, port),
                Action::Endless => self.sender.supply_endless(now, port),
                Action::Restart(size) => {
                    self.sender.restart(now);
                    self.sender.supply(size.bytes(), now, port);
                    self.sender.start(now, port);
                }
                Action::Stop => {
                    self.sender.stop();
                    self.stopped = true;
                    break;
                }
            }
        }
        self.app_wake = self.app.next_wake().unwrap_or(Time::NEVER);
    }
}

/// What a receiver gives its data to.
#[derive(Debug)]
enum Screen {
    /// The player of a stream.
    Player(Player),
    /// The viewer of an encoder's video.
    Viewer(Viewer),
}

impl Screen {
    /// A packet has come, of what is `bytes` in all by now.
    #[cold]
    fn on_packet(&mut self, packet: &Packet, extra: Option<&Extra>, bytes: u64) {
        match (self, extra) {
            (Screen::Player(player), _) => player.on_delivery(packet.time, Size(bytes)),
            (Screen::Viewer(viewer), Some(Extra::Rtp(data))) => {
                let captured = packet.time - packet.stamp.elapsed(packet.time);
                let (sequence, timestamp, last) = (data.sequence, data.timestamp, data.marker);
                viewer.on_packet(packet.time, &FramePacket { sequence, timestamp, last, captured });
            }
            _ => {}
        }
    }
}

/// A receiver with its player, if the flow carries a stream, or its viewer, if it carries an encoder's video.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sink {
    flow: FlowId,
    cursor: u32,
    screen: Option<Box<Screen>>,
    /// The machine's half of it.
    pub receiver: Receiver,
    /// When its entry in the host's timers lies: never later than [`Sink::next_wake`].
    pub(crate) entry: Time,
}

impl Sink {
    /// The sink of a flow; its acknowledgements start with `cursor`.
    #[must_use]
    pub fn new(flow: &FlowModel, seed: u64, id: FlowId, cursor: u32) -> Sink {
        let stream = Stream::new(seed, &format!("receiver {}", flow.label()));
        let player = flow.stream.map(|model| Screen::Player(Player::new(model, flow.start)));
        let viewer = flow.app.frames().map(|_| Screen::Viewer(Viewer::default()));
        let screen = player.or(viewer).map(Box::new);
        Sink { entry: Time::NEVER, flow: id, cursor, screen, receiver: flow.transport.receiver(stream) }
    }

    /// When [`Sink::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.receiver.next_wake()
    }

    /// A data packet has come. Returns when [`Sink::on_timer`] is needed on its account.
    #[inline(always)]
    pub fn on_data(&mut self, packet: &Packet, network: &mut Network<Folded>, clock: &mut EmissionClock) -> Time {
        let (now, flow, cursor) = (packet.time, self.flow, self.cursor);
        if packet.extra == ExtraId::NONE
            && let Some(ack) = self.receiver.on_data_in_order(now, packet)
        {
            Port { network, clock, now, flow, cursor }.transmit(ack);
            if let Some(screen) = &mut self.screen {
                screen.on_packet(packet, None, self.receiver.stats().bytes);
            }
            return Time::NEVER;
        }
        self.on_data_out_of_line(packet, network, clock)
    }

    #[inline(never)]
    fn on_data_out_of_line(
        &mut self,
        packet: &Packet,
        network: &mut Network<Folded>,
        clock: &mut EmissionClock,
    ) -> Time {
        let extra = network.extras.take(packet.extra);
        let mut port = Port { network, clock, now: packet.time, flow: self.flow, cursor: self.cursor };
        let wake = self.receiver.on_data(packet.time, packet, extra.as_ref(), &mut port);
        if let Some(screen) = &mut self.screen {
            screen.on_packet(packet, extra.as_ref(), self.receiver.stats().bytes);
        }
        if let Some(extra) = extra {
            drop(extra);
        }
        wake
    }

    /// The time that [`Sink::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let mut port = Port { network, clock, now, flow: self.flow, cursor: self.cursor };
        self.receiver.on_timer(now, &mut port);
    }

    fn player(&self) -> Option<&Player> {
        match self.screen.as_deref() {
            Some(Screen::Player(player)) => Some(player),
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

    /// What became of the frames; `None` without a viewer.
    #[must_use]
    pub fn view_report(&self) -> Option<ViewReport> {
        match self.screen.as_deref() {
            Some(Screen::Viewer(viewer)) => Some(viewer.report()),
            _ => None,
        }
    }

    /// Frames count from `at` on.
    pub fn measure_from(&mut self, at: Time) {
        if let Some(Screen::Viewer(viewer)) = self.screen.as_deref_mut() {
            viewer.measure_from(at);
        }
    }
}
