//! Rules for relays, and for flows that are relayed.

use super::Rules;
use crate::error::{hint, join, listed};
use crate::keys::file::File;
use crate::keys::flow::FlowTable;
use crate::keys::quic::CarriageKey;

impl Rules {
    /// Rules for a flow that is a relay or is relayed.
    pub(super) fn relay(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let name = file.flow.iter().find(|(_, other)| std::ptr::eq(*other, flow)).map(|(name, _)| name.as_str());
        let connection = flow.leader().or(name).unwrap_or_default();
        let queue = flow.quic.as_ref().and_then(|quic| quic.queue);
        if queue.is_some() && !file.relaying_connections().contains(connection) {
            let problem = "is a relay's, and no flow of this connection is one: leave it out";
            self.note(join(&join(path, "quic"), "queue"), problem);
        }
        let shares = |of: &str| Some(of) == name || file.flow.get(of).is_some_and(|of| of.leader() == name);
        let relay = file.flow.iter().find(|(_, other)| name.is_some() && other.relayed().is_some_and(shares));
        let receiver = flow.access.as_ref().is_some_and(|access| access.receiver.is_some());
        if let Some((relay, _)) = relay.filter(|_| receiver) {
            let problem = format!("is the host's of the relay that `{relay}` leaves: leave it out");
            self.note(join(&join(path, "access"), "receiver"), problem);
        }
        let Some(of) = flow.relayed() else { return };
        let app = join(path, "app");
        let at = join(&app, "of");
        let Some(relayed) = file.flow.get(of) else {
            let names = || file.flow.keys().map(String::as_str);
            let (hint, known) = (hint(of, names()), listed(names()));
            return self.note(at, format!("`{of}` must be the name of a flow{hint} (flows: {known})"));
        };
        let Some(origin) = file.origin(flow) else {
            let problem = format!(
                "`{of}` sends on, by way of others or at once, what this flow does: name the flow that has an application"
            );
            return self.note(at, problem);
        };
        if !relayed.is_quic() {
            let problem =
                format!("`{of}` is not over QUIC, by which its frames would come: give it `transport = \"quic\"`");
            return self.note(at, problem);
        }
        if !flow.is_quic() {
            self.note(
                join(path, "transport"),
                "must be `quic`: what a relay sends on are QUIC's streams and datagrams",
            );
        }
        if !origin.app.has_frames() {
            let problem = format!(
                "`{of}` has no frames that could be sent on: it needs an application such as `encoder` or `voice`"
            );
            self.note(at.clone(), problem);
        }
        if origin.app.has_frames() && origin.carriage() == CarriageKey::Stream {
            let problem = format!(
                "`{of}` has all its frames in one stream, of which none could be given up: give it `carriage = \"stream-each\"`"
            );
            self.note(at.clone(), problem);
        }
        let (arrives, leaves) = (self.ends(file, relayed).1, self.ends(file, flow).0);
        if arrives != leaves {
            self.note(join(path, "from"), format!("must be where `{of}` ends, `{arrives}`, for there is the relay"));
        }
        if relayed.count != 1 && relayed.count != flow.count {
            let problem = format!("must be that of `{of}`, {}, whose instances each have a relay", relayed.count);
            self.note(join(path, "count"), problem);
        }
        if flow.start.maximum() < relayed.start.maximum() {
            self.note(
                join(path, "start"),
                format!("must not be before that of `{of}`, of which nothing comes until then"),
            );
        }
        if let Some(stop) = relayed.stop
            && flow.start.maximum().is_some_and(|start| start >= stop)
        {
            self.note(join(path, "start"), format!("must be before `{of}` stops, at {stop}: nothing comes after that"));
        }
        if flow.carriage() != origin.carriage() {
            let problem = format!(
                "must be that of `{of}`: a relay sends streams on as streams, and datagrams as datagrams; leave it out"
            );
            self.note(join(&join(path, "quic"), "carriage"), problem);
        }
        let own = flow.access.clone().unwrap_or_default();
        let access = join(path, "access");
        let given = [
            (join(path, "rtt"), flow.rtt.is_some()),
            (join(&access, "rate"), own.rate.is_some()),
            (join(&access, "loss"), own.loss.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            self.note(key, format!("belongs to the relay's host, at which `{of}` ends: leave it out"));
        }
    }
}
