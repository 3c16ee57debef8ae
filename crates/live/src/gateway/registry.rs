//! The gateway process's view of the connections, from one interval to the next.

use super::status::{FlowStatus, Status};
use super::table::{Counter, FlowState, Key, flag, udp_bytes};
use crate::clock::monotonic;
use paceline_path::access_point::{FlowReport, Interval, Law, Passed};
use paceline_units::{Span, Time};
use std::collections::BTreeMap;
use std::io;

/// Time without a packet (ns) after which a closed connection is forgotten: its last packets may still be
/// retransmitted.
const ENDED: u64 = 10_000_000_000;
/// Time without a packet (ns) after which a connection whose station has acknowledged data is forgotten: longer than
/// the default keep-alive interval (Linux: 2 h), like a router's connection tracking (RFC 5382 REQ-5: at least 2 h 4
/// min).
const SILENT: u64 = 7_500_000_000_000;
/// The same for connections with only a handshake (RFC 5382 REQ-5: at least 4 min).
const OPENED: u64 = 240_000_000_000;
/// Time without a packet (ns) after which a connection is neither shown nor reported to the law; one without a known
/// handshake is forgotten, since its next packet would restore all that is known.
const SHOWN: u64 = 30_000_000_000;
/// Minimum number of segments per interval for a flow's data-to-ACK time to count as queueing delay; with fewer,
/// delayed acknowledgements distort it.
const BULK: u64 = 10;

/// A connection, with what the data path does not keep.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    number: u32,
    state: FlowState,
    /// Bytes in the last interval.
    sent: u64,
    /// The sender's bytes in flight.
    outstanding: u64,
    idle: u64,
}

/// Result of an interval.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) reports: Vec<FlowReport>,
    /// Longest data-to-ACK time above the station's minimum.
    pub(super) longest: Span,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Registry {
    flows: BTreeMap<Key, Tracked>,
    keys: BTreeMap<u32, Key>,
    next: u32,
    last: Time,
    gone: Vec<Key>,
    /// Number of connections with an unknown window scale.
    unknown: usize,
    /// Length of the last interval.
    over: Span,
    /// UDP byte count at the interval's end.
    udp: u64,
    /// Windows set in the data path: they remain there until they are removed, whatever happens to the connection.
    clamped: BTreeMap<Key, u32>,
}

impl Registry {
    /// Processes the data path's state at the end of interval number `interval`.
    pub(super) fn take_in(&mut self, states: &[(Key, FlowState)], now: Time, interval: u32) -> Taken {
        self.take_in_at(monotonic(), states, now, interval)
    }

    /// The same with an explicit time of the data path's clock.
    fn take_in_at(&mut self, clock: u64, states: &[(Key, FlowState)], now: Time, interval: u32) -> Taken {
        let over = now.since(self.last);
        (self.last, self.over) = (now, over);
        self.unknown = 0;
        let mut seen = BTreeMap::new();
        let mut minima: BTreeMap<[u8; 16], u32> = BTreeMap::new();
        for (key, state) in states {
            let idle = clock.saturating_sub(state.seen);
            if idle > patience(state) {
                self.gone.push(*key);
                continue;
            }
            if state.scale().is_none() {
                self.unknown += usize::from(idle < SHOWN);
                continue;
            }
            if state.lan_rtt_min != 0 {
                let min = minima.entry(key.lan).or_insert(u32::MAX);
                *min = state.lan_rtt_min.min(*min);
            }
            let before = self.flows.get(key).copied();
            // a new connection between the same ends counts its bytes from zero
            let same = before.filter(|b| b.state.lan_isn == state.lan_isn && b.state.bytes <= state.bytes);
            let number = same.map_or_else(
                || {
                    self.next += 1;
                    self.next
                },
                |b| b.number,
            );
            let sent = state.bytes - same.map_or(0, |b| b.state.bytes);
            let acked = same.map_or(0, |b| (state.ack.wrapping_sub(b.state.ack) as i32).max(0));
            let far = Span::from_micros(u64::from(state.wan_rtt));
            let passed = Passed { beyond: u64::from(state.in_flight()), sent, acked: acked as u64, over };
            let outstanding = passed.outstanding(state.longest_in(interval), far);
            seen.insert(*key, Tracked { number, state: *state, sent, outstanding, idle });
        }
        self.flows = seen;
        self.keys = self.flows.iter().map(|(key, flow)| (flow.number, *key)).collect();
        let mut taken = Taken::default();
        for (key, flow) in &self.flows {
            let state = &flow.state;
            let wait = state
                .longest_in(interval)
                .filter(|_| flow.sent >= BULK * u64::from(state.segment.max(1)))
                .zip(minima.get(&key.lan))
                .map(|(longest, min)| Span(longest.0.saturating_sub(Span::from_micros(u64::from(*min)).0)));
            taken.longest = taken.longest.max(wait.unwrap_or(Span::ZERO));
            if flow.idle < SHOWN {
                taken.reports.push(FlowReport {
                    flow: flow.number,
                    outstanding: flow.outstanding,
                    segment: state.segment,
                    advertised: u64::from(state.window),
                    sent: flow.sent,
                    longest_wait: wait,
                    rtt: flow.rtt(),
                });
            }
        }
        taken
    }

