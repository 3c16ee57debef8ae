//! The two ends of an emulated path: namespaces with a device each, and the programs that run in them.
//!
//! Each end is a process that `clone(2)` puts into network, process and mount namespaces of its own (and, for a user
//! without privileges, a user namespace): it makes a TUN there, hands its descriptor to Paceline, runs the program and
//! reaps what that leaves behind. It is the namespaces' init: when it ends, all in them end, and it ends with Paceline
//! (`PR_SET_PDEATHSIG`), however that ends. No name, file or device outlives it. Look first at [`run()`], then at
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
