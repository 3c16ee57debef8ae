//! Gauges over time: the values that a sender and its controller report, one column each.
//!
//! There is no list of names here. The flow's own controller and machine name the columns, so a gauge added to a
//! controller is recorded without further changes.

use crate::endpoint::Source;
use crate::recorder::{Series, labels};
use paceline_control::{GaugeUnit, Gauges};
use paceline_packet::FlowId;
use paceline_scenario::model::FlowModel;

/// The gauges of one sender, sampled into a table.
#[derive(Debug)]
pub struct Gauged {
    series: Series,
    /// Names and units of the columns after the time.
    gauges: Vec<(&'static str, GaugeUnit)>,
    /// Rows so far, and the column where the next gauge is looked for first: gauges arrive in the same order each time.
    rows: usize,
    expected: usize,
}

impl Gauged {
    /// An empty table for this flow, with the columns that its sender has before it starts.
    #[must_use]
    pub fn new(table: &'static str, flow: &FlowModel) -> Gauged {
        let mut gauged = Gauged::empty(Series::new(table, labels(flow), &["time_s"]));
        Source::new(flow, 0, FlowId(0), 0).gauges(&mut gauged);
        gauged
    }

    /// An empty table whose first column is the time; gauges add the others.
    #[must_use]
    pub fn empty(series: Series) -> Gauged {
        Gauged { series, gauges: Vec::new(), rows: 0, expected: 0 }
    }

    /// Count of columns, including the time.
    #[must_use]
    pub fn width(&self) -> usize {
        self.series.columns.len()
    }

    /// Adds a row with the gauges that `read` reports.
    pub fn sample(&mut self, time: f64, read: impl FnOnce(&mut dyn Gauges)) {
        self.rows += 1;
        self.expected = 0;
        self.series.columns[0].1.push(time);
        read(self);
        // A gauge that is missing this time is NaN.
        self.series.columns.iter_mut().for_each(|(_, column)| column.resize(self.rows, f64::NAN));
    }

    /// The recorded table.
    #[must_use]
    pub fn into_series(self) -> Series {
        self.series
    }
}

/// The gauge of this name among those that `read` reports, if finite.
pub fn reading(name: &'static str, read: impl FnOnce(&mut dyn Gauges)) -> Option<f64> {
    let mut found = Reading { name, value: f64::NAN };
    read(&mut found);
    found.value.is_finite().then_some(found.value)
}

struct Reading {
    name: &'static str,
    value: f64,
}

impl Gauges for Reading {
    fn gauge(&mut self, name: &'static str, _unit: GaugeUnit, value: f64) {
        if name == self.name {
            self.value = value;
        }
    }
}

impl Gauges for Gauged {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, value: f64) {
        let same = |gauge: &(&str, GaugeUnit)| *gauge == (name, unit);
        let found = match self.gauges.get(self.expected) {
            Some(gauge) if same(gauge) => Some(self.expected),
            _ => self.gauges.iter().position(same),
        };
        let place = found.unwrap_or_else(|| {
            self.gauges.push((name, unit));
            self.series.columns.push((format!("{name}{}", unit.suffix()).into(), Vec::new()));
            self.gauges.len() - 1
        });
        self.expected = place + 1;
        if self.rows > 0 {
            let column = &mut self.series.columns[place + 1].1;
            // Rows before a gauge's first report are NaN; of two gauges with one name, the last counts.
            column.resize(self.rows, f64::NAN);
            column[self.rows - 1] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
        &series.columns.iter().find(|(column, _)| column == name).unwrap().1
    }

    #[test]
    fn whatever_is_told_becomes_a_column() {
        let mut gauged = Gauged::empty(Series::new("cwnd", Vec::new(), &["time_s"]));
        gauged.sample(0.0, |to| to.packets("moons", 1.0));
        gauged.sample(1.0, |to| {
            to.seconds("tide", 2.0);
            to.packets("moons", 3.0);
        });
        gauged.sample(2.0, |to| {
            to.packets("moons", 4.0);
            to.number("tide", 5.0);
        });
        let series = gauged.into_series();
        let names: Vec<_> = series.columns.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["time_s", "moons_packets", "tide_s", "tide"]);
        assert_eq!(column(&series, "moons_packets"), [1.0, 3.0, 4.0]);
        let tide = column(&series, "tide_s");
        assert!(tide[0].is_nan() && tide[1] == 2.0 && tide[2].is_nan(), "{tide:?}");
        let other = column(&series, "tide");
        assert!(other[0].is_nan() && other[1].is_nan() && other[2] == 5.0, "{other:?}");
    }
}
