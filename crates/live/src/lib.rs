//! The only I/O beside the Python module: scenario files and the traces beside them.
//!
//! Uses sim. Look first at [`scenario::load`].

pub mod scenario;
