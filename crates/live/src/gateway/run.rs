//! A running gateway: it polls the queue every few milliseconds, sets windows once per interval, and renews the data
//! path's deadline. Start with [`run`].

use super::bpf::attach::{DataPath, Hook, clear_leftovers};
use super::delay::{DelayFrom, Queue, clear_leftover};
use super::error::GatewayError;
use super::interface_lock::InterfaceLock;
use super::registry::Registry;
use super::rtnetlink::{Interface, Netlink};
use super::status::{GatewayReport, Status};
use super::table::{Control, Key};
use crate::clock::{Clock, Waiter, monotonic};
use crate::host::{HostReport, HostState};
use crate::path::Stop;
use paceline_path::access_point::{Interval, Law};
use paceline_units::{Rate, Size, Span, Time};
use rustix::event::{PollFd, PollFlags};

/// Options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The interface towards the stations.
    pub lan: String,
    /// The interface towards the Internet. Only its existence is checked: everything happens on the LAN side.
    pub wan: Option<String>,
    /// The law that sets the windows.
    pub law: Law,
    /// Where the delay is measured.
    pub delay: DelayFrom,
    /// Measures and reports windows, but lowers none, and creates no shaper.
    pub dry_run: bool,
    /// Maximum duration.
    pub duration: Option<Span>,
    /// How the data path is attached.
    pub hook: Hook,
}

impl GatewayOptions {
    /// Default queue of a shaper: a quarter of a second at its rate, and at least ten packets.
    #[must_use]
    pub fn queue(rate: Rate) -> Size {
        Size::from_bytes(((rate.bps() / 8.0 * 0.25) as u64).max(15_140))
    }
}

/// Interval at which the process renews the data path's deadline.
const DEADLINE_RENEWAL: Span = Span::from_millis(100);

// linux/if_arp.h
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_PPP: u16 = 512;
const ARPHRD_NONE: u16 = 65_534;

/// Bytes before the IP header.
fn link_header(interface: &Interface) -> Result<i32, GatewayError> {
    match interface.kind {
        ARPHRD_ETHER => Ok(14),
        ARPHRD_PPP | ARPHRD_NONE => Ok(0),
        kind => Err(GatewayError::Kind { name: interface.name.clone(), kind }),
    }
}

/// Runs a gateway until it is stopped or its time is over. `show` receives each interval's status.
///
/// # Errors
/// If it cannot be set up, or an interface is gone.
pub fn run(
    options: &GatewayOptions,
    stop: &Stop,
    show: &mut dyn FnMut(&Status),
) -> Result<GatewayReport, GatewayError> {
    let mut gateway = Gateway::set_up(options)?;
    gateway.carry_on(stop, show)?;
    gateway.finish()
}

struct Gateway<'a> {
    options: &'a GatewayOptions,
    law: Law,
    waiter: Waiter,
    clock: Clock,
    // In this order: the programs must be detached before the shaper is removed.
    attached: super::bpf::attach::Attached,
    path: DataPath,
    queue: Option<Queue>,
    delay_from: DelayFrom,
    registry: Registry,
    control: Control,
    report: GatewayReport,
    before: HostState,
    netlink: Netlink,
    lan: Interface,
    // Dropped last.
    _interface_lock: InterfaceLock,
}

