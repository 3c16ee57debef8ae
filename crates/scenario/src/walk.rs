//! Validates a TOML document against the schema of the scenario file. Reports unknown keys, wrong types, unreadable
//! quantities and exceeded bounds, all at once, each with its path. Serde then reads the document.

use crate::error::{Mistake, allowed, hint, join, listed};
use crate::keys::file::File;
use crate::keys::parameters;
use crate::keys::values::{ClientBuffer, DelayedAck, Distance, Limit, Power};
use paceline_units::{Rate, Ratio, Size, Span};
use serde_json::Value as Json;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;
use toml::Value;

static SCHEMA: LazyLock<Json> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(File).to_value();
    optional_kinds(&mut schema);
    parameters::describe(&mut schema);
    let (version, _) = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap_or_default();
    schema["$id"] = format!("urn:paceline:schema:scenario:{version}").into();
    schema
});

/// Makes `kind` optional in the variant that is the default. The other variants keep it required, or a table without it
/// would match several of them.
fn optional_kinds(schema: &mut Json) {
    let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) else { return };
    for definition in definitions.values_mut() {
        let Some(default) = definition.get("x-kind").cloned() else { continue };
        for variant in definition.get_mut("oneOf").and_then(Json::as_array_mut).into_iter().flatten() {
            if variant["properties"]["kind"]["const"] == default
                && let Some(required) = variant.get_mut("required").and_then(Json::as_array_mut)
            {
                required.retain(|key| key != "kind");
            }
        }
    }
}

/// The schema of a scenario file.
pub(super) fn schema() -> &'static Json {
    &SCHEMA
}

/// A schema together with the target of its `$ref`; keys beside the reference take precedence.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    outer: &'a Json,
    inner: &'a Json,
    /// Name of the definition.
    pub name: &'a str,
}

impl<'a> Node<'a> {
    /// The whole scenario file.
    pub fn root() -> Node<'static> {
        Node { outer: schema(), inner: schema(), name: "" }
    }

    /// A definition by name.
    pub fn named(name: &'a str) -> Node<'a> {
        let definition = &SCHEMA["$defs"][name];
        Node { outer: definition, inner: definition, name }
    }

    /// Follows references.
    pub fn new(outer: &'a Json) -> Node<'a> {
        let mut inner = outer;
        let mut name = "";
        loop {
            if let Some(reference) = inner.get("$ref").and_then(Json::as_str) {
                name = reference.rsplit('/').next().unwrap_or("");
                inner = &SCHEMA["$defs"][name];
            } else if let Some(choices) = inner.get("anyOf").and_then(Json::as_array)
                && choices.iter().any(|c| c["type"] == "null")
                && let Some(choice) = choices.iter().find(|c| c["type"] != "null")
            {
                inner = choice;
            } else {
                return Node { outer, inner, name };
            }
        }
    }

    pub fn get(self, key: &str) -> Option<&'a Json> {
        self.outer.get(key).or_else(|| self.inner.get(key))
    }

    fn text(self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Json::as_str)
    }

    /// `string`, `integer`, ...: the type other than `null`.
    pub fn kind(self) -> &'a str {
        match self.inner.get("type") {
            Some(Json::String(one)) => one,
            Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).find(|t| *t != "null").unwrap_or(""),
            _ => "",
        }
    }

    /// The allowed names, if it is a closed set of strings.
    pub fn choices(self) -> Option<Vec<&'a str>> {
        let names = |list: &'a Json| list.as_array()?.iter().map(Json::as_str).collect::<Option<Vec<_>>>();
        if let Some(list) = self.inner.get("enum") {
            return names(list);
        }
        self.inner.get("oneOf")?.as_array()?.iter().map(|c| c.get("const").and_then(Json::as_str)).collect()
    }

    /// The alternatives of a closed set, each with its description.
    pub fn alternatives(self) -> &'a [Json] {
        self.inner.get("oneOf").and_then(Json::as_array).map_or(&[], Vec::as_slice)
    }

    /// The variants of a table with a `kind`: names and schemas.
    pub fn variants(self) -> Option<Vec<(&'a str, Node<'a>)>> {
        self.inner.get("x-kind")?;
        let variants = self.inner.get("oneOf")?.as_array()?;
        variants.iter().map(|v| Some((v["properties"]["kind"]["const"].as_str()?, Node::new(v)))).collect()
    }

    /// The kind of a table, given or by default, and its schema.
    pub fn of_kind(self, table: &Value) -> Option<(&'a str, Node<'a>)> {
        let kind = table.get("kind").and_then(Value::as_str).or_else(|| self.text("x-kind"));
        self.variants()?.into_iter().find(|(name, _)| Some(*name) == kind)
    }

    /// The type of the values, if each instance of a flow may have its own.
    pub fn drawn(self) -> Option<&'a str> {
        self.name.strip_prefix("Draw")
    }

    /// The kinds of table that such a value can be.
    pub fn shapes(self) -> impl Iterator<Item = Node<'a>> {
        let any = self.inner.get("anyOf").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        any.iter().map(Node::new).filter(|shape| !shape.keys().is_empty())
    }

    /// The required keys of a table.
    pub fn required(self) -> impl Iterator<Item = &'a str> {
        self.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    }

    /// The keys of a table.
    pub fn keys(self) -> Vec<&'a str> {
        let properties = self.inner.get("properties").and_then(Json::as_object);
        properties.map(|p| p.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The schema of a key; in a table whose keys are names, that of any key.
    pub fn child(self, key: &str) -> Option<Node<'a>> {
        let own = self.inner.get("properties").and_then(|p| p.get(key));
        own.or_else(|| self.names_of()).map(Node::new)
    }

    /// The schema of the entries, if the user chooses the table's keys.
    pub fn names_of(self) -> Option<&'a Json> {
        self.inner.get("additionalProperties").filter(|a| a.is_object())
    }
}

