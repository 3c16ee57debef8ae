//! Controllers that are not compiled in, in flows between hosts: they run only at the sending end.
//!
//! The receiver is given a flow of the same machine with a compiled-in controller, which it never runs: one host's code
//! does not run on another.

use super::flow::FlowSpec;
use paceline_control::{Machine, Recovery, RtpFeedback, Scheme};
use paceline_flow::Transport;

/// Keys with which a controller sets its receiver's behaviour, unless the flow sets them.
const SHARED: [&str; 4] = ["ecn", "ecn_feedback", "recovery", "rtp"];

/// This end's schemes that are not compiled in.
#[derive(Clone, Debug, Default)]
pub struct ForeignSchemes {
    /// The schemes.
    pub schemes: Vec<&'static Scheme>,
    /// The flow's name in messages.
    pub flow: String,
}

impl PartialEq for ForeignSchemes {
    fn eq(&self, other: &ForeignSchemes) -> bool {
        let same = |(own, other): (&&Scheme, &&Scheme)| std::ptr::eq(*own, *other);
        self.schemes.len() == other.schemes.len() && self.schemes.iter().zip(&other.schemes).all(same)
    }
}

impl Eq for ForeignSchemes {}

impl FlowSpec {
    /// The scheme that it names, if that is not compiled in.
    fn own_scheme(&self) -> Option<&'static Scheme> {
        let (_, cc) = self.settings.iter().rfind(|(key, _)| key == "cc")?;
        self.foreign.schemes.iter().copied().find(|scheme| scheme.name == cc.trim_matches('"'))
    }

    /// The flow as sent to its receiver: unchanged, unless its controller is not compiled in.
    #[must_use]
    pub fn for_receiver(&self) -> FlowSpec {
        let Some((scheme, model)) = self.own_scheme().and_then(|scheme| Some((scheme, self.model().ok()?))) else {
            return self.clone();
        };
        let is_its = |key: &str| {
            let whole = key.split('.').next().unwrap_or_default();
            ["cc", "params"].contains(&whole) || SHARED.contains(&whole)
        };
        let mut settings: Vec<_> = self.settings.iter().filter(|(key, _)| !is_its(key)).cloned().collect();
        settings.extend(self.filled(&SHARED));
        settings.push(("cc".to_owned(), format!("\"{}\"", stand_in(scheme, &model.transport))));
        FlowSpec { settings, foreign: ForeignSchemes::default(), ..self.clone() }
    }
}

/// A compiled-in controller whose receiver behaves the same.
fn stand_in(scheme: &Scheme, transport: &Transport) -> &'static str {
    match (scheme.machine, transport) {
        (Machine::Tcp(_), Transport::Tcp { config, .. }) => match config.recovery {
            Recovery::Tahoe => "tahoe",
            Recovery::NewReno => "newreno",
            Recovery::Sack if config.profile == paceline_control::Profile::Rfc => "sack",
            _ => "reno",
        },
        (Machine::Tcp(_), Transport::Quic { .. }) => "newreno",
        (Machine::Rtp, Transport::Rtp { config, .. }) if config.settings.feedback == RtpFeedback::Reports => "lda-plus",
        (Machine::Rtp, _) => "nada",
        _ => "tfrc",
    }
}
