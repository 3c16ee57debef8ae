//! Values as the dialects write them: a number may be a string, and a field may have one of several names.

use serde_json::Value;

/// A number, also one in a string ("17"). What is not finite is none.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// A whole number that is not negative. A fraction is left out.
pub fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(whole) if whole.is_u64() => whole.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => number(value).filter(|n| (0.0..1.8e19).contains(n)).map(|n| n as u64),
    }
}

/// The first of these fields that holds a number.
pub fn number_of(of: &Value, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| of.get(name).and_then(number))
}

/// The first of these fields that holds a whole number.
pub fn whole_of(of: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| of.get(name).and_then(whole))
}

/// The first of these fields that holds text that is not empty.
pub fn text_of<'v>(of: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| of.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_may_be_text() {
        assert_eq!(whole(&json!("17")), Some(17));
        assert_eq!(whole(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(whole(&json!(12.0)), Some(12));
        assert_eq!((whole(&json!(-1)), whole(&json!("x")), whole(&json!(null))), (None, None, None));
        assert_eq!((number(&json!("2.5")), number(&json!("NaN")), number(&json!([1]))), (Some(2.5), None, None));
        assert_eq!(whole_of(&json!({"cwnd": "5", "congestion_window": null}), &["congestion_window", "cwnd"]), Some(5));
        assert_eq!(text_of(&json!({"a": "", "b": "x"}), &["a", "b"]), Some("x"));
    }
}
