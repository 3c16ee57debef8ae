use super::*;
use paceline_units::Span;
use proptest::prelude::*;

const SEGMENT: u32 = 1000;

fn flow(flow: u32, segments: u64) -> FlowReport {
    FlowReport {
        flow,
        outstanding: segments * u64::from(SEGMENT),
        segment: SEGMENT,
        advertised: 1_000_000,
        sent: 50_000,
        longest_wait: None,
        rtt: None,
    }
}

fn voap(model: VoapModel) -> Law {
    Law::Voap(Voap::new(model))
}

fn waited(millis: u64) -> Interval {
    Interval { longest_wait: Span::from_millis(millis), unresponsive: Rate::from_bps(0) }
}

/// The windows after an interval, in segments; 0 where a flow is not limited.
fn windows(law: &mut Law, millis: u64, flows: &[FlowReport]) -> Vec<u64> {
    let mut decisions = Vec::new();
    law.decide(&waited(millis), flows, &mut decisions);
    assert!(decisions.iter().zip(flows).all(|(d, f)| d.flow == f.flow) && decisions.len() == flows.len());
    decisions.iter().map(|d| d.window.map_or(0, |w| w / u64::from(SEGMENT))).collect()
}

#[test]
fn a_flow_joins_once_it_is_large_and_the_queue_long() {
    let mut law = voap(VoapModel::default());
    assert_eq!(windows(&mut law, 14, &[flow(1, 40)]), [0], "beta not passed");
    assert_eq!(windows(&mut law, 15, &[flow(1, 40)]), [0], "beta met, not passed");
    assert_eq!(windows(&mut law, 16, &[flow(1, 10)]), [0], "ten segments are no more than ten");
    assert_eq!(windows(&mut law, 16, &[flow(1, 40)]), [40], "joins with what it has outstanding");
    assert_eq!(windows(&mut law, 16, &[flow(1, 40)]), [39]);
    assert_eq!(windows(&mut law, 15, &[flow(1, 39)]), [39], "between the thresholds it stays");
    assert_eq!(windows(&mut law, 5, &[flow(1, 39)]), [39], "alpha is between");
    assert_eq!(windows(&mut law, 4, &[flow(1, 39)]), [40]);
    assert_eq!(windows(&mut law, 4, &[flow(1, 3)]), [41], "once in, small does not set it free");
}

#[test]
fn between_the_thresholds_flows_share_equally_and_the_sum_stays() {
    let mut law = voap(VoapModel::default());
    assert_eq!(windows(&mut law, 20, &[flow(1, 40), flow(2, 20)]), [40, 20]);
    assert_eq!(windows(&mut law, 10, &[flow(1, 40), flow(2, 20)]), [35, 25]);
    assert_eq!(windows(&mut law, 10, &[flow(1, 40), flow(2, 20)]), [32, 27]);
    for _ in 0..20 {
        windows(&mut law, 10, &[flow(1, 30), flow(2, 30)]);
    }
    let shared = windows(&mut law, 10, &[flow(1, 30), flow(2, 30)]);
    assert!(shared.iter().all(|w| (29..=30).contains(w)), "{shared:?}");
}

#[test]
fn a_silent_flows_share_goes_to_the_others_once() {
    let silent = FlowReport { sent: 0, ..flow(2, 0) };
    for leave in [Leave::Never, Leave::Idle] {
        let mut law = voap(VoapModel { leave, ..VoapModel::default() });
        windows(&mut law, 20, &[flow(1, 20), flow(2, 20)]);
        let kept = if leave == Leave::Never { 20 } else { 0 };
        assert_eq!(windows(&mut law, 10, &[flow(1, 20), silent]), [30, kept], "half of the way to 40");
        for _ in 0..20 {
            assert_eq!(windows(&mut law, 10, &[flow(1, 20), silent])[0], 30, "and no more of it afterwards");
        }
        let back = windows(&mut law, 10, &[flow(1, 30), flow(2, 20)]);
        assert_eq!(back, if leave == Leave::Never { vec![27, 22] } else { vec![30, 0] }, "{leave:?}");
    }
    let mut law = voap(VoapModel::default());
    windows(&mut law, 20, &[flow(1, 20), flow(2, 20)]);
    assert_eq!(windows(&mut law, 10, &[flow(1, 20)]), [30], "so does that of one that is gone");
    assert_eq!(windows(&mut law, 10, &[flow(1, 20), flow(2, 20)]), [30, 0], "which is then a new flow");
}

#[test]
fn what_the_paper_leaves_open_is_a_choice() {
    let mut first = voap(VoapModel { first: First::Segments(12.0), ..VoapModel::default() });
    assert_eq!(windows(&mut first, 20, &[flow(1, 40)]), [12]);
    let mut own = voap(VoapModel { delay: DelayOf::Flow, ..VoapModel::default() });
    let short = FlowReport { longest_wait: Some(Span::from_millis(3)), ..flow(1, 40) };
    assert_eq!(windows(&mut own, 20, &[short, flow(2, 40)]), [0, 40]);
    let mut used = voap(VoapModel { growth: Growth::Used, ..VoapModel::default() });
    windows(&mut used, 20, &[flow(1, 40), flow(2, 40)]);
    assert_eq!(windows(&mut used, 1, &[flow(1, 40), flow(2, 38)]), [41, 40]);
}

