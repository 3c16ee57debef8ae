//! The sending end (RFC 3550 section 5). `session` has the state of a session, `reports` builds the sender's reports,
//! `feedback` processes the receiver's.

pub(super) mod bundle;
mod coupled;
mod feedback;
mod frames;
mod packets;
mod padding;
mod reports;
mod rtx;
mod session;

use self::bundle::{Bundle, Led};
use self::frames::{Frame, Needs};
use self::packets::Outgoing;
use self::padding::Filling;
use self::rtx::{History, Kept};
use self::session::Session;
use super::RtpConfig;
use super::participant::{self, sender_info};
use super::sent_log::SentLog;
use super::timing::ReportTimer;
use super::twcc::ReferenceClock;
use crate::pacer::{MAX_PACKETS_PER_CALL, Pacer};
use crate::supply::Supply;
use crate::{SenderStats, Transmit};
use paceline_control::{
    Controller, Gauges, MediaController, PathView, RtpController, RtpEvent, RtpSession, SentPacket, known,
};
use paceline_packet::rtcp::Compound;
use paceline_packet::rtp::RtpData;
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};
use std::collections::VecDeque;

/// How much sending a late timer catches up on in one burst. There is no credit for time with nothing to send or with a
/// full window, as in libwebrtc's pacer and in SCReAM.
const CATCH_UP: Span = Span::from_millis(10);

/// The stream number of the controller's random draws within a session.
const DRAWS: u64 = 4;

/// Maximum number of sender reports remembered for their echo; with a report every millisecond, those of a second.
const ECHOES: usize = 1024;

/// The sending end of a flow.
///
/// The caller passes in the application's writes ([`RtpSender::supply`]), reports and the time. It receives data
/// packets and reports through [`Transmit`]. [`RtpSender::next_wake`] says when to call [`RtpSender::on_timer`]; that
/// time may move later without notice, and a call too early does nothing.
#[derive(Debug)]
pub struct RtpSender {
    /// The data packets.
    supply: Supply,
    /// The session's first packet.
    first: u32,
    /// One past the newest packet that a report has covered.
    reported: u32,
    started: bool,
    /// The application has stopped, and a BYE must be sent.
    leaving: bool,
    /// Bytes on the wire of a full packet.
    packet: f64,
    pacer: Pacer,
    /// Bytes on the wire of the last packet; the current gap is for it.
    paced: f64,
    /// One past the last packet of the announced burst.
    burst_end: u32,
    /// The first packet of that burst.
    burst_start: u32,
    /// Packets have waited for the pacer since the last report.
    used: bool,
    /// The next packet waits for the pacer only.
    timed: bool,
    session: Session,
    /// When the next silence of the receiver is reported to the controller.
    silence: Time,
    /// When the last report with new information arrived, or the start.
    last_feedback: Time,
    /// The last and the minimum round-trip time sample; zero before the first.
    rtt: Span,
    min_rtt: Span,
    loss: f64,
    controller: RtpController,
    stats: SenderStats,
    /// Frames not sent completely, in order.
    frames: VecDeque<Frame>,
    /// The current frame's own rate in bytes on the wire per second, if it has one.
    frame_rate: Option<f64>,
    /// Packets sent outside the pace.
    filling: Filling,
    /// Media kept for retransmission; and the number of packets sent outside the supply, which shifts packet numbers.
    history: History,
    aside: u32,
    /// The receiver has requested a key frame.
    wants_key: bool,
    /// The queue was discarded.
    discarded: bool,
    /// When the controller's next tick is due.
    tick: Time,
    /// Bytes on the wire that wait to be sent.
    backlog: u64,
    /// Packets not yet covered by feedback on arrivals.
    sent: SentLog,
    /// For transport-wide feedback: the receiver's clock.
    clock: ReferenceClock,
    config: Box<RtpConfig>,
    fresh: RtpController,
    stream: Stream,
    /// Number of sessions so far.
    sessions: u64,
    /// Bytes on the wire of all frames so far.
    written: u64,
    /// For the leader of a bundle: its state of the other streams, and its own share of the rate.
    bundle: Option<Box<Bundle>>,
    kept: Option<Rate>,
    /// For a stream led by another.
    led: Option<Led>,
}

