//! The path emulator: the simulator's links between two devices, driven by the real clock.
//!
//! [`PathSpec`] describes a path, [`Emulator`] applies it to frames, [`relay::run`] carries frames between two
//! [`Device`]s and returns a [`PathReport`]. Start with [`relay::run`]; the users' page is docs/path-emulator.md.

mod capture;
mod connections;
pub mod device;
pub mod emulator;
mod flow_delays;
mod flow_losses;
mod frame;
mod frames;
mod record;
pub mod relay;
pub mod spec;

pub use capture::PathCapture;
pub use connections::Connections;
pub use device::{Device, Sent};
pub use emulator::{Emulator, Release, Side};
pub use flow_delays::OwnDelays;
pub use flow_losses::FlowLosses;
pub use record::{CaptureReport, DirectionReport, PathReport};
pub use relay::{RelayOptions, Stop, run};
pub use spec::{Folder, PathError, PathSpec, Profile, needs_names, profiles};
