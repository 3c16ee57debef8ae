//! The Linux gateway: a data path in the kernel that lowers the windows of ACKs on the LAN interface, and a process
//! that sets the windows from the delay of the queue towards the stations.
//!
//! [`bpf`] is the data path, [`window_clamp`] the same in Rust, [`table`] defines the state of a connection that both
//! use, [`run()`] is the process; the laws that set the windows are the simulator's code,
//! [`paceline_path::access_point`].

pub mod bpf;
pub mod delay;
pub mod element;
pub mod error;
mod interface_lock;
pub mod options;
pub mod privileges;
mod registry;
pub mod rtnetlink;
pub mod run;
pub mod status;
pub mod table;
pub mod window_clamp;

pub use delay::DelayFrom;
pub use element::{AccessPointReport, PathAccessPoint};
pub use error::GatewayError;
pub use options::RawOptions;
pub use run::{GatewayOptions, run};
pub use status::{FlowStatus, GatewayReport, Status};
