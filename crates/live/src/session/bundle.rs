//! What a session of a bundle is told of the others (WebRTC's BUNDLE), and what its owner asks it: the machines' half is
//! `paceline_flow::rtp`'s, the rates' `paceline_sim::bundling`'s. Times are those of sessions, which all of a driver share.

use super::log::{Broken, LogReader, number};
use super::{Outbox, ReceiverSession, SenderSession, State};
use paceline_control::SentPacket;
use paceline_flow::rtp::{Carried, Class, Grant, Turn, Waiting};
use paceline_flow::{Receiver, Sender};
use paceline_units::{Rate, Size, Span, Time};

/// What a session of a bundle is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bundled {
    /// Who leads: what waits at the stream of this place.
    Others(u32, Waiting),
    /// Who is led: it has its turn.
    Turn(Turn),
    /// Who leads: what has left in the turn that it gave, and what waits there now.
    Took(Option<SentPacket>, Waiting),
    /// Its part of the rate, and what all may have.
    Allot(Rate, Grant),
    /// The receiver of who leads: a packet of another has come.
    Carry(Carried),
}

impl SenderSession {
    /// What waits at it, for the one that leads.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        match self.state {
            State::Running => {
                let waiting = self.source.waiting();
                Waiting { since: self.times.wake(waiting.since), ..waiting }
            }
            _ => Waiting::NOTHING,
        }
    }

    /// The turn that it has for another.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        (self.state == State::Running).then(|| self.source.turn())?
    }

    /// What has left in the turn that it was given last.
    pub fn take_sent(&mut self) -> Option<SentPacket> {
        self.in_turn.take()
    }

    /// What the streams that it leads may have; `None` if it leads none now.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        (self.state == State::Running).then(|| self.source.grant())?
    }

    /// What its application could send at most, in bits a second with all headers.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        if self.state == State::Running { self.source.demand(self.times.machine(now)) } else { 0.0 }
    }

    pub(super) fn bundled(&mut self, now: Time, bundled: Bundled, out: &mut Outbox) {
        if self.state != State::Running {
            return;
        }
        self.run(now, out);
        let at = self.times.at();
        // a packet was written before it was told of
        let own = |waiting: Waiting| match waiting.since {
            Time::NEVER => waiting,
            since => Waiting { since: self.times.machine(since).min(at), ..waiting },
        };
        let bundled = match bundled {
            Bundled::Others(place, waiting) => Bundled::Others(place, own(waiting)),
            Bundled::Took(sent, waiting) => Bundled::Took(sent, own(waiting)),
            other => other,
        };
        let (source, mut port) = self.port(now, out);
        let Sender::Rtp(rtp) = &mut source.sender else { return };
        let mut sent = None;
        match bundled {
            Bundled::Others(place, waiting) => rtp.others(place as usize, waiting, at, &mut port),
            Bundled::Turn(turn) => sent = rtp.send_in_turn(turn, at, &mut port),
            Bundled::Took(sent, waiting) => rtp.took(sent, waiting, at, &mut port),
            Bundled::Allot(rate, grant) => rtp.allot(rate, &grant, at),
            Bundled::Carry(_) => {}
        }
        self.in_turn = sent;
    }
}

impl ReceiverSession {
    /// The packet that has come, for the receiver of the one that leads.
    pub fn take_carried(&mut self) -> Option<Carried> {
        match &mut self.sink.receiver {
            Receiver::Rtp(rtp) => rtp.take_carried(),
            _ => None,
        }
    }

    pub(super) fn bundled(&mut self, now: Time, bundled: Bundled, out: &mut Outbox) {
        let Bundled::Carry(packet) = bundled else { return };
        if self.state == State::Running {
            self.run(now, out);
            let at = self.times.at().max(self.times.machine(now));
            let at = self.times.pass(at);
            self.carry(at, packet, out);
        }
    }
}

