//! Rules for the parameters of controllers.

use super::Rules;
use crate::error::{hint, join, listed};
use crate::keys::bounds::Carried;
use crate::keys::file::Profile;
use crate::keys::flow::FlowTable;
use paceline_control::{Kind, Machine, Scheme, Setting, VARIANT, registry};

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
