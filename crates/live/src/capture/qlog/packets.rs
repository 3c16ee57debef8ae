//! Simulated packets in the form of a log.

use paceline_packet::quic::{AckRange, Frame as Simulated};
use paceline_packet::{Block, Extra};
use paceline_qlog::write::{CloseError, EcnCounts, ErrorCode, Frame, PacketKind, StreamKind};
use paceline_units::Span;
use std::slice;

/// ACK_FREQUENCY (draft-ietf-quic-ack-frequency), for which qlog has no name.
const ACK_FREQUENCY: u64 = 0xaf;

/// A packet's frames, and the ranges of each ACK frame among them.
#[derive(Debug, Default)]
pub(super) struct Content {
    frames: Vec<Simulated>,
    ranges: Vec<Vec<(u64, u64)>>,
}

impl Content {
    /// The content of a packet with this side record.
    pub(super) fn of(extra: Option<&Extra>) -> Content {
        let frames = match extra {
            Some(Extra::Quic(frames)) => frames.to_vec(),
            Some(Extra::QuicStream(piece)) => vec![Simulated::Stream(*piece)],
            Some(Extra::QuicAck(range)) => vec![Simulated::Ack(*range, Box::default())],
            _ => Vec::new(),
        };
        let ranges = frames.iter().map(|frame| match frame {
            Simulated::Ack(range, more) => ranges(range, more),
            _ => Vec::new(),
        });
        Content { ranges: ranges.collect(), frames }
    }

    /// The number of its connection's first packet, if the packet is one of the first and contains it.
    pub(super) fn connection(&self) -> Option<u32> {
        self.frames.iter().find_map(|frame| match frame {
            Simulated::Crypto { connection, .. } | Simulated::Early { connection, .. } => Some(*connection),
            _ => None,
        })
    }

    /// The error code if the packet closes the connection.
    pub(super) fn closes(&self) -> Option<u32> {
        self.frames.iter().find_map(|frame| match frame {
            Simulated::Close { code } => Some(*code),
            _ => None,
        })
    }

    /// Whether it confirms the handshake.
    pub(super) fn confirms(&self) -> bool {
        self.frames.contains(&Simulated::HandshakeDone)
    }

    /// The simulator's packets share a number space, as 0-RTT and 1-RTT packets do (RFC 9000 section 12.3): if packets
    /// with handshake bytes were logged as Initial and Handshake packets, acknowledgements would not match them.
    pub(super) fn kind(&self) -> PacketKind {
        let early = self.frames.iter().any(|frame| matches!(frame, Simulated::Early { zero_rtt: true, .. }));
        if early { PacketKind::ZeroRtt } else { PacketKind::OneRtt }
    }

    /// The frames; `l4s`: this flow's ECN-capable packets are sent with ECT(1).
    pub(super) fn frames(&self, l4s: bool) -> Vec<Frame<'_>> {
        let all = self.frames.iter().zip(&self.ranges);
        all.filter_map(|(frame, ranges)| written(frame, ranges, l4s)).collect()
    }
}

/// First and last number of each range of an acknowledgement, newest first.
fn ranges(range: &AckRange, more: &[Block]) -> Vec<(u64, u64)> {
    let older = slice::from_ref(&range.older).iter().chain(more).filter(|block| block.end > block.start);
    let older = older.map(|block| (u64::from(block.start), u64::from(block.end) - 1));
    let newest = (u64::from(range.smallest), u64::from(range.largest));
    std::iter::once(newest).chain(older).collect()
}

/// A frame in the log's form; `None` if it represents part of a packet's header.
fn written<'a>(frame: &Simulated, ranges: &'a [(u64, u64)], l4s: bool) -> Option<Frame<'a>> {
    Some(match *frame {
        Simulated::Ack(AckRange { delay, ect, ce, .. }, _) => {
            let (ect0, ect1) = if l4s { (0, ect) } else { (ect, 0) };
            let counts = EcnCounts { ect0: ect0.into(), ect1: ect1.into(), ce: ce.into() };
            let ecn = (ect > 0 || ce > 0).then_some(counts);
            Frame::Ack { delay: Some(Span::from_micros(delay.into())), ranges, ecn }
        }
        Simulated::AckFrequency { .. } => Frame::Unknown { kind: ACK_FREQUENCY },
        Simulated::Close { code } => Frame::ConnectionClose { error: CloseError::Transport(code.into()), reason: "" },
        Simulated::Crypto { offset, length, .. } => Frame::Crypto { offset: offset.into(), length: length.into() },
        Simulated::DataBlocked(limit) => Frame::DataBlocked { limit },
        Simulated::Datagram { length, .. } => Frame::Datagram { length: length.into() },
        Simulated::Early { .. } => return None,
        Simulated::HandshakeDone => Frame::HandshakeDone,
        Simulated::MaxData(maximum) => Frame::MaxData { maximum },
        Simulated::MaxStreamData { stream, limit } => Frame::MaxStreamData { id: stream.into(), maximum: limit },
        Simulated::MaxStreams(limit) => Frame::MaxStreams { kind: StreamKind::Unidirectional, maximum: limit.into() },
        Simulated::Padding(length) => Frame::Padding { length: length.into() },
        Simulated::Ping => Frame::Ping,
        Simulated::ResetStream { stream, size } => {
            Frame::ResetStream { id: stream.into(), error: ErrorCode(0), final_size: size }
        }
        Simulated::Stream(piece) => {
            Frame::Stream { id: piece.stream.into(), offset: piece.offset, length: piece.length.into(), fin: piece.fin }
        }
        Simulated::StreamDataBlocked { stream, limit } => Frame::StreamDataBlocked { id: stream.into(), limit },
        Simulated::StreamsBlocked(limit) => {
            Frame::StreamsBlocked { kind: StreamKind::Unidirectional, limit: limit.into() }
        }
    })
}
