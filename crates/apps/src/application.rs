//! The common interface of all senders.

use crate::cbr::Cbr;
use crate::encoder::Encoder;
use crate::ftp::Ftp;
use crate::onoff::OnOff;
use crate::relay::Relay;
use crate::server::Server;
use crate::stream::StreamSender;
use crate::timed::Timed;
use crate::web::Web;
use paceline_units::{Histogram, Rate, Size, Span, Time};

/// An application's request to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing before [`Application::next_wake`], or before more is acknowledged.
    Wait,
    /// Append this many bytes to the data to send.
    Send(Size),
    /// Append to the response to a request.
    Answer {
        /// The request's number, from 0.
        request: u32,
        /// The number of bytes.
        size: Size,
        /// Whether this completes the response.
        last: bool,
    },
    /// Open a new connection (initial window, no history), then send this many bytes.
    Restart(Size),
    /// From now on there is always data to send.
    Endless,
    /// Withdraw data that has never been sent; more may follow.
    Withdraw,
    /// Stop: withdraw data that has never been sent; nothing more follows.
    Stop,
}

/// When an application is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// When it starts.
    pub start: Time,
    /// When it stops; [`Time::NEVER`] if it does not.
    pub stop: Time,
}

impl Period {
    /// From `start`, without end.
    #[must_use]
    pub const fn from(start: Time) -> Period {
        Period { start, stop: Time::NEVER }
    }
}

/// Whether applications write exact byte counts or whole segments (ns-2's TCP counts packets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// Exact byte counts.
    #[default]
    Exact,
    /// Whole segments; the last one of a transfer is filled up.
    WholeSegments(Size),
}

impl Rounding {
    /// `size`, rounded up.
    #[must_use]
    pub fn up(self, size: Size) -> Size {
        match self {
            Rounding::Exact => size,
            Rounding::WholeSegments(Size(segment)) => Size(size.0.div_ceil(segment.max(1)).saturating_mul(segment)),
        }
    }

    /// `size`, rounded down.
    #[must_use]
    pub fn down(self, size: Size) -> Size {
        match self {
            Rounding::Exact => size,
            Rounding::WholeSegments(Size(segment)) => Size(size.0 - size.0 % segment.max(1)),
        }
    }
}

/// Statistics of transfers: those that began, or ended, after the start of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Transfers that began.
    pub started: u64,
    /// Transfers that were acknowledged to the last byte.
    pub completed: u64,
    /// Transfers that had begun at any time and were not complete.
    pub unfinished: u64,
    /// Mean time of completed transfers, from writing the first byte to the acknowledgement of the last.
    pub mean_time: Option<Span>,
    /// Median of their times, accurate to 0.2 % or 1 us. `None` below 2 transfers (20 and 100 for the other two
    /// percentiles): below that number a percentile equals the maximum.
    pub median_time: Option<Span>,
    /// 95th percentile.
    pub p95_time: Option<Span>,
    /// 99th percentile.
    pub p99_time: Option<Span>,
}

/// Counts transfers. Their times are in a histogram, whose size depends on their range, not on their number: 2 kB per
/// octave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    started: u64,
    completed: u64,
    total: u128,
    times: Histogram,
    /// The minimum and maximum time, if there is one.
    extremes: Option<(Span, Span)>,
}

impl Tally {
    /// Resets all counts.
    pub(crate) fn restart(&mut self) {
        *self = Tally::default();
    }

    pub(crate) fn started(&mut self) {
        self.started += 1;
    }

    pub(crate) fn completed(&mut self, now: Time, since: Time) {
        let time = now.since(since);
        self.completed += 1;
        self.total += u128::from(time.0);
        self.times.count(time);
        let (min_time, max_time) = self.extremes.unwrap_or((time, time));
        self.extremes = Some((min_time.min(time), max_time.max(time)));
    }

    /// Transfers begun and not complete; only valid if never restarted.
    pub(crate) fn open(&self) -> u64 {
        self.started - self.completed
    }

    pub(crate) fn read(&self, unfinished: u64) -> Transfers {
        let mean = self.total.checked_div(u128::from(self.completed));
        // fewer than `of` samples have no such percentile
        let extremes = self.extremes.unwrap_or_default();
        let above = |of: u64, q: f64| self.times.quantile(q, extremes).filter(|_| self.completed >= of);
        Transfers {
            started: self.started,
            completed: self.completed,
            unfinished,
            mean_time: mean.map(|ns| Span(ns as u64)),
            median_time: above(2, 0.5),
            p95_time: above(20, 0.95),
            p99_time: above(100, 0.99),
        }
    }
}

/// Any sender.
#[derive(Clone, Debug)]
pub enum Application {
    /// A bulk transfer, greedy.
    Ftp(Ftp),
    /// Web transfers.
    Web(Web),
    /// A media stream.
    Stream(StreamSender),
    /// Pareto on/off traffic.
    OnOff(OnOff),
    /// Constant bit rate.
    Cbr(Cbr),
    /// A live video encoder.
    Encoder(Encoder),
    /// Game, voice or recorded video: packets at predetermined instants.
    Timed(Timed),
    /// Relayed data.
    Relay(Relay),
    /// Responses to requests.
    Server(Server),
}

impl Application {
    /// What to do now; call it again until it returns [`Action::Wait`] or [`Action::Stop`]. `acked` is the number of
    /// bytes acknowledged of all that was written, across restarts. Call it at [`Application::next_wake`], and whenever
    /// everything written is acknowledged (additional calls are harmless).
    pub fn next_action(&mut self, now: Time, acked: Size) -> Action {
        match self {
            Application::Ftp(ftp) => ftp.next_action(now, acked),
            Application::Web(web) => web.next_action(now, acked),
            Application::Stream(stream) => stream.next_action(now),
            Application::OnOff(source) => source.next_action(now),
            Application::Cbr(source) => source.next_action(now),
            Application::Encoder(encoder) => encoder.next_action(now),
            Application::Timed(source) => source.next_action(now),
            Application::Relay(relay) => relay.next_action(now),
            Application::Server(server) => server.next_action(now),
        }
    }

