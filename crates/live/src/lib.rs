//! What touches files, devices and the real clock, beside the Python module: scenario files and the traces beside them,
//! captures of runs, and paths in real time.
//!
//! Uses sim and path. Look first at [`scenario::load`], [`capture::simulate`] and [`path`].

pub mod capture;
pub mod clock;
pub mod host;
pub mod kernel;
pub mod netns;
pub mod path;
pub mod results;
pub mod scenario;
