//! The law of one path: translates quinn's calls into those of [`Congestion`].
//!
//! Sources: quinn-proto 0.11.19 (`src/connection/mod.rs`: `on_ack_received`, `detect_lost_packets`, `poll_transmit`),
//! RFC 9002.

use crate::Gate;
use crate::sent_log::SentLog;
use paceline_control::{Gauges, WindowController as _};
use paceline_flow::quic::{Congestion, Cuts, Rtt};
use paceline_units::{Span, Time};

/// quinn has reported the fate of every packet this many datagrams behind the newest acknowledged one: it declares
/// packets lost that are three packets behind. `TransportConfig::packet_threshold` may be raised up to this.
const BEHIND: u32 = 128;
/// The minimum window granted to a controller that paces, in datagrams: RFC 9002's kMinimumWindow.
const MINIMUM_WINDOW: u64 = 2;

/// A call of quinn to a path's congestion control: the same calls at the same times have the same results. Times are
/// since the path began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<'a> {
    /// Packets were sent together.
    Sent {
        /// Their bytes, including packets with acknowledgements only.
        bytes: u64,
        /// The number of the last one.
        last_packet_number: u64,
    },
    /// An acknowledgement with new information arrived.
    Acked {
        /// When each packet that it acknowledges was sent, and its bytes.
        packets: &'a [(Time, u64)],
        /// Bytes that quinn still counts as in flight.
        in_flight: u64,
        /// quinn's round trip before this acknowledgement.
        smoothed: Span,
        /// Whether the window limited the sender, not the application.
        limited: bool,
    },
    /// Packets were detected as lost.
    Lost {
        /// When the newest of them was sent.
        sent: Time,
        /// Their total bytes.
        bytes: u64,
        /// Persistent congestion: the window is reset (RFC 9002, 7.6).
        persistent: bool,
    },
    /// An acknowledgement that reports marks arrived.
    Marked {
        /// When the newest packet that it acknowledges was sent.
        sent: Time,
    },
    /// The datagram size changes to this many bytes.
    Datagram(u16),
}

/// A controller's state as defined in RFC 9002, section 7.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The window is below the threshold.
    SlowStart,
    /// The window is not below the threshold.
    Avoidance,
    /// The window was reduced, and no packet sent since has been acknowledged.
    Recovery,
}

impl Phase {
    /// Its name in qlog.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::SlowStart => "slow_start",
            Phase::Avoidance => "congestion_avoidance",
            Phase::Recovery => "recovery",
        }
    }
}

/// Counts of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// Datagrams, or parts of datagrams.
    pub datagrams: u64,
    /// Their bytes, as quinn counts them.
    pub bytes: u64,
}

/// The state of a path's congestion control.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The controller's window in bytes.
    pub window: u64,
    /// The window that quinn gets ([`Law::window`]).
    pub granted: u64,
    /// The slow-start threshold in bytes; `None` before there is one.
    pub threshold: Option<u64>,
    /// Bytes in flight; between acknowledgements including packets with acknowledgements only.
    pub in_flight: u64,
    /// The round trip.
    pub rtt: Rtt,
    /// Pacing rate in bytes per second; `None` for a controller that does not pace, and while unknown.
    pub pacing_rate: Option<f64>,
    /// The maximum UDP payload in bytes.
    pub datagram: u16,
    /// The controller's phase.
    pub phase: Phase,
    /// Bytes acknowledged so far.
    pub acked_bytes: u64,
    /// Losses so far.
    pub lost: Lost,
    /// Number of reductions of the window.
    pub cuts: Cuts,
}

/// Congestion control of one path, as quinn drives it.
#[derive(Clone, Debug)]
pub struct Law {
    congestion: Congestion,
    rtt: Rtt,
    log: SentLog,
    datagram: u16,
    /// The number after the highest acknowledged one, and when the newest acknowledged packet was sent.
    acked: u32,
    newest: Time,
    /// The maximum window granted so far: apart from probes, quinn has no more in flight.
    greatest: u64,
    granted: u64,
    acked_bytes: u64,
    lost: Lost,
}

impl Law {
    pub(crate) fn new(congestion: Congestion, datagram: u16) -> Law {
        let mut law = Law {
            congestion,
            rtt: Rtt::default(),
            log: SentLog::default(),
            datagram: datagram.max(1),
            acked: 0,
            newest: Time::ZERO,
            greatest: 0,
            granted: 0,
            acked_bytes: 0,
            lost: Lost::default(),
        };
        law.settle();
        law
    }

