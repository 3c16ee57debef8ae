//! Flows of the kernel's TCP between endpoints: the halves of [`crate::kernel::flow`], each on its own thread, over a
//! connection separate from the control channel's.

use super::control::{Direction, Offer};
use super::half::{Half, Table};
use crate::clock::Clock;
use crate::kernel::flow::{self, Receiving, Sending};
use crate::kernel::log;
use crate::kernel::tcp_info;
use crate::results::FlowRow;
use paceline_units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Time limit for the connection to arrive at the server.
const ATTACHES: Duration = Duration::from_secs(10);

/// A rate limit in bytes per second that means no limit.
pub(super) const UNBOUNDED: u32 = u32::MAX - 1;

/// Role of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Does {
    Send,
    Receive,
}

impl Does {
    /// The server's role, or the client's.
    pub(super) fn at(server: bool, direction: Direction) -> Does {
        if server == (direction == Direction::Reverse) { Does::Send } else { Does::Receive }
    }
}

/// Bytes of timestamps in each segment (RFC 7323), which `TCP_MAXSEG` includes.
const TIMESTAMPS: u32 = 12;
/// Maximum value that the kernel accepts for `TCP_MAXSEG`.
const MAX_SEGMENT: u32 = 32_767;
/// Windows from this size on (bytes) are left to the kernel: they may need a larger receive buffer than a user is
/// allowed.
const WIDE: u64 = 128 << 10;
/// Receive buffer of a flow with a limited window, as a multiple of the window and as a minimum in bytes: packets
/// occupy more than their payload.
const BUFFER: (u32, u32) = (4, 64 << 10);

/// Opens the connection of a flow from a local address, whose port may be zero, to the server. Its segments in both
/// directions are limited to the flow's segment size.
///
/// # Errors
/// The system's, with the call's name.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) fn connect(
    (local, server): (SocketAddr, SocketAddr),
    offer: &Offer,
    patience: Duration,
) -> Result<TcpStream, (&'static str, io::Error)> {
    let named = |call| move |error: Errno| (call, io::Error::from(error));
    let family = if server.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None).map_err(named("socket"))?;
    if let Some((segment, _)) = offer.spec.segments() {
        let max = (u32::from(segment) + TIMESTAMPS).min(MAX_SEGMENT);
        tcp_info::set_max_segment(&socket, max).map_err(|error| ("setsockopt(TCP_MAXSEG)", error))?;
    }
    if local.port() != 0 {
        net::bind(&socket, &local).map_err(named("bind"))?;
    }
    match net::connect(&socket, &server) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout)).map_err(named("poll"))? == 0 {
                return Err(("connect", ErrorKind::TimedOut.into()));
            }
            net::sockopt::socket_error(&socket).and_then(|done| done).map_err(named("connect"))?;
        }
        Err(error) => return Err(named("connect")(error)),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).map_err(|error| ("fcntl(O_NONBLOCK)", error))?;
    Ok(stream)
}

/// The window in bytes that a flow's `receive_window` sets, if it is small enough to limit the flow.
fn window(offer: &Offer) -> Option<u32> {
    let (segment, window) = offer.spec.segments()?;
    let bytes = u64::from(segment) * u64::from(window);
    (bytes < WIDE).then_some(bytes as u32)
}

/// Limits the window of a flow received here. The 64 kB that a new socket has already advertised are used up first.
/// With a fixed buffer size the kernel does not tune the buffer, nor the window with it. It still resets the window
/// when it learns how much of the buffer packets occupy, so callers repeat this at intervals.
///
/// # Errors
/// `setsockopt`'s.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
fn bound(stream: &TcpStream, window: u32) -> io::Result<()> {
    net::sockopt::set_socket_recv_buffer_size(stream, (BUFFER.0 * window).max(BUFFER.1) as usize)?;
    tcp_info::set_window_clamp(stream, window)
}

/// Runs a server's half once its connection arrives; sends its measurements to `half`.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) fn serve(
    index: usize,
    name: String,
    offer: Offer,
    limit: u32,
    stream: Receiver<TcpStream>,
    half: Sender<(usize, Half)>,
    stop: Arc<AtomicBool>,
) {
    let work = {
        let half = half.clone();
        move || {
            let done = match stream.recv_timeout(ATTACHES) {
                Ok(stream) => run(&stream, &name, &offer, Does::at(true, offer.direction), limit, &stop),
                Err(_) => failed("the connection of the flow has not come"),
            };
            let _ = half.send((index, done));
        }
    };
    if thread::Builder::new().name("paceline kernel flow".to_owned()).spawn(work).is_err() {
        let _ = half.send((index, failed("the system has no thread for the flow")));
    }
}

fn failed(why: &str) -> Half {
    Half { ended: why.to_owned(), ..Half::default() }
}

