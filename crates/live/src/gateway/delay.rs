//! The queueing delay of packets on their way to the stations, measured where they wait.

use super::error::GatewayError;
use super::rtnetlink::{Bucket, Discipline, Interface, Netlink, SHAPER};
use paceline_units::{Rate, Size, Span, Time};

/// Where the delay is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DelayFrom {
    /// In the gateway's own shaper on the LAN interface: its backlog divided by its rate. The rate must be slightly
    /// lower than that of the link behind it, so that packets wait nowhere else.
    Shaper {
        /// Its rate, Ethernet headers included.
        rate: Rate,
        /// Maximum backlog.
        limit: Size,
    },
    /// In the interface's own queueing discipline: its backlog divided by its measured drain rate.
    Queue,
    /// From data to their acknowledgement on the LAN's side, minus the station's minimum: the only way if packets wait
    /// in a driver, as with Wi-Fi. Flows of fewer than ten segments per interval do not count, since delayed
    /// acknowledgements are slower than queues.
    Ack,
}

impl DelayFrom {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DelayFrom::Shaper { .. } => "shaper",
            DelayFrom::Queue => "queue",
            DelayFrom::Ack => "ack",
        }
    }

    /// Polling interval: the longest wait is that of the polled samples.
    pub(super) const fn step(self) -> Span {
        match self {
            DelayFrom::Shaper { .. } | DelayFrom::Queue => Span::from_millis(4),
            DelayFrom::Ack => Span::from_millis(100),
        }
    }
}

/// The queue of an interface, polled repeatedly. If it created a shaper, dropping it removes the shaper.
#[derive(Debug)]
pub(super) struct Queue {
    netlink: Netlink,
    interface: Interface,
    /// Drain rate in bytes per second; 0: unknown.
    drain: f64,
    shaper: bool,
    /// Start of the current period in which the queue was never empty, and the bytes that had left it then.
    busy: Option<(Time, u64)>,
    longest: Span,
    /// The discipline's drop counter at the last poll.
    drops: u32,
    dropped: u64,
}

impl Queue {
    /// Creates a shaper, or uses the interface's discipline.
    pub(super) fn of(interface: &Interface, from: DelayFrom) -> Result<Queue, GatewayError> {
        let mut netlink = Netlink::open()?;
        let found = netlink.discipline(interface.index)?;
        let name = interface.name.clone();
        let mut drain = 0.0;
        let shaper = match (from, &found) {
            (DelayFrom::Shaper { rate, limit }, found) => {
                if let Some(Discipline { kind, handle, .. }) = found
                    && *handle != 0
                    && !is_ours(kind, *handle)
                {
                    return Err(GatewayError::Shaped { name, kind: kind.clone(), handle: *handle });
                }
                let bucket = bucket(rate, limit, interface.mtu)?;
                netlink.add_shaper(interface.index, &bucket)?;
                drain = f64::from(bucket.bytes_per_second);
                true
            }
            (_, Some(_)) => false,
            (_, None) => return Err(GatewayError::NoQueue { name }),
        };
        let drops = netlink.discipline(interface.index)?.map_or(0, |found| found.drops);
        let interface = interface.clone();
        Ok(Queue { netlink, interface, drain, shaper, busy: None, longest: Span::ZERO, drops, dropped: 0 })
    }

