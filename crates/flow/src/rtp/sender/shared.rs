//! A sender that shares its rate with others of its host (RFC 8699).

use super::RtpSender;
use crate::Transmit;
use paceline_control::MediaController;
use paceline_control::coupled::CoupledRate;
use paceline_units::{Rate, Span, Time};

impl RtpSender {
    /// What a flow state exchange is told of the controller (RFC 8699); `None` if it cannot be coupled.
    #[must_use]
    pub fn coupled(&self) -> Option<CoupledRate> {
        self.controller.coupled()
    }

    /// The last round-trip time; zero before the first.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    /// The exchange gives the controller this rate.
    pub fn share(&mut self, rate: Rate, now: Time, out: &mut impl Transmit) {
        self.account(now);
        self.controller.share(rate, now);
        self.ask(now);
        self.repace(now);
        self.run(now, out);
    }
}
