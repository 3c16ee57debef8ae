//! The scheduler: each element once per window, over its whole batch; or, for comparison, event by event.

use crate::inbox::Inbox;
use crate::network::{Hop, Network};
use paceline_packet::Packet;
use paceline_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A host, a link that is not folded, a shared medium: maps a time-ordered batch of packets to another.
pub trait Element {
    /// The type of folded links.
    type Hop: Hop;
    /// Handles everything before `until`: arrivals in `inbox` and its own timers, in order of time; at one instant,
    /// timers come first.
    fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Self::Hop>);
    /// The time of its next timer; [`Time::NEVER`] if it only waits for packets.
    fn next_wake(&self) -> Time;
}

/// Elements in an order in which no edge shorter than the window points backwards, and the network between them.
#[derive(Debug)]
pub struct Engine<E: Element> {
    elements: Vec<E>,
    /// The network; elements access it while they run.
    pub network: Network<E::Hop>,
    window: Span,
    now: Time,
}

impl<E: Element> Engine<E> {
    /// An engine at time zero. Within `window`, nothing that an element sends may reach that element or one before it.
    #[must_use]
    pub fn new(elements: Vec<E>, mut network: Network<E::Hop>, window: Span) -> Engine<E> {
        for (number, element) in elements.iter().enumerate() {
            network.wake_queue.set(number, element.next_wake());
        }
        Engine { elements, network, window: Span(window.0.max(1)), now: Time::ZERO }
    }

    /// Runs everything before `end`, window by window.
    pub fn run(&mut self, end: Time) {
        while self.now < end {
            let until = (self.now + self.window).min(end);
            self.network.wake_queue.begin_window(self.now, until);
            let (mut busy, mut from) = (0, 0);
            while let Some(i) = self.network.wake_queue.first_due(from) {
                busy += 1;
                self.visit(i, until);
                from = i + 1;
            }
            self.now = until;
            if let Some(next) = self.network.wake_queue.after_window(busy) {
                self.now = self.now.max(next.min(end));
            }
        }
    }

    #[inline(always)]
    fn visit(&mut self, i: usize, until: Time) {
        let mut inbox = std::mem::replace(&mut self.network.inboxes[i], Inbox::in_order());
        let element = &mut self.elements[i];
        element.run(until, &mut inbox, &mut self.network);
        self.network.wake_queue.set(i, inbox.settle().min(element.next_wake()));
        // The placeholder is an empty inbox: skip its drop.
        std::mem::forget(std::mem::replace(&mut self.network.inboxes[i], inbox));
    }

    /// Runs everything before `end`, one event at a time from one global queue ordered by (time, element, delivering
    /// link, emission). Slow; tests compare the windowed run with it.
    pub fn run_by_events(&mut self, end: Time) {
        let mut queue: BinaryHeap<Reverse<(Time, usize, u32, u64)>> = BinaryHeap::new();
        let mut packets: Vec<Option<Packet>> = Vec::new();
        let mut mail = Vec::new();
        loop {
            for i in 0..self.elements.len() {
                self.network.inboxes[i].drain_into(&mut mail);
                for packet in mail.drain(..) {
                    let link = self.network.routes().delivered_by(&packet);
                    queue.push(Reverse((packet.time, i, link, packets.len() as u64)));
                    packets.push(Some(packet));
                }
            }
            let timer = (0..self.elements.len()).map(|i| (self.elements[i].next_wake(), i)).min();
            let arrival = queue.peek().map(|Reverse((time, i, ..))| (*time, *i));
            let Some((time, i)) = timer.into_iter().chain(arrival).min() else { break };
            if time >= end {
                break;
            }
            let mut inbox = Inbox::in_order();
            if arrival == Some((time, i))
                && let Some(Reverse((_, _, _, number))) = queue.pop()
            {
                let packet = packets[number as usize].take().expect("each number is queued once");
                inbox.push(packet.time, |to| to.push(packet));
            }
            let until = Time(time.0 + 1);
            self.elements[i].run(until, &mut inbox, &mut self.network);
            self.now = time;
        }
        for Reverse((_, i, _, number)) in queue.into_sorted_vec().into_iter().rev() {
            let packet = packets[number as usize].take().expect("each number is queued once");
            self.network.inboxes[i].push(packet.time, |to| to.push(packet));
        }
        self.now = end;
    }

    /// The elements.
    pub fn elements(&self) -> &[E] {
        &self.elements
    }

    /// The elements, mutably.
    pub fn elements_mut(&mut self) -> &mut [E] {
        &mut self.elements
    }

    /// The elements and the network, both mutably.
    pub fn parts_mut(&mut self) -> (&mut [E], &mut Network<E::Hop>) {
        (&mut self.elements, &mut self.network)
    }

    /// The current time: everything before it has happened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The length of a window.
    #[must_use]
    pub fn window(&self) -> Span {
        self.window
    }
}
