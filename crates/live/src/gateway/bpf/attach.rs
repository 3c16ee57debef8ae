//! The whole data path on an interface: maps, the two programs, and their attachment.

use super::program::{Direction, Setting, program};
use super::system::{Counters, Map, MapKind, Program, raise_memory_limit};
use crate::gateway::error::GatewayError;
use crate::gateway::rtnetlink::Netlink;
use crate::gateway::table::{Control, Counter, FlowState, Key};
use rustix::fd::OwnedFd;
use std::io;

/// Maximum number of connections in the map; beyond it the ones silent for longest are evicted, and no longer limited.
pub const FLOWS: u32 = 65_536;
/// The same for connections that are not vouched for (yet): packets that anyone can spoof only evict each other.
pub const UNVALIDATED: u32 = 16_384;
const COUNTERS: usize = Counter::ALL.len();

/// The programs and their maps.
#[derive(Debug)]
pub struct DataPath {
    /// The programs' state of connections.
    flows: Map<Key, FlowState>,
    /// The same for those without [`flag::VALIDATED`](crate::gateway::table::flag::VALIDATED).
    unvalidated: Map<Key, FlowState>,
    /// Windows of individual connections (bytes).
    pub clamps: Map<Key, u32>,
    control: Map<u32, Control>,
    counters: Counters<COUNTERS>,
    /// The program towards stations.
    pub egress: Program,
    /// The program from stations.
    pub ingress: Program,
}

impl DataPath {
    /// Loads the programs for an interface with `link_header` bytes before the IP header, without attaching them.
    ///
    /// # Errors
    /// If the kernel refuses maps or programs.
    pub fn load(link_header: i32) -> Result<DataPath, GatewayError> {
        raise_memory_limit();
        let refused = |what: &'static str| move |error| GatewayError::Bpf { what, error };
        let flows = Map::new(MapKind::LruHash, "pl_flows", FLOWS).map_err(refused("make the map of connections"))?;
        let unvalidated =
            Map::new(MapKind::LruHash, "pl_strangers", UNVALIDATED).map_err(refused("make the map of strangers"))?;
        let clamps = Map::new(MapKind::Hash, "pl_clamps", FLOWS).map_err(refused("make the map of windows"))?;
        let control: Map<u32, Control> =
            Map::new(MapKind::Array, "pl_control", 1).map_err(refused("make the map of settings"))?;
        let counters = Counters::new("pl_counters").map_err(refused("make the map of counters"))?;
        let setting = Setting {
            link_header,
            flows: flows.descriptor(),
            unvalidated: unvalidated.descriptor(),
            clamps: clamps.descriptor(),
            control: control.descriptor(),
            counters: counters.descriptor(),
        };
        let load = |name: &str, direction| {
            let instructions = program(direction, setting).map_err(io::Error::other)?;
            Program::load(name, &instructions)
        };
        let egress = load("pl_egress", Direction::Egress).map_err(refused("load the program towards stations"))?;
        let ingress = load("pl_ingress", Direction::Ingress).map_err(refused("load the program from stations"))?;
        Ok(DataPath { flows, unvalidated, clamps, control, counters, egress, ingress })
    }

    /// All connections. A connection that moves between the maps meanwhile occurs twice, the newer entry last.
    ///
    /// # Errors
    /// The system's.
    pub fn connections(&self) -> io::Result<Vec<(Key, FlowState)>> {
        let mut all = self.unvalidated.all()?;
        all.extend(self.flows.all()?);
        Ok(all)
    }

    /// Forgets a connection.
    ///
    /// # Errors
    /// The system's.
    pub fn forget(&self, key: &Key) -> io::Result<()> {
        self.unvalidated.remove(key)?;
        self.flows.remove(key)
    }

    /// Sets the programs' settings, which apply until the deadline in them.
    ///
    /// # Errors
    /// The system's.
    pub fn set_control(&self, control: &Control) -> io::Result<()> {
        self.control.set(&0, control)
    }

    /// The counters, in the order of [`Counter::ALL`].
    ///
    /// # Errors
    /// The system's.
    pub fn counts(&self) -> io::Result<[u64; COUNTERS]> {
        self.counters.sums()
    }

    /// Attaches the programs to an interface.
    ///
    /// # Errors
    /// If the kernel refuses both kinds of attachment.
    pub fn attach(&self, interface: u32, hook: Hook) -> Result<Attached, GatewayError> {
        if hook != Hook::Filter {
            match self.links(interface) {
                Ok(links) => return Ok(Attached::Links(links)),
                Err(error) if hook == Hook::Link => {
                    return Err(GatewayError::Bpf { what: "attach the programs (TCX)", error });
                }
                // EINVAL, EOPNOTSUPP: a kernel before 6.6
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
                    return Err(GatewayError::Bpf { what: "attach the programs (TCX)", error });
                }
                Err(_) => {}
            }
        }
        let mut netlink = Netlink::open()?;
        let made = netlink.add_clsact(interface)?;
        let attached = Attached::Filters(Filters { interface, clsact: made });
        for (direction, program) in [(Direction::Egress, &self.egress), (Direction::Ingress, &self.ingress)] {
            // if this fails, dropping `attached` removes what was added before
            netlink.add_filter(interface, direction, program.fd())?;
        }
        Ok(attached)
    }

    fn links(&self, interface: u32) -> io::Result<[OwnedFd; 2]> {
        let egress = self.egress.link(interface, Direction::Egress)?;
        Ok([egress, self.ingress.link(interface, Direction::Ingress)?])
    }
}

/// How programs are attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hook {
    /// As links, or as filters if the kernel does not support such links.
    #[default]
    Any,
    /// As links (TCX, Linux 6.6): they end with the process.
    Link,
    /// As filters (clsact and `cls_bpf`, Linux 4.5): the next start removes what a killed process has left.
    Filter,
}

/// The programs' attachment to an interface, which ends when it is dropped.
#[derive(Debug)]
pub enum Attached {
    /// Links.
    Links([OwnedFd; 2]),
    /// Filters.
    Filters(Filters),
}

impl Attached {
    /// `tcx` or `cls_bpf`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Attached::Links(_) => "tcx",
            Attached::Filters(_) => "cls_bpf",
        }
    }
}

/// Filters on an interface; removed when it is dropped.
#[derive(Debug)]
pub struct Filters {
    interface: u32,
    /// Whether the place for filters was created for them.
    clsact: bool,
}

impl Drop for Filters {
    fn drop(&mut self) {
        // Errors can no longer be reported; the programs' deadline disables them a second later anyway.
        let _ = Netlink::open().and_then(|mut netlink| clear_filters(&mut netlink, self.interface, self.clsact));
    }
}

/// Removes a gateway's filters, and their place if it was created for them and holds no other filters.
///
/// # Errors
/// If the kernel refuses.
fn clear_filters(netlink: &mut Netlink, interface: u32, clsact: bool) -> Result<usize, GatewayError> {
    let (mut found, mut others) = (0, false);
    for direction in [Direction::Egress, Direction::Ingress] {
        for filter in netlink.filters(interface, direction)? {
            if filter.is_ours() {
                netlink.remove_filter(interface, direction, &filter)?;
                found += 1;
            } else {
                others = true;
            }
        }
    }
    if clsact && !others {
        netlink.remove_clsact(interface)?;
    }
    Ok(found)
}

/// Removes what a killed gateway left on an interface; returns the number of filters.
///
/// # Errors
/// If the kernel refuses.
pub fn clear_leftovers(interface: u32) -> Result<usize, GatewayError> {
    let mut netlink = Netlink::open()?;
    clear_filters(&mut netlink, interface, false)
}
