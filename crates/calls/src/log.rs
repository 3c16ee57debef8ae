//! What has been logged of a call, at one of its ends.

pub use paceline_packet::rtp::Ssrc;
use paceline_units::{Span, Time};

/// Which way a packet went, as that end sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// It came.
    In,
    /// It left.
    Out,
}

/// A packet of RTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpPacket {
    /// When it passed, from the log's beginning on.
    pub at: Time,
    /// Which way.
    pub way: Way,
    /// Its stream.
    pub ssrc: Ssrc,
    /// Its number there.
    pub number: u16,
    /// Its timestamp.
    pub timestamp: u32,
    /// Whether it ends a frame, of video.
    pub marker: bool,
    /// What it carries.
    pub payload_type: u8,
    /// Bytes of its payload, without padding.
    pub payload: u32,
    /// Bytes of RTP's header and of padding.
    pub beside: u32,
    /// Its transport-wide number, if it has one.
    pub transport: Option<u16>,
}

/// A compound packet of RTCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RtcpPacket {
    /// When it passed, from the log's beginning on.
    pub at: Time,
    /// Which way.
    pub way: Way,
    /// As it went over the wire; a log may have cut packets out of it.
    pub bytes: Vec<u8>,
}

/// Whose estimate it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// GCC's, from delays.
    Delay,
    /// GCC's after losses: what it goes by.
    Loss,
    /// SCReAM's.
    Scream,
}

/// What the end's own controller thought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// When it became so.
    pub at: Time,
    /// Which part of the controller.
    pub of: Estimator,
    /// In bits a second.
    pub rate: u64,
}

/// A cluster of probes: what leaves after `at`, until there are so many packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// When it begins.
    pub at: Time,
    /// At least.
    pub packets: u32,
    /// At least, with RTP's headers.
    pub bytes: u32,
}

/// A call at one of its ends. Packets are in the order of their times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallLog {
    /// Milliseconds since 1970 at the beginning, if the log tells.
    pub began: Option<i64>,
    /// RTP.
    pub rtp: Vec<RtpPacket>,
    /// RTCP.
    pub rtcp: Vec<RtcpPacket>,
    /// What its controller thought.
    pub estimates: Vec<Estimate>,
    /// What it sent as probes: clusters that were asked for and never left are left out.
    pub clusters: Vec<Cluster>,
    /// Bytes of the headers below RTP's: IP's, UDP's, and what else the log counts.
    pub overhead: u32,
    /// The log ends in the middle of a message.
    pub cut: bool,
}

impl CallLog {
    /// Logs that last longer are none that can be worked with.
    pub const LONGEST: Span = Span::from_secs(7 * 86_400);

    /// From the beginning to what is logged last.
    #[must_use]
    pub fn lasts(&self) -> Span {
        let rtp = self.rtp.iter().map(|packet| packet.at);
        let all = rtp.chain(self.rtcp.iter().map(|packet| packet.at));
        let all = all.chain(self.estimates.iter().map(|estimate| estimate.at));
        let all = all.chain(self.clusters.iter().map(|cluster| cluster.at));
        all.max().unwrap_or(Time::ZERO).since(Time::ZERO)
    }
}
