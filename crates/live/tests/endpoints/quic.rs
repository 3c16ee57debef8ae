//! Flows over QUIC between a client and a server: both ways, recordings, an end by the user.

use crate::{Served, ask, options, realtime, wanted};
use paceline_live::endpoint::control::Direction;
use paceline_live::endpoint::{SendWatch, send};
use std::thread;
use std::time::Duration;

const ENCODER: (&str, &str) = ("app", "{ kind = \"encoder\", max_rate = \"3 Mbit/s\" }");
const QUIC: (&str, &str) = ("transport", "quic");

#[test]
fn every_carriage_both_ways() {
    realtime::tried(|| {
        let server = Served::new(options());
        let flows: [(&str, &[(&str, &str)]); 6] = [
            ("bulk", &[QUIC]),
            ("rate", &[QUIC, ("app", "{ kind = \"cbr\", rate = \"2 Mbit/s\" }")]),
            ("each", &[QUIC, ENCODER]),
            ("one", &[QUIC, ENCODER, ("quic.carriage", "stream")]),
            ("group", &[QUIC, ENCODER, ("quic.carriage", "stream-per-group")]),
            ("datagrams", &[QUIC, ENCODER, ("quic.carriage", "datagrams")]),
        ];
        let way = |way| flows.iter().map(move |(name, settings)| wanted(name, settings, 2500, way));
        let all = way(Direction::Forward).chain(way(Direction::Reverse)).collect();
        let run = send(&ask(&server, all), &SendWatch::default()).unwrap();
        assert_eq!(run.output.summary.flows.len(), 12);
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            assert!(notes.well && (notes.garbage, notes.disregarded) == (0, 0), "{}: {notes:?}", row.flow);
            // the server grants 20 Mbit/s
            assert!((0.1e6..20e6).contains(&row.goodput_bps), "{}: {} bit/s", row.flow, row.goodput_bps);
            assert!(row.packets_sent >= row.packets_delivered && row.rtt_min_s.is_some_and(|rtt| rtt > 0.0), "{row:?}");
            assert!(row.cwnd_mean_packets.is_some_and(|window| window > 2.0), "{row:?}");
            if !matches!(row.flow.as_str(), "bulk" | "rate") {
                assert!(row.frames_sent.is_some_and(|frames| frames > 50), "{row:?}");
                assert!(row.complete_share.is_some_and(|share| share > 0.95), "{}: {row:?}", row.flow);
            }
        }
        let windows = run.output.series.iter().filter(|series| series.table == "cwnd");
        assert_eq!(windows.count(), 12);
        for series in run.output.series.iter().filter(|series| series.table == "cwnd") {
            for column in ["cwnd_packets", "srtt_s", "in_flight_packets"] {
                let found =
                    series.columns.iter().find(|(name, _)| name == column).unwrap_or_else(|| panic!("{column}"));
                assert!(found.1.iter().any(|value| *value > 0.0), "{column}");
            }
        }
    });
}

#[test]
fn the_user_ends_it_and_keeps_what_came() {
    realtime::tried(|| {
        let server = Served::new(options());
        let watch = SendWatch::default();
        let flows = [Direction::Forward, Direction::Reverse].map(|way| wanted("bulk", &[QUIC], 30_000, way));
        let run = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(1500));
                watch.stop();
            });
            send(&ask(&server, flows.into()), &watch).unwrap()
        });
        for row in &run.output.summary.flows {
            assert!(row.goodput_bps > 1e6 && row.active_s > 0.5 && row.active_s < 10.0, "{row:?}");
        }
    });
}

#[test]
fn an_event_log_is_refused_in_words() {
    let server = Served::new(options());
    let logs = Some(std::env::temp_dir());
    let asked = ask(&server, vec![wanted("bulk", &[QUIC], 1000, Direction::Forward)]);
    let options = paceline_live::endpoint::SendOptions { logs, ..asked };
    let said = send(&options, &SendWatch::default()).unwrap_err().to_string();
    assert!(said.contains("event log") && said.contains("--log-events"), "{said}");
}
