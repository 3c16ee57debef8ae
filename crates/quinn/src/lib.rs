//! Paceline's controllers inside [quinn](https://docs.rs/quinn): any of them as a [`quinn_proto::congestion::Controller`].
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
//! What QUIC's feedback is to a controller stands once, in [`paceline_flow::quic::Congestion`]; here is how quinn's calls become
//! that. No clock is read: quinn tells the time. Uses control, flow, random, units. Look first at [`Controllers`], then at
//! [`Law`]. [`Witness`] sees what the controllers do; docs/quinn.md has the whole.
//!
//! **What quinn (0.11) does not tell, and what that changes:**
//!
//! - How many packets were marked: an acknowledgement with marks is one. Who counts them (`dctcp`, `prague`) is refused.
//! - Which packets were lost: the newest one's time and the bytes of all. As quinn finds everything lost that is out and older, these
//!   are known, but for which ones of what left in one call.
//! - Which packets were sent: their bytes together, acknowledgements alone included, which count as in flight until the next
//!   acknowledgement comes with quinn's own count. Probes for a greater datagram are not told, and their acknowledgements let no window grow.
//! - By how long the peer held an acknowledgement back: the latest round trip has it in it, the smoothed one has that of the latest
//!   acknowledgement for an eighth.
//! - Losses that were none: no reduction is taken back.
//! - Losses come after the acknowledgements of the same packet, not before (RFC 9002, appendix A.7): the window grows, then it is cut.
//!
//! **What quinn does not ask:** when a packet may leave. It paces by 1.25 windows a smoothed round trip, at least ten datagrams at
//! once. Inside quinn the window is the only handle, and a controller's rate is made one ([`Law::window`]). Who drives quinn-proto in a
//! loop of his own has packets leave when the controller has them leave ([`Gate`]).
#![allow(clippy::disallowed_types, reason = "quinn's trait is told the time as an Instant; none is taken here")]

mod adaptor;
mod controllers;
mod gate;
mod law;
mod sent;
mod witness;

pub use adaptor::Adaptor;
pub use controllers::{Controllers, Refused};
pub use gate::{Gate, Leave};
pub use law::{Call, Law, Lost, Phase, State};
pub use witness::{Seen, What, Witness};
