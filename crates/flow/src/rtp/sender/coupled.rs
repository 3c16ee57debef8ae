//! A sender that shares its rate with other flows of its host (RFC 8699).

use super::RtpSender;
use crate::Transmit;
use paceline_control::MediaController;
use paceline_control::coupled::CoupledRate;
use paceline_units::{Rate, Span, Time};

impl RtpSender {
    /// The controller's information for a flow state exchange (RFC 8699); `None` if it cannot be coupled.
    #[must_use]
    pub fn coupled(&self) -> Option<CoupledRate> {
        self.controller.coupled()
    }

    /// The last round-trip time; zero before the first.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    /// Sets the controller's rate, as assigned by the exchange.
    pub fn share(&mut self, rate: Rate, now: Time, out: &mut impl Transmit) {
        self.account(now);
        self.controller.share(rate, now);
        self.fetch_probes(now);
        self.repace(now);
        self.run(now, out);
    }
}
