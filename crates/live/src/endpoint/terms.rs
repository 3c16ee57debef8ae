//! What a server agrees to: each flow for itself. What all have together is [`super::budget`]'s.

use super::control::{Direction, Offer};
use super::server::ServeOptions;
use crate::peer_text::peer_text;
use paceline_units::Rate;

/// Writes of an application in a second, at most: with more, a processor would do nothing else. This is a courtesy to
/// whoever asked by mistake; what a flow may cost is bounded where it runs.
const MAX_WRITES: f64 = 1e6;
/// Payload of a full segment, at least: with less, all is headers.
const MIN_SEGMENT: u16 = 16;

/// Why these flows are refused, if they are, as far as the request alone says: no scenario is read.
pub(super) fn refused_at_once(options: &ServeOptions, flows: &[Offer]) -> Option<String> {
    let max_duration_ms = options.max_duration.0 / 1_000_000;
    let longest = flows.iter().map(Offer::lasts_ms).max().unwrap_or(0);
    if longest > max_duration_ms {
        return Some(format!(
            "the flow would last {longest} ms; this server allows {max_duration_ms} ms, and `paceline serve --max-duration` raises that"
        ));
    }
    // a name of the kernel's (TCP_CA_NAME_MAX), which goes to it and to the log
    let is_name =
        |name: &&String| name.len() < 16 && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
    if let Some(name) = flows.iter().filter_map(|offer| offer.kernel.as_ref()).find(|name| !is_name(name)) {
        return Some(format!("\"{}\" is no congestion control of the kernel's TCP", peer_text(name)));
    }
    None
}

/// Why they are refused, if they are, for what they would send: each flow is read as a scenario, which takes time.
pub(super) fn refused(options: &ServeOptions, flows: &[Offer]) -> Option<String> {
    flows.iter().filter(|offer| offer.kernel.is_none()).find_map(|offer| absurd(options.max_rate, offer))
}

/// Why this flow is refused, if it is.
fn absurd(max: Rate, offer: &Offer) -> Option<String> {
    if let Some(segment) = offer.spec.segment().filter(|segment| *segment < MIN_SEGMENT) {
        return Some(format!("a segment of {segment} B; {MIN_SEGMENT} B at least"));
    }
    if offer.direction == Direction::Forward {
        return None;
    }
    if let Some(writes) = offer.spec.writes_per_second().filter(|writes| *writes > MAX_WRITES) {
        return Some(format!("the application would write {writes:.0} times a second; {MAX_WRITES:.0} at most"));
    }
    // it would make datagrams that the granted rate drops
    let made = offer.spec.uncontrolled().filter(|made| *made > max)?;
    Some(format!(
        "the flow would send {made}, its headers in UDP counted; this server allows {max}, and `paceline serve --max-rate` raises that"
    ))
}
