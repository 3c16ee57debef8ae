//! Dates in RFC 3339's format.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds since 1970 of a date and time with offset, such as `2026-01-02T03:04:05.678Z`.
pub fn since_1970_s(text: &str) -> Option<f64> {
    let date = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(date.unix_timestamp_nanos() as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::since_1970_s;

    #[test]
    fn dates_are_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00.000Z", 0.0),
            ("2000-02-29T12:00:00Z", 951_825_600.0),
            ("2024-01-15T10:30:00Z", 1_705_314_600.0),
            ("2024-03-01T00:30:00.25+01:30", 1_709_247_600.25),
            ("1969-12-31t23:59:59-00:00", -1.0),
        ] {
            assert_eq!(since_1970_s(text), Some(seconds), "{text}");
        }
        for text in ["unknown", "", "2024-13-01T00:00:00Z", "2024-01-15", "2024-01-15T10:30:00", "2024-01-15T25:00:00Z"]
        {
            assert_eq!(since_1970_s(text), None, "{text}");
        }
    }
}
