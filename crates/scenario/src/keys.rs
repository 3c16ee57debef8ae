//! The tables and keys of a scenario file, as serde reads them.
//!
//! They are the single source, together with the registry for controllers' parameters ([`parameters`]): the JSON Schema
//! and docs/scenario.md are generated from them. They know neither the text that they are read from nor the rules
//! between them.

pub mod app;
pub(crate) mod bounds;
pub mod bundle;
pub mod cell;
mod codec;
pub mod coupled;
pub mod draw;
pub(crate) mod edca;
pub mod encoder;
pub mod file;
pub mod flow;
pub mod link;
pub mod loss;
pub(crate) mod named;
pub mod parameters;
pub mod queue;
pub mod quic;
pub(crate) mod relay;
pub mod repair;
pub mod request;
pub mod rtp;
pub mod values;
pub mod windows;
