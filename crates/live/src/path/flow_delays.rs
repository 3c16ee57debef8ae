//! Flows' own round trips (`rtt`): the hosts' share of the propagation delay, before and after the links.

use super::emulator::Side;
use super::frame::Shape;
use paceline_scenario::Scenario;
use paceline_scenario::model::{LinkDirection, Model};
use paceline_units::Span;
use std::collections::BTreeMap;

/// Flows' own delays before the first link and after the last one. A flow is identified by its port at the near end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnDelays {
    /// Each array is indexed by the side where a frame enters.
    by_port: BTreeMap<u16, [Own; 2]>,
}

/// A flow's own delays for frames that enter at one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Own {
    before: Span,
    after: Span,
}

impl OwnDelays {
    /// For flows with an `rtt`: the propagation delays of their access links. At the near end the run's first flow has
    /// port `first`, each further one the next.
    pub(super) fn of(scenario: &Scenario, run: &Model, first: u16) -> OwnDelays {
        let near = scenario.ends().map(|(near, _)| near);
        let has_rtt = scenario.flows().iter().flat_map(|flow| (0..flow.count).map(|_| flow.rtt.is_some()));
        let propagation = |host, direction| {
            let of_host = run.links.iter().find(|link| link.host == Some(host) && link.direction == direction);
            of_host.map_or(Span::ZERO, |link| link.model.propagation)
        };
        let way = |from, to| Own {
            before: propagation(from, LinkDirection::UP),
            after: propagation(to, LinkDirection::DOWN),
        };
        let with_rtt = (first..=u16::MAX).zip(&run.flows).zip(has_rtt).filter(|(_, has_rtt)| *has_rtt);
        let by_port = with_rtt.map(|((port, flow), _)| {
            let from_near = near == Some(flow.ends.0.as_str());
            let (near, far) = if from_near { (flow.source, flow.sink) } else { (flow.sink, flow.source) };
            (port, [way(near, far), way(far, near)])
        });
        OwnDelays { by_port: by_port.collect() }
    }

    /// Delay before the first link of a frame that enters at `from`.
    pub(super) fn before(&self, from: Side, frame: &[u8]) -> Span {
        self.find(from, frame).map_or(Span::ZERO, |own| own.before)
    }

    /// Delay after the last link of a frame that entered at `from`.
    pub(super) fn after(&self, from: Side, frame: &[u8]) -> Span {
        self.find(from, frame).map_or(Span::ZERO, |own| own.after)
    }

