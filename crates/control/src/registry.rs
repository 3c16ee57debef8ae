//! The registry: one line per controller.
//!
//! From the line come the choice in scenarios (`cc = "..."`), the parameter schema, the conformance test and the
//! dispatch. Adding a controller: a file that implements [`Build`] and
//! [`WindowController`], its `mod` line, and one line in the list below. Small state lies
//! in the sender itself; a controller whose state is larger than two dozen bytes is boxed.

use crate::scheme::nearest;
use crate::{Allowance, Build, Controller, Gauges, ParameterError, PathView, Profile, Scheme, TcpEvent};
use crate::{UnknownScheme, WindowController, cubic, reno, vegas};
use paceline_units::Time;

macro_rules! registry {
    ($($variant:ident($state:ty)),+ $(,)?) => {
        /// Any of the window controllers, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each variant is documented in its own file")]
        pub enum TcpController { $($variant($state)),+ }

        impl TcpController {
            /// The controller of the scheme `name` under `profile`, with the parameters `given`.
            ///
            /// # Errors
            /// An unknown parameter, or a value out of range.
            pub fn new(scheme: &Scheme, profile: Profile, given: &[(&str, f64)]) -> Result<Self, ParameterError> {
                let values = scheme.values(profile, given)?;
                $(if <$state as Build>::SCHEMES.iter().any(|s| s.name == scheme.name) {
                    return Ok(TcpController::$variant(<$state as Build>::build(profile, &values)));
                })+
                unreachable!("every scheme of the registry has a controller")
            }
        }

        impl Controller for TcpController {
            type Feedback = TcpEvent;
            #[inline(always)]
            fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
                match self { $(TcpController::$variant(c) => c.on_feedback(feedback, path)),+ }
            }
            #[inline]
            fn on_sent(&mut self, segment: u32, path: &PathView) {
                match self { $(TcpController::$variant(c) => c.on_sent(segment, path)),+ }
            }
            fn on_timer(&mut self, path: &PathView) {
                match self { $(TcpController::$variant(c) => c.on_timer(path)),+ }
            }
            fn next_timer(&self) -> Option<Time> {
                match self { $(TcpController::$variant(c) => c.next_timer()),+ }
            }
            fn allowance(&self) -> Allowance {
                match self { $(TcpController::$variant(c) => c.allowance()),+ }
            }
            fn gauges(&self, to: &mut dyn Gauges) {
                match self { $(TcpController::$variant(c) => c.gauges(to)),+ }
            }
        }

        impl WindowController for TcpController {
            #[inline]
            fn window(&self) -> f64 {
                match self { $(TcpController::$variant(c) => c.window()),+ }
            }
            #[inline]
            fn threshold(&self) -> f64 {
                match self { $(TcpController::$variant(c) => c.threshold()),+ }
            }
        }

        const LISTS: &[&[Scheme]] = &[$(<$state as Build>::SCHEMES),+];
    };
}

registry! {
    Reno(reno::Reno),
    Vegas(Box<vegas::Vegas>),
    Cubic(Box<cubic::Cubic>),
}

/// All schemes.
pub fn schemes() -> impl Iterator<Item = &'static Scheme> {
    LISTS.iter().flat_map(|list| list.iter())
}

/// The scheme of that name.
///
/// # Errors
/// There is none: says which name is nearest.
pub fn scheme(name: &str) -> Result<&'static Scheme, UnknownScheme> {
    schemes()
        .find(|s| s.name == name)
        .ok_or_else(|| UnknownScheme { name: name.to_owned(), nearest: nearest(name, schemes().map(|s| s.name)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_can_be_made_under_every_profile() {
        for scheme in schemes() {
            for profile in Profile::ALL {
                let controller = TcpController::new(scheme, profile, &[]).unwrap();
                assert!(controller.window() >= 1.0, "{}", scheme.name);
                for p in scheme.parameters {
                    assert!((p.min..=p.max).contains(&p.default[profile as usize]), "{} {}", scheme.name, p.name);
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
        assert_eq!(error.to_string(), "vegas: alpha = -1 is not in 0 to 1000");
        let reno = scheme("reno").unwrap();
        let error = TcpController::new(reno, Profile::Rfc, &[("x", 1.0)]).unwrap_err();
        assert_eq!(error.to_string(), "reno has no parameter `x`; it has none");
    }

    #[test]
    fn controllers_stay_small() {
        assert!(size_of::<TcpController>() <= 32, "{}", size_of::<TcpController>());
    }
}
