//! What loss recovery and congestion control of an end are at, as a log of the connection tells it (draft-ietf-quic-qlog-quic-events,
//! recovery). It is read from outside after an event: a connection that nobody looks at does nothing for it.

use super::connection::{Connection, Phase};
use super::incoming::Violation;
use super::{QuicReceiver, QuicSender, Rtt};
use paceline_control::WindowController;
use paceline_units::Rate;

/// How far a connection is, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// Not begun.
    #[default]
    Idle,
    /// The handshake is under way.
    Opening,
    /// The handshake is done.
    Established,
    /// This end closed it, since its application had no more to send.
    Finished,
    /// This end closed it with an error of RFC 9000 section 20.1, by its code.
    Failed(u32),
    /// It was silent for too long, or the other end closed it: what came last says which.
    Over,
}

/// What a window controller by RFC 9002 section 7.3 does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// The window is below the threshold.
    SlowStart,
    /// The window was cut, and nothing of what left after that is acknowledged yet.
    Recovery,
    /// Neither.
    CongestionAvoidance,
}

/// Where an end is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recovery {
    /// The number of its first packet, which tells the connection from others of the flow.
    pub connection: u32,
    /// How far the connection is.
    pub stage: Stage,
    /// congestion_window and bytes_in_flight, in bytes.
    pub window: u64,
    /// The second of them.
    pub in_flight: u64,
    /// Packets in flight.
    pub packets_in_flight: u32,
    /// ssthresh in bytes; `None` while there is none.
    pub threshold: Option<u64>,
    /// What the controller does; `None` of those that have no slow start by RFC 9002.
    pub state: Option<CongestionState>,
    /// The rate at which packets leave; `None` while nothing holds them back.
    pub pacing_rate: Option<Rate>,
    /// The round trip.
    pub rtt: Rtt,
    /// Probe timeouts in a row (pto_count).
    pub probe_count: u32,
}

/// A packet that was found lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostNumber {
    /// Its number.
    pub number: u32,
    /// By its number, not by the time that had passed (RFC 9002 section 6.1).
    pub by_number: bool,
}

impl Connection {
    fn recovery(&self) -> Recovery {
        let congestion = &self.congestion;
        let controller = congestion.controller();
        let datagram = f64::from(self.config.datagram);
        let (window, threshold) = (controller.window(), controller.threshold());
        let follows = !congestion.needs().deliveries;
        let state = match () {
            () if congestion.is_recovering() => CongestionState::Recovery,
            () if window < threshold => CongestionState::SlowStart,
            () => CongestionState::CongestionAvoidance,
        };
        let rate = congestion.pacing_rate() * 8.0;
        Recovery {
            connection: self.base,
            stage: self.stage(),
            window: congestion.window(),
            in_flight: congestion.in_flight(),
            packets_in_flight: self.out,
            threshold: threshold.is_finite().then_some((threshold * datagram) as u64),
            state: follows.then_some(state),
            pacing_rate: rate.is_finite().then_some(Rate(rate as u64)),
            rtt: self.rtt,
            probe_count: self.pto_count,
        }
    }

    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Idle => Stage::Idle,
            Phase::Opening => Stage::Opening,
            Phase::Established => Stage::Established,
            Phase::Closed => match self.violation.map(Violation::code) {
                Some(code) => Stage::Failed(code),
                None if self.is_finished() => Stage::Finished,
                None => Stage::Over,
            },
        }
    }

    /// Whether all that its application had has come, and it stopped.
    fn is_finished(&self) -> bool {
        !self.receives && self.stopped && self.out == 0 && self.outgoing.is_settled()
    }

    /// Packets with this number or a greater one that were found lost, and did not come since.
    fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        let lost = self.lost.iter().map(|lost| lost.number).filter(move |lost| *lost >= number);
        lost.map(|number| LostNumber { number, by_number: self.is_overtaken(number) })
    }
}

impl QuicSender {
    /// Where the end that sends is.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.connection.recovery()
    }

    /// What it lost, from this number on. Asked after each event with one past the last number that was told, it tells of all.
    pub fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        self.connection.lost_from(number)
    }
}

impl QuicReceiver {
    /// Where the end that receives is: as [`QuicSender::recovery`].
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.connection.recovery()
    }

    /// What it lost: as [`QuicSender::lost_from`].
    pub fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        self.connection.lost_from(number)
    }
}
