//! A server's resource budget, shared by all flows: charged before resources are used, and credited when they are
//! released, in whatever way that happens.
//!
//! Memory is charged at its maximum when flows are agreed on. One client may use at most three quarters of each
//! resource, which leaves some for others; a client is an IPv4 address or an IPv6 /64, since the owner of one address
//! has the whole network. The total rate is limited through the number of sessions: each is granted at most
//! `--max-rate`.

use super::control::{MAX_RESULT, Offer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum memory of a session without its recording, in bytes: 65,536 segments in flight, timestamps, waiting writes,
/// and datagrams that wait for the granted rate, with room to grow; a viewer's frame delays.
pub const SESSION_BYTES: u64 = 8 << 20;
/// Maximum memory of a recorded sample in all tables of an end, in bytes: as numbers, and as text for the client.
pub const SAMPLE_BYTES: u64 = 1500;
/// Interval between readings of the kernel's TCP (ms), and the number of readings kept.
const KERNEL_EVERY_MS: u64 = 10;
const KERNEL_READINGS: u64 = 131_072;

/// Maximum number of samples that an end records of a flow: its recorder's, or readings of the kernel's TCP.
pub(super) fn samples(offer: &Offer) -> u64 {
    match offer.kernel {
        Some(_) => (offer.lasts_ms() / KERNEL_EVERY_MS).min(KERNEL_READINGS),
        None => offer.samples(),
    }
}

/// Maximum length of a message with the result of one of these flows, in bytes.
#[must_use]
pub fn max_result_len(offers: &[Offer]) -> usize {
    let samples = offers.iter().map(samples).max().unwrap_or(0).saturating_mul(SAMPLE_BYTES);
    usize::try_from(samples.saturating_add(1 << 20)).unwrap_or(usize::MAX).min(MAX_RESULT)
}

/// A client: an IPv4 address, or an IPv6 network with a 64-bit prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Net(IpAddr);

impl Net {
    /// The client with this address.
    #[must_use]
    pub fn of(address: IpAddr) -> Net {
        match address.to_canonical() {
            IpAddr::V6(ip) => Net(IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64))),
            ip => Net(ip),
        }
    }
}

/// A part of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Portion {
    /// Number of flows.
    pub sessions: u64,
    /// Memory in bytes.
    pub memory: u64,
}

impl Portion {
    /// What these flows need.
    #[must_use]
    pub fn of(offers: &[Offer]) -> Portion {
        let samples = offers.iter().map(samples).fold(0, u64::saturating_add);
        let sessions = offers.len() as u64;
        let memory = sessions.saturating_mul(SESSION_BYTES).saturating_add(samples.saturating_mul(SAMPLE_BYTES));
        Portion { sessions, memory }
    }

    fn plus(self, other: Portion) -> Portion {
        Portion {
            sessions: self.sessions.saturating_add(other.sessions),
            memory: self.memory.saturating_add(other.memory),
        }
    }

    fn less(self, other: Portion) -> Portion {
        Portion {
            sessions: self.sessions.saturating_sub(other.sessions),
            memory: self.memory.saturating_sub(other.memory),
        }
    }

    /// One client's limit.
    fn share(self) -> Portion {
        let of = |all: u64| (all / 4).saturating_mul(3).saturating_add(all % 4);
        Portion { sessions: of(self.sessions), memory: of(self.memory) }
    }
}

/// The total, and how much of it is in use.
#[derive(Debug)]
pub struct Budget {
    total: Portion,
    /// One client's limit.
    share: Portion,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: Portion,
    by: BTreeMap<Net, Portion>,
}

impl Budget {
    /// A budget of which nothing is in use.
    #[must_use]
    pub fn new(total: Portion) -> Arc<Budget> {
        Arc::new(Budget { total, share: total.share(), taken: Mutex::default() })
    }

    /// A budget of which one client may use everything.
    #[must_use]
    pub fn of_one(total: Portion) -> Arc<Budget> {
        Arc::new(Budget { total, share: total, taken: Mutex::default() })
    }

