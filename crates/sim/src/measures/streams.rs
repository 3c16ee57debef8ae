//! The measures of media streams.

use super::{Measure, measure, row};
use serde::{Deserialize, Serialize};

row! {
    /// One media stream, from the flow's start to its end; the warm-up does not matter here.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct StreamSummary {
        labels {
            flow: String,
            instance: u32,
        }

        /// whether play-out began; over several streams or runs, the share in which it did
        "" Steady: began: bool;

        /// from the flow's start until the client's buffer holds the configured amount and play-out begins; null if it
        /// never does
        "s" Rare: fill_s: Option<f64>;

        /// packets of `due_packets` that arrived after their play-out instant, or not by the end of the stream; all of
        /// them if play-out never began
        "packets" Rare: late_packets: u64;

        /// `playout = "clock"`: packets whose play-out instant had passed when the stream ended; the whole medium if
        /// all of it arrived, if its play-out was over, or if play-out never began
        "packets" Steady: due_packets: u64;

        /// length of the medium times its rate, in segments
        "packets" Steady: media_packets: u64;

        /// `late_packets / due_packets`; null under `playout = "stall"`, which has no clock, and if nothing was due
        "share" Rare: late_share: Option<f64>;

        /// share of the medium's bytes that had not arrived in order when the stream ended
        "share" Rare: undelivered_share: f64;

        /// `playout = "stall"`: interruptions of play-out. One still open at the stream's end lasts until then; a
        /// stream that never began has one, as long as its whole wait
        "" Rare: stalls: u64;

        /// total length of the stalls
        "s" Rare: stall_s: f64;

        /// `stall_s / (stall_s + time played)`, the buffering ratio of Dobrian et al. (SIGCOMM 2011); null under
        /// `playout = "clock"`, and if the run ended before the stream could start
        "share" Rare: stall_share: Option<f64>;

        /// packets that arrived while a finite client buffer was full: never played, and neither late nor a stall
        "packets" Rare: discarded_packets: u64;

        /// whether the whole medium arrived, discarded packets included
        "" Steady: completed: bool;

        /// from the flow's start to its end: the arrival of the whole medium, the end of play-out by the clock, or the
        /// end of the run, whichever came first
        "s" Rare: duration_s: f64;

        /// bits delivered in order, divided by `duration_s`
        "bit/s" Steady: throughput_bps: f64;
    }
}
