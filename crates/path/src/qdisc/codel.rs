//! Controlled Delay.
//!
//! Nichols, Jacobson, McGregor, Iyengar, RFC 8289; the algorithm is in section 5. The RFC leaves marking open; Paceline
//! does as Linux: a mark takes the place of a drop in the control law, and the marked packet leaves.

use super::fifo::Waiting;
use super::mark;
use super::model::{CoDelModel, StepFor};
use crate::DropReason;
use paceline_packet::{Flags, Packet};

/// CoDel's parameters, in nanoseconds and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    target: u64,
    interval: u64,
    mtu: u64,
    ecn: bool,
    mark_above: u64,
    /// The flags a packet needs for `mark_above` to mark it.
    step_for: Flags,
}

impl Settings {
    pub(super) fn new(model: &CoDelModel) -> Settings {
        Settings {
            target: model.target.0,
            interval: model.interval.0,
            mtu: model.mtu.0,
            ecn: model.ecn,
            mark_above: model.mark_above.map_or(u64::MAX, |span| span.0),
            step_for: match model.mark_above_for {
                StepFor::Ect => Flags::ECT,
                StepFor::Ect1 => Flags::ECT.with(Flags::L4S),
            },
        }
    }

    /// The time of the next drop: an interval over the square root of the number of drops (section 5.4).
    #[inline]
    fn control_law(&self, time: u64, count: u32) -> u64 {
        time.saturating_add((self.interval as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }

    /// Marks a packet instead of dropping it, if it is ECN-capable.
    #[inline]
    fn marks(&self, packet: &mut Packet, marks: &mut u64) -> bool {
        let capable = self.ecn && packet.flags.has(Flags::ECT);
        if capable {
            *marks += u64::from(mark(packet));
        }
        capable
    }
}

/// CoDel's state of one queue; the names are the RFC's.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoDel {
    /// When the delay will have been above the target for an interval; 0: it is below.
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDel {
    pub(super) const fn new() -> CoDel {
        CoDel { first_above: 0, drop_next: 0, count: 0, last_count: 0, dropping: false }
    }

    /// The next packet, and whether it may be dropped (`dodequeue`).
    #[inline]
    fn next(&mut self, settings: &Settings, now: u64, queue: &mut impl Waiting) -> Option<(Packet, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = 0;
            return None;
        };
        let mut may_drop = false;
        if now - packet.time.0 < settings.target || queue.bytes() <= settings.mtu {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now.saturating_add(settings.interval);
        } else {
            may_drop = now >= self.first_above;
        }
        Some((packet, may_drop))
    }

    /// The packet that leaves at `now`; packets dropped before it are passed to `dropped`. Adds to `marks`.
    pub(super) fn dequeue(
        &mut self,
        settings: &Settings,
        now: u64,
        queue: &mut impl Waiting,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) -> Option<Packet> {
        let mut next = self.next(settings, now, queue);
        if self.dropping {
            self.dropping = next.is_some_and(|(_, may_drop)| may_drop);
            while self.dropping && now >= self.drop_next {
                let Some((packet, _)) = &mut next else { break };
                self.count = self.count.saturating_add(1);
                if settings.marks(packet, marks) {
                    self.drop_next = settings.control_law(self.drop_next, self.count);
                    break;
                }
                dropped(packet, DropReason::Delay);
                next = self.next(settings, now, queue);
                match next {
                    Some((_, true)) => self.drop_next = settings.control_law(self.drop_next, self.count),
                    _ => self.dropping = false,
                }
            }
        } else if let Some((packet, true)) = &mut next {
            if !settings.marks(packet, marks) {
                dropped(packet, DropReason::Delay);
                next = self.next(settings, now, queue);
            }
            self.dropping = true;
            // Dropping ended recently: resume near the drop rate that controlled the queue then (section 5.5).
            let since = self.count - self.last_count.min(self.count);
            // Before the first dropping state there is no `drop_next`: time near zero must not look recent.
            let recent = self.drop_next > 0 && now < self.drop_next.saturating_add(16 * settings.interval);
            self.count = if since > 1 && recent { since } else { 1 };
            self.drop_next = settings.control_law(now, self.count);
            self.last_count = self.count;
        }
        let (mut packet, _) = next?;
        if now - packet.time.0 > settings.mark_above && packet.flags.has(settings.step_for) {
            *marks += u64::from(mark(&mut packet));
        }
        Some(packet)
    }

    /// Packets of this queue were dropped on overflow: they add to the count, as in Linux.
    pub(super) fn lost(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use crate::link::tests::packet;
    use crate::qdisc::fifo::Fifo;

    const INTERVAL: u64 = 100_000_000;
    const NOW: u64 = 50 * INTERVAL;

    /// The count with which the dropping state begins at `NOW`, and when the next drop is due.
    fn entering(count: u32, last_count: u32, drop_next: u64) -> (u32, u64) {
        let settings = Settings::new(&CoDelModel::new(Limit::Packets(100)));
        let mut codel = CoDel { first_above: NOW, drop_next, count, last_count, dropping: false };
        let mut queue = Fifo::default();
        (0..9).for_each(|_| queue.push(packet(0, 1500)));
        let (mut marks, mut dropped) = (0, 0);
        assert!(codel.dequeue(&settings, NOW, &mut queue, &mut marks, |_, _| dropped += 1).is_some());
        assert!(codel.dropping && dropped == 1 && codel.last_count == codel.count);
        (codel.count, codel.drop_next)
    }

    /// RFC 8289 section 5.6: it resumes with the drops of the last cycle if there was more than one, and if the next
    /// one was due less than 16 intervals ago; else it begins with one.
    #[test]
    fn what_the_dropping_state_begins_with() {
        assert_eq!(entering(0, 0, 0), (1, NOW + INTERVAL));
        let recent = NOW - 16 * INTERVAL + 1;
        assert_eq!(entering(9, 5, recent), (4, NOW + INTERVAL / 2));
        assert_eq!(entering(9, 5, recent - 1), (1, NOW + INTERVAL));
        assert_eq!(entering(7, 5, recent).0, 2);
        assert_eq!(entering(6, 5, recent).0, 1);
        // Its time was still ahead: the delay fell before.
        assert_eq!(entering(9, 5, NOW + INTERVAL / 3).0, 4);
    }

    /// With exactly one MTU left behind a packet there is no standing queue; a delay of exactly the target is too long.
    #[test]
    fn at_the_bounds() {
        let settings = Settings::new(&CoDelModel::new(Limit::Packets(100)));
        for (waits, behind, above) in
            [(5_000_000, 1501, true), (4_999_999, 3000, false), (5_000_000, 1500, false), (5_000_000, 1499, false)]
        {
            let (mut codel, mut queue) = (CoDel::new(), Fifo::default());
            codel.first_above = if above { 0 } else { 7 };
            queue.push(packet(0, 1500));
            queue.push(packet(0, behind));
            assert!(codel.next(&settings, waits, &mut queue).is_some());
            assert_eq!(codel.first_above > 0, above, "{behind} B behind one that has waited {waits} ns");
        }
        let mut codel = CoDel { first_above: 7, ..CoDel::new() };
        assert!(codel.next(&settings, 1, &mut Fifo::default()).is_none() && codel.first_above == 0, "nothing waits");
    }

    /// A drop brings the delay below the target: it ends the dropping state, and no other drop follows.
    #[test]
    fn a_drop_that_helps_is_the_last() {
        let settings = Settings::new(&CoDelModel::new(Limit::Packets(100)));
        let mut codel = CoDel { first_above: 1, drop_next: NOW, count: 3, last_count: 1, dropping: true };
        let mut queue = Fifo::default();
        queue.push(packet(0, 1500));
        (0..5).for_each(|_| queue.push(packet(NOW - 1_000_000, 1500)));
        let mut dropped = 0;
        let left = codel.dequeue(&settings, NOW, &mut queue, &mut 0, |_, _| dropped += 1);
        assert_eq!((left.map(|packet| packet.time.0), dropped), (Some(NOW - 1_000_000), 1));
        assert_eq!((codel.dropping, codel.count, codel.drop_next), (false, 4, NOW));
    }
}
