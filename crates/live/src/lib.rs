//! Everything that uses files, devices and the real clock, except for the Python module: scenario files and their
//! traces, captures of runs, paths in real time, flows between hosts, threads, and the Linux gateway.
//!
//! Whatever sends packets or uses the kernel requires Linux, and exists only there; scenario files, captures, threads
//! and the types of results are available everywhere.
//!
//! Uses sim and path. Start with [`scenario::load`], [`capture::simulate`], [`path`] and [`session`].

#[cfg(target_os = "linux")]
mod capabilities;
pub mod capture;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod endpoint;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(target_os = "linux")]
pub mod gateway;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
pub mod netns;
#[cfg(target_os = "linux")]
pub mod path;
#[cfg(target_os = "linux")]
mod peer_text;
#[cfg(target_os = "linux")]
pub mod quic;
pub mod results;
pub mod scenario;
#[cfg(target_os = "linux")]
pub mod session;
#[cfg(target_os = "linux")]
pub mod start_signal;
pub mod worker_pool;

#[cfg(test)]
extern crate self as paceline_live;
#[cfg(test)]
#[path = "../../../tests/realtime.rs"]
mod realtime;
