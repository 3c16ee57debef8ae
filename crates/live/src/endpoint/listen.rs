//! `paceline receive`: hears a sender of plain RTP that is no program of ours, and gives it feedback.
//!
//! Nobody has asked for that feedback by name. It goes to the address that the stream comes from, and to no other; it begins
//! with the second packet in sequence, and takes no more than a twentieth of what has come
//! ([`paceline_flow::rtp::RtpListener`]). The first host whose stream is valid is the sender; what comes from others is
//! counted and left. Each of its ports is a session of its own, as sound and picture have them. RTCP has the next port, or
//! RTP's own where the sender's comes there (RFC 5761).

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
    FeedbackConfig, FeedbackFormat, Heard, HeardStream, LISTENER_SHARE, MinInterval, RtpConfig, RtpListener,
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

/// How often somebody who watches is told, and looks whether to stop.
const LOOK: Span = Span::from_millis(100);
/// From one row of the recordings to the next.
const EVERY: Span = Span::from_millis(200);
/// A sender that has been silent for so long has gone.
const SILENCE: Span = Span::from_secs(30);
/// How it ended where the sender said so.
const LEFT: &str = "peer closed";
/// How it ended where the system would not go on.
const FAILED: &str = "the system failed";
/// Addresses that may become the sender, and then its ports.
const MAX_SENDERS: usize = 16;

/// What is to be heard.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Where RTP comes to.
    pub bind: SocketAddr,
    /// Where RTCP comes to.
    pub rtcp_port: u16,
    /// Where the sender takes RTCP; `None`: where its own comes from or, until that is known, at the port after that of its RTP.
    pub peer_rtcp_port: Option<u16>,
    /// What is told beside RTP's own reports.
    pub feedback: Option<FeedbackFormat>,
    /// The ID of the extension with transport-wide numbers, 1 to 14.
    pub transport_id: u8,
    /// For so long; `None`: until it is stopped, or the sender goes.
    pub lasts: Option<Span>,
}

/// What a stream shows meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct ShownStream {
    /// Its SSRC in hexadecimal.
    pub flow: String,
    /// Since the first packet of all (s).
    pub time_s: f64,
    /// Bytes of payload so far.
    pub bytes: u64,
    /// Packets so far.
    pub packets: u64,
    /// Of those expected, the share lost.
    pub loss: Option<f64>,
}

/// A handle on [`listen`] from another thread.
#[derive(Debug, Default)]
pub struct ListenWatch {
    stop: AtomicBool,
    shown: Mutex<Vec<ShownStream>>,
}

impl ListenWatch {
    /// Ends it soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The streams now.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownStream> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One address that sends.
struct Sender {
    from: SocketAddr,
    /// The rates of its streams.
    recorded: Vec<Recorded>,
    /// Where its RTCP comes from, and whether that came on RTP's port.
    control: Option<(SocketAddr, bool)>,
    listener: RtpListener,
}

impl Sender {
    /// Packets that have come from it.
    fn packets(&self) -> u64 {
        self.listener.streams().iter().map(|stream| stream.packets).sum()
    }
}

/// Reports on their way.
#[derive(Default)]
struct Reports(Outbox);

impl Transmit for Reports {
    fn transmit(&mut self, segment: Segment) {
        let Some(Extra::Rtcp(report)) = &segment.extra else { return };
        self.0.push(0, EcnBits::NotEct, |to| {
            // what has no place in a packet is not sent
            let _ = rtcp::encode(report, to);
        });
    }
}

struct Listening {
    options: ListenOptions,
    config: RtpConfig,
    clock: Clock,
    /// RTP's, RTCP's.
    ports: [UdpPort; 2],
    senders: Vec<Sender>,
    /// The host that is heard: all of `senders` are its ports.
    chosen: Option<IpAddr>,
    /// When the first packet of all came.
    begin: Time,
    strangers: u64,
    garbage: u64,
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

/// Hears a sender until it goes, the time is up, or the watch says stop.
///
/// # Errors
/// [`SendError::System`]: what the system refused at the beginning.
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
        strangers: 0,
        garbage: 0,
        out: Reports::default(),
        row: Time::NEVER,
    };
    // what has been measured by then is the result, whatever ends it
    let ended = listening.run(watch).map_or_else(|error| format!("{FAILED}: {error}"), str::to_owned);
    let host = before.and_then(|before| HostReport::since(before).ok());
    Ok(listening.results(&ended, host))
}

