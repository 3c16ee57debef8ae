//! Trace formats: whatever the text, an answer and no panic; generated traces; and recorded ones where they are.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::trace::{AtEnd, TraceError, parse_mahimahi, parse_seconds_mbit};
use paceline_path::{Fate, Limit, Link, LinkModel, Measure, Opportunities, Queue, RateModel, Schedule};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
use proptest::prelude::*;

/// The bytes that a link of this rate delivers within `span` while packets never run out, and its utilisation.
fn greedy(rate: RateModel, span: Span) -> (u64, f64) {
    let mut model = LinkModel::new(Rate(1), Span::ZERO, Queue::DropTail(Limit::Packets(u32::MAX)));
    model.rate = rate;
    let mut link = Link::new(&model, Measure { from: Time::ZERO, to: Time(span.0) }, Stream::new(1, "link"));
    let mut delivered = 0;
    let (flow, stamp, extra, flags) = (FlowId(0), Stamp(0), ExtraId::NONE, Flags::NONE);
    loop {
        let mut p = Packet { time: Time::ZERO, flow, seq: 0, stamp, cursor: 0, extra, size: 1500, flags };
        assert_eq!(link.admit(&mut p), Fate::Pass);
        if p.time.0 >= span.0 {
            return (delivered, link.finish(Time(span.0)).utilisation.0);
        }
        delivered += 1500;
    }
}

#[test]
fn a_generated_trace_delivers_what_it_says() {
    // 12 Mbit/s: 1500 bytes every millisecond; from 1 ms, so that none is lost at the very beginning.
    let text: String = (1..=1000).map(|ms| format!("{ms}\n")).collect();
    let trace = parse_mahimahi(&text).unwrap();
    assert_eq!(trace.mean(), Rate(12_000_000));
    let (bytes, utilisation) = greedy(RateModel::Opportunities(trace), Span(10_000_500_000));
    assert_eq!((bytes, utilisation), (15_000_000, 1.0));
    let trace = parse_seconds_mbit("0 6\n1 18\n", AtEnd::Repeat).unwrap();
    assert_eq!(trace.nominal(), Rate(12_000_000));
    let (bytes, utilisation) = greedy(RateModel::Schedule(trace), Span(10_000_500_000));
    assert_eq!((bytes, utilisation > 0.999), (15_000_000, true));
}

fn check_recorded(text: &str) -> Result<(u64, u64), TraceError> {
    let span = Span::from_secs(60);
    let (rate, capacity) = match parse_mahimahi(text) {
        Ok(all) => {
            let inside = all.slots().filter(|(at, _)| at.0 > 0 && at.0 < span.0).map(|(_, size)| size.0).sum();
            (RateModel::Opportunities(all), inside)
        }
        Err(_) => {
            let all: Schedule = parse_seconds_mbit(text, AtEnd::Hold)?;
            let steps: Vec<_> = all.steps().chain([(Time::NEVER, Rate(0))]).collect();
            let part = |w: &[(Time, Rate)]| (w[0].1 * w[1].0.min(Time(span.0)).since(w[0].0.min(Time(span.0)))).0;
            (RateModel::Schedule(all), steps.windows(2).map(part).sum())
        }
    };
    Ok((greedy(rate, span).0, capacity))
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test asks where the recorded traces are")]
fn recorded_traces_deliver_what_they_say() {
    let Ok(folder) = std::env::var("PACELINE_TRACES") else {
        eprintln!("skipped: PACELINE_TRACES does not name a folder of recorded traces");
        return;
    };
    let mut count = 0;
    for part in ["mahimahi", "hsdpa-norway-3g", "fcc-mba"] {
        for file in std::fs::read_dir(std::path::Path::new(&folder).join(part)).expect("a folder of traces") {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a text");
            let (bytes, capacity) = check_recorded(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            // The rounds of a short mahimahi trace go on; a packet at the end may be cut; each step is rounded down.
            assert!(bytes + 3000 + capacity / 1000 >= capacity, "{}: {bytes} of {capacity}", path.display());
            assert!(bytes <= capacity + 100 || part == "mahimahi", "{}: {bytes} of {capacity}", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_gets_an_answer(text in "\\PC*|[0-9 .#\n\t+-]*|([0-9]{1,12}\n)*") {
        if let Ok(all) = parse_mahimahi(&text) {
            prop_assert!(all.mean().0 > 0 || all.slots().count() > 0);
            let _ = Opportunities::new(all.slots().map(|slot| slot.0), Opportunities::BYTES).unwrap();
        }
        for at_end in [AtEnd::Hold, AtEnd::Repeat] {
            if let Ok(all) = parse_seconds_mbit(&text, at_end) {
                let steps: Vec<_> = all.steps().collect();
                prop_assert_eq!(&Schedule::new(&steps, all.period()).unwrap(), &all);
            }
        }
    }

    #[test]
    fn what_is_written_is_read(times in prop::collection::vec(0..10_000u64, 1..50)) {
        let mut times = times;
        times.sort_unstable();
        prop_assume!(times[times.len() - 1] > 0);
        let text: String = times.iter().map(|t| format!("{t}\n")).collect();
        let expected = Opportunities::new(times.iter().map(|t| Time(t * 1_000_000)), Opportunities::BYTES).unwrap();
        prop_assert_eq!(parse_mahimahi(&text).unwrap(), expected);
    }
}
