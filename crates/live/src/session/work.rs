//! What one input may cost, whatever the flow's settings are and whatever the other end says.
//!
//! The machines loop over what is due, and what is due is up to others: an application that makes data faster than a
//! processor can, a window that opens by thousands. So an input takes so many steps, its applications so many actions and its
//! machine so many packets; the rest is due at once, in an input of its own, between which its owner looks after others. All is
//! counted, nothing timed: a log's inputs replayed cost the same and yield at the same places.

use paceline_units::{Span, Time};
use std::cell::Cell;

/// Calls of the machine's timer on account of one input: each does one thing.
const MAX_STEPS: u32 = 256;
/// What the application does in one of them.
const MAX_ACTIONS: u32 = 64;
/// Packets that the machine makes on account of one input before it is told to make no more of what could wait, of which the granted
/// rate may drop most; and after which there is no further step.
const MAX_PACKETS_PER_INPUT: u32 = 1 << 15;
const STEP_PACKET_BUDGET: u32 = 4096;
/// An application that has been behind for so long does not catch up.
const LONGEST_BEHIND: Span = Span::from_secs(2);
/// Writes of an application that wait, each remembered by itself, and packets under way of which each is.
pub(super) const MAX_WAITING: u64 = 1 << 16;

/// What an input has cost so far.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: u32,
    actions: Cell<u32>,
    packets_made: Cell<u32>,
}

impl Work {
    /// An input comes.
    pub(super) fn begin(&mut self) {
        *self = Work::default();
    }

    /// One step more; whether there is room for it.
    pub(super) fn step(&mut self) -> bool {
        self.actions.set(0);
        let room = self.steps < MAX_STEPS && self.packets_made.get() < STEP_PACKET_BUDGET;
        self.steps += u32::from(room);
        room
    }

    /// The machine has made a packet.
    pub(super) fn on_packet_made(&self) {
        self.packets_made.set(self.packets_made.get().saturating_add(1));
    }

    /// Whether what could wait is to wait for the next input.
    pub(super) fn is_full(&self) -> bool {
        self.packets_made.get() >= MAX_PACKETS_PER_INPUT
    }

    /// The application has done something: whether that is all for this step.
    pub(super) fn is_enough(&self) -> bool {
        self.actions.set(self.actions.get() + 1);
        self.actions.get() >= MAX_ACTIONS || self.packets_made.get() >= STEP_PACKET_BUDGET
    }

    /// Whether the steps are used up without a packet for each: what is due is mostly the application's.
    fn is_in_vain(&self) -> bool {
        self.steps == MAX_STEPS && self.packets_made.get() < MAX_STEPS
    }
}

/// Since when inputs have ended with work left.
#[derive(Debug, Default)]
pub(super) struct Behind(Option<Time>);

impl Behind {
    /// An input has come to its end at `now`; whether it has been too long.
    pub(super) fn look(&mut self, now: Time, work: &Work) -> bool {
        if !work.is_in_vain() {
            self.0 = None;
        }
        work.is_in_vain() && now.since(*self.0.get_or_insert(now)) >= LONGEST_BEHIND
    }
}
