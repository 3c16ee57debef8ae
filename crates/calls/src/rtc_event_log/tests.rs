//! Hand-made logs, whole, truncated and damaged; a browser's logs are in `tests/chromium.rs`.

use super::messages::{
    BeginLog, LossBasedUpdates, ProbeCluster, ProbeResult, RouteChange, RtcpBatch, RtpBatch, ScreamUpdates,
};
use super::*;
use proptest::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint};

fn put(to: &mut Vec<u8>, number: u32, message: &impl Message) {
    encode_key(number, WireType::LengthDelimited, to);
    encode_varint(message.encoded_len() as u64, to);
    message.encode(to).unwrap();
}

fn beginning(version: u32) -> BeginLog {
    BeginLog { timestamp_ms: Some(1000), version: Some(version), utc_time_ms: Some(1_795_681_325_352) }
}

/// Two packets sent, one received, two compound packets, three estimates, two probes of which one was sent, and a
/// route.
fn whole() -> Vec<u8> {
    let mut log = Vec::new();
    put(&mut log, field::BEGIN, &beginning(2));
    let left = RtpBatch {
        timestamp_ms: Some(1020),
        marker: Some(false),
        payload_type: Some(96),
        sequence_number: Some(65_535),
        rtp_timestamp: Some(90_000),
        ssrc: Some(7),
        payload_size: Some(1000),
        header_size: Some(28),
        padding_size: Some(0),
        number_of_deltas: Some(1),
        transport_sequence_number: Some(9),
        // +5 ms; set; 16 bits that wrap; -100 of 16 bits; +1
        timestamp_ms_deltas: vec![0b0000_0010, 0b1010_0000],
        marker_deltas: vec![0b0000_0000, 0b1000_0000],
        sequence_number_deltas: vec![0b0100_0000, 0b0000_1111, 0b1000_0000],
        payload_size_deltas: vec![0b0100_0111, 0b1000_1111, 0b1001_1100],
        transport_sequence_number_deltas: vec![0b0000_0000, 0b1000_0000],
        ..RtpBatch::default()
    };
    put(&mut log, field::RTP_OUT, &left);
    put(&mut log, field::RTP_IN, &RtpBatch { timestamp_ms: Some(1010), ssrc: Some(8), ..RtpBatch::default() });
    let reports = RtcpBatch {
        timestamp_ms: Some(1050),
        raw_packet: Some(b"first".to_vec()),
        number_of_deltas: Some(1),
        timestamp_ms_deltas: vec![0b0000_0010, 0b1010_0000],
        raw_packet_blobs: b"\x06second".to_vec(),
    };
    put(&mut log, field::RTCP_IN, &reports);
    let rates = LossBasedUpdates {
        timestamp_ms: Some(1060),
        bitrate_bps: Some(300_000),
        number_of_deltas: Some(1),
        timestamp_ms_deltas: vec![0b0000_0010, 0b1010_0000],
        ..LossBasedUpdates::default()
    };
    put(&mut log, field::LOSS_BASED, &rates);
    let scream = ScreamUpdates { timestamp_ms: Some(1055), target_rate_kbps: Some(500), ..ScreamUpdates::default() };
    put(&mut log, field::SCREAM, &scream);
    let cluster = ProbeCluster { timestamp_ms: Some(1001), id: Some(1), min_packets: Some(5), min_bytes: Some(1688) };
    put(&mut log, field::CLUSTER, &cluster);
    // requested, but never sent: no result
    let vain = ProbeCluster { timestamp_ms: Some(1030), id: Some(2), min_packets: Some(5), min_bytes: Some(6750) };
    put(&mut log, field::CLUSTER, &vain);
    put(&mut log, field::PROBED, &ProbeResult { id: Some(1) });
    put(&mut log, field::ROUTE, &RouteChange { timestamp_ms: Some(1001), overhead: Some(48) });
    // an unknown message
    put(&mut log, 99, &RouteChange::default());
    log
}

