//! First in, first out, with whole packets in it.

use crate::model::Limit;
use paceline_packet::Packet;
use std::collections::VecDeque;

/// Packets in order of arrival. The time of each is when it came.
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

    /// The packet that came first.
    pub(super) fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Whether there is room for `size` more bytes. An empty queue has room for any packet.
    pub(super) fn fits(&self, limit: Limit, size: u16) -> bool {
        self.packets.is_empty()
            || match limit {
                Limit::Packets(limit) => self.packets() < limit,
                Limit::Bytes(limit) => self.bytes + u64::from(size) <= limit.0,
            }
    }
}

/// What CoDel watches over.
pub(super) trait Waiting {
    /// Takes the packet that came first.
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
