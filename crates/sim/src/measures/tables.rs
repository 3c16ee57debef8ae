//! The measures of all but flows.

use super::{Measure, measure, row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

row! {
    /// One media stream, from the flow's start to its end; the warm-up does not matter here.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct StreamSummary {
        labels {
            flow: String,
            instance: u32,
        }

        /// whether play-out began. Of several streams or runs, the share of those in which it did
        "" Steady: began: bool;

        /// from the flow's start until the client's buffer holds the configured amount and play-out begins; null if it
        /// never does. The player counts whole packets of the medium, each a segment's payload: what it waits for, at
        /// the start and after a stall, is rounded up to a packet, and the last segment of a burst may come later than
        /// the byte itself
        "s" Rare: fill_s: Option<f64>;

        /// of `due_packets`, the ones that arrived after their instant, or not while the stream lasted. Of a stream that never
        /// began to play all: who watches it has seen nothing
        "packets" Rare: late_packets: u64;

        /// `playout = "clock"`: those whose play-out instant had passed when the stream ended; all of the medium if all
        /// of it arrived, if its play-out was over, or if it never began
        "packets" Steady: due_packets: u64;

        /// length times rate of the media, in segments
        "packets" Steady: media_packets: u64;

        /// `late_packets / due_packets`; null under `playout = "stall"`, which has no clock to be late by, and if
        /// nothing was due (a stream that was not to start before the run's end, or that began to play in its last
        /// instant). A cut stream has fewer packets due the later it began: see `fill_s` and `undelivered_share` with
        /// it
        "share" Rare: late_share: Option<f64>;

        /// of the medium's bytes, what had not arrived in order when the stream ended
        "share" Rare: undelivered_share: f64;

        /// `playout = "stall"`: interruptions of the play-out. One that lasts at the stream's
        /// end counts up to it; a stream that never began to play has one, as long as its whole wait
        "" Rare: stalls: u64;

        /// their total length
        "s" Rare: stall_s: f64;

        /// `stall_s` by itself and the time that was played; what has come whole plays on to its end. This is the
        /// buffering ratio of Dobrian et al. (SIGCOMM 2011), which leaves out the first buffering (`fill_s`) as here,
        /// and streams that never began: here they have 1. Null under `playout = "clock"`, and of a stream that was not
        /// to start before the run's end
        "share" Rare: stall_share: Option<f64>;

        /// what came when a finite client buffer was full: never played, and neither late nor a stall
        "packets" Rare: discarded_packets: u64;

        /// whether the whole medium arrived, discarded packets included
        "" Steady: completed: bool;

        /// from the flow's start to its end: the arrival of the whole medium, the end of play-out by the clock, or the
        /// end of the run, whichever came first
        "s" Rare: duration_s: f64;

        /// bits delivered in order by `duration_s`
        "bit/s" Steady: throughput_bps: f64;
    }
}

row! {
    /// One direction of a link with a limited queue. The queue is what waits, without the packet in transmission.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct QueueSummary {
        labels {
            link: String,
            direction: &'static str,
        }

        /// mean length over time: (1/T) ∫ q dt
        "packets" Steady: mean_packets: f64;

        /// standard deviation over time: the root of (1/T) ∫ q² dt - mean²
        "packets" Restless: sd_packets: f64;

        /// mean over time of its bytes
        "B" Steady: mean_bytes: f64;

        /// standard deviation over time of its bytes
        "B" Restless: sd_bytes: f64;

        /// greatest length
        "packets" Steady: max_packets: u64;

        /// with `occupancy = true` in the link's table: share of the time in which the queue held from k to k + 1
        /// tenths of its limit, in packets or in bytes as the limit is; the upper edge belongs to the next tenth, the
        /// full queue to the last. From the queue's own changes, so exact; they sum to 1. In a run's JSON a table by number, in
        /// tables columns `occupancy_0` to `occupancy_9`
        "share" Restless: #[serde(skip_serializing_if = "BTreeMap::is_empty")] occupancy: BTreeMap<u8, f64>;

        /// share of the time in which the link transmits; where its rate varies, bytes sent by bytes it could have
        /// sent. An outage changes neither: the link sends on, what it sends is lost (`drops.outage`), and counts
        "share" Restless: utilisation: f64;

        /// packets that came to the queue
        "packets" Restless: arrivals: u64;

        /// packets that left the queue for the link and got across
        "packets" Restless: departures: u64;

        /// their bytes
        "B" Restless: departed_bytes: u64;

        /// packets dropped, by reason, below: in a run's JSON a table (`drops.overflow`), in tables and in what several runs give
        /// columns (`drops_overflow`)
        "packets" Rare: drops: BTreeMap<&'static str, u64>;

        /// packets marked with congestion experienced instead of dropped (RFC 3168)
        "packets" Steady: marks: u64;

        /// of DualPI2 what each class had, L4S's queue and the Classic one: `departures` and `departed_bytes` (what
        /// left the queue, whether or not it got across), `marks`, `drops` (by the discipline), and `delay_mean_s`, how
        /// long those that left had waited on average (null if none did). In tables `l4s_marks`, `classic_delay_mean_s`
        /// and so on
        "" Steady: #[serde(skip_serializing_if = "Option::is_none")] l4s,
            #[serde(skip_serializing_if = "Option::is_none")] classic: Option<ClassSummary>;
    }
}

