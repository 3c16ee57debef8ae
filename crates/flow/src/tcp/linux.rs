//! The machine of ns-2's TCP-Linux: SACK with forward acknowledgement, rate halving, a time stamp in every segment.
//!
//! Source: the behaviour of `tcp-linux.cc` and `scoreboard1.cc` of ns-2.35 (Wei and Cao, "NS-2 TCP-Linux", WNS2
//! 2006), which follow Linux 2.6.22.

use super::sender::{Action, DUPLICATES, Phase, TcpSender};
use crate::Transmit;
use paceline_control::{Controller, TcpEvent, Threshold, WindowController};
use paceline_packet::{Block, Flags, Packet, TcpOptions};
use paceline_units::Time;
use std::collections::VecDeque;

/// `tcp_max_burst`: how far the window may exceed what is in flight when recovery ends.
const MAX_BURST: u32 = 3;

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    InFlight,
    Sacked,
    Lost,
    /// Sent again as number `id` of this recovery, when the next new segment was `next`.
    Again {
        next: u32,
        id: i64,
    },
}

/// The scoreboard, and the rate halving.
#[derive(Debug)]
pub(super) struct Linux {
    /// Marks of the segments from `first` on.
    marks: VecDeque<Mark>,
    first: u32,
    /// Highest segment reported, if any is.
    forward: Option<u32>,
    sacked: u32,
    lost: u32,
    /// Number of the next retransmission; of the newest that was acknowledged.
    again: i64,
    again_acked: i64,
    /// Below it no segment waits for its retransmission.
    cursor: u32,
    /// While the rate is being halved: how many segments may be in flight (`next_pkts_in_flight_`).
    halving: u32,
    /// The window as ns-2 shows it: while the rate is being halved, what it has come down to.
    shown: u32,
}

impl Default for Linux {
    fn default() -> Linux {
        Linux {
            marks: VecDeque::new(),
            first: 0,
            forward: None,
            sacked: 0,
            lost: 0,
            again: 0,
            again_acked: -1,
            cursor: 0,
            halving: 0,
            shown: 0,
        }
    }
}

/// What an acknowledgement told.
#[derive(Clone, Copy, Default, Debug)]
struct News {
    sacked: bool,
    lost: bool,
    /// It may answer a retransmission: its round trip is ambiguous.
    ambiguous: bool,
}

impl Linux {
    fn clear(&mut self) {
        *self = Linux { halving: self.halving, shown: self.shown, ..Linux::default() };
    }

    fn in_flight(&self, una: u32, nxt: u32) -> u32 {
        (nxt - una).saturating_sub(self.lost + self.sacked)
    }

    /// Drops what lies below `una`. Says whether a newer retransmission than before was acknowledged.
    fn clean(&mut self, una: u32, news: &mut News) -> bool {
        let mut newer = false;
        while self.first < una {
            match self.marks.pop_front() {
                Some(Mark::Sacked) => self.sacked -= 1,
                Some(Mark::Lost) => self.lost -= 1,
                Some(Mark::Again { id, .. }) => {
                    if id > self.again_acked {
                        self.again_acked = id;
                        newer = true;
                    }
                    news.ambiguous = true;
                }
                Some(Mark::InFlight) => {}
                None => {
                    self.first = una;
                    break;
                }
            }
            self.first += 1;
        }
        newer
    }

