//! A bulk flow over the kernel's TCP, as two halves: [`send`] writes as fast as the connection accepts and logs the
//! kernel's `TCP_INFO`, [`receive`] reads and counts bytes per interval. Each is a function over a connected stream
//! that occupies the calling thread until the flow ends.
//!
//! ```no_run
//! # use paceline_live::{clock::Clock, kernel::flow};
//! # use paceline_units::Span;
//! # use std::ops::ControlFlow;
//! # fn run(stream: &std::net::TcpStream) -> Result<(), flow::FlowError> {
//! let options = flow::Sending { congestion_control: Some("cubic".to_owned()), ..flow::Sending::lasting(Span::from_secs(10)) };
//! let sent = flow::send(stream, &options, Clock::start(), &mut |_log| ControlFlow::Continue(()))?;
//! let row = sent.row(); // `FlowRow` with profile "kernel"; the caller fills in flow, instance, group, from and to
//! let recordings = sent.log.series("bulk", 0, paceline_live::kernel::log::Direction::Out);
//! # Ok(()) }
//! ```

use super::log::{Direction, Log, RATE, Sample};
use super::tcp_info::{self, CcInfo, State, TcpInfo};
use super::token_bucket::Bucket;
use crate::clock::{Clock, Waiter};
use crate::results::FlowRow;
use paceline_sim::Series;
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_congestion};
use rustix::net::sockopt::{set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::Duration;

/// Default interval between readings of a flow's `TCP_INFO`.
pub const LOG_EVERY: Span = Span::from_millis(10);

/// Prefix of the names of Paceline's eBPF programs.
const OWN: &str = "pl_";

/// Default time to wait for a silent peer. A path that is cut for 10 s recovers within it: the doubling
/// retransmission timer notices after 12.6 s.
pub const GIVE_UP: Span = Span::from_secs(15);

/// Limit for unsent bytes that wait in the kernel: enough to keep it busy, few enough that the flow ends soon after its
/// last write (2 s at 64 kbit/s).
const UNSENT: u32 = 16 << 10;

/// Bytes per write.
const PIECE: usize = 16 << 10;

/// Bytes per read.
const READ: usize = 128 << 10;

/// Maximum number of kernel readings and counting intervals that a flow keeps: 22 minutes at 10 ms. A longer flow drops
/// every other one and halves the rate from there on.
pub const MAX_KEPT: usize = 1 << 17;

/// Options of a sending half.
#[derive(Clone, PartialEq, Debug)]
pub struct Sending {
    /// The kernel's congestion control, by name; `None`: the system's default.
    pub congestion_control: Option<String>,
    /// How long the flow sends; `None`: until it is stopped or `bytes` are acknowledged.
    pub duration: Option<Span>,
    /// Nothing is sent before this time.
    pub begins: Span,
    /// Maximum number of bytes to send.
    pub bytes: Option<u64>,
    /// Interval between readings of the kernel's state.
    pub log_every: Span,
    /// Time without an acknowledgement after which the peer counts as vanished.
    pub give_up: Span,
    /// The measures exclude everything before this time; `None`: they cover the whole flow.
    pub measured_from: Option<Span>,
    /// The flow ends at the latest this long after its beginning, even with data in flight; `None`: it waits until all
    /// data have arrived.
    pub at_latest: Option<Span>,
    /// Maximum number of readings kept.
    pub max_kept: usize,
}

impl Sending {
    /// A flow of that duration, with defaults for everything else.
    #[must_use]
    pub fn lasting(duration: Span) -> Sending {
        Sending {
            congestion_control: None,
            duration: Some(duration),
            begins: Span::ZERO,
            bytes: None,
            log_every: LOG_EVERY,
            give_up: GIVE_UP,
            measured_from: None,
            at_latest: None,
            max_kept: MAX_KEPT,
        }
    }
}

/// Options of a receiving half.
#[derive(Clone, PartialEq, Debug)]
pub struct Receiving {
    /// Length of the intervals for which bytes are counted.
    pub count_every: Span,
    /// Time without data after which the peer counts as vanished.
    pub give_up: Span,
    /// A peer that is silent before this time does not count as vanished.
    pub begins: Span,
    /// How long it receives at most; `None`: until the peer closes.
    pub longest: Option<Span>,
    /// The measures exclude everything before this time; `None`: they cover the whole flow.
    pub measured_from: Option<Span>,
    /// Maximum rate of payload in bytes per second, enforced with a token bucket: data that the peer sends beyond it
    /// fill the receive window, and so stay with the peer.
    pub max_rate: Option<u32>,
    /// Maximum number of intervals kept.
    pub max_kept: usize,
}

impl Default for Receiving {
    fn default() -> Receiving {
        Receiving {
            count_every: LOG_EVERY,
            give_up: GIVE_UP,
            begins: Span::ZERO,
            longest: None,
            measured_from: None,
            max_rate: None,
            max_kept: MAX_KEPT,
        }
    }
}

/// Why a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its time is up.
    Time,
    /// All requested bytes are acknowledged.
    Bytes,
    /// The caller stopped it.
    Stopped,
    /// The peer closed the connection, or reset it.
    PeerClosed,
    /// The peer has been silent for too long, or the path to it is gone.
    Vanished,
}

