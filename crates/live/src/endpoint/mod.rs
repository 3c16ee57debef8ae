//! Endpoints: sessions on real sockets, `paceline serve` and `paceline send`.
//!
//! [`driver`] gives sessions the time and the network through [`udp`]; [`control`] is what client and server say to each other
//! over TCP on the same port number, [`channel`] what encrypts it; `greeting` is how a server takes in who connects, `tries` what
//! wrong keys cost; [`remote_results`] validates a server's results; [`server`] and [`client`] are the two programs,
//! `client_resources` is what the former holds for a client, `groups` couples flows, `flows` is what a driver has of them,
//! [`half`] what each has measured, `outcome` the result of a run, [`rtp`] sends to receivers of RTP that are no programs of
//! ours, [`listen`] receives from such senders, `kernel` runs flows of the kernel's TCP between them. Look first at [`driver::Driver::run`].

pub mod budget;
mod bundles;
pub mod channel;
pub mod client;
mod client_resources;
pub mod control;
pub mod driver;
mod fair_share;
mod flow;
mod flows;
mod greeting;
mod groups;
pub mod half;
mod kernel;
pub mod listen;
mod numbers;
mod outcome;
pub mod remote_results;
pub mod rtp;
pub mod server;
mod terms;
mod tries;
pub mod udp;
#[cfg(test)]
mod worlds;

pub use channel::Key;
pub use client::{SendError, SendOptions, SendWatch, Wanted, send};
pub use listen::{ListenOptions, ListenWatch, listen};
pub use numbers::Numbers;
pub use outcome::LiveRun;
pub use rtp::{RtpTarget, send_rtp};
pub use server::{ServeOptions, Server};

/// Takes lines about what happens.
pub type Words = Box<dyn Fn(&str) + Send + Sync>;
