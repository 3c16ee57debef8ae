//! A sender of plain RTP and `paceline receive`, with a bottleneck between them: 1 Mbit/s, 25 ms each way, 200 ms of queue.

use super::rtp::Sender;
use paceline_flow::rtp::{FeedbackFormat, ReceivedPacket, RtpListener};
use paceline_flow::{Segment, Transmit};
use paceline_live::endpoint::listen;
use paceline_live::session::{EcnBits, End, Input, Session, State};
use paceline_packet::rtcp::Compound;
use paceline_packet::{Extra, Flags, wire::rtcp};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

const RATE: f64 = 1e6;
const WAY: Span = Span::from_millis(25);
const QUEUE: Span = Span::from_millis(200);
/// Headers of IP and UDP.
const BELOW: usize = 28;

#[derive(Default)]
struct Reports(Vec<Compound>);

impl Transmit for Reports {
    fn transmit(&mut self, segment: Segment) {
        if let Some(Extra::Rtcp(report)) = segment.extra {
            self.0.push(*report);
        }
    }
}

/// What is there by `now` of what is on its way.
fn due<T>(way: &mut VecDeque<(Time, T)>, now: Time) -> Option<(Time, T)> {
    if way.front()?.0 <= now { way.pop_front() } else { None }
}

struct Call {
    sender: Sender,
    listener: RtpListener,
    /// When the bottleneck has sent what it has.
    free: Time,
    /// Data by number, and reports by theirs, that are on their way there; what is on its way back.
    data: VecDeque<(Time, usize)>,
    said: VecDeque<(Time, usize)>,
    back: VecDeque<(Time, Vec<u8>)>,
    /// How many of each have left.
    seen: [usize; 2],
    dropped: u64,
    received: u64,
    bytes: u64,
}

impl Call {
    fn new(settings: &[(&str, &str)], feedback: Option<FeedbackFormat>) -> Call {
        let listener = RtpListener::new(&listen::config(feedback), Stream::new(5, "receive"));
        let (data, said, back) = Default::default();
        let sender = Sender::new(settings);
        Call { sender, listener, free: Time::ZERO, data, said, back, seen: [0; 2], dropped: 0, received: 0, bytes: 0 }
    }

    /// A datagram that leaves now; when it is there, if the queue has room.
    fn crosses(&mut self, at: Time, size: usize) -> Option<Time> {
        let begins = at.max(self.free);
        if begins.since(at) > QUEUE {
            return None;
        }
        self.free = begins + Span::from_secs_f64((size + BELOW) as f64 * 8.0 / RATE);
        Some(self.free + WAY)
    }

    fn run(&mut self, until: f64) {
        let until = Time::from_secs_f64(until);
        while self.sender.now < until && !self.sender.is_over() {
            let now = self.sender.now + Span::from_millis(1);
            self.sender.until(now.as_secs_f64());
            self.sender.now = now;
            for number in self.seen[0]..self.sender.data.len() {
                match self.crosses(self.sender.left[number], self.sender.sizes[number]) {
                    Some(at) => self.data.push_back((at, number)),
                    None => self.dropped += 1,
                }
            }
            for number in self.seen[1]..self.sender.said.len() {
                self.said.push_back((self.sender.said[number].0 + WAY, number));
            }
            self.seen = [self.sender.data.len(), self.sender.said.len()];
            let mut reports = Reports::default();
            while let Some((at, number)) = due(&mut self.data, now) {
                let (size, payload) = (self.sender.sizes[number] + BELOW, self.sender.sizes[number] as u16 - 12);
                let packet =
                    ReceivedPacket { data: &self.sender.data[number], size: size as u16, payload, flags: Flags::NONE };
                self.listener.on_data(at, packet, &mut reports);
                (self.received, self.bytes) = (self.received + 1, self.bytes + size as u64);
            }
            while let Some((at, number)) = due(&mut self.said, now) {
                self.listener.on_rtcp(at, 100, &self.sender.said[number].1);
            }
            if self.listener.next_wake() <= now {
                self.listener.on_timer(now, &mut reports);
            }
            for report in reports.0 {
                let mut bytes = Vec::new();
                rtcp::encode(&report, &mut bytes).unwrap();
                self.back.push_back((now + WAY, bytes));
            }
            while let Some((_, bytes)) = due(&mut self.back, now) {
                self.sender.give(now, Input::Datagram(&bytes, EcnBits::NotEct));
            }
        }
    }

