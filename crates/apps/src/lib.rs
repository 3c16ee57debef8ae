//! Traffic: applications that write data to a connection, and those that read it at the other end.
//!
//! Contents: greedy and sized transfers ([`ftp`]), web traffic ([`web`]), Pareto on/off traffic ([`onoff`]), constant
//! bit rate ([`cbr`]); a media stream's sender ([`stream`]) and player ([`player`]); a live video's [`encoder`] (or
//! sizes recorded at several rates: [`ladder`]) and its [`viewer`]; one direction of a [`game`] or of a call's
//! [`voice`], and modelled or recorded [`video`], all three [`timed`]; relayed data ([`relay`]); the [`client`] and
//! [`server`] of requests. These are state machines without I/O, independent of TCP: time and progress are arguments,
//! [`Action`]s are results. The crate uses units and random. Start with [`Application`].

mod application;
pub mod cbr;
pub mod client;
pub mod encoder;
pub mod ftp;
pub mod game;
pub mod ladder;
pub mod onoff;
mod picture;
pub mod player;
pub mod playout;
pub mod relay;
pub mod server;
pub mod stream;
pub mod timed;
pub mod video;
pub mod viewer;
pub mod voice;
pub mod web;

/// `part` as a fraction of `of`; `None` if `of` is zero.
#[must_use]
pub fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

pub use application::{Action, Application, Period, Rounding, Transfers};
