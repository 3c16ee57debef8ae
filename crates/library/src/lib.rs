//! Controllers in shared libraries: any language that exports C functions, by the structs of `paceline.h`.
//!
//! A library is loaded once and stays loaded until the process ends. Loading it runs its code, and so does every run:
//! it can do whatever the process can. After each call its decision is checked; an invalid decision or a reported
//! failure ends the run. Uses control. Start with `paceline.h`, then read [`load`].

pub mod abi;
mod media;
mod rate;
mod scheme;
mod state;
mod window;

pub use scheme::{LoadError, load};
