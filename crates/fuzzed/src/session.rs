//! Any flow that can be requested, with arbitrary datagrams at either end at any time; both ends, with a network
//! between them that loses, duplicates and corrupts; arbitrary bytes as a message of the control channel, and as an
//! event log. Replaying a session's log repeats what it did.

use paceline_live::endpoint::control::{self, ClientMessage, MAX_REQUEST, ServerMessage};
use paceline_live::session::log::LogWriter;
use paceline_live::session::{EcnBits, Input, Outbox, ReplayError, RtpPeer, Session, SessionSpec, Side, State, replay};
use paceline_packet::wire::tfrc::{Accept, ConnectionId, Datagram, Ecn, Message, Nonce, RateLimit, Request};
use paceline_units::{Rate, Span, Time};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CONNECTION: ConnectionId = ConnectionId(1);
const NONCE: Nonce = Nonce(2);
/// Maximum number of inputs, and of datagrams, in a session of the fuzzer.
const MAX_INPUTS: usize = 2000;
const MAX_DATAGRAMS: usize = 4_000;
/// An application without a rate limit writes thousands of pieces per call, which take 25 ms here, so an end stops
/// after this long. It is CPU time, so that other load does not cut an input short.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Maximum datagrams in transit in each direction.
const MAX_IN_TRANSIT: usize = 512;

/// This thread's CPU time.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A buffer shared by its writer and a reader.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One end, with its log.
struct End {
    session: Session,
    log: LogWriter<Vec<u8>>,
    /// The calls of its congestion control, for a sender over QUIC.
    calls: Shared,
    receives_quic: bool,
    out: Outbox,
    inputs: usize,
    datagrams: usize,
    began: Duration,
}

impl End {
    fn new(spec: &SessionSpec) -> Option<End> {
        let session = Session::new(spec).ok()?;
        let log = LogWriter::new(Vec::new(), spec).ok()?;
        let calls = Shared::default();
        if let Session::Sender(sender) = &session {
            sender.log_calls(Box::new(calls.clone())).ok()?;
        }
        let receives_quic = spec.side == Side::Receiver && spec.flow.is_quic();
        Some(End {
            session,
            log,
            calls,
            receives_quic,
            out: Outbox::default(),
            inputs: 0,
            datagrams: 0,
            began: spent(),
        })
    }

    fn give(&mut self, now: Time, input: Input<'_>) {
        self.out.clear();
        if self.inputs == MAX_INPUTS || self.datagrams > MAX_DATAGRAMS || spent() - self.began > MAX_TIME {
            return;
        }
        self.session.input(now, input, &mut self.out);
        self.inputs += 1;
        self.datagrams += self.out.len();
        self.log.write(now, input, &self.out, &self.session).expect("a log in memory");
    }

    /// The datagrams sent, as bytes.
    fn left(&self) -> impl Iterator<Item = Vec<u8>> {
        self.out.iter().map(|datagram| {
            let mut bytes = datagram.header.to_vec();
            bytes.resize(bytes.len() + usize::from(datagram.payload), 0);
            bytes
        })
    }

    fn finish(mut self, now: Time) {
        self.give(now, Input::Stop);
        let calls = self.calls.0.lock().expect("nobody panics");
        let log = if calls.is_empty() { self.log.get_ref() } else { &*calls };
        match replay(log) {
            Ok(_) => {}
            Err(ReplayError::Log(_)) if self.receives_quic => {} // its controller is at the other end
            Err(error) => panic!("{error}"),
        }
    }
}

/// Gives an end the inputs that `bytes` describe: lengths, times, and datagrams, some of which begin as the flow's own
/// do.
fn alone(spec: &SessionSpec, mut bytes: &[u8]) {
    let Some(mut end) = End::new(spec) else { return };
    let message = match spec.side {
        Side::Sender => Message::Accept(Accept { nonce: NONCE, limit: RateLimit::None }),
        Side::Receiver => Message::Request(Request { nonce: NONCE, packet_size: 1000, ecn: Ecn::Off }),
    };
    let (mut first, mut now) = (Vec::new(), Time::ZERO);
    Datagram { connection: CONNECTION, message }.encode(&mut first);
    end.give(now, Input::Start);
    end.give(now, Input::Datagram(&first, EcnBits::NotEct));
    while let [len, ms, kind, rest @ ..] = bytes {
        bytes = rest;
        now.0 += u64::from(*ms) * 1_000_000;
        match kind & 0x30 {
            0x20 => {
                for _ in 0..*len {
                    now = now.max(end.session.next_wake().min(Time(now.0 + 1_000_000_000)));
                    end.give(now, Input::Timer);
                }
            }
            0x30 => end.give(
                now,
                match len & 3 {
                    0 => Input::Unreachable,
                    2 => Input::Share(Rate(1 << (*ms & 63))),
                    _ => Input::Start,
                },
            ),
            _ => {
                let (datagram, rest) = rest.split_at(usize::from(*len).min(rest.len()));
                bytes = rest;
                let mut whole = Vec::new();
                if kind & 0x80 != 0 {
                    whole.extend_from_slice(&[b'P', b'T', 0x10 | kind & 0xf, 0, 0, 0, 0, 1]);
                }
                whole.extend_from_slice(datagram);
                end.give(now, Input::Timer);
                end.give(now, Input::Datagram(&whole, if kind & 0x40 != 0 { EcnBits::Ce } else { EcnBits::Ect0 }));
            }
        }
    }
    end.finish(now);
}