impl RtpSender {
    /// Creates a sender that has not started. `stream` supplies its SSRC, its first sequence number, and the random
    /// draws of its reports.
    #[must_use]
    pub fn new(config: &RtpConfig, controller: RtpController, stream: Stream) -> RtpSender {
        RtpSender {
            supply: Supply::default(),
            first: 0,
            reported: 0,
            started: false,
            leaving: false,
            packet: f64::from(config.wire().max(1)),
            pacer: Pacer::new(config.gap_jitter.clamp(0.0, 0.999), Sequence::new(stream)),
            paced: f64::from(config.wire().max(1)),
            burst_end: 0,
            burst_start: 0,
            used: false,
            timed: false,
            session: Session::new(stream.fork(0), 0),
            silence: Time::NEVER,
            last_feedback: Time::ZERO,
            rtt: Span::ZERO,
            min_rtt: Span::ZERO,
            loss: 0.0,
            controller: controller.clone(),
            stats: SenderStats::new(config.wire()),
            frames: VecDeque::new(),
            frame_rate: None,
            filling: Filling::default(),
            history: History::default(),
            aside: 0,
            wants_key: false,
            discarded: false,
            tick: Time::NEVER,
            backlog: 0,
            sent: SentLog::new(config.settings.reordering),
            clock: ReferenceClock::default(),
            config: Box::new(config.clone()),
            fresh: controller,
            stream,
            sessions: 1,
            written: 0,
            bundle: None,
            kept: None,
            led: config.bundled.then(Led::default),
        }
    }

