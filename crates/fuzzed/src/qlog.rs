//! Arbitrary bytes are read as a qlog, or refused. Tables of a log that is read are complete, its counters only grow,
//! and it may be truncated.

use paceline_qlog::Reader;
use paceline_units::Span;

/// The target `qlog`.
pub fn qlog(bytes: &[u8]) {
    let every = Span(u64::from(bytes.len() as u8 & 1) * 10_000_000);
    let mut reader = Reader::new(every);
    for file in [bytes, &bytes[..bytes.len() / 2]] {
        let read = reader.read("any.qlog", &mut || Ok(Box::new(std::io::Cursor::new(file.to_vec()))));
        if let Err(error) = read {
            assert!(error.to_string().starts_with("any.qlog"));
        }
    }
    let reading = reader.finish();
    for connection in reading.connections {
        assert!(connection.start <= connection.end);
        for table in &connection.tables {
            assert!(table.columns.iter().all(|(_, column)| column.len() == table.columns[0].1.len()));
        }
        for (name, column) in &connection.tables[0].columns {
            let count = name.ends_with("_packets") || matches!(*name, "time_s" | "sent_bytes" | "acked_bytes");
            let grows = column.windows(2).all(|two| two[0] <= two[1] || two.iter().any(|value| value.is_nan()));
            assert!(!count || grows, "{name}: {column:?}");
        }
    }
}
