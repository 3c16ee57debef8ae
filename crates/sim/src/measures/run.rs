//! The measures of a run as a whole: its groups of flows, and the engine.

use super::{Measure, measure, row};
use serde::Serialize;
use std::collections::BTreeMap;

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
