//! The state of loss recovery and congestion control, for a log of the connection (draft-ietf-quic-qlog-quic-events,
//! recovery). It is computed on request after an event, and costs nothing otherwise.

use super::connection::{Connection, Phase};
use super::incoming::Violation;
use super::{QuicReceiver, QuicSender, Rtt};
use paceline_control::WindowController;
use paceline_units::Rate;

/// The stage of a connection, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// Not begun.
    #[default]
    Idle,
    /// The handshake is under way.
    Opening,
    /// The handshake is complete.
    Established,
    /// This end closed it, because its application had no more to send.
    Finished,
    /// This end closed it with this error code of RFC 9000 section 20.1.
    Failed(u32),
    /// It timed out, or the other end closed it; the last packet received shows which.
    Over,
}

/// The state of a window controller in the sense of RFC 9002 section 7.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// The window is below the threshold.
    SlowStart,
    /// The window was reduced, and no packet sent since has been acknowledged.
    Recovery,
    /// Neither.
    CongestionAvoidance,
}

/// The recovery state of an end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recovery {
    /// The number of its first packet, which identifies the connection within the flow.
    pub connection: u32,
    /// The stage of the connection.
    pub stage: Stage,
    /// congestion_window in bytes.
    pub window: u64,
    /// bytes_in_flight.
    pub in_flight: u64,
    /// Packets in flight.
    pub packets_in_flight: u32,
    /// ssthresh in bytes; `None` before it is set.
    pub threshold: Option<u64>,
    /// The controller's state; `None` for controllers without RFC 9002's slow start.
    pub state: Option<CongestionState>,
    /// The pacing rate; `None` if sending is not paced.
    pub pacing_rate: Option<Rate>,
    /// The round-trip time estimate.
    pub rtt: Rtt,
    /// The number of consecutive probe timeouts (pto_count).
    pub probe_count: u32,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostNumber {
    /// Its number.
    pub number: u32,
    /// It was declared lost by packet number, not by time (RFC 9002 section 6.1).
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
            connection: self.space.base,
            stage: self.stage(),
            window: congestion.window(),
            in_flight: congestion.in_flight(),
            packets_in_flight: self.loss.ack_eliciting_in_flight,
            threshold: threshold.is_finite().then_some((threshold * datagram) as u64),
            state: follows.then_some(state),
            pacing_rate: rate.is_finite().then_some(Rate(rate as u64)),
            rtt: self.loss.rtt,
            probe_count: self.loss.pto_count,
        }
    }

    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Idle => Stage::Idle,
            Phase::Opening => Stage::Opening,
            Phase::Established => Stage::Established,
            Phase::Closed => match self.closing.violation.map(Violation::code) {
                Some(code) => Stage::Failed(code),
                None if self.is_finished() => Stage::Finished,
                None => Stage::Over,
            },
        }
    }

    /// Whether it closed after its application had stopped and all data was acknowledged.
    fn is_finished(&self) -> bool {
        !self.receives && self.stopped && self.loss.ack_eliciting_in_flight == 0 && self.outgoing.is_settled()
    }

    /// Packets with this number or a higher one that were declared lost and have not been acknowledged since.
    fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        let lost = self.loss.lost.iter().map(|lost| lost.number).filter(move |lost| *lost >= number);
        lost.map(|number| LostNumber { number, by_number: self.loss.is_overtaken(number) })
    }
}

impl QuicSender {
    /// The recovery state of the sending end.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.connection.recovery()
    }

    /// Packets declared lost from this number on. Called after each event with one past the last number returned, it
    /// returns all.
    pub fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        self.connection.lost_from(number)
    }
}

impl QuicReceiver {
    /// The recovery state of the receiving end; see [`QuicSender::recovery`].
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.connection.recovery()
    }

    /// Packets declared lost; see [`QuicSender::lost_from`].
    pub fn lost_from(&self, number: u32) -> impl Iterator<Item = LostNumber> + '_ {
        self.connection.lost_from(number)
    }
}
