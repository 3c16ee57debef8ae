//! RTCP: exact round trips of every content, the rules of compound packets, a foreign implementation as the reference,
//! and an answer to any bytes.

use crate::compounds;

use compounds::{compound, plain, reduced};
use paceline_packet::rtcp::*;
use paceline_packet::rtp::Ssrc;
use paceline_packet::wire::rtcp::{DecodeError, EncodeError, decode, encode};
use paceline_packet::{Ntp, NtpMiddle, NtpSpan};
use proptest::prelude::*;
use rtcp_types::prelude::*;

fn encoded(compound: &Compound) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(compound, &mut bytes).expect("in range");
    bytes
}

/// A receiver report of SSRC 1 without blocks, and its CNAME "a": the shortest compound packet.
const RR: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 1];
const CNAME: [u8; 12] = [0x81, 202, 0, 2, 0, 0, 0, 1, 1, 1, b'a', 0];

#[test]
fn the_shortest_compound_packet() {
    let bytes = [&RR[..], &CNAME].concat();
    assert_eq!(encoded(&plain(1, "a")), bytes);
    assert_eq!(decode(&bytes), Ok(plain(1, "a")));
}

#[test]
fn the_bytes_of_each_content() {
    let block = ReportBlock {
        ssrc: Ssrc(0x0102_0304),
        fraction_lost: 0x40,
        cumulative_lost: -2,
        extended_highest: 0x0001_0007,
        jitter: 9,
        lsr: NtpMiddle(0xb705_2000),
        dlsr: NtpSpan(0x0005_4000),
    };
    let sender = SenderInfo { ntp: Ntp(0x83aa_7e80_8000_0000), rtp: 5, packets: 6, octets: 7 };
    let apps = vec![
        App::Probe(Probe { first: 0xfffe, count: 10 }),
        App::Bottleneck(Bottleneck { ssrc: Ssrc(3), rate: paceline_units::Rate(10_000_000) }),
        App::Loss(Loss { ssrc: Ssrc(3), fraction: 0x0083_126e }),
    ];
    let received = Arrival::Received { ecn: Ecn::Ce, offset: ArrivalOffset::from_bits(2) };
    let arrivals = ArrivalFeedback {
        reported: NtpMiddle(0x7e80_8000),
        streams: vec![StreamArrivals { ssrc: Ssrc(3), begin: 17, packets: vec![received, Arrival::Missing, received] }],
    };
    let bye = Bye { sources: vec![Ssrc(2)], reason: Some("end".into()) };
    let whole = Compound {
        sender: Some(sender),
        reports: vec![block],
        apps,
        arrivals: Some(arrivals),
        bye: Some(bye),
        ..plain(2, "x@y")
    };
    #[rustfmt::skip]
    let bytes: &[u32] = &[
        0x81c8_000c, 2, 0x83aa_7e80, 0x8000_0000, 5, 6, 7,
            0x0102_0304, 0x40ff_fffe, 0x0001_0007, 9, 0xb705_2000, 0x0005_4000,
        0x81ca_0003, 2, 0x0103_7840, 0x7900_0000,
        0x81cc_0003, 2, 0x5043_4c4e, 0xfffe_000a,
        0x82cc_0005, 2, 0x5043_4c4e, 3, 0, 10_000_000,
        0x83cc_0004, 2, 0x5043_4c4e, 3, 0x0083_126e,
        0x8bcd_0006, 2, 3, 0x0011_0003, 0xe002_0000, 0xe002_0000, 0x7e80_8000,
        0x81cb_0002, 2, 0x0365_6e64,
    ];
    let bytes: Vec<u8> = bytes.iter().flat_map(|word| word.to_be_bytes()).collect();
    assert_eq!(encoded(&whole), bytes);
    assert_eq!(decode(&bytes), Ok(whole));
}

