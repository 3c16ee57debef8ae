//! Edits of scenario text: a key is set or removed, and everything else stays as written, including comments and
//! layout.
//!
//! New parts follow the style of the files in `examples/`: tables of the root, and those named by the file (links,
//! flows, cells), get headers. Tables within them are inline, or dotted if others are. Paths have the meaning of
//! `--set`, except that names may be new.

mod layout;

use crate::document::{Document, Step, joined, split};
use layout::Remains;
use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

/// A path and its new value; null removes the key.
pub type Change = (String, Json);

/// Tables whose entries are named by the file.
const NAMED: [&str; 3] = ["flow", "link", "cell"];

/// [`edit`] with its changes as JSON: pairs of a path and a value.
///
/// # Errors
/// A message: the changes are not such JSON, or as for [`edit`].
pub fn edit_by_json(text: &str, changes: &str) -> Result<String, String> {
    let changes: Vec<Change> =
        serde_json::from_str(changes).map_err(|error| format!("the changes are not JSON: {error}"))?;
    edit(text, &changes)
}

/// Applies these changes to the text, one after the other.
///
/// # Errors
/// A message: the text is not TOML, a path is invalid or does not exist, or TOML has no such value.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        // With the check's own message for it.
        let said = Document::parse(text, "the text").err();
        said.map_or_else(|| format!("the text: not TOML: {}", error.message()), |error| error.to_string())
    })?;
    for (path, value) in changes {
        let steps = split(path).map_err(|problem| format!("{path}: {problem}"))?;
        let mut remains = Remains::default();
        match value {
            Json::Null => remove(document.as_item_mut(), &steps, &mut remains),
            value => put(document.as_item_mut(), "", &steps, value)?,
        }
        remains.put_down(&mut document);
    }
    Ok(document.to_string())
}

/// Removes the value at the end of `steps`, if it exists.
fn remove(at: &mut Item, steps: &[Step], remains: &mut Remains) {
    remains.enter(at);
    match (steps, at) {
        ([Step::Key(key)], table) => layout::remove(table, key, remains),
        ([Step::Index(index)], Item::Value(Value::Array(array))) => layout::remove_entry(array, *index),
        ([Step::Index(index)], Item::ArrayOfTables(tables)) if *index < tables.len() => {
            tables.remove(*index);
        }
        ([Step::Key(key), rest @ ..], table) => {
            if let Some(child) = table.as_table_like_mut().and_then(|table| table.get_mut(key)) {
                remove(child, rest, remains);
            }
        }
        ([Step::Index(index), rest @ ..], array) => {
            // An entry is a value or a table, not an item that could be passed on.
            let _ = in_entry(array, *index, |entry| {
                remove(entry, rest, remains);
                Ok(())
            });
        }
        _ => {}
    }
}

/// Sets the value at the end of `steps`; `path` leads to `at`.
fn put(at: &mut Item, path: &str, steps: &[Step], value: &Json) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return set(at, path, value) };
    let here = joined(path, step);
    match step {
        Step::Key(key) => put_key(at, (path, &here), key, rest, value),
        Step::Index(index) => {
            let count = at.as_array().map(Array::len).or_else(|| at.as_array_of_tables().map(ArrayOfTables::len));
            let Some(count) = count else { return Err(format!("{here}: there is no array here")) };
            if *index >= count {
                return Err(format!("{here}: the array has {count} entries, counted from 0"));
            }
            in_entry(at, *index, |entry| put(entry, &here, rest, value))
        }
    }
}

fn put_key(at: &mut Item, (path, here): (&str, &str), key: &str, rest: &[Step], value: &Json) -> Result<(), String> {
    if at.as_table_like().is_none() {
        // A value that is no table is replaced by one.
        replace(at, InlineTable::new().into());
    }
    let under_headers = path.is_empty() || NAMED.contains(&path);
    let (inline, dotted) = (at.is_inline_table(), at.as_table().is_some_and(Table::is_dotted));
    let there = at.as_table_like_mut().and_then(|table| table.get_mut(key)).filter(|child| !child.is_none());
    if let Some(child) = there {
        return put(child, here, rest, value);
    }
    let header = under_headers && !inline && !dotted;
    let mut child = if rest.is_empty() && (!value.is_object() || !header) {
        Item::Value(of_json(here, value)?)
    } else if !header && !dotted {
        Item::Value(InlineTable::new().into())
    } else {
        let mut table = Table::new();
        table.set_dotted(dotted);
        // `[flow.a]` needs no `[flow]`.
        table.set_implicit(path.is_empty() && NAMED.contains(&key));
        Item::Table(table)
    };
    put(&mut child, here, rest, value)?;
    layout::insert(at, key, child);
    Ok(())
}

