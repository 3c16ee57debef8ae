//! Compares the congestion control with the pseudocode of RFC 9002 appendix B, implemented here again in bytes.

use super::*;
use paceline_control::registry;
use proptest::prelude::*;

const DATAGRAM: u64 = 1472;

/// Appendix B.
struct Pseudocode {
    congestion_window: f64,
    bytes_in_flight: u64,
    ssthresh: f64,
    recovery_start: Option<Time>,
}

impl Pseudocode {
    fn new() -> Pseudocode {
        let congestion_window = Congestion::initial_window(DATAGRAM as u16) as f64;
        Pseudocode { congestion_window, bytes_in_flight: 0, ssthresh: f64::INFINITY, recovery_start: None }
    }
    fn in_recovery(&self, sent: Time) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }
    fn on_packet_acked(&mut self, sent: Time, bytes: u64, app_limited: bool) {
        self.bytes_in_flight -= bytes;
        if app_limited || self.in_recovery(sent) {
            return;
        }
        let (max_datagram, bytes) = (DATAGRAM as f64, bytes as f64);
        self.congestion_window +=
            if self.congestion_window < self.ssthresh { bytes } else { max_datagram * bytes / self.congestion_window };
    }
    fn on_congestion_event(&mut self, now: Time, sent: Time) {
        if self.in_recovery(sent) {
            return;
        }
        self.recovery_start = Some(now);
        // "If the minimum congestion window is two datagrams": this also bounds the threshold
        self.ssthresh = (self.congestion_window * 0.5).max(2.0 * DATAGRAM as f64);
        self.congestion_window = self.ssthresh;
    }
    fn persistent(&mut self) {
        self.congestion_window = 2.0 * DATAGRAM as f64;
        self.recovery_start = None;
    }
}

fn reno() -> Congestion {
    with("newreno")
}

fn with(cc: &str) -> Congestion {
    let controller = TcpController::new(registry::scheme(cc).unwrap(), Profile::Rfc, &[]).unwrap();
    let initial = Congestion::initial_window(DATAGRAM as u16);
    Congestion::new(controller, Profile::Rfc, DATAGRAM as u16, initial, Stream::new(1, "test"))
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

#[test]
fn the_initial_window() {
    // RFC 9002 section 7.2
    assert_eq!([1200, 1472, 1500, 9000].map(Congestion::initial_window), [12_000, 14_720, 14_720, 18_000]);
    assert_eq!(reno().window(), 14_720);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Ack { nth: usize, app_limited: bool },
    Lose { nth: usize },
    Mark { nth: usize },
    Persistent,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Send),
        8 => (0usize..12, proptest::bool::weighted(0.1)).prop_map(|(nth, app_limited)| Step::Ack { nth, app_limited }),
        1 => (0usize..12).prop_map(|nth| Step::Lose { nth }),
        1 => (0usize..12).prop_map(|nth| Step::Mark { nth }),
        1 => Just(Step::Persistent),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    /// Compares the window after every event, to a millionth of a datagram.
    #[test]
    fn reno_is_the_pseudocode(steps in steps()) {
        let (mut ours, mut rfc) = (reno(), Pseudocode::new());
        let mut rtt = Rtt::default();
        rtt.sample(Span::from_millis(50), Span::ZERO);
        let mut out: Vec<(Time, u32, Snapshot)> = Vec::new();
        let mut number = 0;
        for (k, step) in steps.into_iter().enumerate() {
            let now = ms(1000 + 3 * k as u64);
            match step {
                Step::Send => {
                    for _ in 0..4 {
                        out.push((now, number, ours.on_sent(now, number, DATAGRAM as u16).unwrap_or_default()));
                        rfc.bytes_in_flight += DATAGRAM;
                        number += 1;
                    }
                }
                Step::Ack { nth, app_limited } if nth < out.len() => {
                    let (sent, number, left) = out.remove(nth);
                    ours.on_ack_begin(&rtt);
                    ours.on_acked(now, &left, sent, number, DATAGRAM as u16);
                    ours.on_ack_end(now, !app_limited);
                    rfc.on_packet_acked(sent, DATAGRAM, app_limited);
                }
                Step::Lose { nth } if nth < out.len() => {
                    let (sent, number, left) = out.remove(nth);
                    ours.on_lost(&left, number, DATAGRAM as u16);
                    ours.on_congestion(now, sent);
                    rfc.bytes_in_flight -= DATAGRAM;
                    rfc.on_congestion_event(now, sent);
                }
                Step::Mark { nth } if nth < out.len() => {
                    let (sent, ..) = out[nth];
                    ours.on_marks(now, 1, 1, sent);
                    rfc.on_congestion_event(now, sent);
                }
                Step::Persistent if k % 7 == 0 => {
                    ours.on_persistent(now);
                    rfc.persistent();
                }
                _ => {}
            }
            prop_assert_eq!(ours.in_flight(), rfc.bytes_in_flight);
            let off = (ours.window() as f64 - rfc.congestion_window).abs();
            prop_assert!(off <= 1.0 + DATAGRAM as f64 * 1e-6, "{} and {} after {k} {step:?}", ours.window(), rfc.congestion_window);
        }
    }
}

