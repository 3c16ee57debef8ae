//! The messages of libwebrtc's event logs that are read here, with their field numbers
//! (logging/rtc_event_log/rtc_event_log2.proto). Incoming and outgoing packets share them.

/// RTP packets of one source and direction: the first packet's values, then differences.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RtpBatch {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(bool, optional, tag = "2")]
    pub marker: Option<bool>,
    #[prost(uint32, optional, tag = "3")]
    pub payload_type: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub sequence_number: Option<u32>,
    #[prost(fixed32, optional, tag = "5")]
    pub rtp_timestamp: Option<u32>,
    #[prost(fixed32, optional, tag = "6")]
    pub ssrc: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub payload_size: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub header_size: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub padding_size: Option<u32>,
    #[prost(uint32, optional, tag = "11")]
    pub number_of_deltas: Option<u32>,
    #[prost(uint32, optional, tag = "15")]
    pub transport_sequence_number: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub marker_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "103")]
    pub payload_type_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "104")]
    pub sequence_number_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "105")]
    pub rtp_timestamp_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "106")]
    pub ssrc_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "108")]
    pub payload_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "109")]
    pub header_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "110")]
    pub padding_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "115")]
    pub transport_sequence_number_deltas: Vec<u8>,
}

/// RTCP packets of one direction, as on the wire except for what libwebrtc does not log (SDES, APP).
#[derive(Clone, PartialEq, prost::Message)]
pub struct RtcpBatch {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub raw_packet: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "3")]
    pub number_of_deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub raw_packet_blobs: Vec<u8>,
}

/// The beginning of a log.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BeginLog {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub version: Option<u32>,
    #[prost(int64, optional, tag = "3")]
    pub utc_time_ms: Option<i64>,
}

/// Changes of the loss-based estimate.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LossBasedUpdates {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub bitrate_bps: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub number_of_deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub bitrate_bps_deltas: Vec<u8>,
}

/// Changes of the delay-based estimate.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DelayBasedUpdates {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub bitrate_bps: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub number_of_deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub bitrate_bps_deltas: Vec<u8>,
}

/// Changes of SCReAM's target, if libwebrtc runs it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScreamUpdates {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(uint32, optional, tag = "3")]
    pub target_rate_kbps: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    pub number_of_deltas: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "103")]
    pub target_rate_kbps_deltas: Vec<u8>,
}

/// The beginning of a probe cluster.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProbeCluster {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub id: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub min_packets: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub min_bytes: Option<u32>,
}

/// The result of a probe cluster, or why it failed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProbeResult {
    #[prost(uint32, optional, tag = "2")]
    pub id: Option<u32>,
}

/// A change of the path.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RouteChange {
    #[prost(int64, optional, tag = "1")]
    pub timestamp_ms: Option<i64>,
    /// Bytes of the headers below RTP.
    #[prost(uint32, optional, tag = "3")]
    pub overhead: Option<u32>,
}
