//! The real clock, and waiting until a point in time or until a file descriptor is ready, whichever comes first.
//!
//! A sleeping thread wakes some tens of microseconds late, mostly because of Linux's default timer slack of 50 us
//! (`prctl(2)`, `PR_SET_TIMERSLACK`). [`Waiter`] sets a slack of 1 ns, sleeps until shortly before the time, and spins
//! for the rest. It records its lateness in a histogram. Start with [`Waiter::wait`].

use hdrhistogram::Histogram;
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;
use std::num::NonZeroU64;

/// CLOCK_MONOTONIC, counted from its own start: steps of the system's time do not affect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC at zero.
    zero: u64,
}

impl Clock {
    /// A clock that is zero now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { zero: nanoseconds(ClockId::Monotonic) }
    }

    /// A clock that was zero when CLOCK_MONOTONIC was `nanoseconds`.
    #[must_use]
    pub fn from_monotonic(nanoseconds: u64) -> Clock {
        Clock { zero: nanoseconds }
    }

    /// The time since its start.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        Time(nanoseconds(ClockId::Monotonic).saturating_sub(self.zero))
    }

    /// The system clock's time at zero of this one, as nanoseconds since 1970. Each call measures the difference of the
    /// two clocks again: the system clock may have been set since.
    #[must_use]
    pub fn unix_at_zero(&self) -> u64 {
        // use the reading whose two enclosing ones are closest: a descheduled thread would distort it
        let reading = || {
            let before = nanoseconds(ClockId::Monotonic);
            let unix = nanoseconds(ClockId::Realtime);
            let after = nanoseconds(ClockId::Monotonic);
            (after - before, unix.saturating_sub((before + (after - before) / 2).saturating_sub(self.zero)))
        };
        (0..5).map(|_| reading()).min().map_or(0, |(_, unix)| unix)
    }

    /// CLOCK_MONOTONIC at zero of this clock, in nanoseconds.
    #[must_use]
    pub fn monotonic_at_zero(&self) -> u64 {
        self.zero
    }

    /// This clock's time when CLOCK_MONOTONIC was `nanoseconds`.
    #[must_use]
    pub fn of_monotonic(&self, nanoseconds: u64) -> Time {
        Time(nanoseconds.saturating_sub(self.zero))
    }
}

/// CLOCK_MONOTONIC in nanoseconds, as programs in the kernel read it.
#[must_use]
pub(crate) fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The time of a kernel clock in nanoseconds.
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why [`Waiter::wait`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The time has come. A file descriptor may be ready too.
    Due,
    /// A file descriptor is ready (its `revents` tell which), and the time has not come.
    Ready,
    /// A signal was caught.
    Signal,
}

/// Waits for points in time of a clock, and records its lateness.
#[derive(Clone, Debug)]
pub struct Waiter {
    clock: Clock,
    spin: Span,
    late: Histogram<u64>,
}

impl Waiter {
    /// Time before the target at which a waiter wakes to spin: a little more than the kernel's median lateness.
    pub const SPIN: Span = Span::from_micros(60);

    /// A waiter for the calling thread, whose timer slack is set to 1 ns. It is exact only on this thread.
    ///
    /// # Errors
    /// If the kernel refuses the slack.
    pub fn new(clock: Clock) -> io::Result<Waiter> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Waiter { clock, spin: Waiter::SPIN, late: histogram() })
    }

    /// The same without spinning: late by tens of microseconds, but with less CPU time.
    #[must_use]
    pub fn without_spin(self) -> Waiter {
        Waiter { spin: Span::ZERO, ..self }
    }

    /// The clock that it waits for.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until `until` ([`Time::NEVER`]: forever) or until one of `fds` is ready. A past time is due at once, and
    /// `fds` are still polled. Lateness is recorded only if it had to wait.
    ///
    /// # Errors
    /// `ppoll(2)`'s, except EINTR.
    pub fn wait(&mut self, fds: &mut [PollFd<'_>], until: Time) -> io::Result<Woken> {
        let mut now = self.clock.now();
        if now >= until {
            return match poll_once(fds, Some(Span::ZERO))? {
                Polled::Signal => Ok(Woken::Signal),
                _ => Ok(Woken::Due),
            };
        }
        let asleep = until.since(now).0.saturating_sub(self.spin.0);
        if asleep > 0 || until == Time::NEVER {
            let timeout = (until != Time::NEVER).then_some(Span(asleep));
            match poll_once(fds, timeout)? {
                Polled::Ready => return Ok(self.ready(until)),
                Polled::Signal => return Ok(Woken::Signal),
                Polled::Nothing => {}
            }
            now = self.clock.now();
        }
        while now < until {
            // polling the descriptors takes about half a microsecond: skip it in the last one
            if !fds.is_empty() && until.since(now) > Span::from_micros(1) {
                match poll_once(fds, Some(Span::ZERO))? {
                    Polled::Ready => return Ok(self.ready(until)),
                    Polled::Signal => return Ok(Woken::Signal),
                    Polled::Nothing => {}
                }
            } else {
                core::hint::spin_loop();
            }
            now = self.clock.now();
        }
        self.late.saturating_record(now.since(until).0);
        Ok(Woken::Due)
    }

    /// Waits until `until`; a caught signal does not end the wait.
    ///
    /// # Errors
    /// `ppoll(2)`'s, except EINTR.
    pub fn sleep_until(&mut self, until: Time) -> io::Result<()> {
        while self.wait(&mut [], until)? != Woken::Due {}
        Ok(())
    }

    /// Lateness of this waiter, over all times that it had to wait for.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        Lateness::of(&self.late)
    }

    fn ready(&self, until: Time) -> Woken {
        if self.clock.now() >= until { Woken::Due } else { Woken::Ready }
    }
}