/// Checks `value` against `node`, fills in a missing `kind`, and adds every mistake to `mistakes`.
pub(super) fn walk(value: &mut Value, node: Node<'_>, path: &str, mistakes: &mut Vec<Mistake>) {
    let before = mistakes.len();
    if let Some(problem) = quantity(value, node) {
        if let Err(problem) = problem {
            mistakes.push(Mistake::new(path, problem));
        }
        return;
    }
    if node.drawn().is_some() {
        return walk_draw(value, node, path, mistakes);
    }
    if let Some(choices) = node.choices() {
        match value.as_str() {
            Some(text) if choices.contains(&text) => {}
            Some(text) => {
                let hint = hint(text, choices.iter().copied());
                mistakes
                    .push(Mistake::new(path, format!("`{text}` must be one of {}{hint}", listed(choices.into_iter()))));
            }
            None => mistakes
                .push(Mistake::new(path, format!("{} must be one of {}", shown(value), listed(choices.into_iter())))),
        }
        return;
    }
    let Err(problem) = plain(value, node) else {
        match value {
            Value::Table(table) => walk_table(table, node, path, mistakes),
            Value::Array(items) => {
                let item = node.get("items").map(Node::new);
                for (index, entry) in items.iter_mut().enumerate() {
                    if let Some(item) = item {
                        walk(entry, item, &format!("{path}[{index}]"), mistakes);
                    }
                }
                if mistakes.len() == before
                    && let Some(count) = node.get("minItems").and_then(Json::as_u64)
                    && items.len() as u64 != count
                {
                    mistakes.push(Mistake::new(path, format!("has {} entries, but must have {count}", items.len())));
                }
            }
            _ => {}
        }
        return;
    };
    mistakes.push(Mistake::new(path, problem));
}

/// Checks a value per instance: each entry of a list, and a distribution's values, must be within the key's bounds.
fn walk_draw(value: &mut Value, node: Node<'_>, path: &str, mistakes: &mut Vec<Mistake>) {
    let Some(of) = node.drawn() else { return };
    let one = Node { outer: node.outer, ..Node::named(of) };
    let within = |value: &Value, path: String, mistakes: &mut Vec<Mistake>| {
        if let Some(Err(problem)) = quantity(value, one) {
            mistakes.push(Mistake::new(path, problem));
        }
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                within(item, format!("{path}[{index}]"), mistakes);
            }
        }
        Value::Table(table) => {
            let laws = || node.shapes().filter_map(|law| Some((law.keys().first().copied()?, law)));
            let is_there =
                |(_, law): &(&str, Node<'_>)| law.required().any(|key| key != "within" && table.contains_key(key));
            let Some((_, law)) = laws().find(is_there) else {
                let known = listed(laws().map(|(key, _)| key));
                mistakes
                    .push(Mistake::new(path, format!("must have a key that says how its values are: one of {known}")));
                return;
            };
            let before = mistakes.len();
            walk_table(table, law, path, mistakes);
            if mistakes.len() > before {
                return;
            }
            for key in law.keys() {
                match table.get(key) {
                    // A standard deviation is no value of the key.
                    Some(Value::Array(values)) if key != "normal" => {
                        for (index, value) in values.iter().enumerate() {
                            within(value, format!("{path}.{key}[{index}]"), mistakes);
                        }
                    }
                    Some(value @ Value::String(_)) => within(value, join(path, key), mistakes),
                    _ => {}
                }
            }
        }
        other => {
            if let Some(Err(problem)) = quantity(other, one) {
                let examples = match of {
                    "Span" => "\"0 s\", \"1 s\"",
                    "Rate" => "\"1 Mbit/s\", \"10 Mbit/s\"",
                    _ => "\"0 %\", \"1 %\"",
                };
                mistakes.push(Mistake::new(path, format!("{problem}, or `{{ uniform = [{examples}] }}`")));
            }
        }
    }
}

