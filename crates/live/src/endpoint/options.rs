//! Options of the two programs, and what a client requests.

use super::channel::Key;
use super::control::Offer;
use crate::quic::LogQuota;
use crate::session::ForeignSchemes;
use paceline_units::{Rate, Span};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// A requested flow, and its name in the results.
#[derive(Clone, Debug)]
pub struct RequestedFlow {
    /// Its name, also that of its group.
    pub name: String,
    /// Index among flows of the same name.
    pub instance: u32,
    /// The flow.
    pub offer: Offer,
}

/// Options of a client.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The server's key, if it requires one.
    pub key: Option<Key>,
    /// The flows. The address family of each follows from the host's address.
    pub flows: Vec<RequestedFlow>,
    /// Folder for event logs.
    pub logs: Option<PathBuf>,
    /// Folder for this end's logs of QUIC connections (qlog).
    pub qlogs: Option<PathBuf>,
    /// A folder in which the server stores its measurements, if both can access one.
    pub results: Option<PathBuf>,
    /// The local port of the first flow; each further flow uses the next one; `None`: ports chosen by the system.
    pub ports: Option<u16>,
    /// The pipe through which the path below learns when flows begin ([`Beginning`](crate::start_signal::Beginning)).
    pub beginning: Option<PathBuf>,
}

impl SendOptions {
    /// The local address of a flow's socket.
    pub(super) fn bound(&self, mut local: SocketAddr, index: usize) -> SocketAddr {
        local.set_port(self.ports.map_or(0, |first| first.saturating_add(index as u16)));
        local
    }
}

/// Options of a server, mostly limits.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Address for TCP and UDP.
    pub bind: SocketAddr,
    /// The key that a client must have; `None`: anyone may connect.
    pub key: Option<Key>,
    /// Maximum rate of a flow.
    pub max_rate: Rate,
    /// Maximum duration of a flow.
    pub max_duration: Span,
    /// Maximum number of concurrent flows.
    pub max_sessions: usize,
    /// Maximum memory for concurrent flows and their recordings, in bytes.
    pub max_memory: u64,
    /// A folder for this end's results that the client reads too, so that they need not cross the network.
    pub results: Option<PathBuf>,
    /// Folder for this end's logs of QUIC connections (qlog), and their quota.
    pub qlogs: Option<(PathBuf, Arc<LogQuota>)>,
    /// The server's own schemes that flows which it sends may name.
    pub schemes: ForeignSchemes,
}
