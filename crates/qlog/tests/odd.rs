//! Logs that are odd: what can be read of them is, and what cannot is said by its name.

use paceline_qlog::Error;
use paceline_qlog::read::{Reader, Reading};
use paceline_units::Span;

fn read(text: &str) -> Result<Reading, Error> {
    let mut reader = Reader::new(Span(0));
    reader.read("a.qlog", &mut || Ok(Box::new(std::io::Cursor::new(text.to_owned()))))?;
    Ok(reader.finish())
}

/// Some writers close a list of events with an empty one.
#[test]
fn an_event_with_nothing_in_it_takes_no_other_with_it() {
    let head = r#""vantage_point": {"type": "server"}, "event_fields": ["relative_time", "category", "event", "data"]"#;
    let sent = r#"["0", "transport", "packet_sent", {"packet_type": "1RTT", "header": {"packet_number": "0", "packet_size": 1200}}]"#;
    let text =
        |events: &str| format!(r#"{{"qlog_version": "draft-01", "traces": [{{{head}, "events": [{events}]}}]}}"#);
    let reading = read(&text(&format!("{sent}, []"))).unwrap();
    assert_eq!((reading.events, reading.connections.len()), (1, 1));
    assert_eq!(reading.notes[0], "an event has nothing in it: it was left out");
    let reading = read(&text(&format!("[], {sent}, {{}}"))).unwrap();
    assert_eq!((reading.events, &*reading.notes[0]), (1, "2 events have nothing in them: they were left out"));
    let fields = head.replace("\"relative_time\", ", "");
    let late = format!(r#"{{"qlog_version": "draft-01", "traces": [{{{fields}, "events": [["a", "b"]]}}]}}"#);
    let error = read(&late).unwrap_err().to_string();
    assert!(error.ends_with("event_fields has none of time, relative_time and delta_time"), "{error}");
    let short = text(r#"["transport"]"#);
    let short = short.replace(r#""relative_time", "category""#, r#""category", "relative_time""#);
    let error = read(&short).unwrap_err().to_string();
    assert!(error.ends_with("the event's list ends before its time"), "{error}");
}

#[test]
fn versions_before_the_drafts_are_refused_by_name() {
    let events = r#""fields": ["time", "category", "type", "trigger", "data"], "events": [[0, "TRANSPORT", "PACKET_TX", "LINE", {}]]"#;
    for (text, version) in [
        (format!(r#"{{"qlog_version": "0.1", {events}}}"#), "0.1"),
        (format!(r#"{{"qlog_version": 0.1, "connections": [{{{events}}}]}}"#), "0.1"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        let said = format!(
            "a.qlog is a qlog of version {version}, from before the drafts; versions from draft-00 on are read"
        );
        assert_eq!(error, said);
    }
}

/// Times in a unit, or counted in a way, that is not known would be read as what they are not.
#[test]
fn times_that_are_counted_in_another_way_are_refused_by_name() {
    let data = r#"{"header": {"packet_type": "1RTT", "packet_number": 0}, "raw": {"length": 1200}}"#;
    let contained = |head: &str| {
        let events = format!(r#"[{{"time": 1, "name": "transport:packet_sent", "data": {data}}}]"#);
        format!(r#"{{"qlog_version": "0.3", "traces": [{{{head}, "events": {events}}}]}}"#)
    };
    let records = |head: &str, own: &str| {
        let first = format!(r#"{{"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {{{head}}}}}"#);
        format!("\x1e{first}\n\x1e{{\"time\": 1, {own} \"name\": \"transport:packet_sent\", \"data\": {data}}}\n")
    };
    let units = |unit: &str| format!(r#""configuration": {{"time_units": {unit}}}"#);
    for unit in ["\"s\"", "\"ms\"", "\"us\"", "\"micros\"", "\"ns\"", "null"] {
        assert_eq!(read(&contained(&units(unit))).unwrap().events, 1, "{unit}");
        assert_eq!(read(&records(&units(unit), "")).unwrap().events, 1, "{unit}");
    }
    for unit in ["\"min\"", "\"MS\"", "\"\"", "1000"] {
        let said = format!("time_units are {unit}, which are none of s, ms, us and ns");
        let older = format!(r#""common_fields": {{"time_units": {unit}}}"#);
        for text in [contained(&units(unit)), contained(&older), records(&units(unit), "")] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.starts_with("a.qlog, line ") && error.ends_with(&said), "{error}");
        }
    }
    let format = r#""common_fields": {"time_format": "since_noon"}"#;
    for text in [contained(format), records(&units("null"), r#""time_format": "since_noon","#)] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("time_format is \"since_noon\", which is none of relative_to_epoch"), "{error}");
    }
}
