//! A flow under one of Paceline's controllers, observed as an agent's is, without changing any bit of the run.
//!
//! On TCP's machine, the sender's counters are compared from step to step, because requesting delivery events would
//! change loss recovery. On RTP's machine, the controller's events are intercepted.

use super::agent::{Shared, named};
use super::observation::{Observation, Running};
use paceline_control::coupled::CoupledRate;
use paceline_control::foreign::{ControllerArgs, Foreign, ForeignMedia, Maker, Media};
use paceline_control::monitor_interval::Monitored;
use paceline_control::{
    Build, Controller, FrameTime, Gauges, Machine, MediaController, PathView, Probe, Profile, RtpController, RtpEvent,
    RtpSettings, Scheme,
};
use paceline_flow::tcp::{TcpSender, TcpView};
use paceline_flow::{Sender, SenderStats};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// Counters of TCP's sender.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    stats: SenderStats,
    view: TcpView,
    /// Maximum of the delivered count so far.
    delivered: u64,
}

impl Counts {
    /// The current counters, after those in `before`; `None` on another machine.
    pub(super) fn of(run: &Running, before: Option<&Counts>) -> Option<Counts> {
        let tcp = sender(run)?;
        let view = tcp.view();
        let delivered = before.map_or(0, |before| before.delivered).max(view.delivered);
        Some(Counts { stats: tcp.stats().clone(), view, delivered })
    }

    /// Whether the connection is established.
    pub(super) fn has_begun(run: &Running) -> bool {
        sender(run).is_some_and(|tcp| tcp.view().established)
    }

    /// Bytes acknowledged since.
    pub(super) fn acked_since(&self, run: &Running) -> u64 {
        sender(run).map_or(0, |tcp| tcp.view().delivered.saturating_sub(self.delivered))
    }

    /// The observation of a step that began with the counters `before` and ends with these.
    pub(super) fn since(&self, before: &Counts, run: &Running) -> Observation {
        let (stats, view) = (self.stats.since(&before.stats), self.view);
        let segment = u32::from(run.model.flows[run.flow].transport.segment().max(1));
        let interval = Monitored {
            acked: self.delivered - before.delivered,
            lost: stats.retransmitted * u64::from(segment),
            marked: view.marked.saturating_sub(before.view.marked),
            timeouts: stats.timeouts as u32,
            app_limited: view.sent_all,
            rtts: stats.rtt_count as u32,
            rtt_sum: stats.rtt_sum.as_secs_f64(),
            min_rtt: stats.rtt_min(),
            max_rtt: (stats.rtt_count > 0).then_some(stats.rtt_max),
            ..Monitored::default()
        };
        Observation {
            interval,
            srtt: sender(run).map_or(Span::ZERO, TcpSender::srtt),
            min_rtt: self.stats.rtt_min().unwrap_or(Span::ZERO),
            in_flight: view.in_flight,
            segment,
            begun: view.established,
            ..Observation::default()
        }
    }
}

fn sender(run: &Running) -> Option<&TcpSender> {
    match &run.ends().source.sender {
        Sender::Tcp(tcp) => Some(tcp),
        _ => None,
    }
}

/// Intercepts the events of controllers on RTP's machine.
#[derive(Debug)]
pub(super) struct Listener {
    /// The intercepted controller of the current run, before its start.
    observed: Arc<Mutex<Option<RtpController>>>,
    scheme: &'static Scheme,
}

impl Listener {
    pub(super) fn new(shared: &Arc<Shared>) -> Listener {
        let observed = Arc::new(Mutex::new(None));
        let (shared, fresh) = (Arc::clone(shared), Arc::clone(&observed));
        let make = move |_: &ControllerArgs, stream: Stream| -> Result<Box<Media>, String> {
            let fresh: &Mutex<Option<RtpController>> = &fresh;
            let of = fresh.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut of = of.ok_or("there is no run")?;
            of.draw_from(stream);
            Ok(Box::new(Observed { of, shared: Arc::clone(&shared) }))
        };
        let maker = Maker::Media(Box::new(make), RtpSettings::PLAIN);
        Listener { observed, scheme: named("baseline", Machine::Rtp, Foreign { gauges: Vec::new(), maker }) }
    }

    /// Replaces this controller, of the flow with this name and not started yet, by one that intercepts its events.
    pub(super) fn listen(&self, controller: &mut RtpController, flow: &str) {
        let Some(ear) = ForeignMedia::of(self.scheme, Profile::Rfc, &[]) else { return };
        let mut ear = ear.asking(controller.settings());
        ear.belongs_to(flow);
        let fresh = core::mem::replace(controller, RtpController::Foreign(Box::new(ear)));
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh);
    }
}

/// A controller whose events are intercepted.
struct Observed {
    of: RtpController,
    shared: Arc<Shared>,
}

impl Controller for Observed {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, event: &RtpEvent, path: &PathView) {
        self.shared.with_observation(|observation| observation.on_rtp_event(event, path));
        self.of.on_feedback(event, path);
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        self.of.gauges(to);
    }
}

impl MediaController for Observed {
    fn rate(&self) -> f64 {
        self.of.rate()
    }
    fn target(&self) -> Option<Rate> {
        self.of.target()
    }
    fn settings(&self) -> RtpSettings {
        self.of.settings()
    }
    fn window(&self) -> Option<Size> {
        self.of.window()
    }
    fn padding_rate(&self) -> f64 {
        self.of.padding_rate()
    }
    fn draw_from(&mut self, stream: Stream) {
        self.of.draw_from(stream);
    }
    fn frames_every(&mut self, period: Span) {
        self.of.frames_every(period);
    }
    fn frame_time(&mut self, size: Size) -> Option<FrameTime> {
        self.of.frame_time(size)
    }
    fn discards(&mut self) -> bool {
        self.of.discards()
    }
    fn next_probe(&mut self) -> Option<Probe> {
        self.of.next_probe()
    }
    fn coupled(&self) -> Option<CoupledRate> {
        self.of.coupled()
    }
    fn share(&mut self, rate: Rate, now: Time) {
        self.of.share(rate, now);
    }
}
