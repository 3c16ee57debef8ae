//! What is lost where a stream's numbers leap.
//!
//! A leap of 3000 numbers or more is a new beginning to RFC 3550 (appendix A.1), and so it is in reports. It may as well be an
//! outage. Timestamps tell the two apart: a sender that begins anew takes a random one (section 5.1), and one that went on
//! has moved its own by what its clock ran meanwhile. How fast that runs, the stream has shown by then.

use crate::rtp::source::{RtpSource, Verdict};
use paceline_packet::rtp::RtpData;
use paceline_units::{Span, Time};

/// How long a stream is watched before the rate of its timestamps is known.
const WATCHED: Span = Span::from_millis(500);
/// By so much of a second, and by a quarter of the outage, timestamps of a stream that went on may be off: frames have one
/// each, and a pause of the sender's may lie within.
const SLACK_S: f64 = 0.5;

/// What a stream's leaps have brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaps {
    /// Timestamp and time of the last packet in sequence.
    last: Option<(u32, Time)>,
    /// Ticks that timestamps have advanced since the sequence began, and packets in it.
    ticks: i64,
    packets: u64,
    began: Time,
    /// Packets since the last one in sequence that were not.
    strays: u32,
    /// Lost in the sequences before this one, and between them.
    pub lost: i64,
    /// Sequences that began anew, as far as can be told.
    pub restarts: u32,
}

impl Leaps {
    /// A packet has come, of which the source says this; before it the source had lost so many, and its highest number was this.
    pub fn heard(&mut self, now: Time, data: &RtpData, before: (i32, u32), verdict: Verdict) {
        match verdict {
            Verdict::Stray => self.strays = self.strays.saturating_add(1),
            Verdict::Anew => {
                self.lost += i64::from(before.0);
                match self.missing(now, data, before.1 as u16) {
                    Some(missing) => self.lost += missing,
                    None => self.restarts += 1,
                }
                *self = Leaps { lost: self.lost, restarts: self.restarts, ..Leaps::begun(now, data) };
            }
            Verdict::Probation => *self = Leaps::begun(now, data),
            Verdict::New | Verdict::Copy => {
                let (timestamp, at) = self.last.unwrap_or((data.timestamp, now));
                // what comes late takes its ticks back
                self.ticks += i64::from(data.timestamp.wrapping_sub(timestamp) as i32);
                self.packets += 1;
                self.last = Some((data.timestamp, at.max(now)));
                self.strays = 0;
            }
        }
    }

    fn begun(now: Time, data: &RtpData) -> Leaps {
        Leaps { last: Some((data.timestamp, now)), began: now, ..Leaps::default() }
    }

    /// Packets lost from `highest` to this one, of a stream that went on; `None` of one that began anew, or cannot be told.
    fn missing(&self, now: Time, data: &RtpData, highest: u16) -> Option<i64> {
        let (timestamp, at) = self.last?;
        let watched = at.since(self.began);
        if watched < WATCHED {
            return None;
        }
        let (watched_s, gone_s) = (watched.as_secs_f64(), now.since(at).as_secs_f64());
        let rate = self.ticks as f64 / watched_s;
        let moved = f64::from(data.timestamp.wrapping_sub(timestamp));
        if rate <= 0.0 || (moved - rate * gone_s).abs() > rate * (SLACK_S + gone_s / 4.0) {
            return None;
        }
        // numbers have 16 bits: a long outage goes round them
        let ahead = f64::from(data.sequence.wrapping_sub(highest));
        let packets = self.packets as f64 / watched_s * gone_s;
        let rounds = ((packets - ahead) / 65_536.0).round().max(0.0);
        Some(((ahead + 65_536.0 * rounds) as i64 - 1 - i64::from(self.strays)).max(0))
    }
}

/// Tells the source of a packet, and the leaps of what it says.
pub(super) fn update(source: &mut RtpSource, leaps: &mut Leaps, now: Time, data: &RtpData) -> Verdict {
    let before = (source.lost(), source.extended_highest());
    let verdict = source.update(data.sequence);
    leaps.heard(now, data, before, verdict);
    verdict
}
