//! What a server holds for each client, released when the client is gone, in whatever way that happens.

use super::budget::Net;
use super::control::MAX_FLOWS;
use super::server::{POLL_INTERVAL, Shared, locked};
use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::net::{IpAddr, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of connections without an agreement on flows: in total, and per address, where kernel TCP needs one
/// per flow. Each is closed after a while. After the agreement, the server's limits on flows apply.
const MAX_PENDING_CONNECTIONS: (usize, usize) = (256, MAX_FLOWS + 32);

/// The connections without an agreement, by number; later ones have higher numbers.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
#[derive(Default)]
pub(super) struct PendingConnections {
    next: u64,
    there: BTreeMap<u64, (Net, TcpStream)>,
}

impl PendingConnections {
    /// Number of such connections.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.there.len()
    }

    /// Admits a connection if there is room, or if another client has more connections: that client's oldest is then
    /// closed.
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn enters(&mut self, from: Net, stream: &TcpStream) -> Option<u64> {
        let mut of: BTreeMap<Net, usize> = BTreeMap::new();
        self.there.values().for_each(|(net, _)| *of.entry(*net).or_default() += 1);
        let of_it = of.get(&from).copied().unwrap_or(0);
        if of_it >= MAX_PENDING_CONNECTIONS.1 {
            return None;
        }
        let stream = stream.try_clone().ok()?;
        if self.there.len() >= MAX_PENDING_CONNECTIONS.0 {
            let max = of.values().copied().max().filter(|max| *max > of_it)?;
            let oldest = *self.there.iter().find(|(_, (net, _))| of[net] == max)?.0;
            let (_, gone) = self.there.remove(&oldest)?;
            // its thread reads the end of the stream, and ends
            let _ = gone.shutdown(Shutdown::Both);
        }
        self.next += 1;
        self.there.insert(self.next, (from, stream));
        Some(self.next)
    }
}

/// A connection without an agreement, for as long as this value exists.
pub(super) struct PendingConnection {
    shared: Arc<Shared>,
    number: u64,
}

impl PendingConnection {
    /// Admits a connection; `None` if there are too many.
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    pub(super) fn enters(shared: &Arc<Shared>, ip: IpAddr, stream: &TcpStream) -> Option<PendingConnection> {
        let number = locked(&shared.pending_connections).enters(Net::of(ip), stream)?;
        Some(PendingConnection { shared: Arc::clone(shared), number })
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        locked(&self.shared.pending_connections).there.remove(&self.number);
    }
}

/// Maximum number of requests validated at the same time; each flow takes some milliseconds.
const MAX_VALIDATIONS: usize = 2;

/// Permission to validate a client's request: one at a time per client, so that a client with large requests delays
/// only itself.
pub(super) struct ValidationPermit<'a> {
    shared: &'a Shared,
    from: Net,
}

impl ValidationPermit<'_> {
    /// Waits for this client's turn; `None` if the server ends before.
    pub(super) fn acquire(shared: &Shared, ip: IpAddr) -> Option<ValidationPermit<'_>> {
        let from = Net::of(ip);
        let mut validating = locked(&shared.validating);
        while validating.len() >= MAX_VALIDATIONS || validating.contains(&from) {
            if shared.over.load(Ordering::Relaxed) {
                return None;
            }
            let waited = shared.validated.wait_timeout(validating, POLL_INTERVAL);
            validating = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        validating.insert(from);
        drop(validating);
        Some(ValidationPermit { shared, from })
    }
}

impl Drop for ValidationPermit<'_> {
    fn drop(&mut self) {
        locked(&self.shared.validating).remove(&self.from);
        self.shared.validated.notify_all();
    }
}

/// A client's open flows. They end when this is dropped, however the client has left.
pub(super) struct Open<'a> {
    /// The server's state.
    pub(super) shared: &'a Shared,
    /// Ids of the flows on Paceline's own machines, with their indices in the request.
    pub(super) ids: BTreeMap<u64, usize>,
    /// Tickets of kernel-TCP flows that wait for their connections.
    pub(super) tickets: Vec<u64>,
    /// Stops the kernel-TCP flows.
    pub(super) stop: Arc<AtomicBool>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for id in self.ids.keys() {
            locked(&self.shared.waiting).remove(id);
            self.shared.handle.drop_flow(*id);
        }
        let mut tickets = locked(&self.shared.tickets);
        for ticket in &self.tickets {
            tickets.remove(ticket);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "tests of sockets in real time")]
mod tests {
    use super::super::channel::{Channel, PATIENCE};
    use super::super::control::{ClientMessage, Direction, MAX_REQUEST, Offer, ServerMessage};
    use super::super::options::ServeOptions;
    use super::super::server::{Server, rest};
    use super::*;
    use crate::clock::Clock;
    use crate::session::{Family, FlowSpec, ForeignSchemes};
    use paceline_units::{Rate, Span, Time};
    use std::thread;
    use std::time::Duration;

    /// A client that requests flows and leaves before the answer leaves nothing behind.
    #[test]
    #[ignore = "real time"]
    fn a_client_that_is_gone_at_once_leaves_nothing() {
        crate::realtime::tried(|| {
            let options = ServeOptions {
                bind: "127.0.0.1:0".parse().unwrap(),
                key: None,
                max_rate: Rate::from_bps(20_000_000),
                max_duration: Span::from_secs(60),
                max_sessions: 100,
                max_memory: 1 << 30,
                results: None,
                qlogs: None,
                schemes: ForeignSchemes::default(),
            };
            let server = Server::start(options, Box::new(|_| {})).unwrap();
            let (shared, address, stop) =
                (Arc::clone(&server.shared), server.address(), Arc::new(AtomicBool::new(false)));
            let theirs = Arc::clone(&stop);
            let serving = thread::spawn(move || server.run(&theirs));
            let spec = FlowSpec {
                settings: vec![("cc".to_owned(), "tfrc".to_owned())],
                for_ms: 50_000,
                seed: 1,
                family: Family::V4,
                name: None,
                foreign: ForeignSchemes::default(),
            };
            let kernel = |n| (n % 3 == 2).then(|| "reno".to_owned());
            let direction = |n| if n % 2 == 0 { Direction::Forward } else { Direction::Reverse };
            let offer = |n| Offer { spec: spec.clone(), direction: direction(n), kernel: kernel(n), measure: None };
            for _ in 0..5 {
                let stream = TcpStream::connect(address).unwrap();
                // closing resets the connection
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
                let mut channel = Channel::open(stream, None).unwrap();
                assert!(matches!(channel.read(MAX_REQUEST, PATIENCE), Ok(ServerMessage::Welcome { .. })));
                channel
                    .write(&ClientMessage::Open { flows: (0..18).map(offer).collect(), key: None }, PATIENCE)
                    .unwrap();
            }
            let nothing = || {
                let of_flows = shared.budget.taken().sessions as usize + shared.handle.views().len();
                of_flows
                    + locked(&shared.waiting).len()
                    + locked(&shared.tickets).len()
                    + locked(&shared.pending_connections).len()
            };
            // new flows are in the views within 0.1 s, and flows waiting for their peer would stay there forever
            rest(Duration::from_millis(500));
            let clock = Clock::start();
            while nothing() > 0 && clock.now() < Time::from_secs_f64(5.0) {
                rest(Duration::from_millis(100));
            }
            assert_eq!(nothing(), 0);
            stop.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    }
}
