//! Prague's arithmetic in whole numbers: computes rate and window from counts of arrivals, marks and losses.
//!
//! Source: the behaviour of L4STeam/udp_prague at e8e34353 (`prague_cc.cpp`), with whose traces the tests compare it to
//! the last digit; B. Briscoe, K. De Schepper and others, "Prague Congestion Control"
//! (draft-briscoe-iccrg-prague-congestion-control). Times are in microseconds, rates in bytes per second, windows in
//! millionths of a byte.

/// Flows with a shorter round trip grow as if it were this long, so as not to starve others.
const REF_RTT: i64 = 25_000;
/// Fixed point of shares: one is 2^20.
const PROB_SHIFT: u32 = 20;
/// The weight of the newest share of marks is 1/16.
const ALPHA_WEIGHT: i64 = 16;
/// After a mark, the queue may grow by more than a packet only after this many round trips, plus one per RATE_STEP of
/// the rate.
const MIN_STEP: i64 = 7;
const RATE_STEP: u64 = 1_920_000;
/// Then the window grows by what the rate sends in this time, per round trip.
const QUEUE_GROWTH: u64 = 1000;
/// The maximum duration of a burst.
const BURST_TIME: u64 = 250;
/// The minimum packets in flight, and the minimum bytes in each.
const MIN_WINDOW: i64 = 2;
const MIN_PACKET: u64 = 150;
/// The pacing rate is this many percent higher in the first half of each round trip, and lower in the second.
const RATE_OFFSET: u64 = 3;
/// Below this round trip the rate grows, not the window.
const SHORT_RTT: i64 = 2000;

/// The response to marks and losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing has been acknowledged yet.
    Init,
    /// Congestion avoidance.
    Avoidance,
    /// Reduced by a loss in this round trip.
    Loss,
    /// Reduced by a mark in this round trip.
    Reduced,
}

/// Which quantity grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The window; the rate follows from it.
    Window,
    /// The rate.
    Rate,
}

/// Counts of the receiver, and of packets sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets received.
    pub received: i64,
    /// CE-marked packets among them.
    pub marked: i64,
    /// Packets presumed lost; decreases if they arrive late.
    pub lost: i64,
    /// Packets sent.
    pub sent: i64,
}

/// Limits set by the flow: sizes in bytes, rates in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum packet size.
    pub packet: u64,
    /// The start rate.
    pub initial: u64,
    /// The minimum rate.
    pub min_rate: u64,
    /// The maximum rate.
    pub max_rate: u64,
    /// For a sender of frames, their interval in microseconds, which is then the reference round trip; `None` for
    /// others.
    pub frames: Option<i64>,
}

impl Limits {
    /// The reference round trip.
    fn reference(&self) -> i64 {
        self.frames.unwrap_or(REF_RTT)
    }
}

/// The start of an episode that ends a round trip later, by packets and by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Since {
    at: i64,
    sent: i64,
}

impl Since {
    fn is_over(self, counts: &Counts, now: i64, vrtt: i64) -> bool {
        counts.received + counts.lost > self.sent && now - self.at >= vrtt
    }
}

/// The state.
#[derive(Clone, Debug)]
pub struct Law {
    limits: Limits,
    /// The newest round trip.
    pub rtt: i64,
    /// The smoothed round trip.
    pub srtt: i64,
    /// The smoothed round trip, but at least the reference.
    pub vrtt: i64,
    /// The response to marks and losses.
    pub phase: Phase,
    /// Which quantity grows.
    pub mode: Mode,
    /// The smoothed share of marks, in units of 2^-20.
    pub alpha: i64,
    /// Bytes per second.
    pub rate: u64,
    /// Millionths of a byte.
    pub window: u64,
    /// Round trips until growth may be faster.
    pub rtts_to_growth: i64,
    /// The window's last reduction for a loss, restored if the loss was spurious.
    pub lost_window: u64,
    /// The same for the rate.
    pub lost_rate: u64,
    /// Packets that may be in flight.
    pub packets: i64,
    /// Packets in a burst.
    pub burst: i64,
    /// Packet size in bytes.
    pub size: u64,
    counts: Counts,
    alpha_since: Since,
    alpha_counts: (i64, i64),
    loss_since: Since,
    loss_mode: Mode,
    loss_count: i64,
    loss_rtts: i64,
    cut_since: Since,
    newest: i64,
}

/// a b, saturated at 2^64 - 1.
fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// a / b, rounded; 2^64 - 1 if b is zero.
fn over(a: u64, b: u64) -> u64 {
    match b {
        0 => u64::MAX,
        _ => ((u128::from(a) + u128::from(b / 2)) / u128::from(b)) as u64,
    }
}

