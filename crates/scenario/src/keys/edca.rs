//! Access categories in a scenario file.

use paceline_path::wifi::{self, Category};
use paceline_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How urgent a flow's packets are to 802.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessCategory {
    /// AC_VO: calls, games.
    Voice,
    /// AC_VI: films, video calls.
    Video,
    /// AC_BE: everything else.
    BestEffort,
    /// AC_BK: background traffic that may wait.
    Background,
}

impl AccessCategory {
    /// The category in crate `path`.
    #[must_use]
    pub const fn category(self) -> Category {
        match self {
            AccessCategory::Voice => Category::Voice,
            AccessCategory::Video => Category::Video,
            AccessCategory::BestEffort => Category::BestEffort,
            AccessCategory::Background => Category::Background,
        }
    }
}

/// How the categories of a cell contend: the access point's EDCA Parameter Set, which it follows too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EdcaTable {
    /// How voice contends (AC_VO).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "aifsn 2, cw_min 3, cw_max 7, txop 1.504 ms"))]
    pub voice: Option<EdcaAccess>,
    /// How video contends (AC_VI).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "aifsn 2, cw_min 7, cw_max 15, txop 3.008 ms"))]
    pub video: Option<EdcaAccess>,
    /// How best effort contends (AC_BE).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "aifsn 3, cw_min and cw_max the cell's, no txop"))]
    pub best_effort: Option<EdcaAccess>,
    /// How background contends (AC_BK).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "aifsn 7, cw_min and cw_max the cell's, no txop"))]
    pub background: Option<EdcaAccess>,
}

/// How a category contends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdcaAccess {
    /// Slots after SIFS for which the medium must be idle before countdown (AIFSN).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 15), extend("x-default" = "the category's"))]
    pub aifsn: Option<u32>,
    /// Initial contention window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767), extend("x-default" = "the category's"))]
    pub cw_min: Option<u32>,
    /// Upper bound of the window. Not less than `cw_min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767), extend("x-default" = "the category's"))]
    pub cw_max: Option<u32>,
    /// Time for which it keeps the medium (TXOP limit); zero: for one exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the category's", "x-max" = "65.535 ms"))]
    pub txop: Option<Span>,
}

impl EdcaTable {
    /// The settings of a category, if given.
    #[must_use]
    pub fn of(&self, category: Category) -> Option<&EdcaAccess> {
        match category {
            Category::Voice => self.voice.as_ref(),
            Category::Video => self.video.as_ref(),
            Category::BestEffort => self.best_effort.as_ref(),
            Category::Background => self.background.as_ref(),
        }
    }
}

impl EdcaAccess {
    /// These settings, completed from `usual`.
    #[must_use]
    pub fn access(&self, usual: wifi::Access) -> wifi::Access {
        wifi::Access {
            with_qos: usual.with_qos,
            aifsn: self.aifsn.unwrap_or(usual.aifsn),
            cw_min: self.cw_min.unwrap_or(usual.cw_min),
            cw_max: self.cw_max.unwrap_or(usual.cw_max.max(self.cw_min.unwrap_or(0))),
            txop: self.txop.unwrap_or(usual.txop),
        }
    }
}
