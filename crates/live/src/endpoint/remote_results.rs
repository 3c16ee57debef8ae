//! A server's results of its end of a flow, validated before use.

use super::budget::samples as rows;
use super::control::{Direction, Offer};
use super::half::{EVERY, Half, Recorder, Table, is_column};
use super::numbers::Numbers;
use crate::kernel::log::{KERNEL, RATE, WINDOW};
use crate::peer_text::peer_text;
use crate::session::{Session, SessionSpec, Side};
use serde_json::Value;
use std::collections::BTreeSet;

/// Bound for the magnitude of numbers: whole numbers up to it are exact in 64-bit columns.
const FURTHEST: f64 = (1u64 << 53) as f64;
/// Columns that every table has.
const OWN: [&str; 5] = ["flow", "instance", "link", "direction", "seed"];

/// A half as received, with sanitised texts; or a replacement that says what is wrong with it.
#[must_use]
pub fn checked(mut half: Half) -> Half {
    if let Err(why) = sensible(&mut half) {
        return senseless(&why);
    }
    half.ended = peer_text(&half.ended);
    let (row, stream) = (&mut half.row, half.stream.as_mut().map(|stream| &mut stream.flow));
    let ends = [&mut row.from, &mut row.to];
    let names = [&mut row.flow, &mut row.group, &mut row.cc, &mut row.app, &mut row.profile].into_iter().chain(ends);
    for text in names.chain(stream).chain(row.ended.as_mut()).chain(row.program.as_mut()) {
        *text = peer_text(text);
    }
    half
}

/// The same for a server's end of this flow; also checks that the tables are those that such an end records.
#[must_use]
pub(super) fn checked_of(half: Half, offer: &Offer) -> Half {
    let half = checked(half);
    match fit(&half.tables, offer) {
        Ok(()) => half,
        Err(why) => senseless(&why),
    }
}

/// The half that replaces an invalid one.
fn senseless(why: &str) -> Half {
    Half { ended: format!("the server's results make no sense: {why}"), ..Half::default() }
}

/// Names of tables, each with its required columns: further gauges may be added later.
type Shapes = Vec<(String, Vec<String>)>;

/// The tables of a server's end of a flow.
fn shapes(offer: &Offer) -> Result<Shapes, String> {
    let owned = |(table, columns): (&str, &[&str])| {
        (table.to_owned(), columns.iter().map(|column| (*column).to_owned()).collect())
    };
    let side = if offer.direction == Direction::Forward { Side::Receiver } else { Side::Sender };
    if offer.kernel.is_some() {
        let all = [("rate", RATE), ("kernel", KERNEL), ("cwnd", WINDOW)];
        let many = if side == Side::Sender { all.len() } else { 1 };
        return Ok(all[..many].iter().copied().map(owned).collect());
    }
    let model = offer.spec.model().map_err(|error| error.to_string())?;
    let (connection, nonce, limit, announces, rtp) = (0, 0, None, false, None);
    let spec = SessionSpec { side, flow: offer.spec.clone(), connection, nonce, limit, announces, rtp };
    let session = Session::new(&spec).map_err(|error| error.to_string())?;
    let tables = Recorder::new(&session, &model, EVERY).into_series().into_iter().map(Table::of);
    Ok(tables.map(|table| (table.table, table.columns.into_iter().map(|(name, _)| name).collect())).collect())
}

/// Checks the tables of a flow; a flow that never ran has none.
fn fit(tables: &[Table], offer: &Offer) -> Result<(), String> {
    if tables.is_empty() {
        return Ok(());
    }
    let mut shapes = shapes(offer)?;
    // an end may continue for a while after the flow's time
    let max = rows(offer).saturating_mul(2).saturating_add(1000);
    for table in tables {
        let name = peer_text(&table.table);
        let Some(at) = shapes.iter().position(|(shape, _)| *shape == table.table) else {
            return Err(format!("table {name} is none of this flow's, or stands there twice"));
        };
        let (_, columns) = shapes.swap_remove(at);
        // one-way delay columns are absent if there are none
        let there =
            |column: &String| column.starts_with("owd_") || table.columns.iter().any(|(name, _)| name == column);
        if let Some(column) = columns.iter().find(|column| !there(column)) {
            return Err(format!("table {name} is without {column}"));
        }
        if table.columns.first().is_some_and(|(_, Numbers(values))| values.len() as u64 > max) {
            return Err(format!("table {name} has more rows than such a flow can have, {max}"));
        }
        let time = table.columns.iter().find(|(column, _)| column == "time_s");
        if time.is_some_and(|(_, Numbers(values))| values.iter().any(|value| value.is_nan())) {
            return Err(format!("table {name}: a row without a time"));
        }
    }
    Ok(())
}

