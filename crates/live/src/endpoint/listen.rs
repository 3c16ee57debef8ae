//! `paceline receive`: receives plain RTP from a foreign sender, and returns feedback to it.
//!
//! Nobody has requested this feedback by name. It is sent only to the stream's source address; it begins with the
//! second packet in sequence, and uses at most a twentieth of the received rate ([`paceline_flow::rtp::RtpListener`]).
//! The first host with a valid stream is the sender; packets from other hosts are counted and ignored. Each port of the
//! sender is its own session, as for audio and video. RTCP uses the next port, or RTP's own if the sender's arrives
//! there (RFC 5761).

mod results;

use super::client::SendError;
use super::outcome::LiveRun;
use super::udp::UdpPort;
use crate::clock::{Clock, Waiter, readable};
use crate::host::{HostReport, HostState};
use crate::session::reports::is_rtcp;
use crate::session::{EcnBits, Family, Outbox};
use paceline_control::{Profile, RtpFeedback, RtpSettings};
use paceline_flow::rtp::{
    FeedbackConfig, FeedbackFormat, LISTENER_SHARE, MinInterval, ReceivedPacket, ReceivedStream, RtpConfig, RtpListener,
};
use paceline_flow::{Segment, Transmit};
use paceline_packet::Extra;
use paceline_packet::rtp::RtpData;
use paceline_packet::wire::{rtcp, rtp};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Interval at which the watch is updated and checked for a stop.
const WATCH_INTERVAL: Span = Span::from_millis(100);
/// Interval between rows of the recordings.
const EVERY: Span = Span::from_millis(200);
/// A sender that is silent for this long counts as gone.
const SILENCE: Span = Span::from_secs(30);
/// The end if the sender said goodbye (BYE).
const LEFT: &str = "peer closed";
/// The end if a system call failed.
const FAILED: &str = "the system failed";
/// Maximum number of candidate addresses for the sender, later of its ports.
const MAX_SENDERS: usize = 16;

/// What to listen for.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Local address for RTP.
    pub bind: SocketAddr,
    /// Local port for RTCP.
    pub rtcp_port: u16,
    /// The sender's port for RTCP; `None`: the source of its own RTCP or, until that is known, the port after that of
    /// its RTP.
    pub peer_rtcp_port: Option<u16>,
    /// Feedback beside RTP's own reports.
    pub feedback: Option<FeedbackFormat>,
    /// Extension ID of transport-wide sequence numbers, 1 to 14.
    pub transport_id: u8,
    /// Duration; `None`: until it is stopped, or the sender leaves.
    pub lasts: Option<Span>,
}

/// What a stream shows while it runs.
#[derive(Clone, Debug, Serialize)]
pub struct ShownStream {
    /// SSRC in hexadecimal.
    pub flow: String,
    /// Time since the first packet of all streams (s).
    pub time_s: f64,
    /// Bytes of payload so far.
    pub bytes: u64,
    /// Packets so far.
    pub packets: u64,
    /// Share of the expected packets that were lost.
    pub loss: Option<f64>,
}

/// Observes [`listen`] from another thread, and stops it.
#[derive(Debug, Default)]
pub struct ListenWatch {
    stop: AtomicBool,
    shown: Mutex<Vec<ShownStream>>,
}

