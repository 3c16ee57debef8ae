//! The bounds of a controller's rate: those given, else the range of the encoder that it carries.

use super::file::File;
use super::flow::{App, FlowTable, RTP_HEADER};
use super::parameters::ParameterValue;
use crate::error::join;
use paceline_control::{EncoderRate, Kind, Machine, Parameter, Profile};
use paceline_units::{Rate, Size};

/// The parameter that sets the upper bound of a rate.
const MAX_RATE: &str = "max_rate";

/// A packet's headers by default: RTP's, UDP's and IP's.
const HEADERS: u64 = 40;

/// Whether a flow's maximum rate is a default. Flows that differ in this alone are equal, because it does not affect a
/// run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DefaultBound(bool);

impl PartialEq for DefaultBound {
    fn eq(&self, _: &DefaultBound) -> bool {
        true
    }
}

/// The minimum and maximum rate of what a controller carries, in bit/s including all headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Carried {
    min_rate: f64,
    max_rate: f64,
}

impl Carried {
    /// A parameter's default; it may follow the rates that its controller carries (`carried`).
    pub(crate) fn usual(carried: Option<Carried>, parameter: &Parameter, profile: Profile) -> f64 {
        let followed = carried.zip(parameter.follows).map(|(carried, follows)| match follows {
            EncoderRate::Min => carried.min_rate,
            EncoderRate::Max => carried.max_rate,
        });
        match (followed, parameter.kind) {
            (Some(rate), Kind::Number { min, max, .. }) => rate.clamp(min, max),
            _ => parameter.default[profile as usize],
        }
    }
}

impl FlowTable {
    /// The flow's part of the rates that its controller carries, in packets with these headers, and whether it is an
    /// encoder.
    fn carries(&self, headers: u64) -> Option<(Carried, bool)> {
        match &self.app {
            App::Encoder { min_rate, max_rate, .. } => {
                Some((Carried { min_rate: min_rate.bps(), max_rate: max_rate.bps() }, true))
            }
            App::Voice { .. } => {
                let (packet, interval) = self.app.ticks()?;
                // The size from `ticks` includes RTP's header.
                let rate = (packet.bytes() + headers.saturating_sub(RTP_HEADER)) as f64 * 8.0 / interval.as_secs_f64();
                Some((Carried { min_rate: rate, max_rate: rate }, false))
            }
            _ => None,
        }
    }
}

impl File {
    /// The rates that the controller of a flow on RTP carries: its own encoder's and those of its bundle; `None`
    /// without an encoder.
    pub(crate) fn carried(&self, name: &str) -> Option<Carried> {
        let flow = self.flow.get(name)?;
        if !flow.scheme().is_ok_and(|scheme| scheme.machine == Machine::Rtp) {
            return None;
        }
        let leads = flow.leader().unwrap_or(name);
        let headers = self.flow.get(leads).and_then(|flow| flow.header).map_or(HEADERS, Size::bytes);
        let together = self.flow.iter().filter(|(other, flow)| *other == leads || flow.leader() == Some(leads));
        let parts: Vec<(Carried, bool)> = together.filter_map(|(_, flow)| flow.carries(headers)).collect();
        let sum = |of: fn(&Carried) -> f64| parts.iter().map(|(part, _)| of(part)).sum();
        parts
            .iter()
            .any(|(_, is_encoder)| *is_encoder)
            .then(|| Carried { min_rate: sum(|part| part.min_rate), max_rate: sum(|part| part.max_rate) })
    }

    /// The same for one of the file's flows.
    pub(crate) fn carried_by(&self, flow: &FlowTable) -> Option<Carried> {
        let (name, _) = self.flow.iter().find(|(_, other)| std::ptr::eq(*other, flow))?;
        self.carried(name)
    }

    /// Records for each flow whether its maximum rate is a default: neither the file nor the flow's encoder sets it.
    /// `says` tells whether a key is in the file. Call before defaults are filled in.
    pub(crate) fn note_default_bounds(&mut self, says: impl Fn(&str) -> bool) {
        let said = |name: &str, flow: &FlowTable| {
            let encoder = matches!(flow.app, App::Encoder { .. });
            flow.params.contains_key(MAX_RATE) || encoder && says(&join(&join(&join("flow", name), "app"), MAX_RATE))
        };
        for (name, flow) in &mut self.flow {
            let follows = |p: &Parameter| p.name == MAX_RATE && p.follows == Some(EncoderRate::Max);
            let has = flow.scheme().is_ok_and(|scheme| scheme.parameters.iter().any(follows));
            flow.default_bound = DefaultBound(has && flow.bundle.is_none() && !said(name, flow));
        }
    }
}

impl FlowTable {
    /// The default upper bound of its controller's rate, if the scenario sets none.
    #[must_use]
    pub fn default_max_rate(&self) -> Option<Rate> {
        match self.params.get(MAX_RATE) {
            Some(ParameterValue::Number(rate)) if self.default_bound.0 => Some(Rate(*rate as u64)),
            _ => None,
        }
    }
}
