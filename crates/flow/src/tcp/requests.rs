//! A connection that the client opens, and on which it requests the data that it receives: requests up, answers down,
//! as in HTTP/1.1 (RFC 9112), with or without TLS 1.3.
//!
//! A TCP connection has two halves, each with a sender at one end and a receiver at the other. The client's half has
//! the handshake, TLS and the requests; the server's half has the answers; each has a retransmission timer. The halves
//! do not piggyback: an acknowledgement of a request is a separate segment beside the answer, and one of an answer is
//! sent with the next request, not in it.

use super::{TcpConfig, TcpReceiver, TcpSender};
use crate::tls::{ANSWER, FINISHED, HELLO};
use crate::{ReceiverStats, Segment, SenderStats, Transmit};
use paceline_control::registry::scheme;
use paceline_control::{Ecn, Recovery, TcpController};
use paceline_packet::{Flags, Packet, TcpOptions};
use paceline_random as random;
use paceline_units::Time;

/// The settings of a client's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requests {
    /// Bytes of a request.
    pub bytes: u64,
    /// TLS 1.3's handshake follows TCP's (RFC 8446): a second round trip.
    pub tls: bool,
}

/// The settings of the client's half: NewReno as the controller, and immediate acknowledgements, since the answer would
/// carry them.
fn upstream(config: &TcpConfig) -> TcpConfig {
    let usual = scheme("newreno").map(|newreno| TcpConfig::new(config.profile, newreno));
    let recovery = match config.recovery {
        given @ (Recovery::NewReno | Recovery::Sack | Recovery::Rack) => given,
        _ => usual.map_or(Recovery::NewReno, |usual| usual.recovery),
    };
    TcpConfig {
        recovery,
        delayed_ack: None,
        ecn: Ecn::Off,
        prr: false,
        pacing: false,
        initial_window: config.initial_window.max(2),
        requests: None,
        ..config.clone()
    }
}

/// The settings of the server's half. It has no handshake, because the client's half does it.
fn downstream(config: &TcpConfig) -> TcpConfig {
    TcpConfig { handshake: false, requests: None, ..config.clone() }
}

/// Marks the transmitted segments as belonging to the client's half.
struct Upstream<'a, T>(&'a mut T);

impl<T: Transmit> Transmit for Upstream<'_, T> {
    fn transmit(&mut self, segment: Segment) {
        // its data takes the flow's reverse path, its acknowledgements the forward path
        let flags = Flags(segment.flags.0 ^ Flags::ACK.0).with(Flags::REQUESTS);
        self.0.transmit(Segment { flags, ..segment });
    }

    fn left(&self, now: Time) -> Time {
        self.0.left(now)
    }

    fn full_until(&self) -> Option<Time> {
        self.0.full_until()
    }

    fn takes_burst(&self) -> bool {
        self.0.takes_burst()
    }
}

/// A packet of the client's half, with the flags that its own ends expect; `None` for one of the server's half.
fn of_upstream(packet: &Packet) -> Option<Packet> {
    let flags = Flags(packet.flags.0 ^ Flags::ACK.0).without(Flags::REQUESTS);
    packet.flags.has(Flags::REQUESTS).then_some(Packet { flags, ..*packet })
}

/// The server's end: it sends a flow's data after requests for it.
#[derive(Debug)]
pub struct TcpServer {
    answers: TcpSender,
    upstream: TcpReceiver,
    requests: Requests,
    /// The connection, identified by the number of its first segment; and the bytes received on earlier connections.
    connection: Option<u32>,
    before: u64,
    /// When the SYN arrived; `None` if it arrived more than once (Karn).
    called: Option<Time>,
    /// The client has sent data.
    opened: bool,
    /// The server's TLS handshake messages have been written.
    secured: bool,
    /// Requests received on this connection; and, of all connections, those returned by `take_request`, and those still
    /// waiting.
    come: u64,
    taken: u32,
    ready: u32,
}

impl TcpServer {
    /// Creates a server that waits for a client; `stream` supplies the few random draws.
    #[must_use]
    pub fn new(config: &TcpConfig, requests: Requests, controller: TcpController, stream: random::Stream) -> TcpServer {
        TcpServer {
            answers: TcpSender::new(&downstream(config), controller, stream),
            upstream: TcpReceiver::new(&upstream(config)),
            requests,
            connection: None,
            before: 0,
            called: None,
            opened: false,
            secured: !requests.tls,
            come: 0,
            taken: 0,
            ready: 0,
        }
    }