    /// The part in use.
    #[must_use]
    pub fn taken(&self) -> Portion {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    /// Charges a portion to a client, until the returned charge is dropped.
    ///
    /// # Errors
    /// What the budget lacks, in words for the client.
    pub fn charge(self: &Arc<Budget>, client: Net, portion: Portion) -> Result<Charge, String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = taken.by.get(&client).copied().unwrap_or_default().plus(portion);
        let all = taken.all.plus(portion);
        let share = self.share;
        if all.sessions > self.total.sessions {
            return Err("the server has as many flows as it takes; try again later".to_owned());
        }
        if of_it.sessions > share.sessions {
            let of = format!("{} of the {} flows of this server", share.sessions, self.total.sessions);
            return Err(format!("one client has {of} at most; it has as many flows as it may"));
        }
        if of_it.memory > share.memory {
            return Err(format!(
                "the flows and their recordings may take {} MB; one client has {} MB of this server's --max-memory at most: \
                 record less often, or fewer flows",
                of_it.memory.div_ceil(1 << 20),
                share.memory >> 20
            ));
        }
        if all.memory > self.total.memory {
            return Err("the server's memory is taken (--max-memory); try again later".to_owned());
        }
        taken.all = all;
        taken.by.insert(client, of_it);
        Ok(Charge { budget: Arc::clone(self), client, portion })
    }
}

/// A portion in use.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    client: Net,
    portion: Portion,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut taken = self.budget.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.less(self.portion);
        let left = taken.by.get(&self.client).map_or(Portion::default(), |of_it| of_it.less(self.portion));
        if left == Portion::default() {
            taken.by.remove(&self.client);
        } else {
            taken.by.insert(self.client, left);
        }
    }
}

/// Returns free memory to the system: glibc keeps the memory of small allocations, in an arena per thread.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::half::{EVERY, Recorder};
    use super::*;
    use crate::session::{Family, FlowSpec, ForeignSchemes, Session, SessionSpec, Side};

    fn net(name: &str) -> Net {
        Net::of(name.parse().unwrap())
    }

    #[test]
    fn one_client_leaves_room_for_another_and_gives_back_what_it_had() {
        let budget = Budget::new(Portion { sessions: 8, memory: 800 });
        let one = |memory| Portion { sessions: 1, memory };
        let (us, them) = (net("2001:db8::1"), net("192.0.2.1"));
        let mut held: Vec<_> = (0..6).map(|_| budget.charge(us, one(50)).unwrap()).collect();
        // the same network, and an address in two notations
        assert!(budget.charge(net("2001:db8::ffff:0:0:1"), one(0)).unwrap_err().contains("6 of the 8 flows"));
        let other = budget.charge(net("::ffff:192.0.2.1"), one(400)).unwrap();
        assert!(budget.charge(them, one(201)).unwrap_err().contains("--max-memory"));
        assert!(budget.charge(net("192.0.2.2"), one(101)).unwrap_err().contains("memory is taken"));
        let last = budget.charge(net("192.0.2.2"), one(100)).unwrap();
        assert!(budget.charge(net("192.0.2.3"), one(0)).unwrap_err().contains("as many flows"));
        assert_eq!(budget.taken(), Portion { sessions: 8, memory: 800 });
        held.clear();
        drop((other, last));
        assert_eq!(budget.taken(), Portion::default());
        assert!(budget.taken.lock().unwrap().by.is_empty());
        // no overflow, and a budget of one is entirely that client's
        assert!(budget.charge(us, one(u64::MAX)).is_err());
        let whole = Budget::of_one(Portion { sessions: 2, memory: u64::MAX });
        let both = [whole.charge(us, one(u64::MAX)), whole.charge(us, one(u64::MAX))];
        assert!(both.iter().all(Result::is_ok));
        assert!(Budget::new(one(1)).charge(us, one(1)).is_ok(), "of one flow one client has all");
    }

    /// A sample of either end of any scheme: its columns grow by doubling, and also become text when they are sent.
    #[test]
    fn a_sample_takes_no_more_than_is_charged() {
        let mut max = 0;
        for scheme in paceline_control::registry::schemes() {
            for side in [Side::Sender, Side::Receiver] {
                let media = match scheme.machine {
                    paceline_control::Machine::Rtp => scheme.name != "lda-plus",
                    paceline_control::Machine::Tfrc => scheme.name != "multfrc",
                    _ => false,
                };
                let app = if media { "{ kind = \"encoder\" }" } else { "{ kind = \"cbr\" }" };
                let settings = [("cc", scheme.name), ("app", app), ("delays", "true")];
                let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
                let flow = FlowSpec {
                    settings,
                    for_ms: 1000,
                    seed: 1,
                    family: Family::V4,
                    name: None,
                    foreign: ForeignSchemes::default(),
                };
                let model = flow.model().unwrap_or_else(|error| panic!("{error}"));
                let (connection, nonce, limit, announces, rtp) = (1, 1, None, false, None);
                let spec = SessionSpec { side, flow, connection, nonce, limit, announces, rtp };
                let recorder = Recorder::new(&Session::new(&spec).unwrap(), &model, EVERY);
                max = max.max(recorder.into_series().iter().map(|series| series.columns.len() as u64).sum());
            }
        }
        assert!(max > 8 && max * 40 <= SAMPLE_BYTES, "{max} columns");
    }
}