#[test]
fn the_rules_of_a_compound_packet() {
    let both = |parts: &[&[u8]]| decode(&parts.concat());
    assert_eq!(decode(&[]), Err(DecodeError::Truncated));
    assert_eq!(both(&[&CNAME, &RR]), Err(DecodeError::First(202)), "a report comes first");
    let feedback = [0x8b, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0];
    let alone = ArrivalFeedback { reported: NtpMiddle(0), streams: vec![] };
    assert_eq!(
        decode(&feedback),
        Ok(Compound { arrivals: Some(alone), reduced: true, ..plain(1, "") }),
        "or feedback stands alone (RFC 5506)"
    );
    assert_eq!(both(&[&feedback, &CNAME]), Err(DecodeError::Beside(202)));
    assert_eq!(decode(&[0x83, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]), Err(DecodeError::Nothing), "TMMBR");
    assert_eq!(decode(&[0x81, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]), Err(DecodeError::Content(205)), "an empty NACK");
    let mut wrong = [&RR[..], &CNAME].concat();
    wrong[8] = 0x41;
    assert_eq!(decode(&wrong), Err(DecodeError::Version(1)), "in any packet");
    assert_eq!(both(&[&RR, &CNAME, &[0x80]]), Err(DecodeError::Truncated), "lengths add up");
    assert_eq!(both(&[&RR, &CNAME, &[0x80, 203, 0, 1]]), Err(DecodeError::Truncated));
    assert_eq!(both(&[&[0x81, 201, 0, 1, 0, 0, 0, 1], &CNAME]), Err(DecodeError::Content(201)), "a block announced");
    assert_eq!(both(&[&RR, &[0x82, 202, 0, 2, 0, 0, 0, 1, 1, 1, b'a', 0]]), Err(DecodeError::Content(202)));
    assert_eq!(both(&[&RR, &[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, b'a', 0]]), Err(DecodeError::Content(202)));
    assert_eq!(
        both(&[&RR, &[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 2, b'a', b'b']]),
        Err(DecodeError::Content(202)),
        "no end"
    );
    assert_eq!(both(&[&RR, &[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 1, 0xff, 0]]), Err(DecodeError::Text));
    let bye = [0x81, 203, 0, 1, 0, 0, 0, 1];
    assert_eq!(both(&[&RR, &CNAME, &bye, &bye]), Err(DecodeError::Twice(203)));
    let sr = [&[0x80, 200, 0, 6, 0, 0, 0, 1][..], &[0; 20]].concat();
    assert_eq!(both(&[&sr, &sr, &CNAME]), Err(DecodeError::Twice(200)));
    let loss = [0x83, 204, 0, 3, 0, 0, 0, 1, b'P', b'C', b'L', b'N', 0, 0, 0, 9];
    assert_eq!(both(&[&RR, &CNAME, &loss]), Err(DecodeError::Content(204)));
    let many = [0x8b, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0x40, 1, 0, 0, 0, 0];
    assert_eq!(both(&[&RR, &CNAME, &many]), Err(DecodeError::Arrivals(16_385)));
    let short = [0x8b, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(both(&[&RR, &CNAME, &short]), Err(DecodeError::Content(205)));
}

/// Section 6.1 requires a CNAME; what others leave it out of counts all the same.
#[test]
fn a_compound_packet_without_a_cname_is_read_and_known() {
    let feedback = [0x8b, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0];
    // the CNAME of another source, and an empty one
    let (other, empty) = ([0x81, 202, 0, 2, 0, 0, 0, 2, 1, 1, b'a', 0], [0x81, 202, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0]);
    for sdes in [&[][..], &other, &empty, &[0x80, 202, 0, 0]] {
        let compound = decode(&[&RR, sdes, &feedback].concat()).unwrap();
        assert!(compound.lacks_cname(), "{sdes:?}");
        let arrivals = Some(ArrivalFeedback { reported: NtpMiddle(0), streams: vec![] });
        assert_eq!(compound, Compound { arrivals, ..plain(1, "") });
    }
    assert!(!decode(&[&RR[..], &CNAME].concat()).unwrap().lacks_cname());
    assert!(!decode(&feedback).unwrap().lacks_cname(), "of reduced size");
}

#[test]
fn padding_is_the_last_packets() {
    let padded = |count: u8| [0xa1, 203, 0, 2, 0, 0, 0, 1, 7, 7, 7, count];
    let plainly = [&RR[..], &CNAME, &[0x81, 203, 0, 1, 0, 0, 0, 1]].concat();
    assert_eq!(decode(&[&RR[..], &CNAME, &padded(4)].concat()), decode(&plainly));
    for count in [0, 3, 12, 200] {
        assert_eq!(decode(&[&RR[..], &CNAME, &padded(count)].concat()), Err(DecodeError::Padding), "{count}");
    }
    assert_eq!(decode(&[&RR[..], &padded(4), &CNAME].concat()), Err(DecodeError::Padding));
    assert_eq!(decode(&[&RR[..], &CNAME, &[0xa0, 203, 0, 0]].concat()), Err(DecodeError::Padding), "no room for it");
}

#[test]
fn feedback_is_padded_by_any_number_of_bytes() {
    // transport-wide feedback on seven packets as libwebrtc sends it: a byte short of four, which the padding bit says
    let libwebrtc = [
        0xaf, 0xcd, 0, 7, 0, 0, 0, 1, 0xa6, 0xfb, 0x98, 0xae, 0, 1, 0, 7, 0, 0x13, 0x4f, 0, 0x20, 7, 0x57, 0x25, 0x26,
        0x16, 4, 4, 0xb, 0xb, 0, 1,
    ];
    let transport = decode(&libwebrtc).unwrap().transport;
    assert_eq!((transport.len(), transport[0].base, transport[0].packets.len()), (1, 1, 7));
    let mut longer = libwebrtc;
    longer[31] = 25;
    assert_eq!(decode(&longer), Err(DecodeError::Content(205)), "nothing is left of it");
    longer[31] = 29;
    assert_eq!(decode(&longer), Err(DecodeError::Padding), "more than there is");
}

#[test]
fn what_a_compound_packet_has_no_place_for_is_left_out() {
    // a translator's other participant; an XR packet; another SDES item, also after the name; NACK and PLI of
    // the other
    let other = [0x80, 201, 0, 1, 0, 0, 0, 9];
    let xr = [0x80, 207, 0, 1, 0, 0, 0, 1];
    let tool = [0x82, 202, 0, 5, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 1, 6, 1, b't', 1, 1, b'a', 0, 0];
    let nack = [0x81, 205, 0, 3, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 0];
    let pli = [0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 1];
    let bytes = [&RR[..], &other, &xr, &tool, &nack, &pli].concat();
    assert_eq!(decode(&bytes), Ok(plain(1, "a")));
}

/// RFC 4585 sections 6.1, 6.2.1 and 6.3.1; overlapping items name a packet once.
#[test]
fn the_bytes_of_nack_and_pli() {
    let lost = vec![0xfffe, 0xffff, 14, 15];
    let nack = Repair::Nack(Nack { ssrc: Ssrc(9), lost });
    let whole = Compound { repair: vec![nack, Repair::Pli(Ssrc(9))], reduced: true, ..plain(1, "") };
    let bytes = [
        &[0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9, 0xff, 0xfe, 0x80, 1, 0, 15, 0, 0][..],
        &[0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 9],
    ];
    assert_eq!(encoded(&whole), bytes.concat());
    assert_eq!(decode(&bytes.concat()), Ok(whole));
    let twice = decode(&[0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9, 0, 5, 0, 3, 0, 6, 0, 2]).unwrap();
    assert_eq!(twice.repair, [Repair::Nack(Nack { ssrc: Ssrc(9), lost: vec![5, 6, 7, 8] })]);
}

/// RFC 6679 sections 5.1 and 5.2. A block of another kind, or with a length that no summary has, says nothing.
#[test]
fn the_bytes_of_ecn_feedback_and_summary() {
    let counts = EcnCounts { ect0: 1000, ect1: 2, ce: 30, not_ect: 0x104, lost: 5, duplicates: 6 };
    let words = [0, 0, 3, 0xe8, 0, 0, 0, 2, 0, 30, 1, 4, 0, 5, 0, 6];
    let feedback = EcnFeedback { ssrc: Ssrc(9), extended_highest: 0x1_0007, counts };
    let alone = Compound { ecn: vec![feedback], reduced: true, ..plain(1, "") };
    let bytes = [&[0x88, 205, 0, 7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 1, 0, 7][..], &words].concat();
    assert_eq!(encoded(&alone), bytes);
    assert_eq!(decode(&bytes), Ok(alone));
    let whole = Compound { ecn_summary: vec![EcnSummary { ssrc: Ssrc(9), counts }], ..plain(1, "a") };
    let block = [&[13, 0, 0, 5, 0, 0, 0, 9][..], &words].concat();
    let xr = [&[0x80, 207, 0, 7, 0, 0, 0, 1][..], &block].concat();
    assert_eq!(encoded(&whole), [&encoded(&plain(1, "a")), &xr[..]].concat());
    assert_eq!(decode(&encoded(&whole)), Ok(whole.clone()));
    let more =
        [&[0x80, 207, 0, 12, 0, 0, 0, 1, 4, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 1, 0, 0, 0, 9][..], &block]
            .concat();
    assert_eq!(decode(&[&encoded(&plain(1, "a")), &more[..]].concat()), Ok(whole));
    let cut = [0x80, 207, 0, 3, 0, 0, 0, 1, 13, 0, 0, 5, 0, 0, 0, 9];
    assert_eq!(decode(&[&encoded(&plain(1, "a")), &cut[..]].concat()), Err(DecodeError::Content(207)));
}

#[test]
fn what_is_out_of_range_has_no_encoding() {
    let refuses = |compound: Compound, error: EncodeError| {
        let mut bytes = vec![1, 2, 3];
        assert_eq!(encode(&compound, &mut bytes), Err(error));
        assert_eq!(bytes, [1, 2, 3], "nothing is appended");
        assert!(!error.to_string().is_empty());
    };
    let other = |subtype, len| {
        let data = vec![0; len].into();
        Compound { apps: vec![App::Other(OtherApp { name: *b"abcd", subtype, data })], ..plain(1, "a") }
    };
    let long = "x".repeat(256);
    refuses(plain(1, &long), EncodeError::Cname(256));
    let reason = Some(long.as_str().into());
    refuses(Compound { bye: Some(Bye { sources: vec![], reason }), ..plain(1, "a") }, EncodeError::Reason(256));
    let bye = Bye { sources: vec![Ssrc(1); 32], reason: None };
    refuses(Compound { bye: Some(bye), ..plain(1, "a") }, EncodeError::Sources(32));
    let nack = Repair::Nack(Nack { ssrc: Ssrc(9), lost: vec![] });
    refuses(Compound { repair: vec![nack], ..plain(1, "a") }, EncodeError::NoLoss);
    refuses(other(32, 4), EncodeError::Subtype(32));
    refuses(other(31, 5), EncodeError::AppData(5));
    refuses(other(31, 262_136), EncodeError::Length(262_148));
    let packets = vec![Arrival::Missing; StreamArrivals::MAX + 1];
    let streams = vec![StreamArrivals { ssrc: Ssrc(1), begin: 0, packets }];
    let arrivals = Some(ArrivalFeedback { reported: NtpMiddle(0), streams });
    refuses(Compound { arrivals: arrivals.clone(), ..plain(1, "a") }, EncodeError::Arrivals(16_385));
    let alone = Compound { arrivals, reduced: true, ..plain(1, "") };
    refuses(alone.clone(), EncodeError::Arrivals(16_385));
    refuses(Compound { arrivals: None, ..alone.clone() }, EncodeError::Reduced);
    refuses(Compound { cname: "a".into(), ..alone.clone() }, EncodeError::Reduced);
    refuses(Compound { reports: vec![compounds::BLOCK], ..alone }, EncodeError::Reduced);
}

#[test]
fn cumulative_loss_is_sent_as_the_nearest_that_fits() {
    for (lost, sent) in [(i32::MAX, 0x7f_ffff), (i32::MIN, -0x80_0000), (0x7f_ffff, 0x7f_ffff), (-1, -1)] {
        let block = ReportBlock { cumulative_lost: lost, ..compounds::BLOCK };
        let bytes = encoded(&Compound { reports: vec![block], ..plain(1, "a") });
        assert_eq!(decode(&bytes).unwrap().reports[0].cumulative_lost, sent);
    }
}

/// What `rtcp-types` makes of our bytes, for the packet types that it and we have.
fn by_reference(bytes: &[u8]) -> Compound {
    let mut read = plain(0, "");
    let block = |b: rtcp_types::ReportBlock<'_>| ReportBlock {
        ssrc: Ssrc(b.ssrc()),
        fraction_lost: b.fraction_lost(),
        cumulative_lost: (b.cumulative_lost() << 8) as i32 >> 8,
        extended_highest: b.extended_sequence_number(),
        jitter: b.interarrival_jitter(),
        lsr: NtpMiddle(b.last_sender_report_timestamp()),
        dlsr: NtpSpan(b.delay_since_last_sender_report_timestamp()),
    };
    for packet in rtcp_types::Compound::parse(bytes).expect("lengths add up") {
        match packet.expect("a packet by the reference's reading") {
            rtcp_types::Packet::Sr(sr) => {
                read.ssrc = Ssrc(sr.ssrc());
                read.sender = Some(SenderInfo {
                    ntp: Ntp(sr.ntp_timestamp()),
                    rtp: sr.rtp_timestamp(),
                    packets: sr.packet_count(),
                    octets: sr.octet_count(),
                });
                read.reports.extend(sr.report_blocks().map(block));
            }
            rtcp_types::Packet::Rr(rr) => {
                read.ssrc = Ssrc(rr.ssrc());
                read.reports.extend(rr.report_blocks().map(block));
            }
            rtcp_types::Packet::Sdes(sdes) => {
                let chunk = sdes.chunks().next().expect("a chunk");
                let item = chunk.items().next().expect("an item");
                assert_eq!((chunk.ssrc(), item.type_()), (read.ssrc.0, rtcp_types::SdesItem::CNAME));
                read.cname = item.get_value_string().expect("UTF-8").into();
            }
            rtcp_types::Packet::App(app) => {
                assert_eq!(app.ssrc(), read.ssrc.0);
                read.apps.push(App::Other(OtherApp {
                    name: app.name(),
                    subtype: app.subtype(),
                    data: app.data().into(),
                }));
            }
            rtcp_types::Packet::Bye(bye) => {
                let reason = bye.get_reason_string().map(|text| text.expect("UTF-8").into());
                read.bye = Some(Bye { sources: bye.ssrcs().map(Ssrc).collect(), reason });
            }
            rtcp_types::Packet::TransportFeedback(nack) => {
                assert_eq!(nack.sender_ssrc(), read.ssrc.0);
                let lost = nack.parse_fci::<rtcp_types::Nack>().expect("a NACK").entries().collect();
                read.repair.push(Repair::Nack(Nack { ssrc: Ssrc(nack.media_ssrc()), lost }));
            }
            rtcp_types::Packet::PayloadFeedback(pli) => {
                assert_eq!(pli.sender_ssrc(), read.ssrc.0);
                pli.parse_fci::<rtcp_types::Pli>().expect("a PLI");
                read.repair.push(Repair::Pli(Ssrc(pli.media_ssrc())));
            }
            packet => panic!("{packet:?}"),
        }
    }
    read
}

