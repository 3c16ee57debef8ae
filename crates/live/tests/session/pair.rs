//! A sender and a receiver with a path in memory between them: delay, a rate, loss, all drawn from a stream.

use paceline_live::quic::Keys;
use paceline_live::session::log::LogWriter;
use paceline_live::session::{
    EcnBits, Family, FlowSpec, ForeignSchemes, Input, Outbox, Session, SessionSpec, Side, State,
};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// What the path does.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub delay: Span,
    /// Bits a second of the way there; the way back has no limit.
    pub rate: f64,
    /// The longest that a datagram waits there.
    pub queue: Span,
    pub loss: f64,
    /// The share of datagrams that take 5 ms longer and are overtaken, that come twice, and of which a bit is flipped.
    pub late: f64,
    pub twice: f64,
    pub damaged: f64,
    /// Nothing passes from the first instant to the second.
    pub cut: (Time, Time),
}

pub const GOOD: Path = Path {
    delay: Span::from_millis(20),
    rate: 2e6,
    queue: Span::from_millis(100),
    loss: 0.0,
    late: 0.0,
    twice: 0.0,
    damaged: 0.0,
    cut: (Time::NEVER, Time::NEVER),
};

pub struct End {
    pub session: Session,
    pub log: LogWriter<Vec<u8>>,
    pub sent: u64,
}

/// What a log has written, with the writer given back by value.
pub struct Pair {
    pub ends: [End; 2],
    pub now: Time,
    path: Path,
    draws: Sequence,
    free: Time,
    order: u64,
    /// By arrival and order: for which end, and the bytes.
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>, EcnBits)>,
    /// The last datagrams for each end.
    seen: Vec<(usize, Vec<u8>)>,
}

pub fn spec(settings: &[(&str, &str)], seconds: u64, side: Side) -> SessionSpec {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    SessionSpec {
        side,
        flow: FlowSpec {
            settings,
            for_ms: seconds * 1000,
            seed: 7,
            family: Family::V4,
            name: None,
            foreign: ForeignSchemes::default(),
        },
        connection: 0xdead_beef,
        nonce: 0x0123_4567_89ab_cdef,
        limit: None,
        announces: false,
        rtp: None,
    }
}

impl Pair {
    pub fn new(settings: &[(&str, &str)], seconds: u64, path: Path) -> Pair {
        let sender = spec(settings, seconds, Side::Sender);
        Pair::of([sender.clone(), SessionSpec { side: Side::Receiver, ..sender }], path)
    }

    pub fn of(specs: [SessionSpec; 2], path: Path) -> Pair {
        Pair::with_keys(specs, [None, None], path)
    }

    /// Of ends that have these keys, if they speak QUIC.
    pub fn with_keys(specs: [SessionSpec; 2], keys: [Option<Keys>; 2], path: Path) -> Pair {
        let mut keys = keys.into_iter();
        let ends = specs.map(|spec| {
            let keys = keys.next().flatten();
            let session = Session::with_keys(&spec, keys.as_ref()).unwrap_or_else(|error| panic!("{error}"));
            End { session, log: LogWriter::new(Vec::new(), &spec).unwrap(), sent: 0 }
        });
        let draws = Sequence::new(Stream::new(3, "path"));
        let mut pair = Pair {
            ends,
            now: Time::ZERO,
            path,
            draws,
            free: Time::ZERO,
            order: 0,
            flying: BTreeMap::new(),
            seen: Vec::new(),
        };
        pair.input(1, Input::Start);
        pair.input(0, Input::Start);
        pair
    }

    /// Gives an end an input, writes it down, and sends what leaves.
    pub fn input(&mut self, to: usize, input: Input<'_>) {
        let mut out = Outbox::default();
        let end = &mut self.ends[to];
        end.session.input(self.now, input, &mut out);
        end.log.write(self.now, input, &out, &end.session).unwrap();
        end.sent += out.len() as u64;
        for datagram in out.iter() {
            let mut bytes = vec![0; datagram.len()];
            bytes[..datagram.header.len()].copy_from_slice(datagram.header);
            self.send(1 - to, bytes, datagram.ecn);
        }
    }

    fn send(&mut self, to: usize, mut bytes: Vec<u8>, ecn: EcnBits) {
        let path = self.path;
        if (path.cut.0..path.cut.1).contains(&self.now) || self.draws.unit() < path.loss {
            return;
        }
        let mut at = self.now;
        if to == 1 {
            at = at.max(self.free);
            if at.since(self.now) > path.queue {
                return;
            }
            at += Span::from_secs_f64((bytes.len() + 28) as f64 * 8.0 / path.rate);
            self.free = at;
        }
        at += path.delay;
        if self.draws.unit() < path.late {
            at += Span::from_millis(5);
        }
        if self.draws.unit() < path.damaged {
            let bit = (self.draws.unit() * (bytes.len() * 8) as f64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + u64::from(self.draws.unit() < path.twice);
        for _ in 0..copies {
            self.order += 1;
            self.flying.insert((at, self.order), (to, bytes.clone(), ecn));
        }
    }

    /// Runs until `to`, or until both are over; or until the sender has made a million packets more than it may send: then it
    /// has been told a rate of packets by the nanosecond, which go on to be counted and not sent.
    pub fn run(&mut self, to: Time) {
        while self.ends[0].session.counts().over_limit < 1_000_000 {
            let wakes = [0, 1].map(|end| self.ends[end].session.next_wake());
            let arrives = self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let next = arrives.min(wakes[0]).min(wakes[1]);
            if next > to || next == Time::NEVER {
                return;
            }
            self.now = self.now.max(next);
            if arrives <= next {
                let (_, (end, bytes, ecn)) = self.flying.pop_first().expect("it arrives");
                self.input(end, Input::Datagram(&bytes, ecn));
                self.seen.push((end, bytes));
                if self.seen.len() > 64 {
                    self.seen.remove(0);
                }
            } else {
                self.input(usize::from(wakes[1] < wakes[0]), Input::Timer);
            }
        }
    }

    /// The datagrams that came of late, by end.
    pub fn take_seen(&mut self) -> Vec<(usize, Vec<u8>)> {
        core::mem::take(&mut self.seen)
    }

    pub fn states(&self) -> [State; 2] {
        [0, 1].map(|end| self.ends[end].session.state())
    }

    pub fn sender(&self) -> &paceline_live::session::SenderSession {
        match &self.ends[0].session {
            Session::Sender(sender) => sender,
            Session::Receiver(_) => unreachable!("the first end sends"),
        }
    }

    pub fn receiver(&self) -> &paceline_live::session::ReceiverSession {
        match &self.ends[1].session {
            Session::Receiver(receiver) => receiver,
            Session::Sender(_) => unreachable!("the second end receives"),
        }
    }

    /// Bits a second of payload that have come over `seconds`.
    pub fn goodput(&self, seconds: f64) -> f64 {
        self.receiver().sink().receiver.stats().bytes as f64 * 8.0 / seconds
    }
}
