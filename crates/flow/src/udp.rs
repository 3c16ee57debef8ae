//! Datagrams without congestion control (RFC 768): the application's data is sent at once, and nothing returns.
//!
//! A write is split into segments of `segment` bytes of payload, as by ns-2's `Agent/UDP`; the last one is shorter
//! unless whole segments are sent. Datagrams are numbered, although UDP's header has no number, so that the receiver
//! can detect duplicates.

use crate::{Arrived, ReceiverStats, Segment, SenderStats, Transmit};
use paceline_control::Profile;
use paceline_packet::{Flags, Packet, Stamp};
use paceline_units::Time;

/// The settings of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpConfig {
    /// Payload of a full segment in bytes.
    pub segment: u16,
    /// Header bytes of a datagram.
    pub header: u16,
    /// Pad the last segment of a write to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
}

impl UdpConfig {
    /// The defaults of `profile` (docs/profiles.md): payloads that fill 1500 bytes with the headers of IPv4 and UDP; in
    /// ns-2, 1000 bytes without headers.
    #[must_use]
    pub const fn new(profile: Profile) -> UdpConfig {
        match profile {
            Profile::Rfc | Profile::Linux => UdpConfig { segment: 1472, header: 28, whole_segments: false },
            Profile::Ns2 | Profile::Ns2Linux => UdpConfig { segment: 1000, header: 0, whole_segments: true },
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub struct UdpSender {
    config: UdpConfig,
    next: u32,
    started: bool,
    stopped: bool,
    /// Bytes supplied before the start.
    waiting: u64,
    stats: SenderStats,
}

impl UdpSender {
    /// Creates a sender that has not started.
    #[must_use]
    pub fn new(config: &UdpConfig) -> UdpSender {
        let stats = SenderStats::new(config.segment.saturating_add(config.header));
        UdpSender { config: *config, next: 0, started: false, stopped: false, waiting: 0, stats }
    }

    /// Starts the flow: data supplied earlier is sent now.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.started = true;
        let waiting = core::mem::take(&mut self.waiting);
        self.supply(waiting, now, out);
    }

    /// The application writes `bytes`; they are sent at once, in one burst.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if self.stopped {
            return;
        }
        if !self.started {
            self.waiting = self.waiting.saturating_add(bytes);
            return;
        }
        let segment = u64::from(self.config.segment.max(1));
        let mut rest = bytes;
        while rest > 0 {
            let payload = if self.config.whole_segments { segment } else { rest.min(segment) };
            let size = (payload as u16).saturating_add(self.config.header);
            let flags = if rest <= segment { Flags::PUSH } else { Flags::NONE };
            out.transmit(Segment { seq: self.next, stamp: Stamp::at(now), size, flags, extra: None });
            self.next = self.next.wrapping_add(1);
            self.stats.sent(size);
            self.stats.bytes_acked += payload;
            rest = rest.saturating_sub(segment);
        }
    }

    /// The application stops.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.waiting = 0;
    }

    /// Allows the application to write again. There is no other state to reset.
    pub fn restart(&mut self) {
        self.stopped = false;
        self.waiting = 0;
    }

    /// Whether the flow has started.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Counters up to now. Sent data counts as acknowledged.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct UdpReceiver {
    header: u16,
    /// One past the highest number received, and a bit set of the 64 numbers below it, the highest in the lowest bit.
    next: u32,
    seen: u64,
    stats: ReceiverStats,
}

impl UdpReceiver {
    /// Creates a receiver that waits for datagrams.
    #[must_use]
    pub fn new(config: &UdpConfig) -> UdpReceiver {
        UdpReceiver { header: config.header, next: 0, seen: 0, stats: ReceiverStats::default() }
    }

    /// Processes a datagram. A duplicate of one of the last 64 is not delivered again.
    pub fn on_data(&mut self, now: Time, packet: &Packet) -> Arrived {
        let stats = &mut self.stats;
        stats.on_received(now, packet.size);
        stats.marks += u64::from(packet.flags.has(Flags::CE));
        let ahead = packet.seq.wrapping_sub(self.next);
        if ahead < 1 << 31 {
            self.seen = if ahead >= 63 { 1 } else { self.seen << (ahead + 1) | 1 };
            self.next = packet.seq.wrapping_add(1);
        } else {
            let behind = self.next.wrapping_sub(packet.seq) - 1;
            let bit = if behind < 64 { 1 << behind } else { 0 };
            if self.seen & bit != 0 {
                stats.duplicates += 1;
                return Arrived::default();
            }
            self.seen |= bit;
        }
        let bytes = u64::from(packet.size.saturating_sub(self.header));
        stats.bytes += bytes;
        Arrived { bytes, segments: 1 }
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_packet::{ExtraId, FlowId};

    const CONFIG: UdpConfig = UdpConfig { segment: 500, header: 28, whole_segments: false };

    fn packet(seq: u32, size: u16) -> Packet {
        Packet {
            time: Time(seq.into()),
            flow: FlowId(0),
            seq,
            stamp: Stamp(0),
            cursor: 0,
            extra: ExtraId::NONE,
            size,
            flags: Flags::NONE,
        }
    }

    #[test]
    fn a_write_leaves_at_once_and_in_segments() {
        let mut sender = UdpSender::new(&CONFIG);
        let mut out = Vec::new();
        sender.supply(100, Time::ZERO, &mut out);
        assert!(out.is_empty(), "not before the start");
        sender.start(Time(5), &mut out);
        sender.supply(1100, Time(9), &mut out);
        let sent: Vec<_> = out.iter().map(|s| (s.seq, s.size, s.flags.has(Flags::PUSH))).collect();
        assert_eq!(sent, [(0, 128, true), (1, 528, false), (2, 528, false), (3, 128, true)]);
        assert_eq!((sender.stats().packets_sent, sender.stats().bytes_sent()), (4, 1312));
        assert_eq!((sender.stats().bytes_acked, sender.stats().mean_window()), (1200, None));
        sender.stop();
        sender.supply(100, Time(10), &mut out);
        assert_eq!(out.len(), 4);
    }

    #[test]
    fn whole_segments_as_in_ns2() {
        let mut sender = UdpSender::new(&UdpConfig { whole_segments: true, ..CONFIG });
        let mut out = Vec::new();
        sender.start(Time::ZERO, &mut out);
        sender.supply(501, Time::ZERO, &mut out);
        assert_eq!(out.iter().map(|s| s.size).collect::<Vec<_>>(), [528, 528]);
    }

    #[test]
    fn copies_count_once_and_late_ones_still_arrive() {
        let mut receiver = UdpReceiver::new(&CONFIG);
        let got: Vec<u64> = [0, 0, 2, 1, 1, 70, 5, 2, 71, 70, u32::MAX]
            .iter()
            .map(|&seq| receiver.on_data(Time(9), &packet(seq, 128)).bytes)
            .collect();
        // 2 is more than 64 below 70, so a duplicate cannot be distinguished from a late datagram
        assert_eq!(got, [100, 0, 100, 100, 0, 100, 100, 100, 100, 0, 100]);
    }

    #[test]
    fn numbers_wrap() {
        let mut receiver = UdpReceiver { next: u32::MAX - 1, ..UdpReceiver::new(&CONFIG) };
        for seq in [u32::MAX - 1, u32::MAX, 0, 1] {
            assert_eq!(receiver.on_data(Time(9), &packet(seq, 128)).bytes, 100);
        }
        assert_eq!(receiver.on_data(Time(9), &packet(u32::MAX, 128)).bytes, 0);
        assert_eq!(receiver.stats().duplicates, 1);
    }
}
