//! Warnings about streams and transfers that no run of a scenario can complete, whatever the seed.

use super::Warnings;
use crate::document::Document;
use crate::error::join;
use crate::keys::draw::Draw;
use crate::keys::flow::{App, FlowTable};
use crate::model::{FlowModel, Model, Path};
use crate::scenario::Scenario;
use paceline_units::{Size, Span};

impl Scenario {
    /// Streams and transfers that the end of every run cuts off, in the form of [`Scenario::warnings`]. Runs that do so
    /// have notices as well, so the user is warned twice.
    #[must_use]
    pub fn cut_short(&self, document: &Document, model: &Model, paths: &[Path]) -> Vec<String> {
        let mut warnings = Warnings { document, file: &self.file, found: Vec::new() };
        for (name, flow) in &self.file.flow {
            // A run with `stop_after` does not wait for other flows.
            if self.file.stop_after.as_ref().is_none_or(|last| last == name) {
                warnings.cut(&join("flow", name), name, flow, model, paths);
            }
        }
        warnings.into_lines()
    }
}

impl Warnings<'_> {
    fn cut(&mut self, path: &str, name: &str, flow: &FlowTable, model: &Model, paths: &[Path]) {
        let end = self.file.duration;
        // A flow with a stop is not cut by the run.
        if flow.stop.is_some_and(|stop| stop <= end) {
            return;
        }
        let (key, what, size) = match &flow.app {
            App::Stream { length, media_rate, .. } => {
                let size = Size::from_bytes((media_rate.bps() * length.as_secs_f64() / 8.0) as u64);
                ("length", format!("a medium of {length}"), size)
            }
            App::Ftp { size: Some(size), .. } => ("size", format!("`{size}`"), *size),
            _ => return,
        };
        let ours = || model.flows.iter().zip(paths).filter(|(flow, _)| flow.name == name);
        let is_cut = |(of, (there, _)): &(&FlowModel, &Path)| {
            let start = if flow.start.is_drawn() { Draw::minimum(&flow.start) } else { Some(Span(of.start.0)) };
            let left = end.as_secs_f64() - start.unwrap_or_default().as_secs_f64();
            let rates = there.iter().map(|&arc| &model.links[arc]).filter(|link| link.cell.is_none());
            let rate = rates.map(|link| link.model.rate.peak()).min();
            let sent = rate.map_or(0.0, |rate| size.bytes() as f64 * 8.0 / rate.bps());
            match &of.stream {
                None => sent > left,
                // The stream ends when all of it has arrived, or when all of it is due.
                Some(medium) => {
                    let handed = medium.length.as_secs_f64() / medium.xfactor - medium.heartbeat.as_secs_f64();
                    let last = medium.segment.bytes() as f64 * 8.0 / medium.media_rate.bps();
                    sent.max(handed) > left && medium.length.as_secs_f64() - last > left
                }
            }
        };
        let (cut, of) = (ours().filter(is_cut).count(), ours().count());
        if cut > 0 {
            let key = join(&join(path, "app"), key);
            let looked_at = if (of as u64) < u64::from(flow.count) { " that were looked at" } else { "" };
            let which = if cut < of { format!(" ({cut} of {of}{looked_at})") } else { String::new() };
            let problem =
                format!("{what} cannot arrive before the run's end, {end}{which}: give the run a longer `duration`");
            self.note(key, problem);
        }
    }
}
