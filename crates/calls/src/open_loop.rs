//! How a controller would have judged a call that another controller carried.
//!
//! The controller receives the packets' sending times and the receiver's feedback, as from RTP's machine (crate `flow`,
//! `rtp`). What it requests is recorded, but not carried out. The loop is therefore open: at the controller's own rate,
//! queues, losses and feedback would have differed. Values that a real sender knows and no log contains are zero: the
//! backlog of its pacer ([`Arrivals::backlog`]), and its queueing time.

use crate::feedback::{Flight, Reports, clock, wire};
use crate::log::{CallLog, Cluster, RtpPacket, Way};
use paceline_control::{
    Arrivals, Controller, Gauges, Interval, MediaController, PathView, Probe, RtpController, RtpEvent, RtpFeedback,
    RtpSession, SentPacket,
};
use paceline_packet::rtcp::Compound;
use paceline_packet::rtp::Ssrc;
use paceline_random::Stream;
use paceline_sim::Series;
use paceline_sim::gauges::Gauged;
use paceline_units::{Rate, Size, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// How long the first feedback may take (RFC 5348 section 4.2) before the receiver counts as silent.
const FIRST_ROUND_TRIP: Span = Span::from_secs(2);

/// Why a log cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// No packets were sent.
    #[error("it has no packets of RTP that left, so nothing of a sender can be replayed")]
    NoPackets,
    /// No feedback on packets' arrivals.
    #[error(
        "it has no feedback on the arrival of packets, transport-wide or of RFC 8888, that could be read; of {rtcp} \
         packets of RTCP {unread} could not be read, as where they are encrypted (SRTCP)"
    )]
    NoFeedback {
        /// All RTCP packets.
        rtcp: usize,
        /// RTCP packets that could not be read.
        unread: usize,
    },
    /// The controller needs more than feedback on arrivals.
    #[error("this controller {0}, which no log tells")]
    Scheme(&'static str),
}

/// Replays a log to a controller. Each row, at intervals of `every`, has the controller's gauges and, as for an RTP
/// sender, `rtt_s` and `target_bps`.
///
/// # Errors
/// [`ReplayError`].
pub fn replay(log: &CallLog, reports: &Reports, controller: RtpController, every: Span) -> Result<Series, ReplayError> {
    let settings = controller.settings();
    if settings.feedback != RtpFeedback::Arrivals {
        return Err(ReplayError::Scheme("goes by reports seconds apart and by bursts of its own"));
    }
    if settings.frames {
        return Err(ReplayError::Scheme("plans when frames leave"));
    }
    let sent: Vec<&RtpPacket> = log.rtp.iter().filter(|packet| packet.way == Way::Out).collect();
    if sent.is_empty() {
        return Err(ReplayError::NoPackets);
    }
    let feedback: Vec<(Time, &Compound)> = reports.feedback().map(|(at, _, _, compound)| (*at, compound)).collect();
    if feedback.is_empty() {
        return Err(ReplayError::NoFeedback { rtcp: log.rtcp.len(), unread: reports.unread });
    }
    let mut frames: BTreeMap<(Ssrc, u32), u64> = BTreeMap::new();
    for packet in sent.iter().filter(|packet| packet.payload > 0) {
        *frames.entry((packet.ssrc, packet.timestamp)).or_default() += wire(log, packet).bytes();
    }
    let packet = sent.iter().map(|packet| wire(log, packet)).max().unwrap_or_default();
    let span = feedback[feedback.len() - 1].0.since(feedback[0].0);
    let interval = if feedback.len() > 1 { span / (feedback.len() as u64 - 1) } else { settings.feedback_interval };
    let mut replay = Replay {
        flight: Flight::new(reports.is_transport_wide(), settings.reordering),
        clusters: log.clusters.iter().copied().collect(),
        controller,
        frames,
        interval: interval.max(Span::from_millis(1)),
        segment: packet,
        requested_probes: VecDeque::new(),
        probe: None,
        rtt: Span::ZERO,
        min_rtt: Span::ZERO,
        last_feedback: Time::ZERO,
        tick: Time::NEVER,
        silence: Time::NEVER,
        count: 0,
        covered: 0,
    };
    let mut gauged = Gauged::empty(Series::new("rtcp", Vec::new(), &["time_s"]));
    let (mut sent, mut feedback) = (sent.into_iter().peekable(), feedback.into_iter().peekable());
    let first = sent.peek().map_or(Time::ZERO, |packet| packet.at);
    replay.start(first);
    let mut row = first;
    loop {
        let (next, fed) = (sent.peek().map(|packet| packet.at), feedback.peek().map(|(at, _)| *at));
        // Packets sent in the same millisecond as feedback arrived may be covered by it.
        let is_sent = next.is_some_and(|at| fed.is_none_or(|fed| at <= fed));
        let Some(at) = (if is_sent { next } else { fed }) else { break };
        while row <= at {
            replay.advance(row);
            gauged.sample(row.as_secs_f64(), |to| replay.gauges(to));
            row += every;
        }
        replay.advance(at);
        if is_sent {
            sent.next().into_iter().for_each(|packet| replay.on_sent(log, packet));
        } else {
            feedback.next().into_iter().for_each(|(at, compound)| replay.on_feedback(at, compound));
        }
    }
    Ok(gauged.into_series())
}

