//! Converts QUIC's feedback, in bytes of packets, into the events of a [`TcpController`].
//!
//! Sources: RFC 9002 section 7 and appendix B; the algorithms themselves are in the controllers. Paceline's own sender
//! and the adaptor for quinn both use it, so that both follow the same algorithm.
//!
//! A window of n is n full datagrams of `datagram` bytes. Each full datagram of acknowledged bytes is a separate event,
//! because RFC 9002 counts packet by packet. A TCP that receives one acknowledgement for two segments grows its slow
//! start by one (RFC 5681 equation 2), QUIC by both. In place of FlightSize the controller sees the window: RFC 9002
//! halves the window where RFC 5681 halves the data in flight. The window is never below two datagrams
//! (kMinimumWindow).

use super::Rtt;
use super::bucket::Bucket;
use crate::delivery::{Sampler, Snapshot};
use crate::pacing::Pacing;
use paceline_control::{
    Controller, Gauges, LostSegment, Needs, PathView, Profile, TcpController, TcpEvent, Threshold, WindowController,
};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// kMinimumWindow, in datagrams.
const MINIMUM_WINDOW: f64 = 2.0;
/// RFC 9002 section 7.7's N: the factor between the pacing rate and one window per round trip.
const PACING_GAIN: f64 = 1.25;
/// The burst allowed when a window is paced, in datagrams: an initial window (section 7.7).
const BURST: u32 = 10;

/// The state before a reduction, kept in case it was spurious.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: f64,
    threshold: f64,
}

/// Congestion control of one path.
#[derive(Clone, Debug)]
pub struct Congestion {
    controller: TcpController,
    needs: Needs,
    datagram: u32,
    /// The controller's current window, in datagrams and in bytes.
    window: f64,
    congestion_window: u64,
    profile: Profile,
    /// bytes_in_flight.
    bytes_in_flight: u64,
    /// Bytes in flight before the current acknowledgement.
    prior_in_flight: u64,
    /// Acknowledged bytes that may grow the window but do not fill a datagram yet.
    credit: u64,
    /// congestion_recovery_start_time.
    congestion_recovery_start_time: Option<Time>,
    /// The controller has received the start of a recovery and not yet its end.
    recovering: bool,
    before: Option<Before>,
    sampler: Option<Box<Sampler>>,
    lost: Vec<LostSegment>,
    pacing: Pacing,
    bucket: Bucket,
    rtt: Rtt,
    /// One past the largest number acknowledged, and one past the largest sent.
    acked: u32,
    next: u32,
    marked: u32,
    last_sent: Time,
    cuts: Cuts,
}

/// Number of window reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cuts {
    /// By losses and persistent congestion.
    pub losses: u64,
    /// By marks.
    pub marks: u64,
    /// Reductions undone, because packets declared lost arrived late.
    pub undone: u64,
}

impl Congestion {
    /// Creates the congestion control of a path for datagrams of `datagram` bytes (UDP payload), around a new
    /// `controller` of this profile, with a window of `initial_window` bytes. `stream` supplies the controller's random
    /// draws.
    #[must_use]
    pub fn new(
        mut controller: TcpController,
        profile: Profile,
        datagram: u16,
        initial_window: u64,
        stream: Stream,
    ) -> Congestion {
        let needs = controller.needs();
        controller.draw_from(stream);
        if !needs.pacing {
            controller.is_paced();
        }
        let mut congestion = Congestion {
            controller,
            needs,
            datagram: u32::from(datagram.max(1)),
            window: MINIMUM_WINDOW,
            congestion_window: 0,
            profile,
            bytes_in_flight: 0,
            prior_in_flight: 0,
            credit: 0,
            congestion_recovery_start_time: None,
            recovering: false,
            before: None,
            sampler: needs.deliveries.then(|| Box::new(Sampler::new())),
            lost: Vec::new(),
            pacing: Pacing::new(),
            bucket: Bucket::default(),
            rtt: Rtt::default(),
            acked: 0,
            next: 0,
            marked: 0,
            last_sent: Time::ZERO,
            cuts: Cuts::default(),
        };
        let window = initial_window as f64 / f64::from(congestion.datagram);
        congestion.notify(Time::ZERO, TcpEvent::Established { window });
        congestion
    }

    /// The initial window in bytes that RFC 9002 section 7.2 recommends for datagrams of this size.
    #[must_use]
    pub fn initial_window(datagram: u16) -> u64 {
        let datagram = u64::from(datagram);
        (10 * datagram).min((2 * datagram).max(14_720))
    }