fn walk_table(table: &mut toml::Table, node: Node<'_>, path: &str, mistakes: &mut Vec<Mistake>) {
    let mut node = node;
    let mut of_kind = String::new();
    let mut others = Vec::new();
    if let Some(variants) = node.variants() {
        let default = node.text("x-kind").unwrap_or_default();
        let kind = table.entry("kind").or_insert_with(|| Value::String(default.into())).clone();
        let names = variants.iter().map(|v| v.0);
        let found = kind.as_str().and_then(|name| variants.iter().find(|v| v.0 == name));
        let Some(&(name, variant)) = found else {
            let hint = kind.as_str().map_or_else(String::new, |text| hint(text, names.clone()));
            let problem = format!("{} must be one of {}{hint}", shown(&kind), listed(names));
            mistakes.push(Mistake::new(join(path, "kind"), problem));
            return;
        };
        node = variant;
        of_kind = format!(" in a table of kind `{name}`");
        others = variants.into_iter().filter(|v| v.0 != name).collect();
    }
    let known = node.keys();
    for (key, entry) in table.iter_mut() {
        let here = join(path, key);
        if let Some(child) = node.child(key) {
            walk(entry, child, &here, mistakes);
        } else {
            let owner = others.iter().find(|(_, other)| other.keys().contains(&key.as_str()));
            let hint = match owner {
                Some((kind, _)) => format!("; it belongs to kind `{kind}`"),
                None => hint(key, known.iter().copied()),
            };
            let allowed = allowed(key, &known);
            mistakes.push(Mistake::new(here, format!("no such key{of_kind}{hint} ({allowed})")));
        }
    }
    for required in node.required() {
        if !table.contains_key(required) {
            let child = node.child(required);
            let example = match child.and_then(example) {
                Some(value) => format!(", for example `{required} = {value}`"),
                None if child.is_some_and(|child| child.names_of().is_some()) => {
                    format!(": add a table such as `[{}.name]`", join(path, required))
                }
                None => String::new(),
            };
            mistakes.push(Mistake::new(join(path, required), format!("is required{example}")));
        }
    }
}

fn example(node: Node<'_>) -> Option<String> {
    node.get("examples").and_then(|e| e.get(0)).map(Json::to_string)
}

/// A value as a message shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Table(_) => "a table".into(),
        Value::Array(_) => "an array".into(),
        other => format!("`{other}`"),
    }
}

/// Checks a value that is written as text with a unit; `None` if `node` is something else.
fn quantity(value: &Value, node: Node<'_>) -> Option<Result<(), String>> {
    Some(match node.name {
        "Span" => read::<Span>(value, node),
        "Rate" => read::<Rate>(value, node),
        "Size" => read::<Size>(value, node),
        "Ratio" => read::<Ratio>(value, node),
        "Limit" => read::<Limit>(value, node),
        "Distance" => read::<Distance>(value, node),
        "Power" => read::<Power>(value, node),
        "DelayedAck" => read::<DelayedAck>(value, node),
        "ClientBuffer" => read::<ClientBuffer>(value, node),
        "ParameterValue" => match value {
            Value::Boolean(_) | Value::Integer(_) | Value::String(_) => Ok(()),
            Value::Float(x) if x.is_finite() => Ok(()),
            other => Err(format!("{} must be a number, `true` or `false`, or a name in quotes", shown(other))),
        },
        _ => return None,
    })
}

