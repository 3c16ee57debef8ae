//! Access points that lower the advertised windows of the TCP flows that cross them: VoAP and SAP-LAW.
//!
//! An access point sees both directions of a flow. Once an interval it looks at what it has measured ([`Interval`], and
//! a [`FlowReport`] for each flow) and decides how large each flow's window may be ([`Law::decide`]); in the acknowledgements
//! that pass through it towards the sender it then lowers the window field to that ([`lowered`]), and never raises it. What
//! decides is the same code in the simulator, in the path emulator and in the Linux gateway; they differ in where
//! the measurements come from and in how a window is written.

mod decided;
mod sap_law;
mod simulated;
mod voap;

pub use decided::Decided;
use paceline_units::{Rate, Span};
pub use sap_law::SapLaw;
pub use simulated::{AccessPoint, Crossing};
pub use voap::{DelayOf, First, Growth, Leave, Voap, VoapModel};

/// What an access point has measured in one interval, of all flows together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The longest time that a packet waited in the outgoing queue (the VoAP paper's ifqdel).
    pub longest_wait: Span,
    /// The rate of the traffic that no window holds back (UDP), headers of the link layer included.
    pub unresponsive: Rate,
}

/// What it has measured of one TCP flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowReport {
    /// Its number, the same as long as the flow lives.
    pub flow: u32,
    /// What its sender has outstanding, in bytes: see [`Passed::outstanding`].
    pub outstanding: u64,
    /// Bytes of data in a full segment.
    pub segment: u32,
    /// The window that its receiver advertises, in bytes.
    pub advertised: u64,
    /// Bytes of data that it sent in the interval; a flow without any is not active.
    pub sent: u64,
    /// The longest wait of its own packets, where it is known.
    pub longest_wait: Option<Span>,
    /// Its least round-trip time, where it is known: SYN to SYN-ACK on one side, SYN-ACK to ACK on the other.
    pub rtt: Option<Span>,
}

/// How large a flow's window may be from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Whose.
    pub flow: u32,
    /// In bytes; `None` leaves it to the receiver.
    pub window: Option<u64>,
}

/// What decides on the windows.
#[derive(Clone, PartialEq, Debug)]
pub enum Law {
    /// Vegas over access point: windows follow the wait in the queue.
    Voap(Voap),
    /// Each flow's share of what the channel carries beside UDP.
    SapLaw(SapLaw),
    /// The same window for all flows, in bytes.
    Fixed(u64),
}

impl Law {
    /// From one decision to the next.
    #[must_use]
    pub const fn interval(&self) -> Span {
        match self {
            Law::Voap(voap) => voap.interval(),
            Law::SapLaw(sap_law) => sap_law.interval,
            Law::Fixed(_) => Span::from_millis(200),
        }
    }

    /// Ends an interval: takes what was measured in it and puts a decision for each of `flows` into `decisions`, in
    /// their order. A flow that is not among `flows` any more is forgotten.
    pub fn decide(&mut self, interval: &Interval, flows: &[FlowReport], decisions: &mut Vec<Decision>) {
        decisions.clear();
        match self {
            Law::Voap(voap) => voap.decide(interval, flows, decisions),
            Law::SapLaw(sap_law) => sap_law.decide(interval, flows, decisions),
            Law::Fixed(window) => {
                decisions.extend(flows.iter().map(|f| Decision { flow: f.flow, window: Some(*window) }));
            }
        }
    }
}

/// What an access point has seen of a flow in an interval, in bytes of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// What has passed towards the receiver at any time and is not acknowledged at the interval's end.
    pub beyond: u64,
    /// What has passed towards the receiver in the interval.
    pub sent: u64,
    /// What was acknowledged in the interval.
    pub acked: u64,
    /// How long the interval was.
    pub over: Span,
}

impl Passed {
    /// What the sender has outstanding, in bytes, as an access point between it and its receiver can tell.
    ///
    /// That has two parts. Between access point and receiver lies what is not acknowledged; but no more than passes in
    /// one round trip there (`near`, its queue's wait included): the rest is lost, or has arrived behind what is lost.
    /// On the sender's side travel, at any moment, the acknowledgements and the data of one round trip between access
    /// point and sender (`far`): what was acknowledged in that time.
    #[must_use]
    pub fn outstanding(&self, near: Option<Span>, far: Span) -> u64 {
        let share = |bytes: u64, time: Span| match self.over.0 {
            0 => 0,
            over => u64::try_from(u128::from(bytes) * u128::from(time.0) / u128::from(over)).unwrap_or(u64::MAX),
        };
        let near = near.filter(|_| self.over.0 > 0).map_or(u64::MAX, |near| share(self.sent, near));
        self.beyond.min(near).saturating_add(share(self.acked, far))
    }
}

/// The window that an acknowledgement may say, in the units of `own`, which is what its receiver said.
///
/// `limit` is the decision, `sent` what has been seen from the sender beyond the acknowledged number, `segment` the size of
/// a segment. It is never above `own`; the right edge never lies below what was already sent, since RFC 9293
/// (3.8.6) discourages shrinking a window; and it leaves room for two segments, lest a delayed acknowledgement's
/// timer pace the flow.
#[inline]
#[must_use]
pub const fn lowered(own: u64, limit: u64, sent: u64, segment: u64) -> u64 {
    let mut window = limit;
    if window < sent {
        window = sent;
    }
    if window < 2 * segment {
        window = 2 * segment;
    }
    if window < own { window } else { own }
}

#[cfg(test)]
mod tests;
