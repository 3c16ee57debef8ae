//! Restricts a gateway's process to the privileges that it needs.

use super::bpf::system::raise_memory_limit;
use super::error::GatewayError;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// Capabilities that a gateway needs while it runs: for maps and programs, and for queueing disciplines and filters,
/// which it removes at its end.
const NEEDED: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::NET_ADMIN);

/// Drops all capabilities that a gateway does not need from the calling thread, and from threads that it starts later.
/// This is permanent: programs started by it cannot regain them either.
///
/// # Errors
/// The system's.
pub fn keep_needed() -> Result<(), GatewayError> {
    // On kernels where this matters, it needs CAP_SYS_RESOURCE.
    raise_memory_limit();
    let keep = || {
        thread::set_no_new_privs(true)?;
        let kept = thread::capabilities(None)?.permitted & NEEDED;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        thread::set_capabilities(None, sets)
    };
    keep().map_err(|error| GatewayError::System { what: "giving up privileges", error: error.into() })
}