/// Checks a quantity's text: readable, and within `x-min` and `x-max`. A bare number is read as text too, so that the
/// message asks for the unit.
fn read<T: FromStr + Bounded>(value: &Value, node: Node<'_>) -> Result<(), String>
where
    T::Err: Display,
{
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(_) | Value::Float(_) => value.to_string(),
        other => {
            let examples: Vec<String> = node
                .inner
                .get("examples")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .map(Json::to_string)
                .collect();
            let examples = if examples.is_empty() { "\"50 ms\"".into() } else { examples.join(" or ") };
            return Err(format!("{} must be a text such as {examples}", shown(other)));
        }
    };
    let parsed: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    let (low, high) = (node.text("x-min"), node.text("x-max"));
    let below = low.and_then(|t| t.parse::<T>().ok()).is_some_and(|bound| parsed.less(&bound));
    let above = high.and_then(|t| t.parse::<T>().ok()).is_some_and(|bound| bound.less(&parsed));
    if !below && !above {
        return Ok(());
    }
    Err(match (low, high) {
        (Some(low), Some(high)) => format!("`{text}` must be from {low} to {high}"),
        (Some(low), None) => format!("`{text}` must be at least {low}"),
        (None, Some(high)) => format!("`{text}` must be at most {high}"),
        (None, None) => return Ok(()),
    })
}

/// A type whose values `x-min` and `x-max` can bound.
trait Bounded {
    /// Whether this is less than `other`.
    fn less(&self, _other: &Self) -> bool {
        false
    }
}
macro_rules! bounded {
    ($($name:ident)*) => {$(
        impl Bounded for $name {
            fn less(&self, other: &Self) -> bool { self < other }
        }
    )*};
}
bounded!(Span Rate Size Ratio);
impl Bounded for Distance {}
impl Bounded for Power {}
impl Bounded for Limit {}
impl Bounded for DelayedAck {}
impl Bounded for ClientBuffer {}

/// Checks a string, number, boolean, array or table.
fn plain(value: &Value, node: Node<'_>) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{} must be {what}", shown(value)));
    match (node.kind(), value) {
        ("string", Value::String(_)) | ("boolean", Value::Boolean(_)) | ("array", Value::Array(_)) => Ok(()),
        ("object" | "", Value::Table(_)) => Ok(()),
        ("integer", Value::Integer(n)) => within(*n as f64, value, node),
        ("number", Value::Integer(n)) => within(*n as f64, value, node),
        ("number", Value::Float(x)) if x.is_finite() => within(*x, value, node),
        ("string", _) => fail("a text in quotes"),
        ("boolean", _) => fail("`true` or `false`"),
        ("integer", _) => fail("a whole number"),
        ("number", _) => fail("a number"),
        ("array", _) => fail("an array, in [ ]"),
        _ => match (node.variants(), value.as_str()) {
            (Some(kinds), Some(text)) if !kinds.is_empty() => {
                let names = kinds.iter().map(|(name, _)| *name);
                let like = names.clone().find(|name| *name == text).unwrap_or(kinds[0].0);
                fail(&format!("a table such as `{{ kind = \"{like}\" }}`; kinds are {}", listed(names)))
            }
            _ => fail("a table: `key = value` lines under a [header], or { key = value }"),
        },
    }
}

/// A bound as people write it: `1`, not `1.0`.
pub(super) fn number_text(number: &Json) -> String {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => whole.to_string(),
        (_, Some(whole), _) => whole.to_string(),
        (_, _, Some(real)) if real != 0.0 && !(1e-4..1e16).contains(&real.abs()) => format!("{real:e}"),
        (_, _, Some(real)) => real.to_string(),
        _ => number.to_string(),
    }
}

fn within(number: f64, value: &Value, node: Node<'_>) -> Result<(), String> {
    let (low, high) = (node.get("minimum").and_then(Json::as_f64), node.get("maximum").and_then(Json::as_f64));
    if low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high) {
        return Ok(());
    }
    let bound = |key| node.get(key).map(number_text).unwrap_or_default();
    Err(match (low, high) {
        (Some(_), Some(_)) => format!("`{value}` must be from {} to {}", bound("minimum"), bound("maximum")),
        (Some(_), None) => format!("`{value}` must be at least {}", bound("minimum")),
        _ => format!("`{value}` must be at most {}", bound("maximum")),
    })
}
