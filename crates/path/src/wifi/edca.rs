//! Access categories: how urgent traffic contends for the channel ahead of other traffic, in its own transmitter and in
//! others.
//!
//! IEEE Std 802.11-2012, clause 9.19.2 (EDCA) and Table 8-105 (its default parameters).

use paceline_units::Span;

/// An access category, from the most to the least urgent.
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
    /// All categories.
    pub const ALL: [Category; 4] = [Category::Voice, Category::Video, Category::BestEffort, Category::Background];

    /// Its name in scenarios and results.
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

/// A category's contention parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// EDCA; otherwise DCF.
    pub with_qos: bool,
    /// AIFSN: idle slots after SIFS before it counts down.
    pub aifsn: u32,
    /// The initial contention window; `cw_max` is the maximum.
    pub cw_min: u32,
    /// See `cw_min`.
    pub cw_max: u32,
    /// The TXOP limit; zero: one exchange.
    pub txop: Span,
}

impl Access {
    /// The standard's defaults for stations, given aCWmin and aCWmax; `dsss`: in an 802.11b cell.
    #[must_use]
    pub fn standard(category: Category, (acw_min, acw_max): (u32, u32), dsss: bool) -> Access {
        let part = |of: u32| ((acw_min + 1) / of).max(1) - 1;
        let txop = |ofdm, of_dsss| Span::from_micros(if dsss { of_dsss } else { ofdm });
        let (aifsn, cw_min, cw_max, txop) = match category {
            Category::Voice => (2, part(4), part(2), txop(1504, 3264)),
            Category::Video => (2, part(2), acw_min, txop(3008, 6016)),
            Category::BestEffort => (3, acw_min, acw_max, Span::ZERO),
            Category::Background => (7, acw_min, acw_max, Span::ZERO),
        };
        Access { with_qos: true, aifsn, cw_min, cw_max, txop }
    }
}

/// A cell's categories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edca {
    /// The categories in use, the most urgent first. Each transmitter has a queue and a countdown per category.
    pub categories: Vec<(Category, Access)>,
    /// Each flow's index into `categories`.
    pub of_flow: Vec<u8>,
}