impl Ended {
    /// In a few words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Ended::Time => "time is up",
            Ended::Bytes => "all sent",
            Ended::Stopped => "stopped",
            Ended::PeerClosed => "peer closed",
            Ended::Vanished => "peer vanished",
        }
    }

    fn of(error: &io::Error) -> Option<Ended> {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
                Some(Ended::PeerClosed)
            }
            ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Some(Ended::Vanished),
            _ => None,
        }
    }
}

/// Why a flow could not run.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The kernel lacks the congestion control, or this user may not use it.
    #[error("the kernel's TCP cannot use the congestion control `{name}` here: {why}; there are {}", .available.join(", "))]
    CongestionControl {
        /// Its name.
        name: String,
        /// The kernel's error, in words.
        why: String,
        /// The congestion controls that the kernel has loaded.
        available: Vec<String>,
    },
    /// A system call failed.
    #[error("{call} on a TCP socket failed: {error}")]
    System {
        /// Its name.
        call: &'static str,
        /// Why.
        error: io::Error,
    },
}

fn system(call: &'static str) -> impl Fn(io::Error) -> FlowError {
    move |error| FlowError::System { call, error }
}

/// Sets a TCP socket's congestion control by name. If the kernel has no `vegas`, tries `pl_vegas` (loaded by `paceline
/// kernel-cc`).
///
/// # Errors
/// [`FlowError::CongestionControl`], with the available ones.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub fn set_congestion_control(stream: &TcpStream, name: &str) -> Result<(), FlowError> {
    let set = |name: &str| set_tcp_congestion(stream, name);
    let done = set(name).or_else(|error| match error {
        Errno::NOENT => set(&format!("{OWN}{name}")).map_err(|_| error),
        _ => Err(error),
    });
    done.map_err(|error| FlowError::CongestionControl {
        name: name.to_owned(),
        why: match error {
            Errno::NOENT => match name.strip_prefix(OWN).unwrap_or(name) {
                program @ ("vegas" | "veno") => {
                    format!("it is not there, but `paceline kernel-cc load {program}` loads it")
                }
                _ => "it is not there, or its module is not loaded".to_owned(),
            },
            Errno::PERM => {
                "it is not in net.ipv4.tcp_allowed_congestion_control, and others take CAP_NET_ADMIN".to_owned()
            }
            other => io::Error::from(other).to_string(),
        },
        available: tcp_info::available().unwrap_or_default(),
    })
}

/// Result of a sending half.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The kernel's readings, from the beginning to the end of the measurement.
    pub log: Log,
    /// The congestion control that the kernel used.
    pub congestion_control: String,
    /// Why it ended.
    pub ended: Ended,
    /// When it ended: rates are averaged until then.
    pub end: Time,
    /// Bytes written to the kernel.
    pub written: u64,
    /// Whether the peer has acknowledged all of them. If not, dropping the stream resets the connection.
    pub drained: bool,
}

impl Sent {
    /// The flow's measures; flow, instance, group, from and to are left empty.
    #[must_use]
    pub fn row(&self) -> FlowRow {
        FlowRow {
            cc: self.congestion_control.clone(),
            ended: Some(self.ended.words().to_owned()),
            ..self.log.row(Direction::Out, self.end)
        }
    }
}

