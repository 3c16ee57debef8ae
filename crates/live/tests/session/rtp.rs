//! A sender whose other end is a receiver of plain RTP: what counts as agreement, and what ends the flow for want of it.

use super::pair::spec;
use paceline_live::session::log::LogWriter;
use paceline_live::session::{
    CAUTIOUS_BPS, EcnBits, End, Input, Outbox, RtpPeer, Session, SessionSpec, Side, State, replay,
};
use paceline_packet::rtcp::{Bye, Compound, ReportBlock, SenderInfo};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::wire::tfrc::{Accept, Close, ConnectionId, Datagram, Message, Nonce, RateLimit, Reason};
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{NtpMiddle, NtpSpan};
use paceline_units::{Span, Time};

/// What the receiver of the tests says its name is.
const RECEIVER: Ssrc = Ssrc(0xfeed);
const LDA: [(&str, &str); 5] = [
    ("cc", "lda-plus"),
    ("params.bottleneck", "2e6"),
    ("params.max_rate", "2e6"),
    ("params.initial_rate", "5"),
    ("rtp.report_interval", "1 s"),
];

fn to_rtp(settings: &[(&str, &str)], payload_type: u8) -> SessionSpec {
    SessionSpec { rtp: Some(RtpPeer { payload_type, ..RtpPeer::default() }), ..spec(settings, 60, Side::Sender) }
}

/// A sender, and what it has sent.
pub(super) struct Sender {
    pub(super) session: Session,
    log: LogWriter<Vec<u8>>,
    pub(super) now: Time,
    out: Outbox,
    pub(super) bytes: usize,
    pub(super) data: Vec<RtpData>,
    /// When each of them left.
    pub(super) left: Vec<Time>,
    /// How long it was, without IP and UDP.
    pub(super) sizes: Vec<usize>,
    /// What it has said of itself, and when.
    pub(super) said: Vec<(Time, Compound)>,
    reports: Vec<(Time, SenderInfo)>,
    byes: usize,
    others: usize,
    /// When it was over.
    pub(super) ended: f64,
}

impl Sender {
    pub(super) fn new(settings: &[(&str, &str)]) -> Sender {
        let spec = to_rtp(settings, 97);
        let session = Session::new(&spec).unwrap();
        let log = LogWriter::new(Vec::new(), &spec).unwrap();
        let mut sender = Sender {
            session,
            log,
            now: Time::ZERO,
            out: Outbox::default(),
            bytes: 0,
            data: Vec::new(),
            left: Vec::new(),
            sizes: Vec::new(),
            said: Vec::new(),
            reports: Vec::new(),
            byes: 0,
            others: 0,
            ended: 0.0,
        };
        sender.give(Time::from_secs_f64(1.0), Input::Start);
        sender
    }

    pub(super) fn give(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        self.out.clear();
        let over = self.is_over();
        self.session.input(now, input, &mut self.out);
        self.log.write(now, input, &self.out, &self.session).unwrap();
        if self.is_over() && !over {
            self.ended = now.as_secs_f64();
        }
        for datagram in self.out.iter() {
            self.bytes += datagram.len();
            if let Ok(compound) = rtcp::decode(datagram.header) {
                self.byes += usize::from(compound.bye.is_some());
                self.reports.extend(compound.sender.map(|info| (now, info)));
                assert_eq!(compound.apps, [], "a stranger is told nothing of ours");
                self.said.push((now, compound));
            } else if let Ok((data, _)) = rtp::decode(datagram.header) {
                self.data.push(data);
                self.left.push(now);
                self.sizes.push(datagram.len());
            } else {
                self.others += 1;
            }
        }
    }

