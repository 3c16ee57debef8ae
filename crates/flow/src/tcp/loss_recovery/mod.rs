//! Loss detection and recovery: five algorithms, each with its own state, and the dispatch of events to them.

mod classic;
mod fack;
mod linux;
mod ns2_linux;
mod prr;
mod sack;
mod sack1;
mod sack_scoreboard;
mod vegas;

use super::connection::{Connection, FastPath, Phase};
use crate::Transmit;
use linux::Linux;
use ns2_linux::Ns2Linux;
use paceline_control::{Profile, Recovery, TcpController, WindowController};
use paceline_packet::{Packet, TcpOptions};
use paceline_units::Time;
use sack::Sack;
use vegas::FineTimer;

/// A loss recovery algorithm. `Linux` and `Ns2Linux` belong to profiles; otherwise the setting `recovery` chooses.
// A one-byte tag: the tag of `Sender` must be in the statistics' histogram, not here.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum LossRecovery {
    /// Tahoe, Reno, NewReno: duplicate ACKs only.
    Classic,
    /// Selective acknowledgements: RFC 6675, or ns-2's Sack1.
    Sack(Box<Sack>),
    /// Vegas' fine-grained timeouts.
    Vegas(Box<FineTimer>),
    /// ns-2's TCP-Linux.
    Ns2Linux(Box<Ns2Linux>),
    /// RACK-TLP with proportional rate reduction, as in a current kernel: for profile `linux`, and for `recovery =
    /// "rack"`.
    Linux(Box<Linux>),
}

impl LossRecovery {
    /// Creates the recovery state of a new connection.
    pub(super) fn new(conn: &mut Connection) -> LossRecovery {
        match (conn.profile, conn.config.recovery) {
            (Profile::Linux, _) | (_, Recovery::Rack) => LossRecovery::Linux(Box::new(Linux::new(conn))),
            (Profile::Ns2Linux, _) => LossRecovery::Ns2Linux(Box::default()),
            (_, Recovery::Vegas) => LossRecovery::Vegas(Box::default()),
            (_, Recovery::Sack) => LossRecovery::Sack(Box::new(Sack::new(conn.base))),
            (_, Recovery::Tahoe | Recovery::Reno | Recovery::NewReno) => LossRecovery::Classic,
        }
    }

    /// Processes an acknowledgement that took no fast path.
    pub(super) fn on_ack(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        match self {
            LossRecovery::Classic => conn.on_ack_classic(now, packet, out),
            LossRecovery::Sack(sack) if conn.profile == Profile::Ns2 => {
                sack.on_ack_sack1(conn, now, packet, options, out)
            }
            LossRecovery::Sack(sack) => sack.on_ack(conn, now, packet, options, out),
            LossRecovery::Vegas(vegas) => vegas.on_ack(conn, now, packet, out),
            LossRecovery::Ns2Linux(linux) => linux.on_ack(conn, now, packet, options, out),
            LossRecovery::Linux(linux) => linux.on_ack(conn, now, packet, options, out),
        }
    }

    /// Number of SACKed segments between `una` and `seq`.
    pub(super) fn reported_below(&self, conn: &Connection, seq: u32) -> u32 {
        match self {
            LossRecovery::Linux(_) => conn.sent.sacked_below(seq),
            LossRecovery::Sack(sack) => sack.reported.covered(conn.una, seq),
            LossRecovery::Classic | LossRecovery::Vegas(_) | LossRecovery::Ns2Linux(_) => 0,
        }
    }

    /// Sends what the window and the recovery state allow.
    pub(super) fn pump(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        match self {
            LossRecovery::Sack(sack) if conn.phase == Phase::Recovery => sack.pump(conn, now, out),
            LossRecovery::Sack(sack) if conn.profile == Profile::Rfc => sack.pump_holes(conn, now, out),
            LossRecovery::Classic | LossRecovery::Sack(_) | LossRecovery::Vegas(_) => conn.pump(now, u32::MAX, out),
            LossRecovery::Ns2Linux(linux) => linux.pump(conn, now, out),
            LossRecovery::Linux(linux) => _ = linux.pump(conn, now, out),
        }
    }

    /// Handles an expired retransmission timer.
    #[cold]
    pub(super) fn expired(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        match self {
            LossRecovery::Ns2Linux(linux) => return linux.expired(conn, now, out),
            LossRecovery::Linux(linux) => return linux.expired(conn, now, out),
            LossRecovery::Classic | LossRecovery::Sack(_) | LossRecovery::Vegas(_) => {}
        }
        if !conn.expired(now) {
            return;
        }
        match self {
            LossRecovery::Sack(sack) => sack.timed_out(conn),
            LossRecovery::Vegas(vegas) => vegas.window_changed(now),
            _ => {}
        }
        self.pump(conn, now, out);
    }

    /// A mark has reduced the window.
    pub(super) fn marked(&mut self, conn: &Connection, now: Time) {
        if let LossRecovery::Vegas(vegas) = self
            && conn.profile == Profile::Rfc
        {
            vegas.window_changed(now);
        }
    }