    /// Processes a packet of the client.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, options: Option<&TcpOptions>, out: &mut impl Transmit) {
        let Some(packet) = of_upstream(packet) else {
            return self.answers.on_ack_out_of_line(now, packet, options, out);
        };
        let had = self.upstream.stats().bytes;
        self.upstream.on_data(now, &packet, &mut Upstream(out));
        let base = self.upstream.base();
        if self.connection != Some(base) {
            self.connect(now, base, had, packet.flags.has(Flags::SYN));
        } else if packet.flags.has(Flags::SYN) {
            self.called = None; // ambiguous: the client's next segment may answer either SYN/ACK
        }
        self.read(now, out);
    }

    /// Starts a connection that a client opens.
    fn connect(&mut self, now: Time, base: u32, had: u64, calls: bool) {
        if self.connection.is_some() {
            self.answers.restart(now);
        }
        self.connection = Some(base);
        self.before = had;
        self.called = calls.then_some(now);
        self.opened = false;
        self.secured = !self.requests.tls;
        self.come = 0;
    }

    /// Processes data received in order.
    fn read(&mut self, now: Time, out: &mut impl Transmit) {
        let mut bytes = self.upstream.stats().bytes - self.before;
        if bytes == 0 {
            return;
        }
        if !self.opened {
            self.opened = true;
            if let Some(called) = self.called {
                self.answers.first_round_trip(now, now.since(called));
            }
            self.answers.start(now, out);
        }
        if self.requests.tls {
            if !self.secured && bytes >= HELLO {
                self.secured = true;
                self.answers.supply(ANSWER, now, out);
            }
            bytes = bytes.saturating_sub(HELLO + FINISHED);
        }
        let come = bytes / self.requests.bytes.max(1);
        self.ready += (come - self.come) as u32;
        self.come = come;
    }

    /// The number of the next request that has arrived and was not yet returned; requests are numbered from 0.
    pub fn take_request(&mut self) -> Option<u32> {
        self.ready = self.ready.checked_sub(1)?;
        self.taken += 1;
        Some(self.taken - 1)
    }

    /// The application writes more of the answers, in the order of the requests.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        self.answers.supply(bytes, now, out);
    }

    /// See [`TcpSender::stop`].
    pub fn stop(&mut self) {
        self.answers.stop();
    }

    /// See [`TcpSender::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.answers.on_timer(now, out);
    }

    /// See [`TcpSender::next_wake`]. The half of the client needs no timer here, since it acknowledges at once.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.answers.next_wake()
    }

    /// The sender of the answers.
    #[must_use]
    pub fn answers(&self) -> &TcpSender {
        &self.answers
    }

    /// See [`TcpSender::account`].
    pub fn account(&mut self, now: Time) {
        self.answers.account(now);
    }

    /// Counters up to now of the sender of the answers; acknowledged bytes include TLS's.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        self.answers.stats()
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        self.answers.stats_mut()
    }
}

/// The client's end: it sends requests, and receives a flow's data.
#[derive(Debug)]
pub struct TcpClient {
    answers: TcpReceiver,
    upstream: TcpSender,
    requests: Requests,
    opened: bool,
    /// Bytes of the server's TLS handshake not yet received, and requests that wait for them.
    unsecured: u64,
    waiting: u32,
}

impl TcpClient {
    /// Creates a client that has sent no request; `stream` supplies the few random draws.
    #[must_use]
    pub fn new(config: &TcpConfig, requests: Requests, stream: random::Stream) -> TcpClient {
        let law = scheme("newreno").ok().and_then(|scheme| TcpController::new(scheme, config.profile, &[]).ok());
        let law = law.expect("newreno is a window controller of every profile, and takes its defaults");
        TcpClient {
            answers: TcpReceiver::new(&downstream(config)),
            upstream: TcpSender::new(&upstream(config), law, stream),
            requests,
            opened: false,
            unsecured: 0,
            waiting: 0,
        }
    }

    /// Sends a request. `fresh`: on a new connection; everything requested before must have arrived.
    pub fn request(&mut self, fresh: bool, now: Time, out: &mut impl Transmit) {
        if fresh || !self.opened {
            self.open(now, out);
        }
        if self.unsecured > 0 {
            self.waiting += 1;
        } else {
            self.write(self.requests.bytes, now, out);
        }
    }

    fn open(&mut self, now: Time, out: &mut impl Transmit) {
        if self.opened {
            self.upstream.restart(now);
            self.answers.follow();
        }
        self.opened = true;
        self.unsecured = if self.requests.tls { ANSWER } else { 0 };
        self.upstream.start(now, &mut Upstream(out));
        if self.requests.tls {
            self.write(HELLO, now, out);
        }
    }

    /// Writes data of the client's half, and sends a waiting acknowledgement with it.
    fn write(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        self.upstream.supply(bytes, now, &mut Upstream(out));
        self.answers.acknowledge_waiting(out);
    }

    /// Processes a packet of the server.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, options: Option<&TcpOptions>, out: &mut impl Transmit) {
        if let Some(ack) = of_upstream(packet) {
            return self.upstream.on_ack_out_of_line(now, &ack, options, &mut Upstream(out));
        }
        let had = self.answers.stats().bytes;
        self.answers.on_data(now, packet, out);
        if self.unsecured > 0 {
            let of_tls = (self.answers.stats().bytes - had).min(self.unsecured);
            self.answers.discount(of_tls);
            self.unsecured -= of_tls;
            if self.unsecured == 0 {
                let mut first = FINISHED;
                for _ in 0..core::mem::take(&mut self.waiting) {
                    self.write(core::mem::take(&mut first) + self.requests.bytes, now, out);
                }
            }
        }
    }

    /// The time that [`TcpClient::next_wake`] returned has arrived; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.answers.on_timer(now, out);
        self.upstream.on_timer(now, &mut Upstream(out));
    }

    /// When to call [`TcpClient::on_timer`]; the time may move later without notice.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.answers.next_wake().min(self.upstream.next_wake())
    }

    /// Counters up to now of the answers; the application's bytes exclude TLS's.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        self.answers.stats()
    }

    /// Counters up to now of the sender of the requests.
    #[must_use]
    pub fn upstream(&self) -> &SenderStats {
        self.upstream.stats()
    }
}
