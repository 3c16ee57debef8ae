//! docs/scenario.md, generated from the schema: every key with type, default, range and meaning.

use crate::error::listed;
use crate::walk::{Node, number_text};
use serde_json::Value as Json;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
<!-- Made from the schema by a test of crate scenario: PACELINE_BLESS=1 cargo test -p paceline-scenario docs:: -->
# The scenario file

A scenario is a TOML file with a network, its flows and a duration. Begin with a commented example in
[examples/](../examples/README.md). Keys have defaults unless they are required. An unknown key is an error, which
suggests the likely one. `paceline schema` prints the JSON Schema of this page.

| value | units | example |
|---|---|---|
| time | `ns us ms s min h`; instants count from the run's start | `\"50 ms\"` |
| rate | `bit/s kbit/s Mbit/s Gbit/s`, also `bps kbps Mbps Gbps` and `b/s kb/s Mb/s Gb/s`; bytes: `B/s kB/s MB/s GB/s` | `\"10 Mbit/s\"` |
| size | `B kB MB GB` (decimal), `KiB MiB GiB` | `\"50 kB\"` |
| share | per cent, or a number from 0 to 1 | `\"1 %\"` |

`--set` and `--vary` address a key by its path: `flow.media.app.media_rate`, `link.bottleneck.queue.kind`,
`link.bottleneck.rate_schedule[0].rate`.

## A value of each instance

A flow with `count = 3` has three instances. Keys of type *each* may give each instance its own value:

| value | meaning |
|---|---|
| `\"40 ms\"` | the same for all |
| `[\"40 ms\", \"41 ms\", \"55 ms\"]` | one for each instance in order, as many as `count` |
| `{ from = \"40 ms\", to = \"60 ms\" }` | from the first instance to the last, in equal steps |
| `{ uniform = [\"20 ms\", \"440 ms\"] }` | drawn between two values |
| `{ exponential = \"50 ms\", within = [\"1 ms\", \"1 s\"] }` | drawn, exponential with this mean |
| `{ normal = [\"80 ms\", \"20 ms\"], within = [\"10 ms\", \"1 s\"] }` | drawn, normal with this mean and standard deviation |
| `{ lognormal = \"80 ms\", sigma = 0.5, within = [\"10 ms\", \"1 s\"] }` | drawn, log-normal with this median; `sigma` (0.001 to 10) is the standard deviation of the natural logarithm |

