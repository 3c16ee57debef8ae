//! The registry: one line per controller, in the list of its kind.
//!
//! From this line follow the choice in scenarios (`cc = "..."`), the parameter schema, the conformance test and the
//! dispatch. To add a controller, write a file that implements [`Build`] and its kind's trait ([`WindowController`] for
//! TCP), its `mod` line, and one line in the kind's list below. Small state lies in the sender itself; box a controller
//! whose state exceeds two dozen bytes.

use crate::acks::{AckController, AckEvent, AckSettings};
use crate::allocated::Allocated;
use crate::coupled::CoupledRate;
use crate::foreign::{ForeignMedia, ForeignRate, ForeignWindow};
use crate::gcc::Gcc;
use crate::lda_plus::LdaPlus;
use crate::multfrc::{Member, Rules};
use crate::nada::Nada;
use crate::ndtc::Ndtc;
use crate::rtp::{FrameTime, MediaController, Probe, RtpEvent, RtpSettings};
use crate::scheme::{VARIANT, nearest};
use crate::tfrc::{self, Settings};
use crate::tfrc_veno::Veno;
use crate::{
    Build, Controller, Gauges, Kind, LostSegment, Needs, ParameterError, PathView, Profile, RateSample, Scheme,
    TcpEvent,
};
use crate::{
    RateController, TfrcEvent, UnknownScheme, WindowController, bbr, bbr3, c4, cubic, dctcp, prague, rap, reno, scream,
    tfrcp, udp, vegas, veno,
};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