    /// Polls the queue.
    pub(super) fn look(&mut self, now: Time) -> Result<(), GatewayError> {
        let name = || self.interface.name.clone();
        let found = match self.netlink.discipline(self.interface.index) {
            Err(GatewayError::Route { error, .. }) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Err(GatewayError::Gone { name: name() });
            }
            other => other?,
        };
        let found = match found {
            Some(found) if !self.shaper || is_ours(&found.kind, found.handle) => found,
            None if !self.shaper => return Err(GatewayError::NoQueue { name: name() }),
            other => {
                let there = other.map_or_else(|| "nothing is".to_owned(), |found| format!("{} is", found.kind));
                return Err(GatewayError::ShaperGone { name: name(), there });
            }
        };
        self.dropped += u64::from(found.drops.wrapping_sub(self.drops));
        self.drops = found.drops;
        if !self.shaper {
            self.measure(now, &found);
        }
        if self.drain > 0.0 {
            let wait = Span::from_secs_f64(f64::from(found.backlog) / self.drain);
            self.longest = self.longest.max(wait);
        }
        Ok(())
    }

    /// Measures the drain rate: the bytes that leave while the queue is not empty, over at least 0.1 s.
    fn measure(&mut self, now: Time, found: &Discipline) {
        if found.backlog == 0 {
            self.busy = None;
            return;
        }
        let &mut (since, bytes) = self.busy.get_or_insert((now, found.bytes));
        let over = now.since(since);
        if over >= Span::from_millis(100) {
            self.drain = found.bytes.wrapping_sub(bytes) as f64 / over.as_secs_f64();
            self.busy = Some((now, found.bytes));
        }
    }

    /// The longest wait since the last call.
    pub(super) fn take_longest(&mut self) -> Span {
        std::mem::replace(&mut self.longest, Span::ZERO)
    }

    /// Packets that it has dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.shaper {
            // The interface may be gone; other errors can no longer be reported.
            let _ = self.netlink.remove_shaper(self.interface.index);
        }
    }
}

/// Whether a discipline is a gateway's shaper.
fn is_ours(kind: &str, handle: u32) -> bool {
    handle == SHAPER && kind == "tbf"
}

/// Removes the shaper of a killed gateway; returns whether there was one.
pub(super) fn clear_leftover(interface: u32) -> Result<bool, GatewayError> {
    let mut netlink = Netlink::open()?;
    let found = netlink.discipline(interface)?;
    let left = found.is_some_and(|found| is_ours(&found.kind, found.handle));
    if left {
        netlink.remove_shaper(interface)?;
    }
    Ok(left)
}

/// Size of the token bucket: what the rate carries in a millisecond, and at least two packets of `mtu` bytes, since the
/// kernel's token bucket drops larger packets.
pub(super) fn bucket(rate: Rate, limit: Size, mtu: u32) -> Result<Bucket, GatewayError> {
    /// An Ethernet header and a VLAN tag, in bytes.
    const HEADER: f64 = 18.0;
    let two_packets = (2.0 * (f64::from(mtu) + HEADER)).max(3200.0);
    let bytes = rate.bps() / 8.0;
    if !(1000.0..=f64::from(u32::MAX)).contains(&bytes) {
        return Err(GatewayError::Options(format!("--rate {rate}: from 8 kbit/s to 34 Gbit/s")));
    }
    let Some(max) = u32::try_from(limit.bytes()).ok().filter(|limit| *limit >= 3200) else {
        return Err(GatewayError::Options(format!("--queue {}B: from 3200 B to 4 GB", limit.bytes())));
    };
    let burst = (bytes / 1000.0).clamp(two_packets, f64::from(u32::MAX)) as u32;
    Ok(Bucket { bytes_per_second: bytes as u32, burst, limit: max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_a_millisecond() {
        let of = |mbps: f64| bucket(Rate::from_mbps(mbps), Size::from_bytes(50_000), 1500);
        assert_eq!(of(10.0).unwrap(), Bucket { bytes_per_second: 1_250_000, burst: 3200, limit: 50_000 });
        assert_eq!(of(100.0).unwrap().burst, 12_500);
        assert!(of(0.001).is_err() && of(1e6).is_err());
        assert!(bucket(Rate::from_mbps(1.0), Size::from_bytes(100), 1500).is_err());
        let jumbo = bucket(Rate::from_mbps(10.0), Size::from_bytes(50_000), 9000).unwrap();
        assert!(jumbo.burst >= 2 * 9014, "{jumbo:?}");
    }
}
