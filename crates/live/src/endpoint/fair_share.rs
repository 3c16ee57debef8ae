//! Fair shares of a driver's processor time among its clients (deficit scheduling): no client's flows starve those of
//! others.
//!
//! The time that serving a flow takes is charged to its client (an address, or a /64 of IPv6). As time passes, each
//! client is credited an equal share of it, and all of the time that the driver slept. A client whose deficit exceeds
//! [`CREDIT`] is skipped until it has fallen: its timers wait, and datagrams for it are dropped, as by a host that is
//! too slow for them. A client alone has all of the time, and is never in deficit for long.

use super::budget::Net;
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// Processor time that a client may use beyond its share.
const CREDIT: Span = Span::from_millis(10);
/// Maximum deficit: a client with one very expensive visit is not locked out for long.
const LONGEST: Span = Span::from_millis(500);

/// The clients of a driver, and their deficits.
#[derive(Debug, Default)]
pub(super) struct FairShare {
    /// The deficit of each in nanoseconds, and its number of flows.
    clients: BTreeMap<Net, (u64, usize)>,
    settled: Time,
    idle: Span,
}

impl FairShare {
    /// Adds a flow of this client.
    pub(super) fn enters(&mut self, client: Net) {
        self.clients.entry(client).or_default().1 += 1;
    }

    /// Removes one of its flows. The deficit disappears with the last one.
    pub(super) fn leaves(&mut self, client: Net) {
        if let Some((_, flows)) = self.clients.get_mut(&client) {
            *flows -= 1;
            if *flows == 0 {
                self.clients.remove(&client);
            }
        }
    }

    /// Charges the time that serving one of its flows took.
    pub(super) fn charge(&mut self, client: Net, took: Span) {
        if let Some((owed, _)) = self.clients.get_mut(&client) {
            *owed = (*owed + took.0).min(LONGEST.0);
        }
    }

    /// Counts time that the driver slept.
    pub(super) fn slept(&mut self, time: Span) {
        self.idle += time;
    }

    /// Credits all clients for the time up to `now`.
    pub(super) fn settle(&mut self, now: Time) {
        let passed = now.since(self.settled).0;
        self.settled = now;
        let idle = std::mem::take(&mut self.idle).0.min(passed);
        let credit = idle + (passed - idle) / self.clients.len().max(1) as u64;
        for (owed, _) in self.clients.values_mut() {
            *owed = owed.saturating_sub(credit);
        }
    }

    /// Whether a client is skipped at `now`, after crediting the time until then: a client alone is not, however long a
    /// visit took.
    pub(super) fn is_over(&mut self, client: Net, now: Time) -> bool {
        if self.wait(client) > Span::ZERO {
            self.settle(now);
        }
        self.wait(client) > Span::ZERO
    }

    /// How much longer a client is skipped, if the driver sleeps meanwhile.
    pub(super) fn wait(&self, client: Net) -> Span {
        Span(self.clients.get(&client).map_or(0, |(owed, _)| owed.saturating_sub(CREDIT.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn client(name: &str) -> Net {
        Net::of(name.parse::<IpAddr>().unwrap())
    }

    /// Simulates clients with visits of one millisecond for ten seconds; `wants` and the result are shares of the
    /// driver's time.
    fn served(wants: &[f64]) -> Vec<f64> {
        let clients: Vec<Net> = (0..wants.len()).map(|n| client(&format!("192.0.2.{n}"))).collect();
        let mut turns = FairShare::default();
        clients.iter().for_each(|client| turns.enters(*client));
        let mut had = vec![0.0; wants.len()];
        let mut now = Time::ZERO;
        while now < Time::from_secs_f64(10.0) {
            turns.settle(now);
            let before = now;
            for (n, client) in clients.iter().enumerate() {
                if had[n] < wants[n] * now.as_secs_f64() && !turns.is_over(*client, now) {
                    now += Span::from_millis(1);
                    had[n] += 1e-3;
                    turns.charge(*client, Span::from_millis(1));
                }
            }
            if now == before {
                now += Span::from_micros(100);
                turns.slept(Span::from_micros(100));
            }
        }
        had.iter().map(|had| had / 10.0).collect()
    }

    #[test]
    fn shares_are_equal_where_there_is_too_little_and_nobody_is_bound_where_there_is_enough() {
        let alone = served(&[5.0]);
        assert!(alone[0] > 0.99, "{alone:?}");
        let both = served(&[5.0, 5.0]);
        assert!((0.45..0.55).contains(&both[0]) && (0.45..0.55).contains(&both[1]), "{both:?}");
        let modest = served(&[5.0, 0.1, 0.2]);
        assert!(modest[0] > 0.4 && (modest[1] - 0.1).abs() < 0.01 && (modest[2] - 0.2).abs() < 0.01, "{modest:?}");
        let enough = served(&[0.3, 0.3, 0.3]);
        assert!(enough.iter().all(|had| (had - 0.3).abs() < 0.01), "{enough:?}");
    }

    #[test]
    fn what_is_owed_goes_with_the_last_flow_and_is_bounded() {
        let (mut turns, one, two) = (FairShare::default(), client("192.0.2.1"), client("2001:db8::1"));
        [one, one, two].into_iter().for_each(|client| turns.enters(client));
        turns.charge(one, Span::from_secs(60));
        assert_eq!(turns.wait(one), Span(LONGEST.0 - CREDIT.0));
        assert!(!turns.is_over(two, Time::ZERO));
        assert_eq!(client("2001:db8::ffff:1"), two, "of one network");
        turns.leaves(one);
        assert!(turns.is_over(one, Time::ZERO));
        turns.leaves(one);
        assert!(!turns.is_over(one, Time::ZERO));
    }

    /// A handshake takes long on a busy host: datagrams that arrived meanwhile are not dropped if no other client
    /// waits.
    #[test]
    fn a_long_visit_passes_over_nobody_who_is_alone() {
        let long = Span::from_millis(60);
        for (clients, over) in [(1, false), (2, true)] {
            let mut turns = FairShare::default();
            let all: Vec<Net> = (0..clients).map(|n| client(&format!("192.0.2.{n}"))).collect();
            all.iter().for_each(|client| turns.enters(*client));
            turns.settle(Time::ZERO);
            turns.charge(all[0], long);
            assert_eq!(turns.is_over(all[0], Time::ZERO + long), over, "{clients} clients");
            assert_eq!(turns.is_over(all[0], Time::ZERO + long), over, "time passes once");
        }
    }
}
