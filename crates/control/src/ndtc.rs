//! NDTC: sizes each frame by what the path carries within the frame's time, measured by dithering the time in which
//! frames are sent.
//!
//! Source: P.-L. Ageneau, G. Armitage, S. Danahy, "Network Delivery Time Control" (draft-ageneau-ccwg-ndtc of July
//! 2026), whose names are in capitals. [`law`] is its arithmetic, [`frames`] assembles frames from the packets that
//! feedback reports (RFC 8888). Everything is computed at the sender. docs/controllers/ndtc.md says how details that
//! the draft leaves open are decided.

pub mod frames;
pub mod law;

use crate::rtp::{
    Arrivals, FeedbackConfig, FrameTime, MediaController, PacketResult, RtpEvent, RtpFeedback, RtpSession, RtpSettings,
};
use crate::tfrc::{own, own_whole};
use crate::{Build, Controller, GaugeUnit, Gauges, Machine, Parameter, PathView, Profile, Scheme, known};
use frames::{Frames, Packet};
use law::{Law, Settings};
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span};

/// The frame rate until the application's is known.
const FRAME_RATE: f64 = 30.0;

const PARAMETERS: [Parameter; 14] = [
    own("frame_rate", 0.0, 0.0, 1000.0, "1/s", "1/TFRAME: frames a second; 0: as many as the encoder writes"),
    own("init_target", 4000.0, 100.0, 1e8, "B", "INIT_TARGET: the target frame size at the beginning"),
    own("min_target", 2000.0, 100.0, 1e8, "B", "MIN_TARGET: the target frame size at least"),
    own("max_target", 8000.0, 100.0, 1e8, "B", "MAX_TARGET: the target frame size at most, if it is above min_target"),
    own("receive", 0.6, 0.01, 1.0, "1", "TRECV: the time in which a frame is to arrive, as a share of TFRAME"),
    own(
        "send",
        0.5,
        0.01,
        0.99,
        "1",
        "TSEND: the time in which a frame leaves if nothing limits it, as a share of TRECV",
    ),
    own("dither", 0.5, 0.0, 1.0, "1", "DELTA: how far that time is drawn around its middle, as a share of TSEND"),
    own("weight", 0.04, 1e-4, 1.0, "1", "LAMBDA: the weight of the newest frame in the regression"),
    own_whole(
        "iterations",
        3.0,
        0.0,
        1000.0,
        "ITERATIONS: steps from the mean time of arrival to that at the rate of arrival",
    ),
    own("margin", 0.25, 0.0, 10.0, "1", "KMARGIN: how much what the regression leaves unexplained counts"),
    own("alpha", 40.0, 0.0, 1e6, "B", "ALPHA: what a frame without losses adds to the frame size that losses allow"),
    own("ecn_alpha", 400.0, 0.0, 1e6, "B", "EALPHA: the same if the last decrease was by marks"),
    own("beta", 0.7, 0.01, 0.99, "1", "BETA: the share of that size that a loss leaves"),
    own_whole("silence", 10.0, 0.0, 1000.0, "so many intervals without feedback count as a loss; 0: never"),
];

/// The state.
#[derive(Clone, Debug)]
pub struct Ndtc {
    parameters: [f64; PARAMETERS.len()],
    /// 1/TFRAME.
    frame_rate: f64,
    law: Law,
    frames: Frames,
    /// Random draws for dithering.
    draws: Sequence,
    /// Bytes of a packet's headers, and of a full packet's payload.
    header: f64,
    segment: f64,
    /// SEND and RECV of the last frame for which both are known; NaN before it.
    last: (f64, f64),
}

impl Ndtc {
    /// A controller for this frame rate, in frames per second.
    fn new(parameters: [f64; PARAMETERS.len()], frame_rate: f64) -> Ndtc {
        let [_, init, min, max, receive, send, dither, weight, iterations, margin, alpha, ecn_alpha, beta, _] =
            parameters;
        let frame = 1.0 / frame_rate;
        let recv = receive * frame;
        let send = send * recv;
        let (dither, max, iterations) = (dither * send, max.max(min), iterations as u32);
        let settings =
            Settings { frame, recv, send, dither, init, min, max, weight, iterations, margin, alpha, ecn_alpha, beta };
        Ndtc {
            parameters,
            frame_rate,
            law: Law::new(settings),
            frames: Frames::default(),
            draws: Sequence::new(Stream::new(0, "ndtc")),
            header: 0.0,
            segment: 1.0,
            last: (f64::NAN, f64::NAN),
        }
    }

