//! Reading RTCP compound packets.

use super::{
    APP, BOTTLENECK, BYE, CCFB, CNAME, DecodeError, ECN, ECN_SUMMARY, LOSS, NACK, PLI, PROBE, PSFB, RR, RTPFB, SDES,
    SR, TWCC, XR, has_feedback, twcc,
};
use crate::ntp::{Ntp, NtpMiddle, NtpSpan};
use crate::rtcp::{
    App, Arrival, ArrivalFeedback, ArrivalOffset, Bottleneck, Bye, Compound, Ecn, EcnCounts, EcnFeedback, EcnSummary,
    Loss, Nack, OtherApp, Probe, Repair, ReportBlock, SenderInfo, StreamArrivals, TransportFeedback,
};
use crate::rtp::Ssrc;
use crate::wire::bytes::Bytes;
use paceline_units::Rate;
use std::sync::Arc;

/// One packet of a compound, without its padding.
struct Packet<'a> {
    kind: u8,
    count: u8,
    content: Bytes<'a>,
}

/// Reads a compound packet, after the checks of RFC 3550 appendix A.2: version 2 throughout, a report first, padding
/// only at the end, lengths that add up to the datagram's. Feedback may be alone (RFC 5506 section 4.1). Section 6.1
/// requires the sender's CNAME, but others leave it out, and libwebrtc's event logs omit SDES: then it is empty, and
/// [`Compound::lacks_cname`] says so.
///
/// # Errors
/// [`DecodeError`]; a compound packet with an error is discarded as a whole.
pub fn decode(bytes: &[u8]) -> Result<Compound, DecodeError> {
    let mut rest = Bytes(bytes);
    let first = next(&mut rest)?;
    if !matches!(first.kind, SR | RR | RTPFB | PSFB) {
        return Err(DecodeError::First(first.kind));
    }
    let ssrc = Ssrc(first.content.clone().u32().ok_or(DecodeError::Content(first.kind))?);
    let mut compound = Compound {
        ssrc,
        sender: None,
        reports: Vec::new(),
        cname: Arc::from(""),
        apps: Vec::new(),
        arrivals: None,
        transport: Vec::new(),
        ecn: Vec::new(),
        ecn_summary: Vec::new(),
        repair: Vec::new(),
        bye: None,
        reduced: matches!(first.kind, RTPFB | PSFB),
    };
    let mut statuses = TransportFeedback::MAX;
    let mut packet = first;
    loop {
        let kind = packet.kind;
        let short = DecodeError::Content(kind);
        match kind {
            SR | RR | SDES | APP | BYE | XR if compound.reduced => return Err(DecodeError::Beside(kind)),
            SR | RR => report(&mut compound, packet).ok_or(short)??,
            SDES => {
                if let Some(name) = name_of(ssrc, packet).ok_or(short)? {
                    compound.cname = text(name)?;
                }
            }
            BYE => {
                let bye = goodbye(packet).ok_or(short)??;
                if compound.bye.replace(bye).is_some() {
                    return Err(DecodeError::Twice(kind));
                }
            }
            APP => compound.apps.extend(application(ssrc, packet).ok_or(short)?),
            RTPFB if packet.count == CCFB => {
                let arrivals = feedback(ssrc, packet).ok_or(short)??;
                if arrivals.is_some() && core::mem::replace(&mut compound.arrivals, arrivals).is_some() {
                    return Err(DecodeError::Twice(kind));
                }
            }
            RTPFB if packet.count == TWCC => {
                let mut content = packet.content;
                let ours = Ssrc(content.u32().ok_or(short)?) == ssrc;
                let feedback = twcc::read(content, &mut statuses).ok_or(short)??;
                if ours {
                    compound.transport.push(feedback);
                }
            }
            RTPFB if packet.count == ECN => compound.ecn.extend(counted(ssrc, packet).ok_or(short)?),
            XR => summaries(&mut compound, packet).ok_or(short)?,
            RTPFB if packet.count == NACK => compound.repair.extend(nack(ssrc, packet).ok_or(short)?),
            PSFB if packet.count == PLI => {
                let mut content = packet.content;
                let ours = Ssrc(content.u32().ok_or(short)?) == ssrc;
                let source = Ssrc(content.u32().ok_or(short)?);
                compound.repair.extend(ours.then_some(Repair::Pli(source)));
            }
            _ => {}
        }
        if rest.0.is_empty() {
            break;
        }
        packet = next(&mut rest)?;
    }
    if compound.reduced && !has_feedback(&compound) {
        return Err(DecodeError::Nothing);
    }
    Ok(compound)
}