    fn find(&self, from: Side, frame: &[u8]) -> Option<Own> {
        if self.by_port.is_empty() {
            return None;
        }
        let [source, destination] = Shape::of(frame)?.ports?;
        let near = if from == Side::Near { source } else { destination };
        self.by_port.get(&near).map(|ways| ways[from as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulator::{Counts, Emulator};
    use super::super::spec::{Folder, PathSpec};
    use super::*;
    use etherparse::PacketBuilder;
    use paceline_scenario::Document;
    use paceline_sim::expand;
    use paceline_units::Time;
    use proptest::prelude::*;

    const FIRST: u16 = 9000;
    const LINKS: &str = "duration = \"9 s\"\ntopology = \"parking-lot\"\n[link.hop1]\nrate = \"80 Mbit/s\"\ndelay = \"3 ms\"\n\
        [link.hop2]\nrate = \"80 Mbit/s\"\ndelay = \"4 ms\"\nbackward = { delay = \"6 ms\" }\n";

    fn spec(text: &str, seed: u64, ports: Option<u16>) -> PathSpec {
        let document = Document::parse(text, "own.toml").unwrap();
        PathSpec::of_run(document, &Folder::Profiles, Some(seed), ports).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A flow's datagram, sent by the end `from`.
    fn datagram(from: Side, near_port: u16, number: u8) -> Vec<u8> {
        let (source, destination) = if from == Side::Near { (near_port, 5) } else { (5, near_port) };
        let mut frame = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 9).udp(source, destination).write(&mut frame, &[number; 72]).unwrap();
        frame
    }

    /// Delays of a single datagram of a flow, in both directions.
    fn crossing(spec: &PathSpec, port: u16) -> [Span; 2] {
        Side::BOTH.map(|from| {
            let mut emulator = Emulator::new(spec, None, Emulator::MEMORY);
            emulator.arrive(from, Time::ZERO, &datagram(from, port, 0));
            emulator.poll(Time::ZERO + Span::from_secs(9)).unwrap().due.since(Time::ZERO)
        })
    }

    /// Two links of 80 Mbit/s take 10 us each for 100 bytes.
    const SENT: Span = Span::from_micros(20);

    #[test]
    fn each_flow_has_its_round_trip_and_others_the_links_alone() {
        let text = format!(
            "{LINKS}[flow.a]\nrtt = \"40 ms\"\n[flow.b]\ncount = 2\nrtt = [\"17 ms\", \"100 ms\"]\n[flow.c]\n\
             [flow.d]\nfrom = \"r2\"\nto = \"r0\"\nrtt = \"30 ms\"\n"
        );
        let own = spec(&text, 1, Some(FIRST));
        let [there, back] = [Span::from_millis(7), Span::from_millis(9)];
        for (port, half_us) in [(0, 12_000), (1, 500), (2, 42_000), (3, 0), (4, 7000), (5, 0)] {
            let half = Span::from_micros(half_us);
            assert_eq!(crossing(&own, FIRST + port), [there + half + SENT, back + half + SENT], "{port}");
        }
        for port in 0..5 {
            let none = spec(&text, 1, None);
            assert_eq!(crossing(&none, FIRST + port), [there + SENT, back + SENT], "{port}: not the file's flows");
        }
    }

    #[test]
    fn the_delay_lies_at_the_senders_host() {
        let text = format!(
            "{LINKS}[flow.a]\nrtt = \"40 ms\"\n[flow.b]\nfrom = \"r2\"\nto = \"r0\"\nrtt = \"40 ms\"\n\
             [access]\ndelay = \"1 ms\"\nreceiver = {{ delay = \"2 ms\" }}\n"
        );
        let own = spec(&text, 1, Some(FIRST)).own;
        let [lacks, receivers] = [Span::from_micros(10_000), Span::from_millis(2)];
        for (port, sender) in [(FIRST, Side::Near), (FIRST + 1, Side::Far)] {
            for from in Side::BOTH {
                let frame = datagram(from, port, 0);
                let at = [own.before(from, &frame), own.after(from, &frame)];
                let expected = if from == sender { [lacks, receivers] } else { [receivers, lacks] };
                assert_eq!(at, expected, "{port}, from {}", from.name());
            }
        }
    }

    #[test]
    fn drawn_round_trips_are_those_of_the_simulated_run() {
        let text = format!(
            "{LINKS}[flow.a]\nrtt = {{ uniform = [\"10 ms\", \"60 ms\"] }}\ncount = 3\n[flow.b]\nrtt = {{ uniform = \
             [\"20 ms\", \"21 ms\"] }}\n"
        );
        let mut all = Vec::new();
        for seed in 1..20 {
            let own = spec(&text, seed, Some(FIRST));
            let scenario =
                Scenario::check(&Document::parse(&text, "own.toml").unwrap(), &mut |_| unreachable!()).unwrap();
            let run = expand(&scenario, seed).unwrap();
            for (port, flow) in (FIRST..).zip(&run.flows) {
                let hosts =
                    run.links.iter().filter(|link| link.host.is_some_and(|h| h == flow.source || h == flow.sink));
                let simulated = hosts.fold(Span::from_millis(16), |sum, link| sum + link.model.propagation);
                let [there, back] = crossing(&own, port);
                assert_eq!(there + back, simulated + SENT + SENT, "{seed}: {}", flow.label());
                all.push(simulated);
            }
        }
        assert!(all.iter().min() == Some(&Span::from_millis(16)), "the path's own where less was drawn");
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 50);
    }

    proptest! {
        /// All frames of a flow leave, in the order in which they entered.
        #[test]
        fn order_within_a_flow_is_kept(
            sent in prop::collection::vec((0..3u16, 0..3000u64, any::<bool>()), 1..200),
        ) {
            let text = format!("{LINKS}[flow.a]\nrtt = \"40 ms\"\n[flow.b]\nrtt = \"41 ms\"\n[flow.c]\n");
            let own = spec(&text, 1, Some(FIRST));
            let mut emulator = Emulator::new(&own, None, Emulator::MEMORY);
            let (mut now, mut received) = (Time::ZERO, Vec::new());
            let mut poll = |emulator: &mut Emulator, now| {
                while let Some(release) = emulator.poll(now) {
                    let [source, destination] = Shape::of(release.frame).unwrap().ports.unwrap();
                    received.push((release.side, source.max(destination), release.frame[99], release.due));
                }
            };
            let mut numbers = BTreeMap::new();
            for (flow, wait_us, is_back) in sent {
                now += Span::from_micros(wait_us);
                poll(&mut emulator, now);
                let from = Side::BOTH[usize::from(is_back)];
                let number = numbers.entry((from.name(), FIRST + flow)).or_insert(0u8);
                emulator.arrive(from, now, &datagram(from, FIRST + flow, *number));
                *number += 1;
            }
            poll(&mut emulator, now + Span::from_secs(9));
            prop_assert!(received.is_sorted_by_key(|(.., due)| *due));
            for side in Side::BOTH {
                for port in FIRST..FIRST + 3 {
                    let of = received.iter().filter(|one| (one.0, one.1) == (side, port)).map(|one| one.2);
                    let all = numbers.get(&(side.other().name(), port)).copied().unwrap_or(0);
                    prop_assert!(of.eq(0..all));
                }
                let Counts { in_flight, .. } = emulator.counts(side);
                prop_assert_eq!(in_flight, 0);
            }
        }
    }
}
