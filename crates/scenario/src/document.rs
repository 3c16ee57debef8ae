//! A scenario as TOML, before it is checked: keys can still be changed one by one.

use crate::error::{Mistake, ScenarioError, allowed, hint, join, listed};
use crate::keys::flow::USUAL_CC;
use crate::keys::named::OWN;
use crate::walk::{Node, number_text};
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The text of a scenario file, read as TOML and nothing more.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file's name, for messages and for the scenario's default name.
    pub(super) file: String,
    pub(super) table: Table,
    /// Line of each key in the file.
    lines: BTreeMap<String, usize>,
    /// Keys set since the file was read.
    set: Vec<String>,
}

impl Document {
    /// Reads TOML. `file` is the file's name in messages.
    ///
    /// # Errors
    /// The first syntax error, with line and column.
    pub fn parse(text: &str, file: &str) -> Result<Document, ScenarioError> {
        let fail = |error: &toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            let before = text.get(..start).unwrap_or(text);
            let mistake = Mistake {
                line: Some(before.matches('\n').count() + 1),
                column: Some(before.rsplit('\n').next().unwrap_or("").chars().count() + 1),
                key: String::new(),
                problem: format!("not TOML: {}", error.message().replace('\n', ", ")),
            };
            ScenarioError { file: file.into(), mistakes: vec![mistake] }
        };
        let (spanned, errors) = DeTable::parse_recoverable(text);
        let starts = LineStarts::new(text);
        let mut places = BTreeMap::new();
        note_places(spanned.get_ref(), "", &mut places);
        let twice: Vec<Mistake> = errors.iter().filter_map(|error| twice(error, text, &starts, &places)).collect();
        // After any other error the parser guesses, so only the first of those is reported.
        if let Some(error) = errors.first().filter(|_| twice.len() < errors.len()) {
            return Err(fail(error));
        }
        if !twice.is_empty() {
            return Err(ScenarioError { file: file.into(), mistakes: twice });
        }
        let lines = places.into_iter().map(|(key, at)| (key, starts.line(at))).collect();
        let mut beyond = Vec::new();
        beyond_numbers(spanned.get_ref(), Some(Node::root()), "", &mut beyond);
        if !beyond.is_empty() {
            let document = Document { file: file.into(), table: Table::new(), lines, set: Vec::new() };
            return Err(document.error(beyond));
        }
        let table: Table = toml::from_str(text).map_err(|error| fail(&error))?;
        Ok(Document { file: file.into(), table, lines, set: Vec::new() })
    }

    /// Sets the key at `path` (in TOML's notation: `flow.media.app.media_rate`, `flow."a b".cc`, `rate_schedule[0].at`)
    /// to `value`. The value is read as TOML if it is TOML, else as a string: `5`, `true`, `vegas` and `10 Mbit/s` all
    /// work.
    ///
    /// # Errors
    /// If the scenario file has no such key; the message names the nearest one.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ScenarioError> {
        let fail = |mistake: Mistake| ScenarioError { file: self.file.clone(), mistakes: vec![mistake] };
        let steps = split(path).map_err(|problem| fail(Mistake::new(path, problem)))?;
        let mut table = Value::Table(self.table.clone());
        put(&mut table, Node::root(), "", &steps, value).map_err(fail)?;
        if let Value::Table(table) = table {
            self.table = table;
        }
        self.set.push(steps.iter().fold(String::new(), |path, step| joined(&path, step)));
        Ok(())
    }

    /// The file's name in messages.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its text, without comments.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.table.to_string()
    }

    /// The keys that name its flows' controllers, with their values.
    #[must_use]
    pub fn controllers(&self) -> Vec<(String, String)> {
        let flows = self.table.get("flow").and_then(Value::as_table).into_iter().flatten();
        let named = flows.filter_map(|(name, flow)| Some((name, flow.get("cc")?.as_str()?)));
        named.map(|(name, cc)| (join(&join("flow", name), "cc"), cc.to_owned())).collect()
    }

    /// Makes a path a whole scenario: a missing `duration` becomes the longest, and if there is no flow, one is added
    /// that never runs.
    ///
    /// # Errors
    /// If the topology is a graph, where there is no single path.
    pub fn complete_path(&mut self) -> Result<(), ScenarioError> {
        if matches!(self.table.get("topology").and_then(Value::as_str), Some("graph" | "home")) {
            let problem = "a path is a dumbbell (one link, `bottleneck`) or a parking lot (`hop1`, `hop2`, ...)";
            return Err(self.error(vec![Mistake::new("topology", problem)]));
        }
        self.table.entry("duration").or_insert_with(|| Value::String("1000000 s".into()));
        let flows = self.table.entry("flow").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(flows) = flows
            && flows.is_empty()
        {
            flows.insert("path".into(), Value::Table(Table::new()));
        }
        self.without(|cc| OWN.iter().any(|prefix| cc.starts_with(prefix)));
        Ok(())
    }

    /// Gives a flow another controller, without the previous one's parameters.
    ///
    /// # Errors
    /// If there is no such flow.
    pub fn hand_over(&mut self, flow: &str, cc: &str) -> Result<(), ScenarioError> {
        let flows = self.table.get_mut("flow").and_then(Value::as_table_mut);
        let Some(table) = flows.and_then(|flows| flows.get_mut(flow)).and_then(Value::as_table_mut) else {
            let flows = self.table.get("flow").and_then(Value::as_table);
            let names = listed(flows.into_iter().flatten().map(|(name, _)| name.as_str()));
            let problem = format!("there is no such flow (flows: {names})");
            return Err(self.error(vec![Mistake::new(join("flow", flow), problem)]));
        };
        table.insert("cc".into(), Value::String(cc.into()));
        table.remove("params");
        Ok(())
    }

    /// Replaces controllers that are not compiled in (`is_own` recognizes their names), for flows that never run
    /// because only the path is needed.
    pub fn without(&mut self, is_own: impl Fn(&str) -> bool) {
        let Some(Value::Table(flows)) = self.table.get_mut("flow") else { return };
        for table in flows.iter_mut().filter_map(|(_, flow)| flow.as_table_mut()) {
            if table.get("cc").and_then(Value::as_str).is_some_and(&is_own) {
                without_own(table);
            }
        }
    }

    /// Adds to each mistake the line of its key, or of the nearest enclosing table in the file.
    pub fn error(&self, mut mistakes: Vec<Mistake>) -> ScenarioError {
        for mistake in &mut mistakes {
            mistake.line = self.line(&mistake.key);
        }
        mistakes.sort_by_key(|mistake| (mistake.line.is_none(), mistake.line));
        ScenarioError { file: self.file.clone(), mistakes }
    }
}

