//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod odd;
mod read;
mod written;
