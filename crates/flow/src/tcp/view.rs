//! A read-only snapshot of a connection between two events, computed from its state on request.

use super::connection::ENDLESS;
use super::loss_recovery::LossRecovery;
use super::sender::TcpSender;
use paceline_units::Time;

/// A connection at an instant; counters run from the flow's first start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpView {
    /// The SYN has been acknowledged; without a handshake: the sender has started.
    pub established: bool,
    /// Payload bytes that the receiver has reported: those below `una`, plus SACKed segments, each counted as a full
    /// one. The value decreases where a sender forgets reports at a timeout.
    pub delivered: u64,
    /// Segments outstanding, minus SACKed ones; where losses are found by time (RACK), minus those marked lost too.
    pub in_flight: u32,
    /// Marked segments that the receiver has reported on this connection, if it counts them (accurate ECN, DCTCP).
    pub marked: u32,
    /// Everything that the application has written has been sent.
    pub sent_all: bool,
}

impl TcpSender {
    /// The current state of the connection.
    #[must_use]
    pub fn view(&self) -> TcpView {
        let conn = &self.conn;
        let reported = self.repair.reported_below(conn, conn.max);
        let in_flight = match &self.repair {
            LossRecovery::Linux(_) => conn.sent.in_flight(),
            _ => (conn.max - conn.una).saturating_sub(reported),
        };
        TcpView {
            established: conn.first_sent != Time::NEVER && (!conn.config.handshake || conn.una > conn.base),
            delivered: conn.stats.bytes_acked + u64::from(reported) * u64::from(conn.segment),
            in_flight,
            marked: conn.marks,
            sent_all: conn.limit != ENDLESS && conn.max >= conn.limit,
        }
    }
}