/// The next packet of the compound.
fn next<'a>(rest: &mut Bytes<'a>) -> Result<Packet<'a>, DecodeError> {
    let mut header = *rest;
    let (Some(first), Some(kind), Some(words)) = (header.u8(), header.u8(), header.u16()) else {
        return Err(DecodeError::Truncated);
    };
    if first >> 6 != 2 {
        return Err(DecodeError::Version(first >> 6));
    }
    let mut content = header.take(4 * usize::from(words)).ok_or(DecodeError::Truncated)?;
    *rest = header;
    if first & 0x20 != 0 {
        let padding = content.last().map_or(0, |&count| usize::from(count));
        // libwebrtc pads its transport-wide feedback by one to three bytes
        let whole = padding % 4 == 0 || matches!(kind, RTPFB | PSFB);
        if !rest.0.is_empty() || padding == 0 || !whole || padding > content.len() {
            return Err(DecodeError::Padding);
        }
        content = &content[..content.len() - padding];
    }
    Ok(Packet { kind, count: first & 0x1f, content: Bytes(content) })
}

fn text(bytes: &[u8]) -> Result<Arc<str>, DecodeError> {
    core::str::from_utf8(bytes).map(Arc::from).map_err(|_| DecodeError::Text)
}

/// Reads SR and RR (RFC 3550 sections 6.4.1 and 6.4.2). `None`: too short.
fn report(compound: &mut Compound, packet: Packet<'_>) -> Option<Result<(), DecodeError>> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == compound.ssrc;
    if packet.kind == SR {
        let sender = SenderInfo {
            ntp: Ntp(content.u64()?),
            rtp: content.u32()?,
            packets: content.u32()?,
            octets: content.u32()?,
        };
        if ours && compound.sender.replace(sender).is_some() {
            return Some(Err(DecodeError::Twice(SR)));
        }
    }
    for _ in 0..packet.count {
        let ssrc = Ssrc(content.u32()?);
        let loss = content.u32()?;
        let block = ReportBlock {
            ssrc,
            fraction_lost: (loss >> 24) as u8,
            // 24 bits, signed
            cumulative_lost: ((loss << 8) as i32) >> 8,
            extended_highest: content.u32()?,
            jitter: content.u32()?,
            lsr: NtpMiddle(content.u32()?),
            dlsr: NtpSpan(content.u32()?),
        };
        if ours {
            compound.reports.push(block);
        }
    }
    Some(Ok(()))
}

/// The CNAME of `ssrc`, if this SDES packet has it (RFC 3550 section 6.5). `None`: too short.
fn name_of(ssrc: Ssrc, packet: Packet<'_>) -> Option<Option<&[u8]>> {
    let mut content = packet.content;
    let mut name = None;
    for _ in 0..packet.count {
        let chunk = content.0.len();
        let ours = Ssrc(content.u32()?) == ssrc;
        loop {
            let item = content.u8()?;
            if item == 0 {
                break;
            }
            let len = content.u8()?;
            let value = content.take(usize::from(len))?;
            if ours && item == CNAME {
                name = Some(value);
            }
        }
        let read = chunk - content.0.len();
        content.take(read.next_multiple_of(4) - read)?;
    }
    Some(name)
}

/// Reads a BYE (RFC 3550 section 6.6). `None`: too short. An empty reason counts as none.
fn goodbye(packet: Packet<'_>) -> Option<Result<Bye, DecodeError>> {
    let mut content = packet.content;
    let sources = (0..packet.count).map(|_| content.u32().map(Ssrc)).collect::<Option<Vec<_>>>()?;
    let reason = match content.u8() {
        None | Some(0) => None,
        Some(len) => Some(content.take(usize::from(len))?),
    };
    Some(reason.map(text).transpose().map(|reason| Bye { sources, reason }))
}

