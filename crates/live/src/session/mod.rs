//! Flows on a network, without the network: a session is one end of a flow as a state machine, whose inputs are
//! datagrams and the time, and whose outputs are datagrams.
//!
//! [`SenderSession`] drives the simulator's own [`Source`](paceline_sim::endpoint::Source), [`ReceiverSession`] its
//! [`Sink`](paceline_sim::endpoint::Sink): sender and receiver machines, controllers, applications and players are the
//! simulated ones. Around them are the setup and close messages (`docs/wire/tfrc.md`) and the codecs of
//! `paceline-packet`. Sessions read no clock and open no socket: [`crate::endpoint`] does. [`log`](mod@log) records
//! inputs and outputs, and [`replay()`] runs a log through new machines and compares them bit for bit. Start with
//! [`Session::input`].

mod bundle;
mod capture_clock;
mod codec;
pub(crate) mod controller_calls;
pub mod flow;
mod foreign;
pub mod log;
mod outbox;
mod quic;
mod receiver;
mod replay;
pub(crate) mod reports;
mod sender;
mod shaper;
mod times;
mod work_limit;

pub use bundle::Bundled;
pub(crate) use capture_clock::CaptureClock;
pub use flow::{Family, FlowSpec};
pub use foreign::ForeignSchemes;
pub use outbox::{Outbox, Outgoing};
pub use receiver::ReceiverSession;
pub use replay::{Divergence, ReplayError, Replayed, replay};
pub(crate) use reports::is_rtcp;
pub use reports::{CAUTIOUS_BPS, Reported, RtpPeer};
pub use sender::SenderSession;

use self::work_limit::MAX_WAITING;
use crate::quic::{CloseReason, Keys};
use paceline_packet::Flags;
use paceline_packet::wire::tfrc::{self, ConnectionId, Message, Nonce, RateLimit, Reason};
use paceline_scenario::ScenarioError;
use paceline_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Interval at which an accepted sender repeats its request. Each accept shows that the receiver still wants the data.
pub const REQUEST_INTERVAL: Span = Span::from_secs(1);
/// Silence after which the other end counts as gone. A flow survives a path outage of ten seconds.
pub const SILENCE: Span = Span::from_secs(12);

/// The ECN field of an IP header (RFC 3168 section 5).
///
/// The numbers are the session log's, not the header's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnBits {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(0).
    Ect0 = 1,
    /// Congestion experienced.
    Ce = 2,
    /// ECT(1): from a scalable sender (L4S, RFC 9331 section 4.1).
    Ect1 = 3,
}

impl EcnBits {
    /// From the two low bits of the TOS or traffic class byte.
    #[must_use]
    pub const fn of_tos(tos: u8) -> EcnBits {
        match tos & 3 {
            0b00 => EcnBits::NotEct,
            0b01 => EcnBits::Ect1,
            0b10 => EcnBits::Ect0,
            _ => EcnBits::Ce,
        }
    }

    /// The TOS or traffic class byte with only these bits.
    #[must_use]
    pub const fn tos(self) -> u8 {
        match self {
            EcnBits::NotEct => 0b00,
            EcnBits::Ect1 => 0b01,
            EcnBits::Ect0 => 0b10,
            EcnBits::Ce => 0b11,
        }
    }

    /// The ECN field of a packet with these flags.
    #[must_use]
    pub const fn of_flags(flags: Flags) -> EcnBits {
        match flags {
            flags if flags.has(Flags::CE) => EcnBits::Ce,
            flags if flags.has(Flags::L4S) => EcnBits::Ect1,
            flags if flags.has(Flags::ECT) => EcnBits::Ect0,
            _ => EcnBits::NotEct,
        }
    }

    /// The flags of a packet received with this field.
    #[must_use]
    pub const fn flags(self) -> Flags {
        match self {
            EcnBits::NotEct => Flags::NONE,
            EcnBits::Ect0 => Flags::ECT,
            EcnBits::Ect1 => Flags::ECT.with(Flags::L4S),
            EcnBits::Ce => Flags::ECT.with(Flags::CE),
        }
    }

    /// From the number in a session log.
    pub(crate) const fn of_number(number: u8) -> Option<EcnBits> {
        match number {
            0 => Some(EcnBits::NotEct),
            1 => Some(EcnBits::Ect0),
            2 => Some(EcnBits::Ce),
            3 => Some(EcnBits::Ect1),
            _ => None,
        }
    }
}

