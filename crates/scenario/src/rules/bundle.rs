//! Rules for bundles: flows that go with another.

use super::Rules;
use super::machine::{feedback_of, wants_arrivals, wants_frames};
use crate::error::{hint, join, listed};
use crate::keys::file::File;
use crate::keys::flow::{App, FlowTable, WebArrivals};
use crate::keys::rtp::RtpTable;
use paceline_flow::rtp::FeedbackFormat;

/// Maximum tracks of a connection beside its first.
const MAX_LED_TRACKS: usize = 254;

/// Whether a flow with this scheme can lead others: its feedback reports single packets, and its frames have no times
/// of their own.
fn leads(flow: &FlowTable) -> bool {
    flow.scheme().is_ok_and(|scheme| wants_arrivals(scheme) && !wants_frames(scheme))
}

impl Rules {
    /// Rules for a flow in a bundle.
    pub(super) fn bundle(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let Some(bundle) = &flow.bundle else { return };
        let own = join(path, "bundle");
        if flow.coupled.is_some() {
            let problem = "is shared among controllers, of which a bundle has one: leave one of both tables out";
            self.note(join(path, "coupled"), problem);
        }
        if !flow.is_quic() && !matches!(flow.app, App::Encoder { .. } | App::Voice { .. }) {
            let problem =
                "says no rate that a bundle could leave it: use `encoder` or `voice`, or `transport = \"quic\"`";
            self.note(join(&join(path, "app"), "kind"), problem);
        }
        let Some(with) = &bundle.with else { return self.leader(file, path, flow) };
        let at = join(&own, "with");
        let Some(leader) = file.flow.get(with) else {
            let names = || file.flow.keys().map(String::as_str);
            let (hint, known) = (hint(with, names()), listed(names()));
            return self.note(at, format!("`{with}` must be the name of a flow{hint} (flows: {known})"));
        };
        if std::ptr::eq(leader, flow) {
            return self.note(at, "names the flow itself: leave it out of the flow with which the others go");
        }
        if leader.leader().is_some() {
            return self.note(at, format!("`{with}` goes with another itself: name that one"));
        }
        if leader.bundle.is_none() {
            let problem = format!("`{with}` has no table `bundle`: give it one, such as `bundle = {{ priority = 1 }}`");
            return self.note(at, problem);
        }
        let ends = |flow: &FlowTable| (flow.from.clone(), flow.to.clone());
        let differs = [
            ("cc", flow.cc != leader.cc),
            ("params", flow.params != leader.params),
            ("profile", flow.profile != leader.profile),
            ("transport", flow.is_quic() != leader.is_quic()),
            ("initial_window", flow.initial_window != leader.initial_window),
            ("rtp", flow.rtp != leader.rtp),
            ("ecn", flow.ecn != leader.ecn),
            ("count", flow.count != leader.count),
            ("from", ends(flow).0 != ends(leader).0),
            ("to", ends(flow).1 != ends(leader).1),
            ("segment", flow.segment.is_some() && flow.segment != leader.segment),
            ("header", flow.header.is_some() && flow.header != leader.header),
        ];
        for (key, _) in differs.iter().filter(|(_, differs)| *differs) {
            self.note(join(path, key), format!("must be that of `{with}`, with which it goes; leave it out"));
        }
        let (own, its) = (flow.quic.clone().unwrap_or_default(), leader.quic.clone().unwrap_or_default());
        for key in own.differs(&its) {
            let problem = format!("must be that of `{with}`, whose connection it is; leave it out");
            self.note(join(&join(path, "quic"), key), problem);
        }
        if flow.is_quic() && flow.delays == Some(true) {
            let problem =
                "is of packets, which are the connection's; what comes of frames is measured anyway: leave it out";
            self.note(join(path, "delays"), problem);
        }
        for (key, given) in [("rtt", flow.rtt.is_some()), ("access", flow.access.is_some())] {
            if given {
                self.note(join(path, key), format!("belongs to the host that it shares with `{with}`: leave it out"));
            }
        }
        if flow.start.maximum() < leader.start.maximum() {
            self.note(join(path, "start"), format!("must not be before that of `{with}`, with which it goes"));
        }
        let ends_later = leader.stop.is_some_and(|stop| flow.stop.is_none_or(|own| own > stop));
        if ends_later {
            self.note(join(path, "stop"), format!("must not be after that of `{with}`, with which it goes"));
        }
    }

    /// Rules for a leading flow.
    fn leader(&mut self, file: &File, path: &str, flow: &FlowTable) {
        if flow.is_quic() {
            return self.leader_of_tracks(file, path, flow);
        }
        if !leads(flow) {
            let problem = format!(
                "`{}` leads no bundle: use a scheme that is told of single packets and gives frames no times of their own, such as \
                 `gcc`, `nada` or `scream`",
                flow.cc
            );
            return self.note(join(path, "cc"), problem);
        }
        let usual = flow.scheme().ok().and_then(feedback_of);
        let feedback = flow.rtp.as_ref().and_then(RtpTable::format).or(usual);
        if feedback != Some(FeedbackFormat::Transport) {
            let problem = "must be `twcc` in a bundle, whose numbers are those of all its packets";
            self.note(join(&join(path, "rtp"), "feedback"), problem);
        }
        if flow.rtp.as_ref().is_some_and(|rtp| rtp.ecn_reports == Some(true)) {
            let problem = "counts the packets of one source, and a bundle has several: leave it out";
            self.note(join(&join(path, "rtp"), "ecn_reports"), problem);
        }
    }

    /// Rules for a flow whose connection has tracks of others.
    fn leader_of_tracks(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let name = file.flow.iter().find(|(_, other)| std::ptr::eq(*other, flow)).map(|(name, _)| name.as_str());
        let led = file.flow.values().filter(|other| other.leader().is_some() && other.leader() == name).count();
        if led > MAX_LED_TRACKS {
            self.note(
                join(path, "bundle"),
                format!("is led for {led} others, but a connection has at most {MAX_LED_TRACKS}"),
            );
        }
        if matches!(flow.app, App::Web { arrivals: WebArrivals::Think, .. }) {
            let problem =
                "`think` opens a connection for each transfer, and others have theirs here: use `think-persistent`";
            self.note(join(&join(path, "app"), "arrivals"), problem);
        }
    }
}
