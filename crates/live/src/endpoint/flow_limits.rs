//! A server's conditions for each single flow. Limits for all flows together are in [`super::budget`].

use super::control::{Direction, Offer};
use super::options::ServeOptions;
use crate::peer_text::peer_text;
use paceline_units::Rate;

/// Maximum number of an application's writes per second: more would occupy a whole processor. This only warns users of
/// mistakes; the cost of a flow is limited where it runs.
const MAX_WRITES: f64 = 1e6;
/// Minimum payload of a full segment: with less, headers dominate.
const MIN_SEGMENT: u16 = 16;

/// Why these flows are refused, if they are, judging only by the request: no scenario is parsed.
pub(super) fn refused_at_once(options: &ServeOptions, flows: &[Offer]) -> Option<String> {
    let max_duration_ms = options.max_duration.0 / 1_000_000;
    let longest = flows.iter().map(Offer::lasts_ms).max().unwrap_or(0);
    if longest > max_duration_ms {
        return Some(format!(
            "the flow would last {longest} ms; this server allows {max_duration_ms} ms, and `paceline serve --max-duration` raises that"
        ));
    }
    // a congestion control's name in the kernel (TCP_CA_NAME_MAX), which goes to the kernel and to the log
    let is_name =
        |name: &&String| name.len() < 16 && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
    if let Some(name) = flows.iter().filter_map(|offer| offer.kernel.as_ref()).find(|name| !is_name(name)) {
        return Some(format!("\"{}\" is no congestion control of the kernel's TCP", peer_text(name)));
    }
    None
}

/// Why they are refused, if they are, because of what they would send: each flow is parsed as a scenario, which takes
/// time.
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
    // it would make datagrams that exceed the granted rate and are dropped
    let made = offer.spec.uncontrolled().filter(|made| *made > max)?;
    Some(format!(
        "the flow would send {made}, its headers in UDP counted; this server allows {max}, and `paceline serve --max-rate` raises that"
    ))
}
