//! Controllers in shared libraries: any language that exports C functions, by the structs of `paceline.h`.
//!
//! A library is loaded once and stays as long as the process. Loading it runs its code, and so does every run: it can do
//! whatever the process can. What it decides is held against what a machine can use after each call; what it fails with ends
//! the run. Uses control. Look first at `paceline.h`, then at [`load`].

pub mod abi;
mod media;
mod rate;
mod scheme;
mod state;
mod window;

pub use scheme::{LoadError, load};
