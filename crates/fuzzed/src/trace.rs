//! Arbitrary text for the trace parsers: of rates, and of a video's frames.

use paceline_apps::video::FramesModel;
use paceline_path::trace::{AtEnd, Format, Trace, parse_mahimahi, parse_recorded, parse_seconds_mbit, read};
use paceline_units::Span;

/// The target `trace`.
pub fn trace(bytes: &[u8]) {
    let text = crate::text(bytes);
    for error in [
        parse_mahimahi(text).err(),
        parse_seconds_mbit(text, AtEnd::Repeat).err(),
        parse_seconds_mbit(text, AtEnd::Hold).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(!error.to_string().is_empty());
    }
    for format in [Format::Csv, Format::Json, Format::Iperf3] {
        match parse_recorded(text, format) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(found) => {
                assert!(found.steps[0].at.0 == 0 && found.steps.is_sorted_by(|one, next| one.at < next.at));
                assert!(found.steps.last().is_some_and(|last| last.at.0 < found.lasts.0));
                let _ = found.schedule(AtEnd::Repeat);
                assert!(found.schedule(AtEnd::Hold).is_ok());
            }
        }
    }
    if let Ok(Trace::Opportunities(found)) = read(text, None) {
        assert!(found.slots().count() > 0);
    }
    for rate in [None, Some(0.1), Some(1000.0)] {
        match FramesModel::parse(text, rate) {
            Err(error) => assert!(!error.is_empty()),
            Ok(model) => {
                assert!(model.frames.is_sorted_by_key(|(after, _)| *after));
                let last = model.frames.last().map_or(Span::ZERO, |(after, _)| *after);
                assert!(model.frames[0].0 == Span::ZERO && model.length > last);
            }
        }
    }
}