#[test]
fn windows_stay_between_two_segments_and_the_receivers_own() {
    let mut law = voap(VoapModel::default());
    let small = FlowReport { advertised: 30_000, ..flow(1, 40) };
    assert_eq!(windows(&mut law, 20, &[small]), [30]);
    assert_eq!(windows(&mut law, 1, &[small]), [30]);
    for _ in 0..40 {
        windows(&mut law, 20, &[small]);
    }
    assert_eq!(windows(&mut law, 20, &[small]), [2]);
}

#[test]
fn sap_law_gives_each_flow_the_same_rate() {
    let mut law = Law::SapLaw(SapLaw::new(Rate::from_mbps(20.0), Span::from_millis(40)));
    let slow = FlowReport { rtt: Some(Span::from_millis(120)), ..flow(2, 10) };
    let silent = FlowReport { sent: 0, ..flow(3, 0) };
    let interval = Interval { longest_wait: Span::ZERO, unresponsive: Rate::from_mbps(10.0) };
    let mut decisions = Vec::new();
    law.decide(&interval, &[flow(1, 10), slow, silent], &mut decisions);
    // (20 - 1.1 x 10) Mbit/s / 2 = 4.5 Mbit/s = 562,500 B/s.
    let windows: Vec<u64> = decisions.iter().map(|d| d.window.unwrap()).collect();
    assert_eq!(windows, [22_500, 67_500, 22_500]);
    let full = Interval { unresponsive: Rate::from_mbps(25.0), ..interval };
    law.decide(&full, &[flow(1, 10)], &mut decisions);
    assert_eq!(decisions[0].window, Some(0), "what is written is then two segments");
}

#[test]
fn what_is_under_way_on_the_senders_side_counts() {
    // 1 MB/s over 200 ms: 40 ms of it are 40 kB.
    let far = Span::from_millis(40);
    let passed = Passed { beyond: 5_000, sent: 200_000, acked: 200_000, over: Span::from_millis(200) };
    assert_eq!(passed.outstanding(None, far), 45_000);
    assert_eq!(Passed { acked: 0, ..passed }.outstanding(None, far), 5_000);
    assert_eq!(Passed { over: Span::ZERO, ..passed }.outstanding(Some(far), far), 5_000);
    let extreme = Passed { beyond: u64::MAX, sent: u64::MAX, acked: u64::MAX, over: Span(1) };
    assert_eq!(extreme.outstanding(Some(Span(u64::MAX)), Span(u64::MAX)), u64::MAX);
    // A lost segment is unacknowledged but not outstanding: at most 3 kB pass in 3 ms.
    assert_eq!(passed.outstanding(Some(Span::from_millis(3)), far), 43_000);
    assert_eq!(passed.outstanding(Some(Span::from_millis(6)), far), 45_000);
}

proptest! {
    #[test]
    fn a_window_is_only_ever_lowered(own: u32, limit: u32, sent: u32, segment in 1_u64..9000) {
        let [own, limit, sent] = [own, limit, sent].map(u64::from);
        let window = clamped_window(own, limit, sent, segment);
        prop_assert!(window <= own);
        prop_assert!(window >= own.min(sent) && window >= own.min(2 * segment));
        prop_assert!(window == own || window == limit.max(sent).max(2 * segment));
    }

    #[test]
    fn no_run_of_intervals_leaves_the_bounds(
        steps in proptest::collection::vec((0_u64..40, proptest::collection::vec((0_u64..200, 0_u64..2, 2_u64..80), 4)), 1..100),
        leave: bool,
        used: bool,
    ) {
        let leave = if leave { Leave::Idle } else { Leave::Never };
        let growth = if used { Growth::Used } else { Growth::All };
        let mut law = voap(VoapModel { leave, growth, ..VoapModel::default() });
        let mut decisions = Vec::new();
        for (wait, flows) in steps {
            let flows: Vec<FlowReport> = flows
                .iter()
                .enumerate()
                .map(|(i, &(outstanding, sent, advertised))| FlowReport {
                    sent,
                    advertised: advertised * u64::from(SEGMENT),
                    ..flow(i as u32, outstanding)
                })
                .collect();
            law.decide(&waited(wait), &flows, &mut decisions);
            for (decision, flow) in decisions.iter().zip(&flows) {
                let Some(window) = decision.window else { continue };
                prop_assert!(window >= 2 * u64::from(SEGMENT));
                prop_assert!(flow.sent == 0 || window <= flow.advertised.max(2 * u64::from(SEGMENT)), "{window}");
            }
        }
    }
}
