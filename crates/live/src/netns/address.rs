//! The addresses of a path's two ends.
//!
//! IPv4 from 198.18.0.0/15, which RFC 2544 reserves for network benchmarks, so that no network in use is hidden; IPv6
//! from a unique local prefix (RFC 4193). In separate namespaces all paths use the same addresses.

use crate::path::Side;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum number of concurrent paths with their far end on the host.
pub const PATHS: u8 = 250;
/// Prefix length of a path's IPv4 network.
pub(super) const PREFIX: u8 = 30;
/// Prefix length of its IPv6 network.
pub(super) const PREFIX6: u8 = 64;

/// The IPv4 address of an end of the path with this number: 198.18.N.1 and 198.18.N.2.
#[must_use]
pub fn ipv4(path: u8, side: Side) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, path, 1 + side as u8)
}

/// The IPv6 address of an end of the path with this number: fdac:e11e:0:N::1 and fdac:e11e:0:N::2.
#[must_use]
pub fn ipv6(path: u8, side: Side) -> Ipv6Addr {
    Ipv6Addr::new(0xfdac, 0xe11e, 0, path.into(), 0, 0, 0, 1 + side as u16)
}
