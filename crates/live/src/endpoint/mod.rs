//! Endpoints: sessions on real sockets, `paceline serve` and `paceline send`.
//!
//! [`driver`] supplies sessions with time and datagrams through [`udp`]. [`control`] defines the messages between
//! client and server over TCP on the same port number, and [`channel`] encrypts them; `accept` accepts connections,
//! `auth_backoff` penalises wrong keys; [`remote_results`] validates a server's results. [`server`] and [`client`] are
//! the two programs, `client_resources` is what the server holds for a client. `options` has their settings. `new_flow`
//! is what a driver receives and returns for a flow; `groups` couples flows, `flows` holds a driver's flows and sends
//! through a `port`, [`half`] has each end's measurements, `outcome` the result of a run. [`rtp`] sends to foreign RTP
//! receivers, [`listen`] receives from foreign RTP senders, `kernel` runs flows of the kernel's TCP. Start with
//! [`driver::Driver::run`].

mod accept;
mod auth_backoff;
pub mod budget;
mod bundles;
pub mod channel;
pub mod client;
mod client_resources;
pub mod control;
pub mod driver;
mod fair_share;
mod flow;
mod flow_limits;
mod flows;
mod groups;
pub mod half;
mod kernel;
pub mod listen;
mod new_flow;
mod numbers;
mod options;
mod outcome;
mod port;
pub mod remote_results;
pub mod rtp;
pub mod server;
pub mod udp;
#[cfg(test)]
mod worlds;

pub use channel::Key;
pub use client::{SendError, SendWatch, send};
pub use listen::{ListenOptions, ListenWatch, listen};
pub use numbers::Numbers;
pub use options::{RequestedFlow, SendOptions, ServeOptions};
pub use outcome::LiveRun;
pub use rtp::{RtpTarget, send_rtp};
pub use server::Server;

/// Receives log lines.
pub type LogSink = Box<dyn Fn(&str) + Send + Sync>;
