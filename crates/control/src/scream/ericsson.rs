//! SCReAM v2 by its authors' own code: a window from losses, marks and queueing delay, and the rates that follow from
//! it.
//!
//! Source: the behaviour of EricssonResearch/scream at c8f84c3 (`code/ScreamV2Tx.cpp`, `code/ScreamV2TxStream.cpp`),
//! with whose event traces the tests compare it to the last byte. As there, times are in ticks of 1/65536 s that wrap,
//! windows are in whole bytes, and intermediate values in single precision. There is one stream. Left out:
//! shared-bottleneck detection and compensation of clock drift (both off there), and the scaling of rates (off in both
//! of its programs).

mod controller;
mod flight;
mod media;
mod owd;
mod reaction;
mod settings;
mod window;

pub use controller::Ericsson;
use flight::Flight;
use media::Media;
use owd::Owd;
pub use settings::{Faults, Settings};

/// Ticks per second.
pub const SECOND: u32 = 65536;
/// Minimum interval of the window's reactions in ticks (30 ms), if the round trip is not shorter.
const REACTION: u32 = 1966;
/// The virtual round trip in seconds.
const VIRTUAL_RTT: f32 = 0.025;
/// Means that no delay has been measured.
const NO_DELAY: f32 = 1000.0;
/// Initial packet size in bytes, which the first packet raises, and how long a size is kept.
const FIRST_MSS: i32 = 100;
const MSS_PERIOD: u32 = SECOND;
/// The period over which rates are measured: 100 ms.
const RATE_PERIOD: u32 = 6553;
/// After this time without sending, all packets in flight are forgotten: 0.5 s.
const STALL: u32 = 32768;
/// Probing for clock drift: interval between halvings of the rate, and their minimum duration in ticks and in round
/// trips.
const DRIFT_PERIOD: u32 = 60 * SECOND;
const DRIFT_MIN_INTERVAL: u32 = 6554;
const DRIFT_RTTS: u32 = 5;

/// A packet that feedback reports for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckedPacket {
    /// Its number.
    pub number: u32,
    /// Arrival time by the receiver's clock.
    pub at: u32,
    /// Whether it was marked.
    pub marked: bool,
}

/// The sender's state.
#[derive(Clone, Debug)]
pub struct Law {
    settings: Settings,
    started: bool,
    start: u32,
    media: Media,
    flight: Flight,
    owd: Owd,
    mss: i32,
    mss_before: i32,
    mss_since: u32,
    rates_since: u32,
    /// cwnd.
    pub window: i32,
    min_ref_wnd: i32,
    /// cwndI, the window at which congestion last began, and whether it is held.
    pub inflection: i32,
    inflection_held: bool,
    /// sRtt.
    pub srtt: u32,
    /// The shorter mean that `srtt` follows.
    pub srtt_short: u32,
    srtt_short_before: u32,
    srtt_since: u32,
    /// sRtt in seconds; before the first round trip it differs slightly from `srtt`.
    rtt: f32,
    /// queueDelay in seconds.
    pub delay: f32,
    /// The mean of `delay`.
    pub delay_mean: f32,
    /// The long-term minimum of `delay`.
    pub queue_delay_min: f32,
    queue_delay_min_current: f32,
    delay_high: f32,
    delay_low: f32,
    /// latencyDiffAvg in seconds, and latencyDiffCwndScale.
    pub variation: f32,
    latency_diff_cwnd_scale: f32,
    /// windowHeadroom.
    pub headroom: f32,
    /// l4sAlpha.
    pub alpha: f32,
    marked_share: f32,
    delivered: u32,
    marked: u32,
    /// virtualL4sAlpha.
    pub virtual_alpha: f32,
    /// lossRate.
    pub loss_rate: f32,
    /// postCongestionScale.
    pub post_congestion: f32,
    acked: i32,
    acked_marked: i32,
    /// Whether the application uses less than the window.
    pub limited: bool,
    /// paceInterval in seconds.
    pub pace: f32,
    /// relFrameSizeHigh: size of large frames relative to the mean.
    large: f32,
    policed: f32,
    policed_held: bool,
    loss_event: bool,
    mark_event: bool,
    delay_event: bool,
    new_frame: bool,
    reaction: u32,
    loss_reaction: u32,
    congestion: u32,
    alpha_since: u32,
    delay_since: u32,
    queue_delay_min_since: u32,
    slow_since: u32,
    window_since: Option<u32>,
    sent_last: u32,
    drift_since: u32,
    drift_seen: bool,
}

/// A tick count in seconds.
fn seconds(ticks: u32) -> f32 {
    ticks as f32 / 65536.0
}

