//! What somebody else wrote, before it comes to a terminal, a log or a file.

use paceline_sim::scenario::escaped;

/// Characters of a text that are shown.
const MAX_CHARS: usize = 500;

/// A text of a peer, fit to be shown: on one line, without anything that a terminal obeys or that turns the direction of what
/// stands beside it. Control and format characters, separators of lines, private and unassigned ones are escaped as in JSON
/// (`\n`, `\u001b`), and so are marks that would pile up on a letter; what is longer than 500 characters is cut.
#[must_use]
pub fn peer_text(text: &str) -> String {
    let (mut shown, mut left) = (String::new(), MAX_CHARS);
    for c in text.chars() {
        // a text that was cleaned before stays as it is
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
        // by what is shown, whatever it was before
        let escaped = peer_text(&"\u{e0041}".repeat(500));
        assert!(escaped.ends_with(r"\udc41…") && escaped.chars().count() <= 501);
        assert_eq!(peer_text(&cut), cut);
    }
}
