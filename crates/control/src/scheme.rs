//! Schemes: the names, parameters and construction of controllers.

use crate::foreign::Foreign;
use crate::{Kind, Parameter};
use core::fmt;

/// Which implementation to follow: where the RFCs, ns-2 and Linux differ, each is a profile (docs/profiles.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Profile {
    /// The RFCs.
    #[default]
    Rfc,
    /// ns-2.35, the agents of the family `Agent/TCP`.
    Ns2,
    /// ns-2.35, `Agent/TCP/Linux` with SACK and timestamps (Linux 2.6.22 controllers).
    Ns2Linux,
    /// A current Linux kernel: RACK-TLP, PRR, CUBIC with HyStart.
    Linux,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 4] = [Profile::Rfc, Profile::Ns2, Profile::Ns2Linux, Profile::Linux];

    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Rfc => "rfc",
            Profile::Ns2 => "ns2",
            Profile::Ns2Linux => "ns2-linux",
            Profile::Linux => "linux",
        }
    }

    /// The profile of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// How lost segments are detected and retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Recovery {
    /// Fast retransmit, then slow start (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2581).
    Reno,
    /// Fast recovery through partial acknowledgements (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018, RFC 6675).
    Sack,
    /// Vegas' fine-grained timeouts on duplicate acknowledgements (Brakmo and Peterson 1995, section 3.1).
    Vegas,
    /// RACK-TLP: time-based (RFC 8985), with selective acknowledgements, as in a current Linux kernel.
    Rack,
}

impl Recovery {
    /// All of them.
    pub const ALL: [Recovery; 6] =
        [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Vegas, Recovery::Rack];

    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Recovery::Tahoe => "tahoe",
            Recovery::Reno => "reno",
            Recovery::NewReno => "newreno",
            Recovery::Sack => "sack",
            Recovery::Vegas => "vegas",
            Recovery::Rack => "rack",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Recovery> {
        Recovery::ALL.into_iter().find(|r| r.name() == name)
    }
}

/// The machine that a scheme runs on (crate `flow`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// Paced datagrams, each acknowledged, without retransmission.
    Acks,
    /// RTP: paced data packets, RTCP reports from both ends.
    Rtp,
    /// TCP, with the default loss recovery for each of [`Profile::ALL`].
    Tcp([Recovery; Profile::ALL.len()]),
    /// TFRC: paced datagrams, reports from the receiver.
    Tfrc,
    /// Datagrams that leave as soon as the application writes them.
    Udp,
}

impl Machine {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Machine::Acks => "acks",
            Machine::Rtp => "rtp",
            Machine::Tcp(_) => "tcp",
            Machine::Tfrc => "tfrc",
            Machine::Udp => "udp",
        }
    }

    /// Whether it retransmits lost data.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Machine::Tcp(_))
    }
}

/// The parameter that chooses among several laws under one name; each law is a scheme with its own parameters and
/// defaults.
pub const VARIANT: &str = "variant";

/// A controller and its machine, under the name that users choose it by.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// Its name in scenarios: `cc = "newreno"`.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The published source.
    pub source: &'static str,
    /// The machine that it runs on.
    pub machine: Machine,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// How to make its controllers, if they are not compiled in.
    pub foreign: Option<&'static Foreign>,
}

impl Scheme {
    /// For a scheme that is one of several laws under one name: that name, and the value of [`VARIANT`] that chooses
    /// it.
    #[must_use]
    pub fn variant(&self) -> Option<(&'static str, &'static str)> {
        let parameter = self.parameters.iter().find(|p| p.name == VARIANT && self.foreign.is_none())?;
        let Kind::Choice(names) = parameter.kind else { return None };
        let own = names[parameter.default[0] as usize];
        let family = self.name.strip_suffix(own).and_then(|name| name.strip_suffix('-'));
        Some((family.unwrap_or(self.name), own))
    }

    /// Its default loss recovery under `profile`; `None` if its machine retransmits nothing.
    #[must_use]
    pub const fn recovery(&self, profile: Profile) -> Option<Recovery> {
        match self.machine {
            Machine::Tcp(recovery) => Some(recovery[profile as usize]),
            Machine::Acks | Machine::Rtp | Machine::Tfrc | Machine::Udp => None,
        }
    }

