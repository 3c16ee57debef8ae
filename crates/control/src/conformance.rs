//! Conformance of controllers: events with extreme values, in any order that a machine could send them in. For
//! `paceline conform`, and for the tests of compiled-in controllers.

use crate::rtp::{
    Arrivals, Fate, MediaController, PacketResult, RtpEvent, RtpFeedback, RtpReport, RtpSession, SentPacket,
};
use crate::{
    Controller, GaugeUnit, Gauges, Interval, LostSegment, Machine, ParameterError, PathView, Profile, RateController,
    RateSample, RtpController, Scheme, TcpController, TcpEvent, TfrcController, TfrcEvent, TfrcReport, Threshold,
    WindowController,
};
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// An output of a controller that no machine can use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// It could not be made.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Its output after an event was invalid.
    #[error("after event {number}, {event}: {wrong}")]
    Nonsense {
        /// The event's number, from 1.
        number: u32,
        /// The event.
        event: String,
        /// What was wrong.
        wrong: String,
    },
}

/// Random draws of extreme values.
struct Draws(Sequence);

impl Draws {
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[((self.0.unit() * of.len() as f64) as usize).min(of.len() - 1)]
    }

    fn span(&mut self) -> Span {
        self.one_of(&[
            Span(1),
            Span(1_000),
            Span::from_millis(1),
            Span::from_millis(50),
            Span::from_secs(1),
            Span::from_secs(100),
            Span::from_secs(100_000),
        ])
    }

    fn rtt(&mut self) -> Option<Span> {
        let rtt = self.span();
        self.one_of(&[None, Some(rtt), Some(rtt)])
    }

    fn count(&mut self) -> u32 {
        self.one_of(&[1, 1, 2, 3, 1000, 1_000_000])
    }

    fn window(&mut self) -> f64 {
        self.one_of(&[1.0, 2.0, 10.0, 1e4, 1e6])
    }

    fn is(&mut self) -> bool {
        self.0.unit() < 0.5
    }

    fn interval(&mut self) -> Interval {
        self.one_of(&[Interval::Used, Interval::DataLimited])
    }
}

/// A path with time that only moves forward.
struct Scripted {
    view: PathView,
    draws: Draws,
}

impl Scripted {
    fn new(seed: u64) -> Scripted {
        let view = PathView {
            now: Time::ZERO,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min_rtt: Span::ZERO,
            in_flight: 0,
            acked: 0,
            next: 0,
            receive_window: u32::MAX,
            segment: 1000,
        };
        Scripted { view, draws: Draws(Sequence::new(Stream::new(seed, "conformance"))) }
    }

    /// Advances time and changes the machine's state.
    fn goes_on(&mut self) {
        let step = self.draws.one_of(&[Span::ZERO, Span(1), Span(1), Span::from_millis(1), Span::from_millis(20)]);
        let step = if self.draws.0.unit() < 0.01 { self.draws.span() } else { step };
        let (srtt, count) = (self.draws.span(), self.draws.count());
        let view = &mut self.view;
        view.now += step;
        view.srtt = srtt;
        view.rttvar = Span(srtt.0 / 2);
        view.min_rtt = if view.min_rtt == Span::ZERO { srtt } else { view.min_rtt.min(srtt) };
        view.acked = view.acked.saturating_add(self.draws.one_of(&[0, 1, 2, 1000])).min(u32::MAX / 2);
        view.in_flight = self.draws.one_of(&[0, 1, count]);
        view.next = view.acked.saturating_add(view.in_flight);
    }
}