#[test]
fn probes_that_never_left_are_left_out() {
    let cluster =
        |id| ProbeCluster { timestamp_ms: Some(1001), id: Some(id), min_packets: Some(5), min_bytes: Some(1688) };
    let of = |results: &[(u32, u32)]| {
        let mut log = Vec::new();
        put(&mut log, field::BEGIN, &beginning(2));
        (1..=3).for_each(|id| put(&mut log, field::CLUSTER, &cluster(id)));
        results.iter().for_each(|(number, id)| put(&mut log, *number, &ProbeResult { id: Some(*id) }));
        read(&log).unwrap().clusters.len()
    };
    assert_eq!(of(&[(field::PROBED, 1), (field::PROBED, 1), (field::PROBED_IN_VAIN, 3)]), 2);
    assert_eq!(of(&[]), 3, "a log without any result does not tell");
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

#[test]
fn what_a_log_holds() {
    let log = read(&whole()).unwrap();
    assert_eq!((log.began, log.overhead, log.cut), (Some(1_795_681_325_352), 48, false));
    let packets: Vec<_> = log.rtp.iter().map(|p| (p.at, p.way, p.ssrc.0, p.number, p.payload, p.transport)).collect();
    assert_eq!(
        packets,
        [
            (ms(10), Way::In, 8, 0, 0, None),
            (ms(20), Way::Out, 7, 65_535, 1000, Some(9)),
            (ms(25), Way::Out, 7, 0, 900, Some(10)),
        ]
    );
    assert_eq!((log.rtp[1].marker, log.rtp[2].marker), (false, true));
    assert_eq!((log.rtp[2].timestamp, log.rtp[2].payload_type, log.rtp[2].beside), (90_000, 96, 28));
    let control: Vec<_> = log.rtcp.iter().map(|p| (p.at, p.way, &p.bytes[..])).collect();
    assert_eq!(control, [(ms(50), Way::In, &b"first"[..]), (ms(55), Way::In, b"second")]);
    let estimates: Vec<_> = log.estimates.iter().map(|e| (e.at, e.of, e.rate)).collect();
    assert_eq!(
        estimates,
        [(ms(55), Estimator::Scream, 500_000), (ms(60), Estimator::Loss, 300_000), (ms(65), Estimator::Loss, 300_000),]
    );
    assert_eq!(log.clusters, [Cluster { at: ms(1), packets: 5, bytes: 1688 }]);
    assert_eq!(log.lasts(), ms(65).since(Time::ZERO));
}

#[test]
fn other_files_and_versions_are_told_apart() {
    assert_eq!(read(b"{\"PeerConnections\": {}}"), Err(LogError::Other));
    assert_eq!(read(b""), Err(LogError::Other));
    assert_eq!(read(&[0x0a, 3, 8, 1, 16]), Err(LogError::Old));
    let mut log = Vec::new();
    put(&mut log, field::BEGIN, &beginning(3));
    let error = read(&log).unwrap_err();
    assert_eq!(error.to_string(), "it is an event log of libwebrtc in version 3; version 2 is read");
}

#[test]
fn a_log_that_is_cut_off_is_read_as_far_as_it_goes() {
    let bytes = whole();
    let mut before = 0;
    for end in 2..bytes.len() {
        let log = read(&bytes[..end]).unwrap_or_else(|error| panic!("{end}: {error}"));
        assert!(log.rtp.len() >= before);
        before = log.rtp.len();
    }
    let log = read(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!((log.cut, log.rtp.len(), log.clusters.len()), (true, 3, 1));
}

#[test]
fn what_is_damaged_is_refused() {
    let with = |number: u32, batch: RtpBatch| {
        let mut log = Vec::new();
        put(&mut log, field::BEGIN, &beginning(2));
        put(&mut log, number, &batch);
        read(&log).unwrap_err().to_string()
    };
    let short =
        RtpBatch { number_of_deltas: Some(100), marker: Some(true), marker_deltas: vec![0, 1], ..RtpBatch::default() };
    assert_eq!(with(field::RTP_IN, short), "it is damaged: RTP packets");
    let many = RtpBatch { number_of_deltas: Some(u32::MAX), ..RtpBatch::default() };
    assert_eq!(with(field::RTP_IN, many), "it has more than 2000000 packets and estimates");
    let late = RtpBatch { timestamp_ms: Some(i64::MAX), ..RtpBatch::default() };
    assert_eq!(with(field::RTP_OUT, late), "it is damaged: its times lie more than a week apart");
    // a field that is no message
    assert_eq!(read(&[0x82, 1, 0, 0x18, 1]).unwrap_err(), LogError::Version(0));
    let mut log = Vec::new();
    put(&mut log, field::BEGIN, &beginning(2));
    assert_eq!(read(&[&log[..], &[0x18, 1]].concat()), Err(LogError::Damaged("a message is none")));
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = whole();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(end.index(bytes.len()) + 1);
        if let Ok(log) = read(&bytes) {
            prop_assert!(log.rtp.len() <= MAX_EVENTS);
        }
    }
}