/// How it answers: with reports each second, and feedback as often as its share of what comes allows.
#[must_use]
pub fn config(feedback: Option<FeedbackFormat>) -> RtpConfig {
    let format = feedback.unwrap_or_default();
    let told = FeedbackConfig { format, share: Some(LISTENER_SHARE), reduced: true, ..FeedbackConfig::PLAIN };
    let settings = RtpSettings {
        feedback: if feedback.is_some() { RtpFeedback::Arrivals } else { RtpFeedback::Reports },
        feedback_config: told,
        ..RtpSettings::default()
    };
    let mut config = RtpConfig::new(Profile::Rfc, settings);
    // what the listener may send is bounded by what comes, not by a bandwidth that nobody has named
    config.timing.bandwidth = Rate::from_bps(1_000_000_000);
    config.timing.min_interval = MinInterval::Fixed(Span::from_secs(1));
    config
}

impl Listening {
    fn run(&mut self, watch: &ListenWatch) -> io::Result<&'static str> {
        let mut waiter = Waiter::new(self.clock)?.without_spin();
        let mut look = self.clock.now();
        loop {
            let now = self.clock.now();
            if now >= look {
                look = now + LOOK;
                self.show(now, watch);
                if watch.stop.load(Ordering::Relaxed) {
                    self.leave(now)?;
                    return Ok("stopped");
                }
            }
            if let Some(ended) = self.ended(now) {
                // to who has left there is nothing to say
                if ended != LEFT {
                    self.leave(now)?;
                }
                return Ok(ended);
            }
            if now >= self.row {
                // what lies at the sockets came before
                (0..self.ports.len()).try_for_each(|port| self.receive(port))?;
                self.record_until(now);
            }
            let due = self.heard().iter().map(|sender| sender.listener.next_wake()).min().unwrap_or(Time::NEVER);
            let wanted = [&self.ports[0], &self.ports[1]];
            let mut fds = wanted.map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
            waiter.wait(&mut fds, due.min(look).min(self.row))?;
            let ready = fds.each_ref().map(readable);
            for (at, ready) in ready.into_iter().enumerate() {
                if ready {
                    self.receive(at)?;
                }
            }
            let now = self.clock.now();
            for at in 0..self.heard().len() {
                if self.senders[at].listener.next_wake() <= now {
                    self.senders[at].listener.on_timer(now, &mut self.out);
                    self.send(at)?;
                }
            }
        }
    }

    /// Why it is over, if it is.
    fn ended(&self, now: Time) -> Option<&'static str> {
        if self.chosen.is_none() {
            return (self.options.lasts.is_some_and(|lasts| now.since(Time::ZERO) >= lasts)).then_some("nothing came");
        }
        let last = self.streams().map(|stream| stream.last).max()?;
        let mut valid = self.heard().iter().filter(|sender| sender.listener.is_valid());
        if self.options.lasts.is_some_and(|lasts| now.since(self.begin) >= lasts) {
            Some("done")
        } else if valid.all(|sender| sender.listener.has_left()) {
            Some(LEFT)
        } else {
            (now.since(last) >= SILENCE).then_some("silent")
        }
    }

    fn leave(&mut self, now: Time) -> io::Result<()> {
        (0..self.heard().len()).try_for_each(|at| {
            self.senders[at].listener.leave(now, &mut self.out);
            self.send(at)
        })
    }

    /// Takes in what has come to one of the ports.
    fn receive(&mut self, port: usize) -> io::Result<()> {
        while self.ports[port].receive()? > 0 {
            let datagrams: Vec<_> =
                self.ports[port].incoming().map(|i| (i.time, i.from, i.ecn, i.bytes.to_vec())).collect();
            for (time, from, ecn, bytes) in datagrams {
                // a process that waited for its processor finds much at once: each row has what had come by its time
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

    /// A datagram of RTP's port; of which sender it is, if that is heard.
    fn data(&mut self, time: Time, from: SocketAddr, ecn: EcnBits, bytes: &[u8]) -> Option<usize> {
        let Ok((data, payload)) = rtp::decode_with(bytes, self.options.transport_id) else {
            self.garbage += 1;
            return None;
        };
        let known = self.senders.iter().position(|sender| sender.from == from);
        let Some(at) = known.or_else(|| self.join(from, &data)) else {
            self.strangers += 1;
            return None;
        };
        let size = wire(from, bytes);
        let payload = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let packet = Heard { data: &data, size, payload, flags: ecn.flags() };
        self.senders[at].listener.on_data(time, packet, &mut self.out);
        if self.chosen.is_none() && self.senders[at].listener.is_valid() {
            self.chosen = Some(from.ip());
            let others = self.senders.extract_if(.., |sender| sender.from.ip() != from.ip());
            self.strangers += others.map(|sender| sender.packets()).sum::<u64>();
            self.begin = self.streams().map(|stream| stream.first).min().unwrap_or(time);
            self.row = self.begin + EVERY;
        }
        self.heard().iter().position(|sender| sender.from == from)
    }

    /// An address that has not sent before; `None` if it is another host's than who is heard, or one port too many.
    #[cold]
    fn join(&mut self, from: SocketAddr, data: &RtpData) -> Option<usize> {
        if self.chosen.is_some_and(|host| host != from.ip()) {
            return None;
        }
        if self.senders.len() == MAX_SENDERS {
            // whoever sends single packets from many addresses must not keep out who sends more
            let least = self.senders.iter().position(|sender| !sender.listener.is_valid())?;
            self.strangers += self.senders.remove(least).packets();
        }
        // who reports is drawn: its SSRC must be another's nowhere
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
        // from the host of a sender, and in the name of one of its streams: our own may come back here; and from a port that
        // can be answered (RFC 768: 0 is none)
        let is_its = |sender: &Sender| {
            let named = sender.listener.streams().iter().any(|stream| stream.ssrc == compound.ssrc);
            named && sender.from.ip() == from.ip() && from.port() != 0
        };
        // two ports may have streams of one name: RTCP comes from the next port, or RTP's own
        let is_apart = |sender: &Sender| !(0..=1).contains(&from.port().wrapping_sub(sender.from.port()));
        let named = self.senders.iter_mut().filter(|sender| is_its(sender));
        let Some(sender) = named.min_by_key(|sender| is_apart(sender)) else {
            self.strangers += 1;
            return;
        };
        sender.control = Some((from, shared));
        let size = wire(from, bytes);
        sender.listener.on_rtcp(time, size, &compound);
    }

    /// Sends what there is to the sender.
    fn send(&mut self, at: usize) -> io::Result<()> {
        if self.out.0.is_empty() {
            return Ok(());
        }
        let sender = &self.senders[at];
        let (port, to) = match (self.options.peer_rtcp_port, sender.control) {
            (Some(port), _) => (1, SocketAddr::new(sender.from.ip(), port)),
            (None, Some((from, shared))) => (usize::from(!shared), from),
            // nowhere to answer (RFC 768)
            (None, None) if sender.from.port() == 0 => {
                self.out.0.clear();
                return Ok(());
            }
            // the next port to RTP's (RFC 3550 section 11, RFC 4961)
            (None, None) => (1, SocketAddr::new(sender.from.ip(), sender.from.port().saturating_add(1))),
        };
        let sent = self.ports[port].send(&self.out.0, to);
        self.out.0.clear();
        match sent {
            // nobody takes RTCP there
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            other => other,
        }
    }

    /// The ports of the host that is heard.
    fn heard(&self) -> &[Sender] {
        if self.chosen.is_some() { &self.senders } else { &[] }
    }

    fn streams(&self) -> impl Iterator<Item = &HeardStream> {
        self.heard().iter().flat_map(|sender| sender.listener.streams())
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

    /// Takes the rows that are due by now.
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
                // of a stream that began later the first row is of its last interval, as any
                let since = time - recorded.times.last().copied().unwrap_or(time - EVERY.as_secs_f64());
                let rate = (stream.bytes - recorded.before) as f64 * 8.0 / since.max(1e-9);
                recorded.before = stream.bytes;
                recorded.times.push(time);
                recorded.rates.push(rate);
            }
        }
    }
}

/// Bytes of a datagram with the headers below it.
fn wire(from: SocketAddr, bytes: &[u8]) -> u16 {
    let family = if from.ip().to_canonical().is_ipv6() { Family::V6 } else { Family::V4 };
    u16::try_from(bytes.len() + usize::from(family.headers())).unwrap_or(u16::MAX)
}