/// The same compound packet as `rtcp-types` writes it.
fn written_by_reference(compound: &Compound) -> Vec<u8> {
    let block = |b: &ReportBlock| {
        rtcp_types::ReportBlock::builder(b.ssrc.0)
            .fraction_lost(b.fraction_lost)
            .cumulative_lost(b.cumulative_lost as u32 & 0xff_ffff)
            .extended_sequence_number(b.extended_highest)
            .interarrival_jitter(b.jitter)
            .last_sender_report_timestamp(b.lsr.0)
            .delay_since_last_sender_report_timestamp(b.dlsr.0)
    };
    let ssrc = compound.ssrc.0;
    let (first, rest) = compound.reports.split_at(compound.reports.len().min(31));
    let mut whole = rtcp_types::Compound::builder();
    whole = match &compound.sender {
        Some(sender) => {
            let report = rtcp_types::SenderReport::builder(ssrc)
                .ntp_timestamp(sender.ntp.0)
                .rtp_timestamp(sender.rtp)
                .packet_count(sender.packets)
                .octet_count(sender.octets);
            whole.add_packet(first.iter().fold(report, |report, b| report.add_report_block(block(b))))
        }
        None => whole.add_packet(
            first.iter().fold(rtcp_types::ReceiverReport::builder(ssrc), |report, b| report.add_report_block(block(b))),
        ),
    };
    for blocks in rest.chunks(31) {
        let report = rtcp_types::ReceiverReport::builder(ssrc);
        whole = whole.add_packet(blocks.iter().fold(report, |report, b| report.add_report_block(block(b))));
    }
    let item = rtcp_types::SdesItem::builder(rtcp_types::SdesItem::CNAME, &compound.cname);
    let chunk = rtcp_types::SdesChunk::builder(ssrc).add_item(item);
    whole = whole.add_packet(rtcp_types::Sdes::builder().add_chunk(chunk));
    for app in &compound.apps {
        let App::Other(app) = app else { panic!("not for the reference") };
        let name = core::str::from_utf8(&app.name).expect("ASCII");
        whole = whole.add_packet(rtcp_types::App::builder(ssrc, name).subtype(app.subtype).data(&app.data));
    }
    for repair in &compound.repair {
        whole = match repair {
            Repair::Nack(nack) => {
                let fci = nack.lost.iter().fold(rtcp_types::Nack::builder(), |fci, &lost| fci.add_rtp_sequence(lost));
                let nack = rtcp_types::TransportFeedback::builder_owned(fci).media_ssrc(nack.ssrc.0);
                whole.add_packet(nack.sender_ssrc(ssrc))
            }
            Repair::Pli(source) => {
                let pli = rtcp_types::PayloadFeedback::builder_owned(rtcp_types::Pli::builder());
                whole.add_packet(pli.sender_ssrc(ssrc).media_ssrc(source.0))
            }
        };
    }
    if let Some(bye) = &compound.bye {
        let leave = bye.sources.iter().fold(rtcp_types::Bye::builder(), |leave, source| leave.add_source(source.0));
        whole = whole.add_packet(leave.reason(bye.reason.as_deref().unwrap_or("")));
    }
    let mut bytes = vec![0; whole.calculate_size().expect("in range")];
    whole.write_into(&mut bytes).expect("in range");
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_encoded_decodes_to_the_same(whole in prop_oneof![compound(), reduced()]) {
        let bytes = encoded(&whole);
        prop_assert_eq!(bytes.len(), whole.wire_len());
        prop_assert_eq!(decode(&bytes), Ok(whole));
    }

    #[test]
    fn the_reference_reads_and_writes_the_same(whole in compound()) {
        let apps = whole.apps.into_iter().filter(|app| matches!(app, App::Other(_))).collect();
        // the reference sorts the numbers, wherever they begin
        let sorted = |repair: &Repair| !matches!(repair, Repair::Nack(nack) if !nack.lost.is_sorted());
        let repair = whole.repair.into_iter().filter(sorted).collect();
        let (arrivals, transport, ecn, ecn_summary) = (None, vec![], vec![], vec![]);
        let whole = Compound { apps, repair, arrivals, transport, ecn, ecn_summary, ..whole };
        let bytes = encoded(&whole);
        prop_assert_eq!(&by_reference(&bytes), &whole);
        let theirs = written_by_reference(&whole);
        prop_assert_eq!(&decode(&theirs), &Ok(whole));
        prop_assert_eq!(theirs, bytes);
    }

    #[test]
    fn cut_short_it_is_refused_or_says_less(whole in compound(), cut: prop::sample::Index) {
        let bytes = encoded(&whole);
        let cut = cut.index(bytes.len());
        if let Ok(less) = decode(&bytes[..cut]) {
            // an empty CNAME reads as none
            prop_assert!(less != whole || whole.lacks_cname());
            prop_assert!(less.ssrc == whole.ssrc && (less.cname == whole.cname || less.lacks_cname()));
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    /// Bytes that have been right: most packets pass the first checks.
    #[test]
    fn damaged_bytes_get_an_answer(
        whole in prop_oneof![compound(), reduced()],
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = encoded(&whole);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        match decode(&bytes) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(read) => prop_assert_eq!(decode(&encoded(&read)), Ok(read)),
        }
    }
}
