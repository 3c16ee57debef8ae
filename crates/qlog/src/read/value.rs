//! Values as the dialects write them: a number may be a string, and a field may have one of several names.

use serde_json::Value;
use std::collections::BTreeMap;

/// A finite number, also in a string ("17").
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// A whole number, not negative. A fraction is cut off.
pub fn whole(value: &Value) -> Option<u64> {
    let exact = match value {
        Value::Number(whole) => whole.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    exact.or_else(|| number(value).filter(|n| (0.0..1.8e19).contains(n)).map(|n| n as u64))
}

/// Reads the numbers of events, which are never negative, and records the fields whose values were invalid.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// For each field name, how often, and the first invalid value.
    pub left_out: BTreeMap<&'static str, (u64, String)>,
}

impl Numbers {
    /// The first of these fields with a number.
    pub fn number_of(&mut self, of: &Value, names: &[&'static str]) -> Option<f64> {
        self.first(of, names, |value| number(value).filter(|number| *number >= 0.0))
    }

    /// The first of these fields with a whole number.
    pub fn whole_of(&mut self, of: &Value, names: &[&'static str]) -> Option<u64> {
        self.first(of, names, whole)
    }

    /// A whole number from a list in the field `name`.
    pub fn whole_in(&mut self, name: &'static str, value: &Value) -> Option<u64> {
        whole(value).or_else(|| self.leave_out(name, value))
    }

    fn first<N>(&mut self, of: &Value, names: &[&'static str], read: impl Fn(&Value) -> Option<N>) -> Option<N> {
        names.iter().find_map(|name| {
            let value = of.get(name)?;
            read(value).or_else(|| self.leave_out(name, value))
        })
    }

    /// Null means absent.
    fn leave_out<N>(&mut self, name: &'static str, value: &Value) -> Option<N> {
        if !value.is_null() {
            self.left_out.entry(name).or_insert_with(|| (0, short(value))).0 += 1;
        }
        None
    }
}

/// The first of these fields with a text that is not empty.
pub fn text_of<'v>(of: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| of.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()))
}

/// A value, shortened for a message.
pub fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 { text } else { text.chars().take(40).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_may_be_text() {
        assert_eq!(whole(&json!("17")), Some(17));
        assert_eq!(whole(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!((whole(&json!(12.0)), whole(&json!("12.0"))), (Some(12), Some(12)));
        assert_eq!((whole(&json!(-1)), whole(&json!("x")), whole(&json!(null))), (None, None, None));
        assert_eq!((number(&json!("2.5")), number(&json!("NaN")), number(&json!([1]))), (Some(2.5), None, None));
        let mut numbers = Numbers::default();
        let event = json!({"cwnd": "5", "congestion_window": null, "rtt": -1, "pacing": "fast", "more": [1]});
        assert_eq!(numbers.whole_of(&event, &["congestion_window", "cwnd"]), Some(5));
        assert_eq!((numbers.number_of(&event, &["rtt"]), numbers.number_of(&event, &["rtt"])), (None, None));
        assert_eq!((numbers.number_of(&event, &["pacing"]), numbers.whole_of(&event, &["more"])), (None, None));
        let left_out: Vec<_> =
            numbers.left_out.iter().map(|(name, (count, value))| (*name, *count, value.as_str())).collect();
        assert_eq!(left_out, [("more", 1, "[1]"), ("pacing", 1, "\"fast\""), ("rtt", 2, "-1")]);
        assert_eq!(text_of(&json!({"a": "", "b": "x"}), &["a", "b"]), Some("x"));
    }
}
