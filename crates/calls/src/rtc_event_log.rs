//! libwebrtc's event logs (RtcEventLog): protobuf, a stream of messages in batches; version 2, used since 2019.
//!
//! Chromium writes them with `--webrtc-event-logging=DIR`, applications with `StartRtcEventLog`. Logs are untrusted:
//! lengths and counts are bounded before use. A truncated log is read up to its end. Source:
//! logging/rtc_event_log/rtc_event_log2.proto and rtc_event_log_parser.cc of libwebrtc.

mod deltas;
mod messages;

use crate::log::{CallLog, Cluster, Estimate, Estimator, RtcpPacket, RtpPacket, Way};
use messages::{
    BeginLog, DelayBasedUpdates, LossBasedUpdates, ProbeCluster, ProbeResult, RouteChange, RtcpBatch, RtpBatch,
    ScreamUpdates,
};
use paceline_packet::UDP_IPV4;
use paceline_packet::rtp::Ssrc;
use paceline_units::Time;
use prost::Message;
use prost::encoding::{decode_key, decode_varint};
use std::collections::BTreeSet;

/// First bytes of a log: the key of its first message, `BeginLogEvent`.
pub const MAGIC: [u8; 2] = [0x82, 0x01];
/// The supported version.
pub const VERSION: u32 = 2;
/// Maximum packets and estimates of a log.
pub const MAX_EVENTS: usize = 2_000_000;

/// First byte of a log in the first format: the key of an event.
const OLD: u8 = 0x0a;

/// Field numbers of the messages in the stream.
mod field {
    pub const RTP_IN: u32 = 2;
    pub const RTP_OUT: u32 = 3;
    pub const RTCP_IN: u32 = 4;
    pub const RTCP_OUT: u32 = 5;
    pub const BEGIN: u32 = 16;
    pub const LOSS_BASED: u32 = 18;
    pub const DELAY_BASED: u32 = 19;
    pub const CLUSTER: u32 = 21;
    pub const PROBED: u32 = 22;
    pub const PROBED_IN_VAIN: u32 = 23;
    pub const ROUTE: u32 = 32;
    pub const SCREAM: u32 = 35;
}

/// Why a log cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogError {
    /// It is something else.
    #[error("it is no event log of libwebrtc")]
    Other,
    /// The format before version 2.
    #[error("it is an event log of libwebrtc's first format, which ended in 2019; version {VERSION} is read")]
    Old,
    /// An unsupported version.
    #[error("it is an event log of libwebrtc in version {0}; version {VERSION} is read")]
    Version(u32),
    /// A message is invalid.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It is too long.
    #[error("it has more than {MAX_EVENTS} packets and estimates")]
    TooLong,
}

/// Reads a log. A truncated log is no error.
///
/// # Errors
/// The bytes are no log, of another version, damaged, or too long.
pub fn read(bytes: &[u8]) -> Result<CallLog, LogError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(if bytes.first() == Some(&OLD) { LogError::Old } else { LogError::Other });
    }
    let mut reader = Reader::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((number, message)) = next(&mut rest)? else {
            reader.log.cut = true;
            break;
        };
        reader.message(number, message)?;
    }
    let Reader { mut log, overhead, clusters, results, .. } = reader;
    // A cluster that the sender's pacer never began has no result. If the log has no results at all, keep every
    // cluster.
    let left = clusters.into_iter().filter(|(id, _)| results.is_empty() || results.contains(id));
    log.clusters = left.map(|(_, cluster)| cluster).collect();
    log.overhead = overhead.unwrap_or(UDP_IPV4 as u32);
    in_order(&mut log.rtp);
    log.rtcp.sort_by_key(|packet| packet.at);
    log.estimates.sort_by_key(|estimate| estimate.at);
    log.clusters.sort_by_key(|cluster| cluster.at);
    if log.lasts() > CallLog::LONGEST {
        return Err(LogError::Damaged("its times lie more than a week apart"));
    }
    Ok(log)
}

/// Sorts packets by time and, within a millisecond, by transport-wide number: the log stores one stream after another.
fn in_order(packets: &mut Vec<RtpPacket>) {
    packets.sort_by_key(|packet| packet.at);
    let mut last = 0_i64;
    let numbers = packets.iter().map(|packet| {
        // Unwraps the 16-bit number.
        last += packet.transport.map_or(0, |number| i64::from(number.wrapping_sub(last as u16) as i16));
        last
    });
    let mut all: Vec<(i64, RtpPacket)> = numbers.collect::<Vec<_>>().into_iter().zip(packets.drain(..)).collect();
    all.sort_by_key(|(number, packet)| (packet.at, *number));
    packets.extend(all.into_iter().map(|(_, packet)| packet));
}

