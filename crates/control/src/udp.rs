//! Datagrams without congestion control: a name for scenarios, and nothing to control.
//!
//! Source: RFC 768. What the application hands over leaves at once (crate `flow`, `udp`); traffic with a rate of its own
//! beside which controlled flows are watched.

use crate::{Machine, Scheme};

/// The scheme.
pub const SCHEMES: &[Scheme] = &[Scheme {
    name: "udp",
    summary: "datagrams without congestion control: they leave as the application hands them over",
    source: "RFC 768",
    machine: Machine::Udp,
    parameters: &[],
    foreign: None,
}];
