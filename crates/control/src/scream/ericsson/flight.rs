//! Packets in flight, and loss detection.

use super::window::LOOKS;
use super::{Law, SECOND};
use std::collections::VecDeque;

/// A packet is not lost before one sent this much later has arrived: 30 ms.
const REORDERING: u32 = 1966;
/// A packet this many numbers behind the highest is lost.
const BEHIND: i64 = 512;
/// Maximum number of those to check at once.
const LOOKED_AT: i64 = 32;
/// Maximum number of packets kept.
const MAX_PACKETS: usize = 4096;
/// The clock of RTP timestamps, in Hz.
const MEDIA_CLOCK: u64 = 90_000;
/// A step of timestamps below this is forward.
const STEP: u32 = 50_000;
/// The loss rate above which losses count, and above which they may be a policer's.
const LOSS_RATE: f32 = 0.01;
const POLICER_LOSS_RATE: f32 = 0.1;
/// Factor of the window behind a policer.
const POLICER_BETA: f32 = 0.8;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    number: u32,
    pub(super) sent: u32,
    pub(super) size: i32,
    pub(super) ends_frame: bool,
    /// Its RTP timestamp.
    stamp: u32,
    /// Whether it is still in use.
    used: bool,
    acked: bool,
    /// Whether feedback has reported it or a later one.
    passed: bool,
}

impl Packet {
    /// A packet of a frame written at `written`.
    pub(super) fn new(number: u32, sent: u32, size: i32, written: u32, ends_frame: bool) -> Packet {
        let stamp = (u64::from(written) * MEDIA_CLOCK / u64::from(SECOND)) as u32;
        Packet { number, sent, size, ends_frame, stamp, used: true, acked: false, passed: false }
    }
}

/// The table of packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    packets: VecDeque<Packet>,
    pub(super) bytes: i32,
    pub(super) max_bytes: i32,
    pub(super) max_bytes_previous: i32,
    /// The last samples of the maximum in flight, and the index of the next.
    pub(super) looks: [i32; LOOKS],
    pub(super) look: usize,
    /// Whether a packet was sent, and the highest number reported.
    begun: bool,
    highest: u32,
    /// When the last reported packet was sent, and the highest timestamp of reported packets.
    sent_of_acked: u32,
    stamp_of_acked: u32,
}

impl Flight {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }

    pub(super) fn update_max_bytes(&mut self) {
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    pub(super) fn send(&mut self, packet: Packet) {
        if !self.begun {
            self.begun = true;
            self.highest = packet.number;
        }
        if self.packets.len() == MAX_PACKETS {
            self.packets.pop_front();
        }
        self.bytes = self.bytes.saturating_add(packet.size);
        self.packets.push_back(packet);
    }

    fn get(&mut self, number: i64) -> Option<&mut Packet> {
        let first = i64::from(self.packets.front()?.number);
        let place = usize::try_from(number - first).ok()?;
        self.packets.get_mut(place).filter(|packet| packet.used)
    }

    /// The packet, if it is acknowledged for the first time.
    pub(super) fn acknowledge(&mut self, number: u32) -> Option<Packet> {
        let packet = self.get(i64::from(number)).filter(|packet| !packet.acked)?;
        packet.acked = true;
        let packet = *packet;
        if packet.stamp.wrapping_sub(self.stamp_of_acked) < STEP {
            self.stamp_of_acked = packet.stamp;
        }
        self.sent_of_acked = packet.sent;
        Some(packet)
    }
}

impl Law {
    /// Checks the packets up to this one.
    pub(super) fn detect_losses(&mut self, now: u32, number: u32) {
        let (before, to) = (i64::from(self.flight.highest), i64::from(number));
        let from = before - BEHIND;
        let looked_at = LOOKED_AT.min((to - before) & 0xFFFF);
        self.flight.highest = number;
        for n in from - looked_at..from {
            let Some(packet) = self.flight.get(n) else { continue };
            packet.used = false;
            if !packet.acked {
                self.lose(now);
            }
        }
        for n in from..=to {
            let (sent_of_acked, stamp_of_acked) = (self.flight.sent_of_acked, self.flight.stamp_of_acked);
            let Some(packet) = self.flight.get(n) else { continue };
            let passes = !packet.passed;
            packet.passed = true;
            let Packet { size, sent, stamp, acked, .. } = *packet;
            let media = if self.settings.faults.media_time { stamp_of_acked.wrapping_sub(stamp) } else { 0 };
            let media = (SECOND as f32 * media as f32 / MEDIA_CLOCK as f32) as u32;
            let late = sent.wrapping_add(REORDERING).wrapping_add(media) < sent_of_acked && !acked;
            if let Some(packet) = self.flight.get(n) {
                packet.used = !(late || acked);
            }
            if passes {
                self.acked += size;
                self.media.arrived(size);
                self.flight.bytes = (self.flight.bytes - size).max(0);
            }
            if late {
                self.lose(now);
            } else if acked {
                self.count_loss(0.0);
            }
        }
        let keep = i64::from(number) - BEHIND - LOOKED_AT;
        while self.flight.packets.front().is_some_and(|packet| i64::from(packet.number) < keep) {
            self.flight.packets.pop_front();
        }
    }

    fn lose(&mut self, now: u32) {
        let since = if self.settings.faults.shared_reaction { self.reaction } else { self.loss_reaction };
        if now.wrapping_sub(since) > self.srtt && self.settings.loss_beta < 1.0 {
            self.loss_event();
        }
        self.count_loss(1.0);
    }

    fn count_loss(&mut self, lost: f32) {
        let gain = (LOSS_RATE / 4.0).min(self.mss as f32 / self.window as f32 / 2.0);
        self.loss_rate = (1.0 - gain) * self.loss_rate + gain * lost;
    }

    /// A loss counts if the loss rate is high, or if there is a queue.
    fn loss_event(&mut self) {
        let queue = self.settings.delay_target / 4.0;
        if self.loss_rate <= LOSS_RATE && self.delay_mean <= queue {
            return;
        }
        self.loss_event = true;
        if self.settings.policer && self.loss_rate > POLICER_LOSS_RATE && self.delay_mean < queue {
            if !self.policed_held {
                self.policed = (self.window + self.inflection) as f32 * POLICER_BETA / 2.0;
                self.policed_held = true;
            }
        } else {
            self.policed_held = false;
        }
    }
}
