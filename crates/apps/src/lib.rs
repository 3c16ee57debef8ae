//! Traffic: what hands data to a connection, and what takes it out at the other end.
//!
//! Lives here: greedy and sized transfers ([`ftp`]), web traffic ([`web`]), Pareto on/off traffic ([`onoff`]), constant bit
//! rate ([`cbr`]), the media stream's sender ([`stream`]) and its player ([`player`]), a live video's encoder ([`encoder`]) and who watches it
//! ([`viewer`]). State machines without I/O that know nothing of TCP: time and progress come in as arguments, [`Action`]s go
//! out. Uses units, and the engine's random streams. Look first at [`Source`].

pub mod cbr;
pub mod encoder;
pub mod ftp;
pub mod onoff;
pub mod player;
mod source;
pub mod stream;
pub mod viewer;
pub mod web;

pub use source::{Action, Period, Rounding, Source, Transfers};