impl Law {
    /// A new state at `now`, with a first window of `window` packets.
    #[must_use]
    pub fn new(limits: Limits, window: u64, now: i64) -> Law {
        let mut law = Law {
            limits,
            rtt: 0,
            srtt: 0,
            vrtt: 0,
            phase: Phase::Init,
            mode: Mode::Window,
            alpha: 0,
            rate: limits.initial,
            window: window * limits.packet * 1_000_000,
            rtts_to_growth: (limits.initial / RATE_STEP) as i64 + MIN_STEP,
            lost_window: 0,
            lost_rate: 0,
            packets: 0,
            burst: 0,
            size: 0,
            counts: Counts::default(),
            alpha_since: Since { at: now, sent: 0 },
            alpha_counts: (0, 0),
            loss_since: Since::default(),
            loss_mode: Mode::Window,
            loss_count: 0,
            loss_rtts: 0,
            cut_since: Since::default(),
            newest: 0,
        };
        law.size_packets(limits.reference());
        law.packets = law.window.div_ceil(1_000_000).div_ceil(law.size) as i64;
        law.packets = law.packets.max(MIN_WINDOW);
        law
    }

    /// Handles a packet from the other end, sent at `stamp` by its clock, which echoes a time stamp from `rtt` ago.
    /// Returns whether it is newer than the packets before.
    pub fn packet(&mut self, stamp: i64, rtt: i64) -> bool {
        if self.phase != Phase::Init && self.newest > stamp {
            return false;
        }
        self.round_trip(rtt);
        self.newest = stamp;
        true
    }

    /// Handles a round-trip time.
    pub fn round_trip(&mut self, rtt: i64) {
        self.rtt = rtt;
        self.srtt = if self.phase == Phase::Init { rtt } else { self.srtt + ((rtt - self.srtt) >> 3) };
        self.vrtt = self.srtt.max(self.limits.reference());
    }

    /// Handles the counts of an acknowledgement. Returns whether they are newer than the previous ones.
    pub fn acknowledged(&mut self, counts: Counts, now: i64) -> bool {
        let before = self.counts;
        if before.received > counts.received || before.marked > counts.marked {
            return false;
        }
        self.choose_mode();
        self.update_alpha(&counts, now);
        self.undo_loss(&counts);
        if self.phase == Phase::Loss && self.loss_since.is_over(&counts, now, self.vrtt) {
            self.phase = Phase::Avoidance;
        }
        if self.phase != Phase::Loss && counts.lost > before.lost {
            self.cut_for_loss(&counts, now);
        }
        let unmarked = (counts.received - before.received) - (counts.marked - before.marked);
        if self.phase != Phase::Loss && unmarked > 0 {
            self.grow(unmarked as u64);
        }
        if self.phase == Phase::Reduced && self.cut_since.is_over(&counts, now, self.vrtt) {
            self.phase = Phase::Avoidance;
        }
        if self.phase == Phase::Avoidance && counts.marked > before.marked {
            self.cut_for_mark(&counts, now);
        }
        self.settle();
        self.counts = counts;
        true
    }

    /// Chooses what grows: the rate where round trips are too short to measure a queue, else the window. A change keeps
    /// the rate.
    fn choose_mode(&mut self) {
        let between = (self.size * 1_000_000 / self.rate) as i64;
        if self.phase == Phase::Init {
            self.window = (self.srtt as u64).wrapping_mul(self.rate);
            self.phase = Phase::Avoidance;
        }
        if self.srtt <= SHORT_RTT || self.srtt <= between {
            self.mode = Mode::Rate;
        } else {
            if self.mode == Mode::Rate {
                self.window = (self.srtt as u64).wrapping_mul(self.rate);
            }
            self.mode = Mode::Window;
        }
    }

    /// Updates alpha once per round trip, by packets and by time.
    fn update_alpha(&mut self, counts: &Counts, now: i64) {
        if !self.alpha_since.is_over(counts, now, self.vrtt) {
            return;
        }
        let (marked, received) = self.alpha_counts;
        // zero received in a round trip is possible only if counts are not of packets
        let share = ((counts.marked - marked) << PROB_SHIFT) / (counts.received - received).max(1);
        let weight = (ALPHA_WEIGHT * REF_RTT / self.limits.reference()).max(1);
        self.alpha = (self.alpha + (share - self.alpha) / weight).min(1 << PROB_SHIFT);
        self.alpha_since = Since { at: now, sent: counts.sent };
        self.alpha_counts = (counts.marked, counts.received);
        self.rtts_to_growth -= i64::from(self.rtts_to_growth > 0);
    }

    /// Undoes the last reduction if the count of losses has returned to its value before: the packets were only late.
    fn undo_loss(&mut self, counts: &Counts) {
        if (self.lost_window == 0 && self.lost_rate == 0) || self.loss_count < counts.lost {
            return;
        }
        self.mode = self.loss_mode;
        match self.mode {
            Mode::Rate => self.rate = self.rate.wrapping_add(core::mem::take(&mut self.lost_rate)),
            Mode::Window => self.window = self.window.wrapping_add(core::mem::take(&mut self.lost_window)),
        }
        self.rtts_to_growth = (self.rtts_to_growth - core::mem::take(&mut self.loss_rtts)).max(0);
        self.phase = Phase::Avoidance;
    }

