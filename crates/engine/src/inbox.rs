//! Inboxes: packets that were sent to an element and are not handled yet.
//!
//! An element with one source that sends in order gets its packets as they are pushed. Fan-in needs sorting
//! ([`Fanin`]): by time, then by the scenario's id of the delivering link, then in order of emission.

use crate::fanin::Fanin;
use crate::routes::Routes;
use paceline_packet::Packet;
use paceline_units::Time;

/// The packets on their way to one element; they may lie beyond the current window.
#[derive(Debug)]
pub struct Inbox {
    /// Packets before `horizon`: in order without `fanin`, else in order of arrival.
    packets: Vec<Packet>,
    /// The number of packets taken.
    head: usize,
    /// With `fanin`: the expected end of the next window; `fanin` holds later packets. While few packets wait, `fanin`
    /// holds all of them, and this is zero.
    horizon: Time,
    /// For several sources, or one that reorders.
    fanin: Option<Box<Fanin>>,
}

impl Inbox {
    /// An inbox for one source whose emission times never decrease.
    #[must_use]
    pub const fn in_order() -> Inbox {
        Inbox { packets: Vec::new(), head: 0, horizon: Time::NEVER, fanin: None }
    }

    /// An inbox for several sources; `window` is the expected length of a window and only affects speed.
    #[must_use]
    pub fn fan_in(window: Time) -> Inbox {
        Inbox { packets: Vec::new(), head: 0, horizon: Time::ZERO, fanin: Some(Box::new(Fanin::new(window))) }
    }

    /// Adds a packet of this time; `put` appends it to a vector. In the in-order form, times must not decrease. Returns
    /// when to check this inbox (a lower bound), unless an earlier packet has already determined it.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, put: impl FnOnce(&mut Vec<Packet>)) -> Option<Time> {
        debug_assert!(
            self.fanin.is_some() || self.packets.last().is_none_or(|last| last.time <= time),
            "a source went back in time"
        );
        if time >= self.horizon
            && let Some(fanin) = &mut self.fanin
        {
            fanin.push(time, put);
            return Some(time);
        }
        let first = self.packets.is_empty();
        put(&mut self.packets);
        first.then(|| self.fanin.as_ref().map_or(time, |fanin| fanin.taken_until()))
    }

    /// Takes everything before `until`, in order.
    #[inline(always)]
    pub fn take(&mut self, until: Time, routes: &Routes) -> &mut [Packet] {
        match &mut self.fanin {
            None => {
                let from = self.head;
                self.head += self.packets[from..].iter().take_while(|packet| packet.time < until).count();
                &mut self.packets[from..self.head]
            }
            Some(fanin) => {
                self.horizon = fanin.take(until, self.horizon, &mut self.packets, routes);
                fanin.taken_packets()
            }
        }
    }

    /// After [`Inbox::take`]: frees the packets taken, and returns when the next packet arrives (a lower bound).
    #[inline(always)]
    pub fn settle(&mut self) -> Time {
        if self.head == self.packets.len() {
            self.packets.clear();
            self.head = 0;
            return self.fanin.as_ref().map_or(Time::NEVER, |fanin| fanin.first());
        }
        if let Some(fanin) = &self.fanin {
            return fanin.taken_until();
        }
        if self.head * 2 >= self.packets.len() {
            // Compact early: a vector that keeps growing would displace others from the cache.
            self.packets.drain(..self.head);
            self.head = 0;
        }
        self.packets[self.head].time
    }

    #[cfg(test)]
    pub(crate) fn keeps_few(&self) -> bool {
        self.fanin.as_ref().is_some_and(|fanin| fanin.keeps_few())
    }

    /// The number of waiting packets, without those taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len() - self.head + self.fanin.as_ref().map_or(0, |fanin| fanin.len())
    }

    /// Whether no packet waits here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves all packets to `to`, in no particular order across sources but in order of emission within one.
    pub fn drain_into(&mut self, to: &mut Vec<Packet>) {
        to.extend(self.packets.drain(..).skip(self.head));
        self.head = 0;
        if let Some(fanin) = &mut self.fanin {
            fanin.drain_into(to);
        }
    }
}
