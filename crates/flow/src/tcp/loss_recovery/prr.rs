//! Proportional rate reduction: reduces a window to ssthresh over a round trip (RFC 9937, which replaces RFC 6937).
//!
//! Below ssthresh, the conservative bound applies (PRR-CRB). An acknowledgement that advances `una` and reports no
//! further loss (`SafeACK`) allows the slow-start bound's additional segment (PRR-SSRB). The kernel's
//! `tcp_cwnd_reduction` does the same.

/// A reduction under way, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prr {
    /// Segments in flight before it (RecoverFS; in the kernel, the window), and the window after it.
    prior: u32,
    ssthresh: u32,
    /// Segments delivered and sent since it began.
    delivered: u32,
    pub(super) out: u32,
    /// The number of segments that may be in flight now.
    pub(super) window: u32,
}

impl Prr {
    pub(super) fn new(prior: u32, ssthresh: u32) -> Prr {
        Prr { prior: prior.max(1), ssthresh, delivered: 0, out: 0, window: prior.max(1) }
    }

    /// Processes an acknowledgement that delivers `delivered` segments; `pipe` are in flight. `safe`: it advances `una`
    /// and reports no further loss.
    pub(super) fn on_ack(&mut self, pipe: u32, delivered: u32, safe: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(delivered);
        let send = if pipe > self.ssthresh {
            // RFC 9937 section 6: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let share = u64::from(self.ssthresh) * u64::from(self.delivered);
            (share.div_ceil(u64::from(self.prior)) as u32).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + u32::from(safe);
            limit.min(self.ssthresh - pipe)
        };
        // the fast retransmission is always sent
        let send = send.max(u32::from(self.out == 0));
        self.window = pipe.saturating_add(send).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 section 3.1, first example: 20 segments out, one lost, ssthresh 10, 19 acknowledgements. The window is
    /// RecoverFS = 20. RACK marks the lost segment at the third report.
    #[test]
    fn rfc_6937_3_1_a_single_loss() {
        let mut prr = Prr::new(20, 10);
        let (mut pipe, mut pattern) = (17, Vec::new()); // 20, minus the first three: one lost, two reported before
        for _ in 0..17 {
            prr.on_ack(pipe, 1, false);
            let send = prr.window - pipe;
            pattern.push(send);
            prr.out += send;
            pipe = pipe + send - 1;
        }
        // one segment for every two acknowledgements: the example's pattern R _ N _ N _ ...
        assert_eq!(pattern[..14], [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!((prr.out, pipe, prr.window), (9, 9, 10));
    }

    /// Section 3.1, second example: 15 of 20 segments are lost; four acknowledgements find them, so 4 segments may be
    /// sent.
    #[test]
    fn rfc_6937_3_1_a_burst_of_losses() {
        let mut prr = Prr::new(20, 10);
        // the acknowledgement of segment 16 arrives, and all segments below it are lost: pipe 4, then 3, 2, 1
        let mut pipe = 4;
        for (i, safe) in [false, false, true, true].into_iter().enumerate() {
            prr.on_ack(pipe, 1, safe);
            let send = prr.window - pipe;
            // conservation: one for one; if `una` advances, one more (slow start)
            assert_eq!(send, if safe { 2 } else { 1 }, "{i}");
            prr.out += send;
            pipe = pipe + send - 1;
        }
        // slow start ends at ssthresh
        prr.on_ack(10, 1, true);
        assert_eq!(prr.window, 10);
        prr.on_ack(9, 5, true);
        assert_eq!(prr.window, 10);
    }

    #[test]
    fn rfc_6937_3_what_was_missed_is_made_up() {
        let mut prr = Prr::new(20, 10);
        prr.on_ack(8, 4, false); // prr_out 0: the application had no data, or the first acknowledgement delivers four
        assert_eq!(prr.window, 10, "min(ssthresh - pipe, limit)");
        prr.on_ack(2, 4, false);
        assert_eq!(prr.window, 10, "prr_delivered - prr_out = 8");
    }
}
