//! How losses are found and repaired: the five ways, each with its own state, and which events go to them.

mod classic;
mod forward;
mod linux;
mod ns2_linux;
mod reported;
mod sack;
mod sack1;
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

/// A way of repairing losses. `Linux` and `Ns2Linux` are profiles with one way each; in the others it is the setting `recovery`.
// A tag of one byte: the tag of `Sender` is to lie in the statistics' histogram, not here.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum Repair {
    /// Tahoe, Reno, NewReno: duplicates alone.
    Classic,
    /// Selective acknowledgements: RFC 6675, or ns-2's Sack1.
    Sack(Box<Sack>),
    /// Vegas' fine-grained timeouts.
    Vegas(Box<FineTimer>),
    /// ns-2's TCP-Linux.
    Ns2Linux(Box<Ns2Linux>),
    /// A current kernel.
    Linux(Box<Linux>),
}

impl Repair {
    /// That of a connection that begins.
    pub(super) fn new(conn: &mut Connection) -> Repair {
        match (conn.profile, conn.config.recovery) {
            (Profile::Linux, _) => Repair::Linux(Box::new(Linux::new(conn))),
            (Profile::Ns2Linux, _) => Repair::Ns2Linux(Box::default()),
            (_, Recovery::Vegas) => Repair::Vegas(Box::default()),
            (_, Recovery::Sack) => Repair::Sack(Box::new(Sack::new(conn.base))),
            (_, Recovery::Tahoe | Recovery::Reno | Recovery::NewReno) => Repair::Classic,
        }
    }

    /// An acknowledgement for which there is no fast path.
    pub(super) fn on_ack(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        match self {
            Repair::Classic => conn.on_ack_classic(now, packet, out),
            Repair::Sack(sack) if conn.profile == Profile::Ns2 => sack.on_ack_sack1(conn, now, packet, options, out),
            Repair::Sack(sack) => sack.on_ack(conn, now, packet, options, out),
            Repair::Vegas(vegas) => vegas.on_ack(conn, now, packet, out),
            Repair::Ns2Linux(linux) => linux.on_ack(conn, now, packet, options, out),
            Repair::Linux(linux) => linux.on_ack(conn, now, packet, options, out),
        }
    }

    /// Sends what the window and the state of the repair allow.
    pub(super) fn pump(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        match self {
            Repair::Sack(sack) if conn.phase == Phase::Recovery => sack.pump(conn, now, out),
            Repair::Sack(sack) if conn.profile == Profile::Rfc => sack.pump_holes(conn, now, out),
            Repair::Classic | Repair::Sack(_) | Repair::Vegas(_) => conn.pump(now, u32::MAX, out),
            Repair::Ns2Linux(linux) => linux.pump(conn, now, out),
            Repair::Linux(linux) => linux.pump(conn, now, out),
        }
    }

    /// The retransmission timer has expired.
    #[cold]
    pub(super) fn expired(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        match self {
            Repair::Ns2Linux(linux) => return linux.expired(conn, now, out),
            Repair::Linux(linux) => return linux.expired(conn, now, out),
            Repair::Classic | Repair::Sack(_) | Repair::Vegas(_) => {}
        }
        if !conn.expired(now) {
            return;
        }
        match self {
            Repair::Sack(sack) => sack.timed_out(conn),
            Repair::Vegas(vegas) => vegas.window_changed(now),
            _ => {}
        }
        self.pump(conn, now, out);
    }

    /// A mark has reduced the window.
    pub(super) fn marked(&mut self, conn: &Connection, now: Time) {
        if let Repair::Vegas(vegas) = self
            && conn.profile == Profile::Rfc
        {
            vegas.window_changed(now);
        }
    }

    /// The application writes after nothing was outstanding.
    pub(super) fn resumed(&mut self, conn: &mut Connection, now: Time) {
        if let Repair::Linux(linux) = self {
            linux.restart_window(conn, now);
        }
    }

    /// What a plot shows as the window: while it is being reduced, what it has come down to.
    pub(super) fn shown_window(&self, conn: &Connection) -> f64 {
        match self {
            Repair::Ns2Linux(linux) => linux.shown_window(conn),
            Repair::Linux(linux) => linux.shown_window(conn),
            Repair::Classic | Repair::Sack(_) | Repair::Vegas(_) => conn.controller.window(),
        }
    }

    /// The fast path of the next acknowledgement in order, if nothing but the window's growth is left to do then.
    pub(super) fn fast_path(&self, conn: &Connection) -> FastPath {
        let clear = match self {
            Repair::Classic => true,
            Repair::Sack(sack) => sack.is_clear(),
            Repair::Vegas(vegas) => vegas.is_calm() && conn.dupacks == 0 && conn.una > conn.base + 1,
            Repair::Ns2Linux(_) | Repair::Linux(_) => false,
        };
        let standing = conn.receive_window == conn.config.receive_window.max(1);
        let quiet = conn.phase == Phase::Open && conn.limited == 0 && conn.una > conn.base && conn.shorts.is_empty();
        if !(clear && standing && quiet) {
            return FastPath::No;
        }
        let regular = !conn.irregular && !conn.delays_sends && !conn.keeps_sent && conn.resumes == Time::NEVER;
        match &conn.controller {
            TcpController::Reno(_) if regular => FastPath::Reno,
            _ => FastPath::Any,
        }
    }
}
