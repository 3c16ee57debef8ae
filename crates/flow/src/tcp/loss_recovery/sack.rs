//! Recovery with selective acknowledgements.
//!
//! Sources: RFC 2018 (blocks), RFC 6675 (Update, IsLost, SetPipe, NextSeg, rescue retransmission), RFC 9937 (the
//! reduction, where `prr` is set). `sack1` has ns-2's differences.

use super::prr::Prr;
use super::sack_scoreboard::Reported;
use crate::Transmit;
use crate::tcp::connection::{Action, Connection, DUPLICATES, Phase};
use paceline_control::{Profile, TcpEvent, WindowController};
use paceline_packet::{Packet, TcpOptions};
use paceline_units::Time;

/// The state before an acknowledgement: `una`, the number of SACKed segments, and the segment below which holes are
/// lost.
#[derive(Clone, Copy, Debug)]
struct Before {
    una: u32,
    reported: u32,
    lost: u32,
}

/// The scoreboard and the state of retransmission.
#[derive(Debug)]
pub(in crate::tcp) struct Sack {
    pub(super) reported: Reported,
    /// One past the highest segment retransmitted in this recovery (HighRxt).
    pub(super) high_rxt: u32,
    /// ns-2's estimate of the segments in flight.
    pub(super) pipe: i64,
    /// A rescue retransmission requires that everything below this is acknowledged (RFC 6675's RescueRxt; NextSeg rule
    /// 4).
    rescue: u32,
    /// After a timeout, duplicate ACKs are ignored until new data is acknowledged (ns-2's `timeout_`).
    pub(super) mute: bool,
    /// Profile `rfc` with `prr`: the reduction under way.
    prr: Option<Prr>,
}

impl Sack {
    pub(super) fn new(base: u32) -> Sack {
        Sack { reported: Reported::new(base), high_rxt: base, pipe: 0, rescue: base, mute: false, prr: None }
    }

    /// Whether an acknowledgement needs no scoreboard processing.
    pub(super) fn is_clear(&self) -> bool {
        self.reported.is_empty() && !self.mute
    }

    /// Handles a retransmission timeout. ns-2 then drops the blocks. RFC 6675 section 5.1 and erratum 1610 to RFC 2018
    /// let a sender keep them if it notices when the receiver has discarded reported data ([`Reported::update`]).
    pub(super) fn timed_out(&mut self, conn: &Connection) {
        if conn.profile == Profile::Ns2 {
            self.reported.clear();
            self.mute = true;
        }
        self.high_rxt = conn.una;
        self.prr = None;
    }

    /// The window for plots: during a reduction, its current value.
    pub(super) fn shown_window(&self, conn: &Connection) -> f64 {
        self.prr.as_ref().map_or_else(|| conn.controller.window(), |prr| f64::from(prr.window))
    }

