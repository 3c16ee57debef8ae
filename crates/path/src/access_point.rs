//! Access points that lower the advertised windows of the TCP flows that cross them: VoAP and SAP-LAW.
//!
//! An access point sees both directions of a flow. Once per interval it takes its measurements ([`Interval`], and a
//! [`FlowReport`] for each flow) and decides how large each flow's window may be ([`Law::decide`]). In acknowledgements
//! that pass through towards the sender it lowers the window field to that size ([`clamped_window`]), and never raises
//! it. The same code decides in the simulator, in the path emulator and in the Linux gateway. They differ in the source
//! of the measurements and in how a window is written.

mod decisions;
mod sap_law;
mod simulated;
mod voap;

pub use decisions::Decided;
use paceline_units::{Rate, Span};
pub use sap_law::SapLaw;
pub use simulated::{AccessPoint, Crossing};
pub use voap::{DelayOf, First, Growth, Leave, Voap, VoapModel};

/// An access point's measurements in one interval, over all flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The maximum wait of a packet in the outgoing queue (the VoAP paper's ifqdel).
    pub longest_wait: Span,
    /// The rate of unresponsive traffic (UDP), headers of the link layer included.
    pub unresponsive: Rate,
}

/// An access point's measurements of one TCP flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowReport {
    /// Its number, constant as long as the flow lives.
    pub flow: u32,
    /// The sender's outstanding data, in bytes: see [`Passed::outstanding`].
    pub outstanding: u64,
    /// Bytes of data in a full segment.
    pub segment: u32,
    /// The window that its receiver advertises, in bytes.
    pub advertised: u64,
    /// Bytes of data sent in the interval; a flow with zero is not active.
    pub sent: u64,
    /// The maximum wait of its own packets, if known.
    pub longest_wait: Option<Span>,
    /// Its minimum round-trip time, if known: SYN to SYN-ACK on one side, SYN-ACK to ACK on the other.
    pub rtt: Option<Span>,
}

/// How large a flow's window may be from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The flow's number.
    pub flow: u32,
    /// In bytes; `None` leaves the window to the receiver.
    pub window: Option<u64>,
}

/// The algorithm that decides on the windows.
#[derive(Clone, PartialEq, Debug)]
pub enum Law {
    /// Vegas over access point: windows follow the queueing delay.
    Voap(Voap),
    /// Each flow gets its share of the channel's capacity beside UDP.
    SapLaw(SapLaw),
    /// The same window for all flows, in bytes.
    Fixed(u64),
}

impl Law {
    /// The time between decisions.
    #[must_use]
    pub const fn interval(&self) -> Span {
        match self {
            Law::Voap(voap) => voap.interval(),
            Law::SapLaw(sap_law) => sap_law.interval,
            Law::Fixed(_) => Span::from_millis(200),
        }
    }

    /// Ends an interval: takes its measurements and puts a decision for each of `flows` into `decisions`, in their
    /// order. The state of flows that are no longer among `flows` is dropped.
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

/// An access point's counts of a flow in an interval, in bytes of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Bytes passed towards the receiver at any time and not acknowledged at the interval's end.
    pub beyond: u64,
    /// Bytes passed towards the receiver in the interval.
    pub sent: u64,
    /// Bytes acknowledged in the interval.
    pub acked: u64,
    /// The interval's length.
    pub over: Span,
}

impl Passed {
    /// Estimates the sender's outstanding data, in bytes, from between the sender and its receiver.
    ///
    /// It is the sum of two parts. Between access point and receiver: the unacknowledged data, but at most what passes
    /// in one round trip there (`near`, queueing included); the rest is lost, or has arrived behind a loss. Between
    /// access point and sender: the acknowledgements and data of one round trip there (`far`), that is, what was
    /// acknowledged in that time.
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

/// The window to write into an acknowledgement, in the units of `own`, the window from the receiver.
///
/// `limit` is the decision, `sent` the data seen from the sender beyond the acknowledged number, `segment` the size of
/// a segment. The result is never above `own`. Its right edge never lies below data already sent, since RFC 9293
/// (3.8.6) discourages shrinking a window. It allows at least two segments, lest the timer of delayed acknowledgements
/// pace the flow.
#[inline]
#[must_use]
pub const fn clamped_window(own: u64, limit: u64, sent: u64, segment: u64) -> u64 {
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
