//! Paceline's controllers inside [quinn](https://docs.rs/quinn): any of them as a
//! [`quinn_proto::congestion::Controller`].
//!
//! ```
//! use paceline_quinn::Controllers;
//! use std::sync::Arc;
//!
//! let controllers = Controllers::new("bbr3", &[], 1)?;
//! let mut transport = quinn_proto::TransportConfig::default(); // quinn::TransportConfig is the same
//! transport.congestion_controller_factory(Arc::new(controllers));
//! # Ok::<(), paceline_quinn::Refused>(())
//! ```
//!
//! [`paceline_flow::quic::Congestion`] defines how QUIC's feedback drives a controller; this crate translates quinn's
//! calls into it. It reads no clock: quinn passes the time. Uses control, flow, random, units. Start with
//! [`Controllers`], then read [`Law`]. An [`Observer`] sees what the controllers do; docs/quinn.md has the full
//! description.
//!
//! **What quinn (0.11) does not report, and the consequences:**
//!
//! - How many packets were marked: an acknowledgement with marks counts as one. Controllers that count marks (`dctcp`,
//!   `prague`) are refused.
//! - Which packets were lost: quinn gives the newest one's time and the total bytes. As it declares all older
//!   outstanding packets lost, they are known, except which packets among those sent in one call.
//! - Which packets were sent: quinn gives their total bytes, including packets with acknowledgements only, which count
//!   as in flight until the next acknowledgement with quinn's own count. Probes for a larger datagram are not reported,
//!   and their acknowledgements do not grow the window.
//! - The peer's acknowledgement delay: the latest round trip includes it, and the smoothed one includes an eighth of
//!   that of the latest acknowledgement.
//! - Spurious losses: no reduction is undone.
//! - Losses are reported after the acknowledgements of the same packet, not before (RFC 9002, appendix A.7): the window
//!   grows, then is reduced.
//!
//! **What quinn does not ask:** when a packet may leave. It paces at 1.25 windows per smoothed round trip, with bursts
//! of at least ten datagrams. Inside quinn, only the window can be controlled, so a controller's rate is converted to a
//! window ([`Law::window`]). Code that drives quinn-proto in its own loop can send packets when the controller allows
//! it ([`Gate`]).
#![allow(clippy::disallowed_types, reason = "quinn's trait is told the time as an Instant; none is taken here")]

mod adaptor;
mod controllers;
mod gate;
mod law;
mod observer;
mod sent_log;

pub use adaptor::Adaptor;
pub use controllers::{Controllers, Refused};
pub use gate::{Gate, SendTime};
pub use law::{Call, Law, Lost, Phase, State};
pub use observer::{Observer, Seen, What};
