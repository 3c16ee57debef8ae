//! The system calls that a path's ends need, and error messages for refused ones: which call, why, what to do.

use crate::capabilities::{Named, Rights};
use rustix::thread::CapabilitySet;
use std::fmt;
use std::path::Path;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A system call (or a write to the kernel's files) that may be refused.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Call {
            $($(#[$doc])* $name,)*
        }

        impl Call {
            const ALL: &[Call] = &[$(Call::$name),*];

            /// The call's name, in the form of its manual page.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Call::$name => $text,)* }
            }
        }
    };
}

calls! {
    /// A pair of sockets between Paceline and init.
    SocketPair = "socketpair(2)",
    /// Starts init in new namespaces, without a new user namespace.
    Clone = "clone(CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS)",
    /// The same with a new user namespace.
    CloneUser = "clone(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS)",
    /// Ends init with its parent.
    DeathSignal = "prctl(PR_SET_PDEATHSIG)",
    /// Denies group changes in a user namespace.
    SetGroups = "write(/proc/self/setgroups)",
    /// Maps the user into a user namespace.
    UidMap = "write(/proc/self/uid_map)",
    /// Maps the group into a user namespace.
    GidMap = "write(/proc/self/gid_map)",
    /// Keeps the namespace's mounts from reaching the host.
    MountPrivate = "mount(/, MS_REC | MS_PRIVATE)",
    /// A /proc of the new process namespace.
    MountProc = "mount(proc, /proc)",
    /// Opens the TUN driver.
    OpenTun = "open(/dev/net/tun)",
    /// Creates a TUN.
    TunSetIff = "ioctl(TUNSETIFF)",
    /// A socket for ioctls on devices.
    Socket = "socket(AF_INET)",
    /// Sets the MTU to 1500 bytes.
    Mtu = "ioctl(SIOCSIFMTU)",
    /// Sets the IPv4 address and its mask.
    Address = "ioctl(SIOCSIFADDR, AF_INET)",
    /// Adds the IPv6 address.
    Address6 = "RTM_NEWADDR (IPv6)",
    /// Sets a device up, without ARP.
    Flags = "ioctl(SIOCSIFFLAGS)",
    /// Reads a device's index.
    Index = "ioctl(SIOCGIFINDEX)",
    /// Reads its Ethernet address.
    Hardware = "ioctl(SIOCGIFHWADDR)",
    /// Disables checksum and segmentation offload.
    Offload = "ioctl(SIOCETHTOOL)",
    /// Opens a handle on the namespace.
    OpenNamespace = "open(/proc/self/ns/net)",
    /// Creates the namespace of the emulator's end of a veth pair.
    Unshare = "unshare(CLONE_NEWNET)",
    /// Returns to the program's namespace.
    SetNs = "setns(CLONE_NEWNET)",
    /// A netlink socket.
    Netlink = "socket(AF_NETLINK)",
    /// Creates a veth pair.
    Veth = "RTM_NEWLINK (veth)",
    /// A socket at the emulator's end of a veth pair.
    PacketSocket = "socket(AF_PACKET)",
    /// Binds that socket.
    PacketBind = "bind(AF_PACKET)",
    /// Ignores packets that this host's kernel sends.
    PacketOutgoing = "setsockopt(PACKET_IGNORE_OUTGOING)",
    /// Keeps a program's privileges in a user namespace.
    Ambient = "prctl(PR_CAP_AMBIENT)",
    /// Creates the program's process.
    Fork = "clone(2)",
    /// Runs the program.
    Exec = "execve(2)",
    /// Receives signals about init's children.
    SignalFd = "signalfd(2)",
    /// Sends a message from init to Paceline.
    Send = "sendmsg(2)",
    /// Installs signal handlers.
    SignalAction = "sigaction(2)",
    /// A pipe for signal handlers and for a new process's error.
    Pipe = "pipe2(2)",
    /// Waits.
    Poll = "poll(2)",
}

/// A system call that the kernel refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The call.
    pub call: Call,
    /// Its error number.
    pub errno: i32,
}

pub(super) type Attempt<T> = Result<T, Refused>;

impl Call {
    pub(super) fn number(self) -> i32 {
        Call::ALL.iter().position(|&call| call == self).map_or(-1, |n| n as i32)
    }

    pub(super) fn of(number: i32) -> Option<Call> {
        Call::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// This thread's last error, for this call. Does not allocate.
    pub(super) fn refused(self) -> Refused {
        Refused { call: self, errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0) }
    }

    /// Checks a C call's `result`: negative is an error.
    pub(super) fn check(self, result: impl Into<i64>) -> Attempt<i64> {
        let result = result.into();
        if result < 0 { Err(self.refused()) } else { Ok(result) }
    }

