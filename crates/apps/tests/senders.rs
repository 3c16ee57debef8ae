//! Senders: what they hand over and when.

use paceline_apps::stream::{Playout, StreamModel, StreamSender};
use paceline_apps::web::{Pareto, Web, WebArrivals, WebModel};
use paceline_apps::{Action, Application, Period, Rounding};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span, Time};
use proptest::prelude::*;

fn web(arrivals: WebArrivals, rounding: Rounding) -> Web {
    let sizes = Pareto::with_mean(Size(50_000), 1.2).unwrap();
    let model = WebModel { gap: Span::from_millis(500), gap_shape: None, arrivals, sizes, rounding };
    Web::new(model, Stream::new(1, "web"), Period::from(Time(1_000_000_000)))
}

fn stream(rate: u64, xfactor: f64, heartbeat: u64, rounding: Rounding) -> StreamModel {
    StreamModel {
        media_rate: Rate(rate),
        length: Span::from_secs(10),
        xfactor,
        heartbeat: Span(heartbeat),
        buffer: Ratio(0.05),
        playout: Playout::Clock,
        client_buffer: None,
        segment: Size(1000),
        rounding,
    }
}

#[test]
fn a_thinking_client_waits_for_its_page() {
    for (arrivals, fresh) in [(WebArrivals::Think, true), (WebArrivals::ThinkPersistent, false)] {
        let mut web = web(arrivals, Rounding::Exact);
        let mut now = web.next_wake().unwrap();
        assert_eq!(now, Time(1_000_000_000));
        let mut written = 0;
        for round in 0..100 {
            let size = match web.next_action(now, Size(written)) {
                Action::Restart(size) if fresh && round > 0 => size,
                Action::Send(size) if !fresh || round == 0 => size,
                other => panic!("{other:?}"),
            };
            assert!(size.0 >= 8333);
            written += size.0;
            assert_eq!(web.next_wake(), None);
            now += Span::from_secs(2);
            assert_eq!(web.next_action(now, Size(written - 1)), Action::Wait);
            assert_eq!(web.next_action(now, Size(written)), Action::Wait);
            now = web.next_wake().unwrap();
        }
        assert_eq!((web.transfers().started, web.transfers().completed, web.transfers().unfinished), (100, 100, 0));
        assert_eq!(web.transfers().mean_time, Some(Span::from_secs(2)));
    }
}

/// A percentile with no transfer above it is the longest: there is none then. The k-th transfer takes k seconds.
#[test]
fn percentiles_of_transfers_are_there_once_something_lies_above_them() {
    let mut web = web(WebArrivals::ThinkPersistent, Rounding::Exact);
    let (mut now, mut written) = (web.next_wake().unwrap(), 0);
    for done in 1..=200 {
        let Action::Send(size) = web.next_action(now, Size(written)) else { panic!("a page") };
        written += size.0;
        now += Span::from_secs(done);
        web.next_action(now, Size(written));
        let times = web.transfers();
        let found = [times.median_time, times.p95_time, times.p99_time];
        for ((per_cent, min_count), found) in [(50, 2), (95, 20), (99, 100)].into_iter().zip(found) {
            assert_eq!(found.is_some(), done >= min_count, "{per_cent} % of {done}");
            let expected = (done * per_cent).div_ceil(100) as f64;
            assert!(found.is_none_or(|at| (at.as_secs_f64() / expected - 1.0).abs() < 0.002), "{found:?} {expected}");
        }
        now = web.next_wake().unwrap();
    }
    web.measure_from_here();
    assert_eq!(web.transfers().median_time, None);
}

#[test]
fn an_open_client_does_not_wait() {
    let mut web = web(WebArrivals::Open, Rounding::WholeSegments(Size(1000)));
    let (mut now, mut sizes) = (Time::ZERO, Vec::new());
    for _ in 0..20_000 {
        now = web.next_wake().unwrap();
        let Action::Send(size) = web.next_action(now, Size(0)) else { panic!() };
        assert_eq!(size.0 % 1000, 0);
        sizes.push(size.0);
    }
    let mean_gap = (now.as_secs_f64() - 1.0) / 20_000.0;
    assert!((mean_gap - 0.5).abs() < 0.015, "{mean_gap}");
    assert_eq!((web.transfers().completed, web.transfers().unfinished), (0, web.transfers().started));
    web.next_action(now, Size(sizes.iter().take(7).sum()));
    assert_eq!(web.transfers().completed, 7);
    assert_eq!(web.transfers().unfinished, web.transfers().started - 7);
}

