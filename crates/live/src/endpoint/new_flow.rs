//! What a driver receives and returns for a flow.

use super::budget::Charge;
use super::control::Measure;
use super::half::Half;
use crate::quic::{Keys, Place};
use crate::session::{End, SessionSpec};
use crate::start_signal::Announcer;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Figures that a flow shows while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Seconds since its data began.
    pub time_s: f64,
    /// Packets on the wire, sent or received.
    pub packets: u64,
    /// Bytes on the wire, sent or received.
    pub bytes: u64,
    /// At a sender: the smoothed round-trip time, once there is one.
    pub rtt_s: Option<f64>,
    /// At a sender: the loss event rate, or the share of retransmitted packets.
    pub loss: Option<f64>,
    /// At a sender: the window in packets or the rate in bit/s that its controller allows.
    pub figure: f64,
    /// Whether data flow.
    pub running: bool,
    /// Whether the flow has ended.
    pub over: bool,
}

/// A flow to run.
pub struct NewFlow {
    /// Identifies it to the owner.
    pub id: u64,
    /// Its session's specification.
    pub spec: SessionSpec,
    /// Index of its socket.
    pub port: usize,
    /// The other end; `None` at a server before the first datagram.
    pub peer: Option<SocketAddr>,
    /// The only address that its datagrams may come from.
    pub only: IpAddr,
    /// For a flow to a receiver of plain RTP: index of the RTCP socket, and RTCP's destination.
    pub rtcp: Option<(usize, SocketAddr)>,
    /// File for its event log.
    pub log: Option<PathBuf>,
    /// Place for the logs of its QUIC connections.
    pub qlog: Option<Place>,
    /// The measured part of the flow.
    pub measure: Option<Measure>,
    /// Its share of a server's budget, released when the flow is removed.
    pub charge: Option<Arc<Charge>>,
    /// For a flow over QUIC: the keys of its two ends.
    pub keys: Option<Keys>,
    /// Announces when its data begin.
    pub announcer: Option<Arc<Announcer>>,
}

/// Result of a flow.
#[derive(Debug)]
pub struct Outcome {
    /// The flow's id.
    pub id: u64,
    /// What this end measured.
    pub half: Half,
    /// How it ended here.
    pub end: End,
}