impl Law {
    /// The initial state of a sender.
    #[must_use]
    pub fn new(settings: Settings) -> Law {
        Law {
            settings,
            started: false,
            start: 0,
            media: Media::new(&settings),
            flight: Flight::default(),
            owd: Owd::default(),
            mss: FIRST_MSS,
            mss_before: FIRST_MSS,
            mss_since: 0,
            rates_since: 0,
            window: if settings.window == 0 { 2 * FIRST_MSS } else { settings.window },
            min_ref_wnd: 2 * FIRST_MSS,
            inflection: 1,
            inflection_held: false,
            srtt: 3277,
            srtt_short: 3277,
            srtt_short_before: 3277,
            srtt_since: 0,
            rtt: 0.05,
            delay: 0.0,
            delay_mean: 0.0,
            queue_delay_min: 0.0,
            queue_delay_min_current: NO_DELAY,
            delay_high: 0.0,
            delay_low: NO_DELAY,
            variation: 0.0,
            latency_diff_cwnd_scale: 1.0,
            headroom: settings.window_headroom,
            alpha: 0.1,
            marked_share: 0.0,
            delivered: 0,
            marked: 0,
            virtual_alpha: 0.0,
            loss_rate: 0.0,
            post_congestion: 1.0,
            acked: 0,
            acked_marked: 0,
            limited: false,
            pace: 0.0,
            large: 1.0,
            policed: 1e8,
            policed_held: false,
            loss_event: false,
            mark_event: false,
            delay_event: false,
            new_frame: false,
            reaction: 0,
            loss_reaction: 0,
            congestion: 0,
            alpha_since: 0,
            delay_since: 0,
            queue_delay_min_since: 0,
            slow_since: 0,
            window_since: None,
            sent_last: 0,
            drift_since: 0,
            drift_seen: false,
        }
    }

    fn begin(&mut self, now: u32) {
        if self.started {
            return;
        }
        self.started = true;
        self.start = now;
        self.owd.begin(now);
        for since in [
            &mut self.mss_since,
            &mut self.rates_since,
            &mut self.srtt_since,
            &mut self.reaction,
            &mut self.loss_reaction,
            &mut self.alpha_since,
            &mut self.delay_since,
            &mut self.queue_delay_min_since,
            &mut self.slow_since,
            &mut self.sent_last,
            &mut self.drift_since,
        ] {
            *since = now;
        }
    }

    /// The packet size in use.
    #[must_use]
    pub fn mss(&self) -> i32 {
        self.mss.max(self.mss_before)
    }

    fn raise_mss(&mut self, size: i32) {
        self.mss = self.mss.max(size);
        self.min_ref_wnd = self.settings.min_ref_wnd.max(2 * self.mss());
        self.window = self.window.max(self.min_ref_wnd);
    }

    /// The target in bits per second.
    #[must_use]
    pub fn target(&self) -> f32 {
        self.media.target
    }

    /// The encoder's rate: the target, or half of it while probing for clock drift. To be called before each frame.
    pub fn encoder_rate(&mut self, now: u32) -> f32 {
        let mut rate = self.media.target;
        if self.queue_delay_min > self.settings.delay_target / 8.0 {
            if now.wrapping_sub(self.drift_since) > DRIFT_PERIOD {
                self.drift_since = now;
            }
            if now.wrapping_sub(self.drift_since) < DRIFT_MIN_INTERVAL.max(DRIFT_RTTS * self.srtt) {
                rate *= 0.5;
                self.drift_seen = true;
            } else if self.drift_seen {
                self.forget_delays();
                self.drift_seen = false;
            }
        }
        rate
    }

    fn forget_delays(&mut self) {
        self.queue_delay_min = 0.0;
        self.delay = 0.0;
        self.owd.forget();
    }

    /// The encoder has written a frame, as packets of these sizes.
    pub fn frame(&mut self, now: u32, packets: impl IntoIterator<Item = u32>) {
        self.begin(now);
        let mut packets = packets.into_iter().peekable();
        while let Some(size) = packets.next() {
            let ends = packets.peek().is_none();
            self.new_frame |= ends;
            self.media.write(now, size, ends, self.settings.adaptive_pacing);
            if let Some(next) = self.media.next() {
                self.raise_mss(next as i32);
            }
        }
        // the reference discards only the first packet of the frame that causes a discard; the rest of that frame is of
        // no use
        if self.media.discards {
            self.media.discard();
        }
    }

    /// Whether the whole queue has been discarded since the last call; at a frame, including that frame.
    pub fn take_discard(&mut self) -> bool {
        core::mem::take(&mut self.media.discards)
    }