/// Checks a half.
fn sensible(half: &mut Half) -> Result<(), String> {
    half.tables.iter().try_for_each(sound)?;
    // without the tables, only a small number of fields remains
    let tables = std::mem::take(&mut half.tables);
    let fields = serde_json::to_value(&*half).map_err(|error| error.to_string());
    half.tables = tables;
    bounded("", &fields?)
}

fn sound(table: &Table) -> Result<(), String> {
    let (name, columns) = (peer_text(&table.table), &table.columns);
    let mut seen = BTreeSet::new();
    for (column, Numbers(values)) in columns {
        let place = || format!("table {name}, column {}", peer_text(column));
        // one-way delay columns are recognised here, and dropped later
        if OWN.contains(&column.as_str()) || !(is_column(column) || column.starts_with("owd_")) {
            return Err(format!("{}: there is no such column", place()));
        }
        if !seen.insert(column) {
            return Err(format!("{} stands there twice", place()));
        }
        if values.len() != columns[0].1.0.len() {
            return Err(format!("{} has {} rows, the first column {}", place(), values.len(), columns[0].1.0.len()));
        }
        // NaN was null in the message
        if let Some(value) = values.iter().find(|value| value.abs() > FURTHEST) {
            return Err(format!("{}: {value:e}", place()));
        }
    }
    Ok(())
}

