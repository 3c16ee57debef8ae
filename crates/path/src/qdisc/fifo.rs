//! A first-in-first-out queue of whole packets.

use crate::model::Limit;
use paceline_packet::Packet;
use std::collections::VecDeque;

/// Packets in order of arrival. A packet's time is its arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    pub(super) fn packets(&self) -> u32 {
        self.packets.len() as u32
    }

    /// The first packet.
    pub(super) fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Whether `size` more bytes fit. An empty queue accepts any packet.
    pub(super) fn fits(&self, limit: Limit, size: u16) -> bool {
        self.packets.is_empty()
            || match limit {
                Limit::Packets(limit) => self.packets() < limit,
                Limit::Bytes(limit) => self.bytes + u64::from(size) <= limit.0,
            }
    }
}

/// The queue that CoDel works on.
pub(super) trait Waiting {
    /// Takes the first packet.
    fn pop(&mut self) -> Option<Packet>;
    /// Bytes that wait.
    fn bytes(&self) -> u64;
}

impl Waiting for Fifo {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