    /// When to call [`Application::next_action`] next, apart from acknowledgements.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        match self {
            Application::Ftp(ftp) => ftp.next_wake(),
            Application::Web(web) => web.next_wake(),
            Application::Stream(stream) => stream.next_wake(),
            Application::OnOff(source) => source.next_wake(),
            Application::Cbr(source) => source.next_wake(),
            Application::Encoder(encoder) => encoder.next_wake(),
            Application::Timed(source) => source.next_wake(),
            Application::Relay(relay) => relay.next_wake(),
            Application::Server(server) => server.next_wake(),
        }
    }

    /// Request `number` has arrived; a server answers it in [`Application::next_action`].
    pub fn on_request(&mut self, number: u32) {
        if let Application::Server(server) = self {
            server.on_request(number);
        }
    }

    /// Whether it has finished by itself: everything is written, and a transfer is acknowledged. A stop does not count.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Application::Ftp(ftp) => ftp.is_over(),
            Application::Stream(stream) => stream.is_over(),
            Application::Timed(source) => source.is_over(),
            Application::Server(server) => server.is_over(),
            Application::Web(_)
            | Application::OnOff(_)
            | Application::Cbr(_)
            | Application::Encoder(_)
            | Application::Relay(_) => false,
        }
    }

    /// Whether it is a server that may still receive requests.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self, Application::Server(server) if server.is_waiting())
    }

    /// Sets the target rate from the connection, in bit/s with all headers. Only an encoder follows it.
    pub fn set_target_rate(&mut self, target: Rate, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.set_target_rate(target, now);
        }
    }

    /// Reports how long the sender's backlog takes to drain; only an encoder uses it.
    pub fn on_queueing_delay(&mut self, queueing: Span) {
        if let Application::Encoder(encoder) = self {
            encoder.on_queueing_delay(queueing);
        }
    }

    /// The receiver requests a key frame; only an encoder makes one.
    pub fn request_key(&mut self, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.request_key(now);
        }
    }

    /// The sender has discarded its backlog; an encoder then makes a key frame.
    pub fn on_backlog_discarded(&mut self, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.on_backlog_discarded(now);
        }
    }

    /// Whether the last write was a key frame that other frames depend on.
    #[must_use]
    pub fn last_is_key_frame(&self) -> bool {
        match self {
            Application::Encoder(encoder) => encoder.last_is_key_frame(),
            Application::Timed(source) => source.last_is_key_frame(),
            _ => false,
        }
    }

    /// Frames skipped since the start of the measurement; `None` if it is no encoder.
    #[must_use]
    pub fn skipped(&self) -> Option<u64> {
        match self {
            Application::Encoder(encoder) => Some(encoder.skipped()),
            _ => None,
        }
    }

    /// Frames captured since the start of the measurement; `None` if it is no encoder.
    #[must_use]
    pub fn frames(&self) -> Option<u64> {
        match self {
            Application::Encoder(encoder) => Some(encoder.captured()),
            _ => None,
        }
    }

    /// Whether it writes an encoder's pictures, its own or relayed ones.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        match self {
            Application::Encoder(_) => true,
            Application::Relay(relay) => relay.has_pictures(),
            _ => false,
        }
    }

    /// The encoder's rate, in bit/s with all headers; `None` if it is no encoder.
    #[must_use]
    pub fn encoder_rate(&self) -> Option<Rate> {
        match self {
            Application::Encoder(encoder) => Some(encoder.rate()),
            _ => None,
        }
    }

    /// The maximum rate at which it could send at `now`, in bit/s with all headers. Infinite if the application does
    /// not limit it; zero for timed traffic that has written everything.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        match self {
            Application::Encoder(encoder) => encoder.demand(now),
            Application::Timed(source) if source.is_silent() => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// Its maximum mean payload rate in bit/s, and the size of its writes; `None` if the application sets no rate, or
    /// no size is known in advance.
    #[must_use]
    pub fn pace(&self) -> Option<(f64, Size)> {
        match self {
            Application::Encoder(encoder) => Some(encoder.pace()),
            Application::Cbr(source) => Some(source.pace()),
            Application::OnOff(source) => Some(source.pace()),
            Application::Timed(source) => source.pace(),
            Application::Ftp(_)
            | Application::Web(_)
            | Application::Stream(_)
            | Application::Relay(_)
            | Application::Server(_) => None,
        }
    }

    /// Starts the measurement at `at`: frames and web transfers count from here on. An FTP transfer with a size always
    /// counts.
    pub fn measure_from(&mut self, at: Time) {
        match self {
            Application::Encoder(encoder) => encoder.measure_from(at),
            Application::Web(web) => web.measure_from_here(),
            Application::Cbr(_)
            | Application::Ftp(_)
            | Application::Stream(_)
            | Application::OnOff(_)
            | Application::Relay(_)
            | Application::Server(_)
            | Application::Timed(_) => {}
        }
    }

    /// Its transfer statistics; `None` if it has no transfers.
    #[must_use]
    pub fn transfers(&self) -> Option<Transfers> {
        match self {
            Application::Ftp(ftp) => ftp.transfers(),
            Application::Web(web) => Some(web.transfers()),
            Application::Cbr(_)
            | Application::Encoder(_)
            | Application::Stream(_)
            | Application::OnOff(_)
            | Application::Relay(_)
            | Application::Server(_)
            | Application::Timed(_) => None,
        }
    }
}
