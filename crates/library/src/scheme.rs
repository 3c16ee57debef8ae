//! Loads a library and describes its controllers as schemes.

use crate::abi::{ABI, Controller, Controllers, Gauge, Parameter as CParameter};
use crate::state::{Known, text};
use crate::{media, rate, window};
use core::ffi::c_char;
use paceline_control::foreign::{ControllerArgs, Foreign, Maker};
use paceline_control::rtp::{FeedbackConfig, FeedbackFormat, RtpFeedback};
use paceline_control::{Ecn, GaugeUnit, Machine, Needs, Parameter, Profile, Recovery, RtpSettings, Scheme, Settings};
use paceline_random::Stream;
use paceline_units::Span;
use std::path::Path;
use std::slice;

/// Maximum number of a library's controllers, of a controller's parameters and gauges; and maximum bytes of its state.
const MAX_COUNT: u32 = 1000;
const MAX_STATE: u32 = 1 << 26;

/// Why a library provides no controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// The system cannot load it.
    #[error("cannot be loaded: {0}")]
    Unloadable(String),
    /// It does not export `paceline_controllers`.
    #[error("does not export paceline_controllers: see paceline.h (`paceline include` says where)")]
    NoEntry,
    /// It was built with a different ABI of the header.
    #[error(
        "has ABI {theirs} of paceline.h, and this Paceline has {ABI}: build it anew with the header that `paceline include` names"
    )]
    Abi {
        /// The library's ABI.
        theirs: u32,
    },
    /// Its description of a controller is invalid.
    #[error("controller {controller}: {problem}")]
    Controller {
        /// The controller's name.
        controller: String,
        /// What is wrong.
        problem: String,
    },
    /// It has several controllers, and none was named, or one that it does not have.
    #[error("has the controllers {}: name one, as library:FILE:{}", .0.join(", "), .0[0])]
    Which(Vec<String>),
    /// It has no controllers.
    #[error("has no controllers")]
    Empty,
}

fn for_ever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn static_text(of: *const c_char) -> &'static str {
    for_ever(text(of))
}

/// Loads a library, and makes a scheme named `scheme` of its controller named `controller`, or of its only one. From
/// now on the library's code runs in this process.
///
/// # Errors
/// Why the library or the controller cannot be used.
pub fn load(path: &Path, controller: Option<&str>, scheme: &str) -> Result<&'static Scheme, LoadError> {
    // SAFETY: loading runs the library's initialisers, which the user requests by naming it.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| LoadError::Unloadable(said(&error)))?;
    // never unloaded: schemes point into it
    let library = for_ever(library);
    // SAFETY: the header declares the symbol with this type.
    let entry = unsafe { library.get::<Controllers>(b"paceline_controllers\0") }.map_err(|_| LoadError::NoEntry)?;
    let mut count = 0;
    // SAFETY: by the header, it writes the number of controllers and returns an array of that length.
    let first = unsafe { entry(ABI, &raw mut count) };
    if first.is_null() || count == 0 {
        return Err(LoadError::Empty);
    }
    // SAFETY: the field `abi` comes first in every version of the struct.
    let theirs = unsafe { (*first).abi };
    if theirs != ABI {
        return Err(LoadError::Abi { theirs });
    }
    // SAFETY: an array of `count` structs of this ABI, which lives as long as the library.
    let all = unsafe { slice::from_raw_parts(first, count.min(MAX_COUNT) as usize) };
    let found = match controller {
        None => Some(&all[0]).filter(|_| all.len() == 1),
        Some(name) => all.iter().find(|one| text(one.name) == name),
    };
    let of = found.ok_or_else(|| LoadError::Which(all.iter().map(|one| text(one.name)).collect()))?;
    described(of, scheme).map_err(|problem| LoadError::Controller { controller: text(of.name), problem })
}

/// The system's error message, with its cause.
fn said(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |cause| cause.to_string())
}

