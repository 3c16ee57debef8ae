//! The Linux gateway: a data path in the kernel that lowers the windows of ACKs on the LAN interface, and a process that
//! decides how far, from the delay of the queue towards the stations.
//!
//! [`bpf`] is the data path, [`window_clamp`] its twin in Rust, [`table`] what both know of a connection, [`run()`] the process;
//! what decides is [`paceline_path::access_point`], the simulator's code.

mod alone;
pub mod bpf;
pub mod delay;
pub mod element;
pub mod error;
pub mod privileges;
mod registry;
pub mod rtnetlink;
pub mod run;
pub mod status;
pub mod table;
pub mod window_clamp;
pub mod words;

pub use delay::DelayFrom;
pub use element::{AccessPointReport, PathAccessPoint};
pub use error::GatewayError;
pub use run::{GatewayOptions, run};
pub use status::{FlowStatus, GatewayReport, Status};
pub use words::Words;
