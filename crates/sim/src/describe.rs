//! The possible contents of a scenario, and the available models, as JSON: the same for every front end.

use paceline_control::models::catalog::{Argument, Default, MODELS, Model};
use paceline_control::{EncoderRate, Idle, Kind, Parameter, Profile, Scheme, Setting};
use paceline_scenario::marks_frames;
use serde_json::{Value, json};

/// The simulator's version. A build with the dev profile's checks says so, because timing it would mislead.
pub const VERSION: &str =
    if cfg!(debug_assertions) { concat!(env!("CARGO_PKG_VERSION"), "+dev") } else { env!("CARGO_PKG_VERSION") };

/// The registered schemes with their parameters.
#[must_use]
pub fn schemes() -> Value {
    Value::Array(paceline_control::registry::schemes().map(scheme).collect())
}

/// A scheme with its parameters.
#[must_use]
pub fn scheme(scheme: &Scheme) -> Value {
    let parameters: Vec<Value> = scheme.parameters.iter().map(|p| parameter(scheme, p)).collect();
    let machine = scheme.machine.name();
    let (name, summary, source) = (scheme.name, scheme.summary, scheme.source);
    let frames = marks_frames(scheme);
    let mut about = json!({
        "name": name,
        "summary": summary,
        "source": source,
        "machine": machine,
        "frames": frames,
        "params": parameters,
    });
    // An old name: the law is now a variant of another scheme, chosen by a parameter.
    if let Some((family, variant)) = scheme.variant().filter(|(family, _)| *family != name) {
        about["variant_of"] = json!({ "name": family, "variant": variant });
    }
    about
}

/// A parameter's value as scenarios write it.
fn shown(parameter: &Parameter, value: f64) -> Value {
    match parameter.setting(value) {
        Setting::Number(number) => json!(number),
        Setting::Switch(on) => json!(on),
        Setting::Name(name) => json!(name),
    }
}

/// When a parameter has no effect, as text.
fn no_effect(scheme: &Scheme, idle: Idle) -> String {
    let other = scheme.parameters.iter().find(|p| p.name == idle.other());
    let text = |value: f64| other.map_or_else(|| value.to_string(), |p| p.setting(value).to_string());
    match idle {
        Idle::Beside(name, value) => format!("with {name} = {}", text(value)),
        Idle::Unless(name, value) => format!("unless {name} = {}", text(value)),
    }
}

fn parameter(scheme: &Scheme, p: &Parameter) -> Value {
    let default = |profile: Profile| shown(p, p.default[profile as usize]);
    let defaults: serde_json::Map<String, Value> =
        Profile::ALL.iter().map(|&profile| (profile.name().to_owned(), default(profile))).collect();
    let mut entry = json!({
        "name": p.name,
        "default": default(Profile::Rfc),
        "defaults": defaults,
        "unit": p.unit(),
        "doc": p.doc,
    });
    let (kind, bounds) = match p.kind {
        Kind::Number { min, max, .. } => ("number", Some((min, max))),
        Kind::Whole { min, max } => ("whole", Some((min, max))),
        Kind::Switch => ("switch", None),
        Kind::Choice(names) => {
            entry["names"] = json!(names);
            ("choice", None)
        }
    };
    entry["kind"] = json!(kind);
    if let Some((min, max)) = bounds {
        entry["min"] = json!(min);
        entry["max"] = json!(max);
    }
    if let Some(follows) = p.follows {
        entry["follows"] = json!(match follows {
            EncoderRate::Min => "min_rate",
            EncoderRate::Max => "max_rate",
        });
    }
    if let Some(idle) = p.idle {
        entry["no_effect"] = json!(no_effect(scheme, idle));
    }
    entry
}

/// The throughput models with their arguments.
#[must_use]
pub fn models() -> Value {
    Value::Array(MODELS.iter().map(model).collect())
}

fn model(m: &Model) -> Value {
    let argument = |a: &Argument| {
        let default = match a.default {
            Default::Required => Value::Null,
            Default::Value(value) if value.is_finite() => json!(value),
            Default::Value(_) => json!("inf"),
            Default::FourRtt => json!("4 rtt_s"),
        };
        json!({ "name": a.name, "doc": a.doc, "default": default })
    };
    json!({
        "name": m.name,
        "summary": m.summary,
        "source": m.source,
        "arguments": m.arguments.iter().map(argument).collect::<Vec<_>>(),
        "results": m.results,
        "inverse": m.inverse.is_some(),
    })
}

/// The measures and labels that the rows of each table can have.
#[must_use]
pub fn columns() -> Value {
    json!(crate::summary::columns())
}
