//! RTCP compound packets (RFC 3550 section 6), with feedback on arrivals (RFC 8888, and by transport-wide sequence
//! numbers) and Paceline's APP packets (`docs/wire/rtcp.md`).
//!
//! [`encode`] writes a compound packet in a fixed order: SR or RR, further RRs if there are more than 31 report blocks,
//! SDES with the CNAME, the ECN summary (XR, RFC 6679), APP, RFC 8888's feedback, transport-wide feedback, ECN feedback
//! (RFC 6679), NACK and PLI (RFC 4585), BYE. [`decode`] accepts every order that RFC 3550 allows. It ignores what
//! [`Compound`] cannot hold: other packet types, other SDES items, profile-specific extensions, padding, and other
//! participants' items that a translator may have appended. In reduced-size packets (RFC 5506) both support feedback on
//! arrivals and on the ECN field, NACK and PLI.

mod read;
mod twcc;

pub use read::decode;
pub(crate) use twcc::len as transport_len;

use crate::rtcp::{
    App, Arrival, ArrivalFeedback, Bye, Compound, EcnCounts, EcnSummary, Repair, ReportBlock, SenderInfo,
    StreamArrivals, TransportFeedback,
};

const SR: u8 = 200;
const RR: u8 = 201;
const SDES: u8 = 202;
const BYE: u8 = 203;
const APP: u8 = 204;
/// Transport-layer feedback (RFC 4585 section 6.2).
const RTPFB: u8 = 205;
/// Payload-specific feedback (section 6.3).
const PSFB: u8 = 206;
/// RTPFB: generic NACK (section 6.2.1).
const NACK: u8 = 1;
/// PSFB: picture loss indication (section 6.3.1).
const PLI: u8 = 1;
/// RTPFB: congestion control feedback (RFC 8888 section 3.1).
const CCFB: u8 = 11;
/// RTPFB: ECN feedback (RFC 6679 section 5.1).
const ECN: u8 = 8;
/// Extended reports (RFC 3611), and their ECN summary block (RFC 6679 section 5.2).
const XR: u8 = 207;
const ECN_SUMMARY: u8 = 13;
/// RTPFB: transport-wide feedback (section 3.1 of its draft).
const TWCC: u8 = 15;
const CNAME: u8 = 1;
const PROBE: u8 = 1;
const BOTTLENECK: u8 = 2;
const LOSS: u8 = 3;
/// The maximum of a 5-bit count.
const MAX_COUNT: usize = 31;

/// Why a compound packet cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The CNAME has more than 255 bytes: its length.
    Cname(usize),
    /// BYE's reason has more than 255 bytes: its length.
    Reason(usize),
    /// BYE names more than 31 sources: their number.
    Sources(usize),
    /// An APP packet's subtype is above 31.
    Subtype(u8),
    /// The length of an APP packet's data is no multiple of four: its length.
    AppData(usize),
    /// Arrivals of one source cover more than [`StreamArrivals::MAX`] packets: their number.
    Arrivals(usize),
    /// A transport-wide feedback covers no packet, or all together cover more than [`TransportFeedback::MAX`]: the
    /// number in this one.
    Statuses(usize),
    /// A NACK lists no packet.
    NoLoss,
    /// A reduced-size packet has no feedback, or has something else too.
    Reduced,
    /// One packet of the compound exceeds its length field's maximum, 262,144 bytes: its length.
    Length(usize),
}

impl core::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EncodeError::Cname(n) => write!(f, "a CNAME of {n} bytes; 255 at most"),
            EncodeError::Reason(n) => write!(f, "a reason for leaving of {n} bytes; 255 at most"),
            EncodeError::Sources(n) => write!(f, "{n} sources leave at once; 31 at most"),
            EncodeError::Subtype(n) => write!(f, "an APP packet of subtype {n}; 31 at most"),
            EncodeError::AppData(n) => write!(f, "an APP packet with {n} bytes of data, which is no multiple of four"),
            EncodeError::Arrivals(n) => {
                write!(f, "arrivals of {n} packets of one source; {} at most", StreamArrivals::MAX)
            }
            EncodeError::Statuses(n) => write!(f, "{}", Statuses(*n)),
            EncodeError::NoLoss => f.write_str("a NACK that names no packet"),
            EncodeError::Reduced => f.write_str("of reduced size, where feedback stands alone"),
            EncodeError::Length(n) => write!(f, "a packet of {n} bytes; 262144 at most"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Displays an invalid number of packets in transport-wide feedback.
struct Statuses(usize);

impl core::fmt::Display for Statuses {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let max = TransportFeedback::MAX;
        write!(f, "transport-wide feedback of {} packets; from 1 to {max} in a compound packet", self.0)
    }
}

