//! What is written: every event and frame once, in a file that is kept (`written.sqlog`; PACELINE_BLESS=1 makes it anew) and that
//! tests/test_qlog.py holds against the draft's definitions. Here a foreign library reads it: Cloudflare's `qlog`, whose types are
//! the same drafts' and refuse what they do not know.

use paceline_qlog::write::*;
use paceline_units::{Rate, Span, Time};

/// One of each.
fn frames() -> Vec<Frame<'static>> {
    vec![
        Frame::Padding { length: 917 },
        Frame::Ping,
        Frame::ack(Span::from_micros(1200), &[(5, 9), (1, 1)]),
        Frame::Ack { delay: None, ranges: &[(0, 3)], ecn: Some(EcnCounts { ect0: 0, ect1: 4, ce: 1 }) },
        Frame::ResetStream { id: 4, error: ErrorCode(7), final_size: 12_000 },
        Frame::StopSending { id: 4, error: ErrorCode(7) },
        Frame::Crypto { offset: 0, length: 283 },
        Frame::Stream { id: 4, offset: 12_000, length: 1100, fin: true },
        Frame::MaxData { maximum: 1 << 20 },
        Frame::MaxStreamData { id: 4, maximum: 1 << 18 },
        Frame::MaxStreams { kind: StreamKind::of(2), maximum: 100 },
        Frame::DataBlocked { limit: 1 << 20 },
        Frame::StreamDataBlocked { id: 4, limit: 1 << 18 },
        Frame::StreamsBlocked { kind: StreamKind::of(0), limit: 100 },
        Frame::NewConnectionId { sequence_number: 1, retire_prior_to: 0, connection_id: "0a1b2c3d4e5f6071" },
        Frame::RetireConnectionId { sequence_number: 0 },
        Frame::PathChallenge,
        Frame::PathResponse,
        Frame::ConnectionClose { error: CloseError::Transport(0xa), reason: "a frame that may not come" },
        Frame::ConnectionClose { error: CloseError::Transport(0x128), reason: "" },
        Frame::ConnectionClose { error: CloseError::Application(9), reason: "enough seen" },
        Frame::HandshakeDone,
        Frame::Datagram { length: 1000 },
        Frame::Unknown { kind: 0xaf },
    ]
}