/// The sizes of `n` draws, sorted.
fn draws(sizes: Pareto, n: usize) -> Vec<u64> {
    let model =
        WebModel { gap: Span(1), gap_shape: None, arrivals: WebArrivals::Open, sizes, rounding: Rounding::Exact };
    let mut web = Web::new(model, Stream::new(7, "sizes"), Period::from(Time::ZERO));
    let mut drawn: Vec<u64> = (0..n)
        .map(|_| {
            let Action::Send(size) = web.next_action(web.next_wake().unwrap(), Size(0)) else { panic!() };
            size.0
        })
        .collect();
    drawn.sort_unstable();
    drawn
}

#[test]
fn pareto_has_the_median_and_the_mean_that_are_asked_for() {
    let n = 100_000;
    let drawn = draws(Pareto::with_median(Size(50_000), 1.2).unwrap(), n);
    assert!((drawn[n / 2] as f64 / 50_000.0 - 1.0).abs() < 0.02, "{}", drawn[n / 2]);
    // Of shape 3 the variance is finite, so that a sample's mean says something.
    let drawn = draws(Pareto::with_mean(Size(50_000), 3.0).unwrap(), n);
    let mean = drawn.iter().sum::<u64>() as f64 / n as f64;
    assert!((mean / 50_000.0 - 1.0).abs() < 0.02, "{mean}");
    assert_eq!(drawn[0], 33_334);
    // P(size > 10 x least) = 10^-shape.
    let drawn = draws(Pareto::with_mean(Size(60_000), 1.2).unwrap(), n);
    let beyond = drawn.iter().filter(|&&size| size > 100_000).count() as f64 / n as f64;
    assert!((beyond / 0.0631 - 1.0).abs() < 0.05, "{beyond}");
    assert_eq!(draws(Pareto::with_mean(Size(60_000), 1.2).unwrap().cut_at(Size(99_000)), n)[n - 1], 99_000);
    assert!(Pareto::with_mean(Size(1), 1.0).is_none());
}

/// The share of `drawn`, sorted, that is greater than `x`.
fn beyond(drawn: &[u64], x: f64) -> f64 {
    (drawn.len() - drawn.partition_point(|&value| value as f64 <= x)) as f64 / drawn.len() as f64
}

/// A web server's heavy tails (shape 1.1, mean 20 packets; shape 1.8, mean 0.5 s): their variance is infinite, and of
/// 20,000 draws the mean is yet far from the law's; so it is the quantiles that are held against P(X > x) = (least/x)^shape.
#[test]
fn heavy_tails_have_the_quantiles_of_their_laws() {
    let n = 200_000;
    let sizes = draws(Pareto::with_mean(Size(20_000), 1.1).unwrap(), n);
    let min_size = 20_000.0 * 0.1 / 1.1;
    assert_eq!(sizes[0], 1819);
    for tail in [0.5, 0.1, 0.01, 0.001] {
        let share = beyond(&sizes, min_size * libm::pow(tail, -1.0 / 1.1));
        // Four standard errors.
        assert!((share - tail).abs() < 4.0 * (tail / n as f64).sqrt(), "{share} of the sizes, not {tail}");
    }
    let model = WebModel {
        gap: Span::from_millis(500),
        gap_shape: Some(1.8),
        arrivals: WebArrivals::Open,
        sizes: Pareto::with_mean(Size(1000), 2.0).unwrap(),
        rounding: Rounding::Exact,
    };
    let mut web = Web::new(model, Stream::new(7, "gaps"), Period::from(Time::ZERO));
    let mut gaps: Vec<u64> = (0..n)
        .map(|_| {
            let now = web.next_wake().unwrap();
            web.next_action(now, Size(0));
            web.next_wake().unwrap().since(now).0
        })
        .collect();
    gaps.sort_unstable();
    let min_gap = 0.5e9 * 0.8 / 1.8;
    assert!((gaps[0] as f64 / min_gap - 1.0).abs() < 1e-4, "{}", gaps[0]);
    for tail in [0.5, 0.1, 0.01, 0.001] {
        let share = beyond(&gaps, min_gap * libm::pow(tail, -1.0 / 1.8));
        assert!((share - tail).abs() < 4.0 * (tail / n as f64).sqrt(), "{share} of the gaps, not {tail}");
    }
    // With the tail cut off at 1000 s the mean is 0.5 s less what lies beyond, 0.5 (2250)^-0.8.
    let cut: f64 = gaps.iter().map(|&gap| gap.min(1_000_000_000_000) as f64 / 1e9).sum::<f64>() / n as f64;
    assert!((cut - 0.499).abs() < 0.02, "{cut}");
}

