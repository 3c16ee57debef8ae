//! What both ends of a flow have measured, joined as a client joins it: a row's columns, a stream, and recordings.

use super::pair::{GOOD, Pair, Path, spec};
use super::quic::keys;
use paceline_live::endpoint::half::{Before, EVERY, Half, Recorder, joined, recordings};
use paceline_live::results::FlowRow;
use paceline_live::session::{SessionSpec, Side, State};
use paceline_sim::Series;
use paceline_units::{Span, Time};

const QUIC: (&str, &str) = ("transport", "quic");

struct Measured {
    row: FlowRow,
    receiver: Half,
    series: Vec<Series>,
}

impl Measured {
    fn column(&self, table: &str, name: &str) -> &[f64] {
        let series = self.series.iter().find(|series| series.table == table).unwrap_or_else(|| panic!("no {table}"));
        let (_, values) =
            series.columns.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name}"));
        values
    }
}

/// A flow from its beginning to its end at both ends.
fn measured(settings: &[(&str, &str)], seconds: u64, path: Path) -> Measured {
    let sender = spec(settings, seconds, Side::Sender);
    let specs = [sender.clone(), SessionSpec { side: Side::Receiver, ..sender }];
    let models = [0, 1].map(|end: usize| specs[end].flow.model().unwrap());
    let mut pair = Pair::with_keys(specs, keys(), path);
    let mut recorders = [0, 1].map(|end| Some(Recorder::new(&pair.ends[end].session, &models[end], EVERY)));
    let mut halves = [None, None];
    let mut at = Time::ZERO;
    while halves.iter().any(Option::is_none) {
        at += Span::from_millis(1);
        assert!(at < Time::from_secs_f64(seconds as f64 + 60.0), "{settings:?}: {:?}", pair.states());
        pair.run(at);
        for end in [0, 1] {
            let state = pair.ends[end].session.state();
            let session = &mut pair.ends[end].session;
            if let Some(recorder) = &mut recorders[end] {
                recorder.sample(at, session);
            }
            if let State::Ended(how) = state
                && let Some(recorder) = recorders[end].take()
            {
                let mut half = Half::of(session, &models[end], recorder, at, &Before::default());
                half.end(how, true);
                halves[end] = Some(half);
            }
        }
    }
    let [sender, receiver] = halves.map(Option::unwrap);
    let row = joined(&sender, &receiver, 0.0, seconds as f64);
    let series = recordings(&sender, &receiver, "flow", 0);
    Measured { row, receiver, series }
}

#[test]
fn a_row_says_what_both_ends_know() {
    let flows: [&[(&str, &str)]; 4] =
        [&[("cc", "vegas"), ("receive_window", "20")], &[("cc", "tfrc")], &[QUIC], &[QUIC, ("cc", "cubic")]];
    for settings in flows {
        let found = measured(settings, 5, GOOD);
        let row = &found.row;
        assert_eq!(row.ended.as_deref(), Some("done"), "{settings:?}");
        assert!((5e5..2e6).contains(&row.goodput_bps), "{settings:?}: {row:?}");
        assert!(
            row.throughput_bps.unwrap() > row.goodput_bps && row.send_rate_bps.unwrap() >= row.goodput_bps,
            "{row:?}"
        );
        let (sent, delivered) = (row.packets_sent.unwrap(), row.packets_delivered.unwrap());
        assert!(sent >= delivered && delivered > 100, "{settings:?}: {row:?}");
        assert_eq!(row.packets_lost, Some(sent - delivered), "{settings:?}");
        let [min, mean, max] = [row.rtt_min_s, row.rtt_mean_s, row.rtt_max_s].map(Option::unwrap);
        // 40 ms of path, and a queue of 100
        assert!(0.04 <= min && min <= mean && mean <= max && max < 0.2, "{settings:?}: {row:?}");
        // quinn tells nobody of its probes
        assert_eq!(row.timeouts.is_none(), settings.contains(&QUIC), "{settings:?}");
        assert!(found.column("rate", "goodput_bps").len() > 40 && found.column("rate", "send_rate_bps").len() > 40);
        assert!(!settings.contains(&QUIC) || found.column("cwnd", "in_flight_packets").iter().any(|it| *it > 1.0));
        if settings.contains(&QUIC) || settings[0].1 == "vegas" {
            assert!(found.column("cwnd", "cwnd_packets").iter().any(|window| *window >= 10.0), "{settings:?}");
            assert!(found.column("cwnd", "srtt_s").iter().any(|rtt| *rtt > 0.04), "{settings:?}");
        }
        let names: Vec<_> = found.series.iter().map(|series| series.table).collect();
        assert!(names.contains(&"sequence"), "{settings:?}: {names:?}");
    }
}

