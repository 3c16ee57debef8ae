//! Advice about missing capabilities after the kernel has refused something.

use rustix::thread::{CapabilitySet, capabilities};

/// A capability with its name.
pub(crate) type Named = (CapabilitySet, &'static str);

/// The privileges of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    /// Whether its effective user id is 0.
    root: bool,
    effective: CapabilitySet,
}

impl Rights {
    pub(crate) fn now() -> Rights {
        Rights {
            root: rustix::process::geteuid().is_root(),
            effective: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
        }
    }

    /// The capabilities that root lacks, and how to get them; `None` if it lacks none, or the user is not root.
    pub(crate) fn of_root(self, needed: &[Named]) -> Option<String> {
        let missing = needed.iter().filter(|(capability, _)| !self.effective.contains(*capability));
        let missing: Vec<&str> = missing.map(|&(_, name)| name).collect();
        if !self.root || missing.is_empty() {
            return None;
        }
        let all: Vec<String> = missing.iter().map(|name| format!("CAP_{name}")).collect();
        let add: Vec<String> = missing.iter().map(|name| format!("--cap-add={name}")).collect();
        let (all, add) = (all.join(" and "), add.join(" "));
        Some(format!("This is root without {all}, as in a container: start that with them (docker run {add})"))
    }

    pub(crate) fn is_root(self) -> bool {
        self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_what_it_lacks() {
        let needed = [(CapabilitySet::NET_ADMIN, "NET_ADMIN"), (CapabilitySet::SYS_ADMIN, "SYS_ADMIN")];
        let of = |root, effective| Rights { root, effective }.of_root(&needed);
        assert_eq!(
            of(true, CapabilitySet::CHOWN).unwrap(),
            "This is root without CAP_NET_ADMIN and CAP_SYS_ADMIN, as in a container: start that with them (docker run \
             --cap-add=NET_ADMIN --cap-add=SYS_ADMIN)"
        );
        assert!(of(true, CapabilitySet::NET_ADMIN).unwrap().contains("without CAP_SYS_ADMIN, as"));
        assert_eq!(of(true, CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN), None);
        assert_eq!(of(false, CapabilitySet::empty()), None);
    }
}
