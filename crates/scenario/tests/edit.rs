//! An edit changes what it says and nothing else.

use paceline_scenario::Document;
use paceline_scenario::edit::{edit, edit_by_json};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use toml::{Table, Value};

fn edited(text: &str, changes: &[(&str, Json)]) -> String {
    let changes: Vec<_> = changes.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
    edit(text, &changes).unwrap()
}

const SCENARIO: &str = r#"# A file, and what it is for.

duration = "60 s"   # long enough

# All links.

# The narrow one.
[link.bottleneck]
rate = "10 Mbit/s"  # of the line
queue = { kind = "red", limit = "50 packets" }
rate_schedule = [
  { at = "0 s", rate = "1 Mbit/s" },   # begins
  { at = "40 s", rate = "2.5 Mbit/s" }
]
loss.kind = "bernoulli"

# Two flows follow.

[flow."a b"]
cc = "cubic"
# nothing special
start = "1 s"

[flow.b]
cc = "vegas"
[flow.b.params]
alpha = 1.0

# The end.
"#;

/// The lines in which two texts differ: those gone, and those new.
fn difference(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (mut gone, mut new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    while !gone.is_empty() && !new.is_empty() && gone[0] == new[0] {
        gone.remove(0);
        new.remove(0);
    }
    while !gone.is_empty() && gone.last() == new.last() {
        gone.pop();
        new.pop();
    }
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    (owned(gone), owned(new))
}

fn check(changes: &[(&str, Json)], gone: &[&str], new: &[&str]) {
    let after = edited(SCENARIO, changes);
    let (was, is) = difference(SCENARIO, &after);
    assert_eq!(
        (was, is),
        (gone.iter().map(|&s| s.into()).collect(), new.iter().map(|&s| s.into()).collect()),
        "{after}"
    );
    after.parse::<Table>().unwrap();
}

#[test]
fn a_value_changes_where_it_stands() {
    check(
        &[("duration", json!("5 s"))],
        &["duration = \"60 s\"   # long enough"],
        &["duration = \"5 s\"   # long enough"],
    );
    check(
        &[("link.bottleneck.rate", json!("1 kbit/s"))],
        &["rate = \"10 Mbit/s\"  # of the line"],
        &["rate = \"1 kbit/s\"  # of the line"],
    );
    check(&[("link.bottleneck.loss.kind", json!("burst"))], &["loss.kind = \"bernoulli\""], &["loss.kind = \"burst\""]);
    check(
        &[("link.bottleneck.rate_schedule[1].rate", json!(5))],
        &["  { at = \"40 s\", rate = \"2.5 Mbit/s\" }"],
        &["  { at = \"40 s\", rate = 5 }"],
    );
    check(&[("flow.\"a b\".cc", json!("bbr"))], &["cc = \"cubic\""], &["cc = \"bbr\""]);
    check(&[("flow.b.params.alpha", json!(1.5))], &["alpha = 1.0"], &["alpha = 1.5"]);
    // what is so already stays as it is written
    check(&[("flow.b.params.alpha", json!(1)), ("duration", json!("60 s"))], &[], &[]);
}

#[test]
fn a_new_key_is_written_as_its_neighbours_are() {
    check(&[("seed", json!(7))], &[], &["seed = 7"]);
    let queue = "queue = { kind = \"red\", limit = \"50 packets\" }";
    check(
        &[("link.bottleneck.queue.ecn", json!(true))],
        &[queue],
        &["queue = { kind = \"red\", limit = \"50 packets\", ecn = true }"],
    );
    check(&[("link.bottleneck.loss.rate", json!(0.5))], &[], &["loss.rate = 0.5"]);
    check(&[("flow.b.params.beta", json!(3))], &[], &["beta = 3"]);
    check(&[("flow.\"a b\".app.kind", json!("stream"))], &[], &["app = { kind = \"stream\" }"]);
    check(&[("flow.\"a b\".app", json!({ "kind": "stream" }))], &[], &["app = { kind = \"stream\" }"]);
    check(&[("flow.c.cc", json!("bbr"))], &[], &["[flow.c]", "cc = \"bbr\"", ""]);
    check(
        &[("flow.\"c d\"", json!({ "cc": "bbr", "app": { "kind": "web" } }))],
        &[],
        &["[flow.\"c d\"]", "cc = \"bbr\"", "app = { kind = \"web\" }", ""],
    );
    check(&[("access.receiver.delay", json!("1 ms"))], &[], &["[access]", "receiver = { delay = \"1 ms\" }", ""]);
    check(
        &[("link.bottleneck.rate_schedule", json!([{ "at": "0 s", "rate": "1 Mbit/s" }, 2, 3]))],
        &["  { at = \"40 s\", rate = \"2.5 Mbit/s\" }"],
        &["  2,", "  3"],
    );
}

#[test]
fn a_removed_key_takes_its_own_comment_alone() {
    check(&[("link.bottleneck.rate", Json::Null)], &["rate = \"10 Mbit/s\"  # of the line"], &[]);
    check(&[("flow.\"a b\".start", Json::Null)], &["# nothing special", "start = \"1 s\""], &[]);
    check(
        &[("link.bottleneck.queue.limit", Json::Null)],
        &["queue = { kind = \"red\", limit = \"50 packets\" }"],
        &["queue = { kind = \"red\" }"],
    );
    check(
        &[("link.bottleneck.queue.kind", Json::Null)],
        &["queue = { kind = \"red\", limit = \"50 packets\" }"],
        &["queue = { limit = \"50 packets\" }"],
    );
    check(&[("flow.b", Json::Null)], &["[flow.b]", "cc = \"vegas\"", "[flow.b.params]", "alpha = 1.0", ""], &[]);
    // the comments of paragraphs above it stay
    check(
        &[("flow.\"a b\"", Json::Null)],
        &["[flow.\"a b\"]", "cc = \"cubic\"", "# nothing special", "start = \"1 s\"", ""],
        &[],
    );
    check(&[("duration", Json::Null)], &["duration = \"60 s\"   # long enough", ""], &[]);
    check(
        &[("link.bottleneck.rate_schedule[0]", Json::Null)],
        &["  { at = \"0 s\", rate = \"1 Mbit/s\" },   # begins"],
        &[],
    );
    let queue = "a = [ # all\n  1, # one\n  # two\n  2, # its own\n  3 # three\n] # end\n";
    let without = |index: usize| edited(queue, &[(&format!("a[{index}]"), Json::Null)]);
    assert_eq!(without(0), "a = [ # all\n  # two\n  2, # its own\n  3 # three\n] # end\n");
    assert_eq!(without(1), "a = [ # all\n  1, # one\n  3 # three\n] # end\n");
    assert_eq!(without(2), "a = [ # all\n  1, # one\n  # two\n  2 # its own\n] # end\n");
    // nothing is there
    for path in ["nothing", "flow.x.cc", "link.bottleneck.rate.x", "link.bottleneck.rate_schedule[7]", "duration[0]"] {
        check(&[(path, Json::Null)], &[], &[]);
    }
}

#[test]
fn the_opening_comment_stays_on_top() {
    let text = "# What it is for.\n\n# A link.\n[link.b]\nrate = \"1 Mbit/s\"\n";
    let after = edited(text, &[("seed", json!(1)), ("duration", json!("1 s"))]);
    assert_eq!(
        after,
        "# What it is for.\n\nseed = 1\nduration = \"1 s\"\n\n# A link.\n[link.b]\nrate = \"1 Mbit/s\"\n"
    );
    assert_eq!(edited("", &[("flow.a.cc", json!("bbr"))]), "[flow.a]\ncc = \"bbr\"\n");
    assert_eq!(
        edited("flow.a.cc = \"bbr\"\n", &[("flow.b.cc", json!("c"))]),
        "flow.a.cc = \"bbr\"\nflow.b.cc = \"c\"\n"
    );
    assert_eq!(edited("flow = { a = {} }\n", &[("flow.b.cc", json!("c"))]), "flow = { a = {}, b = { cc = \"c\" } }\n");
    let tables = "[[flow.a.app.traces]]\nrate = 1\n[[flow.a.app.traces]]\nrate = 2 # more\n";
    assert_eq!(edited(tables, &[("flow.a.app.traces[1].rate", json!(3))]), tables.replace("2 #", "3 #"));
    assert_eq!(edited(tables, &[("flow.a.app.traces[0]", Json::Null)]), "[[flow.a.app.traces]]\nrate = 2 # more\n");
}

#[test]
fn what_cannot_be_is_said_in_words() {
    let said = |path: &str, value: Json| edit(SCENARIO, &[(path.to_owned(), value)]).unwrap_err();
    assert_eq!(said("flow..cc", json!(1)), "flow..cc: not a path of keys with dots between, such as `flow.media.cc`");
    assert_eq!(said("duration[0]", json!(1)), "duration[0]: there is no array here");
    assert_eq!(said("new[0].x", json!(1)), "new[0]: there is no array here");
    assert_eq!(
        said("link.bottleneck.rate_schedule[2].at", json!("1 s")),
        "link.bottleneck.rate_schedule[2]: the array has 2 entries, counted from 0"
    );
    assert_eq!(said("flow.b.params", json!({ "x": [1, null] })), "flow.b.params.x[1]: TOML has no null");
    assert!(said("seed", json!(u64::MAX)).starts_with("seed: `18446744073709551615` must be a number from -92"));
    assert_eq!(
        edit("a = 1\nb = =\n", &[]).unwrap_err().split(": ").take(2).collect::<Vec<_>>(),
        ["the text:2:5", "not TOML"]
    );
    assert_eq!(edit_by_json("a = 1 # x\n", r#"[["a", 2], ["b", null]]"#).unwrap(), "a = 2 # x\n");
    assert!(edit_by_json("", "{").unwrap_err().starts_with("the changes are not JSON: "));
}

/// Every path in a table, with its value.
fn paths(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    if !path.is_empty() {
        found.push((path.to_owned(), value.clone()));
    }
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let dot = if path.is_empty() { "" } else { "." };
                paths(value, &format!("{path}{dot}{key:?}"), found);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                paths(value, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Another value of about the same kind.
fn other(value: &Value) -> Json {
    match value {
        Value::String(text) => json!(format!("{text} #\"no\" comment")),
        Value::Integer(number) => json!(number + 1),
        Value::Float(number) => json!(number + 0.5),
        Value::Boolean(on) => json!(!on),
        Value::Array(entries) => Json::Array(entries.iter().map(other).chain([json!("one more")]).collect()),
        Value::Table(table) => {
            let mut entries: serde_json::Map<String, Json> =
                table.iter().map(|(key, value)| (key.clone(), other(value))).collect();
            entries.insert("one more".into(), json!({ "a": [1, { "b": false }] }));
            Json::Object(entries)
        }
        Value::Datetime(_) => json!("a day"),
    }
}

/// A value as the command line has it.
fn as_toml(value: &Json) -> String {
    serde_json::from_value::<Value>(value.clone()).unwrap().to_string()
}

fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_key_of_every_example_is_set_as_set_does_and_removed() {
    let mut many = 0;
    for (file, text) in examples() {
        let table: Table = text.parse().unwrap();
        let mut found = Vec::new();
        paths(&Value::Table(table.clone()), "", &mut found);
        for (path, value) in found {
            let new = other(&value);
            let after = edit(&text, &[(path.clone(), new.clone())]).unwrap();
            let mut document = Document::parse(&text, &file).unwrap();
            document.set(&path, &as_toml(&new)).unwrap();
            let is: Table = after.parse().unwrap_or_else(|error| panic!("{file}, {path}: {error}\n{after}"));
            assert_eq!(is, document.to_toml().parse::<Table>().unwrap(), "{file}, {path}\n{after}");
            assert_eq!(comments(&after), comments(&text), "{file}, {path}\n{after}");
            // and back again
            let old = serde_json::to_value(&value).unwrap();
            let back = edit(&after, &[(path.clone(), old)]).unwrap();
            assert_eq!(back.parse::<Table>().unwrap(), table, "{file}, {path}\n{back}");
            if value.is_str() || value.is_integer() || value.is_bool() {
                let (before, after) = difference(&text, &after);
                assert_eq!((before.len(), after.len()), (1, 1), "{file}, {path}: {before:?} {after:?}");
            }
            let without = edit(&text, &[(path.clone(), Json::Null)]).unwrap();
            let mut left = Vec::new();
            paths(&Value::Table(without.parse().unwrap()), "", &mut left);
            let mut expected = Vec::new();
            paths(&Value::Table(removed(table.clone(), &path)), "", &mut expected);
            assert_eq!(said(left), said(expected), "{file}, without {path}\n{without}");
            many += 1;
        }
    }
    assert!(many > 500, "{many}");
}

/// What is not a table: tables without anything in them may go.
fn said(paths: Vec<(String, Value)>) -> Vec<(String, Value)> {
    paths.into_iter().filter(|(_, value)| !value.is_table() && !value.is_array()).collect()
}

/// The comments of a text in order.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.find("# ").map(|at| line[at..].trim_end())).collect()
}

/// A table without what lies at a path.
fn removed(table: Table, path: &str) -> Table {
    use paceline_scenario::{Step, split};
    let steps = split(path).unwrap();
    let (last, way) = steps.split_last().unwrap();
    let mut whole = Value::Table(table);
    let mut at = &mut whole;
    for step in way {
        at = match step {
            Step::Key(key) => at.get_mut(key.as_str()).unwrap(),
            Step::Index(index) => at.get_mut(*index).unwrap(),
        };
    }
    match last {
        Step::Key(key) => {
            at.as_table_mut().unwrap().remove(key);
        }
        Step::Index(index) => {
            at.as_array_mut().unwrap().remove(*index);
        }
    }
    whole.as_table().unwrap().clone()
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("flow".to_owned()), Just("a b".to_owned()), Just("link".to_owned()), "[a-c]", "[a-c]\\.[#=' ]"]
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9).prop_map(|x: f64| json!(x + 0.123)),
        ".{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::btree_map(key(), inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    /// Edits of any keys to any values: the text stays TOML, says what was set, and all else that it said.
    #[test]
    fn what_was_set_is_there_and_nothing_else_is_changed(
        changes in prop::collection::vec((prop::collection::vec(key(), 1..4), prop::option::weighted(0.8, value())), 1..6),
    ) {
        let mut text = SCENARIO.to_owned();
        for (keys, value) in changes {
            let path = keys.iter().fold(String::new(), |mut path, key| {
                let _ = write!(path, "{}\"{key}\"", if path.is_empty() { "" } else { "." });
                path
            });
            let before: Table = text.parse().unwrap();
            let new = value.clone().unwrap_or(Json::Null);
            text = edit(&text, &[(path.clone(), new)]).unwrap();
            let after: Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}\n{text}"));
            let mut expected = before.clone();
            expect(&mut expected, &keys, value.map(|value| serde_json::from_value(value).unwrap()));
            let of = |table: Table| {
                let mut found = Vec::new();
                paths(&Value::Table(table), "", &mut found);
                said(found)
            };
            prop_assert_eq!(of(after), of(expected), "{}\n{}", path, &text);
        }
    }

    /// No text and no path makes it panic.
    #[test]
    fn nothing_panics(text in ".{0,40}", path in ".{0,20}", value in value()) {
        let _ = edit(&text, &[(path.clone(), value.clone())]);
        let _ = edit(SCENARIO, &[(path, value)]);
    }
}

/// Sets or removes a value in a table.
fn expect(table: &mut Table, keys: &[String], value: Option<Value>) {
    let Some((key, rest)) = keys.split_first() else { return };
    match (rest, value) {
        ([], Some(value)) => {
            table.insert(key.clone(), value);
        }
        ([], None) => {
            table.remove(key);
        }
        (rest, value) => {
            if value.is_none() && !table.get(key).is_some_and(Value::is_table) {
                return;
            }
            if !table.get(key).is_some_and(Value::is_table) {
                table.insert(key.clone(), Value::Table(Table::new()));
            }
            if let Some(Value::Table(inner)) = table.get_mut(key) {
                expect(inner, rest, value);
            }
        }
    }
}
