//! The only I/O beside the Python module: scenario files and the traces beside them, and captures of runs.
//!
//! Uses sim. Look first at [`scenario::load`] and [`capture::simulate`].

pub mod capture;
pub mod scenario;