#[test]
fn a_stopped_source_says_so_once() {
    let period = Period { start: Time(0), stop: Time(5_000_000_000) };
    let mut sources = [
        Application::Web(Web::new(
            WebModel {
                gap: Span::from_secs(1),
                gap_shape: None,
                arrivals: WebArrivals::Open,
                sizes: Pareto::with_mean(Size(1000), 2.0).unwrap(),
                rounding: Rounding::Exact,
            },
            Stream::new(1, "w"),
            period,
        )),
        Application::Stream(StreamSender::new(&stream(1_000_000, 1.0, 100_000_000, Rounding::Exact), period)),
        Application::Ftp(paceline_apps::ftp::Ftp::new(None, period)),
    ];
    for source in &mut sources {
        let mut stops = 0;
        for _ in 0..1000 {
            let Some(now) = source.next_wake() else { break };
            while let action = source.next_action(now, Size(0))
                && action != Action::Wait
            {
                stops += usize::from(action == Action::Stop);
            }
        }
        assert_eq!((stops, source.next_wake()), (1, None), "{source:?}");
    }
}

#[test]
fn a_chunk_is_xfactor_times_rate_times_heartbeat() {
    let model = stream(1_000_000, 8.0, 100_000_000, Rounding::WholeSegments(Size(1000)));
    let mut sender = StreamSender::new(&model, Period::from(Time(0)));
    assert_eq!(sender.next_action(Time(0)), Action::Send(Size(100_000)));
    assert_eq!(sender.next_action(Time(0)), Action::Wait);
    assert_eq!(sender.next_wake(), Some(Time(100_000_000)));
}

proptest! {
    /// Fractions are carried over: after k heartbeats k chunks have left, to the byte or to the segment, and in the
    /// end exactly the medium.
    #[test]
    fn nothing_is_lost_to_rounding(
        rate in 1_000u64..20_000_000,
        xfactor in 0.3f64..10.0,
        heartbeat in 1_000_000u64..1_000_000_000,
        whole: bool,
    ) {
        let rounding = if whole { Rounding::WholeSegments(Size(1000)) } else { Rounding::Exact };
        let model = stream(rate, xfactor, heartbeat, rounding);
        let mut sender = StreamSender::new(&model, Period::from(Time(0)));
        let mut written = 0;
        let mut last = Time::ZERO;
        while let Some(now) = sender.next_wake() {
            while let Action::Send(size) = sender.next_action(now) {
                written += size.0;
            }
            last = now;
            let beats = now.0 / heartbeat + 1;
            let wanted = (beats as f64 * xfactor * rate as f64 / 8.0 * heartbeat as f64 / 1e9).min(model.total().0 as f64);
            let slack = if whole { 1001.0 } else { 1.01 };
            prop_assert!((written as f64 - wanted).abs() <= slack);
            prop_assert_eq!(written, sender.written().0);
        }
        prop_assert_eq!(written, model.total().0);
        let slack = 2.0 * heartbeat as f64 / 1e9 + if whole { 8000.0 / (rate as f64 * xfactor) } else { 0.0 };
        prop_assert!((last.as_secs_f64() - 10.0 / xfactor).abs() <= slack + 8000.0 / (rate as f64 * xfactor));
    }
}
