//! Traffic: what hands data to a connection, and what takes it out at the other end.
//!
//! Lives here: greedy and sized transfers ([`ftp`]), web traffic ([`web`]), Pareto on/off traffic ([`onoff`]), constant bit
//! rate ([`cbr`]), the media stream's sender ([`stream`]) and its player ([`player`]), a live video's encoder ([`encoder`], or recorded at several rates: [`ladder`]) and who watches it
//! ([`viewer`]); one way of a [`game`], of a call's [`voice`], [`video`] of a model or a trace, all three [`timed`]; what is sent on ([`relay`]); who asks for pages and media ([`client`]) and who answers ([`server`]). State machines without I/O that know nothing of TCP: time and progress come in as arguments, [`Action`]s go
//! out. Uses units and random. Look first at [`Application`].

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

/// What share `part` is of `of`; `None` of nothing.
#[must_use]
pub fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

pub use application::{Action, Application, Period, Rounding, Transfers};
