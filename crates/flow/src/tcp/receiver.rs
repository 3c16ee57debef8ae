//! The receiving end: reordering, acknowledgements, selective acknowledgements.
//!
//! Sources: RFC 5681 section 4.2 and RFC 1122 section 4.2.3.2 (delayed acknowledgements), RFC 2018 (SACK blocks), RFC
//! 3168 section 6.1.3 (ECN-Echo), RFC 7323 section 4.3 (which timestamp to echo); under `linux` also RFC 2883 (DSACK)
//! and the kernel's quick acknowledgements.

use super::{TcpConfig, handshake};
use crate::{Arrived, ReceiverStats, Segment, Transmit};
use paceline_control::{Ecn, Profile};
use paceline_packet::{ACE_OFFSET, Block, Extra, Flags, Packet, Stamp, TcpOptions};
use paceline_units::Time;

/// The receiving end of a connection.
#[derive(Debug)]
#[repr(C)]
pub struct TcpReceiver {
    /// Next segment expected.
    next: u32,
    /// Everything below has been acknowledged.
    acked: u32,
    /// The timestamp to echo.
    echo: Stamp,
    /// Payload of a full segment; header bytes; bytes of an acknowledgement.
    segment: u16,
    header: u16,
    ack_size: u16,
    /// An acknowledgement is being delayed.
    waiting: bool,
    /// ECN-Echo is on: a mark arrived and no CWR since. DCTCP and accurate ECN: the last segment was marked.
    marked: bool,
    delays: bool,
    bare_syn: bool,
    sack: bool,
    ns2_linux: bool,
    /// Segments beyond `next`: sorted, disjoint, not adjacent blocks.
    // The first field with a niche for the tag of `Receiver`, which puts the tag here.
    beyond: Vec<Block>,
    stats: ReceiverStats,
    // ---- rarely used from here on
    /// When a delayed acknowledgement is due.
    due: Time,
    /// Blocks in the order in which they last grew (RFC 2018 section 4).
    recent: Vec<Block>,
    /// Segments beyond `next` that are not full.
    shorts: Vec<(u32, u16)>,
    config: Box<TcpConfig>,
    /// Marked segments of this connection (RFC 9768's r.cep, from 0).
    marks: u32,
    /// The negotiated ECN mode, and the flags that answer the SYN.
    ecn: Ecn,
    answer: Flags,
    /// The connection's first segment; lower numbers belong to an earlier connection.
    base: u32,
    /// Profile `linux`: `quick_acks` is the number of segments still acknowledged at once; `last`, when the last data
    /// arrived. `dsack`: duplicates are reported.
    linux: bool,
    dsack: bool,
    quick_acks: u8,
    last: Time,
}

// The fields that an in-order segment touches fit into two cache lines, together with 16 bytes of the structure around
// them.
const _: () = assert!(core::mem::offset_of!(TcpReceiver, due) <= 112);

/// `TCP_MAX_QUICKACKS`: a sender in slow start needs every acknowledgement.
const MAX_QUICK_ACKS: u8 = 16;

impl TcpReceiver {
    /// Creates a receiver that waits for a connection.
    #[must_use]
    pub fn new(config: &TcpConfig) -> TcpReceiver {
        TcpReceiver {
            next: 0,
            acked: 0,
            echo: Stamp::default(),
            segment: config.segment,
            header: config.header,
            ack_size: config.ack_size,
            waiting: false,
            marked: false,
            delays: config.delayed_ack.is_some() || config.ecn.counts(),
            bare_syn: config.bare_syn(),
            sack: config.sack(),
            ns2_linux: config.profile == Profile::Ns2Linux,
            linux: config.profile == Profile::Linux,
            dsack: config.rack(),
            quick_acks: if config.profile == Profile::Linux { MAX_QUICK_ACKS } else { 0 },
            due: Time::NEVER,
            stats: ReceiverStats::default(),
            beyond: Vec::new(),
            config: Box::new(config.clone()),
            recent: Vec::new(),
            shorts: Vec::new(),
            base: 0,
            marks: 0,
            ecn: config.ecn,
            answer: Flags::NONE,
            last: Time::ZERO,
        }
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Payload bytes delivered in order, over all connections.
    #[inline]
    #[must_use]
    pub fn bytes_in_order(&self) -> u64 {
        self.stats.bytes
    }

    /// When to call [`TcpReceiver::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.due
    }

