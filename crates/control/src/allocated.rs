//! The controller of a stream whose rate another flow's controller decides (WebRTC's BUNDLE): it holds the allotted
//! rate and has no law.

use crate::rtp::{MediaController, RtpEvent, RtpSettings};
use crate::{Build, Controller, Gauges, PathView, Profile, Scheme};
use paceline_units::{Rate, Span, Time};

/// A stream's allotted rate.
#[derive(Clone, Debug)]
pub struct Allocated {
    settings: RtpSettings,
    /// In bits per second; `None` before the first allotment.
    rate: Option<Rate>,
}

impl Allocated {
    /// For a stream whose leader's controller has these `settings`. Feedback, ticks and sent packets are reported to
    /// the leader.
    #[must_use]
    pub fn new(settings: RtpSettings) -> Allocated {
        let plain = RtpSettings { silence: 0, tick: Span::ZERO, report_sent: false, probes: false, ..settings };
        Allocated { settings: plain, rate: None }
    }
}

impl Build for Allocated {
    /// Scenarios choose it with `bundle`, not by name.
    const SCHEMES: &'static [Scheme] = &[];

    fn build(_profile: Profile, _values: &[f64]) -> Allocated {
        Allocated::new(RtpSettings::default())
    }
}

impl Controller for Allocated {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, _event: &RtpEvent, _path: &PathView) {}

    fn gauges(&self, _to: &mut dyn Gauges) {}
}

impl MediaController for Allocated {
    fn rate(&self) -> f64 {
        self.rate.map_or(1.0, |rate| (rate.bps() / 8.0).max(1.0))
    }

    fn target(&self) -> Option<Rate> {
        self.rate
    }

    fn settings(&self) -> RtpSettings {
        self.settings
    }

    fn share(&mut self, rate: Rate, _now: Time) {
        self.rate = Some(rate);
    }
}