/// Sends until the time is up, the bytes are sent and acknowledged, `tick` returns `Break`, or the peer is gone; then
/// closes this direction and waits, for at most `give_up`, until all data are acknowledged. `tick` is called after each
/// reading, also during the final wait (then with the log as of the end of the measurement).
///
/// # Errors
/// [`FlowError`]. A peer that closes or vanishes is not an error, but an end.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub fn send(
    stream: &TcpStream,
    options: &Sending,
    clock: Clock,
    tick: &mut dyn FnMut(&Log) -> ControlFlow<()>,
) -> Result<Sent, FlowError> {
    if let Some(name) = &options.congestion_control {
        set_congestion_control(stream, name)?;
    }
    let congestion_control = tcp_info::congestion_control(stream).map_err(system("getsockopt(TCP_CONGESTION)"))?;
    prepare(stream, options.give_up)?;
    tcp_info::set_unsent(stream, UNSENT).map_err(system("setsockopt(TCP_NOTSENT_LOWAT)"))?;
    let mut waiter = Waiter::new(clock).map_err(system("prctl(PR_SET_TIMERSLACK)"))?.without_spin();
    let read = |clock: Clock| {
        let info = TcpInfo::read(stream).map_err(system("getsockopt(TCP_INFO)"))?;
        let cc = CcInfo::of(stream, &congestion_control).map_err(system("getsockopt(TCP_CC_INFO)"))?;
        Ok::<_, FlowError>(Sample { time: clock.now(), info, cc })
    };
    let first = read(clock)?;
    let mut log = Log::of_old(first);
    let piece: Vec<u8> = (0..PIECE).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let limit = options.bytes.unwrap_or(u64::MAX);
    let after = |length: Option<Span>| length.map_or(Time::NEVER, |length| first.time + length);
    let begins = first.time + options.begins;
    // nothing is measured before the flow's start
    let warm = options.measured_from.or(Some(options.begins).filter(|begins| *begins > Span::ZERO));
    let (warm, at_latest) = (after(warm).max(begins), after(options.at_latest));
    let until = after(options.duration).min(at_latest);
    let mut warmed = warm == Time::NEVER;
    let (mut written, mut closed) = (0u64, false);
    let mut next = Ticks::new(first.time, options.log_every);
    let mut stopped = false;
    let ended = loop {
        let now = clock.now();
        if now >= next.due || now >= until {
            log.push(read(clock)?);
            if !warmed && clock.now() >= warm {
                log.measure_from_here();
                warmed = true;
            }
            if log.samples().len() >= options.max_kept {
                log.thin();
                next = next.at_half();
            }
            next.pass(clock.now());
            stopped = tick(&log).is_break();
        }
        if stopped {
            break Ended::Stopped;
        }
        if now >= until {
            break Ended::Time;
        }
        if now < begins {
            waiter.sleep_until(begins.min(next.due).min(until)).map_err(system("ppoll"))?;
            continue;
        }
        if written == limit {
            if !closed {
                stream.shutdown(Shutdown::Write).map_err(system("shutdown"))?;
                closed = true;
            }
            let sample = read(clock)?;
            if is_acknowledged(&sample.info) {
                log.push(sample);
                break Ended::Bytes;
            }
            if let Some(error) = stream.take_error().map_err(system("getsockopt(SO_ERROR)"))? {
                break Ended::of(&error).unwrap_or(Ended::Vanished);
            }
            let soon = clock.now() + Span::from_millis(1).min(options.log_every);
            waiter.sleep_until(next.due.min(until).min(soon)).map_err(system("ppoll"))?;
            continue;
        }
        let len = PIECE.min(usize::try_from(limit - written).unwrap_or(PIECE));
        let mut to = stream;
        match to.write(&piece[..len]) {
            Ok(n) => written += n as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(stream, PollFlags::OUT)];
                waiter.wait(&mut fds, next.due.min(until)).map_err(system("ppoll"))?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => match Ended::of(&error) {
                Some(ended) => break ended,
                None => return Err(FlowError::System { call: "send", error }),
            },
        }
    };
    let end =
        log.last().map_or(first.time, |last| last.time).max(if ended == Ended::Time { until } else { Time::ZERO });
    let gone = matches!(ended, Ended::PeerClosed | Ended::Vanished);
    let mut drained = ended == Ended::Bytes;
    if !gone && !drained {
        // A peer that resets the connection at this moment is not an error either.
        let _ = stream.shutdown(Shutdown::Write);
        let latest = (clock.now() + options.give_up).min(at_latest);
        while !drained && clock.now() < latest {
            waiter.sleep_until(clock.now() + options.log_every).map_err(system("ppoll"))?;
            let info = read(clock)?.info;
            drained = is_acknowledged(&info);
            if info.state == Some(State::Closed) || (tick(&log).is_break() && !stopped) {
                break;
            }
        }
    }
    if !drained {
        tcp_info::reset_on_close(stream).map_err(system("setsockopt(SO_LINGER)"))?;
    }
    Ok(Sent { log, congestion_control, ended, end, written, drained })
}

