//! A controller's parameters in a scenario file: how they are written, their allowed values, and when one has no
//! effect.

use super::bounds::Carried;
use super::error::{hint, join};
use super::flow::FlowTable;
use super::model::Profile;
use super::rules::Rules;
use super::walk::listed;
use paceline_control::registry::{self, schemes};
use paceline_control::{Kind, Machine, Parameter, Scheme, Setting, VARIANT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

/// The value of a controller's parameter: `paceline controllers CC` says which it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParameterValue {
    /// On or off.
    Switch(bool),
    /// A number.
    Number(f64),
    /// One of a few names.
    Name(String),
}

impl ParameterValue {
    /// The setting in crate `control`.
    #[must_use]
    pub fn setting(&self) -> Setting {
        match self {
            ParameterValue::Switch(on) => Setting::Switch(*on),
            ParameterValue::Number(number) => Setting::Number(*number),
            ParameterValue::Name(name) => Setting::Name(name.clone()),
        }
    }

    /// A parameter's value as the file writes it.
    #[must_use]
    pub fn new(parameter: &Parameter, value: f64) -> ParameterValue {
        match parameter.setting(value) {
            Setting::Switch(on) => ParameterValue::Switch(on),
            Setting::Number(number) => ParameterValue::Number(number),
            Setting::Name(name) => ParameterValue::Name(name),
        }
    }
}

/// The parameters of a checked flow as its controller takes them.
pub(crate) fn given<'a>(flow: &'a FlowTable, scheme: &Scheme) -> Vec<(&'a str, f64)> {
    let value = |name: &str, written: &ParameterValue| {
        scheme.parameters.iter().find(|p| p.name == name)?.value(&written.setting())
    };
    flow.params.iter().filter_map(|(name, written)| Some((name.as_str(), value(name, written)?))).collect()
}

/// A value as TOML writes it.
fn toml_text(setting: &Setting) -> String {
    match setting {
        Setting::Name(name) => format!("\"{name}\""),
        other => other.to_string(),
    }
}

impl Rules {
    /// Rules for a flow's `params`.
    pub(super) fn parameters(
        &mut self,
        path: &str,
        flow: &FlowTable,
        (scheme, carried): (&Scheme, Option<Carried>),
        profile: Profile,
    ) {
        let path = join(path, "params");
        self.variant(&path, flow, scheme);
        let who = match scheme.variant() {
            Some((family, own)) => format!("`{family}` in its variant `{own}`"),
            None => format!("`{}`", scheme.name),
        };
        let names = || scheme.parameters.iter().map(|parameter| parameter.name);
        for (name, written) in &flow.params {
            let key = join(&path, name);
            let Some(parameter) = scheme.parameters.iter().find(|p| p.name == name) else {
                let problem = if scheme.parameters.is_empty() {
                    format!("{who} has no parameters")
                } else {
                    let hint = hint(name, names());
                    format!("{who} has no such parameter{hint} (it has {})", listed(names()))
                };
                self.note(key, problem);
                continue;
            };
            let setting = written.setting();
            if parameter.value(&setting).is_none() {
                let a_number = matches!(parameter.kind, Kind::Number { .. }) && !matches!(setting, Setting::Number(_));
                let hint = match (parameter.kind, &setting) {
                    (Kind::Choice(names), Setting::Name(name)) => hint(name, names.iter().copied()),
                    _ => String::new(),
                };
                let kind = match parameter.kind {
                    Kind::Number { unit, .. } if a_number && unit != "1" => "a number without its unit, ",
                    _ if a_number => "a number ",
                    _ => "",
                };
                // In the file, a switch and a name differ only by quotes, so the quotes are shown unless a name is
                // expected.
                let shown = match parameter.kind {
                    Kind::Choice(_) => setting.to_string(),
                    _ => toml_text(&setting),
                };
                self.note(key, format!("`{shown}` must be {kind}{}{hint}", parameter.allowed()));
            }
        }
        let value = |name: &str| {
            let parameter = scheme.parameters.iter().find(|p| p.name == name)?;
            let written = flow.params.get(name).map(|written| parameter.value(&written.setting()));
            Some((parameter, written.unwrap_or(Some(Carried::usual(carried, parameter, profile.control())))?))
        };
        for parameter in scheme.parameters.iter().filter(|p| flow.params.contains_key(p.name)) {
            let (Some(idle), Some((_, own))) = (parameter.idle, value(parameter.name)) else { continue };
            let Some((other, why)) = value(idle.other()).filter(|(_, value)| idle.holds(*value)) else { continue };
            // A manifest spells out defaults, which change nothing either way.
            if own == Carried::usual(carried, parameter, profile.control()) {
                continue;
            }
            let given = flow.params.contains_key(other.name);
            let origin =
                if given { String::new() } else { format!(", the default under profile `{}`", profile.name()) };
            let problem = format!(
                "`{}` has no effect on `{}` with `{} = {}`{origin}; leave the key out, or change `{}`",
                parameter.setting(own),
                scheme.name,
                other.name,
                toml_text(&other.setting(why)),
                other.name
            );
            self.note(join(&path, parameter.name), problem);
        }
        // Pairs whose first value must not exceed the second: Vegas's two thresholds, NADA's rates, NDTC's frame sizes,
        // and a loss's two factors. MULTFRC's alpha and beta are steps without an order.
        if scheme.foreign.is_some() {
            return; // the author decides what names mean
        }
        let tcp = matches!(scheme.machine, Machine::Tcp(_));
        let pairs = [
            ("alpha", "beta", tcp),
            ("min_rate", "max_rate", true),
            ("min_target", "max_target", true),
            ("theta2", "theta1", true),
        ];
        for (less, more, _) in pairs.into_iter().filter(|(.., ordered)| *ordered) {
            let given = [less, more].iter().any(|name| flow.params.contains_key(*name));
            if let (Some((_, small)), Some((_, large))) = (value(less), value(more))
                && small > large
                && given
            {
                self.note(path.clone(), format!("{less}, `{small}`, must be at most {more}, `{large}`"));
            }
        }
    }