/// Small packets count by their bytes: two of half a datagram are one.
#[test]
fn bytes_count_not_packets() {
    let mut ours = reno();
    let mut rtt = Rtt::default();
    rtt.sample(Span::from_millis(50), Span::ZERO);
    let left: Vec<_> = (0..8).map(|n| ours.on_sent(ms(0), n, 736).unwrap_or_default()).collect();
    for (k, left) in left.iter().enumerate() {
        ours.on_ack_begin(&rtt);
        ours.on_acked(ms(50), left, ms(0), k as u32, 736);
        ours.on_ack_end(ms(50), true);
    }
    assert_eq!(ours.window(), 14_720 + 4 * DATAGRAM);
}

/// RFC 9438 section 4.6: over QUIC a loss cuts CUBIC's window, not what is in flight, so a window that the application
/// leaves unused does not grow.
#[test]
fn cubic_does_not_grow_a_window_that_is_not_used() {
    for limited in [false, true] {
        let mut ours = with("cubic");
        let mut rtt = Rtt::default();
        rtt.sample(Span::from_millis(50), Span::ZERO);
        let left: Vec<_> = (0..4).map(|n| ours.on_sent(ms(0), n, DATAGRAM as u16).unwrap_or_default()).collect();
        for (k, left) in left.iter().enumerate() {
            ours.on_ack_begin(&rtt);
            ours.on_acked(ms(50), left, ms(0), k as u32, DATAGRAM as u16);
            ours.on_ack_end(ms(50), limited);
        }
        assert_eq!(ours.window() > 14_720, limited);
    }
}

/// A spurious loss restores the previous window.
#[test]
fn a_reduction_for_nothing_is_taken_back() {
    let mut ours = reno();
    let left = ours.on_sent(ms(0), 0, DATAGRAM as u16).unwrap_or_default();
    ours.on_lost(&left, 0, DATAGRAM as u16);
    ours.on_congestion(ms(40), ms(0));
    assert_eq!((ours.window(), ours.undoable()), (7360, Some(ms(40))));
    ours.on_spurious(ms(60));
    assert_eq!((ours.window(), ours.cuts()), (14_720, Cuts { losses: 1, marks: 0, undone: 1 }));
    ours.on_spurious(ms(61));
    assert_eq!(ours.cuts().undone, 1, "once");
}

/// A window is paced at 1.25 windows per round trip; a burst of an initial window is sent at once (section 7.7).
#[test]
fn paced_a_little_faster_than_the_window() {
    let mut ours = reno();
    assert_eq!(ours.due(ms(0)), ms(0), "no round trip yet");
    let mut rtt = Rtt::default();
    rtt.sample(Span::from_millis(100), Span::ZERO);
    ours.on_ack_begin(&rtt);
    ours.on_ack_end(ms(100), false);
    assert!((ours.pacing_rate() - 1.25 * 14_720.0 / 0.1).abs() < 1e-6);
    let now = ms(100);
    let at_once = (0..20).take_while(|&n| {
        let free = ours.due(now) <= now;
        if free {
            ours.pace(now, DATAGRAM as u16);
            // a delay in the host does not reduce the rate
            ours.on_sent(ms(103), n, DATAGRAM as u16);
        }
        free
    });
    assert_eq!(at_once.count(), 10);
    // 1472 B at 184 kB/s
    assert_eq!(ours.due(now).since(now).0 / 1000, 8000);
}

/// A controller with a path model gets samples of the delivery rate in bytes.
#[test]
fn a_model_gets_samples() {
    let mut ours = with("bbr");
    let mut rtt = Rtt::default();
    let mut before = 0.0;
    for round in 0..30u64 {
        let now = ms(100 * round);
        let left: Vec<_> =
            (0..10).map(|n| ours.on_sent(now, (10 * round) as u32 + n, DATAGRAM as u16).unwrap_or_default()).collect();
        for (k, left) in left.iter().enumerate() {
            // 10 datagrams in 50 ms, one every 5 ms
            let at = now + Span::from_millis(50 + 5 * k as u64);
            rtt.sample(at.since(now), Span::ZERO);
            ours.on_ack_begin(&rtt);
            ours.on_acked(at, left, now, (10 * round) as u32 + k as u32, DATAGRAM as u16);
            ours.on_ack_end(at, true);
        }
        before = ours.pacing_rate();
    }
    let rate = 10.0 * DATAGRAM as f64 / 0.095;
    assert!(before > 0.5 * rate && before < 3.0 * rate, "{before} beside {rate}");
}

/// Packet numbers with gaps are not a window: the acknowledged and the next number come from one sequence.
#[test]
fn packets_that_do_not_count_leave_the_numbers_in_step() {
    let mut ours = reno();
    let mut rtt = Rtt::default();
    rtt.sample(Span::from_millis(50), Span::ZERO);
    let left = ours.on_sent(ms(0), 7, DATAGRAM as u16).unwrap_or_default();
    ours.on_ack_begin(&rtt);
    ours.on_acked(ms(50), &left, ms(0), 7, DATAGRAM as u16);
    ours.on_ack_end(ms(50), true);
    let path = ours.path(ms(50));
    assert_eq!((path.acked, path.next), (8, 8));
}
