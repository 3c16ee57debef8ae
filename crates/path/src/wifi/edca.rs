//! Access categories: how urgent traffic contends for the channel before other traffic of the same transmitter, and of others.
//!
//! IEEE Std 802.11-2012, clause 9.19.2 (EDCA) and Table 8-105 (its default parameters).

use paceline_units::Span;

/// What traffic is, from the most urgent to the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// Voice (AC_VO).
    Voice,
    /// Video (AC_VI).
    Video,
    /// Best effort (AC_BE).
    BestEffort,
    /// Background (AC_BK).
    Background,
}

impl Category {
    /// All of them.
    pub const ALL: [Category; 4] = [Category::Voice, Category::Video, Category::BestEffort, Category::Background];

    /// As it is written in scenarios and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Voice => "voice",
            Category::Video => "video",
            Category::BestEffort => "best-effort",
            Category::Background => "background",
        }
    }
}

/// How a category contends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// By EDCA; else by DCF.
    pub with_qos: bool,
    /// Slots after SIFS that the medium is idle before it counts down.
    pub aifsn: u32,
    /// Its contention window at first, and what that grows to.
    pub cw_min: u32,
    /// See `cw_min`.
    pub cw_max: u32,
    /// For how long it keeps the medium once it has it; zero: for one exchange.
    pub txop: Span,
}

impl Access {
    /// The standard's default for stations, where aCWmin and aCWmax are these; `dsss`: in a cell of 802.11b.
    #[must_use]
    pub fn standard(category: Category, (least, most): (u32, u32), dsss: bool) -> Access {
        let part = |of: u32| ((least + 1) / of).max(1) - 1;
        let txop = |ofdm, of_dsss| Span::from_micros(if dsss { of_dsss } else { ofdm });
        let (aifsn, cw_min, cw_max, txop) = match category {
            Category::Voice => (2, part(4), part(2), txop(1504, 3264)),
            Category::Video => (2, part(2), least, txop(3008, 6016)),
            Category::BestEffort => (3, least, most, Span::ZERO),
            Category::Background => (7, least, most, Span::ZERO),
        };
        Access { with_qos: true, aifsn, cw_min, cw_max, txop }
    }
}

/// The categories of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edca {
    /// Those that its traffic has, the most urgent first. Each transmitter has a queue and a countdown for each.
    pub categories: Vec<(Category, Access)>,
    /// By flow: the place of its category among these.
    pub of_flow: Vec<u8>,
}
