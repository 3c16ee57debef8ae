//! The real clock, and waiting for an instant of it or for a file descriptor, whichever comes first.
//!
//! A sleeping thread wakes some tens of microseconds late, most of it the timer slack of 50 us that Linux allows itself
//! (`prctl(2)`, `PR_SET_TIMERSLACK`). [`Waiter`] asks for a slack of 1 ns, sleeps until shortly before the instant, and
//! spins for the rest. How late it was it keeps as a histogram. Look first at [`Waiter::wait`].

use hdrhistogram::Histogram;
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;
use std::num::NonZeroU64;

/// CLOCK_MONOTONIC, counted from an instant of its own: no step of the system's time moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC at zero.
    zero: u64,
}

impl Clock {
    /// A clock that stands at zero now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { zero: nanoseconds(ClockId::Monotonic) }
    }

    /// A clock that stood at zero when CLOCK_MONOTONIC showed `nanoseconds`.
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

    /// What the system's clock shows at zero of this one, as nanoseconds since 1970. The difference of the two clocks is
    /// measured anew with each call: the system's clock may have been set since.
    #[must_use]
    pub fn unix_at_zero(&self) -> u64 {
        // The reading between the two that are closest together: a thread that lost the processor meanwhile is no measure.
        let reading = || {
            let before = nanoseconds(ClockId::Monotonic);
            let unix = nanoseconds(ClockId::Realtime);
            let after = nanoseconds(ClockId::Monotonic);
            (after - before, unix.saturating_sub((before + (after - before) / 2).saturating_sub(self.zero)))
        };
        (0..5).map(|_| reading()).min().map_or(0, |(_, unix)| unix)
    }

    /// What CLOCK_MONOTONIC showed at zero of this one, in nanoseconds.
    #[must_use]
    pub fn monotonic_at_zero(&self) -> u64 {
        self.zero
    }

    /// The instant of this clock at which CLOCK_MONOTONIC showed `nanoseconds`.
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

/// Nanoseconds that a clock of the kernel shows.
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why [`Waiter::wait`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The instant has come. A file descriptor may be ready besides.
    Due,
    /// A file descriptor is ready (its `revents` say which), and the instant has not come.
    Ready,
    /// A signal was caught.
    Signal,
}

/// Waits for instants of a clock, and knows how late it was.
#[derive(Clone, Debug)]
pub struct Waiter {
    clock: Clock,
    spin: Span,
    late: Histogram<u64>,
}

impl Waiter {
    /// How long before an instant a waiter wakes to spin: a little more than the kernel is late in the median.
    pub const SPIN: Span = Span::from_micros(60);

    /// A waiter of the calling thread, whose timer slack becomes 1 ns. It must be used on this thread to be exact.
    ///
    /// # Errors
    /// If the kernel refuses the slack.
    pub fn new(clock: Clock) -> io::Result<Waiter> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Waiter { clock, spin: Waiter::SPIN, late: histogram() })
    }

    /// The same without the spin: late by tens of microseconds, and of less use of the processor.
    #[must_use]
    pub fn without_spin(self) -> Waiter {
        Waiter { spin: Span::ZERO, ..self }
    }

    /// The clock it waits for.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until `until` ([`Time::NEVER`]: for ever) or until one of `fds` is ready. An instant that has passed is due at
    /// once, and `fds` are looked at all the same. How late it is counts only if it had to wait.
    ///
    /// # Errors
    /// `ppoll(2)`'s, but for EINTR.
    pub fn wait(&mut self, fds: &mut [PollFd<'_>], until: Time) -> io::Result<Woken> {
        let mut now = self.clock.now();
        if now >= until {
            return match look(fds, Some(Span::ZERO))? {
                Look::Signal => Ok(Woken::Signal),
                _ => Ok(Woken::Due),
            };
        }
        let asleep = until.since(now).0.saturating_sub(self.spin.0);
        if asleep > 0 || until == Time::NEVER {
            let timeout = (until != Time::NEVER).then_some(Span(asleep));
            match look(fds, timeout)? {
                Look::Ready => return Ok(self.ready(until)),
                Look::Signal => return Ok(Woken::Signal),
                Look::Nothing => {}
            }
            now = self.clock.now();
        }
        while now < until {
            // A look at the descriptors takes about half a microsecond: none in the last one.
            if !fds.is_empty() && until.since(now) > Span::from_micros(1) {
                match look(fds, Some(Span::ZERO))? {
                    Look::Ready => return Ok(self.ready(until)),
                    Look::Signal => return Ok(Woken::Signal),
                    Look::Nothing => {}
                }
            } else {
                core::hint::spin_loop();
            }
            now = self.clock.now();
        }
        self.late.saturating_record(now.since(until).0);
        Ok(Woken::Due)
    }

    /// Waits until `until`; a caught signal does not end it.
    ///
    /// # Errors
    /// `ppoll(2)`'s, but for EINTR.
    pub fn sleep_until(&mut self, until: Time) -> io::Result<()> {
        while self.wait(&mut [], until)? != Woken::Due {}
        Ok(())
    }

    /// How late this waiter has been, of all instants that it had to wait for.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        Lateness::of(&self.late)
    }

    fn ready(&self, until: Time) -> Woken {
        if self.clock.now() >= until { Woken::Due } else { Woken::Ready }
    }
}

enum Look {
    Ready,
    Nothing,
    Signal,
}

fn look(fds: &mut [PollFd<'_>], timeout: Option<Span>) -> io::Result<Look> {
    for fd in fds.iter_mut() {
        fd.clear_revents();
    }
    let timeout = timeout
        .map(|span| Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as _ });
    match poll(fds, timeout.as_ref()) {
        Ok(0) => Ok(Look::Nothing),
        Ok(_) => Ok(Look::Ready),
        Err(Errno::INTR) => Ok(Look::Signal),
        Err(error) => Err(error.into()),
    }
}

/// Whether `fd` can be read, has been closed at its other end or is in error, as the last wait found it: each is learnt by
/// reading it.
#[must_use]
pub fn readable(fd: &PollFd<'_>) -> bool {
    fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// A histogram of nanoseconds up to a minute, exact to 1 %.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("these bounds make a histogram")
}

/// How late things happened that were to happen at an instant. All but `count` is not a number (in JSON null) where nothing did.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Lateness {
    /// How many there were.
    pub count: u64,
    /// Median (seconds), as all that follow.
    pub p50_s: f64,
    /// 95th percentile.
    pub p95_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// The worst.
    pub max_s: f64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { count: 0, p50_s: f64::NAN, p95_s: f64::NAN, p99_s: f64::NAN, max_s: f64::NAN }
    }
}

impl Lateness {
    /// Of a histogram of nanoseconds.
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

    /// What measures microseconds: `./check` has nothing run beside it.
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
                // The spin meets it to the microsecond; the bound leaves room for a host that takes the processor away.
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