impl Bundled {
    /// Appends it as an event log has it: a byte that says what it is, and numbers.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Bundled::Others(place, waiting) => {
                to.push(0);
                number(to, (*place).into());
                write_waiting(waiting, to);
            }
            Bundled::Turn(turn) => {
                to.push(1);
                numbers(to, &[turn.number.into(), turn.transport.into(), optional(turn.probe)]);
            }
            Bundled::Took(sent, waiting) => {
                to.push(2);
                to.push(sent.is_some().into());
                if let Some(sent) = sent {
                    let (size, payload) = (sent.size.bytes(), sent.payload.bytes());
                    let ends = sent.ends_frame.into();
                    numbers(to, &[sent.number.into(), size, payload, ends, optional(sent.probe)]);
                }
                write_waiting(waiting, to);
            }
            Bundled::Allot(rate, grant) => {
                to.push(3);
                numbers(to, &[rate.0, grant.target.0, grant.queueing.0, grant.rtt.0]);
            }
            Bundled::Carry(packet) => {
                to.push(4);
                numbers(to, &[packet.number.into(), packet.size.into(), packet.ends_frame.into()]);
            }
        }
    }

    /// Reads it.
    pub(super) fn read(from: &mut LogReader<'_>) -> Result<Bundled, Broken> {
        Ok(match from.byte()? {
            0 => Bundled::Others(narrow(from.number()?)?, read_waiting(from)?),
            1 => {
                let (number, transport) = (narrow(from.number()?)?, narrow(from.number()?)?);
                Bundled::Turn(Turn { number, transport, probe: of_optional(from.number()?)? })
            }
            2 => {
                let sent = match from.byte()? {
                    0 => None,
                    1 => Some(SentPacket {
                        number: narrow(from.number()?)?,
                        size: Size(u64::from(narrow::<u16>(from.number()?)?)),
                        payload: Size(u64::from(narrow::<u16>(from.number()?)?)),
                        ends_frame: from.number()? != 0,
                        probe: of_optional(from.number()?)?,
                    }),
                    _ => return Err(Broken::Wrong("a packet in turn")),
                };
                Bundled::Took(sent, read_waiting(from)?)
            }
            3 => {
                let (rate, target) = (Rate(from.number()?), Rate(from.number()?));
                let (queueing, rtt) = (Span(from.number()?), Span(from.number()?));
                Bundled::Allot(rate, Grant { target, queueing, rtt })
            }
            4 => {
                let (number, size) = (narrow(from.number()?)?, narrow(from.number()?)?);
                Bundled::Carry(Carried { number, size, ends_frame: from.number()? != 0 })
            }
            _ => return Err(Broken::Wrong("what a bundle is told")),
        })
    }
}

fn write_waiting(waiting: &Waiting, to: &mut Vec<u8>) {
    let class = waiting.next.map_or(0, |class| match class {
        Class::Sound => 1,
        Class::Again => 2,
        Class::Picture => 3,
    });
    numbers(to, &[class, waiting.backlog, waiting.since.0, waiting.written]);
}

fn read_waiting(from: &mut LogReader<'_>) -> Result<Waiting, Broken> {
    let next = match from.number()? {
        0 => None,
        1 => Some(Class::Sound),
        2 => Some(Class::Again),
        3 => Some(Class::Picture),
        _ => return Err(Broken::Wrong("a class of packets")),
    };
    let (backlog, since, written) = (from.number()?, Time(from.number()?), from.number()?);
    Ok(Waiting { next, backlog, since, written })
}

fn numbers(to: &mut Vec<u8>, all: &[u64]) {
    all.iter().for_each(|value| number(to, *value));
}

/// A number of a probe, or 0 for none.
fn optional(probe: Option<u32>) -> u64 {
    probe.map_or(0, |probe| u64::from(probe) + 1)
}

fn of_optional(number: u64) -> Result<Option<u32>, Broken> {
    number.checked_sub(1).map(narrow).transpose()
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Result<T, Broken> {
    T::try_from(number).map_err(|_| Broken::Wrong("a number too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiting() -> impl Strategy<Value = Waiting> {
        let next = prop::option::of(prop::sample::select(vec![Class::Sound, Class::Again, Class::Picture]));
        (next, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(next, backlog, since, written)| Waiting {
            next,
            backlog,
            since: Time(since),
            written,
        })
    }

    fn sent() -> impl Strategy<Value = SentPacket> {
        (any::<u32>(), any::<[u16; 2]>(), any::<bool>(), prop::option::of(any::<u32>())).prop_map(
            |(number, [size, payload], ends_frame, probe)| {
                let (size, payload) = (Size(size.into()), Size(payload.into()));
                SentPacket { number, size, payload, ends_frame, probe }
            },
        )
    }

    fn bundled() -> impl Strategy<Value = Bundled> {
        prop_oneof![
            (any::<u32>(), waiting()).prop_map(|(place, waiting)| Bundled::Others(place, waiting)),
            (any::<u32>(), any::<u16>(), prop::option::of(any::<u32>()))
                .prop_map(|(number, transport, probe)| Bundled::Turn(Turn { number, transport, probe })),
            (prop::option::of(sent()), waiting()).prop_map(|(sent, waiting)| Bundled::Took(sent, waiting)),
            any::<[u64; 4]>().prop_map(|[rate, target, queueing, rtt]| {
                let grant = Grant { target: Rate(target), queueing: Span(queueing), rtt: Span(rtt) };
                Bundled::Allot(Rate(rate), grant)
            }),
            (any::<[u16; 2]>(), any::<bool>()).prop_map(|([number, size], ends_frame)| Bundled::Carry(Carried {
                number,
                size,
                ends_frame
            })),
        ]
    }

    proptest! {
        #[test]
        fn a_log_keeps_what_a_bundle_is_told(bundled in bundled()) {
            let mut bytes = Vec::new();
            bundled.write(&mut bytes);
            let mut reader = LogReader::of_records(&bytes);
            prop_assert!(matches!(Bundled::read(&mut reader), Ok(read) if read == bundled));
            prop_assert_eq!(reader.left(), 0);
            for short in 0..bytes.len() {
                prop_assert!(matches!(Bundled::read(&mut LogReader::of_records(&bytes[..short])), Err(Broken::Short)));
            }
        }
    }
}
