//! Inputs that a session of a bundle receives about the other flows (WebRTC's BUNDLE), and what its owner reads from
//! it. The machines' part is in `paceline_flow::rtp`, the division of rates in `paceline_sim::bundling`. Times are
//! session times, which all sessions of a driver share.

use super::log::{Broken, LogReader, number};
use super::{Outbox, ReceiverSession, SenderSession, State};
use paceline_control::SentPacket;
use paceline_flow::rtp::{Carried, Class, Grant, Turn, Waiting};
use paceline_flow::{Receiver, Sender};
use paceline_units::{Rate, Size, Span, Time};

/// An input of a session in a bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bundled {
    /// For the leader: the data waiting at the stream with this number.
    Others(u32, Waiting),
    /// For a led flow: its turn to send.
    Turn(Turn),
    /// For the leader: the packet sent in the turn that it gave, and the data waiting there now.
    Took(Option<SentPacket>, Waiting),
    /// The flow's part of the rate, and the grant for the whole bundle.
    Allot(Rate, Grant),
    /// For the leader's receiver: a packet of another flow has arrived.
    Carry(Carried),
}

impl SenderSession {
    /// The data waiting at this flow, for the leader.
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

    /// The turn that this leader has for another flow.
    #[must_use]
    pub fn turn(&self) -> Option<(usize, Turn)> {
        (self.state == State::Running).then(|| self.source.turn())?
    }

    /// The packet sent in the last turn that it was given.
    pub fn take_sent(&mut self) -> Option<SentPacket> {
        self.in_turn.take()
    }

    /// The grant for the flows that it leads; `None` if it leads none now.
    #[must_use]
    pub fn grant(&self) -> Option<Grant> {
        (self.state == State::Running).then(|| self.source.grant())?
    }

    /// Maximum rate that its application could send, in bit/s including all headers.
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
        // a packet cannot have been written after the machine's current time
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
    /// The packet that has arrived, for the leader's receiver.
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
    /// Appends it in the event log's form: a type byte, and numbers.
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

    /// Reads it from an event log.
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
        Class::Audio => 1,
        Class::Retransmission => 2,
        Class::Video => 3,
    });
    numbers(to, &[class, waiting.backlog, waiting.since.0, waiting.written]);
}

fn read_waiting(from: &mut LogReader<'_>) -> Result<Waiting, Broken> {
    let next = match from.number()? {
        0 => None,
        1 => Some(Class::Audio),
        2 => Some(Class::Retransmission),
        3 => Some(Class::Video),
        _ => return Err(Broken::Wrong("a class of packets")),
    };
    let (backlog, since, written) = (from.number()?, Time(from.number()?), from.number()?);
    Ok(Waiting { next, backlog, since, written })
}

fn numbers(to: &mut Vec<u8>, all: &[u64]) {
    all.iter().for_each(|value| number(to, *value));
}

/// A probe's number plus one, or 0 for none.
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
        let next = prop::option::of(prop::sample::select(vec![Class::Audio, Class::Retransmission, Class::Video]));
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
