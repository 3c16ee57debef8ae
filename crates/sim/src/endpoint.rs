//! The two ends of a flow inside a host: a sender with its application, a receiver with its player.

use crate::build::Folded;
use crate::host::{EmissionClock, Port};
use crate::model::{AppModel, FlowModel};
use paceline_engine::Network;
use paceline_engine::random::Stream;
use paceline_flow::tcp::{TcpReceiver, TcpSender};
use paceline_packet::{FlowId, Packet};
use paceline_units::{Span, Time};

/// A sender with its application.
#[derive(Debug)]
pub struct Source {
    /// TCP's half of it.
    pub sender: TcpSender,
    flow: FlowId,
    cursor: u32,
    /// When the application next does something of itself: starts, writes, stops.
    app_wake: Time,
    app: Sending,
    start: Time,
    stop: Time,
}

/// The state of an application.
#[derive(Debug)]
enum Sending {
    /// Not started; then this.
    Waiting(AppModel),
    /// Everything has been handed over.
    HandedOver,
    /// Stopped by the scenario.
    Stopped,
}

impl Source {
    /// The source of a flow; its packets start with `cursor`.
    #[must_use]
    pub fn new(flow: &FlowModel, seed: u64, id: FlowId, cursor: u32) -> Source {
        let stream = Stream::new(seed, &format!("sender {}", flow.label()));
        Source {
            sender: TcpSender::new(&flow.tcp, flow.controller.clone(), stream),
            flow: id,
            cursor,
            app_wake: flow.start,
            app: Sending::Waiting(flow.app.clone()),
            start: flow.start,
            stop: flow.stop,
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
    pub fn has_started(&self, now: Time) -> bool {
        self.start <= now
    }

    /// Whether all that the application will ever send has been delivered.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.app, Sending::HandedOver | Sending::Stopped) && self.sender.acked_all()
    }

    /// An acknowledgement has come.
    #[inline(always)]
    pub fn on_ack(&mut self, packet: &Packet, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let extra = network.extras.take(packet.extra);
        let mut port = Port { network, clock, now: packet.time, flow: self.flow, cursor: self.cursor };
        self.sender.on_ack(packet.time, packet, extra.as_ref(), &mut port);
    }

    /// The time that [`Source::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let mut port = Port { network, clock, now, flow: self.flow, cursor: self.cursor };
        if self.app_wake <= now {
            self.app_timer(now, &mut port);
        }
        self.sender.on_timer(now, &mut port);
    }

    fn app_timer(&mut self, now: Time, port: &mut Port<'_>) {
        if let Sending::Waiting(app) = &self.app {
            let app = app.clone();
            self.sender.start(now, port);
            self.app = match app {
                AppModel::Ftp(None) => {
                    self.sender.supply_endless(now, port);
                    Sending::HandedOver
                }
                AppModel::Ftp(Some(size)) => {
                    self.sender.supply(size.bytes(), now, port);
                    Sending::HandedOver
                }
            };
        }
        self.app_wake = self.stop;
        if self.stop <= now {
            self.sender.stop();
            self.app = Sending::Stopped;
            self.app_wake = Time::NEVER;
        }
    }
}

/// A receiver with its player, if the flow carries a stream.
#[derive(Debug)]
pub struct Sink {
    /// TCP's half of it.
    pub receiver: TcpReceiver,
    flow: FlowId,
    cursor: u32,
}

impl Sink {
    /// The sink of a flow; its acknowledgements start with `cursor`.
    #[must_use]
    pub fn new(flow: &FlowModel, id: FlowId, cursor: u32) -> Sink {
        Sink { receiver: TcpReceiver::new(&flow.tcp), flow: id, cursor }
    }

    /// When [`Sink::on_timer`] is needed next.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.receiver.next_wake()
    }

    /// A data packet has come.
    #[inline(always)]
    pub fn on_data(&mut self, packet: &Packet, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let mut port = Port { network, clock, now: packet.time, flow: self.flow, cursor: self.cursor };
        self.receiver.on_data(packet.time, packet, &mut port);
    }

    /// The time that [`Sink::next_wake`] named has come, or an earlier one.
    pub fn on_timer(&mut self, now: Time, network: &mut Network<Folded>, clock: &mut EmissionClock) {
        let mut port = Port { network, clock, now, flow: self.flow, cursor: self.cursor };
        self.receiver.on_timer(now, &mut port);
    }

    /// How much playing time the player holds; `None` without a player.
    #[must_use]
    pub fn buffered(&mut self, _now: Time) -> Option<Span> {
        None
    }
}
