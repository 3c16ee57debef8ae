//! Dates as RFC 3339 has them.

/// Seconds since 1970 of a date and a time with its offset, as `2026-01-02T03:04:05.678Z`.
pub fn since_1970_s(text: &str) -> Option<f64> {
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone);
    let [year, month, day] = three(day, '-')?;
    let [hour, minute, second] = three(time, ':')?;
    let date = (0.0..=9999.0).contains(&year) && (1.0..=12.0).contains(&month) && (1.0..=31.0).contains(&day);
    let clock = (0.0..24.0).contains(&hour) && (0.0..60.0).contains(&minute) && (0.0..61.0).contains(&second);
    let ahead = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0.0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let seconds = hours.parse::<u8>().ok()? as f64 * 3600.0 + minutes.parse::<u8>().ok()? as f64 * 60.0;
            if sign == "-" { -seconds } else { seconds }
        }
    };
    // Years that begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2.0 { (year, month - 3.0) } else { (year - 1.0, month + 9.0) };
    let leaps = (year / 4.0).floor() - (year / 100.0).floor() + (year / 400.0).floor();
    let days = 365.0 * year + leaps + ((153.0 * month + 2.0) / 5.0).floor() + day - 719_469.0;
    (date && clock).then_some(days * 86_400.0 + hour * 3600.0 + minute * 60.0 + second - ahead)
}

fn three(text: &str, between: char) -> Option<[f64; 3]> {
    let mut parts = text
        .split(between)
        .map(|part| part.starts_with(|first: char| first.is_ascii_digit()).then(|| part.parse::<f64>().ok()).flatten());
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
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