/// Collects the names and units of gauges.
struct Named(Vec<(&'static str, GaugeUnit)>);

impl Gauges for Named {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, _value: f64) {
        self.0.push((name, unit));
    }
}

fn names<C: Controller>(of: &C) -> Vec<(&'static str, GaugeUnit)> {
    let mut named = Named(Vec::new());
    of.gauges(&mut named);
    named.0
}

/// Feeds `events` extreme events to a new controller of `scheme`.
///
/// # Errors
/// An output that no machine can use.
///
/// # Panics
/// If the controller panics. A foreign one that fails unwinds with a [`Failure`](crate::Failure).
pub fn extremes(scheme: &Scheme, profile: Profile, seed: u64, events: u32) -> Result<(), Unfit> {
    let mut scripted = Scripted::new(seed);
    match scheme.machine {
        Machine::Tcp(_) => window(TcpController::new(scheme, profile, &[])?, &mut scripted, events),
        Machine::Tfrc => rate(TfrcController::new(scheme, profile, &[])?, &mut scripted, events),
        Machine::Rtp => media(RtpController::new(scheme, profile, &[])?, &mut scripted, events),
        Machine::Acks | Machine::Udp => Ok(()),
    }
}

fn unfit(number: u32, event: &impl core::fmt::Debug, wrong: String) -> Result<(), Unfit> {
    Err(Unfit::Nonsense { number, event: format!("{event:?}"), wrong })
}

fn window(mut controller: TcpController, scripted: &mut Scripted, events: u32) -> Result<(), Unfit> {
    controller.draw_from(Stream::new(1, "draws"));
    let needs = controller.needs();
    let gauges = names(&controller);
    let (mut total, mut phase) = (0, Phase::Open);
    for number in 1..=events {
        scripted.goes_on();
        let event = if number == 1 {
            TcpEvent::Established { window: 10.0 }
        } else {
            tcp_event(&mut scripted.draws, &mut phase)
        };
        controller.on_feedback(&event, &scripted.view);
        if needs.deliveries && scripted.draws.is() {
            let sample = delivery(scripted, &mut total);
            controller.on_delivery(&sample, &scripted.view);
            if scripted.draws.is() {
                let seq = scripted.view.acked;
                let lost = LostSegment { seq, size: 1000, total, tx_in_flight: 5000, lost: 1000, app_limited: false };
                controller.on_lost(&lost, &scripted.view);
            }
        }
        if needs.ecn.counts() {
            let acked = scripted.draws.count();
            let marked = scripted.draws.one_of(&[0, 1, acked]);
            controller.on_marks(acked, marked, &scripted.view);
        }
        let (window, threshold, pacing) = (controller.window(), controller.threshold(), controller.pacing_rate());
        if !(window.is_finite() && window >= 1.0) {
            return unfit(number, &event, format!("the window is {window}"));
        }
        if threshold.is_nan() || threshold < 0.0 {
            return unfit(number, &event, format!("the threshold is {threshold}"));
        }
        if pacing.is_nan() || pacing <= 0.0 {
            return unfit(number, &event, format!("the pacing rate is {pacing}"));
        }
        if names(&controller) != gauges {
            return unfit(number, &event, "its gauges have other names than at first".to_owned());
        }
    }
    Ok(())
}

/// The machine's phase, on which its events depend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Recovery,
    /// After a timeout: a reduction may still prove spurious.
    Loss,
}

fn tcp_event(draws: &mut Draws, phase: &mut Phase) -> TcpEvent {
    let (segments, in_flight, rtt, window) = (draws.count(), draws.count(), draws.rtt(), draws.window());
    let drawn = (draws.0.unit() * 16.0) as u32;
    match (drawn, *phase) {
        (0, Phase::Open) => {
            *phase = Phase::Recovery;
            TcpEvent::Lost { duplicates: draws.one_of(&[0, 3]), again: draws.is() }
        }
        (1, _) => {
            let first = *phase != Phase::Loss;
            *phase = Phase::Loss;
            TcpEvent::Timeout(if first { Threshold::Cut } else { draws.one_of(&[Threshold::Cut, Threshold::Keep]) })
        }
        (2, Phase::Recovery | Phase::Loss) => {
            *phase = Phase::Open;
            TcpEvent::Recovered { at_most: draws.one_of(&[f64::INFINITY, window]) }
        }
        (3, Phase::Recovery | Phase::Loss) => {
            *phase = Phase::Open;
            TcpEvent::Undo { window, threshold: window }
        }
        (4, Phase::Recovery) => TcpEvent::Deflate { segments },
        (5, Phase::Recovery | Phase::Loss) => TcpEvent::Repaired { segments, rtt },
        (6, Phase::Recovery) => TcpEvent::Duplicate,
        (7, Phase::Open) => TcpEvent::EcnEcho,
        (8, Phase::Open) => TcpEvent::Idle { window },
        (9, Phase::Open) => TcpEvent::Resumed { idle: draws.span(), app_limited: draws.is() },
        _ => TcpEvent::Acked { segments, in_flight, rtt },
    }
}

