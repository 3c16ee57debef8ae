//! A file that is one JSON value with all traces and their events, read as a stream, one event at a time.
//!
//! A trace's fields may follow its events, so the file is read twice, first for the heads alone.

use super::trace::Head;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

/// Maximum length in bytes of an event, or of any other value, since it is held in memory.
pub const LONGEST: u64 = 16 << 20;

/// Maximum traces of one file.
const MAX_TRACES: usize = 10_000;

/// Progress of a reading.
#[derive(Debug, Default)]
pub struct Meter {
    since: Cell<u64>,
    ended: Cell<bool>,
}

impl Meter {
    /// Marks the start of an event or another part.
    fn begin(&self) {
        self.since.set(0);
    }

    /// Whether the reading reached the end of the file.
    pub fn ended(&self) -> bool {
        self.ended.get()
    }
}

/// Counts the bytes since the last start, and refuses more than [`LONGEST`].
pub struct Metered<R> {
    from: R,
    meter: Rc<Meter>,
}

impl<R: Read> Metered<R> {
    pub fn new(from: R) -> (Metered<R>, Rc<Meter>) {
        let meter = Rc::new(Meter::default());
        (Metered { from, meter: Rc::clone(&meter) }, meter)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.meter.since.get() > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "an event, or another part of it, is longer than 16 MiB: no qlog has such a one",
            ));
        }
        let read = self.from.read(to)?;
        self.meter.since.set(self.meter.since.get() + read as u64);
        self.meter.ended.set(read == 0);
        Ok(read)
    }
}

/// Results of the first reading.
#[derive(Debug, Default)]
pub struct Outline {
    /// The file object's own fields, except for its traces and long values.
    pub about: Map<String, Value>,
    /// Whether it has the key `traces`; without it, the file is not of this form.
    pub has_traces: bool,
    pub heads: Vec<Head>,
    /// Entries of `traces` that report a missing trace.
    pub errors: usize,
}

/// Takes an event, with the number of its trace; the error is a message.
pub type Take<'t> = &'t mut dyn FnMut(usize, Value) -> Result<(), String>;

/// Purpose of a reading.
pub enum For<'t> {
    /// The outline; what was found before an error is kept.
    Outline(&'t mut Outline),
    /// The events.
    Events(Take<'t>),
}

/// Reads the file's object.
pub struct File<'t, 's>(pub For<'t>, pub &'s Meter);

impl<'de> DeserializeSeed<'de> for File<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("the object that a qlog file begins with")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.1.begin();
            match &mut self.0 {
                For::Outline(outline) if key == "traces" => {
                    outline.has_traces = true;
                    map.next_value_seed(Traces(For::Outline(outline), self.1))?;
                }
                For::Events(take) if key == "traces" => map.next_value_seed(Traces(For::Events(take), self.1))?,
                For::Outline(outline) if outline.about.len() < 100 => {
                    outline.about.insert(key, map.next_value()?);
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// The list of traces.
struct Traces<'t, 's>(For<'t>, &'s Meter);

impl<'de> DeserializeSeed<'de> for Traces<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Traces<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("traces as a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for number in 0.. {
            let what = match &mut self.0 {
                For::Outline(outline) => For::Outline(outline),
                For::Events(take) => For::Events(take),
            };
            if number >= MAX_TRACES {
                while list.next_element::<IgnoredAny>()?.is_some() {
                    self.1.begin();
                }
                break;
            }
            if list.next_element_seed(Trace { what, number, meter: self.1 })?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// One trace.
struct Trace<'t, 's> {
    what: For<'t>,
    number: usize,
    meter: &'s Meter,
}

impl<'de> DeserializeSeed<'de> for Trace<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Trace<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a trace as an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut about = Map::new();
        let mut has_events = false;
        // Add the trace's entry before its content, so that a file that ends within the trace is read up to there.
        if let For::Outline(outline) = &mut self.what {
            outline.heads.push(Head::of(&Value::Null));
        }
        let done = loop {
            let key = match map.next_key::<String>() {
                Ok(Some(key)) => key,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            self.meter.begin();
            let read = match &mut self.what {
                For::Events(take) if key == "events" => {
                    map.next_value_seed(Events { take: Some((take, self.number)), meter: self.meter })
                }
                For::Outline(_) if key == "events" => {
                    has_events = true;
                    map.next_value_seed(Events { take: None, meter: self.meter })
                }
                For::Outline(_) if about.len() < 100 => map.next_value().map(|value| _ = about.insert(key, value)),
                _ => map.next_value::<IgnoredAny>().map(|_| ()),
            };
            if let Err(error) = read {
                break Err(error);
            }
        };
        if let For::Outline(outline) = &mut self.what {
            outline.errors += usize::from(!has_events && about.contains_key("error_description"));
            if let Some(head) = outline.heads.last_mut() {
                *head = Head::of(&Value::Object(about));
            }
        }
        done
    }
}

/// The events of a trace.
struct Events<'a, 't, 's> {
    take: Option<(&'a mut Take<'t>, usize)>,
    meter: &'s Meter,
}

impl<'de> DeserializeSeed<'de> for Events<'_, '_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("events as a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        loop {
            self.meter.begin();
            match &mut self.take {
                Some((take, number)) => match list.next_element::<Value>()? {
                    Some(event) => take(*number, event).map_err(A::Error::custom)?,
                    None => return Ok(()),
                },
                None => match list.next_element::<IgnoredAny>()? {
                    Some(_) => {}
                    None => return Ok(()),
                },
            }
        }
    }
}
