//! A controller told event by event, without a machine around it.

#![allow(missing_docs, dead_code)] // each test uses what it needs

use paceline_control::{
    Controller, GaugeUnit, Gauges, PathView, Profile, TcpController, TcpEvent, WindowController, registry,
};
use paceline_units::{Span, Time};

pub const LOST: TcpEvent = TcpEvent::Lost { duplicates: 0, again: false };

pub fn controller(scheme: &str, profile: Profile) -> TcpController {
    TcpController::new(registry::scheme(scheme).unwrap(), profile, &[]).unwrap()
}

/// A path at that time, with that round trip and so many segments in flight.
pub fn path(at_s: f64, rtt_ms: u64, in_flight: u32) -> PathView {
    PathView {
        now: Time::from_secs_f64(at_s),
        srtt: Span::from_millis(rtt_ms),
        rttvar: Span::ZERO,
        min_rtt: Span::from_millis(rtt_ms),
        in_flight,
        acked: 100,
        next: 100 + in_flight,
        receive_window: 10_000,
        segment: 1000,
    }
}

/// An acknowledgement of `segments` while the window is in use.
pub fn acked(controller: &mut TcpController, segments: u32, at_s: f64, rtt_ms: u64) {
    let in_flight = controller.window() as u32;
    let event = TcpEvent::Acked { segments, in_flight, rtt: Some(Span::from_millis(rtt_ms)) };
    controller.on_feedback(&event, &path(at_s, rtt_ms, in_flight));
}

#[derive(Default)]
struct Read(Vec<(&'static str, f64)>);

impl Gauges for Read {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        self.0.push((name, value));
    }
}

pub fn gauge(controller: &TcpController, name: &str) -> f64 {
    let mut read = Read::default();
    controller.gauges(&mut read);
    read.0.iter().find(|(n, _)| *n == name).unwrap().1
}

/// The same to nine digits.
#[track_caller]
pub fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a}, expected {b}");
}