/// Why bytes are no RTCP compound packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes end within a packet.
    Truncated,
    /// The version is not 2.
    Version(u8),
    /// The first packet has this type: it is neither SR nor RR (RFC 3550 section 6.1), nor feedback, which may be alone
    /// (RFC 5506).
    First(u8),
    /// A packet of this type follows feedback in a reduced-size packet (RFC 5506), which may only have feedback.
    Beside(u8),
    /// A reduced-size packet has no feedback of a known kind.
    Nothing,
    /// A packet other than the last is padded (section 6.4.1), or the padding is longer than its packet or, except in
    /// feedback, no multiple of four.
    Padding,
    /// A packet of this type is too short for its content.
    Content(u8),
    /// A text is not UTF-8 (section 6.5).
    Text,
    /// A second packet of this type, which may occur once per participant.
    Twice(u8),
    /// Arrivals of one source cover more than [`StreamArrivals::MAX`] packets: their number.
    Arrivals(usize),
    /// A transport-wide feedback covers no packet, or with earlier feedback in the compound packet more than
    /// [`TransportFeedback::MAX`]: the number in this one.
    Statuses(usize),
    /// A status in transport-wide feedback is the reserved one (section 3.1.1 of its draft).
    Symbol,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::Truncated => f.write_str("it ends within a packet"),
            DecodeError::Version(version) => write!(f, "version {version}, where RTCP's is 2"),
            DecodeError::First(kind) => write!(f, "it begins with a packet of type {kind}, not with a report"),
            DecodeError::Beside(kind) => write!(f, "a packet of type {kind} beside feedback of reduced size"),
            DecodeError::Nothing => f.write_str("of reduced size, without feedback that is known"),
            DecodeError::Padding => f.write_str("its padding is not the last packet's, or has a wrong length"),
            DecodeError::Content(kind) => write!(f, "a packet of type {kind} is too short for what it announces"),
            DecodeError::Text => f.write_str("a text is not UTF-8"),
            DecodeError::Twice(kind) => write!(f, "two packets of type {kind} of one participant"),
            DecodeError::Arrivals(n) => {
                write!(f, "arrivals of {n} packets of one source; {} at most", StreamArrivals::MAX)
            }
            DecodeError::Statuses(n) => write!(f, "{}", Statuses(*n)),
            DecodeError::Symbol => f.write_str("a packet's status is the reserved one"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Appends the encoding of [`Compound::wire_len`] bytes.
///
/// # Errors
/// [`EncodeError`], if a field is out of range; nothing is appended then.
pub fn encode(compound: &Compound, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    let before = to.len();
    let done = write(compound, to);
    match done {
        Ok(()) => debug_assert_eq!(to.len() - before, compound.wire_len(), "{compound:?}"),
        Err(_) => to.truncate(before),
    }
    done
}

fn write(compound: &Compound, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    if compound.reduced {
        let Compound { sender, reports, cname, apps, ecn_summary, bye, .. } = compound;
        let named = sender.is_some() || !reports.is_empty() || !cname.is_empty();
        let beside = named || !apps.is_empty() || !ecn_summary.is_empty() || bye.is_some();
        if beside || !has_feedback(compound) {
            return Err(EncodeError::Reduced);
        }
    } else {
        reports(compound, to)?;
    }
    let ssrc = compound.ssrc.0;
    if !compound.ecn_summary.is_empty() {
        summary(ssrc, &compound.ecn_summary, to)?;
    }
    for app in &compound.apps {
        application(ssrc, app, to)?;
    }
    if let Some(arrivals) = &compound.arrivals {
        packet(to, RTPFB, CCFB, |to| {
            put(to, ssrc);
            feedback(arrivals, to)
        })?;
    }
    let mut statuses = 0;
    for feedback in &compound.transport {
        statuses += feedback.packets.len();
        if feedback.packets.is_empty() || statuses > TransportFeedback::MAX {
            return Err(EncodeError::Statuses(feedback.packets.len()));
        }
        packet(to, RTPFB, TWCC, |to| {
            put(to, ssrc);
            twcc::write(feedback, to);
            Ok(())
        })?;
    }
    for ecn in &compound.ecn {
        packet(to, RTPFB, ECN, |to| {
            put(to, ssrc);
            put(to, ecn.ssrc.0);
            put(to, ecn.extended_highest);
            counts(&ecn.counts, to);
            Ok(())
        })?;
    }
    for repair in &compound.repair {
        ask(ssrc, repair, to)?;
    }
    compound.bye.as_ref().map_or(Ok(()), |bye| goodbye(bye, to))
}

/// Whether it has feedback that may be sent alone (RFC 5506).
fn has_feedback(compound: &Compound) -> bool {
    let Compound { arrivals, transport, ecn, repair, .. } = compound;
    arrivals.is_some() || !transport.is_empty() || !ecn.is_empty() || !repair.is_empty()
}

/// Writes the ECN summary: one block of an extended report.
fn summary(ssrc: u32, all: &[EcnSummary], to: &mut Vec<u8>) -> Result<(), EncodeError> {
    packet(to, XR, 0, |to| {
        put(to, ssrc);
        let words = EcnSummary::WIRE_LEN / 4 * all.len();
        let words = u16::try_from(words).map_err(|_| EncodeError::Length(4 * words))?;
        to.extend([ECN_SUMMARY, 0]);
        to.extend(words.to_be_bytes());
        for one in all {
            put(to, one.ssrc.0);
            counts(&one.counts, to);
        }
        Ok(())
    })
}

fn counts(counts: &EcnCounts, to: &mut Vec<u8>) {
    put(to, counts.ect0);
    put(to, counts.ect1);
    for count in [counts.ce, counts.not_ect, counts.lost, counts.duplicates] {
        to.extend(count.to_be_bytes());
    }
}

/// Writes a NACK or PLI.
fn ask(ssrc: u32, repair: &Repair, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    match repair {
        Repair::Nack(nack) if nack.lost.is_empty() => Err(EncodeError::NoLoss),
        Repair::Nack(nack) => packet(to, RTPFB, NACK, |to| {
            put(to, ssrc);
            put(to, nack.ssrc.0);
            for (first, mask) in nack.items() {
                put(to, u32::from(first) << 16 | u32::from(mask));
            }
            Ok(())
        }),
        Repair::Pli(source) => packet(to, PSFB, PLI, |to| {
            put(to, ssrc);
            put(to, source.0);
            Ok(())
        }),
    }
}

/// Writes the beginning of a compound packet: reports, and the CNAME.
fn reports(compound: &Compound, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    let ssrc = compound.ssrc.0;
    let (first, rest) = compound.reports.split_at(compound.reports.len().min(MAX_COUNT));
    packet(to, if compound.sender.is_some() { SR } else { RR }, first.len() as u8, |to| {
        put(to, ssrc);
        if let Some(sender) = &compound.sender {
            sender_info(sender, to);
        }
        first.iter().for_each(|block| report_block(block, to));
        Ok(())
    })?;
    for blocks in rest.chunks(MAX_COUNT) {
        packet(to, RR, blocks.len() as u8, |to| {
            put(to, ssrc);
            blocks.iter().for_each(|block| report_block(block, to));
            Ok(())
        })?;
    }
    packet(to, SDES, 1, |to| {
        let name = compound.cname.as_bytes();
        put(to, ssrc);
        to.extend([CNAME, u8::try_from(name.len()).map_err(|_| EncodeError::Cname(name.len()))?]);
        to.extend_from_slice(name);
        // ends the list of items; zeros pad it to a multiple of four
        to.push(0);
        Ok(())
    })
}

/// Writes a packet of the compound: header, content, and zeros up to a multiple of four bytes.
fn packet(
    to: &mut Vec<u8>,
    kind: u8,
    count: u8,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let begin = to.len();
    to.extend([2 << 6 | count, kind, 0, 0]);
    content(to)?;
    let len = (to.len() - begin).next_multiple_of(4);
    to.resize(begin + len, 0);
    let words = u16::try_from(len / 4 - 1).map_err(|_| EncodeError::Length(len))?;
    to[begin + 2..begin + 4].copy_from_slice(&words.to_be_bytes());
    Ok(())
}

fn put(to: &mut Vec<u8>, number: u32) {
    to.extend(number.to_be_bytes());
}

fn sender_info(sender: &SenderInfo, to: &mut Vec<u8>) {
    to.extend(sender.ntp.0.to_be_bytes());
    put(to, sender.rtp);
    put(to, sender.packets);
    put(to, sender.octets);
}

fn report_block(block: &ReportBlock, to: &mut Vec<u8>) {
    let lost = block.cumulative_lost.clamp(ReportBlock::CUMULATIVE_MIN, ReportBlock::CUMULATIVE_MAX);
    put(to, block.ssrc.0);
    put(to, u32::from(block.fraction_lost) << 24 | lost as u32 & 0xff_ffff);
    put(to, block.extended_highest);
    put(to, block.jitter);
    put(to, block.lsr.0);
    put(to, block.dlsr.0);
}

fn application(ssrc: u32, app: &App, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (subtype, name) = match app {
        App::Probe(_) => (PROBE, App::NAME),
        App::Bottleneck(_) => (BOTTLENECK, App::NAME),
        App::Loss(_) => (LOSS, App::NAME),
        App::Other(other) if usize::from(other.subtype) > MAX_COUNT => return Err(EncodeError::Subtype(other.subtype)),
        App::Other(other) if other.data.len() % 4 != 0 => return Err(EncodeError::AppData(other.data.len())),
        App::Other(other) => (other.subtype, other.name),
    };
    packet(to, APP, subtype, |to| {
        put(to, ssrc);
        to.extend(name);
        match app {
            App::Probe(probe) => {
                to.extend(probe.first.to_be_bytes());
                to.extend(probe.count.to_be_bytes());
            }
            App::Bottleneck(bottleneck) => {
                put(to, bottleneck.ssrc.0);
                to.extend(bottleneck.rate.0.to_be_bytes());
            }
            App::Loss(loss) => {
                put(to, loss.ssrc.0);
                put(to, loss.fraction);
            }
            App::Other(other) => to.extend_from_slice(&other.data),
        }
        Ok(())
    })
}

fn feedback(arrivals: &ArrivalFeedback, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    for stream in &arrivals.streams {
        let count = stream.packets.len();
        if count > StreamArrivals::MAX {
            return Err(EncodeError::Arrivals(count));
        }
        put(to, stream.ssrc.0);
        to.extend(stream.begin.to_be_bytes());
        to.extend((count as u16).to_be_bytes());
        for packet in &stream.packets {
            let field = match *packet {
                Arrival::Missing => 0,
                Arrival::Received { ecn, offset } => 1 << 15 | (ecn as u16) << 13 | offset.bits(),
            };
            to.extend(field.to_be_bytes());
        }
        if count % 2 != 0 {
            to.extend([0; 2]);
        }
    }
    put(to, arrivals.reported.0);
    Ok(())
}

fn goodbye(bye: &Bye, to: &mut Vec<u8>) -> Result<(), EncodeError> {
    let sources = bye.sources.len();
    if sources > MAX_COUNT {
        return Err(EncodeError::Sources(sources));
    }
    packet(to, BYE, sources as u8, |to| {
        bye.sources.iter().for_each(|source| put(to, source.0));
        if let Some(reason) = &bye.reason {
            to.push(u8::try_from(reason.len()).map_err(|_| EncodeError::Reason(reason.len()))?);
            to.extend_from_slice(reason.as_bytes());
        }
        Ok(())
    })
}
