//! Proportional rate reduction: how a window shrinks to ssthresh over a round trip (RFC 9937, before it RFC 6937).
//!
//! Below ssthresh the conservative bound (PRR-CRB); for an acknowledgement that moves the left edge and tells of no further loss
//! (`SafeACK`) the slow-start bound's additional segment (PRR-SSRB). The kernel's `tcp_cwnd_reduction` is the same.

/// A reduction under way, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prr {
    /// What was in flight before it (RecoverFS; the kernel: the window), and the window after it.
    prior: u32,
    ssthresh: u32,
    /// Delivered and sent since it began.
    delivered: u32,
    pub(super) out: u32,
    /// What may be in flight now.
    pub(super) window: u32,
}

impl Prr {
    pub(super) fn new(prior: u32, ssthresh: u32) -> Prr {
        Prr { prior: prior.max(1), ssthresh, delivered: 0, out: 0, window: prior.max(1) }
    }

    /// An acknowledgement has told of `delivered` segments; `pipe` are in flight. `safe`: it has moved the left edge
    /// and told of no further loss.
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
        // a fast retransmission leaves in any case
        let send = send.max(u32::from(self.out == 0));
        self.window = pipe.saturating_add(send).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 section 3.1, first example: 20 segments out, one is lost, ssthresh 10, 19 acknowledgements. The window is
    /// RecoverFS = 20. RACK counts the lost segment at the third report.
    #[test]
    fn rfc_6937_3_1_a_single_loss() {
        let mut prr = Prr::new(20, 10);
        let (mut pipe, mut pattern) = (17, Vec::new()); // 20, less the first three: one lost, two reported before
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

    /// Section 3.1, second example: 15 of 20 segments are lost, four acknowledgements find them: 4 to go on with.
    #[test]
    fn rfc_6937_3_1_a_burst_of_losses() {
        let mut prr = Prr::new(20, 10);
        // the acknowledgement of segment 16, and all below 16 are lost: pipe 4, and 3, 2, 1 after it
        let mut pipe = 4;
        for (i, safe) in [false, false, true, true].into_iter().enumerate() {
            prr.on_ack(pipe, 1, safe);
            let send = prr.window - pipe;
            // conservation: one for one; with the left edge moving, one more (slow start)
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
        prr.on_ack(8, 4, false); // prr_out 0: the application had nothing, or the first acknowledgement tells of four
        assert_eq!(prr.window, 10, "min(ssthresh - pipe, limit)");
        prr.on_ack(2, 4, false);
        assert_eq!(prr.window, 10, "prr_delivered - prr_out = 8");
    }
}
