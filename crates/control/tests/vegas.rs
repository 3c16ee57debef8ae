//! Vegas' law, event by event.

use paceline_control::{Controller, GaugeUnit, Gauges, PathView, Profile, TcpController, TcpEvent, registry};
use paceline_units::{Span, Time};

fn path(next: u32) -> PathView {
    PathView {
        now: Time::from_secs_f64(1.0),
        srtt: Span::from_millis(50),
        rttvar: Span::ZERO,
        min_rtt: Span::from_millis(50),
        in_flight: 10,
        acked: next - 10,
        next,
        receive_window: 10_000,
        segment: 1000,
    }
}

#[derive(Default)]
struct Base(f64);

impl Gauges for Base {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        if name == "base_rtt" {
            self.0 = value;
        }
    }
}

/// Linux measures the path anew after a pause (`tcp_vegas_cwnd_event`).
#[test]
fn linux_makes_the_base_anew_after_a_pause() {
    for pause in [TcpEvent::Resumed { idle: Span::from_secs(1) }, TcpEvent::Idle { window: 10.0 }] {
        let mut vegas = TcpController::new(registry::scheme("vegas").unwrap(), Profile::Linux, &[]).unwrap();
        let base = |vegas: &TcpController| {
            let mut base = Base::default();
            vegas.gauges(&mut base);
            base.0
        };
        let acked = |rtt| TcpEvent::Acked { segments: 1, in_flight: 10, rtt: Some(Span::from_millis(rtt)) };
        vegas.on_feedback(&TcpEvent::Established { window: 10.0 }, &path(20));
        vegas.on_feedback(&acked(40), &path(30));
        vegas.on_feedback(&acked(90), &path(40));
        // tcp_vegas_pkts_acked adds a microsecond.
        assert!((base(&vegas) - 0.040_001).abs() < 1e-9);
        vegas.on_feedback(&pause, &path(50));
        vegas.on_feedback(&acked(90), &path(60));
        assert!((base(&vegas) - 0.090_001).abs() < 1e-9, "{pause:?}");
    }
}
