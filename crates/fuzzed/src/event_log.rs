//! Arbitrary bytes are read as an event log of libwebrtc, or refused; a log that is read can be measured and replayed
//! to controllers.

use paceline_calls::feedback::{Reports, receiver_reports, table};
use paceline_calls::{open_loop, rtc_event_log};
use paceline_control::{Profile, RtpController, registry};
use paceline_units::Span;

/// Maximum duration of logs that are replayed: ticks occur whether or not anything is logged.
const LONGEST: Span = Span::from_secs(600);

/// The target `event_log`.
pub fn event_log(bytes: &[u8]) {
    let log = match rtc_event_log::read(bytes) {
        Ok(log) => log,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let reports = Reports::of(&log);
    for series in receiver_reports(&reports).into_iter().chain([table(&log, &reports, 3)]) {
        assert!(series.columns.iter().all(|(_, column)| column.len() == series.columns[0].1.len()));
    }
    if log.lasts() > LONGEST {
        return;
    }
    for scheme in ["gcc", "nada", "scream-ericsson"] {
        let scheme = registry::scheme(scheme).expect("there is one");
        let controller = RtpController::new(scheme, Profile::Rfc, &[]).expect("its defaults");
        let _ = open_loop::replay(&log, &reports, controller, Span::from_secs(1));
    }
}
