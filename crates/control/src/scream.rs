//! SCReAM v2 for media: the window follows losses, marks and queueing delay, and the rate follows the window.
//!
//! There are three laws under this name, chosen by the parameter `variant`: the draft's, that of its authors' code, and
//! libwebrtc's. Each is a scheme with its own parameters. docs/controllers/scream.md lists their differences. The laws
//! are independent of the machine; what all three need from it is here.

mod base_delay;
pub mod draft;
pub mod ericsson;
pub mod libwebrtc;
mod queue;

use crate::rtp::{FeedbackConfig, RtpFeedback, RtpSession, RtpSettings};
use crate::scheme::VARIANT;
use crate::{Parameter, Profile};
use paceline_units::{Size, Span, Time};

/// The parameter that chooses among the three; `own` is the index of the scheme that has it.
const fn variant(own: f64) -> Parameter {
    const NAMES: [&str; 3] = ["draft", "ericsson", "libwebrtc"];
    let doc = "whose: the draft's, its authors' code's or libwebrtc's; the parameters are the variant's";
    Parameter::choice(VARIANT, [own; Profile::ALL.len()], &NAMES, doc)
}

/// Lost feedback must not stop a sender forever: after this time without sending, one packet may leave.
const STALL: Span = Span::from_millis(500);
/// A pacing rate that means no pacing, in bytes per second.
const UNPACED: f64 = 12.5e9;

/// The machine's state, as a law needs it.
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

    /// The window for `allowed` bytes in flight, with room for one more packet after a stall.
    fn window(&self, allowed: f64) -> Option<Size> {
        let stalled = if self.stalled { self.in_flight + u64::from(self.packet) } else { 0 };
        Some(Size::from_bytes((allowed.max(0.0) as u64).max(stalled)))
    }
}

/// The settings common to all three.
const SETTINGS: RtpSettings = RtpSettings {
    probes: false,
    silence: 0,
    feedback: RtpFeedback::Arrivals,
    // after 16 packets, a frame's end or 40 ms (the draft's requirements on feedback, and the authors' receiver)
    feedback_interval: Span::from_millis(40),
    feedback_config: FeedbackConfig { packets: 16, frames: true, ..FeedbackConfig::PLAIN },
    reordering: RtpSettings::REORDERING,
    report_sent: true,
    tick: Span::from_millis(10),
    burst: Span::ZERO,
    l4s: false,
    by_packet: false,
    even: true,
    frames: false,
    discards: false,
};

/// `later` minus `earlier`, in units of 1/`second` s, rounded down; negative if the order is reversed.
fn between(earlier: Time, later: Time, second: i128) -> i128 {
    ((i128::from(later.0) - i128::from(earlier.0)) * second).div_euclid(1_000_000_000)
}
