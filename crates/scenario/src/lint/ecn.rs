//! Warnings about ECN: flows whose packets no queue marks, whose marks do not arrive, or that ignore marks.

use super::Warnings;
use crate::error::join;
use crate::keys::flow::FlowTable;
use crate::keys::rtp::FeedbackKind;
use crate::model::{FlowModel, Model, Path};
use paceline_control::WindowController as _;
use paceline_flow::Transport;

impl Warnings<'_> {
    /// Checks a flow; `ours` are its instances, each with its paths.
    pub(super) fn ecn<'m>(
        &mut self,
        path: &str,
        flow: &FlowTable,
        model: &Model,
        ours: impl Iterator<Item = (&'m FlowModel, &'m Path)>,
    ) {
        // Some controllers turn ECN on by themselves; then there is no key to leave out.
        let written = self.document.says(&join(path, "ecn"));
        let key = join(path, if written { "ecn" } else { "cc" });
        let ways = ours.filter(|(flow, _)| is_capable(&flow.transport)).map(|(_, (there, _))| marks_on(model, there));
        match ways.min() {
            Some(Marks::None) => {
                let (what, instead) = match written {
                    true => (String::new(), "leave it out"),
                    false => (format!("`{}` goes by marks, and ", flow.cc), "use another controller"),
                };
                let problem = format!(
                    "{what}no queue on its way marks: give one of them `kind = \"dualpi2\"` or `\"cake\"`, or another that marks (`red`, `codel`, \
                     `fq-codel`, `pie`, `fq-pie`) and `ecn = true`, or {instead}"
                );
                self.note(&key, problem);
            }
            Some(Marks::Bleached) => {
                let problem = "no mark arrives, since `bleach_ecn` on its way clears them: the sender goes on as if there were none";
                self.note(&key, problem);
            }
            Some(Marks::Arrive) | None => {}
        }
        if flow.ecn == Some(true) && matches!(flow.cc.as_str(), "bbr" | "bbr3" | "gcc") {
            let problem = format!(
                "`{}` takes no notice of marks, which spare its packets from being dropped early: leave this out, or use a controller that heeds them",
                flow.cc
            );
            self.note(&key, problem);
        }
        let reports = flow.rtp.as_ref().is_some_and(|rtp| rtp.ecn_reports == Some(true));
        let twcc = !reports && flow.rtp.as_ref().is_some_and(|rtp| rtp.feedback == Some(FeedbackKind::Twcc));
        if flow.ecn == Some(true) && twcc && flow.cc != "gcc" {
            let problem = "marks are not told of with `rtp.feedback = \"twcc\"`, so that the sender goes on as if there were none: leave this \
                           out, or use `\"rfc8888\"` or `rtp.ecn_reports = true`";
            self.note(&key, problem);
        }
    }
}

/// The fate of marks on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Marks {
    /// No queue sets marks.
    None,
    /// A queue could mark, but a link clears the marks, or made the packets Not-ECT before.
    Bleached,
    /// Marks reach the receiver.
    Arrive,
}

fn marks_on(model: &Model, way: &[usize]) -> Marks {
    let (mut is_bleached, mut marks) = (false, Marks::None);
    for &arc in way {
        if self::marks(model, arc) {
            marks = if is_bleached { marks.max(Marks::Bleached) } else { Marks::Arrive };
        }
        if model.links[arc].model.bleaches_ecn {
            is_bleached = true;
            marks = marks.min(Marks::Bleached);
        }
    }
    marks
}

/// Whether a flow's packets are ECT(1), those of a scalable sender.
pub(super) fn is_scalable(transport: &Transport) -> bool {
    match transport {
        Transport::Quic { controller, .. } | Transport::Tcp { controller, .. } => {
            is_capable(transport) && controller.needs().l4s
        }
        Transport::Rtp { config, .. } => is_capable(transport) && config.settings.l4s,
        Transport::Acks { .. } | Transport::Tfrc { .. } | Transport::Udp(_) => false,
    }
}

/// Whether a flow's packets are ECN-capable.
pub(super) fn is_capable(transport: &Transport) -> bool {
    match transport {
        Transport::Tcp { config, .. } => config.ecn.is_on(),
        Transport::Quic { config, .. } => config.ecn,
        Transport::Rtp { config, .. } => config.ecn,
        Transport::Tfrc { config, .. } => config.ecn,
        Transport::Acks { .. } | Transport::Udp(_) => false,
    }
}

/// Whether a queue on this arc marks packets; over the air, the access point's or the station's.
fn marks(model: &Model, arc: usize) -> bool {
    let link = &model.links[arc];
    let Some(cell) = link.cell.map(|cell| &model.cells[cell]) else { return link.model.queue.marks() };
    let (station, up) = ((arc - cell.first_link) / 2, (arc - cell.first_link) % 2 == 1);
    if up { cell.model.stations[station].queue.marks() } else { cell.model.queue.marks() }
}