/// Checks that all numbers in a value are within bounds.
fn bounded(name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) if (-FURTHEST..=FURTHEST).contains(&number) => Ok(()),
            _ => Err(format!("{name} is {number}")),
        },
        Value::Array(values) => values.iter().try_for_each(|value| bounded(name, value)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| bounded(name, value)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FlowRow;
    use crate::session::{Family, FlowSpec, ForeignSchemes, Reported};

    fn with(table: &str, columns: &[(&str, &[f64])]) -> Half {
        let column = |(name, values): &(&str, &[f64])| ((*name).to_owned(), Numbers(values.to_vec()));
        let table = Table { table: table.to_owned(), columns: columns.iter().map(column).collect() };
        Half { tables: vec![table], ended: "time is up".to_owned(), well: true, ..Half::default() }
    }

    /// The text that replaces an invalid half.
    fn refused(half: Half) -> String {
        let half = checked(half);
        assert!(!half.well && half.tables.is_empty(), "{half:?}");
        half.ended.strip_prefix("the server's results make no sense: ").expect(&half.ended).to_owned()
    }

    #[test]
    fn an_honest_half_stays_as_it_is() {
        let mut half =
            with("rate", &[("time_s", &[0.1, 0.2]), ("goodput_bps", &[1e9, 0.0]), ("owd_mean_s", &[0.1; 2])]);
        half.tables[0].columns[1].1.0[0] = f64::NAN;
        half.late = Some((0.1, 0.2, 3));
        half.row = FlowRow { cc: "tfrc".to_owned(), packets_sent: Some(7), ..FlowRow::default() };
        half.reported = Some(Reported { reports: 1, expected: 2, lost: -1, jitter_s: Some(0.1), without_cname: 0 });
        let said = |half: &Half| serde_json::to_string(half).unwrap();
        assert_eq!(said(&checked(half.clone())), said(&half));
    }

    /// Tables must be those that such an end records, complete, unique, and no longer than the flow.
    #[test]
    fn tables_of_another_flow_are_refused() {
        let settings = vec![("cc".to_owned(), "udp".to_owned()), ("app".to_owned(), "{ kind = \"cbr\" }".to_owned())];
        let spec = FlowSpec {
            settings,
            for_ms: 1000,
            seed: 1,
            family: Family::V4,
            name: None,
            foreign: ForeignSchemes::default(),
        };
        let offer = Offer { spec, direction: Direction::Forward, kernel: None, measure: None };
        let of = |half: Half, offer: &Offer| {
            let half = checked_of(half, offer);
            half.ended.strip_prefix("the server's results make no sense: ").unwrap_or("").to_owned()
        };
        let (two, many) = (&[0.1, 0.2][..], &vec![0.5; 1100][..]);
        assert_eq!(of(with("rate", &[("time_s", two), ("goodput_bps", two)]), &offer), "");
        assert_eq!(of(with("rate", &[("time_s", two)]), &offer), "table rate is without goodput_bps");
        assert!(of(with("kernel", &[("time_s", two)]), &offer).starts_with("table kernel is none of this flow's"));
        let mut twice = with("rate", &[("time_s", two), ("goodput_bps", two)]);
        twice.tables.push(twice.tables[0].clone());
        assert!(of(twice, &offer).contains("or stands there twice"));
        assert!(of(with("rate", &[("time_s", many), ("goodput_bps", many)]), &offer).contains("more rows"));
        let timeless = with("rate", &[("time_s", &[f64::NAN]), ("goodput_bps", &[1.0])]);
        assert_eq!(of(timeless, &offer), "table rate: a row without a time");
        // the receiver of a kernel-TCP flow has only a rate
        let kernel = Offer { kernel: Some("reno".to_owned()), ..offer.clone() };
        let all = || with("rate", &[("time_s", two), ("goodput_bps", two), ("send_rate_bps", two)]);
        assert_eq!(of(all(), &kernel), "");
        assert!(of(with("cwnd", &[("time_s", two)]), &kernel).starts_with("table cwnd is none"));
        let sends = Offer { direction: Direction::Reverse, ..kernel };
        assert_eq!(of(with("cwnd", &[("time_s", two)]), &sends), "table cwnd is without cwnd_packets");
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let two = &[0.1, 0.2][..];
        let uneven = with("rate", &[("time_s", two), ("goodput_bps", &[1.0])]);
        assert_eq!(refused(uneven), "table rate, column goodput_bps has 1 rows, the first column 2");
        assert!(refused(with("rate", &[("time_s", two), ("time_s", two)])).contains("time_s stands there twice"));
        for column in ["flow", "instance", "seed", "", "_lasts", "a b", "\x1b[2J", "größe", &"x".repeat(100)] {
            let said = refused(with("\x1b[2J", &[("time_s", two), (column, two)]));
            assert!(said.contains("no such column") && said.starts_with(r"table \u001b[2J, "), "{said}");
            assert!(!said.contains(char::is_control), "{said}");
        }
        for beyond in [f64::INFINITY, 1e17, -1e300] {
            assert!(refused(with("rate", &[("time_s", &[beyond])])).contains("column time_s: "));
        }
    }

    #[test]
    fn numbers_beyond_reason_are_refused() {
        let half = || with("rate", &[]);
        let row = |row: FlowRow| Half { row, ..half() };
        for (bad, name) in [
            (row(FlowRow { packets_sent: Some(u64::MAX), ..FlowRow::default() }), "packets_sent"),
            (row(FlowRow { rtt_mean_s: Some(1e300), ..FlowRow::default() }), "rtt_mean_s"),
            (Half { end_s: -1e300, ..half() }, "end_s"),
            (Half { dropped: (0, u64::MAX, 0), ..half() }, "dropped"),
            (Half { late: Some((1e20, 0.0, 0)), ..half() }, "late"),
        ] {
            assert!(refused(bad).starts_with(name));
        }
    }

    #[test]
    fn texts_are_cleaned() {
        let hostile = || "a\x1b[2J\n\u{202e}".to_owned();
        let mut half = with("rate", &[]);
        half.ended = hostile();
        half.row =
            FlowRow { flow: hostile(), group: hostile(), cc: hostile(), profile: hostile(), ..FlowRow::default() };
        (half.row.from, half.row.to) = (hostile(), hostile());
        (half.row.ended, half.row.program) = (Some(hostile()), Some(hostile()));
        half.stream = Some(paceline_sim::summary::StreamSummary { flow: hostile(), ..Default::default() });
        let half = checked(half);
        assert_eq!(half.ended, r"a\u001b[2J\n\u202e");
        assert_eq!(format!("{half:?}").matches(r"a\\u001b[2J\\n\\u202e").count(), 10, "{half:?}");
    }
}