Draws depend on the seed and the instance's name. A draw outside `within` is repeated; at least 1 % of the distribution
must lie inside.

    [flow.client]                            # 41 clients, each with an access link of its own
    count = 41
    rtt = { from = \"40 ms\", to = \"44 ms\" }
    access.receiver.rate = { lognormal = \"20 Mbit/s\", sigma = 0.7, within = [\"1 Mbit/s\", \"1 Gbit/s\"] }
    access.receiver.loss = { uniform = [\"0 %\", \"1 %\"] }
";

/// The page.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut done: Vec<&str> = Vec::new();
    section(&mut page, "The file", "", Node::root(), &mut done);
    page
}

/// A table's keys, then the tables in it.
fn section<'a>(page: &mut String, title: &str, path: &str, node: Node<'a>, done: &mut Vec<&'a str>) {
    let _ = write!(page, "\n## {title}\n");
    paragraph(page, node);
    match node.variants() {
        Some(variants) => {
            let default = node.get("x-kind").and_then(Json::as_str).unwrap_or_default();
            for (kind, variant) in &variants {
                let note = if *kind == default { " (the default)" } else { "" };
                let _ = write!(page, "\n### `kind = \"{kind}\"`{note}\n");
                paragraph(page, *variant);
                keys(page, *variant);
            }
            for (_, variant) in variants {
                inner_sections(page, path, variant, done);
            }
        }
        None => {
            keys(page, node);
            inner_sections(page, path, node, done);
        }
    }
}

fn paragraph(page: &mut String, node: Node<'_>) {
    if let Some(text) = node.get("description").and_then(Json::as_str) {
        let _ = write!(page, "\n{}\n", one_line(text));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The tables that a table's keys hold; the page shows each kind once.
fn inner_sections<'a>(page: &mut String, path: &str, node: Node<'a>, done: &mut Vec<&'a str>) {
    for key in node.keys() {
        let Some(child) = node.child(key) else { continue };
        let (inner, here) = match (child.names_of().map(Node::new), child.get("items").map(Node::new)) {
            (Some(named), _) => (named, format!("{path}{key}.NAME")),
            (_, Some(item)) => (item, format!("{path}{key}")),
            _ => (child, format!("{path}{key}")),
        };
        let is_table = !inner.keys().is_empty() || inner.variants().is_some();
        if !is_table || done.contains(&inner.name) {
            continue;
        }
        done.push(inner.name);
        if inner.name == "BackwardTable" {
            let _ = write!(
                page,
                "\n## `[{here}]`\n\n{} Keys as in `[link.NAME]`, without `between` and `backward`.\n",
                text_of(child)
            );
            continue;
        }
        // Several keys may hold the same kind of table.
        let alike = node.keys().into_iter().filter(|other| node.child(other).is_some_and(|c| c.name == child.name));
        let titles: Vec<String> = alike.map(|other| format!("`[{path}{other}]`")).collect();
        let brackets = match child.get("items") {
            Some(_) => format!("An entry of `{here}`"),
            None if titles.len() > 1 && !child.name.is_empty() => titles.join(", "),
            None => format!("`[{here}]`"),
        };
        section(page, &brackets, &format!("{here}."), inner, done);
    }
}

fn text_of(node: Node<'_>) -> String {
    one_line(node.get("description").and_then(Json::as_str).unwrap_or_default())
}

/// The rows of a table.
fn keys(page: &mut String, node: Node<'_>) {
    let keys: Vec<&str> = node.keys().into_iter().filter(|key| *key != "kind").collect();
    if keys.is_empty() {
        page.push_str("\nNo further keys.\n");
        return;
    }
    page.push_str("\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n");
    for key in keys {
        let Some(child) = node.child(key) else { continue };
        let required = node.get("required").and_then(Json::as_array).is_some_and(|all| all.iter().any(|k| k == key));
        let default = match (required, child.get("x-default").and_then(Json::as_str), child.get("default")) {
            (true, ..) => "required".to_owned(),
            (_, Some(text), _) => text.to_owned(),
            (_, _, Some(Json::String(text))) if text.is_empty() => "empty".to_owned(),
            (_, _, Some(value)) => format!("`{}`", toml_text(value)),
            (_, _, None) => "none".to_owned(),
        };
        let _ = writeln!(page, "| `{key}` | {} | {default} | {} | {} |", kind(child), range(child), meaning(child));
    }
}

/// A JSON value as TOML writes it.
fn toml_text(value: &Json) -> String {
    match value {
        Json::Number(_) => number_text(value),
        Json::Object(entries) => {
            let inner: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key} = {}", toml_text(value))).collect();
            format!("{{ {} }}", inner.join(", "))
        }
        other => other.to_string(),
    }
}

fn kind(node: Node<'_>) -> String {
    let known = match node.name {
        "Span" => "time",
        "Rate" => "rate",
        "Size" => "size",
        "Ratio" => "share",
        "Limit" => "packets or size",
        "Distance" => "distance",
        "Power" => "power",
        "DelayedAck" => "time or `\"off\"`",
        "ClientBuffer" => "size or `\"unlimited\"`",
        "DrawSpan" => "time ([each](#a-value-of-each-instance))",
        "DrawRate" => "rate ([each](#a-value-of-each-instance))",
        "DrawRatio" => "share ([each](#a-value-of-each-instance))",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    if node.choices().is_some() {
        return "choice".into();
    }
    match node.kind() {
        "string" => "text".into(),
        "integer" => "whole number".into(),
        "number" => "number".into(),
        "boolean" => "`true` or `false`".into(),
        "array" => match node.get("items").map(Node::new) {
            Some(item) if !item.keys().is_empty() => "array of tables".into(),
            _ => "array of texts".into(),
        },
        _ if node.names_of().is_some_and(|inner| Node::new(inner).name == "ParameterValue") => {
            "table of numbers, `true` or `false`, and names".into()
        }
        _ if node.names_of().is_some() => "tables by name".into(),
        _ => "table".into(),
    }
}

fn range(node: Node<'_>) -> String {
    let text = |key: &str| node.get(key).and_then(Json::as_str).map(str::to_owned);
    let number = |key: &str| node.get(key).map(number_text);
    let low = text("x-min").or_else(|| number("minimum"));
    let high = text("x-max").or_else(|| number("maximum"));
    match (low, high, node.choices()) {
        (_, _, Some(choices)) => listed(choices.into_iter()),
        (Some(low), Some(high), _) => format!("{low} to {high}"),
        (Some(low), None, _) => format!("at least {low}"),
        (None, Some(high), _) => format!("at most {high}"),
        (None, None, _) if node.name == "Ratio" => "0 to 1".into(),
        _ => String::new(),
    }
}

fn meaning(node: Node<'_>) -> String {
    let mut text = text_of(node);
    if node.choices().is_some() {
        let variants = node.alternatives();
        let said: Vec<String> = variants
            .iter()
            .filter_map(|v| Some(format!("`{}`: {}", v["const"].as_str()?, one_line(v["description"].as_str()?))))
            .collect();
        if !said.is_empty() {
            text = format!("{text} {}", said.join(" "));
        }
    }
    text.replace('|', "\\|")
}
