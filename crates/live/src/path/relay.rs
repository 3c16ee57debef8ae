//! The event loop that carries frames between two devices in real time.

use super::capture::PathCapture;
use super::device::{Device, Sent};
use super::emulator::{Emulator, Side};
use super::record::{PathReport, Recorder};
use super::spec::PathSpec;
use crate::clock::{Clock, Lateness, Waiter, Woken, readable};
use crate::gateway::PathAccessPoint;
use crate::host::{HostReport, HostState};
use crate::start_signal::Beginning;
use paceline_path::access_point::Law;
use paceline_units::{Size, Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of frames read from each device before due frames are sent.
const BATCH: usize = 64;
/// Maximum length of an IP packet.
const LONGEST: usize = 65_535;

/// Stops a path from another thread, or from a signal handler.
#[derive(Debug)]
pub struct Stop {
    stopped: AtomicBool,
    fd: OwnedFd,
}

impl Stop {
    /// A stop that has not been requested.
    ///
    /// # Errors
    /// `eventfd(2)`'s.
    pub fn new() -> io::Result<Stop> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Stop { stopped: AtomicBool::new(false), fd })
    }

    /// Stops the path. Makes one system call, `write(2)`, and may be called from a signal handler.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // fails only if it was written before, and then it is readable anyway
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Whether [`Stop::stop`] was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Options for running a path.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions<'a> {
    /// The clock of the path: for its links' schedules, outages and traces, and for all recordings.
    pub clock: Clock,
    /// Maximum duration.
    pub duration: Option<Span>,
    /// Interval at which queues and delays are recorded, with 40 bytes per link and direction each time; `None`: no
    /// recordings.
    pub record: Option<Span>,
    /// A capture file.
    pub capture: Option<PathCapture<'a>>,
    /// Maximum memory for frames on the path.
    pub memory: Size,
    /// An access point before the queue towards the near end, which lowers the windows advertised by TCP receivers
    /// there.
    pub access_point: Option<&'a Law>,
    /// Announces when the flows over the path begin. The path then restarts: with fresh links, times count from there,
    /// and what was before is not measured. Not together with an access point, which cannot restart.
    pub beginning: Option<&'a Beginning>,
}

impl Default for RelayOptions<'_> {
    fn default() -> Self {
        RelayOptions {
            clock: Clock::start(),
            duration: None,
            record: None,
            capture: None,
            memory: Emulator::MEMORY,
            access_point: None,
            beginning: None,
        }
    }
}

/// Runs a path between two devices until it is stopped, its time is over, or a device is gone (which the report says).
///
/// # Errors
/// If it cannot start: the capture file cannot be written, `/proc` cannot be read, or the kernel refuses a timer slack
/// or a wait.
pub fn run(
    spec: &PathSpec,
    near: &mut dyn Device,
    far: &mut dyn Device,
    options: &RelayOptions<'_>,
    stop: &Stop,
) -> io::Result<PathReport> {
    let before = HostState::now()?;
    let clock = options.clock;
    let fresh = || Emulator::new(spec, options.record, options.memory);
    let mut relay = Relay {
        clock,
        waiter: Waiter::new(clock)?,
        emulator: fresh(),
        earlier: None,
        recorder: Recorder::new(clock, options.record, options.capture)?,
        devices: [near, far],
        buffer: vec![0; LONGEST],
        access_point: options.access_point.map(PathAccessPoint::new),
        beginning: options.beginning.map(|beginning| (beginning, &fresh as &dyn Fn() -> Emulator)),
    };
    let until = options.duration.map_or(Time::NEVER, |duration| Time::ZERO + duration);
    let failure = relay.carry(until, stop)?;
    let end = relay.clock.now();
    let set_up = Time(relay.clock.monotonic_at_zero()).since(Time(clock.monotonic_at_zero()));
    let report = PathReport {
        name: spec.name.clone(),
        seed: spec.seed,
        duration_s: end.as_secs_f64(),
        set_up_s: set_up.as_secs_f64(),
        failure,
        directions: Vec::new(),
        queues: Vec::new(),
        lag: Lateness::default(),
        wake: relay.waiter.lateness(),
        host: HostReport::since(before)?,
        capture: None,
        access_point: relay.access_point.as_ref().map(PathAccessPoint::report),
        series: Vec::new(),
        lost: relay.emulator.take_lost().in_monotonic(&relay.clock),
    };
    Ok(relay.recorder.finish(relay.emulator.finish(end), end, report))
}

struct Relay<'a> {
    clock: Clock,
    waiter: Waiter,
    emulator: Emulator,
    /// The emulator from before the flows began, while frames are on it, and its clock.
    earlier: Option<(Clock, Emulator)>,
    recorder: Recorder,
    /// Indexed by [`Side`].
    devices: [&'a mut dyn Device; 2],
    buffer: Vec<u8>,
    access_point: Option<PathAccessPoint>,
    /// Until the flows have begun: announces it, and creates the path's fresh links.
    beginning: Option<(&'a Beginning, &'a dyn Fn() -> Emulator)>,
}

