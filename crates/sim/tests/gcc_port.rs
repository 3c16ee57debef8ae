//! GCC beside a line-by-line port of libwebrtc's (crate goog_cc 0.1.4, of December 2024), both as a flow's controller in the same
//! scenarios: what is around them (encoder, pacer, feedback, queues, what else is on the link) is one and the same. The port with
//! its settings of then, and with those of January 2026, which are ours.

#[path = "../../control/tests/gcc_port/controller.rs"]
mod controller;
#[path = "../../control/tests/gcc_port/port.rs"]
mod port;

use controller::{Decides, Feedback, PacketResult, SECOND, Sent};
use goog_cc::LossBasedBweV2Config;
use paceline_control::foreign::{Foreign, Maker, Media};
use paceline_control::rtp::{self, Fate, MediaController, Probe, RtpEvent, RtpSettings, SentPacket};
use paceline_control::{Build, Controller, Gauges, Machine, PathView, Profile, Scheme};
use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, simulate};
use paceline_units::{Rate, Size, Time};
use port::{Port, of_2026};
use std::cell::RefCell;

/// libwebrtc takes zero for no time.
const BEGIN: u64 = 1000 * SECOND;

thread_local! {
    /// The ports of this thread: a controller may pass from thread to thread, the port may not, and runs of a test do not.
    static PORTS: RefCell<Vec<Port>> = const { RefCell::new(Vec::new()) };
}

/// One of them as a flow's controller.
struct Hosted(usize);

impl Hosted {
    fn new(settings: LossBasedBweV2Config) -> Hosted {
        PORTS.with_borrow_mut(|ports| {
            ports.push(Port::new(settings));
            Hosted(ports.len() - 1)
        })
    }

    fn port<T>(&self, of: impl FnOnce(&mut Port) -> T) -> T {
        PORTS.with_borrow_mut(|ports| of(&mut ports[self.0]))
    }
}

fn sent(packet: &SentPacket, at: Time) -> Sent {
    Sent { number: packet.number, at: BEGIN + at.0, size: packet.size.bytes(), cluster: packet.probe }
}

impl Controller for Hosted {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, event: &RtpEvent, path: &PathView) {
        let now = BEGIN + path.now.0;
        match event {
            RtpEvent::Started(_) => self.port(|port| port.start(now)),
            RtpEvent::Tick => self.port(|port| port.process(now)),
            RtpEvent::Sent { packet, in_flight } => {
                self.port(|port| port.sent(&sent(packet, path.now), in_flight.bytes()));
            }
            RtpEvent::Arrivals(arrivals) => {
                let arrived = |fate: &Fate| match fate {
                    Fate::Arrived { at, .. } => at.map(|at| BEGIN + at.0),
                    Fate::Lost | Fate::Unknown => None,
                };
                let result =
                    |p: &rtp::PacketResult| PacketResult { sent: sent(&p.packet, p.sent), arrived: arrived(&p.fate) };
                let packets = arrivals.packets.iter().map(result).collect();
                let rtt = arrivals.rtt.unwrap_or(path.srtt).0;
                let feedback = Feedback { packets, rtt, in_flight: arrivals.in_flight.bytes() };
                // the port panics on a report of losses alone
                if feedback.packets.iter().any(|packet| packet.arrived.is_some()) {
                    self.port(|port| port.feedback(&feedback, now));
                }
            }
            RtpEvent::Frame { .. } | RtpEvent::Report(_) | RtpEvent::Silence => {}
        }
    }

    fn gauges(&self, _to: &mut dyn Gauges) {}
}

impl MediaController for Hosted {
    fn rate(&self) -> f64 {
        self.port(|port| port.rates()).pacer / 8.0
    }
    fn target(&self) -> Option<Rate> {
        Some(Rate(self.port(|port| port.rates()).encoder as u64))
    }
    fn padding_rate(&self) -> f64 {
        self.port(|port| port.rates()).padding / 8.0
    }
    fn next_probe(&mut self) -> Option<Probe> {
        let order = self.port(Decides::order)?;
        let bytes = Size::from_bytes(order.bytes);
        Some(Probe { id: order.id, rate: Rate(order.rate as u64), bytes, packets: order.packets })
    }
    fn settings(&self) -> RtpSettings {
        ours()
    }
}

