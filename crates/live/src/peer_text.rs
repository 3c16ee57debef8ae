//! Sanitises text from a peer before it reaches a terminal, a log or a file.

use paceline_scenario::escaped;

/// Maximum number of characters shown.
const MAX_CHARS: usize = 500;

/// A peer's text in a form that can be shown: on one line, without anything that a terminal interprets or that changes
/// the direction of adjacent text. Control and format characters, line separators, private and unassigned characters
/// are escaped as in JSON (`\n`, `\u001b`), as are combining marks; text beyond 500 characters is cut off.
#[must_use]
pub fn peer_text(text: &str) -> String {
    let (mut shown, mut left) = (String::new(), MAX_CHARS);
    for c in text.chars() {
        // sanitising a text twice changes nothing
        let plain = matches!(c, '\\' | '\'' | '"') || c.escape_debug().len() == 1;
        let c = if plain { c.to_string() } else { escaped(c) };
        let takes = if plain { 1 } else { c.len() };
        if takes > left {
            shown.push('…');
            break;
        }
        left -= takes;
        shown.push_str(&c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(peer_text("no\n\x1b[2J\u{9b}31m\u{7}\0"), r"no\n\u001b[2J\u009b31m\u0007\u0000");
        for turns in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{061c}', '\u{2028}', '\u{feff}', '\u{e0041}'] {
            let shown = peer_text(&format!("a{turns}b"));
            assert!(shown.is_ascii() && shown.starts_with(r"a\u"), "{shown}");
        }
    }

    #[test]
    fn what_is_plain_stays() {
        for plain in ["", "it's \"so\" \\ 100 %", "größer als 日本語 – ±5 µs"] {
            assert_eq!(peer_text(plain), plain);
        }
        let hostile = peer_text("\x1b[2J \u{202e}");
        assert_eq!(peer_text(&hostile), hostile);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(peer_text(&"x".repeat(500)).len(), 500);
        let cut = peer_text(&"x".repeat(1 << 20));
        assert!(cut.ends_with("x…") && cut.chars().count() == 501);
        // the limit counts shown characters, not original ones
        let escaped = peer_text(&"\u{e0041}".repeat(500));
        assert!(escaped.ends_with(r"\udc41…") && escaped.chars().count() <= 501);
        assert_eq!(peer_text(&cut), cut);
    }
}