    /// The application writes after a time with nothing outstanding.
    pub(super) fn resumed(&mut self, conn: &mut Connection, now: Time) {
        if let LossRecovery::Linux(linux) = self {
            linux.restart_window(conn, now);
        }
    }

    /// The window for plots: during a reduction, its current value.
    pub(super) fn shown_window(&self, conn: &Connection) -> f64 {
        match self {
            LossRecovery::Ns2Linux(linux) => linux.shown_window(conn),
            LossRecovery::Linux(linux) => linux.shown_window(conn),
            LossRecovery::Sack(sack) => sack.shown_window(conn),
            LossRecovery::Classic | LossRecovery::Vegas(_) => conn.controller.window(),
        }
    }

    /// The fast path of the next in-order acknowledgement; there is one if it only has to grow the window.
    #[inline]
    pub(super) fn fast_path(&self, conn: &Connection) -> FastPath {
        let clear = match self {
            LossRecovery::Classic => true,
            LossRecovery::Sack(sack) => sack.is_clear(),
            LossRecovery::Vegas(vegas) => vegas.is_calm() && conn.dupacks == 0 && conn.una > conn.base + 1,
            LossRecovery::Ns2Linux(_) => return FastPath::No,
            LossRecovery::Linux(linux) if !conn.irregular && linux.is_calm(conn) => return FastPath::Rack,
            LossRecovery::Linux(_) => return FastPath::No,
        };
        let standing = conn.receive_window == conn.config.receive_window.max(1);
        let quiet = conn.phase == Phase::Open && conn.limited == 0 && conn.una > conn.base && conn.shorts.is_empty();
        if !(clear && standing && quiet) || (conn.irregular && conn.ecn.counts()) {
            return FastPath::No;
        }
        let regular = !conn.irregular && !conn.delays_sends && !conn.keeps_sent && conn.resumes == Time::NEVER;
        match &conn.controller {
            TcpController::Reno(_) if regular => FastPath::Reno,
            _ => FastPath::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use crate::tcp::{TcpConfig, TcpSender};
    use paceline_control::registry;
    use paceline_packet::{ExtraId, Flags, FlowId, Stamp};
    use paceline_random::Stream;
    use paceline_units::Span;

    /// A host from which segments leave a little later.
    #[derive(Default)]
    struct Host(Vec<Segment>);

    const LATER: Span = Span::from_millis(5);

    impl Transmit for Host {
        fn transmit(&mut self, segment: Segment) {
            self.0.push(segment);
        }
        fn left(&self, now: Time) -> Time {
            now + LATER
        }
    }

    /// A sender of one write whose SYN was acknowledged after 100 ms.
    fn established(scheme: &str, profile: Profile, bytes: u64, host: &mut Host) -> TcpSender {
        let scheme = registry::scheme(scheme).unwrap_or_else(|e| panic!("{e}"));
        let controller = TcpController::new(scheme, profile, &[]).unwrap_or_else(|e| panic!("{e}"));
        let mut sender = TcpSender::new(&TcpConfig::new(profile, scheme), controller, Stream::new(1, "sender"));
        sender.start(Time::ZERO, host);
        sender.supply(bytes, Time::ZERO, host);
        let now = Time::ZERO + Span::from_millis(100);
        let (flow, stamp, flags) = (FlowId(0), Stamp::at(Time::ZERO), Flags::ACK.with(Flags::SYN));
        let ack = Packet { time: now, flow, seq: 1, stamp, cursor: 0, extra: ExtraId::NONE, size: 40, flags };
        sender.on_ack(now, &ack, None, host);
        sender
    }

    /// A retransmission is timed when it leaves the host, because undo compares timestamps with that time.
    #[test]
    fn linux_a_retransmission_is_stamped_as_it_leaves() {
        let mut host = Host::default();
        let mut sender = established("cubic", Profile::Linux, 1448, &mut host);
        let now = sender.next_wake();
        sender.on_timer(now, &mut host); // a tail loss probe
        assert!(host.0.last().is_some_and(|s| s.flags.has(Flags::RETRANSMISSION)));
        let LossRecovery::Linux(linux) = &sender.repair else { panic!("{:?}", sender.repair) };
        assert_eq!(linux.retransmitted_at(), Some(now + LATER));
    }

    /// Brakmo and Peterson section 3.1: a loss of a segment sent before the last reduction does not reduce the window
    /// again; a timeout is such a reduction.
    #[test]
    fn vegas_a_timeout_counts_as_a_cut() {
        let mut host = Host::default();
        let mut sender = established("vegas", Profile::Rfc, 100_000, &mut host);
        let now = sender.next_wake();
        sender.on_timer(now, &mut host);
        assert_eq!(sender.stats().timeouts, 1);
        let LossRecovery::Vegas(vegas) = &sender.repair else { panic!("{:?}", sender.repair) };
        assert_eq!(vegas.cut_at(), Some(now));
    }
}
