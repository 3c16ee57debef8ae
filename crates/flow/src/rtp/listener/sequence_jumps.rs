//! Losses where a stream's sequence numbers jump.
//!
//! A jump by 3000 numbers or more is a restart by RFC 3550 (appendix A.1), and counts as one in reports. It may also be
//! an outage. Timestamps distinguish the two: a restarted sender takes a random timestamp (section 5.1); a continuing
//! one has advanced its timestamp by the elapsed time, at the rate that was observed before.

use crate::rtp::source::{RtpSource, Verdict};
use paceline_packet::rtp::RtpData;
use paceline_units::{Span, Time};

/// How long a stream must be observed before its timestamp rate is known.
const WATCHED: Span = Span::from_millis(500);
/// The tolerance for the timestamps of a continuing stream, in seconds, in addition to a quarter of the outage: each
/// frame has a single timestamp, and the sender may have paused.
const SLACK_S: f64 = 0.5;

/// The jumps of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct SequenceJumps {
    /// Timestamp and arrival time of the last packet in sequence.
    last: Option<(u32, Time)>,
    /// Timestamp ticks since the sequence began, and its packets.
    ticks: i64,
    packets: u64,
    began: Time,
    /// Packets out of sequence since the last one in sequence.
    strays: u32,
    /// Packets lost in earlier sequences, and between sequences.
    pub lost: i64,
    /// Detected restarts of the sequence.
    pub restarts: u32,
}

impl SequenceJumps {
    /// Records a packet and the source's verdict on it; `before`: the source's losses and its highest number before it.
    pub fn on_packet(&mut self, now: Time, data: &RtpData, before: (i32, u32), verdict: Verdict) {
        match verdict {
            Verdict::Stray => self.strays = self.strays.saturating_add(1),
            Verdict::Restarted => {
                self.lost += i64::from(before.0);
                match self.missing(now, data, before.1 as u16) {
                    Some(missing) => self.lost += missing,
                    None => self.restarts += 1,
                }
                *self = SequenceJumps { lost: self.lost, restarts: self.restarts, ..SequenceJumps::begun(now, data) };
            }
            Verdict::Probation => *self = SequenceJumps::begun(now, data),
            Verdict::New | Verdict::Copy => {
                let (timestamp, at) = self.last.unwrap_or((data.timestamp, now));
                // a late packet subtracts its ticks
                self.ticks += i64::from(data.timestamp.wrapping_sub(timestamp) as i32);
                self.packets += 1;
                self.last = Some((data.timestamp, at.max(now)));
                self.strays = 0;
            }
        }
    }

    fn begun(now: Time, data: &RtpData) -> SequenceJumps {
        SequenceJumps { last: Some((data.timestamp, now)), began: now, ..SequenceJumps::default() }
    }

    /// Packets lost between `highest` and this one, if the stream continued; `None` if it restarted, or this is
    /// unknown.
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
        // 16-bit numbers wrap in a long outage
        let ahead = f64::from(data.sequence.wrapping_sub(highest));
        let packets = self.packets as f64 / watched_s * gone_s;
        let rounds = ((packets - ahead) / 65_536.0).round().max(0.0);
        Some(((ahead + 65_536.0 * rounds) as i64 - 1 - i64::from(self.strays)).max(0))
    }
}

/// Passes a packet to the source, and the source's verdict to the jumps.
pub(super) fn update(source: &mut RtpSource, jumps: &mut SequenceJumps, now: Time, data: &RtpData) -> Verdict {
    let before = (source.lost(), source.extended_highest());
    let verdict = source.update(data.sequence);
    jumps.on_packet(now, data, before, verdict);
    verdict
}
