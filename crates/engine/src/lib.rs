//! The engine: elements, time windows, inboxes, and named random streams.
//!
//! Uses packet and units. Look first at [`random`].

pub mod random;