    /// Periodic work: to be called about once a millisecond, and before each sending.
    pub fn poll(&mut self, now: u32) {
        self.begin(now);
        if now.wrapping_sub(self.rates_since) > RATE_PERIOD {
            self.media.measure(now);
            self.rates_since = now;
        }
        if now.wrapping_sub(self.mss_since) > MSS_PERIOD {
            self.mss_before = self.mss;
            self.mss = FIRST_MSS;
            self.min_ref_wnd = self.settings.min_ref_wnd.max(3 * self.mss());
            self.window = self.window.max(self.min_ref_wnd);
            self.mss_since = now;
        }
        if self.media.next().is_some() && now.wrapping_sub(self.sent_last) > STALL && self.sent_last < now {
            self.flight.clear();
        }
    }

    /// Bytes that may be in flight.
    #[must_use]
    pub fn allowed(&self) -> f32 {
        self.window as f32 * self.headroom + self.mss() as f32
    }

    /// Bytes in flight: those sent after the highest packet reported.
    #[must_use]
    pub fn in_flight(&self) -> i32 {
        self.flight.bytes
    }

    /// Maximum bytes in flight in the current period, and in the previous one.
    #[must_use]
    pub fn max_bytes_in_flight(&self) -> [i32; 2] {
        [self.flight.max_bytes, self.flight.max_bytes_previous]
    }

    /// Rates in bits per second: last measured sent and acknowledged, and average written.
    #[must_use]
    pub fn rates(&self) -> [f32; 3] {
        [self.media.sent_rate, self.media.acked_rate, self.media.written_rate]
    }

    /// framePeriod in seconds, rateAdjustFactor and adaptivePacingRateScale.
    #[must_use]
    pub fn frames(&self) -> [f32; 3] {
        [self.media.period, self.media.adjust, self.media.pacing]
    }

    /// A packet was sent; numbers count up by one.
    pub fn sent(&mut self, now: u32, number: u32, size: u32, ends_frame: bool) {
        self.begin(now);
        let stamp = self.media.take(size);
        self.flight.send(flight::Packet::new(number, now, size as i32, stamp.unwrap_or(now), ends_frame));
        self.sent_last = now;
        self.raise_mss(size as i32);
    }

    /// Handles feedback that reports these packets for the first time, in the order of their numbers; `overlaps`: it
    /// also reports others again, as each report of this receiver except the first does.
    pub fn feedback(&mut self, now: u32, acked: &[AckedPacket], overlaps: bool) {
        self.begin(now);
        self.flight.update_max_bytes();
        if overlaps {
            self.extremes();
        }
        let mut marked = false;
        for (i, packet) in acked.iter().enumerate() {
            let last = i + 1 == acked.len();
            let (ends_frame, is_marked) = self.acknowledge(now, packet, last);
            marked |= is_marked;
            if last || ends_frame {
                self.detect_losses(now, packet.number);
            }
            self.extremes();
        }
        if !acked.is_empty() {
            self.react(now, marked);
        }
    }

    /// Updates the extremes of queueing delay.
    fn extremes(&mut self) {
        self.delay_low = self.delay_low.min(self.delay);
        self.delay_high = self.settings.delay_target.min(self.delay_high.max(self.delay));
    }

    /// Handles an acknowledged packet; returns whether it ended a frame, and whether it was marked.
    fn acknowledge(&mut self, now: u32, acked: &AckedPacket, last: bool) -> (bool, bool) {
        let Some(packet) = self.flight.acknowledge(acked.number) else { return (false, false) };
        self.delivered += 1;
        if acked.marked {
            self.acked_marked += packet.size;
            self.marked += 1;
        }
        match self.owd.queueing(now, acked.at.wrapping_sub(packet.sent)) {
            Some(ticks) => self.delay = seconds(ticks),
            None => self.forget_delays(),
        }
        let rtt = now.wrapping_sub(packet.sent);
        if rtt < 1_000_000 && last {
            self.round_trip(now, rtt);
        }
        (packet.ends_frame, acked.marked)
    }

    fn round_trip(&mut self, now: u32, rtt: u32) {
        self.srtt_short_before = self.srtt_short;
        self.srtt_short = (7 * self.srtt_short + rtt) / 8;
        if now.wrapping_sub(self.srtt_since) > self.srtt_short {
            self.srtt = if self.limited && self.srtt > self.srtt_short {
                (1023 * self.srtt + self.srtt_short) / 1024
            } else {
                (7 * self.srtt + self.srtt_short) / 8
            };
            self.rtt = seconds(self.srtt);
            self.srtt_since = now;
        }
    }
}
