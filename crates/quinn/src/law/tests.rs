//! quinn's calls, in its order, compared with the pseudocode of RFC 9002, appendix B.

use super::*;
use paceline_control::{Profile, TcpController, registry};
use paceline_random::Stream;
use proptest::prelude::*;

const DATAGRAM: u64 = 1452;
const RTT: Span = Span::from_millis(50);

impl Law {
    fn sends(&mut self, now: Time, bytes: u64) {
        self.take(now, Call::Sent { bytes, last_packet_number: 0 });
    }

    /// Acknowledges these packets of one datagram each.
    fn acks(&mut self, now: Time, left: &[Time], in_flight: u64, smoothed: Span) {
        let packets: Vec<_> = left.iter().map(|sent| (*sent, DATAGRAM)).collect();
        self.take(now, Call::Acked { packets: &packets, in_flight, smoothed, limited: true });
    }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn law(cc: &str) -> Law {
    let controller = TcpController::new(registry::scheme(cc).unwrap(), Profile::Rfc, &[]).unwrap();
    let initial = Congestion::initial_window(DATAGRAM as u16);
    let congestion = Congestion::new(controller, Profile::Rfc, DATAGRAM as u16, initial, Stream::new(1, "test"));
    Law::new(congestion, DATAGRAM as u16)
}

/// Appendix B of RFC 9002, in bytes.
struct Pseudocode {
    congestion_window: f64,
    ssthresh: f64,
    recovery_start: Option<Time>,
}

impl Pseudocode {
    fn in_recovery(&self, sent: Time) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }
    fn on_packet_acked(&mut self, sent: Time, app_limited: bool) {
        if app_limited || self.in_recovery(sent) {
            return;
        }
        let datagram = DATAGRAM as f64;
        let avoids = self.congestion_window >= self.ssthresh;
        self.congestion_window += if avoids { datagram * datagram / self.congestion_window } else { datagram };
    }
    fn on_congestion_event(&mut self, now: Time, sent: Time) {
        if !self.in_recovery(sent) {
            self.recovery_start = Some(now);
            self.ssthresh = (self.congestion_window * 0.5).max(2.0 * DATAGRAM as f64);
            self.congestion_window = self.ssthresh;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// This many datagrams in one call.
    Send(usize),
    /// The nth and the mth outstanding datagram, in one acknowledgement.
    Ack {
        nth: usize,
        mth: usize,
        app_limited: bool,
    },
    Mark,
    Persistent,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ack = (0usize..8, 0usize..8, proptest::bool::weighted(0.1));
    let step = prop_oneof![
        6 => (1usize..8).prop_map(Step::Send),
        12 => ack.prop_map(|(nth, mth, app_limited)| Step::Ack { nth, mth, app_limited }),
        1 => Just(Step::Mark),
        1 => Just(Step::Persistent),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    /// The granted window after every event, minus the byte added for quinn's comparison; packets three behind are
    /// lost.
    #[test]
    fn newreno_is_the_pseudocode(steps in steps()) {
        let mut ours = law("newreno");
        let mut rfc = Pseudocode { congestion_window: 14_520.0, ssthresh: f64::INFINITY, recovery_start: None };
        let (mut out, mut number, mut largest): (Vec<(Time, u64)>, u64, u64) = (Vec::new(), 0, 0);
        let (mut lost, mut pending) = (0, false);
        for (k, step) in steps.into_iter().enumerate() {
            let now = ms(1000 + 3 * k as u64);
            match step {
                Step::Send(max_datagrams) => {
                    let room = (ours.window() - 1).saturating_sub(out.len() as u64 * DATAGRAM);
                    let datagrams = max_datagrams.min((room / DATAGRAM) as usize);
                    ours.sends(now, datagrams as u64 * DATAGRAM);
                    out.extend((number..number + datagrams as u64).map(|n| (now, n)));
                    number += datagrams as u64;
                }
                Step::Ack { nth, mth, app_limited } if nth < out.len() => {
                    let mut acked = vec![out.remove(nth)];
                    if mth < out.len() {
                        acked.push(out.remove(mth));
                    }
                    acked.sort_unstable_by_key(|&(_, n)| n);
                    for &(sent, n) in &acked {
                        rfc.on_packet_acked(sent, app_limited);
                        largest = largest.max(n);
                    }
                    let packets: Vec<_> = acked.iter().map(|&(sent, _)| (sent, DATAGRAM)).collect();
                    let (in_flight, limited) = (out.len() as u64 * DATAGRAM, !app_limited);
                    ours.take(now, Call::Acked { packets: &packets, in_flight, smoothed: RTT, limited });
                    let behind: Vec<_> = out.extract_if(.., |&mut (_, n)| n + 3 <= largest).collect();
                    if let Some(&(sent, _)) = behind.last() {
                        let bytes = behind.len() as u64 * DATAGRAM;
                        ours.take(now, Call::Lost { sent, bytes, persistent: pending });
                        lost += behind.len() as u64;
                        rfc.on_congestion_event(now, sent);
                        if pending {
                            (rfc.congestion_window, rfc.recovery_start) = (2.0 * DATAGRAM as f64, None);
                        }
                        pending = false;
                    }
                }
                Step::Mark if !out.is_empty() => {
                    ours.take(now, Call::Marked { sent: out[0].0 });
                    rfc.on_congestion_event(now, out[0].0);
                }
                Step::Persistent => pending = true,
                _ => {}
            }
            prop_assert_eq!(ours.congestion().in_flight(), out.len() as u64 * DATAGRAM);
            prop_assert_eq!(ours.state().lost, Lost { datagrams: lost, bytes: lost * DATAGRAM });
            let off = (ours.window() as f64 - 1.0 - rfc.congestion_window).abs();
            prop_assert!(off <= 1.0 + DATAGRAM as f64 * 1e-6, "{} and {} after {k} {step:?}", ours.window(), rfc.congestion_window);
        }
    }
}

/// Sends a datagram that is acknowledged a round trip later, so that the round trip is known.
fn begin(law: &mut Law) {
    law.sends(ms(0), DATAGRAM);
    law.acks(ms(50), &[ms(0)], 0, Span::from_millis(333));
}

/// quinn compares with "less than": with the granted window, its check lets ten datagrams leave.
#[test]
fn a_window_of_ten_is_ten() {
    let law = law("newreno");
    let fits = (0..).take_while(|n| n * DATAGRAM + DATAGRAM < law.window()).count();
    assert_eq!((law.window(), fits), (14_521, 10));
}

#[test]
fn round_trips_are_the_packets_own_and_smoothed_by_quinn_s() {
    let mut law = law("newreno");
    begin(&mut law);
    let rtt = law.state().rtt;
    assert_eq!(
        (rtt.latest_rtt, rtt.smoothed_rtt, rtt.rttvar, rtt.min_rtt),
        (RTT, RTT, RTT / 2, RTT),
        "the first as it is"
    );
    law.sends(ms(100), 2 * DATAGRAM);
    // quinn had subtracted an acknowledgement delay of 10 ms
    law.acks(ms(190), &[ms(100)], DATAGRAM, Span::from_millis(40));
    let rtt = law.state().rtt;
    assert_eq!((rtt.latest_rtt, rtt.min_rtt), (Span::from_millis(90), RTT));
    assert_eq!(rtt.smoothed_rtt, Span::from_millis(40) * 7 / 8 + Span::from_millis(90) / 8);
    // an acknowledgement of an older packet is not a sample
    law.sends(ms(200), DATAGRAM);
    law.acks(ms(250), &[ms(200)], DATAGRAM, rtt.smoothed_rtt);
    law.acks(ms(400), &[ms(100)], 0, rtt.smoothed_rtt);
    assert_eq!(law.state().rtt.latest_rtt, RTT);
}

/// Bytes in flight are those that quinn counts: packets with acknowledgements only are excluded.
#[test]
fn acknowledgements_alone_are_forgotten() {
    let mut law = law("newreno");
    begin(&mut law);
    law.sends(ms(60), 40);
    law.sends(ms(61), DATAGRAM);
    law.sends(ms(62), DATAGRAM);
    assert_eq!(law.state().in_flight, 2 * DATAGRAM + 40);
    law.acks(ms(111), &[ms(61)], DATAGRAM, RTT);
    assert_eq!(law.state().in_flight, DATAGRAM);
    // if it only receives, nothing of its own is acknowledged: the log is bounded by the window
    for k in 0..100_000 {
        law.sends(ms(200 + k), 40);
    }
    assert!((600..900).contains(&law.log.len()), "{}", law.log.len());
}

/// quinn does not report sending a probe for a larger datagram, but reports its acknowledgement.
#[test]
fn a_probe_for_a_greater_datagram_counts_for_nothing() {
    let mut law = law("newreno");
    begin(&mut law);
    let before = (law.window(), law.state().in_flight);
    let packets = &[(ms(70), 1492)];
    law.take(ms(120), Call::Acked { packets, in_flight: 0, smoothed: RTT, limited: true });
    assert_eq!((law.window(), law.state().in_flight), before);
    law.take(ms(120), Call::Datagram(1492));
    assert_eq!(law.state().window, before.0 / DATAGRAM * 1492, "as many datagrams of the new size (RFC 9002, 7.2)");
}

/// A mark reduces the window once per round trip, is never undone, and begins recovery until a newer packet is
/// acknowledged.
#[test]
fn marks_and_phases() {
    let mut law = law("newreno");
    begin(&mut law);
    assert_eq!(law.state().phase, Phase::SlowStart);
    law.sends(ms(60), 4 * DATAGRAM);
    law.acks(ms(110), &[ms(60)], 3 * DATAGRAM, RTT);
    let before = law.state().window;
    law.take(ms(110), Call::Marked { sent: ms(60) });
    law.take(ms(111), Call::Marked { sent: ms(60) });
    let state = law.state();
    assert_eq!((state.window, state.cuts.marks, state.phase), (before / 2, 1, Phase::Recovery));
    assert_eq!(state.threshold, Some(before / 2));
    law.sends(ms(120), DATAGRAM);
    law.acks(ms(170), &[ms(120)], 3 * DATAGRAM, RTT);
    assert_eq!(law.state().phase, Phase::Avoidance);
}

/// A controller that paces gets what its rate sends in a round trip, if that is less than its window.
#[test]
fn a_rate_becomes_a_window() {
    let mut law = law("bbr3");
    assert_eq!(law.window(), law.state().window + 1, "no round trip is known");
    let mut now = 0;
    for _ in 0..60 {
        law.sends(ms(now), 10 * DATAGRAM);
        let left = [ms(now); 10];
        now += 50;
        law.acks(ms(now), &left, 0, RTT);
        now += 1;
    }
    let state = law.state();
    let rate = state.pacing_rate.unwrap() * (state.rtt.min_rtt + state.rtt.smoothed_rtt).as_secs_f64() / 2.0;
    let quantum = law.congestion().controller().send_quantum();
    assert_eq!(state.granted, (rate as u64 + u64::from(quantum)).min(state.window) + 1);
    assert!(state.granted < state.window, "{state:?}");
}
