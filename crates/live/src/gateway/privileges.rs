//! What a gateway's process may do: no more than it needs.

use super::bpf::system::raise_memory_limit;
use super::error::GatewayError;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// What a gateway needs as long as it runs: maps and programs; queueing disciplines and filters, which it takes along at
/// its end.
const NEEDED: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::NET_ADMIN);

/// Gives up all capabilities of the calling thread, and of those that it starts afterwards, that a gateway does not need.
/// It is for good: no program that it could start would have them either.
///
/// # Errors
/// The system's.
pub fn keep_needed() -> Result<(), GatewayError> {
    // Where it matters at all it takes CAP_SYS_RESOURCE.
    raise_memory_limit();
    let keep = || {
        thread::set_no_new_privs(true)?;
        let kept = thread::capabilities(None)?.permitted & NEEDED;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        thread::set_capabilities(None, sets)
    };
    keep().map_err(|error| GatewayError::System { what: "giving up privileges", error: error.into() })
}