fn delivery(scripted: &mut Scripted, total: &mut u64) -> RateSample {
    let draws = &mut scripted.draws;
    let newly_acked = u64::from(draws.count()) * 1000;
    *total += newly_acked;
    let delivered = draws.one_of(&[newly_acked, *total]);
    RateSample {
        total: *total,
        newly_acked,
        newly_lost: u64::from(draws.one_of(&[0u32, 0, 1, 100])) * 1000,
        newly_marked: draws.one_of(&[0, 0, 1]),
        prior_delivered: *total - delivered,
        delivered,
        interval: draws.one_of(&[Span::ZERO, Span(1), Span::from_millis(50), Span::from_secs(10)]),
        rtt: draws.rtt(),
        tx_in_flight: u64::from(draws.count()) * 1000,
        lost: u64::from(draws.one_of(&[0u32, 0, 1, 100])) * 1000,
        app_limited: draws.is(),
        prior_in_flight: u64::from(draws.count()) * 1000,
        in_flight: u64::from(draws.one_of(&[0u32, 1, 1000])) * 1000,
        window_limited: draws.is(),
    }
}

fn rate(mut controller: TfrcController, scripted: &mut Scripted, events: u32) -> Result<(), Unfit> {
    controller.draw_from(Stream::new(1, "draws"));
    let gauges = names(&controller);
    for number in 1..=events {
        scripted.goes_on();
        let draws = &mut scripted.draws;
        let event = match (number, (draws.0.unit() * 5.0) as u32) {
            (1, _) => TfrcEvent::Started,
            (_, 0) => TfrcEvent::NoFeedback { interval: draws.interval() },
            _ => TfrcEvent::Report(TfrcReport {
                rtt: draws.span(),
                timeout: draws.span(),
                receive_rate: draws.one_of(&[0.0, 1.0, 1e5, 1e9, 1e12]),
                loss_event_rate: draws.one_of(&[0.0, 1e-9, 1e-4, 0.1, 1.0]),
                interval: draws.interval(),
            }),
        };
        controller.on_feedback(&event, &scripted.view);
        for (what, rate) in [("rate", controller.rate()), ("pacing rate", controller.pacing())] {
            if !(rate.is_finite() && rate > 0.0) {
                return unfit(number, &event, format!("the {what} is {rate}"));
            }
        }
        if names(&controller) != gauges {
            return unfit(number, &event, "its gauges have other names than at first".to_owned());
        }
    }
    Ok(())
}

fn media(mut controller: RtpController, scripted: &mut Scripted, events: u32) -> Result<(), Unfit> {
    controller.draw_from(Stream::new(1, "draws"));
    controller.frames_every(Span::from_millis(33));
    let (settings, gauges) = (controller.settings(), names(&controller));
    let mut sent = 0;
    for number in 1..=events {
        scripted.goes_on();
        let event = match number {
            1 => RtpEvent::Started(RtpSession { packet: Size(1000), interval: Span::from_secs(5) }),
            _ => rtp_event(scripted, &mut sent, settings.feedback, settings.report_sent),
        };
        controller.on_feedback(&event, &scripted.view);
        let (rate, padding_rate) = (controller.rate(), controller.padding_rate());
        if !(rate.is_finite() && rate > 0.0) {
            return unfit(number, &event, format!("the rate is {rate}"));
        }
        if !(padding_rate.is_finite() && padding_rate >= 0.0) {
            return unfit(number, &event, format!("it fills up to {padding_rate}"));
        }
        for _ in 0..100 {
            let Some(probe) = controller.next_probe() else { break };
            if probe.rate == Rate(0) {
                return unfit(number, &event, "a probe's rate is 0".to_owned());
            }
        }
        if names(&controller) != gauges {
            return unfit(number, &event, "its gauges have other names than at first".to_owned());
        }
    }
    Ok(())
}