    /// ns-2's `GetNextRetran`: the next hole below the highest block.
    fn next_hole(&mut self, una: u32) -> Option<u32> {
        self.high_rxt = self.high_rxt.max(una);
        let seq = self.reported.hole(self.high_rxt);
        (seq < self.reported.highest()?).then(|| {
            self.high_rxt = seq;
            seq
        })
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
        let recovering = conn.phase == Phase::Recovery;
        let before = Before { una: conn.una, reported: self.reported.total(), lost: self.reported.lost_below() };
        if packet.seq > conn.una {
            if recovering {
                conn.take(now, packet);
            } else {
                let rtt = packet.stamp.elapsed(now);
                conn.new_ack(now, packet, Some(rtt));
            }
        }
        let (una, max) = (conn.una, conn.max);
        let news = self.reported.update(una, max, options);
        if recovering {
            if una < conn.recover {
                self.reduce(conn, before);
                return self.pump(conn, now, out);
            }
            self.prr = None;
            conn.phase = Phase::Open;
            conn.dupacks = 0;
            conn.action = Action::Exited;
            conn.notify(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        // a duplicate ACK is one that reports something new, even if it advances `una` (section 2)
        if news {
            conn.dupacks = conn.dupacks.saturating_add(1);
            let lost = self.reported.lost_below() > una;
            // after a timeout, only when everything sent before it has been acknowledged (section 5.1)
            if (conn.dupacks >= DUPLICATES || lost) && una >= conn.recover {
                return self.enter(conn, before, now, out);
            }
        }
        self.pump_holes(conn, now, out);
    }

    /// Enters recovery: section 5 step (4).
    fn enter(&mut self, conn: &mut Connection, before: Before, now: Time, out: &mut impl Transmit) {
        if conn.reduces() {
            conn.notify(TcpEvent::Lost { duplicates: 0, again: false }, now);
        }
        conn.recover = conn.max;
        conn.limited = 0;
        conn.action = Action::Duplicates;
        conn.phase = Phase::Recovery;
        conn.stats.fast_retransmits += 1;
        conn.timing = false;
        conn.set_timer(now);
        let una = conn.una;
        self.high_rxt = una;
        if conn.config.prr {
            // RecoverFS: segments already SACKed will not be delivered in this recovery (RFC 9937 section 6)
            let in_flight = (conn.max - before.una).saturating_sub(before.reported);
            self.prr = Some(Prr::new(in_flight, conn.controller.window() as u32));
            self.reduce(conn, before);
        }
        self.high_rxt = una + 1;
        self.rescue = una + 1;
        conn.emit(now, una, out);
        if let Some(prr) = &mut self.prr {
            prr.out += 1;
        }
        self.pump(conn, now, out);
    }

    /// RFC 9937 section 6, for the acknowledgement that begins a recovery and each one in it.
    fn reduce(&mut self, conn: &Connection, before: Before) {
        let Some(prr) = &mut self.prr else { return };
        let lost = self.reported.lost_below();
        let delivered = (conn.una + self.reported.total()).saturating_sub(before.una + before.reported);
        let from = before.lost.max(conn.una);
        let further = lost > from && self.reported.covered(from, lost) < lost - from;
        let pipe = self.reported.in_flight(conn.una, conn.max, self.high_rxt);
        prr.on_ack(pipe, delivered, conn.una > before.una && !further);
    }

    /// Sends what the window allows outside recovery, in order, skipping SACKed segments, which have left the network.
    /// This does limited transmit (section 5 step (3)), and fills the holes after a timeout (section 5.1).
    pub(super) fn pump_holes(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        if self.reported.is_empty() {
            return conn.pump(now, u32::MAX, out);
        }
        let window = conn.window();
        let edge = conn.una.saturating_add(conn.receive_window).min(conn.limit);
        let (una, next) = (conn.una, conn.nxt);
        let reported = self.reported.covered(una, next);
        let mut pipe = next - una - reported;
        while pipe < window {
            let next = conn.nxt;
            let seq = self.reported.hole(next);
            // limited transmit adds new data in place of SACKed segments
            let more = seq >= conn.max && seq - conn.una >= window;
            if seq >= edge || more && !conn.config.limited_transmit || !conn.admits(now, out) {
                break;
            }
            conn.nxt = seq + 1;
            conn.limited += u32::from(more);
            conn.emit(now, seq, out);
            pipe += 1;
        }
    }

    /// Sends while the window exceeds the pipe: holes first, then new data (RFC 6675 section 5 step (C)).
    pub(super) fn pump(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        let window = self.prr.as_ref().map_or(conn.controller.window() as u32, |prr| prr.window);
        let ns2 = conn.profile == Profile::Ns2;
        // the pipe is counted once, then incremented with each segment sent
        let (una, max) = (conn.una, conn.max);
        let mut pipe = if ns2 { self.pipe } else { i64::from(self.reported.in_flight(una, max, self.high_rxt)) };
        while pipe < i64::from(window) {
            if !conn.admits(now, out) {
                break;
            }
            let Some(seq) = self.next_segment(conn) else { break };
            conn.nxt = conn.nxt.max(seq.saturating_add(1));
            conn.emit(now, seq, out);
            pipe += 1;
            if let Some(prr) = &mut self.prr {
                prr.out += 1;
            }
        }
        self.pipe = pipe;
    }

    /// RFC 6675 NextSeg; ns-2 uses the same order without rules 3 and 4.
    fn next_segment(&mut self, conn: &Connection) -> Option<u32> {
        let ns2 = conn.profile == Profile::Ns2;
        let (una, max, recover) = (conn.una, conn.max, conn.recover);
        let edge = una.saturating_add(conn.receive_window);
        let next = conn.nxt;
        let fresh = next < conn.limit && next < edge;
        let hole = self.next_hole(una);
        // rule 1; ns-2 does not check IsLost
        if let Some(seq) = hole.filter(|&seq| ns2 || seq < self.reported.lost_below()) {
            self.high_rxt = seq + 1;
            return (seq < edge).then_some(seq);
        }
        if fresh {
            return Some(next); // rule 2
        }
        if ns2 {
            return None;
        }
        if let Some(seq) = hole {
            self.high_rxt = seq + 1;
            return Some(seq); // rule 3
        }
        // rule 4: the highest outstanding segment, once, so that its loss does not cause a timeout
        if una > self.rescue {
            self.rescue = recover;
            return (una..max).rev().find(|&s| self.reported.hole(s) == s);
        }
        None
    }
}