/// Reads an APP packet (RFC 3550 section 6.7), if it is from `ssrc`. `None`: too short, or one of Paceline's with a
/// wrong length.
fn application(ssrc: Ssrc, packet: Packet<'_>) -> Option<Option<App>> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == ssrc;
    let name = content.name()?;
    let app = match (name, packet.count) {
        (App::NAME, PROBE) => App::Probe(Probe { first: content.u16()?, count: content.u16()? }),
        (App::NAME, BOTTLENECK) => {
            App::Bottleneck(Bottleneck { ssrc: Ssrc(content.u32()?), rate: Rate(content.u64()?) })
        }
        (App::NAME, LOSS) => App::Loss(Loss { ssrc: Ssrc(content.u32()?), fraction: content.u32()? }),
        (name, subtype) => {
            let data = content.take(content.0.len())?.into();
            App::Other(OtherApp { name, subtype, data })
        }
    };
    content.0.is_empty().then(|| ours.then_some(app))
}

/// Reads RFC 8888's feedback, if it is from `ssrc`. `None`: too short.
fn feedback(ssrc: Ssrc, packet: Packet<'_>) -> Option<Result<Option<ArrivalFeedback>, DecodeError>> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == ssrc;
    let mut streams = Vec::new();
    while content.0.len() > 4 {
        let (ssrc, begin, count) = (Ssrc(content.u32()?), content.u16()?, usize::from(content.u16()?));
        if count > StreamArrivals::MAX {
            return Some(Err(DecodeError::Arrivals(count)));
        }
        let packets = content.take(2 * count)?.chunks_exact(2).map(arrival).collect();
        if count % 2 != 0 {
            content.take(2)?;
        }
        streams.push(StreamArrivals { ssrc, begin, packets });
    }
    let reported = NtpMiddle(content.u32()?);
    Some(Ok(ours.then_some(ArrivalFeedback { reported, streams })))
}

fn counts(content: &mut Bytes<'_>) -> Option<EcnCounts> {
    Some(EcnCounts {
        ect0: content.u32()?,
        ect1: content.u32()?,
        ce: content.u16()?,
        not_ect: content.u16()?,
        lost: content.u16()?,
        duplicates: content.u16()?,
    })
}

/// Reads an ECN feedback report (RFC 6679 section 5.1), if it is from `ssrc`. `None`: too short.
fn counted(ssrc: Ssrc, packet: Packet<'_>) -> Option<Option<EcnFeedback>> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == ssrc;
    let (source, extended_highest) = (Ssrc(content.u32()?), content.u32()?);
    let counts = counts(&mut content)?;
    Some(ours.then_some(EcnFeedback { ssrc: source, extended_highest, counts }))
}

/// Reads the ECN summaries of an extended report (RFC 3611, RFC 6679 section 5.2). `None`: a block is too short. A
/// block whose length is no multiple of a summary's is ignored.
fn summaries(compound: &mut Compound, packet: Packet<'_>) -> Option<()> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == compound.ssrc;
    while !content.0.is_empty() {
        let (kind, _, words) = (content.u8()?, content.u8()?, usize::from(content.u16()?));
        let mut block = Bytes(content.take(4 * words)?);
        if !ours || kind != ECN_SUMMARY || block.0.len() % EcnSummary::WIRE_LEN != 0 {
            continue;
        }
        while !block.0.is_empty() {
            let ssrc = Ssrc(block.u32()?);
            compound.ecn_summary.push(EcnSummary { ssrc, counts: counts(&mut block)? });
        }
    }
    Some(())
}

/// Reads a generic NACK (RFC 4585 section 6.2.1), if it is from `ssrc`. `None`: too short. Skips sequence numbers that
/// are not ahead of the previous one, as in overlapping items.
fn nack(ssrc: Ssrc, packet: Packet<'_>) -> Option<Option<Repair>> {
    let mut content = packet.content;
    let ours = Ssrc(content.u32()?) == ssrc;
    let source = Ssrc(content.u32()?);
    let mut lost: Vec<u16> = Vec::new();
    loop {
        let item = (content.u16()?, content.u16()?);
        for number in Nack::numbers(item) {
            let ahead = lost.last().is_none_or(|last| (1..0x8000).contains(&number.wrapping_sub(*last)));
            if ahead {
                lost.push(number);
            }
        }
        if content.0.is_empty() {
            return Some(ours.then_some(Repair::Nack(Nack { ssrc: source, lost })));
        }
    }
}

fn arrival(field: &[u8]) -> Arrival {
    let field = field.iter().fold(0, |number: u16, &byte| number << 8 | u16::from(byte));
    if field >> 15 == 0 {
        return Arrival::Missing;
    }
    let ecn = match field >> 13 & 3 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    Arrival::Received { ecn, offset: ArrivalOffset::from_bits(field) }
}
