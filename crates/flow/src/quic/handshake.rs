//! The handshake's time and bytes (RFC 9001): an Initial, an answer, a Finished. Keys and certificates are not
//! modelled.

use super::connection::{Connection, End, Phase};
use super::ranges::Ranges;
use super::{Handshake, QuicConfig};
use crate::tls::{ANSWER, FINISHED, HELLO, RESUMED};
use core::ops::Range;
use paceline_packet::quic::Frame;

/// Before the other end's address is validated, at most this many times the bytes received may be sent (RFC 9000
/// section 8.1).
const AMPLIFICATION: u64 = 3;

/// The sending side of the handshake's bytes (CRYPTO frames).
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

    /// Whether there is anything to send.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.next < self.written || !self.lost.is_empty()
    }

    /// The next range of at most `max` bytes, and whether it was sent before; it counts as sent.
    pub(super) fn take(&mut self, max: u64) -> Option<(Range<u64>, bool)> {
        let (run, again) = match self.lost.first() {
            Some(lost) => (lost.start..lost.end.min(lost.start + max), true),
            None => (self.next..self.written.min(self.next + max), false),
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

/// The handshake's bytes in both directions, and the validation of the other end's address.
#[derive(Debug)]
pub(super) struct HandshakeState {
    pub(super) crypto: CryptoOut,
    crypto_in: Ranges,
    /// Bytes received and sent before the other end's address is validated; `None` after that.
    pub(super) unvalidated: Option<(u64, u64)>,
}

impl HandshakeState {
    /// The state before the first packet.
    pub(super) fn new(end: End, config: &QuicConfig) -> HandshakeState {
        let validates = end == End::Server && config.handshake != Handshake::Done;
        // a client that resumes a session and sends requests in its first flight presents an address token (RFC 9000
        // section 8.1.3)
        let known = config.request.is_some() && config.handshake == Handshake::ZeroRtt;
        let received = if known { u64::MAX / (2 * AMPLIFICATION) } else { 0 };
        HandshakeState {
            crypto: CryptoOut::default(),
            crypto_in: Ranges::default(),
            unvalidated: validates.then_some((received, 0)),
        }
    }
}

impl Connection {
    /// The number of handshake bytes from the other end that this end needs to proceed.
    fn expected(&self) -> u64 {
        match (self.end, self.config.handshake) {
            (End::Server, _) => HELLO,
            (End::Client, Handshake::ZeroRtt) => RESUMED,
            (End::Client, _) => ANSWER,
        }
    }

    /// Processes handshake bytes.
    #[cold]
    pub(super) fn on_crypto(&mut self, offset: u64, length: u64) {
        self.handshake.crypto_in.insert(offset..offset + length, |_| {});
        let have = self.handshake.crypto_in.prefix();
        if self.phase == Phase::Opening && have >= self.expected() {
            match self.end {
                End::Client => {
                    self.phase = Phase::Established;
                    self.handshake.crypto.write(FINISHED);
                    self.request_ack_frequency(self.config.request.is_none());
                }
                // the server may also send now, but has nothing before a request
                End::Server => {
                    self.phase = Phase::Established;
                    let resumes = self.config.handshake == Handshake::ZeroRtt;
                    self.handshake.crypto.write(if resumes { RESUMED } else { ANSWER });
                    self.request_ack_frequency(self.config.request.is_some());
                }
            }
        }
        if self.end == End::Server && have >= HELLO + FINISHED && self.handshake.unvalidated.take().is_some() {
            self.control.push_back(Frame::HandshakeDone);
        }
    }

    /// Requests less frequent acknowledgements, at the end that `sends` the data (draft-ietf-quic-ack-frequency).
    fn request_ack_frequency(&mut self, sends: bool) {
        let (threshold, delay) = (self.config.ack_threshold, self.config.max_ack_delay.0 / 1000);
        if sends && threshold != self.config.first_ack_threshold() {
            self.control.push_back(Frame::AckFrequency { threshold, delay: delay.min(u64::from(u32::MAX)) as u32 });
        }
    }

    /// Whether the other end's address is not validated, and `bytes` more would exceed the anti-amplification limit.
    pub(super) fn is_amplifying(&self, bytes: u16) -> bool {
        self.handshake.unvalidated.is_some_and(|(received, left)| left + u64::from(bytes) > AMPLIFICATION * received)
    }
}
