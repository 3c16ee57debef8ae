//! The two ends of an emulated path: namespaces with a device each, and the programs that run in them.
//!
//! Each end is a process that `clone(2)` starts in new network, process and mount namespaces (and, for an unprivileged
//! user, a user namespace). It creates a TUN there, passes its descriptor to Paceline, runs the program and reaps
//! orphans. It is the namespaces' init: when it ends, everything in them ends. It ends with Paceline
//! (`PR_SET_PDEATHSIG`), in whatever way that ends. No name, file or device outlives it. Start with [`run()`], then
//! `init.rs`.

pub mod address;
mod call;
mod device;
mod end;
mod init;
mod interface;
pub(crate) mod message;
mod program;
mod run;
mod signals;

pub use call::{Call, Refused};
pub use device::{NetDevice, PacketSocket};
pub use end::{EndError, privileged};
pub use init::{DEVICE, Kind};
pub use interface::MTU;
pub use program::start_text;
pub use run::{Ended, Far, Plan, RunError, Status, run};
