//! What is read of each dialect: the same connection, told by different programs, gives the same measures.

use paceline_qlog::read::{Ended, Reader, Reading, Way};
use paceline_qlog::write::{Event, Frame, LossTrigger, Packet, PacketKind, PacketName, Trace, Vantage, Writer};
use paceline_qlog::{Connection, Error};
use paceline_units::{Span, Time};
use proptest::prelude::*;
use std::io;

fn read_every(every: Span, texts: &[(&str, &str)]) -> Result<Reading, Error> {
    let mut reader = Reader::new(every);
    for (name, text) in texts {
        reader.read(name, &mut || Ok(Box::new(io::Cursor::new((*text).to_owned().into_bytes()))))?;
    }
    Ok(reader.finish())
}

fn read(text: &str) -> Reading {
    read_every(Span::from_millis(10), &[("a.qlog", text)]).unwrap_or_else(|error| panic!("{error}"))
}

fn column(connection: &Connection, table: &str, name: &str) -> Vec<f64> {
    let table = connection.tables.iter().find(|one| one.name == table).unwrap();
    table.columns.iter().find(|column| column.0 == name).unwrap().1.clone()
}

fn last(connection: &Connection, name: &str) -> f64 {
    *column(connection, "qlog", name).last().unwrap()
}

/// The connection of all dialects: three packets of 1000 bytes of payload, the second lost, its payload sent again; 50 ms.
fn check(reading: &Reading) {
    let [connection] = &reading.connections[..] else { panic!("{} connections", reading.connections.len()) };
    let measures = &connection.measures;
    assert_eq!((measures.packets_sent, measures.sent_bytes), (Some(4), Some(4200)));
    assert_eq!((measures.packets_delivered, measures.packets_lost), (Some(3), Some(1)));
    assert_eq!((measures.packets_retransmitted, measures.delivered_bytes), (Some(1), Some(3000)));
    assert_eq!((connection.way, connection.vantage.as_str()), (Way::Out, "server"));
    let near = |value: Option<f64>, expected: f64| {
        assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?}, not {expected}");
    };
    near(measures.rtt_min_s, 0.05);
    near(Some(last(connection, "latest_rtt_s")), 0.0505);
    near(Some(last(connection, "srtt_s")), 0.0502);
    near(Some(last(connection, "sample_rtt_s")), 0.05);
    assert_eq!(last(connection, "cwnd_bytes"), 12_000.0);
    assert_eq!(connection.packet_bytes, Some(1050));
    assert_eq!(last(connection, "acked_bytes"), 3150.0);
    near(Some(connection.end.as_secs_f64()), 0.15);
    assert_eq!(connection.ended, Ended::Closed);
    let (times, goodput) = (column(connection, "rate", "time_s"), column(connection, "rate", "goodput_bps"));
    let bits: f64 =
        times.iter().scan(0.0, |t, at| Some(at - std::mem::replace(t, *at))).zip(goodput).map(|(l, r)| l * r).sum();
    near(Some(bits / 8.0), 3000.0);
}

