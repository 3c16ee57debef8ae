//! What tests of media controllers share, which are told of packets and not of a path.

#![allow(missing_docs, dead_code)] // each test uses what it needs

use paceline_control::PathView;
use paceline_units::{Span, Time};

/// The time, and nothing known of the path: RTP's feedback tells of it.
pub fn path(now: Time) -> PathView {
    PathView {
        now,
        srtt: Span::ZERO,
        rttvar: Span::ZERO,
        min_rtt: Span::ZERO,
        in_flight: 0,
        acked: 0,
        next: 0,
        receive_window: u32::MAX,
        segment: 1000,
    }
}

/// A draw from 0 to 1 by SplitMix64.
pub fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
