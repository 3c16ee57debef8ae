//! What somebody outside sees of a connection between two events. Nothing is kept for it: looking changes nothing, and not looking
//! costs nothing.

use super::connection::ENDLESS;
use super::repair::Repair;
use super::sender::TcpSender;
use paceline_units::Time;

/// A connection at an instant; counts are from the flow's first start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpView {
    /// The SYN has been answered; without a handshake: it has started.
    pub established: bool,
    /// Payload bytes that the receiver has told of: below the left edge, and beyond it segments that it has reported (SACK), each as a
    /// full one. Less than before where a sender forgets reports at a timeout.
    pub delivered: u64,
    /// Segments out, less those that were reported; where losses are found by time, less those found lost too.
    pub in_flight: u32,
    /// Marked segments that the receiver has told of since the connection began, where it counts them (accurate ECN, DCTCP's).
    pub marked: u32,
    /// All that the application has written has been sent.
    pub sent_all: bool,
}

impl TcpSender {
    /// How the connection stands.
    #[must_use]
    pub fn view(&self) -> TcpView {
        let conn = &self.conn;
        let reported = self.repair.reported_below(conn, conn.max);
        let in_flight = match &self.repair {
            Repair::Linux(_) => conn.sent.in_flight(),
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
