//! SCReAM v2: media whose window follows losses, marks and queueing delay, and whose rate follows the window.
//!
//! Three authorities have three laws under this name, which the parameter `variant` chooses among: the draft, its authors' code, and
//! libwebrtc's, each a scheme with parameters of its own. Where they part is in docs/controllers/scream.md. Each law knows nothing of the machine that carries it; what all three need of that is here.

mod base_delay;
pub mod draft;
pub mod ericsson;
pub mod libwebrtc;
mod queue;

use crate::rtp::{FeedbackConfig, RtpFeedback, RtpSession, RtpSettings};
use crate::scheme::VARIANT;
use crate::{Parameter, Profile};
use paceline_units::{Size, Span, Time};

/// The parameter that chooses among the three; `own` is the place of the one whose parameter it is.
const fn variant(own: f64) -> Parameter {
    const NAMES: [&str; 3] = ["draft", "ericsson", "libwebrtc"];
    let doc = "whose: the draft's, its authors' code's or libwebrtc's; the parameters are the variant's";
    Parameter::choice(VARIANT, [own; Profile::ALL.len()], &NAMES, doc)
}

/// Feedback that is lost must not hold a sender for ever: after so long without a sending one packet may leave.
const STALL: Span = Span::from_millis(500);
/// A pace that is none, in bytes a second.
const UNPACED: f64 = 12.5e9;

/// What a law is told of the machine.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    started: Time,
    /// A full packet on the wire, in bytes.
    packet: u32,
    /// Bytes in flight.
    in_flight: u64,
    sent: Time,
    stalled: bool,
}

impl Carrier {
    const NONE: Carrier = Carrier { started: Time::ZERO, packet: 1500, in_flight: 0, sent: Time::ZERO, stalled: false };

    fn start(session: &RtpSession, now: Time) -> Carrier {
        let packet = u32::try_from(session.packet.bytes()).unwrap_or(u32::MAX).max(1);
        Carrier { started: now, packet, in_flight: 0, sent: now, stalled: false }
    }

    fn sent(&mut self, now: Time, in_flight: Size) {
        (self.sent, self.in_flight, self.stalled) = (now, in_flight.bytes(), false);
    }

    fn tick(&mut self, now: Time) {
        self.stalled = now.since(self.sent) >= STALL;
    }

    /// The window that lets `allowed` bytes be in flight, one packet more after a stall.
    fn window(&self, allowed: f64) -> Option<Size> {
        let stalled = if self.stalled { self.in_flight + u64::from(self.packet) } else { 0 };
        Some(Size::from_bytes((allowed.max(0.0) as u64).max(stalled)))
    }
}

/// What all three ask of the machine.
const SETTINGS: RtpSettings = RtpSettings {
    probes: false,
    silence: 0,
    feedback: RtpFeedback::Arrivals,
    // after 16 packets, a frame's end or 40 ms (the draft's requirements on feedback, and the authors' receiver)
    feedback_interval: Span::from_millis(40),
    feedback_config: FeedbackConfig { packets: 16, frames: true, ..FeedbackConfig::PLAIN },
    reordering: RtpSettings::REORDERING,
    tells_sending: true,
    tick: Span::from_millis(10),
    burst: Span::ZERO,
    l4s: false,
    by_packet: false,
    even: true,
    frames: false,
    discards: false,
};

/// A later time less an earlier one, in units of which `second` make a second, rounded down; below zero if it is not later.
fn between(earlier: Time, later: Time, second: i128) -> i128 {
    ((i128::from(later.0) - i128::from(earlier.0)) * second).div_euclid(1_000_000_000)
}