/// Whether the peer has acknowledged everything, including the FIN.
fn is_acknowledged(info: &TcpInfo) -> bool {
    matches!(info.state, Some(State::FinWait2 | State::TimeWait))
        || (info.state == Some(State::Closed) && info.unacked_packets == Some(0))
}

/// Result of a receiving half.
#[derive(Clone, Debug)]
pub struct Received {
    /// When it began.
    pub start: Time,
    /// Where measuring began; by default the same as `start`.
    pub from: Time,
    /// Payload per interval: the interval's end, and the bytes in it.
    pub intervals: Vec<(Time, u64)>,
    /// When the last byte arrived, or the flow was ended.
    pub end: Time,
    /// When the flow was over: the time of the peer's FIN or reset, if that ended it.
    pub over: Time,
    /// Payload that arrived while it was measured.
    pub bytes: u64,
    /// Why it ended.
    pub ended: Ended,
}

impl Received {
    /// The flow's recording `rate`.
    #[must_use]
    pub fn series(&self, flow: &str, instance: u32) -> Vec<Series> {
        let labels = vec![("flow", flow.to_owned()), ("instance", instance.to_string())];
        let mut rate = Series::new("rate", labels, RATE);
        let mut before = self.start;
        for &(time, bytes) in &self.intervals {
            let length = time.since(before).as_secs_f64();
            if length > 0.0 {
                let row = [time.as_secs_f64(), bytes as f64 * 8.0 / length, f64::NAN];
                for ((_, column), value) in rate.columns.iter_mut().zip(row) {
                    column.push(value);
                }
            }
            before = time;
        }
        vec![rate]
    }

    /// The flow's measures; flow, instance, group, cc, from and to are left empty.
    #[must_use]
    pub fn row(&self) -> FlowRow {
        let active_s = self.end.0.saturating_sub(self.from.0) as f64 / 1e9;
        FlowRow {
            profile: "kernel".to_owned(),
            start_s: self.start.as_secs_f64(),
            active_s,
            goodput_bps: if active_s > 0.0 { self.bytes as f64 * 8.0 / active_s } else { 0.0 },
            bytes_delivered: Some(self.bytes),
            ended: Some(self.ended.words().to_owned()),
            ..FlowRow::default()
        }
    }
}

