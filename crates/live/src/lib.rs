//! What touches files, devices and the real clock, beside the Python module: scenario files and the traces beside them,
//! captures of runs, paths in real time, flows between hosts, and the Linux gateway.
//!
//! Uses sim and path. Look first at [`scenario::load`], [`capture::simulate`], [`path`] and [`session`].

pub mod capture;
pub mod clock;
pub mod endpoint;
pub mod gateway;
pub mod host;
pub mod kernel;
pub mod netns;
pub mod path;
pub mod results;
pub mod scenario;
pub mod session;
