//! The engine: elements, time windows and inboxes. It has no event queue.
//!
//! An [`Element`] is a host, a link, or a shared medium: it maps a time-ordered batch of packets to another. Time
//! advances in windows so short that no packet crosses a cut edge and comes back within one ([`schedule`]); each
//! element runs once per window, over its whole batch. A link that one source feeds in order is *folded*: evaluated at
//! the moment a packet is emitted ([`Network::emit`]). The result does not depend on the window. The crate uses packet
//! and units. Start with [`Element`], then [`Engine::run`].

mod bit_set;
mod calendar;
mod drops;
mod engine;
mod fanin;
mod inbox;
mod network;
mod order;
mod routes;
mod wake_queue;
mod wheel;

pub use drops::{DropReason, Drops, Fate};
pub use engine::{Element, Engine};
pub use inbox::Inbox;
pub use network::{FlowDrops, Hop, Network, Totals};
pub use order::{Edge, RunOrder, schedule};
pub use routes::{RouteStep, Routes};
