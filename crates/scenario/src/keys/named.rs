//! Schemes that `cc` can name: those of the registry, and those that the caller supplies.

use super::file::File;
use super::flow::FlowTable;
use super::parameters::given;
use paceline_control::{Scheme, UnknownScheme, registry};

/// Prefixes of the names of controllers that are loaded from files.
pub const OWN: [&str; 2] = ["python:", "library:"];

/// A scheme that is not compiled in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Named(Option<&'static Scheme>);

impl PartialEq for Named {
    /// Two schemes with one name may differ in everything else.
    fn eq(&self, other: &Named) -> bool {
        match (self.0, other.0) {
            (Some(own), Some(other)) => std::ptr::eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl FlowTable {
    /// Its scheme; if one name stands for several laws, the one that the parameters choose.
    ///
    /// # Errors
    /// If there is no such scheme; the message names the nearest one.
    pub fn scheme(&self) -> Result<&'static Scheme, UnknownScheme> {
        let scheme = self.named.0.map_or_else(|| registry::scheme(&self.cc), Ok)?;
        Ok(registry::chosen(scheme, &given(self, scheme)))
    }
}

impl File {
    /// Gives flows whose `cc` names one of `foreign` that scheme, and all others the registry's.
    pub(crate) fn name(&mut self, foreign: &[&'static Scheme]) {
        for flow in self.flow.values_mut() {
            flow.named = Named(foreign.iter().copied().find(|scheme| scheme.name == flow.cc));
        }
    }
}