    /// Takes in an acknowledgement.
    fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>, news: &mut News) {
        let mut thorough = self.clean(una, news);
        if self.marks.is_empty() {
            self.clear();
            self.first = una;
            thorough = false;
        }
        let mut blocks = [Block::default(); 3];
        let mut n = 0;
        for block in extra.into_iter().flat_map(TcpOptions::blocks) {
            let (start, end) = (block.start.max(una), block.end.min(max));
            if start < end {
                blocks[n] = Block { start, end };
                n += 1;
            }
        }
        let blocks = &mut blocks[..n];
        if blocks.is_empty() && !thorough {
            return;
        }
        blocks.sort_unstable_by_key(|b| b.start);
        if let Some(end) = blocks.iter().map(|b| b.end).max() {
            if self.forward.is_none_or(|f| f < end - 1) {
                self.forward = Some(end - 1);
                thorough = true;
            }
        }
        let Some(forward) = self.forward else { return };
        let length = (forward + 1).saturating_sub(self.first) as usize;
        while self.marks.len() < length {
            self.marks.push_back(Mark::InFlight);
        }
        self.cursor = self.first;
        self.judge(blocks, forward, thorough, news);
    }

    /// Marks what the blocks cover, and what lies far enough behind the forward edge as lost.
    fn judge(&mut self, blocks: &[Block], forward: u32, mut thorough: bool, news: &mut News) {
        let mut block = 0;
        for i in 0..self.marks.len() {
            if block >= blocks.len() && !thorough {
                break;
            }
            let seq = self.first + i as u32;
            let mark = self.marks[i];
            if mark == Mark::Sacked {
                continue;
            }
            while blocks.get(block).is_some_and(|b| b.end <= seq) {
                block += 1;
            }
            if blocks.get(block).is_some_and(|b| b.start <= seq) {
                match mark {
                    Mark::Lost => self.lost -= 1,
                    Mark::Again { id, .. } => {
                        self.again_acked = id;
                        news.ambiguous = true;
                        thorough = true;
                    }
                    _ => {}
                }
                self.sacked += 1;
                news.sacked = true;
                self.marks[i] = Mark::Sacked;
                continue;
            }
            let lost = match mark {
                Mark::InFlight => seq + DUPLICATES < forward,
                Mark::Again { next, id } => next <= forward || id + i64::from(DUPLICATES) + 1 < self.again_acked,
                _ => false,
            };
            if lost {
                self.marks[i] = Mark::Lost;
                self.lost += 1;
                news.lost = true;
            }
        }
    }

    /// After a timeout everything that was not reported counts as lost.
    fn all_lost(&mut self, una: u32, nxt: u32) {
        if self.marks.is_empty() {
            self.first = una;
        }
        while self.first + (self.marks.len() as u32) < nxt {
            self.marks.push_back(Mark::InFlight);
        }
        for mark in &mut self.marks {
            if !matches!(mark, Mark::Sacked | Mark::Lost) {
                *mark = Mark::Lost;
                self.lost += 1;
            }
        }
        self.again = 0;
        self.again_acked = -1;
        self.cursor = self.first;
    }

    /// The next segment to send again.
    fn next_lost(&mut self) -> Option<u32> {
        self.cursor = self.cursor.max(self.first);
        loop {
            match self.marks.get((self.cursor - self.first) as usize)? {
                Mark::Lost => return Some(self.cursor),
                _ => self.cursor += 1,
            }
        }
    }

    fn sent_again(&mut self, seq: u32, next: u32) {
        if let Some(mark) = self.marks.get_mut((seq - self.first) as usize) {
            *mark = Mark::Again { next, id: self.again };
            self.again += 1;
            self.lost -= 1;
        }
    }
}

impl TcpSender {
    fn linux(&mut self) -> &mut Linux {
        self.linux.get_or_insert_default()
    }

    fn in_flight_linux(&mut self) -> u32 {
        let (una, nxt) = (self.una, self.nxt);
        self.linux().in_flight(una, nxt)
    }

    /// An acknowledgement.
    pub(super) fn on_ack_linux(
        &mut self,
        now: Time,
        packet: &Packet,
        extra: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let new = packet.seq > self.una;
        let before = self.in_flight_linux();
        let mut news = News { ambiguous: !new, ..News::default() };
        let segments = if new { self.advance(now, packet) } else { 0 };
        let (una, max) = (self.una, self.max);
        self.linux().update(una, max, extra, &mut news);
        self.time_linux(now, packet);

        // ns-2 keeps send times in seconds and takes 0 for "none"
        let sent = self.clock.as_ref().and_then(|c| c.get(packet.seq.wrapping_sub(1))).map(|e| e.0);
        let rtt = sent.filter(|t| new && !news.ambiguous && *t > Time::ZERO).map(|t| now.since(t));
        if let Some(clock) = &mut self.clock {
            clock.trim(una);
        }
        let echo = packet.flags.has(Flags::ECE) && self.config.ecn && una > self.base + 1;
        if new {
            let path = self.path(now, before);
            let grows =
                self.phase != Phase::Recovery && (!echo || self.controller.window() < self.controller.threshold());
            self.controller.on_feedback(
                &if grows {
                    TcpEvent::Acked { segments, in_flight: before, rtt }
                } else {
                    TcpEvent::Repaired { segments, rtt }
                },
                &path,
            );
        }
        if !new || news.sacked || echo || self.phase != Phase::Open {
            self.alert_linux(now, news.lost, echo);
        }
        self.pump_linux(now, out);
    }