impl Relay<'_> {
    /// Carries frames until the end; returns the device failure that ended it, if any.
    fn carry(&mut self, until: Time, stop: &Stop) -> io::Result<Option<String>> {
        let mut ready = [true; 2];
        loop {
            let mut next = until;
            if let Some(access_point) = &mut self.access_point {
                access_point.decide(self.clock.now());
                next = next.min(access_point.next_wake());
            }
            if let Err(failure) = self.turn(ready) {
                return Ok(Some(failure));
            }
            if stop.is_stopped() || self.clock.now() >= until {
                return Ok(None);
            }
            let [near, far] = &self.devices;
            let mut fds =
                [PollFd::new(near, PollFlags::IN), PollFd::new(far, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            let woken = self.waiter.wait(&mut fds, self.next_wake().min(next))?;
            // What became readable in the last moment before a timeout was not reported.
            ready = [woken == Woken::Due || readable(&fds[0]), woken == Woken::Due || readable(&fds[1])];
        }
    }

    /// Reads frames from the devices, up to a batch each; frames that are due are sent first.
    fn turn(&mut self, mut ready: [bool; 2]) -> Result<(), String> {
        self.hand_out()?;
        for _ in 0..BATCH {
            for side in Side::BOTH {
                ready[side as usize] = ready[side as usize] && self.take_in(side)?;
            }
            if self.next_wake() <= self.clock.now() {
                self.hand_out()?;
            }
            if ready == [false; 2] {
                break;
            }
        }
        Ok(())
    }

    /// Reads a frame; returns `false` if there is none.
    fn take_in(&mut self, side: Side) -> Result<bool, String> {
        let received = self.devices[side as usize].recv(&mut self.buffer);
        let Some(len) = received.map_err(|error| gone(side, &error))? else { return Ok(false) };
        // checked after reading a frame: the beginning is announced before the flows' first frame is sent
        if let Some((beginning, fresh)) = self.beginning
            && let Some(zero) = beginning.take()
        {
            self.begin(zero, fresh()).map_err(|error| format!("the system refuses a timer: {error}"))?;
        }
        let (now, frame) = (self.clock.now(), &mut self.buffer[..len]);
        self.recorder.entered(side, now, frame);
        if let Some(access_point) = &mut self.access_point {
            match side {
                Side::Near => access_point.back(frame),
                Side::Far => access_point.forward(frame),
            }
        }
        self.emulator.arrive(side, now, frame);
        Ok(true)
    }

    /// Restarts the path when the flows have begun; `zero` is that time by CLOCK_MONOTONIC.
    fn begin(&mut self, zero: u64, fresh: Emulator) -> io::Result<()> {
        self.beginning = None;
        let clock = Clock::from_monotonic(zero);
        self.waiter = Waiter::new(clock)?;
        self.recorder.restart(clock);
        self.earlier = Some((self.clock, std::mem::replace(&mut self.emulator, fresh)));
        self.clock = clock;
        Ok(())
    }

    /// When a frame is due next.
    fn next_wake(&self) -> Time {
        let earlier = self.earlier.as_ref().map_or(Time::NEVER, |(clock, emulator)| match emulator.next_wake() {
            Time::NEVER => Time::NEVER,
            wake => self.clock.of_monotonic(clock.monotonic_at_zero() + wake.0),
        });
        self.emulator.next_wake().min(earlier)
    }

    /// Sends due frames from before the flows began.
    fn hand_out_earlier(&mut self) -> Result<(), String> {
        let Some((clock, emulator)) = &mut self.earlier else { return Ok(()) };
        while let Some(release) = emulator.poll(clock.now()) {
            let side = release.side;
            self.devices[side as usize].send(release.frame).map_err(|error| gone(side, &error))?;
        }
        if emulator.next_wake() == Time::NEVER {
            self.earlier = None;
        }
        Ok(())
    }

    /// Sends due frames.
    fn hand_out(&mut self) -> Result<(), String> {
        self.hand_out_earlier()?;
        loop {
            let now = self.clock.now();
            let Some(release) = self.emulator.poll(now) else { return Ok(()) };
            let side = release.side;
            if let (Some(access_point), Side::Near) = (&mut self.access_point, side) {
                access_point.took(release.due.since(release.entered));
            }
            let sent = self.devices[side as usize].send(release.frame).map_err(|error| gone(side, &error));
            if let Ok(Sent::Whole) = sent {
                self.recorder.released(&release, now);
            } else {
                self.emulator.not_taken(side);
                sent?;
            }
        }
    }
}

fn gone(side: Side, error: &io::Error) -> String {
    format!("the device of the {} end is gone: {error}", side.name())
}
