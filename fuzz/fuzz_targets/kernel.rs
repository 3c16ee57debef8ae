//! Any bytes get an answer from the readers of the kernel's socket diagnostics and of `struct tcp_info`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_live::kernel::sock_diag::sockets;
use paceline_live::kernel::tcp_info::{CcInfo, TcpInfo};

fuzz_target!(|bytes: &[u8]| {
    let _ = sockets(bytes);
    let _ = TcpInfo::parse(bytes);
    for name in ["bbr", "vegas"] {
        let _ = CcInfo::parse(name, bytes);
    }
});
