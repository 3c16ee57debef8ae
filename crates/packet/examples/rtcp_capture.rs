//! Writes RTP and RTCP packets as a capture (pcap), to hold Wireshark's reading against: data 1 to 100 of which 7 and 8 are
//! missing, the later half with transport-wide numbers, then one compound packet with everything in it, and transport-wide
//! feedback that stands alone. `tests/test_wireshark.py` knows what they say.
//!
//! `cargo run -p paceline-packet --example rtcp_capture -- FILE.pcap`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example writes files")]

use paceline_packet::rtcp::*;
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{Ntp, NtpMiddle, NtpSpan};
use paceline_units::{Rate, Span, Time};

/// pcap's link type for packets that begin with an IP header.
const LINKTYPE_RAW: u32 = 101;

/// One packet of a capture: pcap's record header, IPv4, UDP (without a checksum), the datagram.
fn record(millis: u32, port: u16, datagram: &[u8]) -> Vec<u8> {
    let udp = 8 + datagram.len() as u16;
    let ip = 20 + udp;
    let mut bytes = Vec::new();
    for word in [millis / 1000, millis % 1000 * 1000, u32::from(ip), u32::from(ip)] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&[0x45, 0]);
    bytes.extend_from_slice(&ip.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    for half in [50_000, port, udp, 0] {
        bytes.extend_from_slice(&half.to_be_bytes());
    }
    bytes.extend_from_slice(datagram);
    bytes
}

fn everything() -> Compound {
    let block = ReportBlock {
        ssrc: Ssrc(0x0102_0304),
        fraction_lost: 0x40,
        cumulative_lost: -2,
        extended_highest: 0x0001_0007,
        jitter: 9,
        lsr: NtpMiddle(0xb705_2000),
        dlsr: NtpSpan(0x0005_4000),
    };
    let ntp = Ntp::at(Time::from_secs_f64(1.5));
    let received = Arrival::Received { ecn: Ecn::Ce, offset: ArrivalOffset::nearest(Span::from_millis(125)) };
    let packets = vec![received, Arrival::Missing, received];
    let stream = StreamArrivals { ssrc: Ssrc(3), begin: 17, packets };
    let counts = EcnCounts { ect0: 1000, ect1: 2, ce: 30, not_ect: 4, lost: 5, duplicates: 6 };
    Compound {
        ssrc: Ssrc(2),
        sender: Some(SenderInfo { ntp, rtp: 5, packets: 6, octets: 7 }),
        reports: vec![block],
        cname: "a@host".into(),
        apps: vec![
            App::Probe(Probe { first: 65_534, count: 10 }),
            App::Bottleneck(Bottleneck { ssrc: Ssrc(3), rate: Rate::from_bps(10_000_000) }),
            App::Loss(Loss { ssrc: Ssrc(3), fraction: Loss::fraction_of(1000, 998) }),
        ],
        arrivals: Some(ArrivalFeedback { reported: ntp.middle(), streams: vec![stream] }),
        transport: vec![],
        ecn: vec![EcnFeedback { ssrc: Ssrc(3), extended_highest: 0x0001_0007, counts }],
        ecn_summary: vec![EcnSummary { ssrc: Ssrc(3), counts }],
        repair: vec![],
        bye: Some(Bye { sources: vec![Ssrc(2)], reason: Some("end".into()) }),
        reduced: false,
    }
}

/// Feedback with a chunk of each kind: a run, a vector of two bits, one of one bit.
fn alone() -> Compound {
    let small = |count: usize| (0..count).map(|place| Some(ArrivalDelta(place as i16)));
    let packets =
        small(20).chain([None, Some(ArrivalDelta(300)), Some(ArrivalDelta(-2)), None]).chain(small(3)).chain([None]);
    let feedback = TransportFeedback {
        ssrc: Ssrc(2),
        base: 65_530,
        reference: ReferenceTime::from_bits(0x01_0203),
        count: 200,
        packets: packets.chain(small(2)).collect(),
    };
    Compound { ssrc: Ssrc(3), cname: "".into(), transport: vec![feedback], reduced: true, ..empty() }
}

fn empty() -> Compound {
    Compound {
        sender: None,
        reports: vec![],
        apps: vec![],
        arrivals: None,
        ecn: vec![],
        ecn_summary: vec![],
        bye: None,
        ..everything()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("usage: rtcp_capture FILE.pcap")?;
    let mut capture = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
    capture.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    capture.extend_from_slice(&65_535u32.to_le_bytes());
    capture.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
    for number in (1..=100u16).filter(|number| !matches!(number, 7 | 8)) {
        let data = RtpData {
            ssrc: Ssrc(2),
            timestamp: u32::from(number) * 900,
            sequence: number,
            payload_type: RtpData::PAYLOAD_TYPE,
            marker: number % 10 == 0,
            transport: (number > 50).then(|| number.wrapping_add(65_500)),
            original: None,
        };
        let mut bytes = Vec::new();
        rtp::encode(&data, &mut bytes)?;
        bytes.extend_from_slice(&[0; 100]);
        capture.extend(record(u32::from(number) * 10, 5004, &bytes));
    }
    for (millis, compound) in [(1500, everything()), (1600, alone())] {
        let mut bytes = Vec::new();
        rtcp::encode(&compound, &mut bytes)?;
        capture.extend(record(millis, 5005, &bytes));
    }
    std::fs::write(file, capture)?;
    Ok(())
}
