//! Properties of RTP's machines that hold whatever the network or a hostile peer does.

use crate::segments::packet;
use paceline_control::{MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{LossField, RtpConfig, RtpReceiver, RtpSender};
use paceline_packet::rtcp::{App, Bottleneck, Bye, Compound, Loss, Probe, ReportBlock, SenderInfo};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{Extra, Flags, Ntp, NtpMiddle, NtpSpan};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
use proptest::prelude::*;

/// A report as anybody may send it. What is `None` is as an honest receiver would have it.
#[derive(Clone, Debug)]
struct Report {
    highest: Option<u32>,
    fraction: u8,
    lsr: Option<u32>,
    dlsr: u32,
    fine: Option<u32>,
    bottleneck: Option<u64>,
    bye: bool,
    other_ssrc: bool,
}

fn report() -> impl Strategy<Value = Report> {
    let rare = |p: u32| prop_oneof![p => Just(false), 1 => Just(true)];
    (
        prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
        prop_oneof![2 => Just(0u8), 1 => any::<u8>()],
        prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
        prop_oneof![4 => 0..100_000u32, 1 => any::<u32>()],
        proptest::option::of(any::<u32>()),
        proptest::option::of(prop_oneof![1..100_000_000u64, any::<u64>()]),
        rare(20),
        rare(20),
    )
        .prop_map(|(highest, fraction, lsr, dlsr, fine, bottleneck, bye, other_ssrc)| Report {
            highest,
            fraction,
            lsr,
            dlsr,
            fine,
            bottleneck,
            bye,
            other_ssrc,
        })
}

#[derive(Clone, Debug)]
enum Event {
    Report(Report),
    Wait(u64),
    Supply(u64),
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => report().prop_map(Event::Report),
        4 => (0..20_000_000u64).prop_map(Event::Wait),
        2 => (0..100_000u64).prop_map(Event::Supply),
        1 => Just(Event::Restart),
    ]
}

/// A sender, and what it last said of itself.
struct Driven {
    sender: RtpSender,
    out: Vec<Segment>,
    now: Time,
    newest: Option<RtpData>,
    info: Option<SenderInfo>,
    sent: u64,
}