    /// Lets its timers run.
    pub(super) fn until(&mut self, until: f64) {
        let until = Time::from_secs_f64(until);
        while self.session.next_wake() <= until && !self.is_over() {
            let at = self.session.next_wake().max(self.now);
            self.give(at, Input::Timer);
        }
        self.now = until;
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.session.state(), State::Ended(_))
    }

    /// A report on the newest packet that has left, `lost` in all.
    fn block(&self, fraction: u8, lost: i32) -> ReportBlock {
        let (lsr, dlsr) = match self.reports.last() {
            Some((sent, info)) => (info.ntp.middle(), NtpSpan::nearest(self.now.since(*sent))),
            None => (NtpMiddle::NONE, NtpSpan(0)),
        };
        let newest = self.data.last().unwrap();
        ReportBlock {
            ssrc: newest.ssrc,
            fraction_lost: fraction,
            cumulative_lost: lost,
            extended_highest: 7 << 16 | u32::from(newest.sequence),
            jitter: 90,
            lsr,
            dlsr,
        }
    }

    pub(super) fn receive_rtcp(&mut self, compound: &Compound) {
        let mut bytes = Vec::new();
        rtcp::encode(compound, &mut bytes).unwrap();
        let now = self.now + Span::from_millis(20);
        self.give(now, Input::Datagram(&bytes, EcnBits::NotEct));
    }

    fn report(&mut self, block: ReportBlock) {
        self.receive_rtcp(&Compound { reports: vec![block], ..empty() });
    }

    /// What it was logged to do, it does again.
    pub(super) fn replays(self) {
        let replayed = replay(&self.log.into_inner()).unwrap();
        assert_eq!(replayed.unread, 0);
    }
}

pub(super) fn empty() -> Compound {
    Compound {
        ssrc: RECEIVER,
        sender: None,
        reports: Vec::new(),
        cname: "receiver".into(),
        apps: Vec::new(),
        arrivals: None,
        transport: Vec::new(),
        ecn: vec![],
        ecn_summary: vec![],
        repair: vec![],
        bye: None,
        reduced: false,
    }
}

#[test]
fn without_a_report_little_is_sent_and_not_for_long() {
    // a sender that would begin with 120 packets a second is held to a telephone call all the same
    for rate in ["5", "120"] {
        let settings = [LDA[0], LDA[1], LDA[2], ("params.initial_rate", rate)];
        let mut sender = Sender::new(&settings);
        sender.until(15.9);
        assert_eq!(sender.session.state(), State::Running);
        assert!(sender.data.len() > 20 && sender.data.iter().all(|data| data.payload_type == 97));
        sender.until(100.0);
        assert_eq!(sender.session.state(), State::Ended(End::NoReports));
        assert!((sender.ended - 16.0).abs() < 0.01, "{}", sender.ended);
        // a burst of 200 ms waits at most
        let max = f64::from(CAUTIOUS_BPS) / 8.0 * 15.2;
        assert!((sender.bytes as f64) < max && sender.bytes as f64 > 0.3 * max, "{} of {max}", sender.bytes);
        assert_eq!(sender.others, 0);
        sender.replays();
    }
}

#[test]
fn reports_let_it_grow_to_the_rate_that_is_allowed_and_end_well() {
    let mut sender = Sender::new(&LDA);
    for second in 1..60 {
        sender.until(1.0 + f64::from(second));
        let block = sender.block(0, 0);
        sender.report(block);
    }
    assert_eq!(sender.session.state(), State::Running);
    let figure = sender.session.figure();
    assert!((figure - 2e6).abs() < 1.0, "{figure}");
    let Session::Sender(inner) = &sender.session else { panic!() };
    let reported = inner.reported().unwrap();
    assert_eq!((reported.reports, reported.lost, reported.jitter_s), (59, 0, Some(0.001)));
    // each report tells of all that had left up to it
    let left = sender.data.len() as u64 - reported.expected;
    assert!(reported.expected > 5000 && left < 10, "{reported:?} {left}");
    assert!(inner.source().sender.stats().rtt_min().is_some_and(|rtt| (0.015..0.025).contains(&rtt.as_secs_f64())));
    // the flow is over after 60 s of its own; no message of ours follows RTCP's BYE
    sender.until(100.0);
    assert_eq!(sender.session.state(), State::Ended(End::Done));
    assert!((61.0..62.0).contains(&sender.ended), "{}", sender.ended);
    assert_eq!((sender.byes, sender.others), (1, 0));
    assert_eq!(sender.session.counts().over_limit, 0);
    sender.replays();
}

