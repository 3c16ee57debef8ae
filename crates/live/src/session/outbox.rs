//! Outgoing datagrams.

use super::EcnBits;

/// A datagram to be sent at once: its header, and zeros as payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing<'a> {
    /// Bytes written by the codec.
    pub header: &'a [u8],
    /// Bytes of payload after it, all zero.
    pub payload: u16,
    /// The ECN field to send; never `Ce`.
    pub ecn: EcnBits,
}

impl Outgoing<'_> {
    /// Length of the datagram in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.len() + usize::from(self.payload)
    }

    /// Whether it has no bytes, which is true of no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The datagrams that a session sends because of one input, in order. It is reused, so no memory is allocated per
/// datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// End of the header, the payload's length, the ECN field.
    list: Vec<(usize, u16, EcnBits)>,
}

impl Outbox {
    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }

    /// Number of datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a datagram whose header `write` appends; adds nothing if that appends nothing.
    pub(crate) fn push(&mut self, payload: u16, ecn: EcnBits, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        if self.bytes.len() > before {
            self.list.push((self.bytes.len(), payload, ecn));
        }
    }

    /// Adds a copy of a datagram.
    pub(crate) fn push_copy(&mut self, datagram: &Outgoing<'_>) {
        self.push(datagram.payload, datagram.ecn, |to| to.extend_from_slice(datagram.header));
    }

    /// Removes and returns the datagrams whose header `is` selects.
    pub(crate) fn take(&mut self, is: impl Fn(&[u8]) -> bool) -> Outbox {
        let (mut taken, mut left) = (Outbox::default(), Outbox::default());
        if self.iter().any(|datagram| is(datagram.header)) {
            for datagram in self.iter() {
                if is(datagram.header) { &mut taken } else { &mut left }.push_copy(&datagram);
            }
            *self = left;
        }
        taken
    }

    /// The datagrams, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Outgoing<'_>> {
        self.list.iter().enumerate().map(|(i, &(end, payload, ecn))| {
            let start = if i == 0 { 0 } else { self.list[i - 1].0 };
            Outgoing { header: &self.bytes[start..end], payload, ecn }
        })
    }
}