#[test]
fn a_stream_is_played() {
    let app = "{ kind = \"stream\", length = \"2 s\", media_rate = \"500 kbit/s\", buffer = \"10 %\" }";
    for settings in [&[("app", app)][..], &[QUIC, ("app", app)]] {
        let stream = measured(settings, 5, GOOD).receiver.stream.expect("one is played");
        assert!(stream.completed && stream.began && stream.stalls == 0, "{settings:?}: {stream:?}");
        assert!(stream.fill_s.is_some_and(|fill| 0.0 < fill && fill < 1.0), "{settings:?}: {stream:?}");
    }
}

#[test]
fn frames_are_counted_by_every_carriage() {
    let encoder = ("app", "{ kind = \"encoder\", max_rate = \"1 Mbit/s\" }");
    for carriage in ["stream", "stream-each", "stream-per-group", "datagrams"] {
        let row = measured(&[QUIC, encoder, ("quic.carriage", carriage)], 4, GOOD).row;
        assert!(row.frames_sent.is_some_and(|frames| frames > 80), "{carriage}: {row:?}");
        assert!(row.complete_share.is_some_and(|share| share > 0.95), "{carriage}: {row:?}");
        assert!(row.frame_delay_mean_s.is_some_and(|delay| delay >= 0.0), "{carriage}: {row:?}");
    }
}

/// What applications write that is one packet each is a frame too; none of these is late.
#[test]
fn writes_that_are_frames_are_counted() {
    for app in ["{ kind = \"voice\" }", "{ kind = \"video\" }", "{ kind = \"game\" }"] {
        let late = [QUIC, ("app", app), ("quic.carriage", "stream-each"), ("quic.deadline", "200 ms")];
        let row = measured(&late, 2, Path { rate: 20e6, ..GOOD }).row;
        let (sent, complete) = (row.frames_sent.unwrap(), row.frames_complete.unwrap());
        assert!(sent >= complete && complete > 5, "{app}: {row:?}");
        assert_eq!(row.complete_share, Some(complete as f64 / sent as f64), "{app}");
        assert_eq!((row.frames_reset, row.reset_share), (Some(0), Some(0.0)), "{app}");
    }
}

#[test]
fn transfers_and_rates_end_with_the_last_data() {
    for (size, max) in [("1 B", 0.2), ("100 kB", 1.0)] {
        let app = format!("{{ kind = \"ftp\", size = \"{size}\" }}");
        let row = measured(&[QUIC, ("app", &app)], 6, GOOD).row;
        assert_eq!(row.transfers_completed, Some(1), "{size}: {row:?}");
        assert!(row.transfer_time_mean_s.is_some_and(|time| 0.08 < time && time < max), "{size}: {row:?}");
        assert!(row.active_s < max, "{size}: {row:?}");
    }
    let row = measured(&[QUIC, ("app", "{ kind = \"cbr\", rate = \"1 Mbit/s\" }")], 2, GOOD).row;
    // the last packet arrives 20 ms behind the end, and the first the handshake's round trip behind the beginning
    assert!((0.95e6..1.02e6).contains(&row.goodput_bps) && (1.95..2.1).contains(&row.active_s), "{row:?}");
}

/// The recording `frames` sums to what the row has, and shows for how long an outage lets the picture stand.
#[test]
fn an_outage_shows_in_the_recording_of_frames() {
    let app = ("app", "{ kind = \"encoder\", max_rate = \"1 Mbit/s\" }");
    let cut = (Time::from_secs_f64(4.0), Time::from_secs_f64(5.0));
    let found = measured(&[("cc", "gcc"), app], 8, Path { cut, ..GOOD });
    let [times, frames, delays, max, ages] =
        ["time_s", "frames", "frame_delay_s", "frame_delay_max_s", "picture_age_s"]
            .map(|name| found.column("frames", name));
    let all: f64 = frames.iter().sum();
    let complete = found.row.frames_complete.unwrap() as f64;
    assert!(all > 100.0 && complete - all <= 3.0, "{all} of {complete}");
    let known = || frames.iter().zip(delays).filter(|(frames, _)| **frames > 0.0);
    let mean = known().map(|(frames, delay)| frames * delay).sum::<f64>() / all;
    let whole = found.row.frame_delay_mean_s.unwrap();
    assert!((mean - whole).abs() < 0.005, "{mean}, {whole}");
    for (mean, max) in delays.iter().zip(max) {
        assert!(mean.is_nan() || *max >= mean - 1e-9, "{mean} {max}");
    }
    let frozen: Vec<_> = times.iter().zip(ages).filter(|(_, age)| **age > 0.6).collect();
    let longest = frozen.iter().map(|(_, age)| **age).fold(0.0, f64::max);
    assert!((0.85..1.6).contains(&longest), "{frozen:?}");
    assert!(frozen.iter().all(|(time, _)| (4.4..5.8).contains(*time)), "{frozen:?}");
}
