//! Rules for coupled flows.

use super::Rules;
use crate::error::{Mistake, join};
use crate::keys::file::File;
use crate::keys::flow::FlowTable;
use paceline_control::{Machine, MediaController, Profile, RtpController, Scheme};

/// Whether a scheme's controller reports its calculated rate, and accepts another.
fn couples(scheme: &Scheme) -> bool {
    scheme.machine == Machine::Rtp
        && RtpController::new(scheme, Profile::Rfc, &[]).is_ok_and(|controller| controller.coupled().is_some())
}

impl Rules {
    /// Rules for a coupled flow.
    pub(super) fn coupled(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let Some(coupled) = &flow.coupled else { return };
        let own = join(path, "coupled");
        self.name(&join(&own, "group"), &coupled.group);
        if let Ok(scheme) = flow.scheme()
            && !couples(scheme)
        {
            let problem =
                format!("`{}` takes no rate from others: use `gcc` or `nada`, or leave the table out", scheme.name);
            self.note(&*own, problem);
        }
        if flow.rtt.is_some() {
            let problem =
                "coupled flows begin at one host, whose link is as long for all: leave it out, or give links a `delay`";
            self.note(join(path, "rtt"), problem);
        }
        if flow.access.as_ref().is_some_and(|access| access.rate.is_some() || access.loss.is_some()) {
            self.note(join(path, "access"), "coupled flows begin at one host, which has the link that `[access]` says");
        }
        let mut others = file.flow.iter().filter_map(|(name, flow)| Some((name, flow.coupled.as_ref()?)));
        if let Some((name, first)) = others.find(|(_, other)| other.group == coupled.group)
            && first.algorithm != coupled.algorithm
        {
            let problem = format!("must be the same for the whole group, and flow `{name}` has another");
            self.mistakes.push(Mistake::new(join(&own, "algorithm"), problem));
        }
    }
}
