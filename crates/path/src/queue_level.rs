//! The queue level over time, updated at each change.

/// Integrals over time, from time zero, of the queue level and of its square: `[packets, bytes]`, times nanoseconds.
/// Sums of integers, so exact up to 2^53 and then to about one part in 10^12.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Integrals {
    pub first: [f64; 2],
    pub second: [f64; 2],
}

/// Receives how long each level lasted.
pub(crate) trait Watch {
    /// `packets` and `bytes` waited for `span` nanoseconds.
    fn lasted(&mut self, level: [f64; 2], span: f64);
}

/// Ignores it.
impl Watch for () {
    #[inline(always)]
    fn lasted(&mut self, _: [f64; 2], _: f64) {}
}

/// The queue level and its integrals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    /// Waiting packets and bytes. Integers, stored as floats to avoid a conversion at each step.
    now: [f64; 2],
    /// The time up to which the integrals are computed. While nothing waits they need no update.
    reached: u64,
    pub(crate) integrals: Integrals,
}

impl Level {
    /// Extends the integrals to `time`; the level has been constant since the last call.
    #[inline(always)]
    pub(crate) fn integrate(&mut self, time: u64, watch: &mut impl Watch) {
        // Converting via i64 is one instruction.
        let span = (time - self.reached) as i64 as f64;
        self.reached = time;
        watch.lasted(self.now, span);
        for i in 0..2 {
            let area = self.now[i] * span;
            self.integrals.first[i] += area;
            self.integrals.second[i] += area * self.now[i];
        }
    }

    /// Changes packets and bytes together, so that the compiler vectorizes it.
    #[inline(always)]
    pub(crate) fn change(&mut self, time: u64, by: [f64; 2], watch: &mut impl Watch) {
        self.integrate(time, watch);
        for (now, by) in self.now.iter_mut().zip(by) {
            *now += by;
        }
    }
}