/// RFC 3550's least interval, as GStreamer's rtpbin keeps it, is enough to grow by.
#[test]
fn a_report_each_five_seconds_lets_it_grow() {
    let mut sender = Sender::new(&[LDA[0], LDA[1], LDA[2], LDA[3], ("params.initial_increase", "200000")]);
    let mut figures = Vec::new();
    for fives in 1..6 {
        sender.until(1.0 + 5.0 * f64::from(fives));
        let block = sender.block(0, 0);
        sender.report(block);
        figures.push(sender.session.figure());
    }
    assert_eq!(sender.session.state(), State::Running);
    assert!(figures.windows(2).all(|two| two[1] > two[0]) && figures[4] > 2.0 * figures[0], "{figures:?}");
}

/// That nobody has the port is said by the network, before the first report as after it.
#[test]
fn a_port_that_is_closed_ends_it_at_once() {
    for mut sender in [Sender::new(&LDA), agreed()] {
        let now = sender.now + Span::from_millis(1);
        sender.give(now, Input::Unreachable);
        assert_eq!(sender.session.state(), State::Ended(End::Unreachable));
        assert!(End::Unreachable.to_string().contains("port unreachable"));
        sender.replays();
    }
}

#[test]
fn losses_that_are_reported_slow_it_down() {
    let mut sender = Sender::new(&LDA);
    for second in 1..40 {
        sender.until(1.0 + f64::from(second));
        let block = sender.block(0, 0);
        sender.report(block);
    }
    let before = sender.session.figure();
    sender.until(41.0);
    let block = sender.block(64, 30);
    sender.report(block);
    // a quarter lost: half of the rate, by equation 11
    assert!((sender.session.figure() / before - 0.5).abs() < 0.01, "{} of {before}", sender.session.figure());
    let Session::Sender(inner) = &sender.session else { panic!() };
    assert_eq!(inner.reported().unwrap().lost, 30);
}

/// A sender that has had its first report, at 3 s.
fn agreed() -> Sender {
    let mut sender = Sender::new(&LDA);
    sender.until(3.0);
    let block = sender.block(0, 0);
    sender.report(block);
    sender
}

#[test]
fn what_says_nothing_new_of_the_stream_is_no_agreement() {
    type Say = fn(&mut Sender, &ReportBlock);
    let nothings: [(&str, Say, End); 7] = [
        ("nothing", |_, _| {}, End::ReportsCeased),
        ("no block", |sender, _| sender.receive_rtcp(&empty()), End::ReportsCeased),
        (
            "another stream",
            |sender, block| sender.report(ReportBlock { ssrc: Ssrc(block.ssrc.0 ^ 1), ..*block }),
            End::ReportsCeased,
        ),
        ("the same again", |sender, block| sender.report(*block), End::NothingArrives),
        (
            "what was never sent",
            |sender, block| sender.report(ReportBlock { extended_highest: block.extended_highest + 30_000, ..*block }),
            End::NothingArrives,
        ),
        (
            "our own words",
            |sender, _| {
                let block = sender.block(0, 0);
                sender.receive_rtcp(&Compound { ssrc: block.ssrc, reports: vec![block], ..empty() });
            },
            End::ReportsCeased,
        ),
        (
            "an accept of ours",
            |sender, _| {
                let mut bytes = Vec::new();
                let message = Message::Accept(Accept { nonce: Nonce(0), limit: RateLimit::None });
                Datagram { connection: ConnectionId(sender_id()), message }.encode(&mut bytes);
                let now = sender.now;
                sender.give(now, Input::Datagram(&bytes, EcnBits::NotEct));
            },
            End::ReportsCeased,
        ),
    ];
    for (what, say, end) in nothings {
        let mut sender = agreed();
        let old = sender.block(0, 0);
        for second in 4..100 {
            sender.until(f64::from(second));
            if !sender.is_over() {
                say(&mut sender, &old);
            }
        }
        assert_eq!(sender.session.state(), State::Ended(end), "{what}");
        assert!((17.9..18.2).contains(&sender.ended), "{what}: {}", sender.ended);
        sender.replays();
    }
}

fn sender_id() -> u32 {
    to_rtp(&LDA, 97).connection
}

