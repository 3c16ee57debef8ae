//! Mistakes in a scenario file, each with file, line, key, value, and what is allowed.

use std::borrow::Cow;
use std::fmt;

/// Why a scenario cannot be used. Its message has one line for each mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The scenario file's name, as given.
    pub file: String,
    /// At least one mistake.
    pub mistakes: Vec<Mistake>,
}

impl ScenarioError {
    /// An error of the file as a whole: it cannot be read.
    #[must_use]
    pub fn of_file(file: &str, problem: &str) -> ScenarioError {
        ScenarioError { file: file.into(), mistakes: vec![Mistake::of_lines("", problem)] }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line in the file, counted from 1, if the key is in the file.
    pub line: Option<usize>,
    /// Column, counted from 1, of a syntax error.
    pub column: Option<usize>,
    /// Path of the key, empty for a syntax error.
    pub key: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

impl Mistake {
    /// A mistake at `key`, on one line: line breaks in quoted text are escaped.
    #[must_use]
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Mistake {
        let problem = problem.into();
        Mistake { line: None, column: None, key: key.into(), problem: plain(&problem, |_| false).into_owned() }
    }

    /// A mistake on several lines, such as a traceback.
    #[must_use]
    pub fn of_lines(key: impl Into<String>, problem: impl Into<String>) -> Mistake {
        Mistake { line: None, column: None, key: key.into(), problem: problem.into() }
    }

    /// Its line in the message.
    pub(super) fn to_line(&self, file: &str) -> String {
        let place =
            [self.line, self.column].into_iter().flatten().map(|number| format!(":{number}")).collect::<String>();
        let key = if self.key.is_empty() { String::new() } else { format!("{}: ", plain(&self.key, |_| false)) };
        format!("{}{place}: {key}{}", plain(file, |_| false), plain(&self.problem, |c| c == '\n'))
    }
}

/// Escapes what would control a terminal or change the writing direction: control and format characters and line
/// separators become JSON escapes (`\n`, `\u001b`), except those that are `kept`.
fn plain(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let obeyed = |c: char| !kept(c) && is_obeyed(c);
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text.chars() {
        if obeyed(c) { shown.push_str(&escaped(c)) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A character as JSON escapes it (RFC 8259 section 7): `\n`, `\u001b`. The Python front escapes alike, and printed
/// JSON remains JSON.
#[must_use]
pub fn escaped(c: char) -> String {
    match c {
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    }
}

/// A text in quotes, escaped.
pub(super) fn quoted(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            _ if is_obeyed(c) => escaped(c),
            _ => c.to_string(),
        })
        .collect();
    format!("\"{text}\"")
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&mistake.to_line(&self.file))?;
        }
        Ok(())
    }
}

/// Words of other tools, and Paceline's for the same thing.
const ALIASES: [(&str, &str); 27] = [
    ("algorithm", "cc"),
    ("bandwidth", "rate"),
    ("bbrv3", "bbr3"),
    ("bfifo", "droptail"),
    ("bitrate", "media_rate"),
    ("buffer", "queue"),
    ("buffer-size", "limit"),
    ("bw", "rate"),
    ("capacity", "rate"),
    ("congestion", "cc"),
    ("congestion-control", "cc"),
    ("controller", "cc"),
    ("end", "stop"),
    ("fifo", "droptail"),
    ("jitter", "delay_variation"),
    ("latency", "delay"),
    ("mss", "segment"),
    ("netem-loss", "loss"),
    ("packet-size", "segment"),
    ("pfifo", "droptail"),
    ("plr", "loss"),
    ("propagation", "delay"),
    ("qdisc", "queue"),
    ("rwnd", "receive_window"),
    ("size", "limit"),
    ("taildrop", "droptail"),
    ("tail-drop", "droptail"),
];

/// Names that an error lists when there are many.
const LISTED: usize = 5;
/// Maximum number of names of which an error lists all.
const FEW: usize = 16;

fn spelt(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// Paceline's word for another tool's, both as `spelt`.
fn alias(word: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(theirs, _)| *theirs == word).map(|(_, name)| *name)
}

/// The allowed names: all if they are few, else those most similar to the typed one.
pub(super) fn allowed(typed: &str, known: &[&str]) -> String {
    if known.len() <= FEW {
        return format!("allowed here: {}", listed(known.iter().copied()));
    }
    let typed = spelt(typed);
    let alias = alias(&typed);
    let likeness = |name: &&str| match alias {
        Some(meant) if meant == *name => 2.0,
        // `interval` is a word of `report_interval`
        _ if spelt(name).split('-').any(|word| word == typed) => 1.0,
        _ => strsim::jaro_winkler(&typed, &spelt(name)),
    };
    let mut near = known.to_vec();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let near = listed(near.into_iter().take(LISTED));
    format!("nearest of {}: {near}; `paceline schema` prints all", known.len())
}

/// The name among `known` that `typed` probably stands for.
pub(super) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = spelt(typed);
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(name) = alias(&lower).and_then(|meant| known.iter().find(|name| **name == meant)) {
        return Some(name);
    }
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &spelt(name)), name))
        .filter(|&(distance, name)| {
            let length = name.chars().count().max(typed.chars().count());
            distance < length && distance <= (length / 3).max(1)
        })
        .min()
        .map(|(_, name)| name)
}

/// `; did you mean ...?`, or an empty text.
pub(super) fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Appends a key to a path, with quotes where TOML needs them.
#[must_use]
pub fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let key = if bare { key.to_owned() } else { quoted(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// A comma-separated list in backticks.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mistake_quotes_makes_no_line_and_nothing_that_a_terminal_obeys() {
        let mistake = Mistake::new("flow.\u{202e}x", "`a\nerror: forged\r\u{1b}]0;x\u{7}` is no rate, größer – 日本");
        let said = ScenarioError { file: "a\nb.toml".into(), mistakes: vec![mistake] }.to_string();
        let shown = r"a\nb.toml: flow.\u202ex: `a\nerror: forged\r\u001b]0;x\u0007` is no rate, größer – 日本";
        assert_eq!(said, shown);
        let lines = ScenarioError { file: "x".into(), mistakes: vec![Mistake::of_lines("", "one\ntwo\u{1b}[2J")] };
        assert_eq!(lines.to_string(), "x: one\ntwo\\u001b[2J");
        assert_eq!(join("flow", "a\u{1b}\"\\\u{e0041} é"), r#"flow."a\u001b\"\\\udb40\udc41 é""#);
    }
}