    /// Rate of UDP in the last interval (bit/s), from the counters at its end.
    pub(super) fn udp_rate(&mut self, counts: &[u64]) -> f64 {
        let udp = udp_bytes(counts);
        let sent = udp - std::mem::replace(&mut self.udp, udp);
        let over = self.over.as_secs_f64();
        if over > 0.0 { sent as f64 * 8.0 / over } else { 0.0 }
    }

    /// Runs the law for an interval, and passes changed windows to the data path. A single window for all connections
    /// is not set here but in [`Control::of`](super::table::Control::of).
    pub(super) fn decide(
        &mut self,
        law: &mut Law,
        interval: &Interval,
        reports: &[FlowReport],
        set: &mut dyn FnMut(&Key, Option<u32>) -> io::Result<()>,
    ) -> io::Result<()> {
        if matches!(law, Law::Fixed(_)) {
            return Ok(());
        }
        let mut decisions = Vec::new();
        law.decide(interval, reports, &mut decisions);
        let mut decided: BTreeMap<Key, u32> = BTreeMap::new();
        for decision in &decisions {
            if let (Some(key), Some(window)) = (self.keys.get(&decision.flow), decision.window) {
                decided.insert(*key, u32::try_from(window).unwrap_or(u32::MAX).max(1));
            }
        }
        // First remove old entries, also of vanished connections: a new connection between the same ends must not find
        // them, and the map needs room.
        let gone: Vec<Key> = self.clamped.keys().filter(|key| !decided.contains_key(key)).copied().collect();
        for key in gone {
            set(&key, None)?;
            self.clamped.remove(&key);
        }
        for (key, window) in decided {
            if self.clamped.get(&key) != Some(&window) {
                set(&key, Some(window))?;
                self.clamped.insert(key, window);
            }
        }
        Ok(())
    }

    /// Takes the list of connections to be forgotten.
    pub(super) fn take_gone(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.gone)
    }

    /// The status to show.
    pub(super) fn status(&self, now: Time, wait: Span, udp_rate: f64, counts: &[u64], all: u32) -> Status {
        let over = self.over.as_secs_f64();
        let shown = self.flows.iter().filter(|(_, flow)| flow.idle < SHOWN && !flow.state.is_closed());
        let flows = shown.map(|(key, flow)| {
            let [station, remote] = key.ends();
            let clamp = self.clamped.get(key).copied().or(Some(all).filter(|window| *window != 0));
            FlowStatus {
                station: station.to_string(),
                remote: remote.to_string(),
                rate_bps: if over > 0.0 { flow.sent as f64 * 8.0 / over } else { 0.0 },
                advertised_bytes: flow.state.window,
                window_bytes: clamp,
                outstanding_bytes: flow.outstanding,
                rtt_s: flow.rtt().map(Span::as_secs_f64),
                lowered: flow.state.lowered,
            }
        });
        Status {
            time_s: now.as_secs_f64(),
            delay_s: wait.as_secs_f64(),
            udp_bps: udp_rate,
            lowered: counts[Counter::Lowered as usize],
            left_alone: self.unknown,
            flows: flows.collect(),
        }
    }
}

/// How long a connection may be silent before it is forgotten.
fn patience(state: &FlowState) -> u64 {
    if state.is_closed() {
        ENDED
    } else if state.flags & flag::VALIDATED != 0 {
        SILENT
    } else if state.scale().is_some() {
        OPENED
    } else {
        SHOWN
    }
}