fn rtp_event(scripted: &mut Scripted, sent: &mut u32, feedback: RtpFeedback, report_sent: bool) -> RtpEvent {
    let now = scripted.view.now;
    let draws = &mut scripted.draws;
    let kind = (draws.0.unit() * 8.0) as u32;
    match (kind, feedback) {
        (0, _) => RtpEvent::Silence,
        (1, _) => RtpEvent::Tick,
        (2, _) if report_sent => RtpEvent::Frame { size: Size(draws.one_of(&[1, 1000, 1_000_000])) },
        (3, _) if report_sent => {
            *sent += 1;
            let packet = SentPacket { number: *sent, size: Size(1000), payload: Size(900), ..SentPacket::default() };
            RtpEvent::Sent { packet, in_flight: Size(draws.one_of(&[0, 1000, 1_000_000_000])) }
        }
        (_, RtpFeedback::Reports) => RtpEvent::Report(RtpReport {
            loss: Ratio(draws.one_of(&[0.0, 1.0 / 256.0, 0.5, 1.0])),
            rtt: draws.rtt(),
            since: draws.span(),
            bottleneck: draws.one_of(&[None, Some(Rate(1)), Some(Rate(1_000_000_000_000))]),
            interval: draws.interval(),
        }),
        (_, RtpFeedback::Arrivals) => {
            let many = draws.one_of(&[1, 2, 10, 100]);
            let packets = (0..many).map(|_| packet(draws, now, sent)).collect();
            RtpEvent::Arrivals(Arrivals {
                packets,
                rtt: draws.rtt(),
                since: draws.span(),
                backlog: Size(draws.one_of(&[0, 1000, 1_000_000_000])),
                waiting: draws.one_of(&[Span::ZERO, Span::from_millis(10), Span::from_secs(100)]),
                in_flight: Size(draws.one_of(&[0, 1000, 1_000_000_000])),
                interval: draws.interval(),
            })
        }
    }
}

/// A packet sent within the last second; its arrival time is by another clock.
fn packet(draws: &mut Draws, now: Time, sent: &mut u32) -> PacketResult {
    *sent += 1;
    let left = Time(now.0.saturating_sub(draws.one_of(&[0, 1_000_000, 100_000_000, 1_000_000_000])));
    let at = Time(left.0 + draws.one_of(&[0, 1, 20_000_000, 3_000_000_000, 1_000_000_000_000]));
    let fate = match (draws.0.unit() * 8.0) as u32 {
        0 => Fate::Lost,
        1 => Fate::Unknown,
        2 => Fate::Arrived { at: None, marked: false },
        _ => Fate::Arrived { at: Some(at), marked: draws.is() },
    };
    let size = Size(draws.one_of(&[1, 60, 1200, 65_535]));
    let packet = SentPacket { number: *sent, size, payload: Size(size.0 / 2), ends_frame: draws.is(), probe: None };
    PacketResult { sent: left, packet, fate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::schemes;

    #[test]
    fn extreme_numbers_are_borne() {
        for scheme in schemes() {
            for profile in Profile::ALL {
                for seed in 0..20 {
                    let found = extremes(scheme, profile, seed, 3000);
                    assert_eq!(found, Ok(()), "{} {profile:?} seed {seed}", scheme.name);
                }
            }
        }
    }
}
