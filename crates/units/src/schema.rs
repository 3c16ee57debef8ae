//! Quantities in scenario files: serde reads and writes them as text, and their JSON Schema is a described string.

use crate::parse::{RATE, SIZE, SPAN};
use crate::{Rate, Ratio, Size, Span, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// Types that scenario files write as text: serde reads them with `FromStr` and writes them with `Display`, and their
/// JSON Schema is a string with these examples, and with this pattern if one is given. A crate that uses the macro
/// needs serde and schemars.
#[macro_export]
macro_rules! as_text {
    ($($name:ident, $examples:tt $(, $pattern:expr)?;)*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a text such as ", stringify!($examples)))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                from.deserialize_str(Visitor)
            }
        }
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", $("pattern": $pattern,)? "examples": $examples })
            }
        }
    )*};
}
/// A pattern for a non-negative number and a unit: accepts what `FromStr` does, apart from the maximum.
fn quantity(units: &[(&str, f64)]) -> String {
    let units: Vec<&str> = units.iter().map(|&(unit, _)| unit).collect();
    format!(r"{NUMBER}([eE]-?[0-9]+)?\s*({})\s*$", units.join("|"))
}

/// The start of a pattern for a text that begins with a number, up to the exponent.
const NUMBER: &str = r"^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)";

as_text! {
    Span, ["50 ms", "2 s"], quantity(SPAN.units);
    Rate, ["10 Mbit/s", "384 kbit/s"], quantity(RATE.units);
    Size, ["50 kB", "1500 B"], quantity(SIZE.units);
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Ratio;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a share such as 0.01 or \"1 %\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Ratio, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Ratio, E> {
                Ratio::new(value)
                    .ok_or_else(|| E::custom(format!("`{value}` is not a share: it must lie between 0 and 1")))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Ratio, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Ratio, E> {
                self.visit_f64(value as f64)
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl JsonSchema for Ratio {
    fn schema_name() -> Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!(r"{NUMBER}([eE][+-]?[0-9]+)?\s*%?\s*$");
        json_schema!({
            "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, { "type": "string", "pattern": pattern }],
            "examples": ["1 %", 0.01],
        })
    }
}