    /// The values of all parameters in the order of [`Scheme::parameters`]: those `given`, else the profile's defaults.
    /// Switches and choices are numbers here (see [`Parameter::value`]).
    ///
    /// # Errors
    /// A name that the scheme does not have, or a value out of range.
    pub fn values(&self, profile: Profile, given: &[(&str, f64)]) -> Result<Vec<f64>, ParameterError> {
        let mut values: Vec<f64> = self.parameters.iter().map(|p| p.default[profile as usize]).collect();
        for &(name, value) in given {
            let Some(i) = self.parameters.iter().position(|p| p.name == name) else {
                return Err(ParameterError::Unknown {
                    scheme: self.name,
                    name: name.to_owned(),
                    nearest: nearest(name, self.parameters.iter().map(|p| p.name)),
                    known: self.parameters.iter().map(|p| p.name).collect(),
                });
            };
            let parameter = &self.parameters[i];
            if !parameter.allows(value) {
                return Err(ParameterError::Range { scheme: self.name, parameter, value });
            }
            values[i] = value;
        }
        Ok(values)
    }
}

/// Makes controllers: implemented once in each controller's file.
pub trait Build: Sized {
    /// The schemes that this controller implements.
    const SCHEMES: &'static [Scheme];
    /// A new controller; `values` are in the order of the scheme's parameters.
    fn build(profile: Profile, values: &[f64]) -> Self;
    /// A new controller if `scheme` is in [`Build::SCHEMES`].
    fn of(scheme: &Scheme, profile: Profile, values: &[f64]) -> Option<Self> {
        Self::SCHEMES.iter().any(|own| own.name == scheme.name).then(|| Self::build(profile, values))
    }
}

impl<C: Build> Build for Box<C> {
    const SCHEMES: &'static [Scheme] = C::SCHEMES;
    fn build(profile: Profile, values: &[f64]) -> Self {
        Box::new(C::build(profile, values))
    }
    fn of(scheme: &Scheme, profile: Profile, values: &[f64]) -> Option<Self> {
        C::of(scheme, profile, values).map(Box::new)
    }
}

/// An error in a scheme's parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum ParameterError {
    /// The scheme has no such parameter.
    Unknown {
        /// The scheme.
        scheme: &'static str,
        /// The name given.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The value is out of range.
    Range {
        /// The scheme.
        scheme: &'static str,
        /// The parameter.
        parameter: &'static Parameter,
        /// The value given.
        value: f64,
    },
    /// The scheme runs on another machine.
    Machine {
        /// The scheme.
        scheme: &'static str,
        /// Its machine.
        machine: &'static str,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Unknown { scheme, name, nearest, known } => {
                write!(f, "{scheme} has no parameter `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?")?,
                    None if known.is_empty() => write!(f, "; it has none")?,
                    None => write!(f, "; it has {}", known.join(", "))?,
                }
                Ok(())
            }
            ParameterError::Range { scheme, parameter: p, value } => {
                write!(f, "{scheme}: {} = {value} is not {}", p.name, p.allowed())
            }
            ParameterError::Machine { scheme, machine } => {
                write!(f, "{scheme} rides on the machine {machine}, not on this one")
            }
        }
    }
}

impl core::error::Error for ParameterError {}

/// There is no scheme of that name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScheme {
    /// The name given.
    pub name: String,
    /// The most similar known name.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no congestion control `{}`", self.name)?;
        match self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => {
                let names: Vec<_> = crate::registry::schemes().map(|s| s.name).collect();
                write!(f, "; there is {}", names.join(", "))
            }
        }
    }
}

impl core::error::Error for UnknownScheme {}

/// The candidate most similar to `name`, if at most a third of its letters differ.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|c| (strsim::damerau_levenshtein(name, c), c))
        .filter(|(d, c)| *d <= c.len().max(3) / 3)
        .min()
        .map(|(_, c)| c)
}