/// The scheme that a controller's struct describes.
fn described(of: &'static Controller, name: &str) -> Result<&'static Scheme, String> {
    let name: &'static str = for_ever(name.to_owned());
    if of.state_size > MAX_STATE {
        return Err(format!("a state of {} B; {MAX_STATE} at most", of.state_size));
    }
    let own = gauges(of)?;
    let known = for_ever(Known { of, name, gauges: own.clone() });
    let (machine, mut gauges, maker) = match of.machine {
        1 => {
            needed(of.on_tcp.is_some(), "on_tcp")?;
            let recovery = recovery(of)?;
            let needs = needs(of)?;
            let make = move |args: &ControllerArgs, stream: Stream| Ok(window::new(known, needs, args, stream));
            (
                // a kernel has only one machine, and so does ns-2's agent of it
                Machine::Tcp([recovery, recovery, Recovery::Sack, Recovery::Rack]),
                vec![("cwnd", GaugeUnit::Packets), ("ssthresh", GaugeUnit::Packets)],
                Maker::Window(Box::new(make), needs),
            )
        }
        2 => {
            needed(of.on_tfrc.is_some(), "on_tfrc")?;
            let settings = Settings::PLAIN;
            let make = move |args: &ControllerArgs, stream: Stream| Ok(rate::new(known, settings, args, stream));
            (Machine::Tfrc, allowed(), Maker::Rate(Box::new(make), settings))
        }
        3 => {
            needed(of.on_rtp.is_some(), "on_rtp")?;
            let settings = rtp_settings(of);
            let make = move |args: &ControllerArgs, stream: Stream| Ok(media::new(known, settings, args, stream));
            (Machine::Rtp, allowed(), Maker::Media(Box::new(make), settings))
        }
        other => return Err(format!("machine = {other}: PACELINE_TCP, PACELINE_TFRC or PACELINE_RTP")),
    };
    gauges.extend(own);
    Ok(for_ever(Scheme {
        name,
        summary: static_text(of.summary),
        source: static_text(of.source),
        machine,
        parameters: for_ever(parameters(of)?),
        foreign: Some(for_ever(Foreign { gauges, maker })),
    }))
}

fn allowed() -> Vec<(&'static str, GaugeUnit)> {
    vec![("allowed", GaugeUnit::BitsPerSecond)]
}

fn needed(there: bool, name: &str) -> Result<(), String> {
    if there { Ok(()) } else { Err(format!("{name} is NULL")) }
}

fn recovery(of: &Controller) -> Result<Recovery, String> {
    let all = [Recovery::Sack, Recovery::NewReno, Recovery::Reno, Recovery::Tahoe, Recovery::Rack];
    let found = all.get(of.recovery as usize).copied();
    let recovery = found.ok_or_else(|| format!("recovery = {}: one of PACELINE_SACK to PACELINE_RACK", of.recovery))?;
    if of.needs & 7 != 0 && recovery != Recovery::Rack {
        return Err("needs has PACELINE_DELIVERIES or PACELINE_PACING, which want recovery = PACELINE_RACK".to_owned());
    }
    Ok(recovery)
}

fn needs(of: &Controller) -> Result<Needs, String> {
    let is = |bit: u32| of.needs & bit != 0;
    if of.needs > 15 {
        return Err(format!("needs = {}: a sum of PACELINE_DELIVERIES to PACELINE_L4S", of.needs));
    }
    let ecn = [Ecn::Off, Ecn::Classic, Ecn::Dctcp, Ecn::Accurate].get(of.ecn as usize).copied();
    let ecn = ecn.ok_or_else(|| format!("ecn = {}: one of PACELINE_ECN_OFF to PACELINE_ECN_ACCURATE", of.ecn))?;
    Ok(Needs { deliveries: is(1), pacing: is(2) || is(4), rate_clocked: is(4), ecn, l4s: is(8) })
}

fn rtp_settings(of: &Controller) -> RtpSettings {
    let usual = RtpSettings::default();
    let wide = of.transport_wide != 0;
    let format = if wide { FeedbackFormat::Transport } else { FeedbackFormat::Rfc8888 };
    let interval = Some(Span(of.feedback_interval)).filter(|span| *span > Span::ZERO);
    RtpSettings {
        silence: of.silence,
        feedback: if of.wants_reports != 0 { RtpFeedback::Reports } else { RtpFeedback::Arrivals },
        feedback_interval: interval.unwrap_or(usual.feedback_interval),
        feedback_config: FeedbackConfig { format, ..FeedbackConfig::PLAIN },
        report_sent: of.tells_sending != 0,
        tick: Span(of.timer),
        ..usual
    }
}

/// An array of the library.
fn array<T>(what: &str, first: *const T, count: u32) -> Result<&'static [T], String> {
    if count > MAX_COUNT {
        return Err(format!("{count} {what}; {MAX_COUNT} at most"));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(format!("{count} {what}, and where they are is NULL"));
    }
    // SAFETY: by the struct, the array has `count` items and lives as long as the library, which is never unloaded.
    Ok(unsafe { slice::from_raw_parts(first, count as usize) })
}

fn gauges(of: &Controller) -> Result<Vec<(&'static str, GaugeUnit)>, String> {
    let gauge = |gauge: &Gauge| {
        let unit = match text(gauge.unit).as_str() {
            "" | "1" => GaugeUnit::One,
            "packets" => GaugeUnit::Packets,
            "bytes" => GaugeUnit::Bytes,
            "s" => GaugeUnit::Seconds,
            "bps" => GaugeUnit::BitsPerSecond,
            other => {
                return Err(format!("gauge {}: unit `{other}` is none of 1, packets, bytes, s, bps", text(gauge.name)));
            }
        };
        Ok((static_text(gauge.name), unit))
    };
    array("gauges", of.gauges, of.gauge_count)?.iter().map(gauge).collect()
}

fn parameters(of: &Controller) -> Result<Vec<Parameter>, String> {
    let parameter = |of: &CParameter| {
        let name = static_text(of.name);
        let (min, max) = (of.least, of.most);
        let ordered = min.is_finite() && max.is_finite() && (min..=max).contains(&of.initial);
        if name.is_empty() || !ordered {
            return Err(format!("parameter {name}: {} is not from {min} to {max}, two finite numbers", of.initial));
        }
        let default = [of.initial; Profile::ALL.len()];
        Ok(match of.whole {
            0 => Parameter::number(name, default, (min, max), static_text(of.unit), static_text(of.doc)),
            _ => Parameter::whole(name, default, (min, max), static_text(of.doc)),
        })
    };
    array("parameters", of.parameters, of.parameter_count)?.iter().map(parameter).collect()
}