impl<'a> Gateway<'a> {
    fn set_up(options: &'a GatewayOptions) -> Result<Gateway<'a>, GatewayError> {
        let system = |what| move |error| GatewayError::System { what, error };
        let mut netlink = Netlink::open()?;
        let lan = netlink.interface(&options.lan)?;
        if let Some(wan) = &options.wan {
            if *wan == options.lan {
                return Err(GatewayError::Options(format!("--lan and --wan are both {wan}")));
            }
            netlink.interface(wan)?;
        }
        let header = link_header(&lan)?;
        let interface_lock = InterfaceLock::on(&lan)?;
        let cleared = clear_leftovers(lan.index)? + usize::from(clear_leftover(lan.index)?);
        let path = DataPath::load(header)?;
        // A dry run creates no shaper.
        let delay_from = match options.delay {
            DelayFrom::Shaper { .. } if options.dry_run => DelayFrom::Ack,
            delay => delay,
        };
        let queue = match delay_from {
            DelayFrom::Ack => None,
            from => Some(Queue::of(&lan, from)?),
        };
        let attached = path.attach(lan.index, options.hook)?;
        let clock = Clock::start();
        let mode = if options.dry_run { Control::DRY } else { 0 };
        let before = HostState::now().map_err(system("/proc cannot be read"))?;
        let report = GatewayReport::new(options, attached.name(), delay_from, cleared);
        let mut gateway = Gateway {
            options,
            law: options.law.clone(),
            waiter: Waiter::new(clock).map_err(system("prctl(PR_SET_TIMERSLACK)"))?.without_spin(),
            clock,
            attached,
            path,
            queue,
            delay_from,
            registry: Registry::default(),
            control: Control { mode, ..Control::of(&options.law) },
            report,
            before,
            netlink,
            lan,
            _interface_lock: interface_lock,
        };
        gateway.live()?;
        Ok(gateway)
    }

    /// Renews the data path's deadline.
    fn live(&mut self) -> Result<(), GatewayError> {
        self.control.deadline = monotonic() + Control::ALIVE;
        self.path.set_control(&self.control).map_err(|error| GatewayError::Bpf { what: "set the deadline", error })
    }

    fn carry_on(&mut self, stop: &Stop, show: &mut dyn FnMut(&Status)) -> Result<(), GatewayError> {
        let end = self.options.duration.map_or(Time::NEVER, |duration| Time::ZERO + duration);
        let interval = self.law.interval();
        let step = self.delay_from.step().min(interval);
        let (mut look, mut renewal, mut decide) = (Time::ZERO, Time::ZERO, Time::ZERO + interval);
        while !stop.is_stopped() {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            if now >= look {
                if let Some(queue) = &mut self.queue {
                    queue.look(now)?;
                }
                look = now + step;
            }
            if now >= decide {
                let status = self.decide(now)?;
                show(&status);
                // Missed intervals (of a stopped process) are skipped.
                decide = if now >= decide + interval { now + interval } else { decide + interval };
            }
            if now >= renewal {
                self.live()?;
                if !self.netlink.is_there(self.lan.index)? {
                    return Err(GatewayError::Gone { name: self.lan.name.clone() });
                }
                renewal = now + DEADLINE_RENEWAL;
            }
            let mut fds = [PollFd::new(stop, PollFlags::IN)];
            let waited = self.waiter.wait(&mut fds, look.min(renewal).min(decide).min(end));
            waited.map_err(|error| GatewayError::System { what: "ppoll(2)", error })?;
        }
        Ok(())
    }

    /// Ends an interval.
    fn decide(&mut self, now: Time) -> Result<Status, GatewayError> {
        let refused = |what| move |error| GatewayError::Bpf { what, error };
        let states = self.path.connections().map_err(refused("list the connections"))?;
        let counts = self.path.counts().map_err(refused("read the counters"))?;
        let interval = self.registry.take_in(&states, now, self.control.interval);
        self.control.interval = self.control.interval.wrapping_add(1);
        let udp_rate = self.registry.udp_rate(&counts);
        let wait = match &mut self.queue {
            Some(queue) => queue.take_longest(),
            None => interval.longest,
        };
        let measured = Interval { longest_wait: wait, unresponsive: Rate::from_bps(udp_rate as u64) };
        let clamps = &self.path.clamps;
        let mut set = |key: &Key, window: Option<u32>| match window {
            Some(window) => clamps.set(key, &window),
            None => clamps.remove(key),
        };
        let decided = self.registry.decide(&mut self.law, &measured, &interval.reports, &mut set);
        decided.map_err(refused("set a window"))?;
        for key in self.registry.take_gone() {
            self.path.forget(&key).map_err(refused("forget a connection"))?;
        }
        let status = self.registry.status(now, wait, udp_rate, &counts, self.control.window);
        self.report.take_in(&status);
        Ok(status)
    }

    fn finish(self) -> Result<GatewayReport, GatewayError> {
        let mut report = self.report;
        let system = |what| move |error| GatewayError::System { what, error };
        report.duration_s = self.clock.now().as_secs_f64();
        report.queue_drops = self.queue.as_ref().map(Queue::dropped);
        report.host = Some(HostReport::since(self.before).map_err(system("/proc cannot be read"))?);
        drop(self.attached);
        Ok(report)
    }
}
