//! What all senders have in common.

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

/// What an application asks of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing before [`Application::next_wake`], or before more is acknowledged.
    Wait,
    /// Append so much to what is to be sent.
    Send(Size),
    /// Append so much to the answer to this request, the `last` of it or not.
    Answer {
        /// The request's number, from 0 on.
        request: u32,
        /// How much.
        size: Size,
        /// Nothing of the answer follows.
        last: bool,
    },
    /// Open a fresh connection (initial window, no history), then send so much.
    Restart(Size),
    /// There is always something to send from now on.
    Endless,
    /// Withdraw what has never been sent; more may follow.
    Withdraw,
    /// It is over: withdraw what has never been sent, hand over nothing more.
    Stop,
}

/// When an application is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// It begins here.
    pub start: Time,
    /// It stops here; [`Time::NEVER`] if it does not.
    pub stop: Time,
}

impl Period {
    /// From `start` on, without end.
    #[must_use]
    pub const fn from(start: Time) -> Period {
        Period { start, stop: Time::NEVER }
    }
}

/// Whether amounts are handed over to the byte or in whole segments (ns-2's TCP counts packets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To the byte.
    #[default]
    Exact,
    /// In whole segments; what is left of a transfer fills one more.
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

/// How transfers went: those that began, or ended, once measuring had begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// How many began.
    pub started: u64,
    /// How many were acknowledged to the last byte.
    pub completed: u64,
    /// How many had begun, whenever that was, and were not complete.
    pub unfinished: u64,
    /// Mean time from handing over the first byte to the acknowledgement of the last, of those completed.
    pub mean_time: Option<Span>,
    /// The time that half of them do not exceed, to 0.2 % or 1 us. `None` below two, as the next below 20 and 100: of fewer a
    /// percentile is the longest.
    pub median_time: Option<Span>,
    /// The same of 95 %.
    pub p95_time: Option<Span>,
    /// The same of 99 %.
    pub p99_time: Option<Span>,
}

/// Counts transfers. How long they took is a histogram, which grows with what their times span: 2 kB an octave, however many they
/// are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    started: u64,
    completed: u64,
    total: u128,
    times: Histogram,
    /// The least and the greatest of them, if there is one.
    extremes: Option<(Span, Span)>,
}

impl Tally {
    /// What was counted so far is forgotten.
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
        let (least, greatest) = self.extremes.unwrap_or((time, time));
        self.extremes = Some((least.min(time), greatest.max(time)));
    }

    /// How many began and are not complete, of what was never forgotten.
    pub(crate) fn open(&self) -> u64 {
        self.started - self.completed
    }

    pub(crate) fn read(&self, unfinished: u64) -> Transfers {
        let mean = self.total.checked_div(u128::from(self.completed));
        // one of `of` lies above it, or there is none
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
    /// A transfer, greedy.
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
    /// A game, a voice, a video: what comes at instants of its own.
    Timed(Timed),
    /// What is sent on.
    Relay(Relay),
    /// What answers requests.
    Server(Server),
}

impl Application {
    /// What to do now; to be called again until it says [`Action::Wait`] or [`Action::Stop`]. `acked` is how much of
    /// all that was handed over has been acknowledged, restarts included. Call it at [`Application::next_wake`], and
    /// whenever everything handed over is acknowledged (more often does no harm).
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

    /// When to call [`Application::next_action`] next, whatever is acknowledged until then.
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

    /// The request number `number` has come, which a server answers: [`Application::next_action`] says how.
    pub fn on_request(&mut self, number: u32) {
        if let Application::Server(server) = self {
            server.on_request(number);
        }
    }

    /// Whether it has come to an end by itself: all that it has is handed over, of a transfer acknowledged. A stop ends what is not.
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

    /// Whether it is a server that may yet be asked for something.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self, Application::Server(server) if server.is_waiting())
    }

    /// What the connection would have it send, in bits a second with all headers. Only an encoder follows.
    pub fn aim(&mut self, target: Rate, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.aim(target, now);
        }
    }

    /// How long what waits at the sender takes to leave; only an encoder minds.
    pub fn press(&mut self, queueing: Span) {
        if let Application::Encoder(encoder) = self {
            encoder.press(queueing);
        }
    }

    /// The receiver asks for a key frame, which only an encoder makes.
    pub fn request_key(&mut self, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.request_key(now);
        }
    }

    /// What its sender had of it has been thrown away, which only an encoder minds.
    pub fn begin_anew(&mut self, now: Time) {
        if let Application::Encoder(encoder) = self {
            encoder.begin_anew(now);
        }
    }

    /// Whether what it last handed over is a key frame that others need.
    #[must_use]
    pub fn made_key(&self) -> bool {
        match self {
            Application::Encoder(encoder) => encoder.made_key(),
            Application::Timed(source) => source.made_key(),
            _ => false,
        }
    }

    /// How many frames it has skipped since measuring began; `None` for what is no encoder.
    #[must_use]
    pub fn skipped(&self) -> Option<u64> {
        match self {
            Application::Encoder(encoder) => Some(encoder.skipped()),
            _ => None,
        }
    }

    /// How many frames it has captured since measuring began; `None` for what is no encoder.
    #[must_use]
    pub fn frames(&self) -> Option<u64> {
        match self {
            Application::Encoder(encoder) => Some(encoder.captured()),
            _ => None,
        }
    }

    /// Whether what it hands over are pictures of an encoder, its own or another's.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        match self {
            Application::Encoder(_) => true,
            Application::Relay(relay) => relay.has_pictures(),
            _ => false,
        }
    }

    /// The rate of the encoder, in bits a second with all headers; `None` for what is none.
    #[must_use]
    pub fn encoder_rate(&self) -> Option<Rate> {
        match self {
            Application::Encoder(encoder) => Some(encoder.rate()),
            _ => None,
        }
    }

    /// What it could send at most at `now`, in bits a second with all headers; infinite for what has no rate of its own, zero for
    /// what has handed over all it ever will at instants of its own.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        match self {
            Application::Encoder(encoder) => encoder.demand(now),
            Application::Timed(source) if source.is_silent() => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// How many bits of payload a second it hands over at most in the mean, and in pieces of which size; `None` for what sends as
    /// much as it may, or has no size known before.
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

    /// It is `at`: frames and the web's transfers count from here on. That of an FTP with a size is one, whenever it began.
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

    /// How its transfers went; `None` for what does not consist of transfers.
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