enum Polled {
    Ready,
    Nothing,
    Signal,
}

fn poll_once(fds: &mut [PollFd<'_>], timeout: Option<Span>) -> io::Result<Polled> {
    for fd in fds.iter_mut() {
        fd.clear_revents();
    }
    let timeout = timeout
        .map(|span| Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as _ });
    match poll(fds, timeout.as_ref()) {
        Ok(0) => Ok(Polled::Nothing),
        Ok(_) => Ok(Polled::Ready),
        Err(Errno::INTR) => Ok(Polled::Signal),
        Err(error) => Err(error.into()),
    }
}

/// Whether the last wait found that `fd` can be read, is closed at the other end, or has an error: reading it shows
/// which.
#[must_use]
pub fn readable(fd: &PollFd<'_>) -> bool {
    fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// A histogram of nanoseconds up to a minute, with a precision of 1 %.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("these bounds make a histogram")
}

/// Lateness of timed events. Without any, all fields except `count` are NaN (null in JSON).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Lateness {
    /// Number of events.
    pub count: u64,
    /// Median (seconds).
    pub p50_s: f64,
    /// 95th percentile (seconds).
    pub p95_s: f64,
    /// 99th percentile (seconds).
    pub p99_s: f64,
    /// Maximum (seconds).
    pub max_s: f64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { count: 0, p50_s: f64::NAN, p95_s: f64::NAN, p99_s: f64::NAN, max_s: f64::NAN }
    }
}

impl Lateness {
    /// From a histogram of nanoseconds.
    pub(crate) fn of(late: &Histogram<u64>) -> Lateness {
        let at = |quantile| late.value_at_quantile(quantile) as f64 / 1e9;
        if late.is_empty() {
            return Lateness::default();
        }
        Lateness { count: late.len(), p50_s: at(0.5), p95_s: at(0.95), p99_s: at(0.99), max_s: at(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn of_nothing_no_percentile_is_known() {
        let mut late = histogram();
        let json = |late: &Histogram<u64>| serde_json::to_value(Lateness::of(late)).unwrap();
        let none = serde_json::json!({ "count": 0, "p50_s": null, "p95_s": null, "p99_s": null, "max_s": null });
        assert_eq!(json(&late), none);
        late.record(2000).unwrap();
        assert!(json(&late)["p99_s"].as_f64().is_some_and(|late| (late - 2e-6).abs() < 1e-8));
    }

    /// Tests that measure microseconds: `./check` runs nothing beside them.
    mod alone {
        use super::*;

        #[test]
        #[ignore = "real time"]
        fn an_instant_is_met_and_a_descriptor_comes_first() {
            crate::realtime::tried(|| {
                let clock = Clock::start();
                let mut waiter = Waiter::new(clock).unwrap();
                let (a, b) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None).unwrap();
                for _ in 0..20 {
                    let until = clock.now() + Span::from_millis(2);
                    let mut fds = [PollFd::new(&a, PollFlags::IN)];
                    assert_eq!(waiter.wait(&mut fds, until).unwrap(), Woken::Due);
                    assert!(clock.now() >= until && !readable(&fds[0]));
                }
                let late = waiter.lateness();
                assert_eq!(late.count, 20);
                // spinning is exact to the microsecond; the bound allows for a host that deschedules the thread
                assert!(late.p50_s < 50e-6, "{late:?}");
                rustix::io::write(&b, b"x").unwrap();
                let mut fds = [PollFd::new(&a, PollFlags::IN)];
                let until = clock.now() + Span::from_secs(30);
                assert_eq!(waiter.wait(&mut fds, until).unwrap(), Woken::Ready);
                assert!(readable(&fds[0]) && clock.now() < until);
                assert_eq!(waiter.wait(&mut fds, Time::ZERO).unwrap(), Woken::Due);
                assert!(readable(&fds[0]), "what is ready is seen though the instant has passed");
            });
        }
    }

    #[test]
    #[ignore = "real time"]
    fn it_spins_for_a_short_wait() {
        crate::realtime::tried(|| {
            let clock = Clock::start();
            let mut waiter = Waiter::new(clock).unwrap();
            let until = clock.now() + Span::from_micros(20);
            waiter.sleep_until(until).unwrap();
            assert!(clock.now() >= until);
        });
    }

    #[test]
    #[ignore = "real time"]
    fn the_clock_agrees_with_the_systems() {
        crate::realtime::tried(|| {
            let clock = Clock::start();
            let unix = clock.unix_at_zero() + clock.now().0;
            let system = nanoseconds(ClockId::Realtime);
            assert!(unix.abs_diff(system) < 100_000_000, "{unix} {system}");
        });
    }
}