/// What `gcc` asks of its machine.
fn ours() -> RtpSettings {
    let gcc = paceline_control::gcc::Gcc::build(Profile::Rfc, &defaults());
    gcc.settings()
}

fn defaults() -> Vec<f64> {
    paceline_control::gcc::Gcc::SCHEMES[0].parameters.iter().map(|parameter| parameter.default[0]).collect()
}

fn port(name: &'static str, settings: fn() -> LossBasedBweV2Config) -> &'static Scheme {
    let make =
        move |_: &paceline_control::foreign::ControllerArgs, _| Ok(Box::new(Hosted::new(settings())) as Box<Media>);
    let maker = Maker::Media(Box::new(make), ours());
    Box::leak(Box::new(Scheme {
        name,
        summary: "a port of libwebrtc's",
        source: "crate goog_cc 0.1.4",
        machine: Machine::Rtp,
        parameters: &[],
        foreign: Some(Box::leak(Box::new(Foreign { gauges: Vec::new(), maker }))),
    }))
}

/// Goodputs in kbit/s of the call and of what is beside it, the mean of `runs`.
fn goodputs(schemes: &[&'static Scheme], text: &str, runs: u64) -> Vec<f64> {
    let document = Document::parse(text, "gcc.toml").unwrap();
    let scenario = Scenario::check_with(&document, &mut |_| Err("none".into()), schemes);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut sum = Vec::new();
    for seed in 1..=runs {
        let flows = simulate(&scenario, seed, &RunOptions::default()).unwrap().summary.flows;
        sum.resize(flows.len(), 0.0);
        sum.iter_mut().zip(&flows).for_each(|(sum, flow)| *sum += flow.goodput_bps / 1e3 / runs as f64);
    }
    sum
}

/// Means of five runs; a run beside Reno has from 100 to 230 kbit/s.
#[test]
fn the_same_scenarios_give_the_same_rates() {
    let schemes = [port("port-2024", LossBasedBweV2Config::default), port("port-2026", of_2026)];
    let bulk = |cc: &str| format!("[flow.bulk]\ncc = \"{cc}\"\nprofile = \"linux\"\n");
    for (name, link, beside, within) in [
        ("alone", "rate = \"1 Mbit/s\"", String::new(), 0.005),
        ("2 % lost", "rate = \"3 Mbit/s\"\nloss = { rate = \"2 %\", on = \"data\" }", String::new(), 0.01),
        ("two", "rate = \"2 Mbit/s\"", "two".to_owned(), 0.06),
        ("beside CUBIC", "rate = \"2 Mbit/s\"", bulk("cubic"), 0.1),
        ("beside Reno", "rate = \"2 Mbit/s\"", bulk("newreno"), 0.2),
    ] {
        let of = |cc: &str| {
            let params = if cc == "gcc" { "params = { pushback = false }\n" } else { "" };
            let call = format!("cc = \"{cc}\"\n{params}app = {{ kind = \"encoder\", max_rate = \"2.5 Mbit/s\" }}\n");
            let beside = if beside == "two" { format!("[flow.b]\n{call}start = \"5 s\"\n") } else { beside.clone() };
            let text = format!(
                "duration = \"120 s\"\nwarmup = \"30 s\"\n[link.bottleneck]\n{link}\ndelay = \"50 ms\"\n\
                 queue = {{ kind = \"droptail\", limit = \"300 ms\" }}\nbackward = {{ rate = \"100 Mbit/s\" }}\n\
                 {beside}[flow.call]\n{call}"
            );
            goodputs(&schemes, &text, 5)
        };
        let (ours, then, now) = (of("gcc"), of("port-2024"), of("port-2026"));
        println!("{name}: {ours:?}, the port {then:?} in 2024, {now:?} in 2026");
        for ((ours, then), now) in ours.iter().zip(then).zip(now) {
            let (least, most) = (then.min(now) * (1.0 - within), then.max(now) * (1.0 + within));
            assert!((least..=most).contains(ours), "{name}: {ours} kbit/s, the port {then} and {now}");
        }
    }
}
