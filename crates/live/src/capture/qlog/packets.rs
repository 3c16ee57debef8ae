//! Simulated packets as a log has them.

use paceline_packet::quic::{AckRange, Frame as Simulated};
use paceline_packet::{Block, Extra};
use paceline_qlog::write::{CloseError, EcnCounts, ErrorCode, Frame, PacketKind, StreamKind};
use paceline_units::Span;
use std::slice;

/// ACK_FREQUENCY (draft-ietf-quic-ack-frequency), for which qlog has no word.
const ACK_FREQUENCY: u64 = 0xaf;

/// A packet's frames, and of each ACK among them its ranges; kept from packet to packet.
#[derive(Debug, Default)]
pub(super) struct Content {
    frames: Vec<Simulated>,
    ranges: Vec<Vec<(u64, u64)>>,
}

impl Content {
    /// What a packet with this side record has in it.
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

    /// The number of the first packet of its connection, if the packet says so: it is one of the first.
    pub(super) fn connection(&self) -> Option<u32> {
        self.frames.iter().find_map(|frame| match frame {
            Simulated::Crypto { connection, .. } | Simulated::Early { connection, .. } => Some(*connection),
            _ => None,
        })
    }

    /// The error with which it closes the connection, if it does.
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

    /// Packets of the simulator share a number space, as 0-RTT and 1-RTT packets do (RFC 9000 section 12.3): were those with the
    /// handshake's bytes told as Initial and Handshake packets, no acknowledgement would fit them.
    pub(super) fn kind(&self) -> PacketKind {
        let early = self.frames.iter().any(|frame| matches!(frame, Simulated::Early { zero_rtt: true, .. }));
        if early { PacketKind::ZeroRtt } else { PacketKind::OneRtt }
    }

    /// The frames; `l4s`: ECN-capable packets of this flow leave with ECT(1).
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

/// A frame as the log has it; `None`: it stands for what a packet's header says.
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
