//! Edits of scenario text: a key is set or removed, and all else stays as it was written, comments and layout too.
//!
//! What an edit makes anew is written as the files of `examples/` are: tables of the root, and those with names of the
//! file's own (links, flows, cells), under headers; within them tables stand inline, or dotted where others are.

use paceline_sim::scenario::{Document, Step, joined, split};
use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

/// A path, and the value that it gets; null removes the key.
pub type Change = (String, Json);

/// The tables whose tables have names of the file's own.
const NAMED: [&str; 3] = ["flow", "link", "cell"];

/// The text after these changes, made one after the other.
///
/// # Errors
/// In words: the text is not TOML, a path is none or leads nowhere, or TOML has no such value.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        // in the words that the check has for it
        let said = Document::parse(text, "the text").err();
        said.map_or_else(|| format!("the text: not TOML: {}", error.message()), |error| error.to_string())
    })?;
    for (path, value) in changes {
        let steps = split(path).map_err(|problem| format!("{path}: {problem}"))?;
        let value = if value.is_null() { None } else { Some(value) };
        change(document.as_item_mut(), "", &steps, value)?;
    }
    Ok(document.to_string())
}

/// Sets what lies at the end of `steps`, or removes it.
fn change(at: &mut Item, path: &str, steps: &[Step], value: Option<&Json>) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    let here = joined(path, step);
    match step {
        Step::Index(index) => change_entry(at, &here, *index, rest, value),
        Step::Key(key) => change_key(at, (path, &here), key, rest, value),
    }
}

fn change_key(
    at: &mut Item,
    (path, here): (&str, &str),
    key: &str,
    rest: &[Step],
    value: Option<&Json>,
) -> Result<(), String> {
    let header = path.is_empty() || NAMED.contains(&path);
    if at.as_table_like().is_none() {
        if value.is_none() {
            return Ok(());
        }
        // as `--set` does: what is no table gives way to one
        replace(at, Item::Value(InlineTable::new().into()));
    }
    let root = path.is_empty();
    let inline = at.is_inline_table();
    let dotted = at.as_table().is_some_and(Table::is_dotted);
    let Some(table) = at.as_table_like_mut() else { return Err(format!("{here}: there is no table here")) };
    let Some(value) = value else {
        if rest.is_empty() {
            remove(at, key);
            return Ok(());
        }
        return table.get_mut(key).map_or(Ok(()), |child| change(child, here, rest, None));
    };
    if let Some(child) = table.get_mut(key).filter(|child| !child.is_none()) {
        return if rest.is_empty() { set(child, here, value) } else { change(child, here, rest, Some(value)) };
    }
    // what is not there yet
    let mut child = if let Some(Step::Index(_)) = rest.first() {
        return Err(format!("{here}: there is no array here"));
    } else if rest.is_empty() && !(header && value.is_object()) {
        Item::Value(of_json(here, value)?)
    } else if inline || !(header || dotted) {
        Item::Value(InlineTable::new().into())
    } else {
        let mut table = Table::new();
        table.set_dotted(dotted);
        // of `[flow.a]` the table `flow` has no header of its own
        table.set_implicit(root && NAMED.contains(&key));
        Item::Table(table)
    };
    if rest.is_empty() {
        if child.is_table() {
            set(&mut child, here, value)?;
        }
    } else {
        change(&mut child, here, rest, Some(value))?;
    }
    insert(at, key, child);
    Ok(())
}

