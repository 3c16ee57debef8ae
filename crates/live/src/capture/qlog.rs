//! Logs (qlog) of a run's QUIC connections: a file per connection and end, in one folder.

mod connection;
mod end;
mod flow;
mod packets;

use super::error::{CaptureError, failed};
use end::End;
use flow::Flow;
use paceline_packet::FlowId;
use paceline_scenario::model::Model;
use paceline_sim::{Captured, QuicEvent};
use std::path::Path;

/// The logs of a run.
pub(super) struct Logs<'a> {
    folder: &'a Path,
    /// By flow number; `None` for flows that do not use QUIC.
    flows: Vec<Option<(Flow, [End; 2])>>,
    /// The node of each flow's sender.
    sources: Vec<usize>,
}

impl<'a> Logs<'a> {
    /// Logs of this run's flows in a folder, which is created if it does not exist.
    pub(super) fn begin(model: &Model, folder: &'a Path) -> Result<Logs<'a>, CaptureError> {
        let ends = |flow: &Flow| [End::new(!flow.receiver_requests), End::new(flow.receiver_requests)];
        let flow = |number| {
            let flow = Flow::of(model, number)?;
            let ends = ends(&flow);
            Some((flow, ends))
        };
        let flows: Vec<_> = (0..model.flows.len()).map(flow).collect();
        if flows.iter().all(Option::is_none) {
            return Err(CaptureError::NothingToLog);
        }
        let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::read_dir(folder));
        if made.map_err(failed(folder))?.next().is_some() {
            return Err(CaptureError::NotEmpty(folder.to_owned()));
        }
        let sources = model.flows.iter().map(|flow| flow.source).collect();
        Ok(Logs { folder, flows, sources })
    }

    /// Logs a packet that leaves or reaches a host.
    pub(super) fn packet(&mut self, captured: &Captured) -> Result<(), CaptureError> {
        let FlowId(number) = captured.packet.flow;
        let at_source = self.sources.get(number as usize) == Some(&captured.node);
        let Some(Some((flow, ends))) = self.flows.get_mut(number as usize) else { return Ok(()) };
        ends[usize::from(!at_source)].packet(captured, flow, self.folder).map_err(failed(self.folder))
    }

    /// Logs an event at an end.
    pub(super) fn noted(&mut self, noted: &QuicEvent) -> Result<(), CaptureError> {
        let FlowId(number) = noted.flow;
        let Some(Some((flow, ends))) = self.flows.get_mut(number as usize) else { return Ok(()) };
        ends[usize::from(!noted.sends)].noted(noted, flow, self.folder).map_err(failed(self.folder))
    }

    /// Flushes buffered data.
    pub(super) fn finish(self) -> Result<(), CaptureError> {
        let mut ends = self.flows.into_iter().flatten().flat_map(|(_, ends)| ends);
        ends.try_for_each(|mut end| end.finish()).map_err(failed(self.folder))
    }
}