    /// Sends a delayed acknowledgement if one is due; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.due <= now {
            self.acknowledge(Flags::NONE, out);
        }
    }

    /// Processes a segment. A SYN numbered above everything else begins a new connection.
    pub fn on_data(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) -> Arrived {
        if let Some(ack) = self.on_data_in_order(now, packet) {
            out.transmit(ack);
            return Arrived { bytes: u64::from(packet.size.saturating_sub(self.header)), segments: 1 };
        }
        if self.grow_newest(now, packet) {
            self.acknowledge(Flags::NONE, out);
            return Arrived::default();
        }
        self.on_data_slow(now, packet, out)
    }

    /// Takes a full segment that follows the highest received one, beyond a hole and, with SACK, in the block that grew
    /// last. This is the common case while there is a hole. `false`: nothing was done.
    #[inline]
    fn grow_newest(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(highest) = self.beyond.last_mut() else { return false };
        let rare = Flags::SYN.0 | Flags::CE.0 | Flags::CWR.0;
        let plain = packet.flags.0 & rare == 0 && !self.marked && !self.linux;
        let full = packet.size.checked_sub(self.header) == Some(self.segment) && packet.seq < u32::MAX;
        if !(plain && full && packet.seq == highest.end) {
            return false;
        }
        if self.sack {
            let Some(newest) = self.recent.first_mut().filter(|newest| newest.start == highest.start) else {
                return false;
            };
            newest.end = packet.seq + 1;
        }
        highest.end += 1;
        self.stats.on_received(now, packet.size);
        true
    }

    /// Takes an in-order segment without special features if the receiver acknowledges it at once, and returns the
    /// acknowledgement. `None`: nothing was done, and the segment must go to [`TcpReceiver::on_data`].
    // Separate for the same reason as `TcpSender::on_ack_in_order`.
    #[inline(always)]
    pub fn on_data_in_order(&mut self, now: Time, packet: &Packet) -> Option<Segment> {
        let rare = Flags::SYN.0 | Flags::CE.0 | Flags::CWR.0;
        let plain = packet.flags.0 & rare == 0 && self.beyond.is_empty() && !self.delays;
        if !(plain && packet.seq == self.next) {
            return None;
        }
        self.stats.on_received(now, packet.size);
        self.stats.bytes += u64::from(packet.size.saturating_sub(self.header));
        self.stats.acks += 1;
        self.next += 1;
        self.acked = self.next;
        self.echo = packet.stamp;
        let flags = if self.marked { Flags::ACK.with(Flags::ECE) } else { Flags::ACK };
        Some(Segment { seq: self.next, stamp: self.echo, size: self.ack_size, flags, extra: None })
    }

    #[inline(never)]
    pub(super) fn on_data_slow(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) -> Arrived {
        self.stats.on_received(now, packet.size);
        let seq = packet.seq;
        if self.linux {
            self.look_for_pause(now);
        }
        let syn = packet.flags.has(Flags::SYN);
        if syn && seq > self.base {
            // only a connection's first segment is a SYN; segments that arrived before it will be retransmitted
            self.restart(seq);
        }
        if seq < self.base || seq == u32::MAX {
            return Arrived::default(); // of an earlier connection
        }
        if syn && seq == self.next && self.config.negotiates() {
            (self.ecn, self.answer) = handshake::answer(self.config.ecn, packet.flags);
        }
        // without a mark now or earlier, and without CWR, the ECN state stays
        let news = self.marked || packet.flags.0 & (Flags::CE.0 | Flags::CWR.0) != 0;
        let changed = news && self.note_mark(packet.flags, out);
        // the segment at or below the last acknowledgement: its timestamp is echoed (RFC 7323 section 4.3)
        if seq <= self.acked {
            let newer = (packet.stamp.0.wrapping_sub(self.echo.0) as i32) >= 0;
            if newer || (self.ns2_linux && seq == self.acked) {
                self.echo = packet.stamp;
            }
        }
        let gap = !self.beyond.is_empty();
        let duplicates = self.stats.duplicates;
        let arrived = self.insert(packet);
        let flags = if syn { Flags::SYN.with(self.answer) } else { Flags::NONE };
        // RFC 5681 section 4.2: an ACK may be delayed only for an in-order segment without a gap, and only for one
        let in_order = arrived.segments == 1 && !gap && self.beyond.is_empty();
        if let Some(delay) = self.config.delayed_ack.filter(|_| in_order && !self.waiting && !syn && !changed) {
            if self.quick_acks == 0 {
                self.waiting = true;
                self.due = now + delay;
                return arrived;
            }
            self.quick_acks -= 1;
        }
        if arrived == Arrived::default() && duplicates != self.stats.duplicates && self.dsack {
            self.acknowledge_twice(seq, flags, out);
            return arrived;
        }
        self.acknowledge_from(seq, flags, out);
        arrived
    }

    /// Updates the ECN state. Returns whether the segment must be acknowledged at once. DCTCP reports each change, and
    /// acknowledges waiting segments with the old state (RFC 8257 section 3.2). RFC 9768 reports a mark that follows an
    /// unmarked segment (section 3.2.2.5.1).
    #[inline(never)]
    fn note_mark(&mut self, flags: Flags, out: &mut impl Transmit) -> bool {
        let marked = flags.has(Flags::CE);
        self.stats.marks += u64::from(marked);
        match self.ecn {
            Ecn::Off | Ecn::Classic => self.marked = marked || (self.marked && !flags.has(Flags::CWR)),
            Ecn::Accurate => {
                self.marks = self.marks.wrapping_add(marked.into());
                return marked && !core::mem::replace(&mut self.marked, marked);
            }
            Ecn::Dctcp if marked != self.marked => {
                if self.waiting {
                    self.acknowledge(Flags::NONE, out);
                }
                self.marked = marked;
                return true;
            }
            Ecn::Dctcp => {}
        }
        false
    }

    /// `tcp_event_data_recv`: after a pause longer than a timeout the sender restarts with slow start.
    fn look_for_pause(&mut self, now: Time) {
        let pause = now.since(core::mem::replace(&mut self.last, now));
        if pause > self.config.min_rto {
            self.quick_acks = MAX_QUICK_ACKS;
        }
    }

    /// The number of the connection's first segment.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Starts a new connection without a SYN on this half, after the old one is complete. For its numbers see
    /// [`TcpSender::restart`].
    ///
    /// [`TcpSender::restart`]: super::TcpSender::restart
    pub(super) fn follow(&mut self) {
        self.restart(self.next + 1);
    }

    /// Subtracts bytes that are not the application's.
    pub(super) fn discount(&mut self, bytes: u64) {
        self.stats.bytes -= bytes;
    }

    /// Sends the delayed acknowledgement, if there is one.
    pub(super) fn acknowledge_waiting(&mut self, out: &mut impl Transmit) {
        if self.waiting {
            self.acknowledge(Flags::NONE, out);
        }
    }

    #[cold]
    fn restart(&mut self, base: u32) {
        self.base = base;
        self.next = base;
        self.acked = base;
        self.waiting = false;
        self.marked = false;
        self.marks = 0;
        self.due = Time::NEVER;
        self.beyond.clear();
        self.recent.clear();
        self.shorts.clear();
        self.quick_acks = if self.linux { MAX_QUICK_ACKS } else { 0 };
    }

    fn payload(&self, packet: &Packet) -> u16 {
        if packet.flags.has(Flags::SYN) && self.bare_syn { 0 } else { packet.size.saturating_sub(self.header) }
    }

    /// Inserts the segment, and returns what has become deliverable in order.
    fn insert(&mut self, packet: &Packet) -> Arrived {
        let seq = packet.seq;
        let payload = self.payload(packet);
        // most segments belong to the last block
        let last = self.beyond.len().checked_sub(1).filter(|&i| self.beyond[i].start <= seq);
        let at = last.or_else(|| self.beyond.partition_point(|b| b.start <= seq).checked_sub(1));
        if seq < self.next || at.is_some_and(|i| seq < self.beyond[i].end) {
            self.stats.duplicates += 1;
            return Arrived::default();
        }
        if seq == self.next {
            let bare = u32::from(packet.flags.has(Flags::SYN) && self.bare_syn);
            let mut arrived = Arrived { bytes: u64::from(payload), segments: 1 - bare };
            self.next += 1;
            if self.beyond.first().is_some_and(|b| b.start == self.next) {
                let block = self.beyond.remove(0);
                arrived.segments += block.end - block.start;
                arrived.bytes += u64::from(block.end - block.start) * u64::from(self.segment);
                let segment = u64::from(self.segment);
                self.shorts.retain(|&(seq, size)| {
                    if seq < block.end {
                        arrived.bytes = arrived.bytes + u64::from(size) - segment;
                    }
                    seq >= block.end
                });
                self.next = block.end;
            }
            self.recent.retain(|b| b.start > self.next);
            self.stats.bytes += arrived.bytes;
            return arrived;
        }
        if payload != self.segment {
            self.shorts.push((seq, payload));
        }
        let grows = at.is_some_and(|i| self.beyond[i].end == seq);
        let after = at.map_or(0, |i| i + 1);
        let joins = self.beyond.get(after).is_some_and(|b| b.start == seq + 1);
        let block = match (at, grows, joins) {
            (Some(i), true, true) => {
                self.beyond[i].end = self.beyond[after].end;
                self.beyond.remove(after);
                self.beyond[i]
            }
            (Some(i), true, false) => {
                self.beyond[i].end = seq + 1;
                self.beyond[i]
            }
            (_, _, true) => {
                self.beyond[after].start = seq;
                self.beyond[after]
            }
            _ => {
                let block = Block { start: seq, end: seq + 1 };
                self.beyond.insert(after, block);
                block
            }
        };
        if self.sack {
            self.recent.retain(|b| b.start < block.start || b.end > block.end);
            self.recent.insert(0, block);
            self.recent.truncate(4);
        }
        Arrived::default()
    }

    /// Acknowledges a segment outside the fast paths. The first block must contain the segment (RFC 2018 section 4), so
    /// a duplicate moves its block to the front.
    fn acknowledge_from(&mut self, seq: u32, flags: Flags, out: &mut impl Transmit) {
        if self.sack
            && self.recent.first().is_some_and(|b| !(b.start..b.end).contains(&seq))
            && let Some(i) = self.recent.iter().position(|b| (b.start..b.end).contains(&seq))
        {
            self.recent[..=i].rotate_right(1);
        }
        self.acknowledge(flags, out);
    }

    /// Reports a duplicate segment: the first block is the duplicate's (RFC 2883 section 4).
    #[cold]
    fn acknowledge_twice(&mut self, seq: u32, flags: Flags, out: &mut impl Transmit) {
        let mut acks: Vec<Segment> = Vec::new();
        self.acknowledge_from(seq, flags, &mut acks);
        for mut ack in acks {
            let mut options = *ack.extra.as_ref().and_then(Extra::tcp).unwrap_or(&TcpOptions::NONE);
            options.sack = [Block { start: seq, end: seq + 1 }, options.sack[0], options.sack[1]];
            ack.size = self.ack_size + Self::option(options.blocks().count());
            ack.extra = Some(Extra::Tcp(options));
            out.transmit(ack);
        }
    }

    /// Size in bytes of a SACK option (RFC 2018 section 3): 8 per block plus 2, padded to a multiple of 4.
    fn option(blocks: usize) -> u16 {
        8 * blocks as u16 + 4
    }

    #[inline(never)]
    fn acknowledge(&mut self, flags: Flags, out: &mut impl Transmit) {
        let mut flags = flags.with(Flags::ACK);
        if flags.has(Flags::SYN) && self.config.negotiates() {
            // the ECN answer is already in the flags
        } else if self.delays && self.ecn == Ecn::Accurate {
            flags = flags.with_ace(self.marks.wrapping_add(ACE_OFFSET));
        } else if self.marked {
            flags = flags.with(Flags::ECE);
        }
        self.waiting = false;
        self.due = Time::NEVER;
        self.acked = self.next;
        self.stats.acks += 1;
        let (extra, more) = if self.sack && !self.beyond.is_empty() { self.blocks() } else { (None, 0) };
        out.transmit(Segment { seq: self.next, stamp: self.echo, size: self.ack_size + more, flags, extra });
    }

    #[inline(never)]
    fn blocks(&self) -> (Option<Extra>, u16) {
        let mut options = TcpOptions::NONE;
        let mut n = 0;
        for block in self.recent.iter().filter(|b| b.end > self.next).take(3) {
            options.sack[n] = *block;
            n += 1;
        }
        if n == 0 {
            return (None, 0);
        }
        // ns-2 counts only the blocks' bytes
        let ns2 = matches!(self.config.profile, Profile::Ns2 | Profile::Ns2Linux);
        (Some(Extra::Tcp(options)), if ns2 { 8 * n as u16 } else { Self::option(n) })
    }
}
