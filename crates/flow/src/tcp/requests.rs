//! A connection that its client opens, and on which it asks for what it is sent: requests up, answers down, as HTTP/1.1 has it
//! (RFC 9112), with TLS 1.3 or without.
//!
//! A TCP connection has two halves, each a sender at one end and a receiver at the other, and so has this one: the client's
//! half has the handshake, TLS and the requests, each with its retransmission timer, the server's has the answers.
//! What the halves do not do is ride on each other: an acknowledgement of a request is a segment of its own beside the answer,
//! and one of an answer leaves with the next request, not in it.

use super::{TcpConfig, TcpReceiver, TcpSender};
use crate::tls::{ANSWER, FINISHED, HELLO};
use crate::{ReceiverStats, Segment, SenderStats, Transmit};
use paceline_control::registry::scheme;
use paceline_control::{Ecn, Recovery, TcpController};
use paceline_packet::{Flags, Packet, TcpOptions};
use paceline_random as random;
use paceline_units::Time;

/// How a client asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requests {
    /// Bytes of a request.
    pub bytes: u64,
    /// TLS 1.3's handshake follows TCP's (RFC 8446): a second round trip.
    pub tls: bool,
}

/// The settings of the client's half: NewReno's law, and acknowledgements at once, as the answer would carry them.
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

/// The settings of the server's half, for which the client's has shaken hands.
fn downstream(config: &TcpConfig) -> TcpConfig {
    TcpConfig { handshake: false, requests: None, ..config.clone() }
}

/// Marks what leaves as of the client's half.
struct Upstream<'a, T>(&'a mut T);

impl<T: Transmit> Transmit for Upstream<'_, T> {
    fn transmit(&mut self, segment: Segment) {
        // its data go the flow's way back, its acknowledgements there
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

/// A packet of the client's half as its own ends know it; `None` for one of the server's.
fn of_upstream(packet: &Packet) -> Option<Packet> {
    let flags = Flags(packet.flags.0 ^ Flags::ACK.0).without(Flags::REQUESTS);
    packet.flags.has(Flags::REQUESTS).then_some(Packet { flags, ..*packet })
}

/// The server's end: it sends a flow's data, when they have been asked for.
#[derive(Debug)]
pub struct TcpServer {
    answers: TcpSender,
    upstream: TcpReceiver,
    requests: Requests,
    /// The connection, by the number of its first segment; what had come by then of those before it.
    connection: Option<u32>,
    before: u64,
    /// When it was first called on, unless it was called again (Karn).
    called: Option<Time>,
    /// The client has sent more than its SYN.
    opened: bool,
    /// TLS's answer has been written.
    secured: bool,
    /// Requests of this connection that have come; of all, those that have been taken, and those that have not.
    come: u64,
    taken: u32,
    ready: u32,
}

impl TcpServer {
    /// A server that waits for a client; `stream` feeds the little randomness that there is.
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

    /// A packet of the client has come.
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
            self.called = None; // which of the two the client's next segment answers nobody knows
        }
        self.read(now, out);
    }

    /// A client opens a connection.
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

    /// Reads what has come in order.
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

    /// The number of a request that has come, of all from 0 on; `None`: of each that has come it was told.
    pub fn take_request(&mut self) -> Option<u32> {
        self.ready = self.ready.checked_sub(1)?;
        self.taken += 1;
        Some(self.taken - 1)
    }

    /// The application writes more of its answers, in the order of the requests.
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

    /// See [`TcpSender::next_wake`]: the client's half acknowledges at once.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.answers.next_wake()
    }

    /// The half that sends the answers.
    #[must_use]
    pub fn answers(&self) -> &TcpSender {
        &self.answers
    }

    /// See [`TcpSender::account`].
    pub fn account(&mut self, now: Time) {
        self.answers.account(now);
    }

    /// Counts up to now, of the half that sends the answers; TLS's is among what was acknowledged.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        self.answers.stats()
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        self.answers.stats_mut()
    }
}

/// The client's end: it asks, and receives a flow's data.
#[derive(Debug)]
pub struct TcpClient {
    answers: TcpReceiver,
    upstream: TcpSender,
    requests: Requests,
    opened: bool,
    /// Bytes of TLS's answer that have not come; requests that wait for it.
    unsecured: u64,
    waiting: u32,
}

impl TcpClient {
    /// A client that has not asked; `stream` feeds the little randomness that there is.
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

    /// It asks once more; `fresh`: on another connection, all that was asked for before having come.
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

    /// What leaves takes along the acknowledgement that waits.
    fn write(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        self.upstream.supply(bytes, now, &mut Upstream(out));
        self.answers.acknowledge_waiting(out);
    }

    /// A packet of the server has come.
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

    /// The time that [`TcpClient::next_wake`] named has come; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.answers.on_timer(now, out);
        self.upstream.on_timer(now, &mut Upstream(out));
    }

    /// When [`TcpClient::on_timer`] should be called; it may move later without notice.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.answers.next_wake().min(self.upstream.next_wake())
    }

    /// Counts up to now, of the answers; what is TLS's of them is not among the application's bytes.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        self.answers.stats()
    }

    /// Counts up to now, of the half that sends the requests.
    #[must_use]
    pub fn upstream(&self) -> &SenderStats {
        self.upstream.stats()
    }
}
