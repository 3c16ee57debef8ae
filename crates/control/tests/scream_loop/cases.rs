//! The reference's 18 cases: what the link, the flows and the sender are, and what it has found in them.

use super::bands::{self, Row};

/// Packets are marked whose wait is longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// In milliseconds.
    pub above: u64,
    /// The sender is scalable: it takes marks for those of L4S, and else for those of classic ECN.
    pub scalable: bool,
}

#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// From when (s) the link has what capacity (Mbit/s).
    pub capacity: &'static [(u64, f64)],
    /// When flows start (ms), and their one-way delays (ms).
    pub flows: &'static [(u64, u64)],
    /// Least and greatest rate, in bit/s.
    pub rates: (f64, f64),
    pub marks: Option<Marks>,
    /// Percent of the packets that are lost.
    pub loss: f64,
    /// Whether losses are found by media time too: RTP timestamps are the frames'.
    pub media_time: bool,
    /// Percent by which frames differ from their mean at most.
    pub varied: u64,
    /// What the reference has found.
    pub rows: &'static [Row],
}

pub const A: Case = Case {
    name: "a",
    capacity: &[(0, 2.0)],
    flows: &[(0, 50)],
    rates: (150e3, 3e6),
    marks: None,
    loss: 0.0,
    media_time: true,
    varied: 20,
    rows: bands::A,
};

pub const B: Case = Case {
    name: "b_max1.5M",
    capacity: &[(0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)],
    rates: (150e3, 1.5e6),
    rows: bands::B_MAX1_5M,
    ..A
};

pub const B_STUCK: Case = Case { name: "b_max3.75M", rates: (150e3, 3.75e6), rows: bands::B_MAX3_75M, ..B };

pub const C: Case = Case {
    name: "c_max6M",
    capacity: &[(0, 4.0), (25, 2.0), (50, 3.5), (75, 1.0), (100, 2.0)],
    flows: &[(0, 50), (13, 50)],
    rates: (150e3, 6e6),
    rows: bands::C_MAX6M,
    ..A
};

pub const D: Case = Case {
    name: "d_max5M",
    capacity: &[(0, 3.5)],
    flows: &[(0, 50), (20_013, 50), (40_026, 50)],
    rates: (150e3, 5e6),
    rows: bands::D_MAX5M,
    ..A
};

/// One on a link of so many Mbit/s that marks.
const fn marked(name: &'static str, capacity: &'static [(u64, f64)], marks: Marks, rows: &'static [Row]) -> Case {
    let max_rate = capacity[0].1 * 1.5e6;
    Case { name, capacity, flows: &[(0, 10)], rates: (1e6, max_rate), marks: Some(marks), rows, ..A }
}

const SLOW: &[(u64, f64)] = &[(0, 10.0)];
const FAST: &[(u64, f64)] = &[(0, 50.0)];

const fn scalable(above: u64) -> Marks {
    Marks { above, scalable: true }
}

const fn classic(above: u64) -> Marks {
    Marks { above, scalable: false }
}

pub const E_L4S_10M_1MS: Case = marked("e_l4s_10M_1ms", SLOW, scalable(1), bands::E_L4S_10M_1MS);
pub const E_L4S_10M_5MS: Case = marked("e_l4s_10M_5ms", SLOW, scalable(5), bands::E_L4S_10M_5MS);
pub const E_L4S_50M_1MS: Case = marked("e_l4s_50M_1ms", FAST, scalable(1), bands::E_L4S_50M_1MS);
pub const E_L4S_50M_5MS: Case = marked("e_l4s_50M_5ms", FAST, scalable(5), bands::E_L4S_50M_5MS);
pub const E_CLS_10M_1MS: Case = marked("e_cls_10M_1ms", SLOW, classic(1), bands::E_CLS_10M_1MS);
pub const E_CLS_10M_5MS: Case = marked("e_cls_10M_5ms", SLOW, classic(5), bands::E_CLS_10M_5MS);
pub const E_CLS_50M_1MS: Case = marked("e_cls_50M_1ms", FAST, classic(1), bands::E_CLS_50M_1MS);
pub const E_CLS_50M_5MS: Case = marked("e_cls_50M_5ms", FAST, classic(5), bands::E_CLS_50M_5MS);

pub const F_LOSS01: Case = Case {
    name: "f_loss01",
    capacity: &[(0, 3.0)],
    rates: (150e3, 4.5e6),
    loss: 1.0,
    varied: 0,
    rows: bands::F_LOSS01,
    ..A
};
pub const F_LOSS01_TS0: Case = Case { name: "f_loss01_ts0", media_time: false, rows: bands::F_LOSS01_TS0, ..F_LOSS01 };
pub const F_LOSS05: Case = Case { name: "f_loss05", loss: 5.0, rows: bands::F_LOSS05, ..F_LOSS01 };
pub const F_LOSS05_TS0: Case = Case { name: "f_loss05_ts0", media_time: false, rows: bands::F_LOSS05_TS0, ..F_LOSS05 };

pub const G: Case = Case {
    name: "g_max6M",
    capacity: &[(0, 4.0)],
    flows: &[(0, 10), (10_013, 25), (20_026, 50), (30_039, 100), (40_052, 150)],
    rates: (150e3, 6e6),
    rows: bands::G_MAX6M,
    ..A
};