    fn start(&mut self, session: &RtpSession, path: &PathView) {
        self.segment = f64::from(path.segment.max(1));
        self.header = (session.packet.bytes() as f64 - self.segment).max(0.0);
    }

    fn feedback(&mut self, arrivals: &Arrivals, path: &PathView) {
        for fate in &arrivals.packets {
            if let Some(frame) = self.frames.packet(&packet(fate)) {
                if frame.timed && frame.packets > 1 {
                    self.last = (frame.send, frame.recv);
                }
                self.law.frame(&frame, path.now);
            }
        }
    }

    /// TARGET / TFRAME in bytes on the wire per second, with each packet's headers.
    fn wire(&self) -> f64 {
        let packets = libm::ceil(self.law.target / self.segment);
        (self.law.target + packets * self.header) * self.frame_rate
    }

    /// LENGTH of a frame with this many bytes on the wire: all payloads except the last packet's; for a single packet,
    /// its payload.
    fn length(&self, wire: f64) -> f64 {
        let packets = libm::ceil(wire / (self.segment + self.header)).max(1.0);
        if packets > 1.0 { (packets - 1.0) * self.segment } else { (wire - self.header).max(0.0) }
    }
}

/// The fields of a packet that matter here.
fn packet(fate: &PacketResult) -> Packet {
    let packet = &fate.packet;
    Packet {
        number: packet.number,
        sent: fate.sent,
        payload: packet.payload.bytes() as f64,
        ends_frame: packet.ends_frame,
        fate: fate.fate,
    }
}

impl Build for Ndtc {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "ndtc",
        summary: "NDTC: frames of the size that arrives within its time, by dithering how long each takes to leave",
        source: "draft-ageneau-ccwg-ndtc",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Ndtc {
        let mut parameters = [0.0; PARAMETERS.len()];
        parameters.copy_from_slice(values);
        let given = parameters[0];
        Ndtc::new(parameters, if given > 0.0 { given } else { FRAME_RATE })
    }
}

impl Controller for Ndtc {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        match feedback {
            RtpEvent::Started(session) => self.start(session, path),
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path),
            RtpEvent::Silence => self.law.silence(path.now),
            _ => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.wire() * 8.0);
        to.bits_per_second("available", known(self.law.available * 8.0));
        to.number("slope", self.law.slope);
        to.gauge("frame_limit", GaugeUnit::Bytes, self.law.size);
        to.seconds("send", self.last.0);
        to.seconds("receive", self.last.1);
        to.number("ecn_average", self.law.ecn_average);
    }
}

impl MediaController for Ndtc {
    #[inline]
    fn rate(&self) -> f64 {
        self.wire()
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate((self.wire() * 8.0) as u64))
    }

    fn settings(&self) -> RtpSettings {
        RtpSettings {
            silence: self.parameters[13] as u32,
            feedback: RtpFeedback::Arrivals,
            // once a frame, as the draft requires
            feedback_config: FeedbackConfig { frames: true, ..FeedbackConfig::PLAIN },
            even: true,
            frames: true,
            l4s: true,
            ..RtpSettings::default()
        }
    }

    fn draw_from(&mut self, stream: Stream) {
        self.draws = Sequence::new(stream);
    }

    fn frames_every(&mut self, period: Span) {
        if self.parameters[0] == 0.0 && period > Span::ZERO {
            let draws = self.draws;
            *self = Ndtc { draws, ..Ndtc::new(self.parameters, 1.0 / period.as_secs_f64()) };
        }
    }

    fn frame_time(&mut self, size: Size) -> Option<FrameTime> {
        let schedule = self.law.schedule(self.length(size.bytes() as f64), 2.0 * self.draws.unit() - 1.0);
        Some(FrameTime { delay: Span::from_secs_f64(schedule.delay), span: Span::from_secs_f64(schedule.send) })
    }
}
