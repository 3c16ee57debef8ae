//! Datagrams without congestion control: a scheme without a controller.
//!
//! Source: RFC 768. What the application writes leaves at once (crate `flow`, `udp`): traffic with a rate of its own,
//! for experiments beside controlled flows.

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