/// The next message and its field number; `None` if the log ends within it. All fields of a log are messages.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, &'a [u8])>, LogError> {
    let mut ahead = *rest;
    // The error does not tell a truncated key from a wrong one.
    let cut = |at: &[u8]| at.iter().all(|byte| byte & 0x80 != 0) && at.len() < 10;
    let begun = ahead;
    let (number, kind) = match decode_key(&mut ahead) {
        Ok(key) => key,
        Err(_) if cut(begun) => return Ok(None),
        Err(_) => return Err(LogError::Damaged("a message has no key")),
    };
    if kind as u8 != 2 {
        return Err(LogError::Damaged("a message is none"));
    }
    let begun = ahead;
    let length = match decode_varint(&mut ahead) {
        Ok(length) => length,
        Err(_) if cut(begun) => return Ok(None),
        Err(_) => return Err(LogError::Damaged("a message has no length")),
    };
    let Some((message, after)) = usize::try_from(length).ok().and_then(|length| ahead.split_at_checked(length)) else {
        return Ok(None);
    };
    *rest = after;
    Ok(Some((number, message)))
}

#[derive(Default)]
struct Reader {
    log: CallLog,
    /// The log's clock at its beginning, in milliseconds.
    zero: i64,
    begun: bool,
    overhead: Option<u32>,
    /// Requested probe clusters by id, and the ids of those that have a result.
    clusters: Vec<(u32, Cluster)>,
    results: BTreeSet<u32>,
}

fn parsed<M: Message + Default>(message: &[u8], what: &'static str) -> Result<M, LogError> {
    M::decode(message).map_err(|_| LogError::Damaged(what))
}

impl Reader {
    fn message(&mut self, number: u32, message: &[u8]) -> Result<(), LogError> {
        match number {
            field::BEGIN => self.begin(&parsed(message, "a beginning cannot be read")?),
            field::RTP_IN => self.rtp(Way::In, &parsed(message, "RTP packets cannot be read")?),
            field::RTP_OUT => self.rtp(Way::Out, &parsed(message, "RTP packets cannot be read")?),
            field::RTCP_IN => self.rtcp(Way::In, &parsed(message, "RTCP packets cannot be read")?),
            field::RTCP_OUT => self.rtcp(Way::Out, &parsed(message, "RTCP packets cannot be read")?),
            field::LOSS_BASED => {
                let found: LossBasedUpdates = parsed(message, "estimates cannot be read")?;
                let rates = (found.bitrate_bps, &found.bitrate_bps_deltas[..]);
                let times = (found.timestamp_ms, &found.timestamp_ms_deltas[..]);
                self.estimates(Estimator::Loss, 1, found.number_of_deltas, times, rates)
            }
            field::DELAY_BASED => {
                let found: DelayBasedUpdates = parsed(message, "estimates cannot be read")?;
                let rates = (found.bitrate_bps, &found.bitrate_bps_deltas[..]);
                let times = (found.timestamp_ms, &found.timestamp_ms_deltas[..]);
                self.estimates(Estimator::Delay, 1, found.number_of_deltas, times, rates)
            }
            field::SCREAM => {
                let found: ScreamUpdates = parsed(message, "estimates cannot be read")?;
                let rates = (found.target_rate_kbps, &found.target_rate_kbps_deltas[..]);
                let times = (found.timestamp_ms, &found.timestamp_ms_deltas[..]);
                self.estimates(Estimator::Scream, 1000, found.number_of_deltas, times, rates)
            }
            field::CLUSTER => {
                let found: ProbeCluster = parsed(message, "a probe cannot be read")?;
                let at = self.time(found.timestamp_ms.unwrap_or_default());
                self.check_quota(1)?;
                let (packets, bytes) = (found.min_packets.unwrap_or_default(), found.min_bytes.unwrap_or_default());
                self.clusters.push((found.id.unwrap_or_default(), Cluster { at, packets, bytes }));
                Ok(())
            }
            field::PROBED | field::PROBED_IN_VAIN => {
                let found: ProbeResult = parsed(message, "a probe's result cannot be read")?;
                self.check_quota(1)?;
                self.results.insert(found.id.unwrap_or_default());
                Ok(())
            }
            field::ROUTE => {
                let found: RouteChange = parsed(message, "a route cannot be read")?;
                self.overhead = found.overhead.filter(|bytes| (1..=1000).contains(bytes)).or(self.overhead);
                Ok(())
            }
            // Other events are not needed.
            _ => Ok(()),
        }
    }

    /// Consecutive logs in a file count as one if their clock continues; the first one's start counts.
    fn begin(&mut self, found: &BeginLog) -> Result<(), LogError> {
        let version = found.version.unwrap_or_default();
        if version != VERSION {
            return Err(LogError::Version(version));
        }
        if !core::mem::replace(&mut self.begun, true) {
            self.zero = found.timestamp_ms.unwrap_or_default();
            self.log.began = found.utc_time_ms;
        }
        Ok(())
    }