/// Sets a compiled-in controller that accepts the flow's application, for a flow that never runs.
fn without_own(table: &mut Table) {
    let calls = table.contains_key("bundle") || table.contains_key("rtp") || {
        let app = table.get("app").and_then(|app| app.get("kind")).and_then(Value::as_str);
        app == Some("encoder")
    };
    table.insert("cc".into(), Value::String(if calls { "gcc" } else { USUAL_CC }.into()));
    table.remove("params");
}

impl Document {
    /// Whether a key is in the file, or was set.
    pub(super) fn says(&self, key: &str) -> bool {
        self.lines.contains_key(key) || self.set.iter().any(|set| within(key, set))
    }

    /// The line of a key, or of the nearest enclosing table; `None` for keys that were set and are not in the file.
    fn line(&self, key: &str) -> Option<usize> {
        if self.set.iter().any(|set| within(key, set)) {
            return None;
        }
        let around = key.char_indices().rev().filter(|&(_, c)| c == '.' || c == '[').map(|(end, _)| &key[..end]);
        [key].into_iter().chain(around).find_map(|key| self.lines.get(key).copied())
    }
}

/// Whether the path `key` is `outer` or lies within it.
fn within(key: &str, outer: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> LineStarts {
        LineStarts(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|&newline| newline < at) + 1
    }
}

/// Collects where each key stands in the text.
fn note_places(table: &DeTable<'_>, path: &str, places: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let here = join(path, key.get_ref());
        note_places_in(value, &here, places);
        places.insert(here, key.span().start);
    }
}

fn note_places_in(value: &Spanned<DeValue<'_>>, path: &str, places: &mut BTreeMap<String, usize>) {
    match value.get_ref() {
        DeValue::Table(table) => note_places(table, path, places),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let here = format!("{path}[{index}]");
                note_places_in(item, &here, places);
                places.insert(here, item.span().start);
            }
        }
        _ => {}
    }
}