/// One of each, those first that come first.
fn events<'a>(frames: &'a [Frame<'a>]) -> Vec<Event<'a>> {
    let local = Endpoint { address: Some("192.0.2.1"), port: Some(4433), connection_id: Some("0a1b2c3d4e5f6070") };
    let remote = Endpoint { address: Some("2001:db8::7"), port: Some(50_001), connection_id: None };
    let whole = Packet::new(PacketKind::OneRtt, 7, 1252, frames);
    let probe = Packet {
        is_mtu_probe: true,
        datagram_id: Some(3),
        trigger: Some(SendTrigger::PtoProbe),
        ..Packet::new(PacketKind::Initial, 0, 1200, &[])
    };
    let metrics = Metrics {
        min_rtt: Some(Span::from_micros(49_870)),
        smoothed_rtt: Some(Span::from_millis(52)),
        latest_rtt: Some(Span::from_millis(51)),
        rtt_variance: Some(Span::from_millis(3)),
        pto_count: Some(0),
        congestion_window: Some(12_000),
        bytes_in_flight: Some(6260),
        ssthresh: Some(9000),
        packets_in_flight: Some(5),
        pacing_rate: Some(Rate::from_bps(2_400_000)),
    };
    let lost = Event::PacketLost {
        packet: PacketName { kind: PacketKind::OneRtt, number: Some(4) },
        frames: &[],
        is_mtu_probe_packet: false,
        trigger: Some(LossTrigger::ReorderingThreshold),
    };
    vec![
        Event::ConnectionStarted { local, remote },
        Event::ConnectionStateUpdated { new: ConnectionState::Attempted },
        Event::ParametersSet(Parameters {
            initiator: Some(Initiator::Local),
            tls_cipher: Some("AES_128_GCM_SHA256"),
            max_idle_timeout_ms: Some(30_000),
            max_udp_payload_size: Some(1472),
            ack_delay_exponent: Some(3),
            max_ack_delay_ms: Some(25),
            initial_max_data: Some(1 << 20),
            initial_max_stream_data_bidi_local: Some(1 << 18),
            initial_max_stream_data_bidi_remote: Some(1 << 18),
            initial_max_stream_data_uni: Some(1 << 18),
            initial_max_streams_bidi: Some(100),
            initial_max_streams_uni: Some(3),
            max_datagram_frame_size: Some(1200),
            ..Parameters::default()
        }),
        Event::RecoveryParametersSet(RecoveryParameters {
            congestion_control: Some("cubic"),
            reordering_threshold: Some(3),
            time_threshold: Some(1.125),
            timer_granularity_ms: 1,
            initial_rtt: Some(Span::from_millis(333)),
            max_datagram_size: Some(1252),
            initial_congestion_window: Some(12_520),
            minimum_congestion_window: Some(2504),
            loss_reduction_factor: Some(0.7),
            persistent_congestion_threshold: Some(3),
        }),
        Event::PacketSent(probe),
        Event::UdpDatagramsSent(Datagrams { sizes: &[1200, 1252], ecn: Some(Ecn::Ect1), ids: &[3, 4] }),
        Event::UdpDatagramsReceived(Datagrams { sizes: &[40], ecn: None, ids: &[] }),
        Event::PacketSent(whole),
        Event::PacketReceived(whole),
        Event::PacketDropped { size: 40, trigger: DropTrigger::Invalid },
        Event::PacketsAcked { space: Space::ApplicationData, numbers: &[1, 5, 6] },
        Event::RecoveryMetricsUpdated(metrics),
        lost,
        Event::CongestionStateUpdated { old: Some("slow_start"), new: "recovery", trigger: None },
        Event::TimerUpdated {
            kind: TimerKind::Pto,
            space: Some(Space::ApplicationData),
            change: TimerChange::Set { delta: Span::from_millis(153) },
        },
        Event::TimerUpdated { kind: TimerKind::Ack, space: None, change: TimerChange::Cancelled },
        Event::StreamStateUpdated {
            id: 4,
            kind: Some(StreamKind::Bidirectional),
            old: Some(StreamState::Idle),
            new: StreamState::Open,
            side: StreamSide::Sending,
        },
        Event::StreamDataMoved { id: 4, offset: 0, from: Layer::Application, to: Layer::Transport, length: 4096 },
        Event::DatagramDataMoved { from: Layer::Transport, to: Layer::Application, length: 1000 },
        Event::EcnStateUpdated { old: Some(EcnState::Testing), new: EcnState::Capable },
        Event::MtuUpdated { old: Some(1252), new: 1452, done: true },
        Event::ConnectionClosed {
            initiator: Some(Initiator::Remote),
            error: Some(CloseError::Transport(0)),
            reason: "done",
            trigger: Some(CloseTrigger::Application),
        },
    ]
}

fn written() -> Vec<u8> {
    let trace = Trace {
        title: "each event once",
        description: "made by a test",
        vantage: Vantage::server("sender"),
        group_id: Some("8f3c21aa"),
        wall_clock_time: Some("2026-11-27T08:00:00Z"),
        code_version: Some("paceline"),
        system: Some(SystemInfo { process_id: Some(4711), ..SystemInfo::default() }),
        more_schemas: &[],
    };
    let mut log = Writer::new(Vec::new(), &trace).unwrap();
    let frames = frames();
    for (at, event) in (1u64..).zip(events(&frames)) {
        log.write(Time(at * 1_250_000), &event).unwrap();
    }
    log.finish().unwrap()
}

#[test]
fn it_is_the_file_that_is_kept() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/written.sqlog");
    let now = written();
    #[allow(clippy::disallowed_methods, reason = "a test that is told to write its file anew")]
    if std::env::var("PACELINE_BLESS").is_ok() {
        std::fs::write(path, &now).unwrap();
    }
    let kept = std::fs::read(path).unwrap_or_default();
    assert!(now == kept, "what is written has changed: PACELINE_BLESS=1 writes {path} anew");
}

#[test]
fn a_foreign_library_reads_every_event() {
    // It has no names for errors of TLS yet.
    let text = String::from_utf8(written()).unwrap().replace("crypto_error_0x128", "unknown");
    let bytes = text.as_bytes();
    let read = qlog::reader::QlogSeqReader::new(Box::new(bytes)).unwrap();
    assert_eq!(read.qlog.file_schema, qlog::QLOGFILESEQ_URI);
    assert_eq!(read.qlog.trace.event_schemas, [qlog::events::QUIC_URI]);
    let frames = frames();
    let ours = events(&frames);
    let mut unknown = Vec::new();
    let mut count = 0;
    for (event, ours) in read.zip(&ours) {
        count += 1;
        let event = match event {
            qlog::reader::Event::Qlog(event) => event,
            qlog::reader::Event::Json(event) => {
                unknown.push(event.name);
                continue;
            }
        };
        assert_eq!(serde_json::to_value(&event).unwrap()["name"], ours.name());
        if let qlog::events::EventData::QuicPacketReceived(packet) = &event.data {
            let read = packet.frames.as_deref().unwrap();
            let strange = read.iter().filter(|frame| matches!(frame, qlog::events::quic::QuicFrame::Unknown { .. }));
            assert_eq!((read.len(), strange.count()), (frames.len(), 1));
        }
    }
    assert_eq!(count, ours.len());
    // It has these by an older draft's names.
    assert_eq!(unknown, ["quic:udp_datagrams_sent", "quic:udp_datagrams_received"]);
}
