//! CAKE's keys.

use super::limit;
use paceline_path::{CakeModel, Framing, Hosts, Isolation};
use paceline_scenario::queue::{Framing as FramingKey, Isolation as IsolationKey, Queue};
use paceline_units::Rate;

/// The model of a CAKE queue in front of a transmitter of this rate.
///
/// # Panics
/// If the queue is of another kind.
pub(super) fn model(queue: &Queue, rate: Rate) -> CakeModel {
    let Queue::Cake { bandwidth, limit: _, rtt, isolation, overhead, mpu, framing, ingress, mtu } = queue else {
        unreachable!("another queue is not CAKE's")
    };
    let max = queue.limit().expect("CAKE's queues have a limit");
    CakeModel {
        bandwidth: *bandwidth,
        limit: limit(max, rate),
        rtt: *rtt,
        isolation: match isolation {
            IsolationKey::Flowblind => Isolation::FlowBlind,
            IsolationKey::Srchost => Isolation::SrcHost,
            IsolationKey::Dsthost => Isolation::DstHost,
            IsolationKey::Hosts => Isolation::Hosts,
            IsolationKey::Flows => Isolation::Flows,
            IsolationKey::DualSrchost => Isolation::DualSrcHost,
            IsolationKey::DualDsthost => Isolation::DualDstHost,
            IsolationKey::TripleIsolate => Isolation::Triple,
        },
        overhead: *overhead,
        mpu: *mpu,
        framing: match framing {
            FramingKey::None => Framing::None,
            FramingKey::Atm => Framing::Atm,
            FramingKey::Ptm => Framing::Ptm,
        },
        ingress: *ingress,
        mtu: *mtu,
        hosts: Hosts::OfEachFlow, // set by `expand`, which knows the flows' ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_path::Limit;
    use paceline_units::{Size, Span};

    fn of(keys: &str) -> CakeModel {
        let text = format!("{{ \"kind\": \"cake\" {keys} }}");
        model(&serde_json::from_str(&text).unwrap(), Rate::from_mbps(8.0))
    }

    /// Defaults are those of `tc-cake`, and the limit follows from bandwidth and round-trip time.
    #[test]
    fn defaults_are_those_of_tc_cake() {
        assert_eq!(of(""), CakeModel::new(None));
        assert_eq!(of(", \"bandwidth\": \"20 Mbit/s\""), CakeModel::new(Some(Rate::from_mbps(20.0))));
        let limit = |keys: &str| of(keys).limit;
        let bytes = |bytes| Limit::Bytes(Size(bytes));
        assert_eq!(limit(""), bytes(10_240 * 1514));
        assert_eq!(limit(", \"bandwidth\": \"20 Mbit/s\""), bytes(4 << 20));
        assert_eq!(limit(", \"bandwidth\": \"200 Mbit/s\""), bytes(10_000_000));
        assert_eq!(limit(", \"bandwidth\": \"200 Mbit/s\", \"rtt\": \"1 s\""), bytes(10_240 * 1514));
        assert_eq!(limit(", \"limit\": \"50 ms\""), bytes(50_000));
        assert_eq!(of(", \"rtt\": \"30 ms\"").rtt, Span::from_millis(30));
    }
}
