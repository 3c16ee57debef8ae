//! What `cc` names: a scheme of the registry, or one that whoever checks the scenario has brought.

use super::flow::FlowTable;
use super::model::File;
use super::parameters::given;
use paceline_control::{Scheme, UnknownScheme, registry};

/// What the names of controllers begin with that are loaded from files.
pub const OWN: [&str; 2] = ["python:", "library:"];

/// A scheme that is not compiled in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named(Option<&'static Scheme>);

impl PartialEq for Named {
    /// Two of one name may differ in all else.
    fn eq(&self, other: &Named) -> bool {
        match (self.0, other.0) {
            (Some(own), Some(other)) => std::ptr::eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl FlowTable {
    /// Its scheme: of several laws under one name the one that its parameters choose.
    ///
    /// # Errors
    /// There is none of that name: says which is nearest.
    pub fn scheme(&self) -> Result<&'static Scheme, UnknownScheme> {
        let scheme = self.named.0.map_or_else(|| registry::scheme(&self.cc), Ok)?;
        Ok(registry::chosen(scheme, &given(self, scheme)))
    }
}

impl File {
    /// Flows whose `cc` is one of `foreign` have that scheme, the others those of the registry.
    pub(super) fn name(&mut self, foreign: &[&'static Scheme]) {
        for flow in self.flow.values_mut() {
            flow.named = Named(foreign.iter().copied().find(|scheme| scheme.name == flow.cc));
        }
    }
}