row! {
    /// What a class of packets had of a queue; the counts are parts of those in [`QueueSummary`].
    #[derive(Clone, Copy, Debug, Default, Serialize)]
    pub struct ClassSummary {
        labels {}

        /// packets that left the queue, whether or not they got across
        "packets" Restless: departures: u64;

        /// their bytes
        "B" Restless: departed_bytes: u64;

        /// packets that the discipline dropped
        "packets" Rare: drops: u64;

        /// packets marked with congestion experienced instead of dropped
        "packets" Steady: marks: u64;

        /// how long those that left had waited on average; null if none did
        "s" Steady: delay_mean_s: Option<f64>;
    }
}

row! {
    /// What a flow has of one direction of a link; the counts are parts of those in [`QueueSummary`].
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct LinkFlowSummary {
        labels {
            link: String,
            direction: &'static str,
            flow: String,
            instance: u32,
        }

        /// mean over time of its packets in the queue
        "packets" Steady: mean_packets: f64;

        /// the same by the queue's `mean_packets`; null if nothing ever waited
        "share" Steady: queue_share: Option<f64>;

        /// the flow's packets among the queue's
        "packets" Restless: arrivals, departures: u64;

        /// the flow's bytes among the queue's
        "B" Restless: departed_bytes: u64;

        /// its drops, of whatever reason, by its arrivals; null without any
        "share" Rare: drop_share: Option<f64>;

        /// the flow's packets among those dropped
        "packets" Rare: drops: BTreeMap<&'static str, u64>;

        /// the flow's packets among those marked
        "packets" Steady: marks: u64;
    }
}

row! {
    /// One transmitter of an 802.11 cell; its queue stands among the queues.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct InterfaceSummary {
        labels {
            cell: String,
            interface: String,
        }

        /// exchanges begun: a data frame, after RTS or CTS-to-self or without
        "" Restless: attempts: u64;

        /// those that were not the first for their packet
        "" Steady: retries: u64;

        /// those that began together with another transmitter's
        "" Steady: collisions: u64;

        /// those without a collision in which a frame (RTS, CTS, data or ACK) arrived damaged
        "" Rare: frame_errors: u64;

        /// dropped at the retry limit: drop reason `retries`
        "packets" Rare: given_up: u64;

        /// `collisions` by `attempts`
        "share" Steady: collision_rate: Option<f64>;

        /// how long the medium carried its exchanges, with their answers and the spaces within; of a collision, until
        /// the transmitter waited for the answer
        "s" Restless: airtime_s: f64;

        /// the same by the measured time. Those of several transmitters may sum to more than 1 in collisions; the rest
        /// of the time is spaces, backoffs and idleness
        "share" Restless: airtime_share: f64;
    }
}

row! {
    /// The flows that share a group's name and were active while it was measured.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct GroupSummary {
        labels {
            group: String,
        }

        /// flows of the group that were active; without one it has no row
        "" Steady: flows: u64;

        /// Jain's index of their goodputs, (Σx)² / (n Σx²): 1 when all are equal, 1/n when one has all (Jain, Chiu,
        /// Hawe 1984)
        "share" Steady: jain: Option<f64>;

        /// sum of their goodputs
        "bit/s" Steady: goodput_bps: f64;

        /// mean of their goodputs
        "bit/s" Steady: flow_goodput_mean_bps: f64;

        /// standard deviation (by n) among their goodputs
        "bit/s" Rare: flow_goodput_sd_bps: f64;

        /// their part of the payload that all flows delivered in the measured interval: with the web's flows in a group
        /// of their own, the share that short connections get
        "share" Steady: share: Option<f64>;

        /// with `friendliness_to`: F, the mean goodput of a flow of this group by that of a flow of the group named,
        /// flows that got nothing included; null if all of the latter got nothing, of which a notice tells: nothing is
        /// less friendly. From Python for any two groups: `results.friendliness("lda", "ftp")`
        "" Steady: #[serde(skip_serializing_if = "Option::is_none")] friendliness: Option<f64>;
    }
}

row! {
    /// How the engine ran, and where all packets went.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct EngineSummary {
        labels {}

        /// length of a window (`decisions/windows-not-an-event-queue.md`)
        "s" Steady: window_s: f64;

        /// hosts, and links that are not folded
        "" Steady: elements: usize;

        /// packets of the whole run, of all kinds: sent + duplicated = delivered + dropped + in flight, asserted at the end of
        /// every run. What a host still delays then is sent, and in flight
        "packets" Steady: packets_sent, packets_delivered, packets_dropped: u64;

        /// packets of the whole run that were dropped, by reason; `corrupt` is found by hosts and stands in no link's drops
        "packets" Rare: drops: BTreeMap<&'static str, u64>;

        /// copies made by impairments; and packets under way at the end, with those that a host still delays
        "packets" Steady: packets_duplicated, packets_in_flight: u64;
    }
}