#[test]
fn a_cut_of_ten_seconds_is_survived() {
    let mut sender = agreed();
    sender.until(13.0);
    let block = sender.block(0, 0);
    sender.report(block);
    sender.until(27.0);
    assert_eq!(sender.session.state(), State::Running);
}

#[test]
fn the_receiver_may_leave_and_nobody_else_for_it() {
    let bye = |ssrc: Ssrc, of: Ssrc| Compound { ssrc, bye: Some(Bye { sources: vec![of], reason: None }), ..empty() };
    let mut sender = agreed();
    sender.receive_rtcp(&bye(Ssrc(1), Ssrc(1)));
    sender.receive_rtcp(&bye(Ssrc(1), RECEIVER));
    sender.receive_rtcp(&bye(RECEIVER, Ssrc(1)));
    assert_eq!(sender.session.state(), State::Running);
    sender.receive_rtcp(&bye(RECEIVER, RECEIVER));
    assert_eq!(sender.session.state(), State::Ended(End::Left));
    // before it has reported on the stream it is nobody
    let mut sender = Sender::new(&LDA);
    sender.until(3.0);
    sender.receive_rtcp(&bye(RECEIVER, RECEIVER));
    assert_eq!(sender.session.state(), State::Running);
}

/// RFC 3550 section 6.1 requires a CNAME, but a receiver that leaves it out is heard, and the reports are counted.
#[test]
fn reports_without_a_cname_count() {
    let mut sender = Sender::new(&LDA);
    for second in 2..20 {
        sender.until(f64::from(second));
        let mut bytes = Vec::new();
        rtcp::encode(&Compound { reports: vec![sender.block(0, 0)], ..empty() }, &mut bytes).unwrap();
        bytes.truncate(8 + 24); // the report alone
        let now = sender.now + Span::from_millis(20);
        sender.give(now, Input::Datagram(&bytes, EcnBits::NotEct));
    }
    assert_eq!(sender.session.state(), State::Running);
    let Session::Sender(session) = &sender.session else { unreachable!() };
    let reported = session.reported().unwrap();
    assert_eq!((reported.reports, reported.without_cname), (18, 18));
    assert_eq!(session.counts().garbage, 0);
}

#[test]
fn messages_of_our_agreement_mean_nothing() {
    let mut sender = agreed();
    let spec = to_rtp(&LDA, 97);
    let nonce = Nonce(spec.nonce);
    for message in [
        Message::Close(Close { nonce, reason: Reason::DONE }),
        Message::Accept(Accept { nonce, limit: RateLimit::BytesPerSecond(1) }),
    ] {
        let mut bytes = Vec::new();
        Datagram { connection: ConnectionId(spec.connection), message }.encode(&mut bytes);
        let now = sender.now;
        sender.give(now, Input::Datagram(&bytes, EcnBits::NotEct));
    }
    assert_eq!(sender.session.state(), State::Running);
    assert_eq!(sender.session.counts().garbage, 2);
}

#[test]
fn an_end_that_the_user_asks_for_says_bye() {
    let mut sender = agreed();
    let now = sender.now;
    sender.give(now, Input::Stop);
    assert_eq!(sender.session.state(), State::Ended(End::Stopped));
    assert_eq!((sender.byes, sender.others), (1, 0));
}

#[test]
fn what_cannot_be_sent_to_a_receiver_of_rtp_is_said() {
    let said = |spec: &SessionSpec| Session::new(spec).unwrap_err().to_string();
    assert!(said(&to_rtp(&[("cc", "tfrc")], 96)).contains("use lda-plus"));
    let far = SessionSpec { rtp: Some(RtpPeer { transport_id: 15, ..RtpPeer::default() }), ..to_rtp(&LDA, 96) };
    assert!(said(&far).contains("1 to 14"));
    for payload_type in [64, 72, 95, 128] {
        assert!(said(&to_rtp(&LDA, payload_type)).contains("RFC 5761"), "{payload_type}");
    }
    assert!(said(&SessionSpec { side: Side::Receiver, ..to_rtp(&LDA, 96) }).contains("only receives"));
}
