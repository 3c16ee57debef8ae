//! RTP's machines over a small path: what reports say, and what the sender makes of them.

use crate::segments::packet;
use paceline_control::{MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{LossField, MinInterval, RtpConfig, RtpReceiver, RtpSender, Spacing};
use paceline_packet::rtcp::{App, Compound, ReportBlock};
use paceline_packet::{Extra, Flags};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// What becomes of a segment, given its number among those of its direction: when it arrives after it has left the
/// bottleneck, in milliseconds; several times, or never.
type Fate = Box<dyn FnMut(u64, &Segment) -> Vec<u64>>;

/// Both ends and the path between them.
struct Path {
    sender: RtpSender,
    receiver: RtpReceiver,
    now: Time,
    /// On their way: by time and order of emission, and whether to the receiver.
    flying: BTreeMap<(Time, u64), (bool, Segment)>,
    emitted: [u64; 2],
    /// Bits a second of the way there.
    rate: f64,
    free: Time,
    there: Fate,
    back: Fate,
    /// Reports that have arrived at each end.
    receiver_reports: Vec<(Time, Compound)>,
    sender_reports: Vec<(Time, Compound)>,
}

const DELAY: u64 = 20;

fn flow(given: &[(&str, f64)], change: impl FnOnce(&mut RtpConfig)) -> Path {
    let scheme = registry::scheme("lda-plus").unwrap();
    let controller = RtpController::new(scheme, Profile::Rfc, given).unwrap();
    let mut config = RtpConfig { segment: 960, gap_jitter: 0.0, ..RtpConfig::new(Profile::Rfc, controller.settings()) };
    change(&mut config);
    Path {
        sender: RtpSender::new(&config, controller, Stream::new(1, "sender")),
        receiver: RtpReceiver::new(&config, Stream::new(1, "receiver")),
        now: Time::ZERO,
        flying: BTreeMap::new(),
        emitted: [0, 0],
        rate: 1e9,
        free: Time::ZERO,
        there: Box::new(|_, _| vec![DELAY]),
        back: Box::new(|_, _| vec![DELAY]),
        receiver_reports: Vec::new(),
        sender_reports: Vec::new(),
    }
}

/// A known bottleneck of 1 Mbit/s.
const KNOWN: (&str, f64) = ("bottleneck", 1e6);

impl Path {
    fn emit(&mut self, out: Vec<Segment>) {
        for segment in out {
            let there = !segment.flags.has(Flags::ACK);
            let n = self.emitted[usize::from(there)];
            self.emitted[usize::from(there)] += 1;
            let (fate, left) = if there {
                let service = Span::from_secs_f64(f64::from(segment.size) * 8.0 / self.rate);
                self.free = self.free.max(self.now) + service;
                (&mut self.there, self.free)
            } else {
                (&mut self.back, self.now)
            };
            for (copy, ms) in fate(n, &segment).into_iter().enumerate() {
                let key = (left + Span::from_millis(ms), n * 16 + copy as u64 * 2 + u64::from(there));
                self.flying.insert(key, (there, segment.clone()));
            }
        }
    }

    fn start(&mut self) {
        let mut out = Vec::new();
        self.sender.start(self.now, &mut out);
        self.sender.supply_endless(self.now, &mut out);
        self.emit(out);
    }

    fn run(&mut self, until: f64) {
        let until = Time::from_secs_f64(until);
        loop {
            let arrival = self.flying.keys().next().map_or(Time::NEVER, |key| key.0);
            let (sends, reports) = (self.sender.next_wake(), self.receiver.next_wake());
            let next = arrival.min(sends).min(reports);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next.max(self.now);
            let mut out = Vec::new();
            if sends <= self.now {
                self.sender.on_timer(self.now, &mut out);
            } else if reports <= self.now {
                self.receiver.on_timer(self.now, &mut out);
            } else if let Some((_, (there, segment))) = self.flying.pop_first() {
                let carried = packet(self.now, &segment);
                if let Some(Extra::Rtcp(report)) = &segment.extra {
                    let log = if there { &mut self.sender_reports } else { &mut self.receiver_reports };
                    log.push((self.now, (**report).clone()));
                }
                if there {
                    self.receiver.on_data(self.now, &carried, segment.extra.as_ref(), &mut out);
                } else {
                    self.sender.on_rtcp(self.now, &carried, segment.extra.as_ref(), &mut out);
                }
            }
            self.emit(out);
        }
    }

    fn blocks(&self) -> Vec<(Time, ReportBlock)> {
        self.receiver_reports.iter().filter_map(|(at, report)| Some((*at, *report.reports.first()?))).collect()
    }

    fn rate_bps(&self) -> f64 {
        self.sender.controller().rate() * 8.0
    }
}

fn is_data(segment: &Segment) -> bool {
    matches!(segment.extra, Some(Extra::Rtp(_)))
}

fn probe(app: &App) -> u16 {
    match app {
        App::Probe(probe) => probe.count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn section_6_4_1_what_reports_say_on_a_clean_path() {
    let mut path = flow(&[KNOWN], |_| {});
    path.start();
    path.run(60.0);
    let blocks = path.blocks();
    assert!((9..=15).contains(&blocks.len()), "{}", blocks.len());
    for (at, block) in &blocks[1..] {
        let rtt = block.round_trip(paceline_packet::Ntp::at(*at)).unwrap();
        // 40 ms and 8 us of service
        assert!(rtt.0.abs_diff(40_000_000) < 60_000, "{rtt:?}");
        assert_eq!((block.fraction_lost, block.cumulative_lost), (0, 0));
    }
    let stats = path.sender.stats();
    assert_eq!(stats.rtt_count as usize, blocks.iter().filter(|b| b.1.lsr.0 != 0).count());
    // the sender's own reports: every data packet so far, at a time that follows the clock
    let data = |until: Time| {
        let (at, report) = path.sender_reports.iter().rfind(|(at, _)| *at <= until).unwrap();
        (*at, report.sender.unwrap())
    };
    let (first, last) = (data(path.sender_reports[0].0), data(path.now));
    assert_eq!(last.1.octets, last.1.packets * 960);
    let seconds = (last.1.ntp.time().since(first.1.ntp.time())).as_secs_f64();
    let ticks = last.1.rtp.wrapping_sub(first.1.rtp);
    assert!((f64::from(ticks) - seconds * 90_000.0).abs() <= 1.0);
    // all names differ, and every report has one
    assert!(
        path.sender_reports[0].1.cname != path.receiver_reports[0].1.cname
            && path.sender_reports[0].1.ssrc != path.receiver_reports[0].1.ssrc
    );
    assert_eq!(path.receiver.stats().packets, stats.packets_sent - path.flying.len() as u64);
}

#[test]
fn appendix_a_3_a_quarter_lost_is_64_of_256() {
    let mut path = flow(&[KNOWN], |_| {});
    let mut n = 0;
    path.there = Box::new(move |_, segment| {
        n += u64::from(is_data(segment));
        if is_data(segment) && n % 4 == 0 { vec![] } else { vec![DELAY] }
    });
    path.start();
    path.run(300.0);
    let blocks = path.blocks();
    let mean = blocks.iter().map(|b| f64::from(b.1.fraction_lost)).sum::<f64>() / blocks.len() as f64;
    assert!((mean - 63.5).abs() < 2.0, "{mean}");
    let last = blocks.last().unwrap().1;
    let seen = f64::from(last.cumulative_lost) / (path.sender.stats().packets_sent as f64);
    assert!((seen - 0.25).abs() < 0.01, "{seen}");
    // sqrt(1/4) off at each report, down to what equation 1 gives a TCP: 11 packets/s
    assert!((4e4..1.2e5).contains(&path.rate_bps()), "{}", path.rate_bps());
}

/// Losses of 0.002 at the paper's Figure 11: with 8 bits the sender never hears of them.
#[test]
fn figure_11_eight_bits_hide_a_loss_of_two_in_a_thousand() {
    let rate = |loss: LossField| {
        let mut path = flow(&[("bottleneck", 4e6)], |config| {
            (config.segment, config.loss) = (60, loss);
            config.timing.spacing = Spacing::Fixed;
        });
        let mut n = 0;
        path.there = Box::new(move |_, segment| {
            n += u64::from(is_data(segment));
            if is_data(segment) && n % 500 == 0 { vec![] } else { vec![85] }
        });
        path.back = Box::new(|_, _| vec![85]);
        path.start();
        path.run(600.0);
        let last = path.blocks().last().unwrap().1;
        assert_eq!(last.fraction_lost, 0);
        let fine = path.receiver_reports.last().unwrap().1.apps.iter().find_map(|app| match app {
            App::Loss(loss) => Some(loss.fraction().0),
            _ => None,
        });
        (path.rate_bps(), fine)
    };
    let (coarse, none) = rate(LossField::Eight);
    assert_eq!((none, coarse.round()), (None, 4e6), "it climbs to the bottleneck's rate");
    let (fine, seen) = rate(LossField::ThirtyTwo);
    let seen = seen.unwrap();
    assert!((0.0015..0.0025).contains(&seen), "{seen}");
    // the paper's example: about 0.125 Mbit/s at 0.17 s. A report covers one loss or two in some 800 packets, for which
    // equation 1 gives 0.17 and 0.12
    assert!((0.115e6..0.18e6).contains(&fine), "{fine}");
}

#[test]
fn equation_3_the_receiver_finds_the_bottleneck() {
    for rate in [2e5, 1e6, 7e6] {
        let mut path = flow(&[], |_| {});
        path.rate = rate;
        path.start();
        path.run(40.0);
        let estimate = path.receiver_reports.iter().rev().find_map(|(_, report)| {
            report.apps.iter().find_map(|app| match app {
                App::Bottleneck(bottleneck) => Some(bottleneck.rate.bps()),
                _ => None,
            })
        });
        let estimate = estimate.unwrap_or_else(|| panic!("no estimate of {rate}"));
        assert!((estimate / rate - 1.0).abs() < 1e-3, "{estimate} {rate}");
        path.run(300.0);
        assert!((0.99..1.001).contains(&(path.rate_bps() / rate)), "{} {rate}", path.rate_bps());
    }
}

#[test]
fn bursts_keep_the_rate_and_need_something_to_send() {
    // 10 packets a second, none of it raised: without an estimate the rate stays
    let mut path = flow(&[], |_| {});
    path.there = Box::new(|_, _| vec![]);
    path.start();
    path.run(10.0);
    let sent = path.emitted[1];
    assert!((100..108).contains(&sent), "{sent}");
    // at a packet a report, in pairs: a silence of more than two intervals would look like an end
    let mut path =
        flow(&[("initial_rate", 0.2), ("max_rate", 1600.0)], |config| config.timing.spacing = Spacing::Fixed);
    path.start();
    path.run(100.0);
    let counts: Vec<u16> = path.sender_reports.iter().flat_map(|(_, report)| &report.apps).map(probe).collect();
    assert!(counts.len() > 15 && counts.iter().all(|count| *count == 2), "{counts:?}");
    assert_eq!(path.sender.stats().timeouts, 0);
    // an application that hands over a packet at a time is never probed with
    let mut path = flow(&[], |_| {});
    let mut out = Vec::new();
    path.sender.start(Time::ZERO, &mut out);
    for second in 0..100 {
        path.sender.supply(960, path.now, &mut out);
        path.emit(std::mem::take(&mut out));
        path.run(f64::from(second + 1));
    }
    assert!(path.sender_reports.len() > 10);
    assert!(path.sender_reports.iter().all(|(_, report)| report.apps.is_empty()));
    assert_eq!(path.receiver.stats().bytes, 960 * 100);
    assert!((path.rate_bps() - 8e4).abs() < 1.0, "what is not used does not grow: {}", path.rate_bps());
}

#[test]
fn numbers_of_16_bits_go_round_unnoticed() {
    let mut path = flow(&[("bottleneck", 4e7)], |config| config.timing.spacing = Spacing::Fixed);
    path.start();
    path.run(150.0);
    let sent = path.sender.stats().packets_sent;
    assert!(sent > 3 * 65_536, "{sent}");
    let last = path.blocks().last().unwrap().1;
    assert_eq!(last.cumulative_lost, 0);
    assert!(last.extended_highest >> 16 >= 2);
    assert_eq!(path.receiver.stats().duplicates, 0);
    assert!((path.rate_bps() / 4e7 - 1.0).abs() < 1e-6);
}

#[test]
fn disorder_and_copies_are_no_losses() {
    let mut path = flow(&[KNOWN], |_| {});
    // every tenth is late by 5 to 60 ms, every seventh comes twice
    path.there = Box::new(|n, _| match (n % 10, n % 7) {
        (0, _) => vec![DELAY + 5 + n % 56],
        (_, 0) => vec![DELAY, DELAY + 1],
        _ => vec![DELAY],
    });
    path.start();
    path.run(200.0);
    assert!((path.rate_bps() / 1e6 - 1.0).abs() < 1e-6, "{}", path.rate_bps());
    let (sent, got) = (path.sender.stats(), path.receiver.stats());
    assert!(got.duplicates > sent.packets_sent / 10, "{}", got.duplicates);
    assert!(got.bytes <= sent.bytes_acked && got.bytes + 20 * 960 > sent.bytes_acked);
    let last = path.blocks().last().unwrap().1;
    assert!(last.cumulative_lost < 0 && last.jitter > 0);
}

/// What comes before a source is valid (appendix A.1) is given to the application once, too.
#[test]
fn copies_of_the_first_packets_are_copies() {
    for copies in
        [vec![DELAY, DELAY + 1, DELAY + 2], vec![DELAY, DELAY + 150], vec![DELAY + 150, DELAY + 160, DELAY + 350]]
    {
        let mut path = flow(&[KNOWN], |_| {});
        let expected = copies.len() as u64 - 1;
        path.there = Box::new(move |n, _| if n == 0 { copies.clone() } else { vec![DELAY] });
        path.start();
        path.run(2.0);
        path.sender.stop();
        path.run(3.0);
        let (sent, got) = (path.sender.stats(), path.receiver.stats());
        assert_eq!((got.bytes, got.duplicates), (sent.bytes_acked, expected));
    }
}

#[test]
fn a_report_counts_once_and_an_old_one_not_at_all() {
    let run = |copies: Vec<u64>| {
        let mut path = flow(&[KNOWN], |config| config.timing.spacing = Spacing::Fixed);
        path.back = Box::new(move |_, _| copies.clone());
        path.start();
        path.run(38.0);
        (path.rate_bps(), path.receiver_reports.len())
    };
    let (once, reports) = run(vec![DELAY]);
    let (thrice, copies) = run(vec![DELAY, DELAY + 1, DELAY + 11_000]);
    assert!(copies > 2 * reports);
    assert_eq!(once, thrice);
}

#[test]
fn silence_halves_the_rate_and_the_next_report_brings_it_back() {
    let mut path = flow(&[KNOWN], |config| config.timing.spacing = Spacing::Fixed);
    path.start();
    path.run(100.0);
    assert!((path.rate_bps() / 1e6 - 1.0).abs() < 1e-6);
    path.back = Box::new(|_, _| vec![]);
    path.run(110.0); // the last report came at 95.04 s
    assert!((path.rate_bps() / 1e6 - 1.0).abs() < 1e-6, "less than three intervals");
    path.run(121.0);
    // at 110, 115 and 120 s
    assert!((path.rate_bps() / 1.25e5 - 1.0).abs() < 1e-6, "{}", path.rate_bps());
    assert_eq!(path.sender.stats().timeouts, 3);
    path.run(400.0);
    assert!((path.rate_bps() - 1600.0).abs() < 1e-6, "a packet a report: {}", path.rate_bps());
    path.back = Box::new(|_, _| vec![DELAY]);
    path.run(600.0);
    assert!((path.rate_bps() / 1e6 - 1.0).abs() < 1e-2, "{}", path.rate_bps());
}

#[test]
fn section_6_3_7_the_session_ends_with_a_bye() {
    let mut path = flow(&[KNOWN], |_| {});
    path.start();
    path.run(20.0);
    path.sender.stop();
    let mut out = Vec::new();
    path.sender.on_timer(path.now, &mut out);
    assert!(path.sender.next_wake() == Time::NEVER);
    path.emit(out);
    path.run(21.0);
    let (theirs, ours) = (&path.sender_reports.last().unwrap().1, &path.receiver_reports.last().unwrap().1);
    assert_eq!(theirs.bye.as_ref().unwrap().sources, [theirs.ssrc]);
    assert_eq!(ours.bye.as_ref().unwrap().sources, [ours.ssrc]);
    assert_eq!(ours.reports[0].cumulative_lost, 0);
    assert_eq!(path.receiver.next_wake(), Time::NEVER);
    let before = path.emitted;
    path.run(100.0);
    assert_eq!(path.emitted, before);
    // who has sent nothing says nothing
    let mut path = flow(&[KNOWN], |_| {});
    let mut out = Vec::new();
    path.sender.start(Time::ZERO, &mut out);
    path.sender.stop();
    path.sender.on_timer(Time(1), &mut out);
    assert!(out.is_empty());
    // who has reported, if only that there is nothing, does
    let mut path = flow(&[KNOWN], |_| {});
    let mut out = Vec::new();
    path.sender.start(Time::ZERO, &mut out);
    while out.is_empty() {
        path.sender.on_timer(path.sender.next_wake(), &mut out);
    }
    path.sender.stop();
    path.sender.on_timer(Time::from_secs_f64(9.0), &mut out);
    assert!(matches!(&out[..], [_, Segment { extra: Some(Extra::Rtcp(last)), .. }] if last.bye.is_some()));
}

#[test]
fn a_restart_is_another_session_that_the_receiver_follows() {
    let mut path = flow(&[KNOWN], |_| {});
    path.start();
    path.run(30.0);
    let (ssrc, bytes) = (path.sender_reports[0].1.ssrc, path.receiver.stats().bytes);
    path.sender.restart(path.now);
    path.start();
    path.run(200.0);
    let last = path.sender_reports.last().unwrap().1.ssrc;
    assert!(last != ssrc && path.blocks().last().unwrap().1.ssrc == last);
    assert!(path.receiver.stats().bytes > bytes + 100 * 960);
    assert!((path.rate_bps() / 1e6 - 1.0).abs() < 1e-6, "{}", path.rate_bps());
}

/// More packets are lost in a row than a source may miss: the receiver counts anew, and the sender understands it.
#[test]
fn reports_go_on_after_an_outage_that_the_numbers_do_not_survive() {
    let mut path = flow(&[("bottleneck", 1e7), ("silence", 0.0)], |config| config.timing.spacing = Spacing::Fixed);
    path.start();
    path.run(100.0);
    path.there = Box::new(|_, _| vec![]);
    path.run(120.0);
    path.there = Box::new(|_, _| vec![DELAY]);
    path.run(160.0);
    let blocks = path.blocks();
    let last = blocks.last().unwrap();
    assert!(last.0 > Time::from_secs_f64(154.0));
    assert_eq!((last.1.fraction_lost, last.1.cumulative_lost), (0, 0), "it has begun anew");
    assert_eq!(path.sender.stats().window_cuts, 0);
}

/// The echo of a report that many have followed gives a round-trip time, and who waits for it is not impatient.
#[test]
fn reports_may_be_more_frequent_than_round_trips() {
    let mut path = flow(&[KNOWN], |config| {
        config.timing.spacing = Spacing::Fixed;
        config.timing.min_interval = MinInterval::Fixed(Span::from_millis(1));
    });
    path.there = Box::new(|_, _| vec![200]);
    path.start();
    path.run(10.0);
    let sender = &path.sender;
    // at a packet a report, 220 of them are under way
    assert!((sender.window() - 220.0).abs() < 3.0, "{}", sender.window());
    assert_eq!(sender.stats().timeouts, 0);
}

/// A sender without data is no sender: it reports as a receiver does, and a receiver of whom nothing is heard leaves.
#[test]
fn sections_6_3_5_and_6_3_8_the_idle_and_the_gone() {
    let mut path = flow(&[KNOWN], |config| config.timing.spacing = Spacing::Fixed);
    let mut out = Vec::new();
    path.sender.start(Time::ZERO, &mut out);
    path.sender.supply(9600, Time::ZERO, &mut out);
    path.emit(out);
    path.run(31.0);
    let senders: Vec<bool> = path.sender_reports.iter().map(|(_, report)| report.sender.is_some()).collect();
    assert_eq!(senders, [true, true, false, false, false, false]);
    // only the first report of the receiver had anything to tell
    assert_eq!(path.receiver_reports.iter().filter(|(_, report)| !report.reports.is_empty()).count(), 1);
    path.there = Box::new(|_, _| vec![]);
    path.run(60.0);
    assert_eq!(path.receiver.next_wake(), Time::NEVER);
    assert!(path.receiver_reports.last().unwrap().0 < Time::from_secs_f64(56.0));
}
