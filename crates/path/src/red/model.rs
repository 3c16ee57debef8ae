//! RED's parameters.

use crate::model::Limit;
use paceline_units::{Ratio, Size, Span};

/// RED's parameters. [`RedModel::new`] has ns-2.35's defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct RedModel {
    /// The queue's limit, whatever the average. In byte mode a limit in packets is multiplied by the mean packet size.
    pub limit: Limit,
    /// The average queue, in (mean) packets, from which packets are dropped; `None`: half of what arrives in
    /// `target_delay`, but at least 5.
    pub min_threshold: Option<f64>,
    /// The average queue at which the probability reaches `max_p`; `None`: three times the minimum.
    pub max_threshold: Option<f64>,
    /// The weight of a new sample in the average; `None`: 1 - exp(-1/(10 r c)), where c is the link's packets per
    /// second and r three times the link's delay and packet time, at least 0.1 s.
    pub weight: Option<f64>,
    /// The probability at the maximum threshold (ns-2: 1/linterm).
    pub max_p: Ratio,
    /// Above the maximum threshold the probability rises to 1 at twice the threshold, instead of being 1 at once.
    pub gentle: bool,
    /// Leave at least 1/p packets between drops.
    pub wait: bool,
    /// The unit of the queue.
    pub mode: RedMode,
    /// The size of a mean packet: the unit of byte mode and of idle time.
    pub mean_packet: Size,
    /// Idle time counts as packets of this size; `None`: of mean size. (ns-2 uses its `idle_pktsize_` only when
    /// `cautious_` is 3.)
    pub idle_packet: Option<Size>,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Mark only while the probability is below this; above it, and always above the maximum threshold, drop (RFC 3168
    /// section 7 allows both). `None`: mark up to the maximum threshold (twice that when gentle).
    pub mark_below: Option<Ratio>,
    /// See `min_threshold`.
    pub target_delay: Span,
    /// Adapt `max_p`.
    pub adaptive: Option<AdaptiveRed>,
}

/// The unit in which RED counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RedMode {
    /// The queue in packets; all packets have the same probability.
    Packets,
    /// The queue in bytes; a packet's probability is proportional to its size.
    #[default]
    Bytes,
}

/// Adaptive RED: keeps the average in the middle fifth between the thresholds by moving `max_p`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptiveRed {
    /// Added to `max_p`, but no more than a quarter of it.
    pub increase: f64,
    /// `max_p` is multiplied by this.
    pub decrease: f64,
    /// The minimum time between changes.
    pub interval: Span,
    /// The upper bound of `max_p`.
    pub top: Ratio,
    /// The lower bound of `max_p`; `None`: 0.01, or less on fast links (one packet of 1000 bytes in 0.1 s).
    pub bottom: Option<Ratio>,
}

impl RedModel {
    /// ns-2.35's defaults: automatic thresholds and weight, byte mode with packets of 500 bytes, gentle, wait, 1/10.
    #[must_use]
    pub fn new(limit: Limit) -> RedModel {
        RedModel {
            limit,
            min_threshold: None,
            max_threshold: None,
            weight: None,
            max_p: Ratio(0.1),
            gentle: true,
            wait: true,
            mode: RedMode::Bytes,
            mean_packet: Size(500),
            idle_packet: None,
            ecn: false,
            mark_below: Some(Ratio(0.1)),
            target_delay: Span::from_millis(5),
            adaptive: None,
        }
    }

    /// The limit in the unit of the mode: in byte mode, packets times the mean packet size.
    pub(crate) fn limit_as_counted(&self) -> Limit {
        match self.limit {
            Limit::Packets(n) if self.mode == RedMode::Bytes => {
                Limit::Bytes(Size(u64::from(n) * self.mean_packet.bytes()))
            }
            limit => limit,
        }
    }
}

impl Default for AdaptiveRed {
    /// ns-2.35's defaults.
    fn default() -> AdaptiveRed {
        let interval = Span::from_millis(500);
        AdaptiveRed { increase: 0.01, decrease: 0.9, interval, top: Ratio(0.5), bottom: None }
    }
}
