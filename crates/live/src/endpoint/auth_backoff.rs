//! Penalties for wrong keys: a client with several must wait, longer each time, and logs about it are rate-limited.

use super::budget::Net;
use paceline_units::{Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Wrong keys in a row without a penalty: a user may pick the wrong file.
const FREE: u32 = 3;
/// The first wait, which each further wrong key doubles, and the longest.
const WAITS: (Span, Span) = (Span::from_secs(1), Span::from_secs(60));
/// Time after the end of its wait until an address is forgotten.
const FORGOTTEN: Span = Span::from_secs(600);
/// Maximum number of addresses remembered.
const MAX_ADDRESSES: usize = 4096;
/// Period of the log's rate limit for events that anyone can cause.
const LOG_INTERVAL: Span = Span::from_secs(10);

/// Wrong keys by client: an IPv6 client is a /64, since the owner of one address has the whole network.
#[derive(Debug, Default)]
pub(super) struct Tries(BTreeMap<Net, Tried>);

#[derive(Debug)]
struct Tried {
    wrong: u32,
    until: Time,
}

impl Tries {
    /// Remaining wait of an address.
    pub(super) fn wait(&self, ip: IpAddr, now: Time) -> Option<Span> {
        let left = self.0.get(&Net::of(ip))?.until.since(now);
        (left > Span::ZERO).then_some(left)
    }

    /// Records a wrong key.
    pub(super) fn wrong(&mut self, ip: IpAddr, now: Time) {
        let ip = Net::of(ip);
        if self.0.len() >= MAX_ADDRESSES && !self.0.contains_key(&ip) {
            // drop the address whose wait ends first, or any that is to be forgotten
            let first = self.0.iter().min_by_key(|(_, tried)| tried.until).map(|(ip, _)| *ip);
            first.map(|first| self.0.remove(&first));
        }
        let tried = self.0.entry(ip).or_insert(Tried { wrong: 0, until: now });
        if tried.until + FORGOTTEN < now {
            tried.wrong = 0;
        }
        tried.wrong = tried.wrong.saturating_add(1);
        let doubled = tried.wrong.checked_sub(FREE + 1).map(|times| WAITS.0.0 << times.min(30));
        tried.until = now + doubled.map_or(Span::ZERO, |wait| Span(wait).min(WAITS.1));
    }

    /// Records the right key.
    pub(super) fn right(&mut self, ip: IpAddr) {
        self.0.remove(&Net::of(ip));
    }
}

/// Rate-limits log lines about an event that anyone can cause.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    max_lines: u32,
    /// When the period began, and the number of lines logged in it.
    since: Option<Time>,
    logged: u32,
    suppressed: u64,
}

impl LogRateLimiter {
    /// Allows `max_lines` lines per [`LOG_INTERVAL`].
    pub(super) fn new(max_lines: u32) -> LogRateLimiter {
        LogRateLimiter { max_lines, since: None, logged: 0, suppressed: 0 }
    }

    /// Records the event again; if it is to be logged, returns the text to append.
    pub(super) fn on_event(&mut self, now: Time) -> Option<String> {
        if self.since.is_none_or(|since| now.since(since) >= LOG_INTERVAL) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged == self.max_lines {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        let suppressed = std::mem::take(&mut self.suppressed);
        Some(if suppressed > 0 { format!("; {suppressed} more like this since the last time") } else { String::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn each_wrong_key_waits_longer_and_a_right_one_ends_it() {
        let (mut tries, ip) = (Tries::default(), "192.0.2.1".parse().unwrap());
        let mut waits = Vec::new();
        for _ in 0..12 {
            tries.wrong(ip, at(5.0));
            waits.push(tries.wait(ip, at(5.0)).map_or(0, |wait| wait.0 / 1_000_000_000));
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(tries.wait(ip, at(64.0)), Some(Span::from_secs(1)));
        assert_eq!(tries.wait(ip, at(65.0)), None);
        assert_eq!(tries.wait("192.0.2.2".parse().unwrap(), at(5.0)), None);
        // the wait is over, but the address is still remembered
        tries.wrong(ip, at(100.0));
        assert!(tries.wait(ip, at(100.0)).is_some());
        tries.wrong(ip, at(1000.0));
        assert_eq!(tries.wait(ip, at(1000.0)), None, "long ago");
        (0..3).for_each(|_| tries.wrong(ip, at(1000.0)));
        assert!(tries.wait(ip, at(1000.0)).is_some());
        tries.right(ip);
        assert_eq!(tries.wait(ip, at(1000.0)), None);
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let mut tries = Tries::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..=FREE {
            tries.wrong(ip(&format!("2001:db8:0:1::{n}")), at(1.0));
        }
        assert!(tries.wait(ip("2001:db8:0:1:ffff::1"), at(1.0)).is_some());
        assert!(tries.wait(ip("2001:db8:0:2::1"), at(1.0)).is_none());
    }

    #[test]
    fn many_addresses_take_no_more_memory() {
        let (mut tries, long) = (Tries::default(), "192.0.2.1".parse().unwrap());
        (0..12).for_each(|_| tries.wrong(long, at(0.0)));
        for n in 0..3 * MAX_ADDRESSES as u32 {
            tries.wrong(std::net::Ipv4Addr::from_bits(n).into(), at(1.0));
        }
        assert_eq!(tries.0.len(), MAX_ADDRESSES);
        assert!(tries.wait(long, at(1.0)).is_some(), "who waits longest stays");
    }

    #[test]
    fn the_log_is_told_seldom() {
        let mut limiter = LogRateLimiter::new(1);
        assert_eq!(limiter.on_event(at(1.0)), Some(String::new()));
        assert!((0..500).all(|_| limiter.on_event(at(10.9)).is_none()));
        assert_eq!(limiter.on_event(at(11.0)).unwrap(), "; 500 more like this since the last time");
        assert_eq!(limiter.on_event(at(30.0)), Some(String::new()));
        let mut more = LogRateLimiter::new(3);
        let said = (0..10).filter(|_| more.on_event(at(5.0)).is_some()).count();
        assert_eq!((said, more.on_event(at(15.0)).as_deref()), (3, Some("; 7 more like this since the last time")));
        assert!(more.on_event(at(16.0)).is_some_and(|more| more.is_empty()));
    }
}