    /// The window in bytes.
    #[inline]
    #[must_use]
    pub fn window(&self) -> u64 {
        self.congestion_window
    }

    /// The window in datagrams.
    #[inline]
    pub(super) fn window_datagrams(&self) -> f64 {
        self.window
    }

    /// Updates the cached window and pacing rate, after the controller or the round-trip time may have changed.
    #[inline(always)]
    fn refresh(&mut self) {
        let window = self.controller.window();
        self.window = if window > MINIMUM_WINDOW { window } else { MINIMUM_WINDOW };
        let bytes = self.window * f64::from(self.datagram);
        // through i64, which takes one instruction
        self.congestion_window = bytes as i64 as u64;
        if !self.needs.pacing && self.rtt.is_known() {
            self.bucket.set_rate(window_rate(bytes, self.rtt.smoothed_rtt), self.datagram, BURST);
        }
    }

    /// Bytes sent and neither acknowledged nor lost.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &TcpController {
        &self.controller
    }

    /// The number of window reductions.
    #[must_use]
    pub fn cuts(&self) -> Cuts {
        self.cuts
    }

    /// The controller's needs beyond events.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Sets the size of datagrams. The window in bytes changes with it (RFC 9002 section 7.2).
    pub fn set_datagram(&mut self, datagram: u16) {
        self.datagram = u32::from(datagram.max(1));
        self.refresh();
    }

    /// The pacing rate in bytes per second: the controller's own, otherwise 1.25 windows per smoothed round-trip time
    /// (section 7.7). Infinite before the first sample.
    #[inline]
    #[must_use]
    pub fn pacing_rate(&self) -> f64 {
        if self.needs.pacing {
            return self.controller.pacing_rate();
        }
        if !self.rtt.is_known() {
            return f64::INFINITY;
        }
        window_rate(self.window * f64::from(self.datagram), self.rtt.smoothed_rtt)
    }

    /// When pacing allows the next packet; a time not after `now` means at once.
    #[inline]
    pub fn due(&mut self, now: Time) -> Time {
        if self.needs.pacing { self.due_by_controller(now) } else { self.bucket.due() }
    }

    #[inline(never)]
    fn due_by_controller(&mut self, now: Time) -> Time {
        let (controller, datagram) = (&self.controller, self.datagram);
        self.pacing.due(now, || controller.send_quantum().max(datagram))
    }

    /// Charges a packet to the pacer behind [`Congestion::due`]. A delay in the host does not slow pacing down: the
    /// next packets are passed to the host as if there were none.
    #[inline(always)]
    pub fn pace(&mut self, now: Time, bytes: u16) {
        if self.needs.pacing { self.pace_by_controller(now, bytes) } else { self.bucket.take(now, bytes) }
    }

    #[inline(never)]
    fn pace_by_controller(&mut self, now: Time, bytes: u16) {
        let rate = self.controller.pacing_rate();
        if rate.is_finite() {
            self.pacing.sent(now, bytes.into(), rate);
        }
    }

    /// When pacing allows the next packet; `None`: it may be sent now.
    #[must_use]
    pub fn waits(&self, now: Time) -> Option<Time> {
        if self.needs.pacing {
            return self.pacing.waits(now);
        }
        Some(self.bucket.due()).filter(|due| *due > now)
    }

    /// Records the transmission of packet `number`, of `bytes` (UDP payload), which counts as in flight. Returns a
    /// snapshot to pass back when it is acknowledged or lost, if the controller needs delivery samples.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Time, number: u32, bytes: u16) -> Option<Snapshot> {
        if self.bytes_in_flight == 0 {
            self.resumed(now);
        }
        self.bytes_in_flight += u64::from(bytes);
        self.next = number.wrapping_add(1);
        self.last_sent = now;
        let sampler = self.sampler.as_mut()?;
        let alone = self.bytes_in_flight == u64::from(bytes);
        Some(sampler.sent(now, self.bytes_in_flight.min(u64::from(u32::MAX)) as u32, alone))
    }

    /// Reports that sending resumes with nothing in flight; not for the first packet of all.
    #[cold]
    fn resumed(&mut self, now: Time) {
        if self.next == 0 {
            return;
        }
        let app_limited = self.sampler.as_ref().is_none_or(|sampler| sampler.is_app_limited());
        let idle = super::rtt::between(self.last_sent, now);
        self.notify(now, TcpEvent::Resumed { idle, app_limited });
    }

    /// Marks the connection application-limited: there is nothing to send although the window has room.
    #[inline]
    pub fn on_app_limited(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.limit(self.bytes_in_flight.min(u64::from(u32::MAX)) as u32);
        }
    }

    /// Begins the processing of an acknowledgement; `rtt` includes its sample.
    #[inline]
    pub fn on_ack_begin(&mut self, rtt: &Rtt) {
        self.rtt = *rtt;
        self.prior_in_flight = self.bytes_in_flight;
    }

    /// Processes the new acknowledgement of packet `number`, of `bytes`, sent at `sent`.
    #[inline]
    pub fn on_acked(&mut self, now: Time, left: &Snapshot, sent: Time, number: u32, bytes: u16) {
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(u64::from(bytes));
        self.acked = self.acked.max(number.wrapping_add(1));
        if let Some(sampler) = &mut self.sampler {
            sampler.delivered(left, bytes.into(), (sent, number), false, now);
        }
        if self.congestion_recovery_start_time.is_some_and(|start| sent <= start) {
            return; // InCongestionRecovery
        }
        if self.recovering {
            self.recovered(now);
        }
        self.credit += u64::from(bytes);
    }

    #[cold]
    fn recovered(&mut self, now: Time) {
        self.recovering = false;
        self.notify(now, TcpEvent::Recovered { at_most: f64::INFINITY });
    }

    /// Ends the processing of an acknowledgement; `limited`: the window limited the sender, not the application.
    #[inline(always)]
    pub fn on_ack_end(&mut self, now: Time, limited: bool) {
        let datagram = u64::from(self.datagram);
        if self.credit >= datagram {
            let full = (self.credit / datagram) as u32;
            self.credit %= datagram;
            self.grow(now, full, limited);
        }
        if self.sampler.is_some() {
            self.deliver(now, limited);
        }
        self.refresh();
    }

    /// Grows the window for `full` datagrams acknowledged outside recovery.
    #[inline(always)]
    fn grow(&mut self, now: Time, full: u32, limited: bool) {
        let flight = datagrams(self.prior_in_flight, self.datagram);
        if let TcpController::Reno(reno) = &mut self.controller
            && self.profile == Profile::Rfc
        {
            return (0..full).for_each(|_| reno.acked(1, used(flight, reno.window(), limited)));
        }
        self.grow_others(now, full, flight, limited);
    }

    #[inline(never)]
    fn grow_others(&mut self, now: Time, full: u32, flight: u32, limited: bool) {
        let path = self.path(now);
        let rtt = Some(self.rtt.latest_rtt);
        let by_kernel = self.profile == Profile::Linux;
        let (events, segments) = if by_kernel { (1, full) } else { (full, 1) };
        for left in (0..events).rev() {
            let window = self.controller.window();
            let in_flight =
                if limited || !(by_kernel || self.needs.deliveries) { used(flight, window, limited) } else { flight };
            let rtt = rtt.filter(|_| left == 0);
            let path = PathView { in_flight, ..path };
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt }, &path);
        }
    }

    #[inline(never)]
    fn deliver(&mut self, now: Time, limited: bool) {
        self.notify_lost(now);
        let in_flight = self.bytes_in_flight.min(u64::from(u32::MAX)) as u32;
        let Some(sampler) = &mut self.sampler else { return };
        let Some(mut sample) = sampler.sample(now, 1, in_flight) else { return };
        sample.prior_in_flight = self.prior_in_flight;
        sample.window_limited = limited;
        sample.newly_marked = core::mem::take(&mut self.marked);
        let path = self.path(now);
        self.controller.on_delivery(&sample, &path);
        if self.controller.limits_itself()
            && let Some(sampler) = &mut self.sampler
        {
            sampler.limit(in_flight);
        }
    }

    /// Records the loss of packet `number`.
    #[cold]
    pub fn on_lost(&mut self, left: &Snapshot, number: u32, bytes: u16) {
        self.on_discarded(bytes);
        if let Some(sampler) = &mut self.sampler {
            self.lost.push(sampler.lost(left, number, bytes.into(), 1));
        }
    }

    /// Removes a packet that will be neither acknowledged nor lost, because its keys were discarded.
    pub fn on_discarded(&mut self, bytes: u16) {
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(u64::from(bytes));
    }

    /// Ends the processing of packets lost together; the newest was sent at `sent`. The window is reduced at most once
    /// for packets sent before the reduction (OnCongestionEvent).
    #[cold]
    pub fn on_congestion(&mut self, now: Time, sent: Time) {
        if self.begins(now, sent) {
            self.cuts.losses += 1;
            self.notify(now, TcpEvent::Lost { duplicates: 0, again: false });
        }
        self.notify_lost(now);
    }

    /// Processes ECN feedback: of `acked` newly acknowledged packets, `marked` arrived with CE; the newest was sent at
    /// `sent` (ProcessECN). Call it before [`Congestion::on_acked`] for these packets.
    pub fn on_marks(&mut self, now: Time, acked: u32, marked: u32, sent: Time) {
        self.marked += marked;
        if self.needs.ecn.counts() {
            let path = self.path(now);
            self.controller.on_marks(acked, marked, &path);
            self.refresh();
        }
        if marked > 0 && self.begins(now, sent) {
            self.before = None; // a mark is never spurious
            self.cuts.marks += 1;
            self.notify(now, TcpEvent::EcnEcho);
        }
    }

    /// Begins a recovery period, unless the packet was sent before the last one began. Returns whether it did.
    fn begins(&mut self, now: Time, sent: Time) -> bool {
        if self.congestion_recovery_start_time.is_some_and(|start| sent <= start) {
            return false;
        }
        self.congestion_recovery_start_time = Some(now);
        self.recovering = true;
        self.credit = 0;
        self.before = Some(Before { window: self.controller.window(), threshold: self.controller.threshold() });
        true
    }

    /// Handles persistent congestion: the window restarts at its minimum (section 7.6.2). Call it after
    /// [`Congestion::on_congestion`].
    #[cold]
    pub fn on_persistent(&mut self, now: Time) {
        self.before = None;
        self.congestion_recovery_start_time = None;
        self.recovering = false;
        self.notify(now, TcpEvent::Timeout(Threshold::Keep));
        // TCP restarts with one segment, QUIC with two datagrams: add one acknowledgement.
        let path = self.path(now);
        self.controller.on_feedback(&TcpEvent::Acked { segments: 1, in_flight: 1, rtt: None }, &path);
        self.refresh();
    }

    /// Undoes the last reduction: all packets declared lost in the last recovery period have arrived.
    #[cold]
    pub fn on_spurious(&mut self, now: Time) {
        if let Some(Before { window, threshold }) = self.before.take() {
            self.cuts.undone += 1;
            self.congestion_recovery_start_time = None;
            self.recovering = false;
            self.notify(now, TcpEvent::Undo { window, threshold });
        }
    }

    /// When the last recovery period began, if its reduction can still be undone.
    #[must_use]
    pub fn undoable(&self) -> Option<Time> {
        self.before.and(self.congestion_recovery_start_time)
    }

    /// Whether the window was reduced and no packet sent since has been acknowledged (section 7.3.2).
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn notify_lost(&mut self, now: Time) {
        if self.lost.is_empty() {
            return;
        }
        let path = self.path(now);
        for lost in self.lost.drain(..) {
            self.controller.on_lost(&lost, &path);
        }
        self.refresh();
    }

    fn notify(&mut self, now: Time, event: TcpEvent) {
        let mut path = self.path(now);
        if !self.needs.deliveries && self.profile == Profile::Rfc {
            path.in_flight = path.in_flight.max((self.controller.window() as u32).saturating_add(1));
        }
        self.controller.on_feedback(&event, &path);
        self.refresh();
    }

    fn path(&self, now: Time) -> PathView {
        let known = self.rtt.is_known();
        PathView {
            now,
            srtt: if known { self.rtt.smoothed_rtt } else { Span::ZERO },
            rttvar: if known { self.rtt.rttvar } else { Span::ZERO },
            min_rtt: self.rtt.min_rtt,
            in_flight: datagrams(self.bytes_in_flight, self.datagram),
            acked: self.acked,
            next: self.next,
            receive_window: u32::MAX,
            segment: self.datagram,
        }
    }

    /// Reports the values to plot: the controller's gauges.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
    }
}

/// The datagrams in flight as reported to a controller that compares them with its window: more than the window if the
/// window limited the sender, otherwise less.
#[inline]
fn used(flight: u32, window: f64, limited: bool) -> u32 {
    let window = window as u32;
    if limited { flight.max(window + 1) } else { flight.min(window.saturating_sub(1)) }
}

/// The pacing rate of a window, in bytes per second (section 7.7).
#[inline]
fn window_rate(window: f64, srtt: Span) -> f64 {
    PACING_GAIN * window / (srtt.0.max(1) as i64 as f64 * 1e-9)
}

/// The number of full datagrams in `bytes`, rounded up.
#[inline]
fn datagrams(bytes: u64, datagram: u32) -> u32 {
    bytes.div_ceil(u64::from(datagram)) as u32
}

#[cfg(test)]
mod tests;
