//! Adds and removes keys and entries, with spaces, line breaks and comments kept in place.

use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, Key, RawString, Table, Value};

/// Comments above a removed key that do not belong to it: a blank line separates them.
#[derive(Debug, Default)]
pub struct Remains {
    text: String,
    /// Position in the document of the header of the removed key's table.
    header: isize,
}

impl Remains {
    /// Records the header below which an edit continues.
    pub fn enter(&mut self, at: &Item) {
        if let Some(place) = at.as_table().and_then(Table::position) {
            self.header = place;
        }
    }

    /// Puts them above the next header, or at the end.
    pub fn put_down(self, document: &mut DocumentMut) {
        if self.text.is_empty() {
            return;
        }
        if let Some(next) = next_header(document.as_table_mut(), self.header) {
            lead(next.decor_mut(), &self.text);
        } else {
            let after = raw(Some(document.trailing()));
            document.set_trailing(format!("{}{after}", self.text));
        }
    }
}

fn raw(text: Option<&RawString>) -> String {
    text.and_then(RawString::as_str).unwrap_or_default().to_owned()
}

/// Puts text before everything else in a prefix.
fn lead(decor: &mut Decor, text: &str) {
    if !text.is_empty() {
        let there = raw(decor.prefix());
        // The text ends with a blank line.
        decor.set_prefix(format!("{text}{}", there.trim_start_matches('\n')));
    }
}

/// The table with the first header after a position.
fn next_header(table: &mut Table, after: isize) -> Option<&mut Table> {
    let mut next: Option<&mut Table> = None;
    for (_, item) in table.iter_mut() {
        let found = match item {
            Item::Table(child) => {
                let own = child.position().filter(|at| *at > after && !child.is_dotted() && !child.is_implicit());
                if own.is_some() { Some(child) } else { next_header(child, after) }
            }
            Item::ArrayOfTables(children) => {
                children.iter_mut().find(|child| child.position().is_some_and(|at| at > after))
            }
            _ => None,
        };
        if let Some(found) = found
            && next.as_ref().is_none_or(|next| found.position() < next.position())
        {
            next = Some(found);
        }
    }
    next
}

/// The paragraphs of comments that a blank line separates from what follows.
fn apart(above: &str) -> &str {
    let end = above.rfind("\n\n").map_or(0, |at| at + 2);
    let text = &above[..end];
    if text.contains('#') { text } else { "" }
}

/// Removes a key of a table, with the comment above it.
pub fn remove(at: &mut Item, key: &str, remains: &mut Remains) {
    match at {
        Item::Table(table) => {
            let place = table.iter().position(|(name, _)| name == key);
            let Some((name, item)) = table.remove_entry(key) else { return };
            let above = match &item {
                Item::Table(gone) => {
                    remains.header = gone.position().unwrap_or(remains.header);
                    raw(gone.decor().prefix())
                }
                _ => raw(name.leaf_decor().prefix()),
            };
            let left = apart(&above);
            let next =
                table.iter().nth(place.unwrap_or_default()).map(|(name, item)| (name.to_owned(), item.is_value()));
            match next {
                Some((next, true)) if item.is_value() => {
                    if let Some(mut next) = table.key_mut(&next) {
                        lead(next.leaf_decor_mut(), left);
                    }
                }
                _ => left.clone_into(&mut remains.text),
            }
        }
        Item::Value(Value::InlineTable(table)) => {
            let was_last = table.iter().last().is_some_and(|(name, _)| name == key);
            let Some(gone) = table.remove(key) else { return };
            if was_last && let Some(last) = last_value(table) {
                last.decor_mut().set_suffix(raw(gone.decor().suffix()));
            }
        }
        _ => {}
    }
}

/// The value before the closing brace.
fn last_value(table: &mut InlineTable) -> Option<&mut Value> {
    let (_, last) = table.iter_mut().last()?;
    // In `{ a.b = 1 }` it is the 1.
    let dotted = last.as_inline_table().is_some_and(InlineTable::is_dotted);
    if dotted {
        return last.as_inline_table_mut().and_then(last_value);
    }
    Some(last)
}