impl ListenWatch {
    /// Stops it within a tenth of a second.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The streams now.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownStream> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An address that sends.
struct Sender {
    from: SocketAddr,
    /// The rates of its streams.
    recorded: Vec<Recorded>,
    /// The source of its RTCP, and whether that arrives on RTP's port.
    control: Option<(SocketAddr, bool)>,
    listener: RtpListener,
}

impl Sender {
    /// Packets received from it.
    fn packets(&self) -> u64 {
        self.listener.streams().iter().map(|stream| stream.packets).sum()
    }
}

/// Collects outgoing reports.
#[derive(Default)]
struct Reports(Outbox);

impl Transmit for Reports {
    fn transmit(&mut self, segment: Segment) {
        let Some(Extra::Rtcp(report)) = &segment.extra else { return };
        self.0.push(0, EcnBits::NotEct, |to| {
            // a report that does not fit in a packet is not sent
            let _ = rtcp::encode(report, to);
        });
    }
}

struct Listening {
    options: ListenOptions,
    config: RtpConfig,
    clock: Clock,
    /// For RTP, for RTCP.
    ports: [UdpPort; 2],
    senders: Vec<Sender>,
    /// The host being received: all of `senders` are its ports.
    chosen: Option<IpAddr>,
    /// When the first packet of all arrived.
    begin: Time,
    other_packets: u64,
    garbage: u64,
    /// Compound RTCP packets of the senders without the CNAME that RFC 3550 section 6.1 requires.
    without_cname: u64,
    out: Reports,
    /// When the next row of the recordings is due.
    row: Time,
}

/// The rates of a stream.
#[derive(Default)]
struct Recorded {
    times: Vec<f64>,
    rates: Vec<f64>,
    before: u64,
}

/// Receives from a sender until it leaves, the time is up, or the watch stops it.
///
/// # Errors
/// [`SendError::System`]: a system call failed at the beginning.
pub fn listen(options: &ListenOptions, watch: &ListenWatch) -> Result<LiveRun, SendError> {
    let clock = Clock::start();
    let control = SocketAddr::new(options.bind.ip(), options.rtcp_port);
    let bound = |at: SocketAddr| {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{error}: {at}; take another port, or end who has it"))
        };
        UdpPort::bind_whole(at, clock).map_err(named)
    };
    let ports = [bound(options.bind)?, bound(control)?];
    let before = HostState::now().ok();
    let mut listening = Listening {
        options: options.clone(),
        config: config(options.feedback),
        clock,
        ports,
        senders: Vec::new(),
        chosen: None,
        begin: Time::ZERO,
        other_packets: 0,
        garbage: 0,
        without_cname: 0,
        out: Reports::default(),
        row: Time::NEVER,
    };
    // whatever ends it, the measurements until then are the result
    let ended = listening.run(watch).map_or_else(|error| format!("{FAILED}: {error}"), str::to_owned);
    let host = before.and_then(|before| HostReport::since(before).ok());
    Ok(listening.results(&ended, host))
}

/// The RTP configuration of the listener: reports every second, and feedback as often as its share of the received rate
/// allows.
#[must_use]
pub fn config(feedback: Option<FeedbackFormat>) -> RtpConfig {
    let format = feedback.unwrap_or_default();
    let feedback_config =
        FeedbackConfig { format, share: Some(LISTENER_SHARE), reduced: true, ..FeedbackConfig::PLAIN };
    let settings = RtpSettings {
        feedback: if feedback.is_some() { RtpFeedback::Arrivals } else { RtpFeedback::Reports },
        feedback_config,
        ..RtpSettings::default()
    };
    let mut config = RtpConfig::new(Profile::Rfc, settings);
    // the received rate limits what the listener may send, not a session bandwidth, since none was set
    config.timing.bandwidth = Rate::from_bps(1_000_000_000);
    config.timing.min_interval = MinInterval::Fixed(Span::from_secs(1));
    config
}

