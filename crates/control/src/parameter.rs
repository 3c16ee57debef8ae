//! Parameters of schemes: their kinds, how users write them, and when they have no effect.
//!
//! A controller receives numbers: a switch is 0 or 1, a choice the index of its name in the list. Users write `true`,
//! `false` and the name.

use crate::Profile;
use core::fmt;

const PROFILES: usize = Profile::ALL.len();

/// The kind of a parameter and its allowed values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A number from `min` to `max`; `unit` is `"1"` for a dimensionless number.
    Number {
        /// Minimum allowed value.
        min: f64,
        /// Maximum allowed value.
        max: f64,
        /// Its unit.
        unit: &'static str,
    },
    /// A number without a fraction: a count.
    Whole {
        /// Minimum allowed value.
        min: f64,
        /// Maximum allowed value.
        max: f64,
    },
    /// On (1) or off (0).
    Switch,
    /// One of these names, as its index from 0.
    Choice(&'static [&'static str]),
}

/// A value as users write it.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Switch(bool),
    /// A name.
    Name(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => number.fmt(f),
            Setting::Switch(on) => on.fmt(f),
            Setting::Name(name) => name.fmt(f),
        }
    }
}

/// A condition on another parameter under which this one has no effect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Idle {
    /// When the named parameter has this value.
    Beside(&'static str, f64),
    /// When the named parameter has any other value than this.
    Unless(&'static str, f64),
}

impl Idle {
    /// The other parameter's name.
    #[must_use]
    pub const fn other(&self) -> &'static str {
        match self {
            Idle::Beside(other, _) | Idle::Unless(other, _) => other,
        }
    }

    /// Whether the condition holds when the other parameter has this value.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        match *self {
            Idle::Beside(_, which) => value == which,
            Idle::Unless(_, which) => value != which,
        }
    }
}

/// A limit of the flow's encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncoderRate {
    /// Its minimum rate.
    Min,
    /// Its maximum rate.
    Max,
}

/// One parameter of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its default for each of [`Profile::ALL`].
    pub default: [f64; PROFILES],
    /// Its kind and allowed values.
    pub kind: Kind,
    /// A one-line description.
    pub doc: &'static str,
    /// When it has no effect.
    pub idle: Option<Idle>,
    /// The limit of the flow's encoder, if it has one, that is the default.
    pub follows: Option<EncoderRate>,
}

impl Parameter {
    /// A number between `bounds`; `unit` is `"1"` for a dimensionless number.
    #[must_use]
    pub const fn number(
        name: &'static str,
        default: [f64; PROFILES],
        bounds: (f64, f64),
        unit: &'static str,
        doc: &'static str,
    ) -> Parameter {
        Parameter {
            name,
            default,
            kind: Kind::Number { min: bounds.0, max: bounds.1, unit },
            doc,
            idle: None,
            follows: None,
        }
    }

    /// A count between `bounds`.
    #[must_use]
    pub const fn whole(
        name: &'static str,
        default: [f64; PROFILES],
        bounds: (f64, f64),
        doc: &'static str,
    ) -> Parameter {
        Parameter { name, default, kind: Kind::Whole { min: bounds.0, max: bounds.1 }, doc, idle: None, follows: None }
    }

    /// A switch: on or off.
    #[must_use]
    pub const fn switch(name: &'static str, on: [bool; PROFILES], doc: &'static str) -> Parameter {
        let mut default = [0.0; PROFILES];
        let mut i = 0;
        while i < PROFILES {
            default[i] = on[i] as u8 as f64;
            i += 1;
        }
        Parameter { name, default, kind: Kind::Switch, doc, idle: None, follows: None }
    }

