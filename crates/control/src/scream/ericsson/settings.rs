//! What a sender chooses, and the faults of the version.

/// What a sender chooses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// The first window and the least, in bytes; two packets if that is more.
    pub window: i32,
    /// The least window.
    pub min_ref_wnd: i32,
    /// The target's least and greatest value, and its first, in bits a second.
    pub min_rate: f32,
    /// See `min_rate`.
    pub start_rate: f32,
    /// See `min_rate`.
    pub max_rate: f32,
    /// What a loss leaves of the window; 1: losses are not heeded.
    pub loss_beta: f32,
    /// What a mark leaves of it by classic ECN.
    pub ecn_beta: f32,
    /// The target of queueing delay, in seconds.
    pub delay_target: f32,
    /// How much faster than the target it is paced, and how much faster still for large frames.
    pub pacing: f32,
    /// See `pacing`.
    pub adaptive_pacing: f32,
    /// The window grows up to so many times what was in flight.
    pub flight_headroom: f32,
    /// By which share of itself the window grows in a round trip at most.
    pub multiplicative_increase: f32,
    /// So many windows may be in flight where delay does not vary.
    pub window_headroom: f32,
    /// All that waits is thrown away once the oldest has waited longer, in seconds.
    pub discard_after: f32,
    /// Whether marks are those of a scalable queue.
    pub l4s: bool,
    /// Whether pacing is relaxed near the greatest rate.
    pub relaxed_pacing: bool,
    /// Whether losses without delay are taken for those of a policer.
    pub policer: bool,
    /// What this version is known to get wrong.
    pub faults: Faults,
}

impl Default for Settings {
    /// As the reference's simulator chooses.
    fn default() -> Settings {
        Settings {
            window: 0,
            min_ref_wnd: 0,
            min_rate: 150e3,
            start_rate: 150e3,
            max_rate: 1.5e6,
            loss_beta: 0.7,
            ecn_beta: 0.8,
            delay_target: 0.06,
            pacing: 1.5,
            adaptive_pacing: 1.5,
            flight_headroom: 2.0,
            multiplicative_increase: 0.05,
            window_headroom: 3.0,
            discard_after: 0.2,
            l4s: false,
            relaxed_pacing: false,
            policer: false,
            faults: Faults::default(),
        }
    }
}

/// Faults of the version (docs/controllers/scream.md), each as it is there or mended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// The policer's limit grows without bound until its number overflows, and the window falls to its least for good.
    pub overflow: bool,
    /// The target counts no round trip as longer than 0.2 s.
    pub rtt_clamp: bool,
    /// Of a long round trip the reaction to delay is divided twice.
    pub divided_twice: bool,
    /// Reactions to marks and delay put off those to losses.
    pub shared_reaction: bool,
    /// A packet counts as lost only when media time has outrun the reordering margin too.
    pub media_time: bool,
}

impl Faults {
    /// All of those that the reference's recorded runs have; the overflow was mended in them.
    pub const RECORDED: Faults =
        Faults { overflow: false, rtt_clamp: true, divided_twice: true, shared_reaction: true, media_time: true };
}