/// Applies `work` to an entry of an array.
fn in_entry(array: &mut Item, index: usize, work: impl FnOnce(&mut Item) -> Result<(), String>) -> Result<(), String> {
    match array {
        Item::Value(Value::Array(array)) => {
            let Some(slot) = array.get_mut(index) else { return Ok(()) };
            let mut entry = Item::Value(slot.clone());
            work(&mut entry)?;
            if let Item::Value(value) = entry {
                *slot = value;
            }
        }
        Item::ArrayOfTables(tables) => {
            let Some(slot) = tables.get_mut(index) else { return Ok(()) };
            let mut entry = Item::Table(slot.clone());
            work(&mut entry)?;
            match entry {
                Item::Table(table) => *slot = table,
                _ => return Err("an entry under a header of its own must be a table".to_owned()),
            }
        }
        _ => {}
    }
    Ok(())
}

/// Replaces a value, in the layout of the old one.
fn set(at: &mut Item, here: &str, value: &Json) -> Result<(), String> {
    match value {
        Json::Null => return Err(format!("{here}: TOML has no null")),
        Json::Object(entries) if at.is_table_like() => {
            let table = at.as_table_like().into_iter().flat_map(toml_edit::TableLike::iter);
            let gone: Vec<String> =
                table.map(|(key, _)| key.to_owned()).filter(|key| !entries.contains_key(key)).collect();
            for key in gone {
                layout::remove(at, &key, &mut Remains::default());
            }
            for (key, value) in entries {
                put(at, here, &[Step::Key(key.clone())], value)?;
            }
            return Ok(());
        }
        Json::Array(entries) => {
            if let Some(array) = at.as_array_mut() {
                return set_array(array, here, entries);
            }
        }
        _ => {}
    }
    if !at.as_value().is_some_and(|there| is_same(there, value)) {
        replace(at, of_json(here, value)?);
    }
    Ok(())
}

/// Replaces the entries of an array, in the layout of the old ones.
fn set_array(array: &mut Array, here: &str, entries: &[Json]) -> Result<(), String> {
    for index in (entries.len()..array.len()).rev() {
        layout::remove_entry(array, index);
    }
    for (index, value) in entries.iter().enumerate() {
        let here = joined(here, &Step::Index(index));
        if let Some(slot) = array.get_mut(index) {
            let mut entry = Item::Value(slot.clone());
            set(&mut entry, &here, value)?;
            if let Item::Value(value) = entry {
                *slot = value;
            }
        } else {
            layout::push_entry(array, of_json(&here, value)?);
        }
    }
    Ok(())
}

/// Replaces a value, and keeps the comment beside it.
fn replace(at: &mut Item, mut with: Value) {
    if let Some(there) = at.as_value() {
        *with.decor_mut() = there.decor().clone();
    }
    *at = Item::Value(with);
}

/// Whether a value is already written, in any notation.
fn is_same(there: &Value, value: &Json) -> bool {
    match (there, value) {
        (Value::String(old), Json::String(new)) => old.value() == new,
        (Value::Boolean(old), Json::Bool(new)) => old.value() == new,
        (Value::Integer(old), Json::Number(new)) => new.as_i64() == Some(*old.value()),
        (Value::Float(old), Json::Number(new)) => new.as_f64() == Some(*old.value()),
        _ => false,
    }
}

/// A value, with tables inline.
fn of_json(here: &str, value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => return Err(format!("{here}: TOML has no null")),
        Json::Bool(on) => (*on).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.is_u64()) {
            (Some(whole), _) => whole.into(),
            (None, true) => {
                return Err(format!("{here}: `{number}` must be a number from {} to {}", i64::MIN, i64::MAX));
            }
            (None, false) => number.as_f64().unwrap_or(f64::NAN).into(),
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
