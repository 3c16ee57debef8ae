use super::*;
use paceline_units::Time;

/// A sender in lock step: each round acknowledges what the previous round sent.
struct Rounds {
    hystart: HystartPlusPlus,
    acked: u32,
}

impl Rounds {
    fn new() -> Rounds {
        Rounds { hystart: HystartPlusPlus::new(LIMIT), acked: 1 }
    }

    /// A round of acknowledgements of one segment each, with these round trips in milliseconds; the next round has
    /// `then`.
    fn round(&mut self, rtts: &[f64], then: usize) -> bool {
        let end = self.acked + rtts.len() as u32;
        let mut over = false;
        for (n, rtt) in rtts.iter().enumerate() {
            self.acked += 1;
            // the next round has been sent completely when the last acknowledgement of this one arrives
            let next = if self.acked == end { end + then as u32 } else { end };
            let path = PathView {
                now: Time::ZERO,
                srtt: Span::ZERO,
                rttvar: Span::ZERO,
                min_rtt: Span::ZERO,
                in_flight: next - self.acked,
                acked: self.acked,
                next,
                receive_window: u32::MAX,
                segment: 1000,
            };
            over = self.hystart.on_ack(Span::from_secs_f64(rtt / 1e3), &path);
            assert!(!over || n + 1 == rtts.len(), "slow start ends with a round");
        }
        over
    }

    fn in_css(&self) -> bool {
        self.hystart.css.is_some()
    }
}

/// Section 4.2: RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)), which the round's minimum reaches or exceeds.
#[test]
fn rfc_9406_4_2_the_delay_that_is_too_much() {
    for (last, current, enters) in [
        (10.0, 13.9, false),
        (10.0, 14.0, true),
        (40.0, 44.9, false),
        (40.0, 45.0, true),
        (100.0, 112.4, false),
        (100.0, 112.5, true),
        (200.0, 215.9, false),
        (200.0, 216.0, true),
        (1000.0, 1016.0, true),
    ] {
        let mut rounds = Rounds::new();
        rounds.round(&[last; 8], 8);
        rounds.round(&[current; 8], 8);
        assert_eq!(rounds.in_css(), enters, "{last} then {current} ms");
    }
}

/// A round's minimum counts once it has eight samples; the previous round may have had fewer (section 4.2).
#[test]
fn rfc_9406_4_2_what_counts_as_a_round_s_delay() {
    for (rtts, enters) in [
        (vec![60.0; 7], false),
        (vec![60.0; 8], true),
        (vec![60.0, 60.0, 41.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0], false),
        (vec![60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 41.0], false), // back in the same round
    ] {
        let mut rounds = Rounds::new();
        rounds.round(&[70.0, 40.0, 70.0], rtts.len());
        rounds.round(&rtts, 8);
        assert_eq!(rounds.in_css(), enters, "{rtts:?}");
    }
    // the first round has none to compare with
    let mut first = Rounds::new();
    first.round(&[1000.0; 20], 8);
    assert!(!first.in_css());
}

/// Section 4.2: min(N, L SMSS), a quarter of that in conservative slow start; L is 8 without pacing (section 4.3).
#[test]
fn rfc_9406_4_3_growth() {
    let mut rounds = Rounds::new();
    for (segments, grown) in [(1, 1.0), (2, 2.0), (8, 8.0), (9, 8.0), (1000, 8.0)] {
        assert_eq!(rounds.hystart.growth(segments), grown);
        assert_eq!(f64::from(rounds.hystart.whole_growth(segments)), grown);
    }
    rounds.round(&[40.0; 8], 8);
    rounds.round(&[50.0; 8], 8);
    for (segments, grown) in [(1, 0.25), (2, 0.5), (8, 2.0), (1000, 2.0)] {
        assert_eq!(rounds.hystart.growth(segments), grown);
    }
    let whole: Vec<u32> = [1, 1, 1, 1, 2, 2, 3, 3].map(|n| rounds.hystart.whole_growth(n)).to_vec();
    assert_eq!(whole, [0, 0, 0, 1, 0, 1, 0, 1]);
    assert_eq!(HystartPlusPlus::new(u32::MAX).growth(1000), 1000.0);
}

/// Section 4.2: five rounds, including the partial round in which it began.
#[test]
fn rfc_9406_4_2_five_rounds() {
    let mut rounds = Rounds::new();
    assert!(!rounds.round(&[40.0; 10], 10));
    let over: Vec<bool> = (0..5).map(|_| rounds.round(&[50.0; 10], 10)).collect();
    assert_eq!(over, [false, false, false, false, true]);
}

/// Section 4.2: a round whose minimum delay, over eight samples, is below the baseline was jitter: slow start resumes,
/// and the rounds are counted from the start again.
#[test]
fn rfc_9406_4_2_jitter() {
    for (rtt, samples, goes_on) in [(50.0, 8, false), (49.9, 7, false), (49.9, 8, true), (20.0, 8, true)] {
        let mut rounds = Rounds::new();
        rounds.round(&[40.0; 8], 8);
        rounds.round(&[50.0; 8], samples);
        rounds.round(&vec![rtt; samples], 8);
        assert_eq!(rounds.in_css(), !goes_on, "{samples} samples of {rtt} ms");
    }
    let mut rounds = Rounds::new();
    rounds.round(&[40.0; 8], 8);
    for _ in 0..3 {
        rounds.round(&[50.0; 8], 8);
    }
    rounds.round(&[42.0; 8], 8);
    assert!(!rounds.in_css());
    let over: Vec<bool> = (0..5).map(|_| rounds.round(&[60.0; 8], 8)).collect();
    assert_eq!(over, [false, false, false, false, true]);
}

/// A flow that restarts after a pause has no round to compare with.
#[test]
fn a_pause_begins_anew() {
    let mut rounds = Rounds::new();
    rounds.round(&[40.0; 8], 8);
    rounds.round(&[50.0; 8], 8);
    rounds.hystart.begin();
    rounds.round(&[90.0; 8], 8);
    assert!(!rounds.in_css());
    assert_eq!(rounds.hystart.growth(4), 4.0);
}