/// Runs a half over its connection.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) fn run(stream: &TcpStream, name: &str, offer: &Offer, does: Does, limit: u32, stop: &AtomicBool) -> Half {
    let length = Span::from_millis(offer.spec.for_ms);
    let go_on = || if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    match does {
        Does::Send => {
            pace(stream, limit);
            let options = Sending {
                begins: offer.spec.start(),
                congestion_control: Some(name.to_owned()),
                measured_from: offer.measure.map(|measure| measure.from()),
                at_latest: offer.measure.map(|measure| measure.to()),
                ..Sending::lasting(length)
            };
            let clock = Clock::start();
            match flow::send(stream, &options, clock, &mut |_| go_on()) {
                Err(error) => failed(&error.to_string()),
                Ok(sent) => {
                    let mut row = sent.row();
                    row.start_s = offer.spec.start().as_secs_f64();
                    let wire_bytes = row.send_rate_bps.map_or(0, |rate| (rate * row.active_s / 8.0).round() as u64);
                    let ended = row.ended.clone().unwrap_or_default();
                    let end_s = sent.end.since(sent.log.start()).as_secs_f64();
                    let zero_s = clock.monotonic_at_zero() as f64 / 1e9;
                    let began_s = offer.measure.map(|_| zero_s + sent.log.start().as_secs_f64());
                    let tables = sent.log.series("flow", 0, log::Direction::Out).into_iter().map(Table::of).collect();
                    let well = matches!(sent.ended, flow::Ended::Time | flow::Ended::Bytes | flow::Ended::Stopped);
                    Half { row, end_s, began_s, wire_bytes, tables, ended, well, ..Half::default() }
                }
            }
        }
        Does::Receive => {
            let window = window(offer);
            if let Some(Err(error)) = window.map(|window| bound(stream, window)) {
                return failed(&format!("setsockopt(TCP_WINDOW_CLAMP, SO_RCVBUF): {error}"));
            }
            let mut each = |_| {
                // setting it has succeeded once
                let _ = window.map(|window| tcp_info::set_window_clamp(stream, window));
                go_on()
            };
            let longest = offer.measure.map_or(length + Span::from_secs(20), |measure| measure.to());
            let measured_from = offer.measure.map(|measure| measure.from());
            let max_rate = Some(limit);
            let begins = offer.spec.start();
            let options = Receiving { begins, longest: Some(longest), measured_from, max_rate, ..Receiving::default() };
            match flow::receive(stream, &options, Clock::start(), &mut each) {
                Err(error) => failed(&error.to_string()),
                Ok(received) => {
                    let row = FlowRow { start_s: begins.as_secs_f64(), ..received.row() };
                    let ended = row.ended.clone().unwrap_or_default();
                    let tables = received.series("flow", 0).into_iter().map(Table::of).collect();
                    let [last_s, end_s] =
                        [received.end, received.over].map(|at| at.since(received.start).as_secs_f64());
                    let cut = received.ended == flow::Ended::Time && offer.measure.is_some();
                    let well = cut || received.ended == flow::Ended::PeerClosed;
                    Half { row, end_s, last_s, tables, ended, well, ..Half::default() }
                }
            }
        }
    }
}

/// Limits the kernel's sending rate to what the server allows (`SO_MAX_PACING_RATE`, socket(7)). An old kernel may
/// refuse; the congestion control still works. With any limit set, the kernel also paces the socket at the rate that
/// its window gives (`sk_pacing_status`), which it otherwise does only for congestion controls that request it: without
/// a limit nothing is set.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
fn pace(stream: &TcpStream, limit: u32) {
    if limit >= UNBOUNDED {
        return;
    }
    let len = size_of::<u32>() as libc::socklen_t;
    let value = std::ptr::from_ref(&limit).cast();
    // SAFETY: the descriptor is open, and the value is an unsigned int of the length given, as this option requires.
    unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len) };
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "tests of sockets")]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A socket's pacing limit (bytes per second); by default the largest number.
    fn max_pacing_rate(stream: &TcpStream) -> u32 {
        let (mut value, mut len) = (0u32, size_of::<u32>() as libc::socklen_t);
        let to = std::ptr::from_mut(&mut value).cast();
        // SAFETY: the descriptor is open, and there is room for an unsigned int, which the kernel returns for that
        // length.
        let got = unsafe {
            libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, to, &raw mut len)
        };
        assert_eq!(got, 0);
        value
    }

    #[test]
    fn a_flow_without_a_bound_is_left_as_the_kernel_has_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let own = max_pacing_rate(&stream);
        pace(&stream, UNBOUNDED);
        assert_eq!(max_pacing_rate(&stream), own);
        pace(&stream, 2_500_000);
        assert_eq!(max_pacing_rate(&stream), 2_500_000);
    }
}
