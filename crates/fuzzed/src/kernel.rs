//! Arbitrary bytes for the parsers of the kernel's socket diagnostics, of `struct tcp_info`, of routing netlink, and of
//! messages from a namespace's init.

use paceline_live::fuzz::{is_kept, rtnetlink};
use paceline_live::kernel::sock_diag::sockets;
use paceline_live::kernel::tcp_info::{CcInfo, TcpInfo};

/// A netlink message with this body after its header.
fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(body);
    bytes
}

/// The target `kernel`.
pub fn kernel(bytes: &[u8]) {
    // The type of socket diagnostics; an error.
    for kind in [20, 2] {
        let whole = message(kind, bytes);
        assert!(sockets(&whole).len() <= 1);
        assert!(rtnetlink(&whole) <= 1);
    }
    let _ = (sockets(bytes), rtnetlink(bytes));
    let _ = TcpInfo::parse(bytes);
    for name in ["bbr", "vegas"] {
        let _ = CcInfo::parse(name, bytes);
    }
    if let Some(message) = bytes.first_chunk() {
        assert!(is_kept(message));
    }
}