    pub(super) fn with(self) -> impl Fn(rustix::io::Errno) -> Refused {
        move |error| Refused { call: self, errno: error.raw_os_error() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = std::io::Error::from_raw_os_error(self.errno).to_string();
        let text = error.split(" (os error").next().unwrap_or(&error);
        write!(f, "{} was refused: {text} ({})", self.call.name(), name(self.errno))?;
        match self.advice() {
            advice if advice.is_empty() => Ok(()),
            advice => write!(f, ". {advice}"),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// Likely reasons, and what to do.
    fn advice(&self) -> String {
        match (self.call, self.errno) {
            (Call::CloneUser | Call::Unshare | Call::Clone, libc::ENOSPC | libc::EUSERS) => {
                let limits = ["user.max_user_namespaces", "user.max_net_namespaces", "user.max_pid_namespaces"];
                let known: Vec<String> =
                    limits.iter().filter_map(|limit| Some(format!("{limit} is {}", sysctl(limit)?))).collect();
                format!("The limit of namespaces is reached ({}): raise it with sysctl -w, as root", known.join(", "))
            }
            (
                Call::CloneUser
                | Call::SetGroups
                | Call::UidMap
                | Call::GidMap
                | Call::Flags
                | Call::TunSetIff
                | Call::Veth
                | Call::MountPrivate
                | Call::Unshare,
                libc::EPERM | libc::EACCES,
            ) => user_namespaces(self.call),
            (Call::Clone, libc::EPERM) => {
                "Namespaces need CAP_SYS_ADMIN, and something forbids them in spite of it, such as the seccomp filter \
                 of a container: start it with --privileged"
                    .to_owned()
            }
            (Call::OpenTun, libc::ENOENT) => {
                "There is no TUN driver here: load it (modprobe tun), or give it to the container \
                 (--device /dev/net/tun)"
                    .to_owned()
            }
            (Call::OpenTun, libc::EACCES) => {
                "This user may not open it: chmod 666 /dev/net/tun, as root (to make a TUN takes CAP_NET_ADMIN all \
                 the same)"
                    .to_owned()
            }
            (Call::OpenTun, libc::EPERM) => {
                "The rules of a container or service forbid the device: allow /dev/net/tun there".to_owned()
            }
            (Call::OpenTun, libc::ENODEV | libc::ENXIO) => {
                "The kernel is without its TUN driver (CONFIG_TUN)".to_owned()
            }
            (Call::Veth, libc::EOPNOTSUPP) => {
                "The kernel is without veth (CONFIG_VETH): load it (modprobe veth)".to_owned()
            }
            (Call::Netlink | Call::PacketSocket, libc::EAFNOSUPPORT) => {
                "The kernel, or a filter of its calls, has no such sockets".to_owned()
            }
            (Call::MountProc, _) => {
                "COMMAND sees the /proc that was there before, with the numbers of processes outside".to_owned()
            }
            (Call::Address6, _) => "The path is without IPv6".to_owned(),
            _ => String::new(),
        }
    }
}

/// Capabilities that an end needs without its own user namespace.
const NEEDED: [Named; 2] = [(CapabilitySet::NET_ADMIN, "NET_ADMIN"), (CapabilitySet::SYS_ADMIN, "SYS_ADMIN")];

/// Why a privileged step may be refused, even one that only needs privileges in its own user namespace.
fn user_namespaces(call: Call) -> String {
    if let Some(lacks) = Rights::now().of_root(&NEEDED) {
        return format!("{lacks}, or allow it user namespaces (--security-opt seccomp=unconfined)");
    }
    let is = |key: &str, value: &str| sysctl(key).as_deref() == Some(value);
    if is("kernel.apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor restricts unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1): set it to \
         0 with sysctl -w, as root, or run paceline as root"
            .to_owned()
    } else if is("kernel.unprivileged_userns_clone", "0") {
        "Unprivileged user namespaces are off (kernel.unprivileged_userns_clone is 0): set it to 1 with sysctl -w, as \
         root, or run paceline as root"
            .to_owned()
    } else if is("user.max_user_namespaces", "0") {
        "User namespaces are off (user.max_user_namespaces is 0): raise it with sysctl -w, as root, or run paceline as \
         root"
            .to_owned()
    } else if call == Call::CloneUser {
        "Something forbids user namespaces to this user, such as the seccomp filter of a container or a chroot: run \
         paceline as root, or start the container with --privileged"
            .to_owned()
    } else {
        "It takes CAP_NET_ADMIN and CAP_SYS_ADMIN: run paceline as root".to_owned()
    }
}

/// The value of a kernel parameter, if it has one.
pub(super) fn sysctl(key: &str) -> Option<String> {
    let path = Path::new("/proc/sys").join(key.replace('.', "/"));
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The name of an error, as in `errno(3)`.
fn name(errno: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::ENOEXEC, "ENOEXEC"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENFILE, "ENFILE"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ELOOP, "ELOOP"),
        (libc::EUSERS, "EUSERS"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ENETDOWN, "ENETDOWN"),
        (libc::ENOBUFS, "ENOBUFS"),
        (libc::EBADF, "EBADF"),
    ];
    known.iter().find(|(number, _)| *number == errno).map_or_else(|| format!("errno {errno}"), |&(_, name)| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_call_its_error_and_advice() {
        let text = Refused { call: Call::OpenTun, errno: libc::EACCES }.to_string();
        assert!(text.starts_with("open(/dev/net/tun) was refused: Permission denied (EACCES). This user"), "{text}");
        let text = Refused { call: Call::UidMap, errno: libc::EPERM }.to_string();
        assert!(text.contains("as root"), "{text}");
        let text = Refused { call: Call::CloneUser, errno: libc::ENOSPC }.to_string();
        assert!(text.contains("user.max_user_namespaces is "), "{text}");
        let text = Refused { call: Call::Mtu, errno: 4095 }.to_string();
        assert!(text.ends_with("(errno 4095)"), "{text}");
        for &call in Call::ALL {
            assert_eq!(Call::of(call.number()), Some(call));
        }
        assert_eq!(Call::of(-1), None);
    }
}