/// Runs both ends with a network between them, as `bytes` describe.
fn both(specs: &[SessionSpec; 2], bytes: &[u8]) {
    let (Some(sender), Some(receiver)) = (End::new(&specs[0]), End::new(&specs[1])) else { return };
    let (mut ends, mut now) = ([sender, receiver], Time::ZERO);
    // Datagrams in transit to each end.
    let mut way = [VecDeque::<Vec<u8>>::new(), VecDeque::new()];
    let sent =
        |end: &End, to: &mut VecDeque<Vec<u8>>| to.extend(end.left().take(MAX_IN_TRANSIT.saturating_sub(to.len())));
    for at in 0..2 {
        ends[at].give(now, Input::Start);
        sent(&ends[at], &mut way[1 - at]);
    }
    for step in bytes.chunks_exact(2) {
        let ([does, what], end) = ([step[0], step[1]], usize::from(step[0] & 1));
        for _ in 0..=does >> 4 {
            let next = way[end].front().cloned();
            let input = match does >> 1 & 7 {
                // 2: a timer, on time; 3: late
                kind @ 2..=3 => {
                    let wake = ends[end].session.next_wake().min(Time(now.0 + 1_000_000_000));
                    now = now.max(wake) + Span(if kind == 3 { u64::from(what) * 1_000_000 } else { 0 });
                    None
                }
                4 => {
                    way[end].pop_front();
                    continue;
                }
                // duplicated and corrupted, as well as delivered
                kind => {
                    now.0 += u64::from(what) * 10_000;
                    let Some(mut next) = next else { continue };
                    if kind != 5 {
                        way[end].pop_front();
                    }
                    if kind == 6 && !next.is_empty() {
                        let at = usize::from(what) % next.len().min(64);
                        next[at] ^= 1 << (does >> 4 & 7);
                    }
                    Some(next)
                }
            };
            let ecn = if what & 0x80 != 0 { EcnBits::Ce } else { EcnBits::Ect0 };
            match &input {
                None => ends[end].give(now, Input::Timer),
                Some(datagram) => ends[end].give(now, Input::Datagram(datagram, ecn)),
            }
            sent(&ends[end], &mut way[1 - end]);
        }
        if ends.iter().all(|end| matches!(end.session.state(), State::Ended(_))) {
            break;
        }
    }
    for end in ends {
        end.finish(now);
    }
}

/// The target `session`.
pub fn session(bytes: &[u8]) {
    let _ = control::read::<ClientMessage>(&mut &bytes[..], MAX_REQUEST);
    let _ = control::read::<ServerMessage>(&mut &bytes[..], MAX_REQUEST);
    let _ = replay(bytes);
    let [how, limit, bytes @ ..] = bytes else { return };
    let mut bytes = bytes;
    let Some(flow) = crate::flow::drawn(&mut bytes) else { return };
    let (connection, nonce, announces) = (CONNECTION.0, NONCE.0, how & 4 != 0);
    let limit = (how & 8 != 0).then_some(u32::from(*limit) << 12);
    let spec = |side, rtp| SessionSpec { side, flow: flow.clone(), connection, nonce, limit, announces, rtp };
    match how % 4 {
        0 => alone(&spec(Side::Sender, None), bytes),
        1 => alone(&spec(Side::Receiver, None), bytes),
        // A sender's peer may be a receiver of plain RTP.
        2 => alone(&spec(Side::Sender, Some(RtpPeer::default())), bytes),
        _ => both(&[Side::Sender, Side::Receiver].map(|side| spec(side, None)), bytes),
    }
}
