//! Sent datagrams whose fate quinn has not reported, by the time they were sent, which is how quinn identifies packets.

use paceline_flow::quic::Snapshot;
use paceline_units::Time;
use std::collections::VecDeque;

/// A datagram, or its unreported part.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    sent: Time,
    left: Snapshot,
    bytes: u16,
}

/// A part of a datagram that quinn has reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) number: u32,
    pub(crate) left: Snapshot,
    pub(crate) bytes: u16,
}

/// Datagrams in sending order, numbered from 0. Those sent at the same instant are interchangeable.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    datagrams: VecDeque<Datagram>,
    first: u32,
    /// Their unreported bytes.
    bytes: u64,
}

impl SentLog {
    /// The number of the next datagram.
    pub(crate) fn next(&self) -> u32 {
        self.first.wrapping_add(self.datagrams.len() as u32)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.datagrams.len()
    }

    pub(crate) fn push(&mut self, sent: Time, left: Snapshot, bytes: u16) {
        self.bytes += u64::from(bytes);
        self.datagrams.push_back(Datagram { sent, left, bytes });
    }

    /// The next piece of up to `bytes` that was sent at `sent`; `None` if everything sent then has been reported.
    pub(crate) fn at(&mut self, sent: Time, bytes: u64) -> Option<Piece> {
        let at_once = self.datagrams.front().is_some_and(|oldest| oldest.sent >= sent);
        let begin = if at_once { 0 } else { self.datagrams.partition_point(|datagram| datagram.sent < sent) };
        let of_then = self.datagrams.range(begin..).take_while(|datagram| datagram.sent == sent);
        let nth = begin + of_then.take_while(|datagram| datagram.bytes == 0).count();
        let there = self.datagrams.get(nth).is_some_and(|datagram| datagram.sent == sent);
        there.then(|| self.take(nth, bytes))
    }

    /// The lost pieces if `bytes` are lost, the newest of which were sent at `sent`: everything older that is
    /// outstanding, and the rest from those sent then. Oldest first; if more is outstanding, because some packets only
    /// acknowledge, the most recently sent.
    pub(crate) fn until(&mut self, sent: Time, bytes: u64) -> Vec<Piece> {
        let begin = self.datagrams.partition_point(|datagram| datagram.sent < sent);
        let of_then = self.datagrams.range(begin..).take_while(|datagram| datagram.sent == sent);
        let one_of_then = of_then.map(|datagram| u64::from(datagram.bytes)).find(|&bytes| bytes > 0);
        let mut older = bytes.saturating_sub(one_of_then.unwrap_or(0));
        let (mut pieces, mut missing) = (Vec::new(), bytes);
        for nth in (0..begin).rev() {
            if older == 0 {
                break;
            }
            if self.datagrams[nth].bytes > 0 {
                let piece = self.take(nth, older);
                older -= u64::from(piece.bytes);
                missing -= u64::from(piece.bytes);
                pieces.push(piece);
            }
        }
        pieces.reverse();
        while missing > 0
            && let Some(piece) = self.at(sent, missing)
        {
            missing -= u64::from(piece.bytes);
            pieces.push(piece);
        }
        pieces
    }

    fn take(&mut self, nth: usize, bytes: u64) -> Piece {
        let datagram = &mut self.datagrams[nth];
        let taken = u64::from(datagram.bytes).min(bytes) as u16;
        datagram.bytes -= taken;
        self.bytes -= u64::from(taken);
        Piece { number: self.first.wrapping_add(nth as u32), left: datagram.left, bytes: taken }
    }

    /// Forgets what quinn will no longer report: everything before the number `before`, and the oldest beyond `max`
    /// bytes.
    pub(crate) fn prune(&mut self, before: u32, max: u64) {
        while let Some(oldest) = self.datagrams.front() {
            let old = before.wrapping_sub(self.first) as i32 > 0;
            if oldest.bytes > 0 && !old && self.bytes <= max {
                break;
            }
            self.bytes -= u64::from(oldest.bytes);
            self.datagrams.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(datagrams: &[(u64, u16)]) -> SentLog {
        let mut log = SentLog::default();
        datagrams.iter().for_each(|&(sent, bytes)| log.push(Time(sent), Snapshot::default(), bytes));
        log
    }

    fn numbers_and_bytes(pieces: &[Piece]) -> Vec<(u32, u16)> {
        pieces.iter().map(|piece| (piece.number, piece.bytes)).collect()
    }

    #[test]
    fn a_time_names_what_left_then() {
        let mut log = log(&[(1, 1000), (2, 1000), (2, 1000), (3, 500)]);
        let first = log.at(Time(2), 1000).unwrap();
        assert_eq!((first.number, first.bytes), (1, 1000));
        // two packets in one datagram
        assert_eq!(
            numbers_and_bytes(&[log.at(Time(2), 400).unwrap(), log.at(Time(2), 600).unwrap()]),
            [(2, 400), (2, 600)]
        );
        assert!(log.at(Time(2), 1).is_none(), "nothing more left then");
        assert!(log.at(Time(4), 1).is_none() && log.at(Time(0), 1).is_none());
        assert_eq!((log.bytes, log.next()), (1500, 4));
    }

    #[test]
    fn losses_are_the_newest_before_a_time() {
        let mut log = log(&[(1, 40), (2, 1000), (3, 1000), (4, 1000)]);
        assert_eq!(numbers_and_bytes(&log.until(Time(3), 1500)), [(1, 500), (2, 1000)]);
        assert_eq!(numbers_and_bytes(&log.until(Time(3), 9000)), [(0, 40), (1, 500)], "all that there is");
        assert_eq!(log.bytes, 1000);
        // of a burst, only as much as older datagrams do not account for
        let mut log = super::tests::log(&[(1, 1000), (2, 1000), (2, 1000), (2, 1000)]);
        assert_eq!(numbers_and_bytes(&log.until(Time(2), 2000)), [(0, 1000), (1, 1000)]);
    }

    #[test]
    fn what_is_not_told_of_is_forgotten() {
        let mut log = log(&[(1, 40), (2, 1000), (3, 1000), (4, 40), (5, 1000)]);
        log.prune(0, 10_000);
        assert_eq!((log.bytes, log.len()), (3080, 5));
        log.at(Time(2), 1000).unwrap();
        log.prune(1, 10_000);
        assert_eq!((log.first, log.bytes, log.next()), (2, 2040, 5), "and what was told of behind it");
        log.prune(1, 1040);
        assert_eq!((log.first, log.bytes), (3, 1040));
    }
}
