//! The loop that carries frames between two devices in real time.

use super::capture::PathCapture;
use super::device::{Device, Sent};
use super::emulator::{Emulator, Side};
use super::record::{PathReport, Recorder};
use super::spec::PathSpec;
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
    let mut relay = Relay {
        clock,
        waiter: Waiter::new(clock)?,
        emulator: Emulator::new(spec, options.record, options.memory),
        recorder: Recorder::new(clock, options.record, options.capture)?,
        devices: [near, far],
        buffer: vec![0; LONGEST],
        access_point: options.access_point.map(PathAccessPoint::new),
    };
    let until = options.duration.map_or(Time::NEVER, |duration| Time::ZERO + duration);
    let failure = relay.carry(until, stop)?;
    let end = clock.now();
    let report = PathReport {
        name: spec.name.clone(),
        seed: spec.seed,
        duration_s: end.as_secs_f64(),
        failure,
        directions: Vec::new(),
        queues: Vec::new(),
        lag: Lateness::default(),
        wake: relay.waiter.lateness(),
        host: HostReport::since(before)?,
        capture: None,
        access_point: relay.access_point.as_ref().map(PathAccessPoint::report),
        series: Vec::new(),
        lost: relay.emulator.take_lost().in_monotonic(&clock),
    };
    Ok(relay.recorder.finish(relay.emulator.finish(end), end, report))
}

struct Relay<'a> {
    clock: Clock,
    waiter: Waiter,
    emulator: Emulator,
    recorder: Recorder,
    /// By [`Side`].
    devices: [&'a mut dyn Device; 2],
    buffer: Vec<u8>,
    access_point: Option<PathAccessPoint>,
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
            let woken = self.waiter.wait(&mut fds, self.emulator.next_wake().min(next))?;
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
            if self.emulator.next_wake() <= self.clock.now() {
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

    /// Hands out what is due.
    fn hand_out(&mut self) -> Result<(), String> {
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