/// Whether a datagram of a flow carries data: it is neither a setup or close message nor a report.
#[must_use]
pub(crate) fn is_data(datagram: &[u8]) -> bool {
    match tfrc::decode(datagram) {
        Ok((found, _)) => {
            matches!(found.message, Message::Data(_) | Message::Single(_) | Message::Segment(_) | Message::Plain(_))
        }
        Err(_) => !datagram.starts_with(&tfrc::MAGIC) && !is_rtcp(datagram),
    }
}

/// An input of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'a> {
    /// Starts the session.
    Start,
    /// A datagram from the other end has arrived.
    Datagram(&'a [u8], EcnBits),
    /// The time given by [`Session::next_wake`] has come; an earlier or later call is harmless.
    Timer,
    /// The rate that coupling leaves to its controller (RFC 8699).
    Share(Rate),
    /// Information about the other flows of its bundle.
    Bundled(Bundled),
    /// The user stops the flow.
    Stop,
    /// The network reports that nobody receives datagrams at the other end (ICMP port unreachable).
    Unreachable,
}

/// Why a session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Everything was sent, or the time was up.
    Done,
    /// The user stopped it here.
    Stopped,
    /// The other end refused it.
    Refused(Reason),
    /// The other end closed it, for a reason other than being done.
    Closed(Reason),
    /// Nobody answered the request, or none arrived.
    NoAnswer,
    /// Nothing has been received for [`SILENCE`].
    Silence,
    /// The network reports that the other end is unreachable.
    Unreachable,
    /// The sender exceeded its granted rate.
    TooFast,
    /// Its application produces data faster than they can be processed.
    TooMuchWork,
    /// Too many of its application's writes wait to be sent or acknowledged.
    TooManyWrites,
    /// A receiver of plain RTP never reported on the stream.
    NoReports,
    /// Its reports have stopped (RFC 8083 section 4.1).
    ReportsCeased,
    /// Its reports show that no new data of the stream arrive (RFC 8083 section 4.2).
    NothingArrives,
    /// It has said BYE.
    Left,
    /// The QUIC connection is lost.
    Quic(CloseReason),
}

impl core::fmt::Display for End {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let of = |reason: &Reason| match *reason {
            Reason::DONE => "it is done".to_owned(),
            Reason::BUSY => "it takes no more".to_owned(),
            Reason::UNKNOWN => "it does not know the flow".to_owned(),
            Reason::PACKET_SIZE => "it cannot take packets of this size".to_owned(),
            Reason::UNSPECIFIED => "it gives no reason".to_owned(),
            Reason(other) => format!("reason {other}"),
        };
        match self {
            End::Done => f.write_str("done"),
            End::Stopped => f.write_str("stopped"),
            End::Refused(reason) => write!(f, "the other end refused: {}", of(reason)),
            End::Closed(reason) => write!(f, "the other end closed the flow: {}", of(reason)),
            End::NoAnswer => f.write_str("no datagram of the other end has come: is UDP let through on this port?"),
            End::Silence => {
                write!(f, "nothing has come from the other end for {} s: it is gone, or the path is cut", {
                    SILENCE.as_secs_f64()
                })
            }
            End::Unreachable => f.write_str("nobody takes datagrams at the other end any more (port unreachable)"),
            End::TooFast => f.write_str("the sender does not keep to the rate that it was granted"),
            End::TooMuchWork => {
                f.write_str("its application makes data faster than its sender's processor works through them")
            }
            End::TooManyWrites => {
                write!(f, "more than {MAX_WAITING} writes of its application wait to be sent or acknowledged")
            }
            End::NoReports => f.write_str(
                "no receiver's report on the stream has come: does the receiver send its RTCP to our port for it, and is \
                 UDP let through?",
            ),
            End::ReportsCeased => f.write_str("the receiver's reports have ceased: it is gone, or the path is cut"),
            End::NothingArrives => f.write_str("the receiver reports that nothing of the stream arrives any more"),
            End::Left => f.write_str("the receiver has left (RTCP BYE)"),
            End::Quic(lost) => lost.fmt(f),
        }
    }
}

