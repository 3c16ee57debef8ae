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

        /// mean over time of the bytes that wait
        "B" Steady: mean_bytes: f64;

        /// standard deviation over time of the bytes that wait
        "B" Restless: sd_bytes: f64;

        /// greatest length
        "packets" Steady: max_packets: u64;

        /// with `occupancy = true` in the link's table: share of the time in which the queue held from k to k + 1
        /// tenths of its limit, for k from 0 to 9
        "share" Restless: #[serde(skip_serializing_if = "BTreeMap::is_empty")] occupancy: BTreeMap<u8, f64>;

        /// share of the time in which the link transmits; where its rate varies, bytes sent divided by bytes that it
        /// could have sent. What an outage loses (`drops.outage`) was sent, and counts
        "share" Restless: utilisation: f64;

        /// packets that arrived at the queue
        "packets" Restless: arrivals: u64;

        /// packets that left the queue for the link and crossed it
        "packets" Restless: departures: u64;

        /// bytes of `departures`
        "B" Restless: departed_bytes: u64;

        /// packets dropped, by reason (below): in a run's JSON a table (`drops.overflow`), in tables and over several
        /// runs columns (`drops_overflow`)
        "packets" Rare: drops: BTreeMap<&'static str, u64>;

        /// packets marked "congestion experienced" instead of dropped (RFC 3168)
        "packets" Steady: marks: u64;

        /// DualPI2: `departures`, `departed_bytes`, `marks`, `drops` and `delay_mean_s` of the L4S queue and of the
        /// Classic queue; in tables `l4s_marks`, `classic_delay_mean_s` and so on
        "" Steady: #[serde(skip_serializing_if = "Option::is_none")] l4s,
            #[serde(skip_serializing_if = "Option::is_none")] classic: Option<ClassSummary>;
    }
}

row! {
    /// What a class of packets had of a queue; the counts are parts of those in [`QueueSummary`].
    #[derive(Clone, Copy, Debug, Default, Serialize)]
    pub struct ClassSummary {
        labels {}

        /// packets that left the queue, whether or not they crossed the link
        "packets" Restless: departures: u64;

        /// bytes of these packets
        "B" Restless: departed_bytes: u64;

        /// packets that the discipline dropped
        "packets" Rare: drops: u64;

        /// packets marked "congestion experienced" instead of dropped
        "packets" Steady: marks: u64;

        /// mean wait of the packets that left the queue; null if none did
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

        /// mean over time of the flow's packets in the queue
        "packets" Steady: mean_packets: f64;

        /// that mean divided by the queue's `mean_packets`; null if nothing ever waited
        "share" Steady: queue_share: Option<f64>;

        /// the flow's packets among the queue's
        "packets" Restless: arrivals, departures: u64;

        /// the flow's bytes among the queue's
        "B" Restless: departed_bytes: u64;

        /// the flow's drops, for any reason, divided by its arrivals; null without arrivals
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

        /// exchanges begun: a data frame, with or without RTS or CTS-to-self before it
        "" Restless: attempts: u64;

        /// attempts that were not the first for their packet
        "" Steady: retries: u64;

        /// attempts that began together with another transmitter's
        "" Steady: collisions: u64;

        /// attempts without a collision in which a frame (RTS, CTS, data or ACK) arrived damaged
        "" Rare: frame_errors: u64;

        /// packets dropped at the retry limit (drop reason `retries`)
        "packets" Rare: given_up: u64;

        /// `collisions / attempts`
        "share" Steady: collision_rate: Option<f64>;

        /// time for which the medium carried its exchanges, with the answers and the spaces within; in a collision,
        /// until the transmitter begins to wait for the answer
        "s" Restless: airtime_s: f64;

        /// `airtime_s` divided by the measured time. In collisions the shares of several transmitters may sum to more
        /// than 1; the rest of the time is spaces, backoffs and idle time
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

        /// flows of the group that were active; a group without any has no row
        "" Steady: flows: u64;

        /// Jain's index of their goodputs, (Σx)² / (n Σx²): 1 when all are equal, 1/n when one has all (Jain, Chiu,
        /// Hawe 1984)
        "share" Steady: jain: Option<f64>;

        /// sum of their goodputs
        "bit/s" Steady: goodput_bps: f64;

        /// mean of their goodputs
        "bit/s" Steady: flow_goodput_mean_bps: f64;

        /// standard deviation (by n) of their goodputs
        "bit/s" Rare: flow_goodput_sd_bps: f64;

        /// their part of the payload that all flows delivered in the measured interval
        "share" Steady: share: Option<f64>;

        /// with `friendliness_to`: F, the mean goodput of a flow of this group divided by that of the group named,
        /// flows that got nothing included; null if the group named got nothing
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

        /// packets of the whole run, of all kinds: sent + duplicated = delivered + dropped + in flight, asserted at the
        /// end of every run. Packets that a host still delays then count as sent and in flight
        "packets" Steady: packets_sent, packets_delivered, packets_dropped: u64;

        /// packets of the whole run that were dropped, by reason; hosts find `corrupt` ones, which appear in no link's
        /// drops
        "packets" Rare: drops: BTreeMap<&'static str, u64>;

        /// copies made by impairments; packets in flight at the end, including those that a host still delays
        "packets" Steady: packets_duplicated, packets_in_flight: u64;
    }
}
