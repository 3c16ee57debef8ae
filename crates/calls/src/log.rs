//! The log of a call, at one of its ends.

pub use paceline_packet::rtp::Ssrc;
use paceline_units::{Span, Time};

/// Direction of a packet, as that end sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// An RTP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpPacket {
    /// When it was sent or received, from the log's beginning.
    pub at: Time,
    /// Its direction.
    pub way: Way,
    /// Its stream.
    pub ssrc: Ssrc,
    /// Its RTP sequence number.
    pub number: u16,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Whether it ends a video frame.
    pub marker: bool,
    /// Its payload type.
    pub payload_type: u8,
    /// Bytes of its payload, without padding.
    pub payload: u32,
    /// Bytes of RTP header and padding.
    pub beside: u32,
    /// Its transport-wide sequence number, if it has one.
    pub transport: Option<u16>,
}

/// A compound RTCP packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RtcpPacket {
    /// When it was sent or received, from the log's beginning.
    pub at: Time,
    /// Its direction.
    pub way: Way,
    /// Its bytes on the wire; a log may have removed packets from it.
    pub bytes: Vec<u8>,
}

/// The part of a controller that an estimate comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// GCC's delay-based estimate.
    Delay,
    /// GCC's estimate after losses, the one in use.
    Loss,
    /// SCReAM's target rate.
    Scream,
}

/// An estimate of the end's own controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// When it changed to this.
    pub at: Time,
    /// The part of the controller.
    pub of: Estimator,
    /// The rate in bit/s.
    pub rate: u64,
}

/// A probe cluster: the packets sent after `at`, until both minimums are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// When it starts.
    pub at: Time,
    /// Minimum packets.
    pub packets: u32,
    /// Minimum bytes, including RTP's headers.
    pub bytes: u32,
}

/// The log of a call at one of its ends. Packets are in order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallLog {
    /// Milliseconds since 1970 at the beginning, if logged.
    pub began: Option<i64>,
    /// RTP packets.
    pub rtp: Vec<RtpPacket>,
    /// RTCP packets.
    pub rtcp: Vec<RtcpPacket>,
    /// The controller's estimates.
    pub estimates: Vec<Estimate>,
    /// The probe clusters sent; requested clusters that were never sent are left out.
    pub clusters: Vec<Cluster>,
    /// Bytes of the headers below RTP: IP, UDP, and others that the log counts.
    pub overhead: u32,
    /// Whether the log ends in the middle of a message.
    pub cut: bool,
}

impl CallLog {
    /// Maximum duration of a log.
    pub const LONGEST: Span = Span::from_secs(7 * 86_400);

    /// Time from the beginning to the last entry.
    #[must_use]
    pub fn lasts(&self) -> Span {
        let rtp = self.rtp.iter().map(|packet| packet.at);
        let all = rtp.chain(self.rtcp.iter().map(|packet| packet.at));
        let all = all.chain(self.estimates.iter().map(|estimate| estimate.at));
        let all = all.chain(self.clusters.iter().map(|cluster| cluster.at));
        all.max().unwrap_or(Time::ZERO).since(Time::ZERO)
    }
}