    /// Bytes that quinn may have in flight, unless a [`Gate`] decides. quinn sends as long as bytes in flight stay
    /// below its window, RFC 9002 as long as they do not exceed it: so one byte is added.
    ///
    /// The window of a controller that paces is limited to what its rate sends in the mean of the minimum and the
    /// smoothed round trip, plus a quantum. With the smoothed round trip alone, the quantum would become a queue, which
    /// would increase the round trip and so the window, without end. With the mean, the queue of its own making stays
    /// at two quanta; where other flows' queues increase the round trip, it may fill half of the increase.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.granted
    }

    /// The [`Congestion`] inside, with its controller.
    #[must_use]
    pub fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// Reports the controller's gauges.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.congestion.gauges(to);
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> State {
        let controller = self.congestion.controller();
        let threshold = controller.threshold();
        let phase = if self.congestion.is_recovering() {
            Phase::Recovery
        } else if controller.window() < threshold {
            Phase::SlowStart
        } else {
            Phase::Avoidance
        };
        let rate = self.congestion.pacing_rate();
        State {
            window: self.congestion.window(),
            granted: self.granted,
            threshold: threshold.is_finite().then(|| (threshold * f64::from(self.datagram)) as u64),
            in_flight: self.congestion.in_flight(),
            rtt: self.rtt,
            pacing_rate: (self.congestion.needs().pacing && rate.is_finite()).then_some(rate),
            datagram: self.datagram,
            phase,
            acked_bytes: self.acked_bytes,
            lost: self.lost,
            cuts: self.congestion.cuts(),
        }
    }

    /// Handles a call of quinn at `now`.
    pub fn take(&mut self, now: Time, call: Call<'_>) {
        match call {
            Call::Sent { bytes, .. } => self.on_sent(now, bytes),
            Call::Acked { packets, in_flight, smoothed, limited } => {
                self.on_acked(now, packets, in_flight, smoothed, limited);
            }
            Call::Lost { sent, bytes, persistent } => self.on_lost(now, sent, bytes, persistent),
            Call::Marked { sent } => {
                self.congestion.on_marks(now, 1, 1, sent);
                self.settle();
            }
            Call::Datagram(size) => {
                self.datagram = size.max(1);
                self.congestion.set_datagram(self.datagram);
                self.settle();
            }
        }
    }

    /// `bytes` bytes were sent together, in datagrams of full size except the last.
    fn on_sent(&mut self, now: Time, bytes: u64) {
        let mut missing = bytes;
        while missing > 0 {
            let size = missing.min(u64::from(self.datagram)) as u16;
            // also if sent unrequested, a quantum may begin with it
            let _ = self.congestion.due(now);
            self.congestion.pace(now, size);
            let left = self.congestion.on_sent(now, self.log.next(), size).unwrap_or_default();
            self.log.push(now, left, size);
            missing -= u64::from(size);
        }
        // probes may leave beyond the window
        self.log.prune(self.acked.saturating_sub(BEHIND), 2 * self.greatest);
    }

    fn on_acked(&mut self, now: Time, packets: &[(Time, u64)], in_flight: u64, smoothed: Span, limited: bool) {
        let Some(newest) = packets.iter().map(|&(sent, _)| sent).max() else { return };
        if newest >= self.newest {
            self.newest = newest;
            if self.rtt.is_known() {
                self.rtt.smoothed_rtt = smoothed;
            }
            self.rtt.sample(Span(now.0.saturating_sub(newest.0)), Span::ZERO);
        }
        self.congestion.on_ack_begin(&self.rtt);
        for &(sent, bytes) in packets {
            self.acked_bytes += bytes;
            let mut missing = bytes;
            while missing > 0
                && let Some(piece) = self.log.at(sent, missing)
            {
                missing -= u64::from(piece.bytes);
                self.acked = self.acked.max(piece.number.wrapping_add(1));
                self.congestion.on_acked(now, &piece.left, sent, piece.number, piece.bytes);
            }
        }
        self.discard_beyond(in_flight);
        self.congestion.on_ack_end(now, limited);
        if !limited {
            self.congestion.on_app_limited();
        }
        self.settle();
    }

    /// Discards bytes that count as in flight here but not in quinn: packets with acknowledgements only, or with
    /// discarded keys.
    fn discard_beyond(&mut self, in_flight: u64) {
        let mut beyond = self.congestion.in_flight().saturating_sub(in_flight);
        while beyond > 0 {
            let size = beyond.min(u64::from(u16::MAX)) as u16;
            self.congestion.on_discarded(size);
            beyond -= u64::from(size);
        }
    }

    fn on_lost(&mut self, now: Time, sent: Time, bytes: u64, persistent: bool) {
        let pieces = self.log.until(sent, bytes);
        for piece in &pieces {
            self.congestion.on_lost(&piece.left, piece.number, piece.bytes);
        }
        self.congestion.on_congestion(now, sent);
        if persistent {
            self.congestion.on_persistent(now);
        }
        self.settle();
        self.lost.datagrams += pieces.len() as u64;
        self.lost.bytes += bytes;
    }

    /// Passes the window to a gate.
    pub(crate) fn open(&self, gate: &Gate) {
        gate.set_window(self.congestion.window(), self.datagram);
    }

    /// Updates the granted window.
    fn settle(&mut self) {
        let mut window = self.congestion.window();
        if self.congestion.needs().pacing && self.rtt.is_known() {
            let trip = (self.rtt.min_rtt.as_secs_f64() + self.rtt.smoothed_rtt.as_secs_f64()) / 2.0;
            let rate = self.congestion.pacing_rate() * trip;
            let quantum = self.congestion.controller().send_quantum().max(self.datagram.into());
            let min = MINIMUM_WINDOW * u64::from(self.datagram);
            window = window.min((rate as u64).saturating_add(quantum.into()).max(min));
        }
        self.granted = window + 1;
        self.greatest = self.greatest.max(self.granted);
    }
}

#[cfg(test)]
mod tests;
