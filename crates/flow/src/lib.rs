//! Sender and receiver machines around a controller. Sans-I/O: time comes in as an argument, segments go out through
//! a trait, nothing is read from the system.
//!
//! What lives here: [`tcp`]. Uses control and engine (for its random streams). Look first at [`tcp::TcpSender`].

pub mod tcp;