impl Listening {
    fn run(&mut self, watch: &ListenWatch) -> io::Result<&'static str> {
        let mut waiter = Waiter::new(self.clock)?.without_spin();
        let mut next_watch = self.clock.now();
        loop {
            let now = self.clock.now();
            if now >= next_watch {
                next_watch = now + WATCH_INTERVAL;
                self.show(now, watch);
                if watch.stop.load(Ordering::Relaxed) {
                    self.leave(now)?;
                    return Ok("stopped");
                }
            }
            if let Some(ended) = self.ended(now) {
                // a sender that has left needs no BYE
                if ended != LEFT {
                    self.leave(now)?;
                }
                return Ok(ended);
            }
            if now >= self.row {
                // datagrams waiting in the sockets arrived before the row's time
                (0..self.ports.len()).try_for_each(|port| self.receive(port))?;
                self.record_until(now);
            }
            let due =
                self.senders_of_host().iter().map(|sender| sender.listener.next_wake()).min().unwrap_or(Time::NEVER);
            let wanted = [&self.ports[0], &self.ports[1]];
            let mut fds = wanted.map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
            waiter.wait(&mut fds, due.min(next_watch).min(self.row))?;
            let ready = fds.each_ref().map(readable);
            for (at, ready) in ready.into_iter().enumerate() {
                if ready {
                    self.receive(at)?;
                }
            }
            let now = self.clock.now();
            for at in 0..self.senders_of_host().len() {
                if self.senders[at].listener.next_wake() <= now {
                    self.senders[at].listener.on_timer(now, &mut self.out);
                    self.send(at)?;
                }
            }
        }
    }

    /// Why it has ended, if it has.
    fn ended(&self, now: Time) -> Option<&'static str> {
        if self.chosen.is_none() {
            return (self.options.lasts.is_some_and(|lasts| now.since(Time::ZERO) >= lasts)).then_some("nothing came");
        }
        let last = self.streams().map(|stream| stream.last).max()?;
        let mut valid = self.senders_of_host().iter().filter(|sender| sender.listener.is_valid());
        if self.options.lasts.is_some_and(|lasts| now.since(self.begin) >= lasts) {
            Some("done")
        } else if valid.all(|sender| sender.listener.has_left()) {
            Some(LEFT)
        } else {
            (now.since(last) >= SILENCE).then_some("silent")
        }
    }

    fn leave(&mut self, now: Time) -> io::Result<()> {
        (0..self.senders_of_host().len()).try_for_each(|at| {
            self.senders[at].listener.leave(now, &mut self.out);
            self.send(at)
        })
    }

    /// Processes the datagrams received on one of the ports.
    fn receive(&mut self, port: usize) -> io::Result<()> {
        while self.ports[port].receive()? > 0 {
            let datagrams: Vec<_> =
                self.ports[port].incoming().map(|i| (i.time, i.from, i.ecn, i.bytes.to_vec())).collect();
            for (time, from, ecn, bytes) in datagrams {
                // a process that waited for the CPU finds many datagrams at once: each row must only contain those that
                // arrived by its time
                self.record_until(time);
                if is_rtcp(&bytes) {
                    self.control(time, from, port == 0, &bytes);
                } else if port == 0 {
                    if let Some(at) = self.data(time, from, ecn, &bytes) {
                        self.send(at)?;
                    }
                } else {
                    self.garbage += 1;
                }
            }
        }
        Ok(())
    }

    /// Handles a datagram of RTP's port; returns its sender's index, if it belongs to one being received.
    fn data(&mut self, time: Time, from: SocketAddr, ecn: EcnBits, bytes: &[u8]) -> Option<usize> {
        let Ok((data, payload)) = rtp::decode_with(bytes, self.options.transport_id) else {
            self.garbage += 1;
            return None;
        };
        let known = self.senders.iter().position(|sender| sender.from == from);
        let Some(at) = known.or_else(|| self.join(from, &data)) else {
            self.other_packets += 1;
            return None;
        };
        let size = wire(from, bytes);
        let payload = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let packet = ReceivedPacket { data: &data, size, payload, flags: ecn.flags() };
        self.senders[at].listener.on_data(time, packet, &mut self.out);
        if self.chosen.is_none() && self.senders[at].listener.is_valid() {
            self.chosen = Some(from.ip());
            let others = self.senders.extract_if(.., |sender| sender.from.ip() != from.ip());
            self.other_packets += others.map(|sender| sender.packets()).sum::<u64>();
            self.begin = self.streams().map(|stream| stream.first).min().unwrap_or(time);
            self.row = self.begin + EVERY;
        }
        self.senders_of_host().iter().position(|sender| sender.from == from)
    }

    /// Adds an address that has not sent before; `None` if it belongs to a host other than the chosen one, or is one
    /// port too many.
    #[cold]
    fn join(&mut self, from: SocketAddr, data: &RtpData) -> Option<usize> {
        if self.chosen.is_some_and(|host| host != from.ip()) {
            return None;
        }
        if self.senders.len() == MAX_SENDERS {
            // single packets from many addresses must not keep out a sender of more
            let unproven = self.senders.iter().position(|sender| !sender.listener.is_valid())?;
            self.other_packets += self.senders.remove(unproven).packets();
        }
        // the reporter's SSRC is random, since it must be unique
        let seed = self.clock.unix_at_zero() ^ u64::from(data.ssrc.0) << 32 ^ u64::from(from.port());
        let listener = RtpListener::new(&self.config, Stream::new(seed, "receive"));
        self.senders.push(Sender { from, recorded: Vec::new(), control: None, listener });
        Some(self.senders.len() - 1)
    }

    fn control(&mut self, time: Time, from: SocketAddr, shared: bool, bytes: &[u8]) {
        let Ok(compound) = rtcp::decode(bytes) else {
            self.garbage += 1;
            return;
        };
        // accept RTCP only from a sender's host, about one of its streams (our own packets may return here), and from a
        // port that can be answered (RFC 768: 0 cannot)
        let is_its = |sender: &Sender| {
            let named = sender.listener.streams().iter().any(|stream| stream.ssrc == compound.ssrc);
            named && sender.from.ip() == from.ip() && from.port() != 0
        };
        // two ports may have streams with the same SSRC: RTCP comes from the next port, or RTP's own
        let is_apart = |sender: &Sender| !(0..=1).contains(&from.port().wrapping_sub(sender.from.port()));
        let named = self.senders.iter_mut().filter(|sender| is_its(sender));
        let Some(sender) = named.min_by_key(|sender| is_apart(sender)) else {
            self.other_packets += 1;
            return;
        };
        self.without_cname += u64::from(compound.lacks_cname());
        sender.control = Some((from, shared));
        let size = wire(from, bytes);
        sender.listener.on_rtcp(time, size, &compound);
    }

    /// Sends the collected reports to the sender.
    fn send(&mut self, at: usize) -> io::Result<()> {
        if self.out.0.is_empty() {
            return Ok(());
        }
        let sender = &self.senders[at];
        let (port, to) = match (self.options.peer_rtcp_port, sender.control) {
            (Some(port), _) => (1, SocketAddr::new(sender.from.ip(), port)),
            (None, Some((from, shared))) => (usize::from(!shared), from),
            // there is no port to answer to (RFC 768)
            (None, None) if sender.from.port() == 0 => {
                self.out.0.clear();
                return Ok(());
            }
            // the port after RTP's (RFC 3550 section 11, RFC 4961)
            (None, None) => (1, SocketAddr::new(sender.from.ip(), sender.from.port().saturating_add(1))),
        };
        let sent = self.ports[port].send(&self.out.0, to);
        self.out.0.clear();
        match sent {
            // nobody receives RTCP there
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            other => other,
        }
    }

    /// The ports of the chosen host.
    fn senders_of_host(&self) -> &[Sender] {
        if self.chosen.is_some() { &self.senders } else { &[] }
    }

    fn streams(&self) -> impl Iterator<Item = &ReceivedStream> {
        self.senders_of_host().iter().flat_map(|sender| sender.listener.streams())
    }

    fn show(&self, now: Time, watch: &ListenWatch) {
        let shown = self.streams().map(|stream| ShownStream {
            flow: results::name(stream),
            time_s: now.since(self.begin).as_secs_f64(),
            bytes: stream.bytes,
            packets: stream.packets,
            loss: results::loss(stream).map(|(_, share)| share),
        });
        *watch.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown.collect();
    }

    /// Records the rows that are due by now.
    fn record_until(&mut self, now: Time) {
        while self.row <= now {
            self.record(self.row);
            self.row += EVERY;
        }
    }

    fn record(&mut self, now: Time) {
        let time = now.since(self.begin).as_secs_f64();
        for sender in &mut self.senders {
            let streams = sender.listener.streams();
            sender.recorded.resize_with(streams.len(), Recorded::default);
            for (recorded, stream) in sender.recorded.iter_mut().zip(streams) {
                // the first row of a later stream covers its last interval only, like any row
                let since = time - recorded.times.last().copied().unwrap_or(time - EVERY.as_secs_f64());
                let rate = (stream.bytes - recorded.before) as f64 * 8.0 / since.max(1e-9);
                recorded.before = stream.bytes;
                recorded.times.push(time);
                recorded.rates.push(rate);
            }
        }
    }
}

/// Size of a datagram including the headers below it.
fn wire(from: SocketAddr, bytes: &[u8]) -> u16 {
    let family = if from.ip().to_canonical().is_ipv6() { Family::V6 } else { Family::V4 };
    u16::try_from(bytes.len() + usize::from(family.headers())).unwrap_or(u16::MAX)
}
