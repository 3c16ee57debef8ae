//! Prague's arithmetic: what counts of arrivals, marks and losses do to a rate and a window, in whole numbers.
//!
//! Source: the behaviour of L4STeam/udp_prague at e8e34353 (`prague_cc.cpp`), whose traces the tests hold it against to the last
//! digit; B. Briscoe, K. De Schepper and others, "Prague Congestion Control" (draft-briscoe-iccrg-prague-congestion-control).
//! Times are microseconds, rates bytes a second, windows millionths of a byte.

/// Round trips below this one grow as if they were as long, lest they starve others.
const REF_RTT: i64 = 25_000;
/// A share of one is 2^20.
const PROB_SHIFT: u32 = 20;
/// The weight of the newest share of marks is 1/16.
const ALPHA_WEIGHT: i64 = 16;
/// After a mark so many round trips pass, and one more for each of these rates, before the queue may grow by more than a packet.
const MIN_STEP: i64 = 7;
const RATE_STEP: u64 = 1_920_000;
/// What the queue then grows by in a round trip.
const QUEUE_GROWTH: u64 = 1000;
/// How long a burst may be.
const BURST_TIME: u64 = 250;
/// At least so many packets are in flight, and so many bytes in each.
const MIN_WINDOW: i64 = 2;
const MIN_PACKET: u64 = 150;
/// The rate goes up and down by so many hundredths in each half of a round trip.
const RATE_OFFSET: u64 = 3;
/// Below this round trip the rate, not the window, is what grows.
const SHORT_RTT: i64 = 2000;

/// What happens to marks and losses now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing has been acknowledged.
    Init,
    /// It grows.
    Avoidance,
    /// A loss has cut it, in this round trip.
    Loss,
    /// A mark has.
    Reduced,
}

/// What grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The window; the rate follows from it.
    Window,
    /// The rate.
    Rate,
}

/// What a receiver has counted, and the sender has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that have come.
    pub received: i64,
    /// Of them, marked ones.
    pub marked: i64,
    /// Packets that seem lost; it goes down where they come late.
    pub lost: i64,
    /// Packets sent.
    pub sent: i64,
}

/// A limit that a flow sets: sizes in bytes, rates in bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest packet.
    pub packet: u64,
    /// The rate at the beginning, and its bounds.
    pub initial: u64,
    /// The least rate.
    pub min_rate: u64,
    /// The greatest rate.
    pub max_rate: u64,
    /// What sends frames has one in so many microseconds, which is its reference's round trip; `None`: it sends as it may.
    pub frames: Option<i64>,
}

impl Limits {
    /// The round trip of the reference.
    fn reference(&self) -> i64 {
        self.frames.unwrap_or(REF_RTT)
    }
}

/// When an episode ends: a round trip of packets and one of time after it began.
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
    /// The newest round trip, smoothed, and at least the reference's.
    pub rtt: i64,
    /// Smoothed.
    pub srtt: i64,
    /// At least the reference's.
    pub vrtt: i64,
    /// What happens to marks and losses now.
    pub phase: Phase,
    /// What grows.
    pub mode: Mode,
    /// The share of marks, smoothed, of 2^20.
    pub alpha: i64,
    /// Bytes a second.
    pub rate: u64,
    /// Millionths of a byte.
    pub window: u64,
    /// Round trips until it grows faster.
    pub rtts_to_growth: i64,
    /// What the last loss took, to be given back if it was none.
    pub lost_window: u64,
    /// The same of a rate.
    pub lost_rate: u64,
    /// Packets that may be in flight, that may leave at once, and their size.
    pub packets: i64,
    /// Packets of a burst.
    pub burst: i64,
    /// Bytes of a packet.
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

/// a b, at most 2^64 - 1.
fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// a / b, rounded; 2^64 - 1 where there is none.
fn over(a: u64, b: u64) -> u64 {
    match b {
        0 => u64::MAX,
        _ => ((u128::from(a) + u128::from(b / 2)) / u128::from(b)) as u64,
    }
}

impl Law {
    /// One that has seen nothing, at `now`, with a first window of so many packets.
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

    /// A packet has come from the other end, sent at `stamp` of its clock, which echoes a time stamp `rtt` ago. Says whether it is
    /// newer than those before.
    pub fn packet(&mut self, stamp: i64, rtt: i64) -> bool {
        if self.phase != Phase::Init && self.newest > stamp {
            return false;
        }
        self.round_trip(rtt);
        self.newest = stamp;
        true
    }

    /// A round-trip time.
    pub fn round_trip(&mut self, rtt: i64) {
        self.rtt = rtt;
        self.srtt = if self.phase == Phase::Init { rtt } else { self.srtt + ((rtt - self.srtt) >> 3) };
        self.vrtt = self.srtt.max(self.limits.reference());
    }

    /// The counts of an acknowledgement. Says whether they are newer than those before.
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

    /// Where round trips are too short to see a queue, the rate grows in place of the window; it stays as it is where that changes.
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

    /// Once a round trip, of packets and of time.
    fn update_alpha(&mut self, counts: &Counts, now: i64) {
        if !self.alpha_since.is_over(counts, now, self.vrtt) {
            return;
        }
        let (marked, received) = self.alpha_counts;
        // none has come in a round trip only where counts are not those of packets
        let share = ((counts.marked - marked) << PROB_SHIFT) / (counts.received - received).max(1);
        let weight = (ALPHA_WEIGHT * REF_RTT / self.limits.reference()).max(1);
        self.alpha = (self.alpha + (share - self.alpha) / weight).min(1 << PROB_SHIFT);
        self.alpha_since = Since { at: now, sent: counts.sent };
        self.alpha_counts = (counts.marked, counts.received);
        self.rtts_to_growth -= i64::from(self.rtts_to_growth > 0);
    }

    /// The count of losses is what it was before the last cut: they had only been late.
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

    /// Half; and no faster growth before a flow of the reference's round trip would be here again.
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

    /// For each packet that came unmarked a share of a packet, or of a millisecond of the rate, a round trip.
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

    /// By half of alpha, once a round trip.
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

    /// What follows from rate or window.
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

    /// Two packets a round trip at least, as small as that takes; what leaves in 250 us may leave at once.
    fn size_packets(&mut self, round: i64) {
        self.size = (self.rate.wrapping_mul(round as u64) / 1_000_000 / MIN_WINDOW as u64).max(MIN_PACKET);
        self.size = self.size.min(self.limits.packet);
        self.burst = ((self.rate * BURST_TIME / 1_000_000 / self.size) as i64).max(1);
    }

    /// A retransmission timeout: it begins again.
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

    /// The rate to pace at: a little more in the first half of each round trip, a little less in the second.
    #[must_use]
    pub fn pacing(&self, now: i64) -> u64 {
        if now - self.alpha_since.at >= self.vrtt >> 1 {
            self.rate * 100 / (100 + RATE_OFFSET)
        } else {
            self.rate * (100 + RATE_OFFSET) / 100
        }
    }
}
