//! Errors of a gateway, with advice.

use crate::capabilities::{Named, Rights};
use rustix::thread::CapabilitySet;
use std::borrow::Cow;
use std::io;

/// Why a gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// `bpf(2)` failed.
    #[error("the kernel refuses to {what}: bpf(2): {error}{advice}", advice = bpf_advice(error))]
    Bpf {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// An rtnetlink request failed.
    #[error("the kernel refuses to {what} (rtnetlink): {error}{said}{advice}", advice = route_advice(error))]
    Route {
        /// The attempted operation.
        what: String,
        /// The system's error.
        error: io::Error,
        /// The kernel's error message, if it had one.
        said: String,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}` in this network namespace: there are {there}")]
    NoInterface {
        /// The requested name.
        name: String,
        /// The existing interfaces.
        there: String,
    },
    /// The data path does not support its link header.
    #[error(
        "interface `{name}` is of type {kind} (ARPHRD): the gateway knows Ethernet (1) and interfaces of plain IP \
         packets (65534, 512)"
    )]
    Kind {
        /// The interface.
        name: String,
        /// Its type.
        kind: u16,
    },
    /// Another gateway uses the interface.
    #[error("a gateway runs on interface `{name}` already{}: end it first", of_process(*process))]
    Running {
        /// The interface.
        name: String,
        /// The other gateway's process, if known.
        process: Option<i32>,
    },
    /// The interface is no longer there.
    #[error("interface `{name}` is gone; when it is back, start the gateway again")]
    Gone {
        /// The interface.
        name: String,
    },
    /// Another program removed the gateway's shaper while it ran.
    #[error(
        "the gateway's shaper on interface `{name}` is gone, and {there} in its place: somebody else sets the interface's \
         queue. Let one of the two do it: without --rate, the gateway leaves the queue alone"
    )]
    ShaperGone {
        /// The interface.
        name: String,
        /// What is in its place.
        there: String,
    },
    /// Somebody else has set the interface's queueing discipline.
    #[error(
        "interface `{name}` has a queueing discipline that somebody set ({kind}, handle {handle:x}:): remove it (tc qdisc \
         del dev {name} root), or leave out --rate and the delay is measured in it"
    )]
    Shaped {
        /// The interface.
        name: String,
        /// The discipline.
        kind: String,
        /// Its major number.
        handle: u32,
    },
    /// An `ingress` discipline is where the filters for both directions would be.
    #[error(
        "the LAN interface has an `ingress` queueing discipline, which has no place for filters on what leaves: remove it \
         (tc qdisc del dev IF ingress), or from Linux 6.6 on leave out --hook cls_bpf"
    )]
    Ingress,
    /// The interface has no queue whose delay could be measured.
    #[error(
        "interface `{name}` has no queueing discipline whose delay could be measured: give --rate, so that packets wait \
         in a queue of the gateway's, or --delay-from ack"
    )]
    NoQueue {
        /// The interface.
        name: String,
    },
    /// The options are inconsistent.
    #[error("{0}")]
    Options(String),
    /// Another system error.
    #[error("{what}: {error}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

fn of_process(process: Option<i32>) -> String {
    process.map_or_else(String::new, |process| format!(" (process {process})"))
}

/// Capabilities that a gateway needs.
const NEEDED: [Named; 2] = [(CapabilitySet::BPF, "BPF"), (CapabilitySet::NET_ADMIN, "NET_ADMIN")];

fn rights_advice() -> String {
    let rights = Rights::now();
    match rights.of_root(&NEEDED) {
        Some(lacks) => format!(". {lacks}"),
        None if rights.is_root() => {
            ". Root has CAP_BPF and CAP_NET_ADMIN here: this may be root of a user namespace, who has no say over BPF, or \
             a filter of a container forbids the call: run it outside"
                .to_owned()
        }
        None => ". It takes root, or the capabilities CAP_BPF and CAP_NET_ADMIN: run it with sudo".to_owned(),
    }
}

fn bpf_advice(error: &io::Error) -> Cow<'static, str> {
    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) {
        return rights_advice().into();
    }
    let advice = match error.raw_os_error() {
        Some(libc::ENOSYS) => ". The kernel is without CONFIG_BPF_SYSCALL",
        Some(libc::EINVAL) => {
            ". The kernel is too old or lacks a part: Linux 5.8 with CONFIG_NET_CLS_BPF, or 6.6, are needed (uname -r)"
        }
        Some(libc::ENOMEM) => ". There is too little memory for the maps (about 25 MB)",
        _ => "",
    };
    advice.into()
}

fn route_advice(error: &io::Error) -> Cow<'static, str> {
    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) {
        return rights_advice().into();
    }
    let advice = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) => {
            ". The kernel may lack it: sch_tbf for --rate, sch_ingress and cls_bpf for filters (modprobe NAME)"
        }
        _ => "",
    };
    advice.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let error = io::Error::from_raw_os_error(libc::EPERM);
        let text = GatewayError::Bpf { what: "load the program", error }.to_string();
        assert!(
            text.starts_with("the kernel refuses to load the program: bpf(2): ") && text.contains("CAP_BPF"),
            "{text}"
        );
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        let said = ": Specified qdisc kind is unknown".to_owned();
        let text = GatewayError::Route { what: "shape lan0".into(), error, said }.to_string();
        assert!(text.contains("kind is unknown") && text.contains("sch_tbf"), "{text}");
    }
}
