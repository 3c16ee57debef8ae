//! The measures of what packets cross: queues, their classes, flows at a link, interfaces of cells.

use super::{Measure, measure, row};
use serde::Serialize;
use std::collections::BTreeMap;

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