    /// Rules for an old name that already chooses a variant.
    fn variant(&mut self, path: &str, flow: &FlowTable, chosen: &Scheme) {
        let named = registry::scheme(&flow.cc).ok().and_then(|named| named.variant());
        if let (Some((family, own)), Some((_, chosen))) = (named, chosen.variant())
            && family != flow.cc
            && own != chosen
        {
            let problem = format!("`{chosen}` is not what `{}` is: write `cc = \"{family}\"` beside it", flow.cc);
            self.note(join(path, VARIANT), problem);
        }
    }
}

/// Adds the controllers and each one's parameters to the schema.
pub(super) fn describe(schema: &mut Json) {
    let old = |scheme: &&Scheme| scheme.variant().is_some_and(|(family, _)| family != scheme.name);
    let names: Vec<&str> = schemes().filter(|scheme| !old(scheme)).map(|scheme| scheme.name).collect();
    let before: Vec<&str> = schemes().filter(old).map(|scheme| scheme.name).collect();
    let own = format!("^({}).", super::OWN.join("|"));
    let cc = json!({
        "anyOf": [
            { "enum": names },
            { "type": "string", "pattern": own },
            { "enum": before, "deprecated": true },
        ],
        "description": "Congestion controller.",
    });
    let mut all = vec![json!({ "properties": { "cc": cc } })];
    all.extend(schemes().map(|scheme| {
        let properties: Map<String, Json> =
            scheme.parameters.iter().map(|p| (p.name.to_owned(), describe_one(p))).collect();
        let mut condition = json!({ "properties": { "cc": { "const": scheme.name } } });
        if let Some((family, variant)) = scheme.variant() {
            let which = json!({ "properties": { "variant": { "const": variant } } });
            condition["properties"]["params"] = which.clone();
            if family != scheme.name {
                let mut chosen = json!({ "properties": { "cc": { "const": family }, "params": which } });
                chosen["properties"]["params"]["required"] = json!(["variant"]);
                chosen["required"] = json!(["cc", "params"]);
                condition["required"] = json!(["cc"]);
                condition = json!({ "anyOf": [condition, chosen] });
            }
        }
        // A flow without `cc` has the default's parameters.
        let is_usual = schema["$defs"]["FlowTable"]["properties"]["cc"]["default"] == scheme.name;
        if !is_usual && condition.get("anyOf").is_none() {
            condition["required"] = json!(["cc"]);
        }
        let doc = format!("Parameters of {}.", scheme.name);
        let params = json!({ "properties": properties, "additionalProperties": false, "description": doc });
        json!({ "if": condition, "then": { "properties": { "params": params } } })
    }));
    all.extend(schemes().filter_map(describe_variant));
    schema["$defs"]["FlowTable"]["allOf"] = Json::Array(all);
}

/// The variants that a scheme may be: any, or only its own for an old name.
fn describe_variant(scheme: &Scheme) -> Option<Json> {
    let (family, own) = scheme.variant()?;
    let mut which = describe_one(scheme.parameters.iter().find(|p| p.name == VARIANT)?);
    if family != scheme.name {
        which["enum"] = json!([own]);
    }
    let condition = json!({ "properties": { "cc": { "const": scheme.name } }, "required": ["cc"] });
    let doc = format!("Parameters of {family}, in one of its variants.");
    let params = json!({ "properties": { VARIANT: which }, "description": doc });
    Some(json!({ "if": condition, "then": { "properties": { "params": params } } }))
}

fn describe_one(parameter: &Parameter) -> Json {
    let doc = parameter.doc;
    match parameter.kind {
        Kind::Number { min, max, unit } => {
            let unit = if unit == "1" { String::new() } else { format!(" ({unit})") };
            json!({ "type": "number", "minimum": min, "maximum": max, "description": format!("{doc}{unit}") })
        }
        Kind::Whole { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max, "description": doc })
        }
        Kind::Switch => json!({ "type": "boolean", "description": doc }),
        Kind::Choice(names) => json!({ "enum": names, "description": doc }),
    }
}