/// State of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has not been started.
    Idle,
    /// A sender has sent a request; a receiver waits for one.
    Opening,
    /// Data flow.
    Running,
    /// The sender has closed the flow, and waits for the answer.
    Closing,
    /// It has ended.
    Ended(End),
}

/// An end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The sender of data.
    Sender,
    /// The receiver of data.
    Receiver,
}

/// Everything that determines a session: sessions with the same specification and inputs behave the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Which end.
    pub side: Side,
    /// The flow.
    pub flow: FlowSpec,
    /// Identifies the flow in its datagrams.
    pub connection: u32,
    /// The secret that an accept must repeat.
    pub nonce: u64,
    /// Maximum rate that a receiver grants and a sender allows itself, in bytes of UDP payload per second.
    pub limit: Option<u32>,
    /// For a receiver behind a NAT: it sends the first datagram, by accepting before a request arrives.
    pub announces: bool,
    /// For a sender: the other end is a receiver of plain RTP, whose reports replace the accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtp: Option<RtpPeer>,
}

impl SessionSpec {
    pub(crate) fn id(&self) -> ConnectionId {
        ConnectionId(self.connection)
    }

    pub(crate) fn secret(&self) -> Nonce {
        Nonce(self.nonce)
    }

    pub(crate) fn limit(&self) -> RateLimit {
        self.limit.map_or(RateLimit::None, RateLimit::BytesPerSecond)
    }
}

/// What a session has done with received datagrams, and those it dropped itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Datagrams accepted.
    pub taken: u64,
    /// Datagrams dropped because they are not a message of the flow.
    pub garbage: u64,
    /// Dropped: feedback whose echo matches no sent packet, and messages that do not fit the session's state.
    pub disregarded: u64,
    /// Datagrams from this end in excess of the granted rate.
    pub over_limit: u64,
}

/// One end of a flow.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, each lives in a box of its owner")]
pub enum Session {
    /// The sender of data.
    Sender(SenderSession),
    /// The receiver of data.
    Receiver(ReceiverSession),
}

impl Session {
    /// A session that has not started.
    ///
    /// # Errors
    /// What is wrong with the flow's settings.
    pub fn new(spec: &SessionSpec) -> Result<Session, ScenarioError> {
        Session::with_keys(spec, None)
    }

    /// Like [`Session::new`], for a flow over QUIC with its two ends' keys: without keys no peer is accepted.
    ///
    /// # Errors
    /// As there.
    pub fn with_keys(spec: &SessionSpec, keys: Option<&Keys>) -> Result<Session, ScenarioError> {
        let model = spec.flow.model()?;
        if spec.rtp.is_some() {
            reports::check(spec, &model)?;
        }
        Ok(match spec.side {
            Side::Sender => Session::Sender(SenderSession::new(spec, &model, keys)),
            Side::Receiver => Session::Receiver(ReceiverSession::new(spec, &model, keys)),
        })
    }

    /// Processes an input; resulting datagrams are added to `out`. `now` is the session's own time: it may begin
    /// anywhere and must not run backwards (an earlier value counts as the latest so far).
    pub fn input(&mut self, now: Time, input: Input<'_>, out: &mut Outbox) {
        match self {
            Session::Sender(sender) => sender.input(now, input, out),
            Session::Receiver(receiver) => receiver.input(now, input, out),
        }
    }

    /// When [`Input::Timer`] is needed next.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        match self {
            Session::Sender(sender) => sender.next_wake(),
            Session::Receiver(receiver) => receiver.next_wake(),
        }
    }

    /// The session's state.
    #[must_use]
    pub fn state(&self) -> State {
        match self {
            Session::Sender(sender) => sender.state(),
            Session::Receiver(receiver) => receiver.state(),
        }
    }

    /// Counts of received datagrams.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match self {
            Session::Sender(sender) => sender.counts(),
            Session::Receiver(receiver) => receiver.counts(),
        }
    }

    /// The figure that an event log records after each input: at a sender its window in packets or its rate in bit/s,
    /// at a receiver the payload bytes received.
    #[must_use]
    pub fn figure(&self) -> f64 {
        match self {
            Session::Sender(sender) => sender.figure(),
            Session::Receiver(receiver) => receiver.sink().receiver.stats().bytes as f64,
        }
    }
}