    /// One of `names`; the defaults are indices into it.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        default: [f64; PROFILES],
        names: &'static [&'static str],
        doc: &'static str,
    ) -> Parameter {
        Parameter { name, default, kind: Kind::Choice(names), doc, idle: None, follows: None }
    }

    /// The same parameter, with a limit of the flow's encoder as its default.
    #[must_use]
    pub const fn following(self, follows: EncoderRate) -> Parameter {
        Parameter { follows: Some(follows), ..self }
    }

    /// The same parameter, without effect when `idle` holds.
    #[must_use]
    pub const fn idle(self, idle: Idle) -> Parameter {
        Parameter { idle: Some(idle), ..self }
    }

    /// Whether `value` is allowed.
    #[must_use]
    pub fn allows(&self, value: f64) -> bool {
        match self.kind {
            Kind::Number { min, max, .. } => (min..=max).contains(&value),
            Kind::Whole { min, max } => (min..=max).contains(&value) && value.fract() == 0.0,
            Kind::Switch => value == 0.0 || value == 1.0,
            Kind::Choice(names) => value >= 0.0 && value < names.len() as f64 && value.fract() == 0.0,
        }
    }

    /// The allowed values in words: `from 0 to 10 s`, `a whole number from 1 to 100`, `one of rfc5348, rfc3448, ns2`.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Number { min, max, unit: "1" } => format!("from {min} to {max}"),
            Kind::Number { min, max, unit } => format!("from {min} to {max} {unit}"),
            Kind::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Switch => "`true` or `false`".to_owned(),
            Kind::Choice(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("one of {}", names.join(", "))
            }
        }
    }

    /// The number that a controller receives for a user's setting; `None` if the setting is not allowed.
    #[must_use]
    pub fn value(&self, setting: &Setting) -> Option<f64> {
        let value = match (self.kind, setting) {
            (Kind::Number { .. } | Kind::Whole { .. }, Setting::Number(number)) => *number,
            (Kind::Switch, Setting::Switch(on)) => f64::from(u8::from(*on)),
            (Kind::Choice(names), Setting::Name(name)) => names.iter().position(|n| n == name)? as f64,
            _ => return None,
        };
        self.allows(value).then_some(value)
    }

    /// How a user writes an allowed value: the inverse of [`Parameter::value`].
    #[must_use]
    pub fn setting(&self, value: f64) -> Setting {
        match self.kind {
            Kind::Number { .. } | Kind::Whole { .. } => Setting::Number(value),
            Kind::Switch => Setting::Switch(value != 0.0),
            Kind::Choice(names) => match names.get(value as usize) {
                Some(name) => Setting::Name((*name).to_owned()),
                None => Setting::Number(value),
            },
        }
    }

    /// The unit of its numbers; `"1"` if it has none.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Number { unit, .. } => unit,
            Kind::Whole { .. } | Kind::Switch | Kind::Choice(_) => "1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::schemes;

    #[test]
    fn what_is_written_comes_back() {
        for scheme in schemes() {
            for p in scheme.parameters {
                for value in p.default {
                    assert!(p.allows(value), "{} {}", scheme.name, p.name);
                    assert_eq!(p.value(&p.setting(value)), Some(value), "{} {}", scheme.name, p.name);
                }
                let other = p.idle.map(|idle| idle.other());
                assert!(other.is_none_or(|other| scheme.parameters.iter().any(|p| p.name == other)), "{}", p.name);
            }
        }
    }

    #[test]
    fn kinds_do_not_mix() {
        let name = |text: &str| Setting::Name(text.to_owned());
        let law = Parameter::choice("law", [0.0; PROFILES], &["a", "b"], "");
        assert_eq!((law.value(&name("b")), law.value(&name("c"))), (Some(1.0), None));
        assert_eq!((law.value(&Setting::Number(1.0)), law.value(&Setting::Switch(true))), (None, None));
        assert_eq!((law.allows(1.0), law.allows(2.0), law.allows(0.5), law.allows(-1.0)), (true, false, false, false));
        assert_eq!(law.allowed(), "one of `a`, `b`");
        let rate = |unit| Parameter::number("rate", [1.0; PROFILES], (0.5, 9.0), unit, "").allowed();
        assert_eq!((rate("bit/s").as_str(), rate("1").as_str()), ("from 0.5 to 9 bit/s", "from 0.5 to 9"));
        let switch = Parameter::switch("on", [true; PROFILES], "");
        assert_eq!((switch.value(&Setting::Switch(true)), switch.value(&Setting::Number(1.0))), (Some(1.0), None));
        assert_eq!(switch.value(&name("true")), None);
        let count = Parameter::whole("n", [1.0; PROFILES], (1.0, 9.0), "");
        assert_eq!((count.value(&Setting::Number(9.0)), count.value(&Setting::Number(1.5))), (Some(9.0), None));
        let share = Parameter::number("x", [0.0; PROFILES], (0.0, 1.0), "1", "");
        assert_eq!((share.value(&Setting::Number(f64::NAN)), share.value(&Setting::Switch(true))), (None, None));
    }

    #[test]
    fn idle_looks_at_the_other() {
        assert!(Idle::Beside("law", 2.0).holds(2.0) && !Idle::Beside("law", 2.0).holds(1.0));
        assert!(Idle::Unless("wmax", 0.0).holds(20.0) && !Idle::Unless("wmax", 0.0).holds(0.0));
    }
}