    /// What the sender has been told of losses and of round trips.
    fn known(&self) -> (i64, Option<f64>) {
        let Session::Sender(inner) = &self.sender.session else { panic!("it sends") };
        let rtt = inner.source().sender.stats().mean_rtt();
        (inner.reported().map_or(0, |reported| reported.lost), rtt.map(Span::as_secs_f64))
    }

    /// Bits a second that come from now to then.
    fn rate(&mut self, until: f64) -> f64 {
        let (began, before) = (self.sender.now.as_secs_f64(), self.bytes);
        self.run(until);
        (self.bytes - before) as f64 * 8.0 / (until - began)
    }
}

/// The sender knows no more of the receiver than RTP has: it finds the bottleneck by what it is told.
#[test]
fn controllers_of_media_find_the_bottleneck_by_the_feedback() {
    let cases =
        [("gcc", "twcc"), ("scream-libwebrtc", "twcc"), ("nada", "twcc"), ("nada", "rfc8888"), ("gcc", "rfc8888")];
    for (cc, kind) in cases {
        let app = ("app", "{ kind = \"encoder\", max_rate = \"3 Mbit/s\" }");
        let settings =
            [("cc", cc), app, ("rtp.feedback", kind), ("rtp.bandwidth", "3 Mbit/s"), ("params.max_rate", "3e6")];
        let format = if kind == "twcc" { FeedbackFormat::Transport } else { FeedbackFormat::Rfc8888 };
        let mut call = Call::new(&settings, Some(format));
        call.run(11.0);
        let rate = call.rate(18.0);
        assert!((0.5e6..RATE).contains(&rate), "{cc} {kind}: {rate}");
        let (_, rtt) = call.known();
        // 50 ms of the path, and a queue that is not full
        assert!(rtt.is_some_and(|rtt| (0.05..0.2).contains(&rtt)), "{cc} {kind}: {rtt:?}");
        let sent = call.sender.data.len() as f64;
        assert!((call.dropped as f64) < 0.05 * sent, "{cc} {kind}: {} of {sent}", call.dropped);
        // a twentieth at most goes back
        let (reports, bytes) = call.listener.reports_sent();
        assert!(reports > 50 && bytes as f64 <= 0.05 * call.bytes as f64, "{cc} {kind}: {bytes} for {}", call.bytes);
        // what is missed is what the bottleneck dropped, and what found no room while the receiver was not known
        let stream = &call.listener.streams()[0];
        let missed = call.dropped + call.sender.session.counts().over_limit;
        assert!(missed.abs_diff(stream.lost() as u64) <= 5, "{cc} {kind}: {} of {missed}", stream.lost());
        // its end is the user's, and it is told
        let now = call.sender.now;
        call.sender.give(now, Input::Stop);
        assert_eq!(call.sender.session.state(), State::Ended(End::Stopped), "{cc} {kind}");
        call.sender.replays();
    }
}

/// LDA+ is told of losses alone: R is twice what the path has, so that its rate climbs past it and falls again.
#[test]
fn losses_that_are_reported_keep_the_rate_at_the_bottlenecks() {
    let lda = [
        ("cc", "lda-plus"),
        ("params.bottleneck", "2e6"),
        ("params.max_rate", "2e6"),
        ("params.initial_rate", "5"),
        ("rtp.report_interval", "500 ms"),
    ];
    let mut call = Call::new(&lda, None);
    call.run(20.0);
    let (mut allowed, before) = (Vec::new(), call.received);
    for second in 21..55 {
        call.run(f64::from(second));
        allowed.push(call.sender.session.figure());
    }
    let rate = (call.received - before) as f64 * 8.0 * 1460.0 / 34.0;
    assert!((0.5e6..1.1e6).contains(&rate), "{rate}");
    assert!(allowed.iter().filter(|rate| **rate < RATE).count() > allowed.len() * 3 / 10, "{allowed:?}");
    assert!(allowed.windows(2).filter(|two| two[1] < 0.8 * two[0]).count() > 2, "{allowed:?}");
    let (reported, rtt) = call.known();
    assert!(reported > 5 && rtt.is_some_and(|rtt| rtt > 0.0499), "{reported} {rtt:?}");
    // a report does not know yet what was dropped behind it
    let lost = call.listener.streams()[0].lost();
    let missed = (call.dropped + call.sender.session.counts().over_limit) as i64;
    assert!(
        reported <= lost && lost <= missed && missed <= reported + 60,
        "{reported} told, {lost} lost, {missed} missed"
    );
}
