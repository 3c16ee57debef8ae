//! What stands in a controller's place at a stream that another flow's controller pays for (WebRTC's BUNDLE): the rate that the stream is
//! allotted, and no law of its own.

use crate::rtp::{MediaController, RtpEvent, RtpSettings};
use crate::{Build, Controller, Gauges, PathView, Profile, Scheme};
use paceline_units::{Rate, Span, Time};

/// The rate that a stream is allotted.
#[derive(Clone, Debug)]
pub struct Allotted {
    settings: RtpSettings,
    /// In bits a second; nothing has been allotted before the first.
    rate: Option<Rate>,
}

impl Allotted {
    /// Of a stream whose leader's controller asks for `settings`. Feedback, ticks and what is sent are told to that one.
    #[must_use]
    pub fn new(settings: RtpSettings) -> Allotted {
        let plain = RtpSettings { silence: 0, tick: Span::ZERO, tells_sending: false, probes: false, ..settings };
        Allotted { settings: plain, rate: None }
    }
}

impl Build for Allotted {
    /// No scenario names it: `bundle` does.
    const SCHEMES: &'static [Scheme] = &[];

    fn build(_profile: Profile, _values: &[f64]) -> Allotted {
        Allotted::new(RtpSettings::default())
    }
}

impl Controller for Allotted {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, _event: &RtpEvent, _path: &PathView) {}

    fn gauges(&self, _to: &mut dyn Gauges) {}
}

impl MediaController for Allotted {
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
