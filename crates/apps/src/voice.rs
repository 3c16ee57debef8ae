//! One direction of a voice call: a codec's packets at its interval, continuously or in talk spurts.
//!
//! Payload types and packet intervals: RFC 3551 (G.711, G.722, G.723.1, G.729), RFC 4867 (AMR at 12.2 kbit/s,
//! octet-aligned), RFC 7587 (Opus, here at 24 kbit/s). Talk spurts and pauses are exponential with the means of
//! artificial conversational speech, ITU-T P.59 (1993): 1.004 s and 1.587 s.

use paceline_random::Sequence;
use paceline_units::{Size, Span, Time};

/// Mean lengths of talk spurts and pauses (ITU-T P.59, table 1).
pub const P59: Spurts = Spurts { talk: Span::from_millis(1004), pause: Span::from_millis(1587) };

/// A voice source's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoiceModel {
    /// Payload of a packet, RTP's header included.
    pub packet: Size,
    /// The packet interval.
    pub interval: Span,
    /// Talk spurts, with silence suppression; `None`: packets are sent continuously.
    pub spurts: Option<Spurts>,
}

/// Speech with pauses in which nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spurts {
    /// Mean length of a talk spurt.
    pub talk: Span,
    /// Mean length of a pause.
    pub pause: Span,
}

/// A voice source; it begins with a talk spurt.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    model: VoiceModel,
    /// The spurt's start, the number of its packets sent, and their total number.
    spurt: (Time, u64, u64),
}

impl Voice {
    /// The rate in bit/s during a talk spurt, and the packet size.
    pub(crate) fn pace(&self) -> (f64, Size) {
        let packet = self.model.packet;
        (8.0 * packet.bytes() as f64 / self.model.interval.as_secs_f64(), packet)
    }

    /// A source that begins at `start`.
    pub(crate) fn new(model: VoiceModel, start: Time) -> Voice {
        let all = if model.spurts.is_some() { 0 } else { u64::MAX };
        Voice { model, spurt: (start, 0, all) }
    }

    pub(crate) fn next(&mut self, draws: &mut Sequence) -> (Time, Size) {
        let interval = self.model.interval;
        let (began, gone, all) = self.spurt;
        if let Some(Spurts { talk, pause }) = self.model.spurts
            && gone == all
        {
            // The spurt ends after the interval of its last packet; before the first spurt there is no pause.
            let ended = began + Span(interval.0.saturating_mul(all));
            let silent = if all == 0 { Span::ZERO } else { pause.mul_f64(draws.exponential()) };
            let packets = (talk.mul_f64(draws.exponential()).0.div_ceil(interval.0.max(1))).max(1);
            self.spurt = (ended + silent, 0, packets);
        }
        let at = self.spurt.0 + Span(interval.0.saturating_mul(self.spurt.1));
        self.spurt.1 += 1;
        (at, self.model.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Period;
    use crate::timed::{Timed, written};
    use paceline_random::Stream;

    fn voice(spurts: Option<Spurts>, seconds: f64) -> Vec<(f64, u64)> {
        let model = VoiceModel { packet: Size::from_bytes(172), interval: Span::from_millis(20), spurts };
        let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(seconds) };
        written(Timed::voice(model, Stream::new(1, "voice"), period))
    }

    #[test]
    fn a_codec_sends_at_its_pace() {
        let packets = voice(None, 10.0);
        assert_eq!(packets.len(), 500);
        assert!(packets.iter().enumerate().all(|(n, &(at, size))| (at - 0.02 * n as f64).abs() < 1e-9 && size == 172));
    }

    #[test]
    fn speech_has_the_pauses_of_p59() {
        let packets = voice(Some(P59), 40_000.0);
        let gaps: Vec<f64> = packets.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| *gap > 0.02 - 1e-9));
        let pauses: Vec<f64> = gaps.iter().filter(|gap| **gap > 0.0201).map(|gap| gap - 0.02).collect();
        let spurts = pauses.len() as f64;
        let talk = (packets.len() as f64 * 0.02) / spurts;
        let pause = pauses.iter().sum::<f64>() / spurts;
        // Rounded up to whole packets, on average half an interval longer; pauses below 0.1 ms are not detected.
        // Exponential: a standard error of 0.8 % at 15,000 of them.
        assert!((talk / 1.014 - 1.0).abs() < 0.035, "{talk}");
        assert!((pause / 1.587 - 1.0).abs() < 0.035, "{pause}");
    }
}
