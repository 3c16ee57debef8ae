//! The loop that carries frames between two devices in real time.

use super::capture::PathCapture;
use super::device::{Device, Sent};
use super::emulator::{Emulator, Side};
use super::record::{PathReport, Recorder};
use super::spec::PathSpec;
use crate::beginning::Beginning;
use crate::clock::{Clock, Lateness, Waiter, Woken, readable};
use crate::gateway::PathAccessPoint;
use crate::host::{HostReport, HostState};
use paceline_path::access_point::Law;
use paceline_units::{Size, Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// How many frames are read from each device before frames that are due come first.
const BATCH: usize = 64;
/// The longest IP packet.
const LONGEST: usize = 65_535;

/// Ends a path from another thread, or a signal handler.
#[derive(Debug)]
pub struct Stop {
    stopped: AtomicBool,
    fd: OwnedFd,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// `eventfd(2)`'s.
    pub fn new() -> io::Result<Stop> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Stop { stopped: AtomicBool::new(false), fd })
    }

    /// Ends it now. Makes one system call, `write(2)`, and may be called from a signal handler.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // It only fails when it has been written to before, and then it is readable all the same.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Whether it was called.
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

/// How a path is run.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions<'a> {
    /// What the path's instants count from: its links' schedules, outages and traces, and all that is recorded.
    pub clock: Clock,
    /// Ends after this, if not stopped before.
    pub duration: Option<Span>,
    /// How often queues and delays are recorded: 40 bytes for each link and direction each time. `None`: not at all.
    pub record: Option<Span>,
    /// A capture file.
    pub capture: Option<PathCapture<'a>>,
    /// The memory that frames on the path may take.
    pub memory: Size,
    /// An access point before the queue towards the near end, which lowers the windows of TCP's receivers there.
    pub access_point: Option<&'a Law>,
    /// Whoever says when the flows over the path begin. Then the path begins anew: its links are as fresh ones, instants count
    /// from there, and what was before is not measured. Not beside an access point, whose time goes on.
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
/// If it cannot begin: the capture file cannot be written, `/proc` cannot be read, the kernel refuses a timer slack or a
/// wait.
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
    /// What carried frames before the flows began, while there are some on it, and its clock.
    earlier: Option<(Clock, Emulator)>,
    recorder: Recorder,
    /// By [`Side`].
    devices: [&'a mut dyn Device; 2],
    buffer: Vec<u8>,
    access_point: Option<PathAccessPoint>,
    /// Until the flows have begun: who says so, and what makes the path's links anew.
    beginning: Option<(&'a Beginning, &'a dyn Fn() -> Emulator)>,
}

impl Relay<'_> {
    /// Carries frames until it is to end; gives the failure of a device that ended it.
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
            // What became readable within the last moment before an instant has not been seen.
            ready = [woken == Woken::Due || readable(&fds[0]), woken == Woken::Due || readable(&fds[1])];
        }
    }

    /// Takes in what the devices have, up to a batch each, and hands out what is due, which comes first.
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

    /// Takes in a frame; `false` if there is none.
    fn take_in(&mut self, side: Side) -> Result<bool, String> {
        let received = self.devices[side as usize].recv(&mut self.buffer);
        let Some(len) = received.map_err(|error| gone(side, &error))? else { return Ok(false) };
        // asked for after the frame has come: the beginning is said before the first frame of the flows leaves
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

    /// The flows have begun when CLOCK_MONOTONIC showed `zero`: with them the path.
    fn begin(&mut self, zero: u64, fresh: Emulator) -> io::Result<()> {
        self.beginning = None;
        let clock = Clock::from_monotonic(zero);
        self.waiter = Waiter::new(clock)?;
        self.recorder.restart(clock);
        self.earlier = Some((self.clock, std::mem::replace(&mut self.emulator, fresh)));
        self.clock = clock;
        Ok(())
    }

    /// When there is something to hand out next.
    fn next_wake(&self) -> Time {
        let earlier = self.earlier.as_ref().map_or(Time::NEVER, |(clock, emulator)| match emulator.next_wake() {
            Time::NEVER => Time::NEVER,
            wake => self.clock.of_monotonic(clock.monotonic_at_zero() + wake.0),
        });
        self.emulator.next_wake().min(earlier)
    }

    /// Hands out what is due of what came before the flows began.
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

    /// Hands out what is due.
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