    /// Starts sending. Data supplied earlier has waited for this.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.stats.begin(now);
        self.started = true;
        self.last_feedback = now;
        let first = Compound { sender: Some(sender_info(now, 0, 0, 0)), ..self.session.us.report() };
        let size = participant::size(&first);
        let timer = ReportTimer::new(self.config.timing, size, self.session.us.timer_stream(), now);
        let interval = self.config.heeded_interval(timer.deterministic());
        self.session.timer = Some(timer);
        self.members(now);
        self.controller.draw_from(self.stream.fork(self.sessions).fork(DRAWS));
        if self.config.frame_period > Span::ZERO {
            self.controller.frames_every(self.config.frame_period);
        }
        let session = RtpSession { packet: Size::from_bytes(u64::from(self.config.wire())), interval };
        self.controller.on_feedback(&RtpEvent::Started(session), &self.path(now));
        self.wind(now);
        self.fetch_probes(now);
        for frame in &mut self.frames {
            frame.plan(&mut self.controller);
        }
        self.listen(now, self.config.settings.silence);
        self.pacer.start(now);
        self.run(now, out);
    }

    /// Begins a new session with a new SSRC and nothing supplied; statistics continue to count. Call
    /// [`RtpSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.discard();
        self.first = self.supply.next();
        self.reported = self.first;
        (self.burst_start, self.burst_end) = (self.first, self.first);
        self.started = false;
        self.leaving = false;
        (self.used, self.timed) = (false, false);
        self.session = Session::new(self.stream.fork(self.sessions), self.first);
        self.sessions += 1;
        self.silence = Time::NEVER;
        (self.rtt, self.min_rtt, self.loss) = (Span::ZERO, Span::ZERO, 0.0);
        self.controller = self.fresh.clone();
        (self.filling, self.tick) = (Filling::default(), Time::NEVER);
        (self.history, self.aside) = (History::default(), 0);
        (self.wants_key, self.discarded) = (false, false);
        self.sent.restart(self.first);
        (self.bundle, self.kept) = (None, None);
        self.clock = ReferenceClock::default();
    }

    /// Discards unsent data.
    fn discard(&mut self) {
        self.supply.clear();
        self.history.withdraw();
        self.frames.clear();
        self.frame_rate = None;
        self.backlog = 0;
    }

    /// The application writes `bytes`: full packets and, for a remainder, a short last one. The settings say whether a
    /// write is a video frame.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        self.write(bytes, Needs::Unsaid, now, out);
    }

    /// The application writes a key frame, which a receiver can distinguish from other frames ([`RtpData::KEY`]).
    pub fn supply_key(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        self.write(bytes, Needs::Nothing, now, out);
    }

    fn write(&mut self, bytes: u64, needs: Needs, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.supply.is_endless() || self.is_over() {
            return;
        }
        let packets = self.supply.add(bytes, self.config.segment, self.config.whole_segments);
        let segment = u64::from(self.config.segment.max(1));
        let payload = if self.config.whole_segments { bytes.div_ceil(segment).saturating_mul(segment) } else { bytes };
        let headers = u64::from(packets).saturating_mul(self.config.header.into());
        self.backlog = self.backlog.saturating_add(payload).saturating_add(headers);
        if self.config.frames {
            let last = payload - segment * u64::from(packets.saturating_sub(1));
            let (size, last) = (payload.saturating_add(headers), last + u64::from(self.config.header));
            let end = self.supply.end();
            self.written += size;
            let mut frame = Frame {
                end,
                written: now,
                size,
                last,
                own: None,
                begun: false,
                hurries: false,
                key: needs == Needs::Nothing,
            };
            if self.started {
                frame.plan(&mut self.controller);
            }
            self.frames.push_back(frame);
            if self.config.settings.report_sent {
                let size = Size::from_bytes(size);
                self.controller.on_feedback(&RtpEvent::Frame { size }, &self.path(now));
                self.heed_discard();
            }
        }
        self.run(now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.is_over() {
            self.supply.add_endlessly();
            self.run(now, out);
        }
    }

    /// The application stops: unsent data is discarded. The next call of [`RtpSender::on_timer`] sends BYE.
    pub fn stop(&mut self) {
        self.leaving = true;
        (self.silence, self.tick) = (Time::NEVER, Time::NEVER);
        self.filling = Filling::default();
        self.discard();
    }

    /// The target rate for an encoder, in bits a second including all headers; `None` if the controller sets none. For
    /// the leader of a bundle, its own share.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        self.kept.or_else(|| self.controller.target())
    }

    /// Whether the application has stopped.
    fn is_over(&self) -> bool {
        self.leaving || self.started && self.session.timer.is_none()
    }

    /// Whether everything supplied has been sent.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && !self.supply.is_left()
    }

    /// The number of entries kept for single writes: those that did not fill a packet, and frames.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.supply.shorts().max(self.frames.len())
    }

    /// When to call [`RtpSender::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let due = match &self.bundle {
            _ if !self.sends() || !self.is_left() => Time::NEVER,
            Some(bundle) if self.is_sound_next() => bundle.full,
            _ if !self.is_open() => Time::NEVER,
            _ => self.pacer.due().min(self.next_frame()),
        };
        let reports = self.session.timer.as_ref().map_or(Time::NEVER, ReportTimer::due);
        due.min(reports).min(self.silence).min(self.tick).min(self.filling.due())
    }

    /// Sends packets and reports that are due; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.leaving {
            self.leave(now, out);
        }
        if self.silence <= now {
            self.silent(now);
        }
        if self.session.timer.as_ref().is_some_and(|timer| timer.due() <= now) {
            self.report(now, out);
        }
        if self.tick <= now {
            self.tick(now);
        }
        self.run(now, out);
    }

    /// Schedules the controller's next tick.
    fn wind(&mut self, now: Time) {
        let tick = self.config.settings.tick;
        self.tick = if tick > Span::ZERO { now + tick } else { Time::NEVER };
    }

    #[cold]
    fn tick(&mut self, now: Time) {
        self.controller.on_feedback(&RtpEvent::Tick, &self.path(now));
        self.wind(now);
        self.repace(now);
        self.fetch_probes(now);
    }

    /// The pacing rate in bytes on the wire per second.
    fn pace(&self) -> f64 {
        self.frame_rate.unwrap_or_else(|| self.controller.rate())
    }

    /// Applies a changed rate to the pacer.
    fn repace(&mut self, now: Time) {
        // a frame with its own rate keeps it
        if self.frame_rate.is_none() {
            self.pacer.repace(now, self.paced, self.controller.rate());
        }
    }

    /// Whether the controller's window allows the next packet.
    #[inline]
    fn is_open(&self) -> bool {
        self.controller
            .window()
            .is_none_or(|window| self.sent.in_flight() + u64::from(self.config.wire()) <= window.bytes())
    }

    /// Sends packets that are due: by the pacer, or because they belong to the current burst.
    #[inline]
    fn run(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.sends() {
            return;
        }
        if !self.timed {
            self.pacer.idle(now);
        }
        self.fill(now, out);
        let burst = self.config.settings.burst;
        let mut left = MAX_PACKETS_PER_CALL;
        while self.sends() && self.is_due(now, burst) {
            if left == 0 {
                self.pacer.enough(now);
                break;
            }
            if !self.is_in_burst()
                && let Some(until) = out.full_until()
            {
                self.pacer.enough(until);
                if let Some(bundle) = &mut self.bundle {
                    bundle.full = until;
                }
                break;
            }
            left -= 1;
            if self.hands_over(None) {
                break;
            }
            let size = self.send(now, None, out);
            self.left(now, size, CATCH_UP, None);
        }
        self.used |= self.is_left();
        self.timed = self.is_left() && self.is_open();
        self.filled(now);
    }

    /// Whether it sends due packets itself: it has started, is not led by another, and has no packet handed to another
    /// stream.
    #[inline]
    fn sends(&self) -> bool {
        self.started && self.led.is_none() && !self.bundle.as_ref().is_some_and(|bundle| bundle.is_handing())
    }

    /// Charges a sent packet to the pacer, and to the current probe cluster, if any. Unused times older than `credit`
    /// expire.
    #[inline]
    fn left(&mut self, now: Time, size: u16, credit: Span, probe: Option<u32>) {
        self.paced = if self.config.settings.by_packet { self.packet } else { size.into() };
        let rate = self.pace();
        self.pacer.sent(now, credit, self.paced, rate);
        if probe.is_some() {
            self.filling.count(now, size);
        }
    }

    /// Whether the next packet may be sent now.
    #[inline]
    fn is_due(&mut self, now: Time, burst: Span) -> bool {
        self.turn_frame(now);
        self.is_left()
            && (self.is_sound_next() || self.pacer.due() <= now || self.is_in_burst() || self.pacer.due() < now + burst)
            && (self.is_open() || self.is_sound_next())
    }

    /// Whether any packet waits, new or for retransmission.
    #[inline]
    fn is_left(&self) -> bool {
        self.supply.is_left() || self.history.waits() || self.bundle.as_ref().is_some_and(|bundle| bundle.waits())
    }

    /// The next packet's number, over all packets.
    #[inline]
    fn next(&self) -> u32 {
        self.supply.next() + self.aside
    }

    /// Whether the next packet belongs to the current burst, and is not its first.
    #[inline]
    fn is_in_burst(&self) -> bool {
        self.burst_start < self.supply.next() && self.supply.next() < self.burst_end
    }

    /// Sends the next packet of the application; `probe`: the current probe cluster, if any.
    #[inline]
    fn send(&mut self, now: Time, probe: Option<u32>, out: &mut impl Transmit) -> u16 {
        if let Some(size) = self.history.waits().then(|| self.resend(now, probe, out)).flatten() {
            return size;
        }
        let (number, payload) = self.supply.take(self.config.segment);
        let size = payload.saturating_add(self.config.header);
        self.stats.bytes_acked += u64::from(payload);
        self.backlog = self.backlog.saturating_sub(size.into());
        let (captured, ends_frame, key) = self.frame(number, now);
        if self.config.nack {
            self.history.push(now, self.rtt, Kept::new(captured, payload, ends_frame, key));
        }
        let number = number + self.aside;
        let (size, payload) = (Size::from_bytes(size.into()), Size::from_bytes(payload.into()));
        let payload_type = if key { RtpData::KEY } else { RtpData::PAYLOAD_TYPE };
        let what = Outgoing { captured, payload_type, marker: ends_frame, original: None };
        self.emit(now, what, SentPacket { number, size, payload, ends_frame, probe }, out);
        size.bytes() as u16
    }

    fn path(&self, now: Time) -> PathView {
        PathView {
            now,
            srtt: self.rtt,
            rttvar: Span::ZERO,
            min_rtt: self.min_rtt,
            in_flight: self.next() - self.reported,
            acked: self.reported,
            next: self.next(),
            receive_window: u32::MAX,
            segment: u32::from(self.config.segment.max(1)),
        }
    }

    /// Counters up to now. Packets and bytes on the wire include reports. Sent data counts as acknowledged, and the
    /// window is the rate times the round-trip time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }

    /// Integrates the window up to `now`, so that [`RtpSender::stats`] is complete. It does nothing before the start.
    pub fn account(&mut self, now: Time) {
        if self.started || self.stats.packets_sent > 0 {
            let window = if self.started && !self.is_over() { self.window() } else { 0.0 };
            self.stats.advance(now, window);
        }
    }

    /// The number of packets that the allowed rate sends in a round-trip time.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.controller.rate() * self.rtt.as_secs_f64() / self.packet
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &RtpController {
        &self.controller
    }

    /// Reports the values to plot: the controller's gauges, `rtt` (the last report's), `target` (the encoder's target
    /// rate), and `window`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.seconds("rtt", known(self.rtt.as_secs_f64()));
        to.bits_per_second("target", self.target().map_or(f64::NAN, Rate::bps));
        to.packets("window", known(self.window()));
        if self.config.ecn_reports {
            to.number("ecn", self.session.ecn.gauge());
        }
    }
}
