//! Limits the cost of one input, whatever the flow's settings and the other end's messages are.
//!
//! The machines loop over everything due, whose amount others determine: an application may produce data faster than a
//! processor can handle, a window may open by thousands. So each input has a maximum number of steps, of application
//! actions and of packets; the rest is due at once, as a separate input, and the owner serves other flows in between.
//! Limits are counts, not times: replaying a log costs the same and yields at the same places.

use paceline_units::{Span, Time};
use std::cell::Cell;

/// Maximum number of machine timer calls per input: each does one thing.
const MAX_STEPS: u32 = 256;
/// Maximum number of application actions per step.
const MAX_ACTIONS: u32 = 64;
/// Number of packets per input after which the machine defers what can wait (the granted rate may drop most of them),
/// and number after which there is no further step.
const MAX_PACKETS_PER_INPUT: u32 = 1 << 15;
const STEP_PACKET_BUDGET: u32 = 4096;
/// Time after which an application that has stayed behind counts as unable to catch up.
const LONGEST_BEHIND: Span = Span::from_secs(2);
/// Maximum number of waiting application writes, and of packets in flight: each is tracked individually.
pub(super) const MAX_WAITING: u64 = 1 << 16;

/// Cost of an input so far.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: u32,
    actions: Cell<u32>,
    packets_made: Cell<u32>,
}

impl Work {
    /// Starts a new input.
    pub(super) fn begin(&mut self) {
        *self = Work::default();
    }

    /// Counts a step; returns false if none is left.
    pub(super) fn step(&mut self) -> bool {
        self.actions.set(0);
        let room = self.steps < MAX_STEPS && self.packets_made.get() < STEP_PACKET_BUDGET;
        self.steps += u32::from(room);
        room
    }

    /// Counts a packet made by the machine.
    pub(super) fn on_packet_made(&self) {
        self.packets_made.set(self.packets_made.get().saturating_add(1));
    }

    /// Whether work that can wait must wait for the next input.
    pub(super) fn is_full(&self) -> bool {
        self.packets_made.get() >= MAX_PACKETS_PER_INPUT
    }

    /// Counts an application action; returns whether it is the last in this step.
    pub(super) fn is_enough(&self) -> bool {
        self.actions.set(self.actions.get() + 1);
        self.actions.get() >= MAX_ACTIONS || self.packets_made.get() >= STEP_PACKET_BUDGET
    }

    /// Whether the steps are used up with less than one packet each: most of the work is then the application's.
    fn is_in_vain(&self) -> bool {
        self.steps == MAX_STEPS && self.packets_made.get() < MAX_STEPS
    }
}

/// Since when inputs have ended with work left.
#[derive(Debug, Default)]
pub(super) struct Behind(Option<Time>);

impl Behind {
    /// Records the end of an input at `now`; returns whether inputs have ended with work left for too long.
    pub(super) fn look(&mut self, now: Time, work: &Work) -> bool {
        if !work.is_in_vain() {
            self.0 = None;
        }
        work.is_in_vain() && now.since(*self.0.get_or_insert(now)) >= LONGEST_BEHIND
    }
}
