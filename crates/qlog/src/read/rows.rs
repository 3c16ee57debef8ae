//! A connection's state over time, one row per interval.

use paceline_units::{Span, Time};

/// Values of a row: first the logged ones, then the derived ones.
pub const WIDTH: usize = 25;

/// A row: its time, and its values; NaN where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The end of its interval, or the log's end.
    pub at: Time,
    /// See [`super::state::State::row`].
    pub values: [f64; WIDTH],
}

/// One row for each interval with logged events: the last state in it.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Adds the state at a time, which must not be before the previous one. Returns whether there is a new row.
    pub fn take(&mut self, at: Time, every: Span, values: [f64; WIDTH]) -> bool {
        let row = Row { at: end_of_interval(at, every), values };
        match self.rows.last_mut() {
            Some(last) if last.at >= row.at => {
                last.values = values;
                false
            }
            _ => {
                self.rows.push(row);
                true
            }
        }
    }

    /// Clears some values of all rows so far.
    pub fn blank(&mut self, which: std::ops::Range<usize>) {
        for row in &mut self.rows {
            row.values[which.clone()].fill(f64::NAN);
        }
    }

    /// Makes the intervals longer. Returns how many rows were removed.
    pub fn thin(&mut self, every: Span) -> usize {
        let before = self.rows.len();
        let mut kept: Vec<Row> = Vec::with_capacity(before / 2 + 1);
        for row in &self.rows {
            let at = end_of_interval(row.at, every);
            match kept.last_mut() {
                Some(last) if last.at >= at => last.values = row.values,
                _ => kept.push(Row { at, values: row.values }),
            }
        }
        self.rows = kept;
        before - self.rows.len()
    }

    /// The rows; the last interval ends with the log.
    pub fn until(mut self, end: Time) -> Vec<Row> {
        if let Some(last) = self.rows.last_mut() {
            last.at = last.at.min(end);
        }
        self.rows
    }
}

/// The end of the interval that contains a time; an interval contains its end.
fn end_of_interval(at: Time, every: Span) -> Time {
    if every.0 == 0 { at } else { Time(at.0.div_ceil(every.0).saturating_mul(every.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_last_state_of_its_interval() {
        let mut rows = Rows::default();
        let every = Span(10);
        let more: Vec<bool> =
            [0, 3, 10, 11, 29, 30, 57].map(|at| rows.take(Time(at), every, [at as f64; WIDTH])).to_vec();
        assert_eq!(more, [true, true, false, true, true, false, true]);
        let mut thinner = rows.clone();
        let seen = |rows: Rows| rows.until(Time(57)).iter().map(|row| (row.at.0, row.values[0])).collect::<Vec<_>>();
        assert_eq!(seen(rows), [(0, 0.0), (10, 10.0), (20, 11.0), (30, 30.0), (57, 57.0)]);
        assert_eq!(thinner.thin(Span(20)), 1);
        assert_eq!(seen(thinner), [(0, 0.0), (20, 11.0), (40, 30.0), (57, 57.0)]);
    }

    #[test]
    fn without_an_interval_each_instant_has_a_row() {
        let mut rows = Rows::default();
        for at in [5, 5, 6] {
            rows.take(Time(at), Span(0), [0.0; WIDTH]);
        }
        assert_eq!(rows.until(Time(6)).len(), 2);
    }
}