fn change_entry(at: &mut Item, here: &str, index: usize, rest: &[Step], value: Option<&Json>) -> Result<(), String> {
    let count = at.as_array().map(Array::len).or_else(|| at.as_array_of_tables().map(ArrayOfTables::len));
    let Some(count) = count else {
        return if value.is_none() { Ok(()) } else { Err(format!("{here}: there is no array here")) };
    };
    if index >= count {
        return if value.is_none() {
            Ok(())
        } else {
            Err(format!("{here}: the array has {count} entries, counted from 0"))
        };
    }
    match at {
        Item::Value(Value::Array(array)) => {
            if rest.is_empty() && value.is_none() {
                remove_entry(array, index);
                return Ok(());
            }
            let Some(slot) = array.get_mut(index) else { return Ok(()) };
            let mut entry = Item::Value(slot.clone());
            match value {
                Some(value) if rest.is_empty() => set(&mut entry, here, value)?,
                value => change(&mut entry, here, rest, value)?,
            }
            if let Ok(value) = entry.into_value() {
                *slot = value;
            }
        }
        Item::ArrayOfTables(tables) => {
            if rest.is_empty() && value.is_none() {
                tables.remove(index);
                return Ok(());
            }
            let Some(slot) = tables.get_mut(index) else { return Ok(()) };
            let mut entry = Item::Table(std::mem::take(slot));
            let done = match value {
                Some(Json::Object(_)) if rest.is_empty() => value.map_or(Ok(()), |value| set(&mut entry, here, value)),
                Some(_) if rest.is_empty() => Err(format!("{here}: a table under a header of its own must stay one")),
                value => change(&mut entry, here, rest, value),
            };
            if let Item::Table(table) = entry {
                *slot = table;
            }
            done?;
        }
        _ => {}
    }
    Ok(())
}

/// Gives a place another value, in the layout of the one that it has.
fn set(at: &mut Item, here: &str, value: &Json) -> Result<(), String> {
    if let (Some(table), Json::Object(entries)) = (at.as_table_like(), value) {
        let gone: Vec<String> =
            table.iter().map(|(key, _)| key.to_owned()).filter(|key| !entries.contains_key(key)).collect();
        for key in gone {
            remove(at, &key);
        }
        for (key, value) in entries {
            if value.is_null() {
                return Err(no_null(&joined(here, &Step::Key(key.clone()))));
            }
            change_key(at, (here, &joined(here, &Step::Key(key.clone()))), key, &[], Some(value))?;
        }
        return Ok(());
    }
    if at.as_value().is_some_and(|there| is_same(there, value)) {
        return Ok(());
    }
    let value = of_json(here, value)?;
    replace(at, Item::Value(value));
    Ok(())
}

/// Puts something in the place of what stands there, with the comment beside it.
fn replace(at: &mut Item, mut with: Item) {
    if let (Item::Value(old), Item::Value(new)) = (&*at, &mut with) {
        *new.decor_mut() = old.decor().clone();
    }
    *at = with;
}

/// Whether a value is written already, in whatever way.
fn is_same(there: &Value, value: &Json) -> bool {
    match (there, value) {
        (Value::String(old), Json::String(new)) => old.value() == new,
        (Value::Boolean(old), Json::Bool(new)) => old.value() == new,
        (Value::Integer(old), Json::Number(new)) => new.as_i64() == Some(*old.value()),
        (Value::Float(old), Json::Number(new)) => new.as_f64() == Some(*old.value()),
        _ => false,
    }
}

fn no_null(here: &str) -> String {
    format!("{here}: TOML has no null")
}

/// A value, tables inline.
fn of_json(here: &str, value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => return Err(no_null(here)),
        Json::Bool(on) => (*on).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), ..) => whole.into(),
            (None, Some(_), _) => {
                return Err(format!("{here}: `{number}` must be a number from {} to {}", i64::MIN, i64::MAX));
            }
            (None, None, number) => number.unwrap_or(f64::NAN).into(),
        },
        Json::Array(entries) => {
            let entry = |(index, value)| of_json(&joined(here, &Step::Index(index)), value);
            Value::Array(entries.iter().enumerate().map(entry).collect::<Result<Array, String>>()?)
        }
        Json::Object(entries) => Value::InlineTable(inline(here, entries)?),
    })
}

fn inline(here: &str, entries: &Map<String, Json>) -> Result<InlineTable, String> {
    let mut table = InlineTable::new();
    for (key, value) in entries {
        table.insert(key, of_json(&joined(here, &Step::Key(key.clone())), value)?);
    }
    Ok(table)
}

/// Adds a key behind those that a table has.
fn insert(at: &mut Item, key: &str, child: Item) {
    match at {
        Item::Table(table) => {
            table.insert(key, child);
        }
        Item::Value(Value::InlineTable(table)) => {
            if let Ok(value) = child.into_value() {
                table.insert(key, value);
            }
        }
        _ => {}
    }
}

/// Removes a key.
fn remove(at: &mut Item, key: &str) {
    if let Some(table) = at.as_table_like_mut() {
        table.remove(key);
    }
}

/// Removes an entry of an array.
fn remove_entry(array: &mut Array, index: usize) {
    array.remove(index);
}