    /// A time of the log's clock; times before the beginning become the beginning.
    fn time(&self, ms: i64) -> Time {
        Time(u64::try_from(ms.saturating_sub(self.zero)).unwrap_or(0).saturating_mul(1_000_000))
    }

    /// Checks that this many more entries fit.
    fn check_quota(&self, more: usize) -> Result<(), LogError> {
        let log = &self.log;
        let there = log.rtp.len() + log.rtcp.len() + log.estimates.len() + self.clusters.len() + self.results.len();
        if there.saturating_add(more) > MAX_EVENTS { Err(LogError::TooLong) } else { Ok(()) }
    }

    /// Count of the entries after the first one of a batch.
    fn deltas(&self, count: Option<u32>) -> Result<usize, LogError> {
        let count = count.unwrap_or_default() as usize;
        self.check_quota(count.saturating_add(1))?;
        Ok(count)
    }

    fn rtp(&mut self, way: Way, batch: &RtpBatch) -> Result<(), LogError> {
        let count = self.deltas(batch.number_of_deltas)?;
        let rows = |first: Option<u64>, deltas: &[u8]| series(first, deltas, count, "RTP packets");
        let number = |first: Option<u32>, deltas: &[u8]| rows(first.map(u64::from), deltas);
        let times = rows(batch.timestamp_ms.map(|ms| ms as u64), &batch.timestamp_ms_deltas)?;
        let markers = rows(batch.marker.map(u64::from), &batch.marker_deltas)?;
        let types = number(batch.payload_type, &batch.payload_type_deltas)?;
        let numbers = number(batch.sequence_number, &batch.sequence_number_deltas)?;
        let timestamps = number(batch.rtp_timestamp, &batch.rtp_timestamp_deltas)?;
        let sources = number(batch.ssrc, &batch.ssrc_deltas)?;
        let payloads = number(batch.payload_size, &batch.payload_size_deltas)?;
        let headers = number(batch.header_size, &batch.header_size_deltas)?;
        let paddings = number(batch.padding_size, &batch.padding_size_deltas)?;
        let transport = number(batch.transport_sequence_number, &batch.transport_sequence_number_deltas)?;
        for i in 0..=count {
            let value = |of: &[Option<u64>]| of[i].unwrap_or_default();
            let bytes = |of: &[Option<u64>]| value(of).min(1 << 16) as u32;
            let packet = RtpPacket {
                at: self.time(value(&times) as i64),
                way,
                ssrc: Ssrc(value(&sources) as u32),
                number: value(&numbers) as u16,
                timestamp: value(&timestamps) as u32,
                marker: value(&markers) != 0,
                payload_type: value(&types) as u8,
                payload: bytes(&payloads),
                beside: bytes(&headers) + bytes(&paddings),
                transport: transport[i].map(|number| number as u16),
            };
            self.log.rtp.push(packet);
        }
        Ok(())
    }

    fn rtcp(&mut self, way: Way, batch: &RtcpBatch) -> Result<(), LogError> {
        let count = self.deltas(batch.number_of_deltas)?;
        let times = series(batch.timestamp_ms.map(|ms| ms as u64), &batch.timestamp_ms_deltas, count, "RTCP packets")?;
        let later = deltas::blobs(&batch.raw_packet_blobs, count).ok_or(LogError::Damaged("RTCP packets"))?;
        let packets = batch.raw_packet.as_deref().into_iter().chain(later);
        for (bytes, at) in packets.zip(times) {
            let at = self.time(at.unwrap_or_default() as i64);
            self.log.rtcp.push(RtcpPacket { at, way, bytes: bytes.to_vec() });
        }
        Ok(())
    }

    fn estimates(
        &mut self,
        of: Estimator,
        unit: u64,
        count: Option<u32>,
        times: (Option<i64>, &[u8]),
        rates: (Option<u32>, &[u8]),
    ) -> Result<(), LogError> {
        let count = self.deltas(count)?;
        let times = series(times.0.map(|ms| ms as u64), times.1, count, "estimates")?;
        let rates = series(rates.0.map(u64::from), rates.1, count, "estimates")?;
        for (at, rate) in times.into_iter().zip(rates) {
            let at = self.time(at.unwrap_or_default() as i64);
            if let Some(rate) = rate {
                self.log.estimates.push(Estimate { at, of, rate: rate.saturating_mul(unit) });
            }
        }
        Ok(())
    }
}

/// The first value and the `count` values that follow it.
fn series(first: Option<u64>, deltas: &[u8], count: usize, what: &'static str) -> Result<Vec<Option<u64>>, LogError> {
    let later = deltas::values(deltas, first, count).ok_or(LogError::Damaged(what))?;
    Ok(core::iter::once(first).chain(later).collect())
}

#[cfg(test)]
mod tests;