impl Driven {
    fn note(&mut self) {
        for segment in self.out.drain(..) {
            assert!(!segment.flags.has(Flags::ACK));
            match segment.extra {
                Some(Extra::Rtp(data)) => {
                    self.newest = Some(data);
                    self.sent += 1;
                }
                Some(Extra::Rtcp(report)) => {
                    assert_eq!(usize::from(segment.size), report.wire_len() + paceline_packet::UDP_IPV4);
                    self.info = report.sender.or(self.info);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..3000 {
            let wake = self.sender.next_wake();
            if wake > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(wake);
            self.sender.on_timer(self.now, &mut self.out);
            assert!(self.sender.next_wake() > self.now, "awake at {:?} for nothing", self.now);
            self.note();
        }
    }

    fn report(&mut self, report: &Report) {
        let Some(newest) = self.newest else { return };
        let ssrc = if report.other_ssrc { Ssrc(newest.ssrc.0 ^ 1) } else { newest.ssrc };
        let honest = self.info.map_or(NtpMiddle::NONE, |info| info.ntp.middle());
        let block = ReportBlock {
            ssrc,
            fraction_lost: report.fraction,
            cumulative_lost: 0,
            extended_highest: report.highest.unwrap_or_else(|| newest.sequence.into()),
            jitter: 0,
            lsr: report.lsr.map_or(honest, NtpMiddle),
            dlsr: NtpSpan(report.dlsr),
        };
        let mut apps = Vec::new();
        apps.extend(report.fine.map(|fraction| App::Loss(Loss { ssrc, fraction })));
        apps.extend(report.bottleneck.map(|bps| App::Bottleneck(Bottleneck { ssrc, rate: Rate(bps) })));
        let compound = Compound {
            ssrc: Ssrc(7),
            sender: None,
            reports: vec![block],
            cname: "x".into(),
            apps,
            arrivals: None,
            transport: Vec::new(),
            ecn: vec![],
            ecn_summary: vec![],
            repair: Vec::new(),
            reduced: false,
            bye: report.bye.then(|| Bye { sources: vec![Ssrc(7)], reason: None }),
        };
        let segment = Segment {
            seq: 0,
            stamp: paceline_packet::Stamp(0),
            size: 100,
            flags: Flags::ACK,
            extra: Some(Extra::Rtcp(Box::new(compound))),
        };
        let carried = packet(self.now, &segment);
        self.sender.on_rtcp(self.now, &carried, segment.extra.as_ref(), &mut self.out);
        self.note();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No sequence of reports panics, takes the rate out of its bounds, or stalls a sender that has data: a packet leaves
    /// each report interval.
    #[test]
    fn a_greedy_sender_keeps_within_its_bounds_and_never_stalls(
        events in proptest::collection::vec(event(), 1..60), max_rate in 1e5..1e7f64,
    ) {
        let scheme = registry::scheme("lda-plus").unwrap();
        let controller = RtpController::new(scheme, Profile::Rfc, &[("max_rate", max_rate)]).unwrap();
        let config = RtpConfig::new(Profile::Rfc, controller.settings());
        let sender = RtpSender::new(&config, controller, Stream::new(1, "s"));
        let mut d = Driven { sender, out: Vec::new(), now: Time::ZERO, newest: None, info: None, sent: 0 };
        d.sender.supply_endless(Time::ZERO, &mut d.out);
        d.sender.start(Time::ZERO, &mut d.out);
        d.note();
        for event in &events {
            match event {
                Event::Report(report) => d.report(report),
                Event::Wait(micros) => d.wait(Span::from_micros(*micros)),
                Event::Supply(bytes) => {
                    d.sender.supply(*bytes, d.now, &mut d.out);
                    d.note();
                }
                Event::Restart => {
                    d.sender.restart(d.now);
                    d.sender.supply_endless(d.now, &mut d.out);
                    d.sender.start(d.now, &mut d.out);
                    d.note();
                }
            }
            let rate = d.sender.controller().rate();
            prop_assert!(rate >= 299.999 && rate <= max_rate / 8.0 * 1.000_001, "{rate} after {event:?}");
        }
        let before = d.sent;
        d.wait(Span::from_secs(30));
        prop_assert!(d.sent > before);
    }
}

/// Packets as anybody may send them.
#[derive(Clone, Debug)]
enum Arrival {
    Data { seq: u16, timestamp: u32, ssrc: u32 },
    Report { ssrc: u32, ntp: Option<u64>, probe: Option<(u16, u16)>, bye: bool },
}

fn arrival() -> impl Strategy<Value = (u64, Arrival)> {
    let ssrc = || prop_oneof![10 => Just(1u32), 1 => Just(2u32), 1 => any::<u32>()];
    let data = (prop_oneof![8 => (0..400u16).boxed(), 1 => any::<u16>().boxed()], any::<u32>(), ssrc())
        .prop_map(|(seq, timestamp, ssrc)| Arrival::Data { seq, timestamp, ssrc });
    let probe = proptest::option::of((prop_oneof![0..400u16, any::<u16>()], any::<u16>()));
    let report = (ssrc(), proptest::option::of(any::<u64>()), probe, prop_oneof![8 => Just(false), 1 => Just(true)])
        .prop_map(|(ssrc, ntp, probe, bye)| Arrival::Report { ssrc, ntp, probe, bye });
    (prop_oneof![8 => 0..200_000u64, 1 => 0..100_000_000u64], prop_oneof![6 => data, 1 => report])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No packet panics the receiver; it is never awake for nothing, and tells no more losses than there can be.
    #[test]
    fn the_receiver_stands_anything(
        arrivals in proptest::collection::vec(arrival(), 1..300), fine in any::<bool>(),
    ) {
        let scheme = registry::scheme("lda-plus").unwrap();
        let controller = RtpController::new(scheme, Profile::Rfc, &[]).unwrap();
        let loss = if fine { LossField::ThirtyTwo } else { LossField::Eight };
        let config = RtpConfig { loss, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
        let mut receiver = RtpReceiver::new(&config, Stream::new(1, "r"));
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        for (after_us, arrival) in &arrivals {
            let until = now + Span::from_micros(*after_us);
            while receiver.next_wake() <= until {
                now = now.max(receiver.next_wake());
                receiver.on_timer(now, &mut out);
                prop_assert!(receiver.next_wake() > now);
            }
            now = until;
            let extra = match arrival {
                Arrival::Data { seq, timestamp, ssrc } => Extra::Rtp(RtpData {
                    ssrc: Ssrc(*ssrc),
                    timestamp: *timestamp,
                    sequence: *seq,
                    payload_type: 96,
                    marker: false,
                    transport: None,
                    original: None,
                }),
                Arrival::Report { ssrc, ntp, probe, bye } => Extra::Rtcp(Box::new(Compound {
                    ssrc: Ssrc(*ssrc),
                    sender: ntp.map(|ntp| SenderInfo { ntp: Ntp(ntp), rtp: 0, packets: 0, octets: 0 }),
                    reports: Vec::new(),
                    cname: "x".into(),
                    apps: probe.map(|(first, count)| App::Probe(Probe { first, count })).into_iter().collect(),
                    arrivals: None,
                    transport: Vec::new(),
                    ecn: vec![],
                    ecn_summary: vec![],
                    repair: Vec::new(),
                    reduced: false,
                    bye: bye.then(|| Bye { sources: vec![Ssrc(*ssrc)], reason: None }),
                })),
            };
            let segment =
                Segment { seq: 0, stamp: paceline_packet::Stamp(0), size: 1000, flags: Flags::NONE, extra: Some(extra) };
            receiver.on_data(now, &packet(now, &segment), segment.extra.as_ref(), &mut out);
            prop_assert!(receiver.next_wake() > now);
        }
        let stats = receiver.stats();
        prop_assert!(stats.bytes <= 960 * stats.packets);
        for segment in &out {
            let Some(Extra::Rtcp(report)) = &segment.extra else { panic!("no report") };
            prop_assert!(segment.flags.has(Flags::ACK) && report.reports.len() <= 1 && report.sender.is_none());
            prop_assert_eq!(report.ssrc, receiver.ssrc());
            for app in &report.apps {
                if let App::Loss(loss) = app {
                    prop_assert_eq!((loss.fraction >> 24) as u8, report.reports[0].fraction_lost);
                }
            }
        }
    }
}