/// The mistake for a key or table that appears twice in the file; `places` has the first.
fn twice(
    error: &toml::de::Error,
    text: &str,
    starts: &LineStarts,
    places: &BTreeMap<String, usize>,
) -> Option<Mistake> {
    let span = error.span().filter(|_| error.message().contains("duplicate key"))?;
    let (at, line, name) = (span.start, starts.line(span.start), text.get(span)?.trim());
    let above: Vec<(usize, String)> = headers(text).filter(|(header, _)| *header < line).collect();
    let (key, first) = match headers(text).find(|(header, _)| *header == line) {
        // Of two tables with one name, the parser reports the second.
        Some((_, table)) => {
            let first = above.iter().find(|(_, earlier)| *earlier == table).map(|(line, _)| *line);
            (table, first)
        }
        None => {
            let table = above.last().map_or("", |(_, table)| table.as_str());
            let last = join_written(name);
            let is_like = |key: &str| {
                let rest = key.strip_prefix(table).map(|rest| rest.trim_start_matches('.'));
                rest.and_then(|rest| rest.strip_suffix(last.as_str())).is_some_and(|r| r.is_empty() || r.ends_with('.'))
            };
            let like = places.iter().filter(|(key, place)| **place < at && is_like(key));
            let first = like.max_by_key(|(_, place)| **place);
            (first.map_or(last.clone(), |(key, _)| key.clone()), first.map(|(_, place)| starts.line(*place)))
        }
    };
    let earlier = first.map(|first| format!(", after line {first}")).unwrap_or_default();
    let problem = format!("stands here a second time{earlier}: leave one out");
    Some(Mistake { line: Some(line), column: None, key, problem })
}

/// The lines that look like table headers, with the tables' paths.
fn headers(text: &str) -> impl Iterator<Item = (usize, String)> {
    let of_line = |(index, line): (usize, &str)| {
        let path = line.trim_start().strip_prefix('[')?.trim_start_matches('[').split_once(']')?.0;
        Some((index + 1, join_written(path)))
    };
    text.lines().enumerate().filter_map(of_line)
}

/// A path in the user's notation, as messages write it.
fn join_written(path: &str) -> String {
    let steps = split(path).unwrap_or_default();
    steps.iter().fold(String::new(), |path, step| if let Step::Key(key) = step { join(&path, key) } else { path })
}

/// Whole numbers above 64 bits, which no key can take.
fn beyond_numbers(table: &DeTable<'_>, node: Option<Node<'_>>, path: &str, found: &mut Vec<Mistake>) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let child = node.and_then(|node| {
            let kinds = node.variants().map(|kinds| kinds.into_iter().map(|(_, kind)| kind).collect());
            kinds.unwrap_or_else(|| vec![node]).iter().find_map(|kind| kind.child(name))
        });
        beyond_number(value.get_ref(), child, &join(path, name), found);
    }
}

fn beyond_number(value: &DeValue<'_>, node: Option<Node<'_>>, path: &str, found: &mut Vec<Mistake>) {
    match value {
        DeValue::Table(table) => beyond_numbers(table, node, path, found),
        DeValue::Array(items) => {
            let item_node = node.and_then(|node| node.get("items")).map(Node::new);
            for (index, item) in items.iter().enumerate() {
                beyond_number(item.get_ref(), item_node, &format!("{path}[{index}]"), found);
            }
        }
        DeValue::Integer(number) if i64::from_str_radix(number.as_str(), number.radix()).is_err() => {
            let bound = |key: &str| node.and_then(|node| node.get(key)).map(number_text);
            let min = bound("minimum").unwrap_or_else(|| i64::MIN.to_string());
            let max = bound("maximum").unwrap_or_else(|| i64::MAX.to_string());
            found.push(Mistake::new(path, format!("`{number}` must be a number from {min} to {max}")));
        }
        _ => {}
    }
}

/// A step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table, by this key.
    Key(String),
    /// Into an array, by this index from 0.
    Index(usize),
}

/// The path with one more step, as messages write it.
#[must_use]
pub fn joined(path: &str, step: &Step) -> String {
    match step {
        Step::Key(key) => join(path, key),
        Step::Index(index) => format!("{path}[{index}]"),
    }
}

