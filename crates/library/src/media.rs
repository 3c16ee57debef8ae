//! A controller for RTP's machine.

use crate::abi::{Media as Decided, NONE, Packet, RtpEvent as Event};
use crate::state::{Known, State, or_none, path};
use core::ptr::null;
use paceline_control::foreign::{ControllerArgs, Media};
use paceline_control::{
    Controller, Fate, Gauges, Interval, MediaController, PacketResult, PathView, RtpEvent, RtpSettings, SentPacket,
};
use paceline_random::Stream;
use paceline_units::{Rate, Size};

struct Own {
    state: State,
    settings: RtpSettings,
    decided: Decided,
    /// The packets of an event; kept to reuse the memory.
    packets: Vec<Packet>,
}

/// SAFETY: `failed` is the only pointer, to a text that lives as long as the library; the state owns its memory.
unsafe impl Send for Own {}

/// A new controller.
pub fn new(known: &'static Known, settings: RtpSettings, args: &ControllerArgs, stream: Stream) -> Box<Media> {
    let decided = Decided { rate: 1.0, target: 0.0, filling: 0.0, window: NONE, failed: null() };
    Box::new(Own { state: State::new(known, args, stream), settings, decided, packets: Vec::new() })
}

fn limited(interval: Interval) -> u32 {
    (interval == Interval::DataLimited).into()
}

fn packet(of: &SentPacket) -> Packet {
    Packet {
        sent: 0,
        arrived: NONE,
        number: of.number,
        size: of.size.bytes() as u32,
        payload: of.payload.bytes() as u32,
        fate: 3,
        marked: 0,
        ends_frame: of.ends_frame.into(),
    }
}

fn fate(of: &PacketResult) -> Packet {
    let (fate, arrived, marked) = match of.fate {
        Fate::Arrived { at, marked } => (1, at.map_or(NONE, |at| at.0), marked.into()),
        Fate::Lost => (2, NONE, 0),
        Fate::Unknown => (3, NONE, 0),
    };
    Packet { sent: of.sent.0, arrived, fate, marked, ..packet(&of.packet) }
}

impl Own {
    /// The event as a C struct; its packets are in `self`.
    fn event(&mut self, feedback: &RtpEvent) -> Event {
        const EVENT: Event = Event {
            kind: 0,
            data_limited: 0,
            rtt: NONE,
            since: 0,
            time: 0,
            waiting: 0,
            size: 0,
            backlog: 0,
            in_flight: 0,
            loss: 0.0,
            bottleneck: 0.0,
            packets: null(),
            packet_count: 0,
        };
        self.packets.clear();
        let event = match feedback {
            RtpEvent::Started(session) => {
                Event { kind: 1, size: session.packet.bytes(), time: session.interval.0, ..EVENT }
            }
            RtpEvent::Report(report) => Event {
                kind: 2,
                loss: report.loss.0,
                rtt: or_none(report.rtt),
                since: report.since.0,
                bottleneck: report.bottleneck.map_or(0.0, |rate| rate.bps() / 8.0),
                data_limited: limited(report.interval),
                ..EVENT
            },
            RtpEvent::Arrivals(arrivals) => {
                self.packets.extend(arrivals.packets.iter().map(fate));
                Event {
                    kind: 3,
                    rtt: or_none(arrivals.rtt),
                    since: arrivals.since.0,
                    backlog: arrivals.backlog.bytes(),
                    waiting: arrivals.waiting.0,
                    in_flight: arrivals.in_flight.bytes(),
                    data_limited: limited(arrivals.interval),
                    ..EVENT
                }
            }
            RtpEvent::Silence => Event { kind: 4, ..EVENT },
            RtpEvent::Tick => Event { kind: 5, ..EVENT },
            RtpEvent::Frame { size } => Event { kind: 6, size: size.bytes(), ..EVENT },
            RtpEvent::Sent { packet: sent, in_flight } => {
                self.packets.push(packet(sent));
                Event { kind: 7, in_flight: in_flight.bytes(), ..EVENT }
            }
        };
        Event { packets: self.packets.as_ptr(), packet_count: self.packets.len() as u64, ..event }
    }
}

impl Controller for Own {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, view: &PathView) {
        let (event, path) = (self.event(feedback), path(view));
        if let Some(call) = self.state.known.of.on_rtp {
            // SAFETY: the state belongs to this library; event, packets, path and decision outlive the call, which
            // keeps no pointer.
            unsafe { call(self.state.get(), &raw const event, &raw const path, &raw mut self.decided) };
        }
        let Decided { rate, target, filling, failed, .. } = self.decided;
        let usable = rate > 0.0 && [rate, target, filling].iter().all(|rate| (0.0..1e15).contains(rate));
        if !usable || !failed.is_null() {
            let wrong =
                format!("rate = {rate}, target = {target}, filling = {filling}: finite, the rate more than 0 B/s");
            self.state.fail(view.now, failed, &wrong);
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.decided.rate * 8.0);
        self.state.gauges(to);
    }
}

impl MediaController for Own {
    fn rate(&self) -> f64 {
        self.decided.rate
    }

    fn target(&self) -> Option<Rate> {
        (self.decided.target > 0.0).then(|| Rate::from_bps((self.decided.target * 8.0) as u64))
    }

    fn settings(&self) -> RtpSettings {
        self.settings
    }

    fn window(&self) -> Option<Size> {
        (self.decided.window != NONE).then(|| Size::from_bytes(self.decided.window))
    }

    fn padding_rate(&self) -> f64 {
        self.decided.filling
    }
}
