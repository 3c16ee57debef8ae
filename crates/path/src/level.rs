//! How much waits over time, where it is known only as it changes.

/// Integrals over time, from the beginning of the clock, of the queue and of its square: `[packets, bytes]`, times
/// nanoseconds. Sums of whole numbers, so exact up to 2^53 and then to about one part in 10^12.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Integrals {
    pub first: [f64; 2],
    pub second: [f64; 2],
}

/// Who is told how long each level lasted.
pub(crate) trait Watch {
    /// `packets` and `bytes` waited for `span` nanoseconds.
    fn lasted(&mut self, level: [f64; 2], span: f64);
}

/// Nobody.
impl Watch for () {
    #[inline(always)]
    fn lasted(&mut self, _: [f64; 2], _: f64) {}
}

/// How much waits, and its integrals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    /// What waits: packets and bytes. Whole numbers; as floats they need not be made ones with each step.
    now: [f64; 2],
    /// Up to when the integrals reach. While nothing waits they need not be carried on.
    reached: u64,
    pub(crate) integrals: Integrals,
}

impl Level {
    /// Carries the integrals on to `time`, up to which the level has been as it is.
    #[inline(always)]
    pub(crate) fn integrate(&mut self, time: u64, watch: &mut impl Watch) {
        // By way of i64, which is one instruction.
        let span = (time - self.reached) as i64 as f64;
        self.reached = time;
        watch.lasted(self.now, span);
        for i in 0..2 {
            let area = self.now[i] * span;
            self.integrals.first[i] += area;
            self.integrals.second[i] += area * self.now[i];
        }
    }

    /// Both at once, so that it is done with vectors.
    #[inline(always)]
    pub(crate) fn change(&mut self, time: u64, by: [f64; 2], watch: &mut impl Watch) {
        self.integrate(time, watch);
        for (now, by) in self.now.iter_mut().zip(by) {
            *now += by;
        }
    }
}
