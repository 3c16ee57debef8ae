//! An IEEE 802.11 cell: one channel, an access point and its stations, all of which hear each other.
//!
//! [`Cell`] is one element of the engine: a shared medium has its own event loop. Its parts: [`timing`] (slots, frame
//! spaces, frame durations), [`signal`] (which frames arrive damaged), [`dcf`] (rules of access and retries),
//! [`interface`] (queue, backoff and counters of one transmitter); for 802.11n [`ht`] (its frames), [`session`] (block
//! ACKs, order) and [`aggregate`] (what goes into a frame). Clauses are those of IEEE Std 802.11-2016. docs/wifi.md
//! lists what is modelled and what is not. Start with [`CellModel`], then `Cell::begin`.

mod aggregate;
mod cell;
mod counters;
mod dcf;
mod edca;
mod exchange;
mod ht;
mod interface;
mod model;
mod queue;
mod session;
mod signal;
mod timing;

pub use aggregate::MAX_HELD;
pub use cell::{Cell, Output};
pub use counters::{InterfaceCounts, InterfaceReport, Samples};
pub use dcf::{Limits, Rules};
pub use edca::{Access, Category, Edca};
pub use ht::{GuardInterval, Ht, Width};
pub use model::{CellModel, StationModel};
pub use signal::{Band, Meters, PowerDbm, at_distance, ht_error, packet_error};
pub use timing::{Phy, Preamble, Protection, Slot, Standard, Waveform};