/// Splits `a."b c".d[0]` into its steps.
///
/// # Errors
/// A message that says what is wrong with it.
pub fn split(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path.trim();
    loop {
        if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
            let Some((key, after)) = rest[1..].split_once(quote) else {
                return Err(format!("the quote {quote} is not closed"));
            };
            steps.push(Step::Key(key.into()));
            rest = after.trim_start();
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let key = rest[..end].trim();
            if key.is_empty() {
                return Err("not a path of keys with dots between, such as `flow.media.cc`".into());
            }
            steps.push(Step::Key(key.into()));
            rest = &rest[end..];
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']').unwrap_or((inner, ""));
            let index = index.trim().parse().map_err(|_| format!("`[{index}]` is not a place in an array"))?;
            steps.push(Step::Index(index));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.trim().is_empty() => return Ok(steps),
            None => return Err(format!("`{rest}` follows where a dot is expected")),
        }
    }
}

/// Reads a value: as TOML if possible, else as a string.
fn read_value(text: &str, node: Node<'_>) -> Value {
    let as_toml = toml::from_str::<Table>(&format!("value = {text}")).ok().filter(|table| table.len() == 1);
    match as_toml.and_then(|mut table| table.remove("value")) {
        // A name may look like a number.
        Some(value) if value.is_str() || node.kind() != "string" => value,
        _ => Value::String(text.into()),
    }
}

/// Whether this is the path of a cell's stations.
fn is_stations(path: &str) -> bool {
    path.starts_with("cell.") && path.ends_with(".station")
}

fn put(at: &mut Value, node: Node<'_>, path: &str, steps: &[Step], text: &str) -> Result<(), Mistake> {
    let Some((step, rest)) = steps.split_first() else {
        *at = read_value(text, node);
        return Ok(());
    };
    let key = match step {
        Step::Index(index) => {
            let here = format!("{path}[{index}]");
            let item = node.get("items").map(Node::new).or_else(|| node.drawn().map(Node::named));
            let (Some(item), Value::Array(entries)) = (item, at) else {
                return Err(Mistake::new(here, "there is no array here".to_owned()));
            };
            let count = entries.len();
            let Some(entry) = entries.get_mut(*index) else {
                return Err(Mistake::new(here, format!("the array has {count} entries, counted from 0")));
            };
            return put(entry, item, &here, rest, text);
        }
        Step::Key(key) => key.as_str(),
    };
    let here = join(path, key);
    // A table with a kind accepts the keys of all its kinds here: the kind may be set later.
    let variants: Vec<Node<'_>> = if node.drawn().is_some() {
        node.shapes().collect()
    } else {
        node.variants().map_or_else(|| vec![node], |kinds| kinds.into_iter().map(|(_, variant)| variant).collect())
    };
    let Some(child) = variants.iter().find_map(|variant| variant.child(key)) else {
        let known: Vec<&str> = variants.iter().flat_map(|variant| variant.keys()).collect();
        if known.is_empty() {
            return Err(Mistake::new(here, format!("`{path}` is not a table")));
        }
        let hint = hint(key, known.iter().copied());
        // No kind has this key, so list the keys of the table's current kind.
        let (of_kind, known) = match node.of_kind(at) {
            Some((kind, variant)) => (format!(" in a table of kind `{kind}`"), variant.keys()),
            None => (String::new(), known),
        };
        let known = allowed(key, &known);
        return Err(Mistake::new(here, format!("there is no such key{of_kind}{hint} ({known})")));
    };
    if !at.is_table() {
        *at = Value::Table(Table::new());
    }
    let Value::Table(table) = at else { return Ok(()) };
    // Links, flows and cells are named in the file, so a new name would be a typo. A controller's parameters may be
    // new.
    if node.names_of().is_some()
        && (matches!(path, "flow" | "link" | "cell") || is_stations(path))
        && !table.contains_key(key)
    {
        let hint = hint(key, table.keys().map(String::as_str));
        let known = listed(table.keys().map(String::as_str));
        let what = if is_stations(path) { "station" } else { path };
        return Err(Mistake::new(here, format!("the scenario has no such {what}{hint} (it has {known})")));
    }
    put(table.entry(key).or_insert_with(|| Value::Table(Table::new())), child, &here, rest, text)
}
