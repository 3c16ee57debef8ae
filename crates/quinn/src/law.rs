//! The law of one path: quinn's calls, become what [`Congestion`] is told.
//!
//! Sources: quinn-proto 0.11.19 (`src/connection/mod.rs`: `on_ack_received`, `detect_lost_packets`, `poll_transmit`), RFC 9002.

use crate::Gate;
use crate::sent::SentLog;
use paceline_control::{Gauges, WindowController as _};
use paceline_flow::quic::{Congestion, Cuts, Rtt};
use paceline_units::{Span, Time};

/// So many datagrams behind the newest acknowledged one quinn has told of every packet that it will tell of: it takes what is three
/// packets behind for lost. `TransportConfig::packet_threshold` may be raised up to this.
const BEHIND: u32 = 128;
/// The least that a controller which paces is granted, in datagrams: RFC 9002's kMinimumWindow.
const MINIMUM_WINDOW: u64 = 2;

/// What quinn tells a path's congestion control: a law that is told the same at the same times does the same. Times are since the path
/// began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<'a> {
    /// Packets left at once.
    Sent {
        /// Their bytes, acknowledgements alone included.
        bytes: u64,
        /// The number of the last one.
        last_packet_number: u64,
    },
    /// An acknowledgement came that told something new.
    Acked {
        /// When each packet left that it acknowledges, and its bytes.
        packets: &'a [(Time, u64)],
        /// Bytes that quinn still counts as in flight.
        in_flight: u64,
        /// quinn's round trip before this acknowledgement.
        smoothed: Span,
        /// The window limited the sender, not the application.
        limited: bool,
    },
    /// Packets were found lost.
    Lost {
        /// When the newest of them left.
        sent: Time,
        /// The bytes of all.
        bytes: u64,
        /// For so long that the window begins anew (RFC 9002, 7.6).
        persistent: bool,
    },
    /// An acknowledgement came that told of marks.
    Marked {
        /// When the newest packet left that it acknowledges.
        sent: Time,
    },
    /// Datagrams have another size from now on, in bytes.
    Datagram(u16),
}

/// Where a controller is, in the words of RFC 9002, section 7.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The window is below the threshold.
    SlowStart,
    /// It is not.
    Avoidance,
    /// It was cut, and nothing that left since has been acknowledged.
    Recovery,
}

impl Phase {
    /// As qlog has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::SlowStart => "slow_start",
            Phase::Avoidance => "congestion_avoidance",
            Phase::Recovery => "recovery",
        }
    }
}

/// What was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// Datagrams, or parts of them.
    pub datagrams: u64,
    /// Their bytes, as quinn counts them.
    pub bytes: u64,
}

/// What a path's congestion control is at.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The controller's window in bytes.
    pub window: u64,
    /// What quinn is told that the window is ([`Law::window`]).
    pub granted: u64,
    /// The slow-start threshold in bytes; `None` before there is one.
    pub threshold: Option<u64>,
    /// Bytes in flight; between acknowledgements with those of packets that only acknowledge.
    pub in_flight: u64,
    /// The round trip.
    pub rtt: Rtt,
    /// Bytes a second, of a controller that paces; `None` of others, and before it knows.
    pub pacing_rate: Option<f64>,
    /// The greatest UDP payload, in bytes.
    pub datagram: u16,
    /// Where the controller is.
    pub phase: Phase,
    /// Bytes that were acknowledged so far.
    pub acked_bytes: u64,
    /// What was lost so far.
    pub lost: Lost,
    /// How often the window was cut.
    pub cuts: Cuts,
}

/// Congestion control of one path, as quinn drives it.
#[derive(Clone, Debug)]
pub struct Law {
    congestion: Congestion,
    rtt: Rtt,
    log: SentLog,
    datagram: u16,
    /// One past the greatest number acknowledged, and when the newest of them left.
    acked: u32,
    newest: Time,
    /// The greatest window ever granted: but for probes, quinn has no more in flight.
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

    /// What quinn may have in flight, in bytes, where no [`Gate`] says it. quinn sends what makes it less than its window, RFC 9002 what makes it no more: one
    /// byte is added.
    ///
    /// The window of a controller that paces is no more than what its rate sends in the mean of the least and the smoothed round trip, and what
    /// it lets leave at once (a quantum). Over the smoothed one alone the quantum would be a queue, which makes the round trip longer, and with it the
    /// window, without an end; so the queue that it makes itself stays at two quanta, and where others' queues make the round trip longer, half
    /// of that is its own to fill.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.granted
    }

    /// The translation and the controller within.
    #[must_use]
    pub fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// What a plot of the controller should show.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.congestion.gauges(to);
    }

    /// Where everything is.
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

    /// quinn tells of something that happens now.
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

    /// So many bytes left at once, in datagrams of full size but for the last.
    fn on_sent(&mut self, now: Time, bytes: u64) {
        let mut missing = bytes;
        while missing > 0 {
            let size = missing.min(u64::from(self.datagram)) as u16;
            // whether it was asked for or not, a quantum may begin with it
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

    /// What counts as in flight here and not with quinn only acknowledged something, or its keys are gone.
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

    /// Says to a gate what the window is.
    pub(crate) fn open(&self, gate: &Gate) {
        gate.set_window(self.congestion.window(), self.datagram);
    }

    /// Makes the granted window anew.
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
