//! The sender's parameters, and the faults of this version.

/// The sender's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// The first window in bytes; at least two packets.
    pub window: i32,
    /// The minimum window in bytes; at least two packets.
    pub min_ref_wnd: i32,
    /// The target's minimum, in bits per second.
    pub min_rate: f32,
    /// The target's initial value.
    pub start_rate: f32,
    /// The target's maximum.
    pub max_rate: f32,
    /// Factor of the window at a loss; 1: losses are ignored.
    pub loss_beta: f32,
    /// Factor of the window at a mark with classic ECN.
    pub ecn_beta: f32,
    /// The target queueing delay in seconds.
    pub delay_target: f32,
    /// The pacing rate as a multiple of the target.
    pub pacing: f32,
    /// The additional pacing factor for large frames.
    pub adaptive_pacing: f32,
    /// The window grows at most to this multiple of what was in flight.
    pub flight_headroom: f32,
    /// Maximum growth of the window per round trip, as a share of the window.
    pub multiplicative_increase: f32,
    /// Multiple of the window that may be in flight while the delay is stable.
    pub window_headroom: f32,
    /// The queue is discarded once its oldest packet has waited longer than this, in seconds.
    pub discard_after: f32,
    /// Whether marks are from a scalable (L4S) queue.
    pub l4s: bool,
    /// Whether pacing is relaxed near the maximum rate.
    pub relaxed_pacing: bool,
    /// Whether losses without delay are attributed to a policer.
    pub policer: bool,
    /// Known faults of this version to reproduce.
    pub faults: Faults,
}

impl Default for Settings {
    /// The values of the reference's simulator.
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

/// Faults of this version (docs/controllers/scream.md): true reproduces a fault, false corrects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// The policer's limit grows until its number overflows, and the window then stays at its minimum.
    pub overflow: bool,
    /// The target is computed as if no round trip were longer than 0.2 s.
    pub rtt_clamp: bool,
    /// With a long round trip, the reaction to delay is divided twice.
    pub divided_twice: bool,
    /// Reactions to marks and delay postpone those to losses.
    pub shared_reaction: bool,
    /// A packet counts as lost only when media time, too, exceeds the reordering margin.
    pub media_time: bool,
}

impl Faults {
    /// The faults of the reference's recorded runs, for which the overflow was corrected.
    pub const RECORDED: Faults =
        Faults { overflow: false, rtt_clamp: true, divided_twice: true, shared_reaction: true, media_time: true };
}
