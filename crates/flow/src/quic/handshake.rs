//! The handshake as it costs time and bytes (RFC 9001): an Initial, an answer, an end. Keys and certificates are not there.

use super::ranges::Ranges;
use core::ops::Range;

/// Until the other end's address is validated, no more than so many times what came may leave (RFC 9000 section 8.1).
pub(super) const AMPLIFICATION: u64 = 3;

/// One direction of the handshake's bytes, as its sender sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct CryptoOut {
    written: u64,
    next: u64,
    acked: Ranges,
    lost: Ranges,
}

impl CryptoOut {
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Whether something is to leave.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.next < self.written || !self.lost.is_empty()
    }

    /// The next run of at most `most` bytes, and whether it was sent before; it is taken to leave.
    pub(super) fn take(&mut self, most: u64) -> Option<(Range<u64>, bool)> {
        let (run, again) = match self.lost.first() {
            Some(lost) => (lost.start..lost.end.min(lost.start + most), true),
            None => (self.next..self.written.min(self.next + most), false),
        };
        if run.is_empty() {
            return None;
        }
        if again {
            self.lost.remove(run.clone());
        } else {
            self.next = run.end;
        }
        Some((run, again))
    }

    pub(super) fn acked(&mut self, run: Range<u64>) {
        self.lost.remove(run.clone());
        self.acked.insert(run, |_| {});
    }

    pub(super) fn lost(&mut self, run: Range<u64>) {
        self.lost.insert_without(run, &self.acked);
    }
}