/// Its events, as `transport:...` of 0.3 with times in ms from `from` on, one a line.
fn events(from: f64, packets: &str, recovery: &str, lengths: fn(u64) -> String) -> Vec<String> {
    let sent = |ms: f64, number: u64, offset: u64| {
        format!(
            r#"{{"time": {}, "name": "{packets}:packet_sent", "data": {{"header": {{"packet_type": "1RTT", "packet_number": {number}}}, "raw": {{"length": 1050}}, "frames": [{{"frame_type": "stream", "stream_id": 4, "offset": {offset}, {}}}]}}}}"#,
            from + ms,
            lengths(1000)
        )
    };
    let acked = |ms: f64, number: u64, ranges: &str| {
        format!(
            r#"{{"time": {}, "name": "{packets}:packet_received", "data": {{"header": {{"packet_type": "1RTT", "packet_number": {number}}}, "raw": {{"length": 40}}, "frames": [{{"frame_type": "ack", "ack_delay": 0.5, "acked_ranges": {ranges}}}]}}}}"#,
            from + ms
        )
    };
    let metrics = if recovery == "quic" { "quic:recovery_metrics_updated" } else { "recovery:metrics_updated" };
    vec![
        sent(0.0, 0, 0),
        sent(1.0, 1, 1000),
        sent(2.0, 2, 2000),
        acked(50.0, 0, "[[0]]"),
        format!(
            r#"{{"time": {}, "name": "{metrics}", "data": {{"latest_rtt": 50, "smoothed_rtt": 50, "min_rtt": 50, "congestion_window": 24000, "bytes_in_flight": 2100}}}}"#,
            from + 50.0
        ),
        acked(52.0, 1, "[[2, 2], [0, 0]]"),
        format!(
            r#"{{"time": {}, "name": "{recovery}:packet_lost", "data": {{"header": {{"packet_type": "1RTT", "packet_number": 1}}, "trigger": "reordering_threshold"}}}}"#,
            from + 52.0
        ),
        format!(
            r#"{{"time": {}, "name": "{metrics}", "data": {{"latest_rtt": 50.5, "smoothed_rtt": 50.2, "congestion_window": 12000}}}}"#,
            from + 52.0
        ),
        sent(100.0, 3, 1000),
        acked(150.0, 2, "[[2, 3], [0]]"),
        format!(r#"{{"time": {}, "name": "{packets}:connection_closed", "data": {{}}}}"#, from + 150.0),
    ]
}

fn short_length(length: u64) -> String {
    format!(r#""length": {length}"#)
}

fn raw_length(length: u64) -> String {
    format!(r#""raw": {{"length": {length}}}"#)
}

#[test]
fn one_value_of_version_0_3() {
    let events = events(1.6e12, "transport", "recovery", short_length).join(",\n");
    let text = format!(
        r#"{{"qlog_format": "JSON", "qlog_version": "0.3", "traces": [{{"common_fields": {{"ODCID": "ab"}}, "events": [{events}], "vantage_point": {{"type": "server"}}}}]}}"#
    );
    check(&read(&text));
    // a byte order mark is passed over, once
    check(&read(&format!("\u{feff}\n{text}")));
    assert!(read_every(Span(0), &[("twice", &format!("\u{feff}\u{feff}{text}"))]).is_err());
    assert!(read_every(Span(0), &[("alone", "\u{feff}")]).unwrap_err().to_string().contains("it is empty"));
}

#[test]
fn a_text_sequence_of_version_0_3_and_one_of_the_current_drafts() {
    let old = r#"{"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "title": "t", "trace": {"vantage_point": {"type": "server"}, "common_fields": {"time_format": "relative", "reference_time": 1600000000000}}}"#;
    let new = r#"{"file_schema": "urn:ietf:params:qlog:file:sequential", "serialization_format": "application/qlog+json-seq", "trace": {"vantage_point": {"type": "server"}, "event_schemas": ["urn:ietf:params:qlog:events:quic-12"], "common_fields": {"time_format": "relative_to_epoch", "reference_time": {"clock_type": "monotonic", "epoch": "unknown"}}}}"#;
    for (head, recovery, packets) in [(old, "recovery", "transport"), (old, "recovery", "quic"), (new, "quic", "quic")]
    {
        let events = events(7.0, packets, recovery, if head == new { raw_length } else { short_length });
        let records = |between: &str| {
            [head.to_owned()].iter().chain(&events).map(|one| format!("{between}{one}\n")).collect::<String>()
        };
        check(&read(&records("\u{1e}")));
        // As older quic-go has it.
        check(&read(&records("")));
        for between in ["\u{1e}", ""] {
            check(&read(&format!("\u{feff}{}", records(between))));
        }
    }
}

#[test]
fn times_from_event_to_event() {
    let mut before = 0.0;
    let events: Vec<String> = events(7.0, "quic", "quic", raw_length)
        .into_iter()
        .map(|event| {
            let mut event: serde_json::Value = serde_json::from_str(&event).unwrap();
            let at = event["time"].as_f64().unwrap();
            event["time"] = (at - std::mem::replace(&mut before, at)).into();
            event.to_string()
        })
        .collect();
    let text = format!(
        r#"{{"traces": [{{"events": [{}], "common_fields": {{"time_format": "relative_to_previous_event"}}, "vantage_point": {{"type": "server"}}}}], "file_schema": "urn:ietf:params:qlog:file:contained"}}"#,
        events.join(",")
    );
    check(&read(&text));
}

/// draft-00 and draft-01: events as lists, microseconds, and numbers as text.
#[test]
fn lists_of_the_first_drafts() {
    for (fields, unit, scale) in [
        (r#"["relative_time", "category", "event", "data"]"#, "us", 1000.0),
        (r#"["time", "CATEGORY", "EVENT_TYPE", "DATA"]"#, "ms", 1.0),
        (r#"["delta_time", "category", "event_type", "data"]"#, "us", 1000.0),
    ] {
        let mut before = 0.0;
        let lists: Vec<String> = events(3.0, "transport", "recovery", short_length)
            .into_iter()
            .map(|event| {
                let mut event: serde_json::Value = serde_json::from_str(&event).unwrap();
                let (category, name) = event["name"].as_str().unwrap().split_once(':').unwrap();
                let mut at = event["time"].as_f64().unwrap() * scale;
                if fields.contains("delta") {
                    at -= std::mem::replace(&mut before, at);
                }
                let upper = fields.contains("TYPE");
                let cased = |text: &str| if upper { text.to_uppercase() } else { text.to_owned() };
                let (category, name) = (cased(category), cased(name));
                let data = event["data"].as_object_mut().unwrap();
                for (key, value) in data.iter_mut() {
                    if key.ends_with("_rtt") {
                        *value = (value.as_f64().unwrap() * scale).to_string().into();
                    }
                }
                if let Some(size) = data.remove("raw") {
                    data["header"]["packet_size"] = size["length"].clone();
                    let number = data["header"]["packet_number"].to_string();
                    data["header"]["packet_number"] = number.into();
                    let kind = data["header"].as_object_mut().unwrap().remove("packet_type").unwrap();
                    data.insert("packet_type".to_owned(), kind);
                }
                serde_json::json!([at.to_string(), category, name, data]).to_string()
            })
            .collect();
        let text = format!(
            r#"{{"qlog_version": "draft-01", "traces": [{{"events": [{}], "event_fields": {fields}, "configuration": {{"time_units": "{unit}"}}, "vantage_point": {{"type": "SERVER"}}}}]}}"#,
            lists.join(",")
        );
        check(&read(&text));
    }
}

#[test]
fn what_the_log_lacks_is_derived_and_said() {
    let events: Vec<String> = events(0.0, "transport", "recovery", short_length)
        .into_iter()
        .filter(|event| !event.contains("recovery:"))
        .collect();
    let late: Vec<String> = (4..7)
        .map(|n| format!(r#"{{"time": 160, "name": "transport:packet_sent", "data": {{"header": {{"packet_type": "1RTT", "packet_number": {n}}}, "raw": {{"length": 1050}}, "frames": [{{"frame_type": "ping"}}]}}}}"#))
        .collect();
    let ack = r#"{"time": 210, "name": "transport:packet_received", "data": {"header": {"packet_type": "1RTT"}, "frames": [{"frame_type": "ack", "acked_ranges": [[6, 6]]}]}}"#;
    let text = format!(
        r#"{{"qlog_version": "0.3", "traces": [{{"events": [{}, {}, {ack}], "vantage_point": {{"type": "server"}}}}]}}"#,
        events.join(","),
        late.join(",")
    );
    let reading = read(&text);
    let connection = &reading.connections[0];
    assert_eq!(connection.derived, ["round-trip times", "bytes in flight", "losses"]);
    assert_eq!(connection.measures.packets_lost, Some(1), "one that was sent three later has been acknowledged");
    assert!((connection.measures.rtt_min_s.unwrap() - 0.05).abs() < 1e-9);
    assert!((last(connection, "srtt_s") - 0.05).abs() < 1e-9);
    // The lost one, which the log has not told of, and two pings.
    assert_eq!(last(connection, "in_flight_bytes"), 3.0 * 1050.0);
    assert_eq!(connection.measures.cwnd_mean_packets, None);
    assert_eq!(reading.notes.len(), 4, "{:?}", reading.notes);
}

/// Packets 0 to 3, of which 1 is lost or only acknowledges, as a sender of which all is known or nothing of frames; 3 is
/// acknowledged with 0 and 2.
fn one_unacknowledged(head: &str, frames: &str, received: u64) -> Reading {
    let sent = |number: u64| {
        let frames = match (frames, number) {
            ("", _) => String::new(),
            (frames, 1) => format!(r#", "frames": [{frames}]"#),
            _ => r#", "frames": [{"frame_type": "ping"}]"#.to_owned(),
        };
        format!(
            r#"{{"time": {number}, "name": "quic:packet_sent", "data": {{"header": {{"packet_type": "1RTT", "packet_number": {number}}}, "raw": {{"length": 100}}{frames}}}}}"#
        )
    };
    let acked = r#"{"time": 50, "name": "quic:packets_acked", "data": {"packet_number_space": "application_data", "packet_numbers": [0, 2, 3, 4]}}"#;
    let came =
        format!(r#"{{"time": 51, "name": "quic:packet_received", "data": {{"raw": {{"length": {received}}}}}}}"#);
    let records = [head.to_owned(), sent(0), sent(1), sent(2), sent(3), sent(4), acked.to_owned(), came];
    read(&records.map(|one| format!("\u{1e}{one}\n")).concat())
}

#[test]
fn losses_are_derived_of_what_asks_for_an_acknowledgement_and_is_the_flow() {
    let head = r#"{"qlog_version": "0.4", "trace": {"vantage_point": {"type": "client"}}}"#;
    let ours = r#"{"qlog_version": "0.4", "trace": {"vantage_point": {"type": "client"}, "common_fields": {"code_version": "paceline 0.1.0"}}}"#;
    let crypto = r#"{"frame_type": "crypto", "offset": 0, "length": 5}"#;
    let closes =
        r#"{"frame_type": "padding"}, {"frame_type": "ack", "acked_ranges": []}, {"frame_type": "connection_close"}"#;
    for (head, frames, received, lost, derived) in [
        (head, crypto, 40, Some(1), true),
        (head, closes, 40, Some(0), true),
        // What it carried is not known.
        (head, "", 40, Some(1), true),
        // Its own log tells each loss, and so that there was none.
        (ours, "", 40, Some(0), false),
        // What comes is the flow.
        (head, "", 4000, Some(1), false),
    ] {
        let reading = one_unacknowledged(head, frames, received);
        let connection = &reading.connections[0];
        assert_eq!(connection.measures.packets_lost, lost, "{frames}");
        assert_eq!(connection.derived.contains(&"losses"), derived, "{frames}");
        assert_eq!(reading.notes.iter().any(|note| note.contains("losses")), derived, "{:?}", reading.notes);
    }
}

#[test]
fn what_a_receiver_logs_is_a_flow_to_it() {
    let received = |ms: u64, number: u64, offset: u64| {
        format!(
            r#"{{"time": {ms}, "name": "quic:packet_received", "data": {{"header": {{"packet_type": "1RTT", "packet_number": {number}}}, "raw": {{"length": 1050}}, "frames": [{{"frame_type": "stream", "stream_id": 3, "offset": {offset}, "raw": {{"payload_length": 1000}}}}, {{"frame_type": "datagram", "length": 10}}]}}}}"#
        )
    };
    let started = r#"{"time": 0, "name": "quic:connection_started", "data": {"local": {"ip_v6": "2001:db8::1", "port_v6": 9}, "remote": {"ip_v4": "192.0.2.1", "port_v4": 443}}}"#;
    let text = [
        r#"{"qlog_version": "0.4", "trace": {"vantage_point": {"type": "client"}}}"#,
        started,
        &received(0, 0, 0),
        // Again, as if an acknowledgement had been lost: no byte counts twice.
        &received(50, 1, 0),
        &received(100, 2, 500),
    ];
    let reading = read(&text.map(|one| format!("\u{1e}{one}\n")).concat());
    let connection = &reading.connections[0];
    assert_eq!((connection.way, connection.measures.taken_bytes), (Way::In, Some(1530)));
    assert_eq!((connection.local.as_str(), connection.remote.as_str()), ("[2001:db8::1]:9", "192.0.2.1:443"));
    assert_eq!((connection.ended, connection.measures.rtt_mean_s), (Ended::Open, None));
    assert_eq!(column(connection, "rate", "goodput_bps").len(), 2);
}

/// Where a log ends a moment after an interval did, what came in that moment is of the interval before: over it alone it would be any rate.
#[test]
fn the_last_moment_of_a_log_has_no_rate_of_its_own() {
    let events: String = [(0, 0), (5, 1), (15, 2), (25, 3)].map(|(ms, n)| piece(f64::from(ms), n)).concat();
    let text = format!(
        "\u{1e}{{\"qlog_version\": \"0.4\", \"trace\": {{\"vantage_point\": {{\"type\": \"client\"}}}}}}\n{events}"
    );
    let rates = |text: &str| column(&read(text).connections[0], "rate", "receive_rate_bps");
    assert_eq!(rates(&text).len(), 3);
    let longer = rates(&(text + &piece(25.001, 4)));
    assert_eq!(longer.len(), 3);
    assert!((longer[2] - 2.0 * 1050.0 * 8.0 / 0.005_001).abs() < 1.0, "{longer:?}");
}

fn piece(ms: f64, number: u64) -> String {
    let offset = number * 1000;
    format!(
        "\u{1e}{{\"time\": {ms}, \"name\": \"quic:packet_received\", \"data\": {{\"header\": {{\"packet_type\": \"1RTT\", \"packet_number\": {number}}}, \"raw\": {{\"length\": 1050}}, \"frames\": [{{\"frame_type\": \"stream\", \"stream_id\": 3, \"offset\": {offset}, \"raw\": {{\"payload_length\": 1000}}}}]}}}}\n"
    )
}

#[test]
fn a_file_that_ends_in_the_middle_gives_what_was_whole() {
    let events = events(0.0, "transport", "recovery", short_length);
    let contained = format!(
        r#"{{"qlog_version": "0.3", "traces": [{{"vantage_point": {{"type": "server"}}, "events": [{}]}}]}}"#,
        events.join(",")
    );
    let head = r#"{"qlog_version": "0.3", "trace": {"vantage_point": {"type": "server"}}}"#;
    let sequence: String = [head.to_owned()].iter().chain(&events).map(|one| format!("\u{1e}{one}\n")).collect();
    for text in [&contained, &sequence] {
        let (mut sent, mut cuts) = (0, 0);
        for end in 2..text.len() {
            let read = read_every(Span(0), &[("a", &text[..end])]).unwrap();
            let now = read.connections.first().and_then(|one| one.measures.packets_sent).unwrap_or(0);
            assert!(now >= sent, "at {end}");
            sent = now;
            cuts += usize::from(read.notes.iter().any(|note| note.contains("ends in the middle")));
        }
        assert_eq!(sent, 4);
        assert!(cuts > text.len() / 2, "{cuts} of {}", text.len());
    }
    // One that another program went on with.
    let broken = sequence.replacen(r#""trigger": "reordering_threshold"}}"#, "", 1);
    let read = read(&broken);
    assert_eq!(read.connections[0].measures.packets_sent, Some(4));
    assert!(read.notes.iter().any(|note| note == "1 records end too early and were left out"), "{:?}", read.notes);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let error =
        |text: &str| read_every(Span(0), &[("a.qlog", text)]).err().map(|error| error.to_string()).unwrap_or_default();
    let contained =
        |events: &str| format!("{{\"qlog_version\": \"0.3\", \"traces\": [{{\n\"events\": [\n{events}]}}]}}");
    let at = error(&contained("{\"time\": 0, \"name\": \"a:b\"},\n{\"time\": 1 \"name\": \"a:b\"}"));
    assert_eq!(at, "a.qlog, line 4, column 12: expected `,` or `}`");
    let at = error(&contained("{\"time\": \"soon\", \"name\": \"a:b\"}"));
    assert_eq!(at, "a.qlog, line 3, column 32: the event's time is \"soon\", not a number");
    assert!(error(&contained("{\"name\": \"a:b\"}")).ends_with("the event has no time"));
    assert!(error(&contained("{\"time\": 3}")).ends_with("the event has no name"));
    assert!(error(&contained("[1, \"a\", \"b\", {}]")).ends_with("no event_fields that say what is in it"));
    assert!(
        error(&contained("{\"time\": 0, \"name\": \"a\"}, {\"time\": 1e14, \"name\": \"a\"}"))
            .contains("more than a year")
    );
    let sequence = "\u{1e}{\"qlog_version\": \"0.3\", \"trace\": {}}\n\u{1e}{\"time\": 1,\n \"name\" \"a:b\"}\n\u{1e}{\"time\": 2, \"name\": \"a:b\"}\n";
    assert_eq!(error(sequence), "a.qlog, line 3, column 9: expected `:`");
    for (text, why) in [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("time,cwnd\n", "does not begin with an object"),
        ("{\"a\": 1}", "neither qlog_version"),
        ("{\"traces\": []}", "neither"),
    ] {
        let error = error(text);
        assert!(error.starts_with("a.qlog is no qlog: ") && error.contains(why), "{error}");
    }
    assert!(error("\u{28}\u{b5}\u{2f}\u{fd}").contains("no qlog"));
}

#[test]
fn unknown_events_are_skipped_and_counted() {
    let names = ["http3:frame_created", "http3:parameters_set", "http3:frame_created", "quic:key_updated"];
    let events =
        names.map(|name| format!("{{\"time\": 0, \"name\": \"{name}\", \"data\": {{\"max_datagram_size\": 7}}}}"));
    let text = format!(r#"{{"qlog_version": "0.3", "traces": [{{"events": [{}]}}]}}"#, events.join(","));
    let reading = read(&text);
    assert_eq!((reading.skipped.len(), reading.skipped["http3:frame_created"], reading.events), (3, 2, 0));
    assert_eq!(reading.connections[0].packet_bytes, None);
    assert_eq!(reading.notes[0], "4 events of 3 kinds are not read, 2 of them http3:frame_created");
    assert!(reading.notes[1].starts_with("no window is known of one connection: no event of the log tells it"));
    assert_eq!(reading.notes.len(), 2);
}

#[test]
fn numbers_that_are_none_are_left_out_and_said() {
    let metrics = |data: &str| format!(r#"{{"time": 1, "name": "recovery:metrics_updated", "data": {data}}}"#);
    let events = [
        metrics(r#"{"cwnd": "12000", "ssthresh": null, "smoothed_rtt": 50}"#),
        metrics(r#"{"cwnd": "big", "ssthresh": -1, "smoothed_rtt": -3, "latest_rtt": "soon"}"#),
        metrics(r#"{"cwnd": "bigger", "bytes_in_flight": true}"#),
        r#"{"time": 2, "name": "transport:packet_received", "data": {"header": {"packet_number": -4}, "raw": {"length": 40}, "frames": [{"frame_type": "ack", "acked_ranges": [["x"]], "ack_delay": -1}]}}"#.to_owned(),
    ];
    let text = format!(r#"{{"qlog_version": "0.3", "traces": [{{"events": [{}]}}]}}"#, events.join(","));
    let reading = read(&text);
    assert_eq!(
        (last(&reading.connections[0], "cwnd_bytes"), last(&reading.connections[0], "srtt_s")),
        (12_000.0, 0.05)
    );
    let expected = [
        "a value of ack_delay is no number from 0 on, -1: it was left out",
        "a value of acked_ranges is no number from 0 on, \"x\": it was left out",
        "a value of bytes_in_flight is no number from 0 on, true: it was left out",
        "2 values of cwnd are no numbers from 0 on, the first \"big\": they were left out",
        "a value of latest_rtt is no number from 0 on, \"soon\": it was left out",
        "a value of packet_number is no number from 0 on, -4: it was left out",
        "a value of smoothed_rtt is no number from 0 on, -3: it was left out",
        "a value of ssthresh is no number from 0 on, -1: it was left out",
    ];
    assert_eq!(reading.notes, expected);
}

#[test]
fn connections_are_told_apart_by_their_group_and_files_share_a_clock_where_they_can() {
    let metrics = |ms: f64, group: &str, cwnd: u64| {
        format!(
            r#"{{"time": {ms}, "name": "recovery:metrics_updated", "group_id": "{group}", "data": {{"cwnd": {cwnd}}}}}"#
        )
    };
    let file = |from: f64| {
        let events = [metrics(from, "a", 1), metrics(from + 5.0, "b", 2), metrics(from + 9.0, "a", 3)];
        format!(r#"{{"qlog_version": "0.3", "traces": [{{"events": [{}]}}]}}"#, events.join(","))
    };
    let (one, two) = (file(1.6e12), file(1.6e12 + 250.0));
    let reading = read_every(Span(0), &[("one", &one), ("two", &two)]).unwrap();
    let starts: Vec<(String, Option<&str>, f64)> = reading
        .connections
        .iter()
        .map(|one| (one.file.clone(), one.group.as_deref(), (one.start.as_secs_f64() * 1e3).round()))
        .collect();
    let expected = [("one", "a", 0.0), ("one", "b", 5.0), ("two", "a", 250.0), ("two", "b", 255.0)];
    assert_eq!(starts, expected.map(|(file, group, at)| (file.to_owned(), Some(group), at)));
    assert_eq!(column(&reading.connections[0], "qlog", "cwnd_bytes"), [1.0, 3.0]);
    let reading = read_every(Span(0), &[("one", &one), ("two", &file(3.0))]).unwrap();
    assert_eq!(reading.connections[2].start.0, 0);
    assert_eq!(reading.notes, ["the files do not all tell when they began: each trace begins at 0 s"]);
}

#[test]
fn logs_share_the_calendars_clock_or_their_runs() {
    let file = |reference: &str, more: &str, from: f64| {
        format!(
            r#"{{"file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {{"vantage_point": {{"type": "client"}}, "common_fields": {{"time_format": "relative_to_epoch", "reference_time": {{"clock_type": "monotonic", {reference}}}{more}}}}}}}
{{"time": {from}, "name": "quic:recovery_metrics_updated", "data": {{"congestion_window": 1}}}}
"#
        )
    };
    let starts = |one: &str, two: &str| {
        let reading = read_every(Span(0), &[("one", one), ("two", two)]).unwrap();
        let starts = reading.connections.iter().map(|one| (one.start.as_secs_f64() * 1e3).round());
        (starts.collect::<Vec<f64>>(), reading.notes)
    };
    let unknown = r#""epoch": "unknown""#;
    let wall = |time: &str| format!(r#"{unknown}, "wall_clock_time": "{time}""#);
    let ours = r#", "code_version": "paceline 0.1.0""#;
    let at = |seconds: &str| file(&wall(&format!("2026-11-28T02:00:{seconds}Z")), "", 5.0);
    let (of_run, early) = (file(unknown, ours, 1000.0), file(unknown, ours, 23.0));
    let epoch = file(r#""epoch": "2026-11-28T04:00:01+02:00""#, "", 250.0);
    for (one, two, expected) in [
        (at("03.5"), at("01"), [2500.0, 0.0]),
        (at("01"), epoch, [0.0, 245.0]),
        (of_run.clone(), early.clone(), [977.0, 0.0]),
        // With a date it is that of the calendar, whoever wrote it.
        (file(&wall("2026-11-28T02:00:02Z"), ours, 5.0), at("01"), [1000.0, 0.0]),
    ] {
        assert_eq!(starts(&one, &two), (expected.to_vec(), Vec::new()));
    }
    let apart = vec!["the files do not all tell when they began: each trace begins at 0 s".to_owned()];
    for (one, two) in [(of_run, at("01")), (early, file(unknown, "", 7.0))] {
        assert_eq!(starts(&one, &two), (vec![0.0, 0.0], apart.clone()));
    }
}

#[test]
fn quinns_seconds_are_seconds() {
    let events = |rtt: f64| {
        let metrics = |ms: f64, rtt: f64| {
            format!(
                r#"{{"time": {ms}, "name": "recovery:metrics_updated", "data": {{"smoothed_rtt": {rtt}, "min_rtt": {rtt}}}}}"#
            )
        };
        let events = [
            // What it assumes before the first sample.
            metrics(3.0, 0.333),
            r#"{"time": 4, "name": "transport:packet_sent", "data": {"header": {"packet_type": "initial", "packet_number": 0, "length": 1200}}}"#.to_owned(),
            metrics(4.0, 0.333),
            r#"{"time": 64, "name": "transport:packet_received", "data": {"header": {"packet_type": "initial", "packet_number": 0}}}"#.to_owned(),
            metrics(64.0, rtt),
            metrics(164.0, rtt),
        ];
        format!(r#"{{"qlog_version": "0.3", "traces": [{{"events": [{}]}}]}}"#, events.join(","))
    };
    // 55 s after 60 ms: no, that is milliseconds.
    for (rtt, seconds) in [(0.055, true), (55.0, false)] {
        let reading = read(&events(rtt));
        let connection = &reading.connections[0];
        assert_eq!(connection.rtt_in_seconds, seconds);
        assert!((last(connection, "srtt_s") - 0.055).abs() < 1e-12);
        assert_eq!(reading.notes.iter().any(|note| note.contains("in seconds")), seconds, "{:?}", reading.notes);
        if seconds {
            assert!((connection.measures.rtt_mean_s.unwrap() - 0.055).abs() < 1e-12, "without what was assumed");
            assert_eq!(column(connection, "qlog", "srtt_s").iter().filter(|srtt| srtt.is_nan()).count(), 2);
        }
    }
}

proptest! {
    /// A sender's packets, each acknowledged, lost or neither, written by us: all of it is read, whatever the interval of rows.
    #[test]
    fn what_a_sender_did_is_what_is_read(fates in proptest::collection::vec(0u8..3, 1..60), every in prop_oneof![Just(0u64), Just(7_000_000)]) {
        let vantage = Vantage::server("");
        let mut log = Writer::new(Vec::new(), &Trace { vantage, ..Trace::default() }).unwrap();
        for (number, fate) in (0u64..).zip(&fates) {
            let at = number * 3_000_000;
            let frames = [Frame::Stream { id: 0, offset: number * 500, length: 500, fin: false }, Frame::Datagram { length: 7 }];
            log.write(Time(at), &Event::PacketSent(Packet::new(PacketKind::OneRtt, number, 600, &frames))).unwrap();
            let ranges = [(number, number)];
            let ack = [Frame::ack(Span(0), &ranges)];
            let answer = match fate {
                0 => continue,
                1 => Event::PacketReceived(Packet::new(PacketKind::OneRtt, number, 40, &ack)),
                _ => Event::PacketLost {
                    packet: PacketName { kind: PacketKind::OneRtt, number: Some(number) },
                    frames: &[],
                    is_mtu_probe_packet: false,
                    trigger: Some(LossTrigger::TimeThreshold),
                },
            };
            log.write(Time(at + 2_000_000), &answer).unwrap();
        }
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        let reading = read_every(Span(every), &[("w", &text)]).unwrap();
        let connection = &reading.connections[0];
        let count = |which: u8| fates.iter().filter(|fate| **fate == which).count() as u64;
        let measures = connection.measures;
        prop_assert_eq!(measures.packets_sent, Some(fates.len() as u64));
        if count(2) > 0 {
            prop_assert_eq!(measures.packets_lost, Some(count(2)));
        }
        if count(1) > 0 {
            prop_assert_eq!(measures.packets_delivered, Some(count(1)));
            prop_assert_eq!(measures.delivered_bytes, Some(count(1) * 507));
            prop_assert_eq!(last(connection, "in_flight_bytes"), (count(0) * 600) as f64);
            prop_assert!((measures.rtt_min_s.unwrap() - 0.002).abs() < 1e-12);
        }
        let times = column(connection, "qlog", "time_s");
        prop_assert!(times.windows(2).all(|two| two[0] < two[1]));
    }
}

#[test]
fn what_we_write_we_read() {
    let reading = read_every(Span(0), &[("w.sqlog", include_str!("written.sqlog"))]).unwrap();
    let connection = &reading.connections[0];
    assert_eq!((connection.vantage.as_str(), connection.group.as_deref()), ("server", Some("8f3c21aa")));
    assert_eq!((connection.local.as_str(), connection.remote.as_str()), ("192.0.2.1:4433", "[2001:db8::7]:50001"));
    assert_eq!((connection.congestion_control.as_deref(), connection.ended), (Some("cubic"), Ended::Closed));
    assert_eq!((connection.measures.packets_lost, connection.measures.ecn_marks), (Some(1), Some(1)));
    assert_eq!((last(connection, "ssthresh_bytes"), last(connection, "pacing_rate_bps")), (9000.0, 2.4e6));
    assert!(
        (last(connection, "latest_rtt_s") - 0.051).abs() + (last(connection, "rtt_min_s") - 0.049_87).abs() < 1e-12
    );
    assert_eq!(reading.states, ["recovery"]);
}