struct Replay {
    controller: RtpController,
    flight: Flight,
    /// Bytes on the wire of the frames whose first packet has not been sent yet.
    frames: BTreeMap<(Ssrc, u32), u64>,
    interval: Span,
    segment: Size,
    /// Clusters of the log that have not begun, and clusters that the controller has requested.
    clusters: VecDeque<Cluster>,
    requested_probes: VecDeque<Probe>,
    /// The cluster being sent: what is left of it, and the id of the requested one that it stands for.
    probe: Option<(Cluster, Option<u32>)>,
    rtt: Span,
    min_rtt: Span,
    last_feedback: Time,
    tick: Time,
    silence: Time,
    count: u32,
    covered: u32,
}

impl Replay {
    fn path(&self, at: Time) -> PathView {
        PathView {
            now: clock(at),
            srtt: self.rtt,
            rttvar: Span::ZERO,
            min_rtt: self.min_rtt,
            in_flight: self.count - self.covered,
            acked: self.covered,
            next: self.count,
            receive_window: u32::MAX,
            segment: self.segment.bytes() as u32,
        }
    }

    fn report(&mut self, at: Time, event: &RtpEvent) {
        let path = self.path(at);
        self.controller.on_feedback(event, &path);
        self.requested_probes.extend(core::iter::from_fn(|| self.controller.next_probe()));
    }

    fn start(&mut self, at: Time) {
        self.last_feedback = at;
        self.controller.draw_from(Stream::new(1, "replay"));
        self.report(at, &RtpEvent::Started(RtpSession { packet: self.segment, interval: self.interval }));
        self.schedule_tick(at);
        self.schedule_silence(at);
    }

    fn schedule_tick(&mut self, at: Time) {
        let tick = self.controller.settings().tick;
        self.tick = if tick > Span::ZERO { at + tick } else { Time::NEVER };
    }

    /// Sets when the receiver will count as silent.
    fn schedule_silence(&mut self, at: Time) {
        let intervals = u64::from(self.controller.settings().silence);
        let answer = if self.rtt == Span::ZERO { FIRST_ROUND_TRIP } else { self.rtt };
        self.silence = if intervals > 0 { at + self.interval * intervals + answer } else { Time::NEVER };
    }

    /// Advances the time to `to`.
    fn advance(&mut self, to: Time) {
        loop {
            let next = self.tick.min(self.silence);
            if next > to {
                return;
            }
            if self.tick == next {
                self.report(next, &RtpEvent::Tick);
                self.schedule_tick(next);
            } else {
                if self.flight.oldest().is_some() {
                    self.report(next, &RtpEvent::Silence);
                }
                self.silence = next + self.interval.max(self.rtt);
            }
        }
    }

    /// The id of the controller's requested cluster for which the log's cluster of this packet stands, if any.
    fn cluster(&mut self, at: Time, bytes: u32) -> Option<u32> {
        if self.probe.is_none() && self.clusters.front().is_some_and(|cluster| cluster.at <= at) {
            let cluster = self.clusters.pop_front()?;
            self.probe = Some((cluster, self.requested_probes.pop_front().map(|probe| probe.id)));
        }
        let (cluster, id) = self.probe.as_mut()?;
        let id = *id;
        cluster.packets = cluster.packets.saturating_sub(1);
        cluster.bytes = cluster.bytes.saturating_sub(bytes);
        if cluster.packets == 0 && cluster.bytes == 0 {
            self.probe = None;
        }
        id
    }

    fn on_sent(&mut self, log: &CallLog, packet: &RtpPacket) {
        let at = packet.at;
        let tells = self.controller.settings().report_sent;
        if let Some(size) = self.frames.remove(&(packet.ssrc, packet.timestamp)).filter(|_| tells) {
            self.report(at, &RtpEvent::Frame { size: Size::from_bytes(size) });
        }
        let probe = self.cluster(at, packet.payload.saturating_add(packet.beside));
        let (size, payload) = (wire(log, packet), Size::from_bytes(u64::from(packet.payload)));
        let sent = SentPacket { number: self.count, size, payload, ends_frame: packet.marker, probe };
        if !self.flight.push(packet, sent) {
            return;
        }
        self.count += 1;
        if tells {
            let in_flight = Size::from_bytes(self.flight.in_flight());
            self.report(at, &RtpEvent::Sent { packet: sent, in_flight });
        }
    }

    fn on_feedback(&mut self, at: Time, compound: &Compound) {
        let Some(results) = self.flight.packet_results(at, compound) else { return };
        if let Some(rtt) = results.rtt {
            self.min_rtt = if self.rtt == Span::ZERO { rtt } else { self.min_rtt.min(rtt) };
            self.rtt = rtt.max(Span(1));
        }
        self.covered = self.count.min(self.covered + results.packets.len() as u32);
        let since = at.since(self.last_feedback);
        self.last_feedback = at;
        let arrivals = Arrivals {
            packets: results.packets,
            rtt: results.rtt,
            since,
            backlog: Size(0),
            waiting: Span::ZERO,
            in_flight: Size::from_bytes(self.flight.in_flight()),
            interval: Interval::Used,
        };
        self.report(at, &RtpEvent::Arrivals(arrivals));
        self.schedule_silence(at);
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.seconds("rtt", paceline_control::known(self.rtt.as_secs_f64()));
        to.bits_per_second("target", self.controller.target().map_or(f64::NAN, Rate::bps));
    }
}