/// One kind of controllers: those for one machine. Besides [`Controller`], each has the methods of its kind's trait: in
/// brackets the getters, in parentheses the other methods.
macro_rules! registry {
    ($(#[$doc:meta])* $name:ident: $kind:ident<$feedback:ty>[$($method:ident -> $ret:ty),* $(,)?]
     ($($callback:ident $arguments:tt $(-> $answer:ty)?),*) $variants:tt) => {
        registry! { @list [$(#[$doc])*] $name $feedback, $variants }

        impl $kind for $name {
            $(#[inline]
            fn $method(&self) -> $ret {
                registry!(@each self, $name, $method(), $variants)
            })*
            $(registry! { @callback $name, $callback $arguments [$($answer)?] $variants })*
        }
    };
    (@callback $name:ident, $callback:ident($($argument:ident: $of:ty),*) [$($answer:ty)?] $variants:tt) => {
        #[inline]
        fn $callback(&mut self $(, $argument: $of)*) $(-> $answer)? {
            registry!(@each self, $name, $callback($($argument),*), $variants)
        }
    };
    (@each $this:expr, $name:ident, $method:ident $arguments:tt, { $($variant:ident($state:ty)),+ $(,)? }) => {
        match $this { $($name::$variant(c) => c.$method $arguments),+ }
    };
    (@list [$(#[$doc:meta])*] $name:ident $feedback:ty, { $($variant:ident($state:ty)),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each variant is documented in its own file")]
        pub enum $name { $($variant($state)),+ }

        impl $name {
            /// The schemes of this kind, by controller.
            const LISTS: &'static [&'static [Scheme]] = &[$(<$state as Build>::SCHEMES),+];

            /// The controller of `scheme` under `profile`, with the parameters `given`.
            ///
            /// # Errors
            /// An unknown parameter, a value out of range, or a scheme that runs on another machine.
            pub fn new(scheme: &Scheme, profile: Profile, given: &[(&str, f64)]) -> Result<Self, ParameterError> {
                let scheme = chosen(scheme, given);
                let values = scheme.values(profile, given)?;
                $(if let Some(made) = <$state as Build>::of(scheme, profile, &values) {
                    return Ok($name::$variant(made));
                })+
                Err(ParameterError::Machine { scheme: scheme.name, machine: scheme.machine.name() })
            }
        }

        impl Controller for $name {
            type Feedback = $feedback;
            #[inline(always)]
            fn on_feedback(&mut self, feedback: &$feedback, path: &PathView) {
                match self { $($name::$variant(c) => c.on_feedback(feedback, path)),+ }
            }
            fn gauges(&self, to: &mut dyn Gauges) {
                match self { $($name::$variant(c) => c.gauges(to)),+ }
            }
        }
    };
}

registry! {
    /// Any of the window controllers, dispatched by `match`.
    TcpController: WindowController<TcpEvent>[
        window -> f64, threshold -> f64, base_rtt -> Option<f64>, needs -> Needs, pacing_rate -> f64, send_quantum -> u32,
        limits_itself -> bool
    ](
        on_delivery(sample: &RateSample, path: &PathView), on_delivery_fast(sample: &RateSample, now: Time) -> bool,
        on_lost(lost: &LostSegment, path: &PathView),
        on_marks(acked: u32, marked: u32, path: &PathView), draw_from(stream: Stream), is_paced()
    ) {
        Reno(reno::Reno),
        Vegas(Box<vegas::Vegas>),
        Cubic(Box<cubic::Cubic>),
        Veno(Box<veno::Veno>),
        Bbr(Box<bbr::Bbr>),
        Bbr3(Box<bbr3::Bbr3>),
        Dctcp(Box<dctcp::Dctcp>),
        Prague(Box<prague::Prague>),
        C4(Box<c4::C4>),
        Ledbat(Box<crate::ledbat::Ledbat>),
        LedbatPlusPlus(Box<crate::ledbat_plus_plus::LedbatPlusPlus>),
        Copa(Box<crate::copa::Copa>),
        Foreign(Box<ForeignWindow>),
    }
}

registry! {
    /// Any of the controllers for per-packet acknowledgements, dispatched by `match`.
    AcksController: AckController<AckEvent>[rate -> f64, next_timer -> Option<Time>, settings -> AckSettings]
    (on_sent(), on_timer(path: &PathView)) {
        Rap(Box<rap::Rap>),
        Tfrcp(Box<tfrcp::Tfrcp>),
    }
}

registry! {
    /// Any of the rate controllers, dispatched by `match`.
    TfrcController: RateController<TfrcEvent>[
        rate -> f64, pacing -> f64, in_slow_start -> bool, settings -> Settings, connections -> Option<Rules>
    ](begin_gap(), draw_from(stream: Stream)) {
        Tfrc(Box<tfrc::Tfrc>),
        TfrcVeno(Box<tfrc::Tfrc<Veno>>),
        Multfrc(Box<tfrc::Tfrc<Member>>),
        Foreign(Box<ForeignRate>),
    }
}

registry! {
    /// Any of the controllers for RTP's machine, dispatched by `match`.
    RtpController: MediaController<RtpEvent>[
        rate -> f64, target -> Option<Rate>, settings -> RtpSettings, window -> Option<Size>, padding_rate -> f64,
        coupled -> Option<CoupledRate>
    ](
        draw_from(stream: Stream), frames_every(period: Span), frame_time(size: Size) -> Option<FrameTime>,
        next_probe() -> Option<Probe>, discards() -> bool, share(rate: Rate, now: Time)
    ) {
        LdaPlus(Box<LdaPlus>),
        Nada(Box<Nada>),
        Ndtc(Box<Ndtc>),
        ScreamDraft(Box<scream::draft::Draft>),
        ScreamEricsson(Box<scream::ericsson::Ericsson>),
        ScreamLibwebrtc(Box<scream::libwebrtc::Libwebrtc>),
        Gcc(Box<Gcc>),
        Allocated(Box<Allocated>),
        Foreign(Box<ForeignMedia>),
    }
}

/// All schemes, those of TCP first.
pub fn schemes() -> impl Iterator<Item = &'static Scheme> {
    let lists = [TcpController::LISTS, TfrcController::LISTS, AcksController::LISTS, RtpController::LISTS];
    lists.into_iter().flatten().copied().chain([udp::SCHEMES]).flatten()
}

/// The scheme of that name.
///
/// # Errors
/// No scheme has this name: the error gives the nearest one.
pub fn scheme(name: &str) -> Result<&'static Scheme, UnknownScheme> {
    schemes()
        .find(|s| s.name == name)
        .ok_or_else(|| UnknownScheme { name: name.to_owned(), nearest: nearest(name, schemes().map(|s| s.name)) })
}

/// The scheme that these parameters choose: the law that [`VARIANT`] names, else `scheme` itself.
#[must_use]
pub fn chosen<'a>(scheme: &'a Scheme, given: &[(&str, f64)]) -> &'a Scheme {
    let place = given.iter().find(|(name, _)| *name == VARIANT).map(|(_, place)| *place as usize);
    let (Some((family, _)), Some(place)) = (scheme.variant(), place) else { return scheme };
    let kind = scheme.parameters.iter().find(|p| p.name == VARIANT).map(|p| p.kind);
    let Some(Kind::Choice(names)) = kind else { return scheme };
    let wanted = names.get(place).map(|name| (family, *name));
    schemes().find(|other| wanted.is_some() && other.variant() == wanted).unwrap_or(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn a_variant_is_chosen_by_its_parameter() {
        for named in ["scream", "scream-ericsson", "scream-libwebrtc"].map(|name| scheme(name).unwrap()) {
            let names: Vec<&str> = (0..3).map(|n| chosen(named, &[(VARIANT, f64::from(n))]).name).collect();
            assert_eq!(names, ["scream", "scream-ericsson", "scream-libwebrtc"]);
            assert!(std::ptr::eq(chosen(named, &[("max_rate", 1e6)]), named));
        }
        let gcc = scheme("gcc").unwrap();
        assert!(gcc.variant().is_none() && std::ptr::eq(chosen(gcc, &[(VARIANT, 1.0)]), gcc));
        let made = |given: &[(&str, f64)]| RtpController::new(scheme("scream").unwrap(), Profile::Rfc, given);
        assert!(matches!(made(&[(VARIANT, 1.0), ("clock", 0.5)]), Ok(RtpController::ScreamEricsson(_))));
        assert!(matches!(made(&[("mss", 900.0)]), Ok(RtpController::ScreamDraft(_))));
        let error = made(&[(VARIANT, 1.0), ("mss", 900.0)]).unwrap_err().to_string();
        assert!(error.starts_with("scream-ericsson has no parameter `mss`"), "{error}");
        let error = made(&[(VARIANT, 3.0)]).unwrap_err().to_string();
        assert!(error.starts_with("scream: variant = 3 is not "), "{error}");
    }

    #[test]
    fn every_scheme_can_be_made_under_every_profile() {
        for scheme in schemes() {
            for profile in Profile::ALL {
                match scheme.machine {
                    Machine::Tcp(_) => {
                        let controller = TcpController::new(scheme, profile, &[]).unwrap();
                        assert!(controller.window() >= 1.0, "{}", scheme.name);
                    }
                    Machine::Acks | Machine::Rtp | Machine::Tfrc | Machine::Udp => {
                        assert!(TcpController::new(scheme, profile, &[]).is_err())
                    }
                }
                for p in scheme.parameters {
                    assert!(p.allows(p.default[profile as usize]), "{} {}", scheme.name, p.name);
                }
            }
            assert_eq!(schemes().filter(|s| s.name == scheme.name).count(), 1, "{} twice", scheme.name);
        }
    }

    #[test]
    fn errors_name_the_nearest() {
        assert_eq!(
            scheme("newrenno").unwrap_err().to_string(),
            "there is no congestion control `newrenno`; did you mean `newreno`?"
        );
        let vegas = scheme("vegas").unwrap();
        let error = TcpController::new(vegas, Profile::Rfc, &[("alhpa", 1.0)]).unwrap_err();
        assert_eq!(error.to_string(), "vegas has no parameter `alhpa`; did you mean `alpha`?");
        let error = TcpController::new(vegas, Profile::Rfc, &[("alpha", -1.0)]).unwrap_err();
        assert_eq!(error.to_string(), "vegas: alpha = -1 is not from 0 to 1000 segments");
        let reno = scheme("reno").unwrap();
        let error = TcpController::new(reno, Profile::Rfc, &[("x", 1.0)]).unwrap_err();
        assert_eq!(error.to_string(), "reno has no parameter `x`; it has none");
        let error = TcpController::new(scheme("udp").unwrap(), Profile::Rfc, &[]).unwrap_err();
        assert_eq!(error.to_string(), "udp rides on the machine udp, not on this one");
    }

    #[test]
    fn controllers_stay_small() {
        assert!(size_of::<TcpController>() <= 32, "{}", size_of::<TcpController>());
    }
}