/// Receives until the peer closes, is silent for too long, the time is up, or `tick` returns `Break`. `tick` is called
/// after each interval with the bytes received so far.
///
/// # Errors
/// [`FlowError`]. A peer that resets or vanishes is not an error, but an end.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub fn receive(
    stream: &TcpStream,
    options: &Receiving,
    clock: Clock,
    tick: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Received, FlowError> {
    prepare(stream, options.give_up)?;
    let mut waiter = Waiter::new(clock).map_err(system("prctl(PR_SET_TIMERSLACK)"))?.without_spin();
    let start = clock.now();
    let until = options.longest.map_or(Time::NEVER, |length| start + length);
    let mut next = Ticks::new(start, options.count_every);
    let mut buffer = vec![0; READ];
    let (mut bytes, mut counted, mut last_received) = (0u64, 0u64, start + options.begins);
    let mut intervals: Vec<(Time, u64)> = Vec::new();
    let mut bucket = options.max_rate.map(|rate| Bucket::new(rate, start));
    let from = start + options.measured_from.unwrap_or(Span::ZERO).max(options.begins);
    let mut before = None;
    let (ended, end) = loop {
        let now = clock.now();
        if now >= from && before.is_none() {
            before = Some(bytes);
        }
        if now >= next.due {
            intervals.push((now, bytes - counted));
            counted = bytes;
            if intervals.len() >= options.max_kept {
                intervals = intervals
                    .chunks(2)
                    .map(|pair| (pair[pair.len() - 1].0, pair.iter().map(|one| one.1).sum()))
                    .collect();
                next = next.at_half();
            }
            next.pass(now);
            if tick(bytes).is_break() {
                break (Ended::Stopped, now);
            }
        }
        if now >= until {
            break (Ended::Time, now);
        }
        if now.since(last_received) >= options.give_up {
            break (Ended::Vanished, last_received);
        }
        let allowed = bucket.as_mut().map_or(READ, |bucket| bucket.tokens(now).min(READ));
        if allowed == 0 {
            // the peer is not read meanwhile, so its silence does not count
            last_received = now;
            waiter.sleep_until(next.due.min(until)).map_err(system("ppoll"))?;
            continue;
        }
        let mut from = stream;
        match from.read(&mut buffer[..allowed]) {
            Ok(0) => break (Ended::PeerClosed, last_received),
            Ok(n) => {
                bytes += n as u64;
                if let Some(bucket) = &mut bucket {
                    bucket.take(n);
                }
                last_received = now;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(stream, PollFlags::IN)];
                waiter.wait(&mut fds, next.due.min(until)).map_err(system("ppoll"))?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => match Ended::of(&error) {
                Some(ended) => break (ended, last_received),
                None => return Err(FlowError::System { call: "recv", error }),
            },
        }
    };
    if bytes > counted {
        intervals.push((end.max(intervals.last().map_or(start, |(time, _)| *time)), bytes - counted));
    }
    let over = clock.now();
    Ok(Received { start, from, intervals, end, over, bytes: bytes - before.unwrap_or(bytes), ended })
}

/// Makes the socket non-blocking and ends the connection if the peer does not answer for `give_up` (`TCP_USER_TIMEOUT`,
/// RFC 5482; keep-alives detect a vanished peer when nothing is sent to it).
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
fn prepare(stream: &TcpStream, give_up: Span) -> Result<(), FlowError> {
    stream.set_nonblocking(true).map_err(system("fcntl(O_NONBLOCK)"))?;
    let millis = u32::try_from(give_up.0 / 1_000_000).unwrap_or(u32::MAX).max(1);
    rustix::net::sockopt::set_tcp_user_timeout(stream, millis)
        .map_err(|error| system("setsockopt(TCP_USER_TIMEOUT)")(error.into()))?;
    let alive = || {
        set_socket_keepalive(stream, true)?;
        set_tcp_keepidle(stream, Duration::from_secs(1))?;
        set_tcp_keepintvl(stream, Duration::from_secs(1))?;
        set_tcp_keepcnt(stream, 100)
    };
    alive().map_err(|error| system("setsockopt(SO_KEEPALIVE)")(error.into()))
}

/// Instants at multiples of a span from a beginning. A missed instant is skipped; later ones keep their schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    zero: Time,
    every: Span,
    pub(super) due: Time,
}

impl Ticks {
    pub(super) fn new(zero: Time, every: Span) -> Ticks {
        let every = every.max(Span::from_micros(100));
        Ticks { zero, every, due: zero + every }
    }

    /// The same with twice the interval.
    pub(super) fn at_half(self) -> Ticks {
        Ticks { every: self.every * 2, ..self }
    }

    /// Sets `due` to the next instant after `now`; returns how many were missed.
    pub(super) fn pass(&mut self, now: Time) -> u64 {
        let before = self.due;
        let n = now.since(self.zero).0 / self.every.0 + 1;
        self.due = self.zero + Span(n.saturating_mul(self.every.0));
        (self.due.since(before).0 / self.every.0).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stay_where_they_were_to_be() {
        let mut ticks = Ticks::new(Time(1_000_000), Span::from_millis(10));
        assert_eq!(ticks.due, Time(11_000_000));
        assert_eq!(ticks.pass(Time(11_000_300)), 0);
        assert_eq!(ticks.due, Time(21_000_000));
        assert_eq!(ticks.pass(Time(45_000_000)), 2);
        assert_eq!(ticks.due, Time(51_000_000));
    }
}