/// Adds a key after those of a table.
pub fn insert(at: &mut Item, key: &str, child: Item) {
    match at {
        Item::Table(table) => {
            let first =
                child.is_value() && table.position().is_none() && !table.iter().any(|(_, item)| item.is_value());
            table.insert(key, child);
            if first && !table.is_dotted() && !table.is_implicit() {
                lead_root(table, key);
            }
        }
        Item::Value(Value::InlineTable(table)) => {
            let Ok(mut child) = child.into_value() else { return };
            let name = table.iter().last().and_then(|(last, _)| table.key(last)).map(|last| like(key, last));
            let trailing_comma = table.trailing_comma();
            if let Some(last) = last_value(table).filter(|_| !trailing_comma) {
                let end = raw(last.decor().suffix());
                last.decor_mut().set_suffix("");
                child.decor_mut().set_prefix(" ");
                child.decor_mut().set_suffix(end);
            }
            match name {
                Some(name) => table.insert_formatted(&name, child),
                None => table.insert(key, child),
            };
        }
        _ => {}
    }
}

/// A key formatted like another: on its own line, if that one is.
fn like(key: &str, other: &Key) -> Key {
    let before = raw(other.leaf_decor().prefix());
    let key = Key::new(key);
    if before.trim().is_empty() { key.with_leaf_decor(Decor::new(before, " ")) } else { key }
}

/// Moves the file's opening comment, which belonged to the first header so far, above the root's first key.
fn lead_root(root: &mut Table, key: &str) {
    let Some(header) = next_header(root, -1) else { return };
    let above = raw(header.decor().prefix());
    let opening = apart(&above).to_owned();
    let rest = above[opening.len()..].trim_start_matches('\n').to_owned();
    header.decor_mut().set_prefix(format!("\n{rest}"));
    if let Some(mut key) = root.key_mut(key) {
        key.leaf_decor_mut().set_prefix(opening);
    }
}

/// Adds an entry after those of an array.
pub fn push_entry(array: &mut Array, mut entry: Value) {
    let trailing_comma = array.trailing_comma();
    let count = array.len();
    if let Some(last) = count.checked_sub(1).and_then(|last| array.get_mut(last)) {
        let before = raw(last.decor().prefix());
        // On its own line, if the last one is.
        let before = before.rfind('\n').map_or(" ", |at| &before[at..]);
        entry.decor_mut().set_prefix(before);
        if !trailing_comma {
            let end = raw(last.decor().suffix());
            last.decor_mut().set_suffix("");
            entry.decor_mut().set_suffix(end);
        }
        array.push_formatted(entry);
    } else {
        array.push(entry);
    }
}

/// Removes an entry of an array, with the comments above and beside it.
pub fn remove_entry(array: &mut Array, index: usize) {
    if index >= array.len() {
        return;
    }
    let gone = array.remove(index);
    let (before, after) = (raw(gone.decor().prefix()), raw(gone.decor().suffix()));
    // A comment beside an entry, after its comma, belongs to the next entry's prefix.
    let (beside_previous, _) = line(&before);
    let (left, trailing_comma) = (array.len(), array.trailing_comma());
    if let Some(next) = array.get_mut(index) {
        let before_next = raw(next.decor().prefix());
        let (_, above_next) = line(&before_next);
        let new = if before.contains('\n') { format!("{beside_previous}{above_next}") } else { before };
        next.decor_mut().set_prefix(new);
    } else if trailing_comma || left == 0 {
        let trailing = raw(Some(array.trailing()));
        array.set_trailing(format!("{beside_previous}{}", line(&trailing).1));
    } else if let Some(last) = array.get_mut(left - 1) {
        let (_, below) = line(&after);
        let new =
            if beside_previous.trim().is_empty() { below.to_owned() } else { format!("{beside_previous}{below}") };
        last.decor_mut().set_suffix(new);
    }
}

/// Splits a text into the rest of its line and the lines below.
fn line(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').unwrap_or(if text.contains('#') { text.len() } else { 0 }))
}
