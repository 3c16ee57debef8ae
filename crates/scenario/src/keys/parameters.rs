//! A controller's parameters in a scenario file: how they are written, their allowed values, and when one has no
//! effect.

use super::flow::FlowTable;
use super::named::OWN;
use paceline_control::registry::schemes;
use paceline_control::{Kind, Parameter, Scheme, Setting, VARIANT};
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
#[must_use]
pub fn given<'a>(flow: &'a FlowTable, scheme: &Scheme) -> Vec<(&'a str, f64)> {
    let value = |name: &str, written: &ParameterValue| {
        scheme.parameters.iter().find(|p| p.name == name)?.value(&written.setting())
    };
    flow.params.iter().filter_map(|(name, written)| Some((name.as_str(), value(name, written)?))).collect()
}

/// Adds the controllers and each one's parameters to the schema.
pub(crate) fn describe(schema: &mut Json) {
    let old = |scheme: &&Scheme| scheme.variant().is_some_and(|(family, _)| family != scheme.name);
    let names: Vec<&str> = schemes().filter(|scheme| !old(scheme)).map(|scheme| scheme.name).collect();
    let before: Vec<&str> = schemes().filter(old).map(|scheme| scheme.name).collect();
    let own = format!("^({}).", OWN.join("|"));
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