impl Tracked {
    /// Minimum round-trip time: the sum of both sides, if both are known.
    fn rtt(&self) -> Option<Span> {
        let (wan, lan) = (self.state.wan_rtt, self.state.lan_rtt_min);
        (wan != 0 && lan != 0).then(|| Span::from_micros(u64::from(wan) + u64::from(lan)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_path::access_point::{Voap, VoapModel};
    use paceline_units::Rate;

    fn state(bytes: u64, ack: u32, seen: u64) -> FlowState {
        FlowState {
            seen,
            bytes,
            ack,
            highest: 50_000 + ack,
            flags: flag::BOTH | flag::DATA | flag::ACK | flag::VALIDATED,
            window: 60_000,
            segment: 1000,
            wan_rtt: 20_000,
            lan_rtt_min: 1000,
            longest: [31_000, 0],
            interval: [2, 1],
            ..FlowState::default()
        }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let mut registry = Registry::default();
        let (key, old) = (Key { family: 4, ..Key::default() }, Key { family: 6, ..Key::default() });
        let now = monotonic();
        let unknown = FlowState { flags: flag::LAN_SYN, seen: now, ..FlowState::default() };
        let later = Time::ZERO + Span::from_millis(200);
        let first = registry.take_in(&[(key, state(10_000, 0, now)), (old, unknown)], later, 1);
        assert_eq!((first.reports.len(), first.longest), (1, Span::ZERO));
        assert_eq!(registry.unknown, 1);
        let second = registry.take_in(&[(key, state(30_000, 20_000, now))], later + Span::from_millis(200), 2);
        let report = second.reports[0];
        assert_eq!((report.sent, report.flow, report.advertised), (20_000, first.reports[0].flow, 60_000));
        // Behind the gateway are 50,000 bytes, limited to what passes in 31 ms; before it is what 20 ms carry.
        assert_eq!(report.outstanding, 3_100 + 2_000);
        assert_eq!(report.rtt, Some(Span::from_millis(21)));
        assert_eq!(second.longest, Span::from_millis(30));
        // The minimum is the station's over all its flows; a few segments may reflect a delayed ACK.
        let other = (Key { lan_port: [0, 1], ..key }, FlowState { lan_rtt_min: 600, ..state(0, 0, now) });
        let mut at = |millis, bytes| {
            let states = [other, (key, state(bytes, 20_000, now))];
            registry.take_in(&states, later + Span::from_millis(millis), 2).longest
        };
        assert_eq!(at(400, 40_000), Span::from_micros(30_400));
        assert_eq!(at(600, 49_999), Span::ZERO);
    }

    #[test]
    fn another_connection_between_the_same_ends_is_another() {
        let mut registry = Registry::default();
        let key = Key { family: 4, ..Key::default() };
        let now = monotonic();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let first = registry.take_in(&[(key, state(10_000, 0, now))], at(200), 1);
        let again = FlowState { lan_isn: 7, ..state(400, 0, now) };
        let second = registry.take_in(&[(key, again)], at(400), 2);
        assert_ne!(first.reports[0].flow, second.reports[0].flow);
        assert_eq!(second.reports[0].sent, 400);
    }

    #[test]
    fn a_window_does_not_outlive_its_connection() {
        let key = Key { family: 4, ..Key::default() };
        let now = monotonic();
        let model = VoapModel { threshold: 0.0, ..VoapModel::default() };
        let unknown = FlowState { flags: flag::LAN_SYN, ..state(400, 0, now) };
        // The same ends open a new connection; only its first SYN has passed; the data path has forgotten it; it ends.
        let ended = FlowState { seen: now.saturating_sub(11_000_000_000), ..state(10_000, 0, now) };
        for after in [
            vec![(key, FlowState { lan_isn: 7, ..state(400, 0, now) })],
            vec![(key, unknown)],
            vec![],
            vec![(key, FlowState { flags: ended.flags | flag::RST, ..ended })],
        ] {
            let (mut registry, mut law) = (Registry::default(), Law::Voap(Voap::new(model)));
            let mut clamped = Vec::new();
            for (n, states) in [vec![(key, state(10_000, 0, now))], after.clone()].into_iter().enumerate() {
                let at = Time::ZERO + Span::from_millis(200 * (n as u64 + 1));
                let taken = registry.take_in(&states, at, n as u32 + 2);
                let wait = if n == 0 { Span::from_millis(50) } else { Span::ZERO };
                let interval = Interval { longest_wait: wait, unresponsive: Rate::from_bps(0) };
                let mut set = |key: &Key, window: Option<u32>| {
                    clamped.push((*key, window.is_some()));
                    Ok(())
                };
                registry.decide(&mut law, &interval, &taken.reports, &mut set).unwrap();
            }
            assert_eq!(clamped, [(key, true), (key, false)], "{after:?}");
        }
    }

    #[test]
    fn what_has_ended_or_fallen_silent_goes() {
        let mut registry = Registry::default();
        let keys = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| Key { family: 4, lan_port: [0, n], ..Key::default() });
        let ago = |seconds: u64| (20_000 - seconds) * 1_000_000_000;
        let of = |flags, seconds| FlowState { flags, seen: ago(seconds), ..FlowState::default() };
        let ended = flag::BOTH | flag::LAN_FIN | flag::REMOTE_FIN;
        let states = [
            of(ended, 9),
            of(ended, 11),
            state(0, 0, ago(29)),
            state(0, 0, ago(7499)),
            state(0, 0, ago(7501)),
            // A handshake without data; an ACK without a handshake.
            of(flag::BOTH, 239),
            of(flag::BOTH, 241),
            of(flag::ACK, 29),
            of(flag::ACK, 31),
        ];
        let states: Vec<_> = keys.into_iter().zip(states).collect();
        let taken = registry.take_in_at(ago(0), &states, Time::ZERO + Span::from_millis(200), 1);
        assert_eq!(registry.take_gone(), [keys[1], keys[4], keys[6], keys[8]]);
        assert_eq!(taken.reports.len(), 2, "what is silent for half a minute is not the law's affair");
        assert_eq!(registry.take_gone(), []);
    }
}