    /// Each acknowledgement gives a round-trip sample and restarts the timer.
    fn time_linux(&mut self, now: Time, packet: &Packet) {
        let limits = self.limits();
        let echoed = packet.stamp.elapsed(now);
        self.rtt.sample(now, now - echoed, 0, &limits);
        if self.timing && packet.seq > self.timed {
            self.timing = false;
            self.rtt.settle(&limits);
        }
        self.set_timer(now);
    }

    /// `tcp_fastretrans_alert`: leaves recovery, or enters it.
    fn alert_linux(&mut self, now: Time, lost: bool, echo: bool) {
        if self.phase != Phase::Open && self.una >= self.recover {
            self.linux().clear();
            self.linux().halving = 0;
            self.phase = Phase::Open;
            self.action = Action::Exited;
            let at_most = f64::from(self.in_flight_linux() + MAX_BURST);
            self.tell(TcpEvent::Recovered { at_most }, now);
            return;
        }
        if self.phase == Phase::Recovery || !(lost || echo) {
            return;
        }
        self.recover = self.max;
        self.action = Action::Duplicates;
        self.cwr = self.config.ecn; // else the receiver would echo one mark for ever (RFC 3168 section 6.1.2)
        self.linux().halving = self.controller.window() as u32;
        self.phase = Phase::Recovery;
        if lost {
            self.stats.fast_retransmits += 1;
            self.tell(TcpEvent::Lost { duplicates: 0, transmissions: 1 }, now);
        } else {
            self.tell(TcpEvent::EcnEcho, now);
        }
    }

    /// The window as ns-2 shows it (`save_from_linux`, before sending).
    #[cold]
    pub(super) fn shown_linux(&self) -> f64 {
        let shown = self.linux.as_ref().map_or(0, |l| l.shown);
        self.controller.window().max(f64::from(shown))
    }

    /// Sends while less is in flight than the window, or than the halved rate still allows.
    pub(super) fn pump_linux(&mut self, now: Time, out: &mut impl Transmit) {
        let mut in_flight = self.in_flight_linux();
        let linux = self.linux();
        linux.shown = linux.halving;
        linux.halving = linux.halving.min(in_flight + 1);
        while in_flight < self.window().max(self.linux().halving) {
            if !self.may_send(now) {
                return;
            }
            let seq = match self.linux().next_lost() {
                Some(seq) => {
                    let nxt = self.nxt;
                    self.linux().sent_again(seq, nxt);
                    seq
                }
                None if self.nxt < self.limit.min(self.una.saturating_add(self.receive_window)) => {
                    self.nxt += 1;
                    self.nxt - 1
                }
                None => return,
            };
            self.emit(now, seq, out);
            in_flight = self.in_flight_linux();
            let linux = self.linux();
            linux.halving = linux.halving.min(in_flight.saturating_sub(1).max(1));
        }
    }

    /// The retransmission timer has expired: `enter_loss`, or idle.
    pub(super) fn expired_linux(&mut self, now: Time, out: &mut impl Transmit) {
        self.timing = false;
        self.action = Action::Timeout;
        self.linux().halving = 0;
        if self.una == self.max {
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Idle { window }, now);
            self.timer = Time::NEVER;
        } else {
            self.count_timeout();
            self.tell(TcpEvent::Timeout(Threshold::Cut), now);
            self.cwr |= self.config.ecn;
            self.recover = self.max;
            self.phase = Phase::Loss;
            let (una, nxt) = (self.una, self.nxt);
            self.linux().all_lost(una, nxt);
            let limits = self.limits();
            self.rtt.back_off(&limits);
            self.set_timer(now);
        }
        self.pump_linux(now, out);
    }
}
