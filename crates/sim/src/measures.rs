//! The measures: one table of their names, units, meanings, and how they scatter from run to run.
//!
//! Each entry is a field of a row in a run's summary, a column of the tables, a row of `docs/measures.md`, and an input
//! of statistics. A new measure is one entry here, and the code that counts it.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

mod flows;
mod network;
mod run;
mod streams;

pub use flows::{FlowRow, FlowSummary};
pub use network::{ClassSummary, InterfaceSummary, LinkFlowSummary, QueueSummary};
pub use run::{EngineSummary, GroupSummary};
pub use streams::StreamSummary;

/// Measures that are defined together.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Their names, which end with the unit for a time, rate, packets or bytes; and the type of their values.
    pub columns: &'static [(&'static str, Dtype)],
    /// The unit: "s", "bit/s", "packets", "frames", "B"; "share" for values from 0 to 1, "ratio" for values that may be
    /// larger; "" for counts and indices.
    pub unit: &'static str,
    /// How they scatter from run to run.
    pub scatter: Scatter,
    /// Their meaning, as a cell of a Markdown table.
    pub meaning: &'static str,
}

/// How values scatter over runs that differ only in their seeds. It decides whether a mean of ten runs has an interval.
/// Names with `max`, `min`, `p95` or `p99` are extremes, and those with `p50` are restless, whatever the entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scatter {
    /// An average over many packets or a long time.
    Steady,
    /// Caused by a few rare events, or mostly lost at once: far outliers.
    Rare,
    /// Bounded, and at the bound in most runs (such as a full link); or the deviation of a queue.
    Restless,
}

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// A count.
    Whole,
    /// A number.
    Number,
    /// A truth value; over several runs, the share in which it is true.
    Truth,
    /// Text.
    Word,
    /// A row of [`ClassSummary`]: one column for each of its fields, such as `l4s_marks`.
    Class,
}

/// A type that a field may have.
pub trait Column {
    /// The type of the column; for a map, that of each of its columns, such as `drops_overflow`.
    const DTYPE: Dtype;
    /// The field's type for a simulated flow.
    type Simulated;
    /// The field's type for a real flow, where not everything is known.
    type Real;
}

/// A field that is known for real flows, too.
#[derive(Debug)]
pub struct Always<T>(std::marker::PhantomData<T>);

impl Column for Always<f64> {
    const DTYPE: Dtype = Dtype::Number;
    type Simulated = f64;
    type Real = f64;
}

macro_rules! columns {
    ($($type:ty: $dtype:ident as $real:ty,)*) => {
        $(impl Column for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            type Simulated = $type;
            type Real = $real;
        })*
    };
}

columns! {
    f64: Number as Option<f64>,
    u64: Whole as Option<u64>,
    usize: Whole as Option<usize>,
    bool: Truth as Option<bool>,
    String: Word as Option<String>,
    Option<f64>: Number as Option<f64>,
    Option<u64>: Whole as Option<u64>,
    Option<u32>: Whole as Option<u32>,
    Option<String>: Word as Option<String>,
    Option<ClassSummary>: Class as Option<ClassSummary>,
    BTreeMap<u8, f64>: Number as BTreeMap<u8, f64>,
    BTreeMap<&'static str, u64>: Whole as BTreeMap<&'static str, u64>,
}

/// Declares a row: its labels, then measures, each with its meaning, unit and scatter.
macro_rules! row {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            labels { $($label:ident: $label_type:ty,)* }
            $(
                $(#[doc = $doc:literal])+
                $unit:literal $scatter:ident: $($(#[$field_meta:meta])* $field:ident),+: $type:ty;
            )*
        }
    ) => {
        $(#[$meta])*
        #[allow(missing_docs, reason = "each field's meaning is in MEASURES")]
        pub struct $name {
            $(pub $label: $label_type,)*
            $($($(#[$field_meta])* pub $field: $type,)+)*
        }

        impl $name {
            /// Its fields except for the labels.
            pub const MEASURES: &'static [Measure] = &[$(measure!([$($doc),+] $unit $scatter: $($field),+: $type),)*];
        }
    };
}

/// An entry of a table of measures.
macro_rules! measure {
    ([$($doc:literal),+] $unit:literal $scatter:ident: $($field:ident),+: $type:ty) => {
        $crate::measures::Measure {
            columns: &[$((stringify!($field), <$type as $crate::measures::Column>::DTYPE)),+],
            unit: $unit,
            scatter: $crate::measures::Scatter::$scatter,
            meaning: concat!($($doc),+),
        }
    };
}

use {measure, row};

/// The tables of a summary, each with its measures; those of real flows alone have their own table.
pub const TABLES: [(&str, &[Measure]); 8] = [
    ("flows", FlowSummary::MEASURES),
    ("real_flows", FlowRow::MEASURES),
    ("streams", StreamSummary::MEASURES),
    ("queues", QueueSummary::MEASURES),
    ("link_flows", LinkFlowSummary::MEASURES),
    ("interfaces", InterfaceSummary::MEASURES),
    ("groups", GroupSummary::MEASURES),
    ("runs", EngineSummary::MEASURES),
];

/// All measures as JSON: by table, in the order of the columns.
#[must_use]
pub fn describe() -> Value {
    let classes = ("classes", ClassSummary::MEASURES);
    TABLES
        .into_iter()
        .chain([classes])
        .map(|(table, measures)| (table.to_owned(), measures.iter().map(one).collect::<Value>()))
        .collect()
}

fn one(measure: &Measure) -> Value {
    let columns: serde_json::Map<String, Value> =
        measure.columns.iter().map(|(name, dtype)| ((*name).to_owned(), json!(dtype))).collect();
    json!({
        "columns": columns,
        "unit": measure.unit,
        "scatter": measure.scatter,
        "meaning": measure.meaning.trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_unit_and_scatters_one_way() {
        let mut known = BTreeMap::new();
        for (table, measures) in TABLES.into_iter().chain([("classes", ClassSummary::MEASURES)]) {
            for measure in measures {
                assert!(measure.meaning.len() > 10, "{table}: {:?}", measure.columns);
                for (name, dtype) in measure.columns {
                    let what = (measure.unit, measure.scatter, *dtype);
                    let first = *known.entry(*name).or_insert(what);
                    assert_eq!(first, what, "{name} of {table}");
                }
            }
        }
        assert!(known.len() > 100);
    }

    #[test]
    fn names_end_with_their_units() {
        let all = TABLES.iter().flat_map(|(_, measures)| measures.iter());
        for (name, unit) in all.flat_map(|measure| measure.columns.iter().map(|(name, _)| (*name, measure.unit))) {
            for (end, of) in [("_s", "s"), ("_bps", "bit/s"), ("_share", "share"), ("_rate", "share")] {
                if name.ends_with(end) {
                    assert!(unit == of || (of == "share" && unit == "ratio"), "{name} is in {unit:?}");
                }
            }
        }
    }
}
