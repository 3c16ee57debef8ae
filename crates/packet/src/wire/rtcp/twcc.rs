//! The content of transport-wide feedback: statuses in chunks, then the deltas of received packets
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01 sections 3.1.1 to 3.1.5).

use super::{DecodeError, put};
use crate::rtcp::{ArrivalDelta, ReferenceTime, TransportFeedback};
use crate::rtp::Ssrc;
use crate::wire::bytes::Bytes;

/// Two-bit symbols; one-bit symbols are the first two.
const MISSING: u16 = 0b00;
const SMALL: u16 = 0b01;
const LARGE: u16 = 0b10;

/// Capacities of a chunk: a run length of 13 bits, a vector of symbols in 14 bits.
const LONGEST_RUN: usize = 0x1fff;
const OF_ONE_BIT: usize = 14;
const OF_TWO_BITS: usize = 7;
const VECTOR: u16 = 1 << 15;
const TWO_BITS: u16 = 1 << 14;

/// Bytes between the reporter's SSRC and the chunks.
const HEAD: usize = 12;

fn symbol(packet: Option<ArrivalDelta>) -> u16 {
    match packet {
        None => MISSING,
        Some(delta) if delta.is_small() => SMALL,
        Some(_) => LARGE,
    }
}

/// The chunk that covers the most of `packets` from the first on, and their number. There must be at least one.
fn chunk(packets: &[Option<ArrivalDelta>]) -> (u16, usize) {
    let first = packets.first().map_or(MISSING, |packet| symbol(*packet));
    let run = packets.iter().take(LONGEST_RUN).take_while(|packet| symbol(**packet) == first).count();
    let (short, long) = (packets.len().min(OF_TWO_BITS), packets.len().min(OF_ONE_BIT));
    let narrow = packets[..long].iter().all(|packet| symbol(*packet) != LARGE);
    if run >= if narrow { long } else { short } {
        (first << 13 | run as u16, run)
    } else if narrow {
        let bits = packets[..long].iter().enumerate();
        (VECTOR | bits.fold(0, |bits, (place, packet)| bits | symbol(*packet) << (13 - place)), long)
    } else {
        let bits = packets[..short].iter().enumerate();
        (VECTOR | TWO_BITS | bits.fold(0, |bits, (place, packet)| bits | symbol(*packet) << (12 - 2 * place)), short)
    }
}

/// The chunks that cover all packets.
fn chunks(mut packets: &[Option<ArrivalDelta>]) -> impl Iterator<Item = u16> {
    core::iter::from_fn(move || {
        if packets.is_empty() {
            return None;
        }
        let (word, count) = chunk(packets);
        packets = &packets[count..];
        Some(word)
    })
}

/// Bytes of the content after the reporter's SSRC, without padding to a multiple of four.
pub(crate) fn len(feedback: &TransportFeedback) -> usize {
    let deltas = feedback.packets.iter().flatten().map(|delta| if delta.is_small() { 1 } else { 2 });
    HEAD + 2 * chunks(&feedback.packets).count() + deltas.sum::<usize>()
}

pub(super) fn write(feedback: &TransportFeedback, to: &mut Vec<u8>) {
    put(to, feedback.ssrc.0);
    to.extend(feedback.base.to_be_bytes());
    to.extend((feedback.packets.len() as u16).to_be_bytes());
    put(to, feedback.reference.bits() << 8 | u32::from(feedback.count));
    for word in chunks(&feedback.packets) {
        to.extend(word.to_be_bytes());
    }
    for delta in feedback.packets.iter().flatten() {
        match u8::try_from(delta.0) {
            Ok(small) => to.push(small),
            Err(_) => to.extend(delta.0.to_be_bytes()),
        }
    }
}

/// The number of packets that a chunk covers.
fn chunk_len(word: u16) -> usize {
    match word {
        run if run & VECTOR == 0 => usize::from(run) & LONGEST_RUN,
        vector if vector & TWO_BITS == 0 => OF_ONE_BIT,
        _ => OF_TWO_BITS,
    }
}

/// A chunk's symbol at this position.
fn symbol_at(word: u16, place: usize) -> u16 {
    match word {
        run if run & VECTOR == 0 => run >> 13,
        vector if vector & TWO_BITS == 0 => vector >> (13 - place) & 1,
        vector => vector >> (12 - 2 * place) & 3,
    }
}

/// Reads the content after the reporter's SSRC. `left`: how many packets the compound packet may still cover. `None`:
/// it is too short.
pub(super) fn read(mut content: Bytes<'_>, left: &mut usize) -> Option<Result<TransportFeedback, DecodeError>> {
    let (ssrc, base, count) = (Ssrc(content.u32()?), content.u16()?, usize::from(content.u16()?));
    let times = content.u32()?;
    if count == 0 || count > *left {
        return Some(Err(DecodeError::Statuses(count)));
    }
    let (mut deltas, mut covered) = (content, 0);
    while covered < count {
        covered += chunk_len(deltas.u16()?);
    }
    *left -= count;
    let mut packets = Vec::new();
    for word in content.take(content.0.len() - deltas.0.len())?.chunks_exact(2) {
        let word = word.iter().fold(0, |number: u16, &byte| number << 8 | u16::from(byte));
        // the last chunk may cover more packets than there are
        for place in 0..chunk_len(word).min(count - packets.len()) {
            packets.push(match symbol_at(word, place) {
                MISSING => None,
                SMALL => Some(ArrivalDelta(i16::from(deltas.u8()?))),
                LARGE => Some(ArrivalDelta(deltas.u16()? as i16)),
                _ => return Some(Err(DecodeError::Symbol)),
            });
        }
    }
    let (reference, count) = (ReferenceTime::from_bits(times >> 8), times as u8);
    Some(Ok(TransportFeedback { ssrc, base, reference, count, packets }))
}