    /// Halves; growth is not accelerated until a flow with the reference round trip would have recovered.
    fn cut_for_loss(&mut self, counts: &Counts, now: i64) {
        let (reference, vrtt) = (REF_RTT as u64, self.vrtt.max(1) as u64); // 1: no round trip is known
        let rtts = (self.rate / 2 / self.limits.packet * reference / vrtt * reference / 1_000_000) as i64;
        self.loss_rtts = (self.loss_rtts + rtts - self.rtts_to_growth).min(rtts);
        self.rtts_to_growth = rtts;
        match self.mode {
            Mode::Window => {
                self.lost_window = self.window / 2;
                self.window -= self.lost_window;
            }
            Mode::Rate => {
                self.lost_rate = self.rate / 2;
                self.rate -= self.lost_rate;
            }
        }
        self.phase = Phase::Loss;
        self.loss_mode = self.mode;
        self.loss_since = Since { at: now, sent: counts.sent };
        self.loss_count = self.counts.lost;
    }

    /// Grows for each unmarked packet, so that a round trip adds a packet, or a millisecond of the rate.
    fn grow(&mut self, unmarked: u64) {
        let (vrtt, srtt) = (self.vrtt as u64, self.srtt as u64);
        let mut step = times(self.rate, QUEUE_GROWTH) / 1_000_000;
        if step < self.limits.packet || self.rtts_to_growth != 0 {
            step = self.limits.packet;
        }
        match self.mode {
            Mode::Window => {
                let scale = over(srtt.wrapping_mul(1_000_000).wrapping_mul(srtt), times(vrtt, vrtt));
                let share = unmarked.wrapping_mul(self.size).wrapping_mul(scale).wrapping_mul(1_000_000);
                self.window = self.window.wrapping_add(times(over(share, self.window), step));
            }
            Mode::Rate => {
                let packets = over(times(self.rate, vrtt), times(self.size, 1_000_000));
                let share = over(times(unmarked.wrapping_mul(step), 1_000_000), vrtt);
                self.rate = self.rate.wrapping_add(over(share, packets));
            }
        }
    }

    /// Reduces by half of alpha, once per round trip.
    fn cut_for_mark(&mut self, counts: &Counts, now: i64) {
        self.rtts_to_growth = (self.rate / RATE_STEP) as i64 + MIN_STEP;
        let share = |of: u64, alpha: i64| of.wrapping_mul(alpha as u64) >> (PROB_SHIFT + 1);
        match self.mode {
            Mode::Window => self.window -= share(self.window, self.alpha),
            Mode::Rate => self.rate -= share(self.rate, self.alpha),
        }
        self.phase = Phase::Reduced;
        self.cut_since = Since { at: now, sent: counts.sent };
    }

    /// Derives the other quantities from the rate or the window.
    fn settle(&mut self) {
        let srtt = self.srtt as u64;
        if self.mode == Mode::Window {
            self.rate = self.window / srtt.max(1);
        }
        self.rate = self.rate.max(self.limits.min_rate).min(self.limits.max_rate);
        self.window = self.rate.wrapping_mul(srtt).max(1);
        self.size_packets(self.vrtt);
        let max = self.window.wrapping_mul(100 + RATE_OFFSET) / 100_000_000 / self.size + 1;
        self.packets = (max as i64).max(MIN_WINDOW);
    }

    /// Sizes packets so that there are at least two per round trip; a burst is what the rate sends in 250 us.
    fn size_packets(&mut self, round: i64) {
        self.size = (self.rate.wrapping_mul(round as u64) / 1_000_000 / MIN_WINDOW as u64).max(MIN_PACKET);
        self.size = self.size.min(self.limits.packet);
        self.burst = ((self.rate * BURST_TIME / 1_000_000 / self.size) as i64).max(1);
    }

    /// A retransmission timeout: restarts from the beginning.
    pub fn reset(&mut self, now: i64) {
        self.phase = Phase::Init;
        self.mode = Mode::Window;
        self.alpha_since.at = now;
        self.alpha = 0;
        self.rate = self.limits.initial;
        self.window = self.limits.packet * 1_000_000;
        self.burst = 1;
        self.size = self.limits.packet;
        self.packets = MIN_WINDOW;
        self.rtts_to_growth = (self.rate / RATE_STEP) as i64 + MIN_STEP;
        self.loss_rtts = 0;
    }

    /// The pacing rate: slightly higher in the first half of each round trip, slightly lower in the second.
    #[must_use]
    pub fn pacing(&self, now: i64) -> u64 {
        if now - self.alpha_since.at >= self.vrtt >> 1 {
            self.rate * 100 / (100 + RATE_OFFSET)
        } else {
            self.rate * (100 + RATE_OFFSET) / 100
        }
    }
}
