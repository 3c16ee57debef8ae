use super::*;

const MODEL: EncoderModel = EncoderModel {
    frame_rate: 30.0,
    min_rate: Rate(100_000),
    max_rate: Rate(2_000_000),
    jitter: 0.15,
    jitter_law: JitterLaw::Laplace,
    interval_jitter: 0.0,
    burst: None,
    reaction: Span::from_millis(200),
    key_interval: Span::ZERO,
    key_size: 1.0,
    segment: Size(1460),
    header: Size(40),
    needs: FrameNeeds::Before,
    max_queue: Span::MAX,
};

fn encoder(model: EncoderModel) -> Encoder {
    Encoder::new(model, Stream::new(1, "encoder"), Period::from(Time::from_secs_f64(1.0)))
}

/// The next frames: capture time, and bytes.
fn frames(encoder: &mut Encoder, count: usize) -> Vec<(f64, u64)> {
    let mut frames = Vec::new();
    while frames.len() < count {
        let now = encoder.next_wake().unwrap();
        let Action::Send(size) = encoder.next_action(now) else { panic!("a frame is due") };
        assert_eq!(encoder.next_action(now), Action::Wait);
        frames.push((now.as_secs_f64(), size.0));
    }
    frames
}

#[test]
fn section_5_frames_have_their_share_of_the_rate_and_a_laplace_law() {
    let mut encoder = encoder(MODEL);
    encoder.set_target_rate(Rate(1_000_000), Time::ZERO);
    let frames = frames(&mut encoder, 30_000);
    assert!(frames[0].0 == 1.0 && (frames[29_999].0 - 1.0 - 29_999.0 / 30.0).abs() < 1e-8);
    // 4167 bytes with the headers of 3 packets
    let wire: Vec<f64> = frames.iter().map(|f| f.1 as f64 + 40.0 * libm::ceil(f.1 as f64 / 1460.0)).collect();
    let mean = wire.iter().sum::<f64>() / wire.len() as f64;
    assert!((mean / 4166.7 - 1.0).abs() < 0.005, "{mean}");
    // in a Laplace distribution the mean distance from the middle is its scale
    let spread = wire.iter().map(|size| (size - 4166.7).abs()).sum::<f64>() / wire.len() as f64;
    assert!((spread / 4166.7 - 0.15).abs() < 0.005, "{spread}");
}

#[test]
fn uniform_sizes_lie_within_their_bound() {
    let mut encoder = encoder(EncoderModel { jitter: 0.2, jitter_law: JitterLaw::Uniform, header: Size(0), ..MODEL });
    encoder.set_target_rate(Rate(1_000_000), Time::ZERO);
    let mut share: Vec<f64> = frames(&mut encoder, 30_000).iter().map(|frame| frame.1 as f64 / 4166.7).collect();
    share.sort_by(f64::total_cmp);
    // each tenth of the draws lies in its tenth of the range
    for (tenth, expected) in (0..=10).map(|n| (n, 0.8 + 0.04 * f64::from(n))) {
        let found = share[(share.len() - 1) * tenth as usize / 10];
        assert!((found - expected).abs() < 0.005, "{tenth}: {found}, not {expected}");
    }
}

#[test]
fn section_5_3_intervals_have_a_laplace_law_too() {
    let mut encoder = encoder(EncoderModel { interval_jitter: 0.15, ..MODEL });
    let times: Vec<f64> = frames(&mut encoder, 30_001).iter().map(|f| f.0).collect();
    let gaps: Vec<f64> = times.windows(2).map(|two| (two[1] - two[0]) * 30.0).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.005, "{mean}");
    let spread = gaps.iter().map(|gap| (gap - 1.0).abs()).sum::<f64>() / gaps.len() as f64;
    assert!((spread - 0.15).abs() < 0.005, "{spread}");
    let together = gaps.windows(2).map(|two| (two[0] - 1.0) * (two[1] - 1.0)).sum::<f64>() / gaps.len() as f64;
    // in a Laplace distribution the variance is twice the square of the scale
    assert!(together.abs() < 0.05 * 2.0 * 0.15 * 0.15, "one draw has nothing to do with the next: {together}");
    let mut wild = self::encoder(EncoderModel { interval_jitter: 1.0, ..MODEL });
    let times: Vec<f64> = frames(&mut wild, 3000).iter().map(|f| f.0).collect();
    let min_interval = times.windows(2).map(|two| (two[1] - two[0]) * 30.0).fold(f64::MAX, f64::min);
    assert!((min_interval - 0.1).abs() < 1e-6, "{min_interval}");
}

#[test]
fn intervals_that_vary_leave_sizes_and_pauses_as_they_are() {
    let at = |ms: u64| Time(ms * 1_000_000);
    let sizes = |model| frames(&mut encoder(model), 100).iter().map(|f| f.1).collect::<Vec<u64>>();
    let varied = EncoderModel { interval_jitter: 0.3, ..MODEL };
    assert_eq!(sizes(varied), sizes(MODEL));
    let mut paused = encoder(varied).pausing(vec![Period { start: at(1500), stop: at(2501) }]);
    let times: Vec<f64> = frames(&mut paused, 60).iter().map(|f| f.0).collect();
    assert!(times.iter().all(|time| !(1.5..2.501).contains(time)) && times.contains(&2.501), "{times:?}");
}

/// A frame of 250 kbit/s and its header make 252.4 kbit/s: recorded rates are payload.
#[test]
fn section_6_recorded_frames_follow_the_target_without_headers() {
    let sizes = |rate: u32| (0..100).map(|frame| rate / 240 + frame).collect::<Vec<u32>>();
    let rungs = [200_000, 400_000].map(|rate| (Rate(u64::from(rate)), sizes(rate)));
    let ladder = Ladder::new(rungs.into(), 20).unwrap();
    let mut encoder = encoder(MODEL).playing(ladder);
    let expected = |rate: f64, frame: usize| rate / 240.0 + frame as f64;
    encoder.set_target_rate(Rate(200_000 + 240 * 40), Time::ZERO);
    for (at, frame) in frames(&mut encoder, 120).iter().zip((0..100).chain(20..40)) {
        assert!((at.1 as f64 - expected(200e3, frame)).abs() < 2.0, "{frame}: {at:?}");
    }
    encoder.request_key(encoder.next_wake().unwrap());
    assert!((frames(&mut encoder, 1)[0].1 as f64 - expected(200e3, 0)).abs() < 2.0);
    encoder.set_target_rate(Rate(300_000 + 240 * 40), Time(9_000_000_000));
    assert!((frames(&mut encoder, 1)[0].1 as f64 - expected(300e3, 1)).abs() < 2.0);
}

/// At 1 Mbit/s and 30 frames per second a mean frame has 4167 bytes, and the example's burst begins with 3.24 of them.
#[test]
fn section_5_2_an_abrupt_change_begins_a_burst() {
    let burst = Some(Burst { size: Size(13_500), frames: 8, change: 0.5 });
    let mut encoder = encoder(EncoderModel { burst, jitter: 0.0, ..MODEL });
    let mean = 1e6 / 8.0 / 30.0;
    let shares = |encoder: &mut Encoder, count: usize, rate: f64| -> Vec<f64> {
        let wire = |size: u64| size as f64 + 40.0 * libm::ceil(size as f64 / 1460.0);
        frames(encoder, count).iter().map(|frame| wire(frame.1) / (rate / 240.0)).collect()
    };
    frames(&mut encoder, 10); // the key frame and those that compensate for it, at 100 kbit/s
    encoder.set_target_rate(Rate(1_000_000), Time::ZERO);
    let found = shares(&mut encoder, 9, 1e6);
    let expected = (8.0 - 13_500.0 / mean) / 7.0;
    assert!((found[0] - 13_500.0 / mean).abs() < 1e-3, "{found:?}");
    assert!(found[1..8].iter().all(|share| (share - expected).abs() < 1e-3), "{found:?}");
    assert!((found[8] - 1.0).abs() < 1e-3 && (found[..8].iter().sum::<f64>() - 8.0).abs() < 1e-2, "{found:?}");
    // exactly half is not abrupt, in either direction; a mean frame above the burst's size is not reduced
    let at = |ms: u64| Time(ms * 1_000_000);
    encoder.set_target_rate(Rate(1_500_000), at(1000));
    assert!(shares(&mut encoder, 1, 1.5e6)[0] < 1.01);
    encoder.set_target_rate(Rate(700_000), at(2000));
    assert!((shares(&mut encoder, 1, 0.7e6)[0] - 13_500.0 * 240.0 / 0.7e6).abs() < 1e-3);
}

#[test]
fn section_5_a_change_is_followed_by_none_for_the_reaction_time() {
    let mut encoder = encoder(MODEL);
    let at = |ms: u64| Time(ms * 1_000_000);
    assert_eq!(encoder.rate, Rate(100_000), "the least at first");
    encoder.set_target_rate(Rate(500_000), at(0));
    encoder.set_target_rate(Rate(600_000), at(199));
    assert_eq!(encoder.rate, Rate(500_000));
    encoder.set_target_rate(Rate(700_000), at(200));
    assert_eq!(encoder.rate, Rate(700_000));
    encoder.set_target_rate(Rate(9_000_000), at(400));
    assert_eq!(encoder.rate, MODEL.max_rate);
    encoder.set_target_rate(Rate(0), at(600));
    assert_eq!(encoder.rate, MODEL.min_rate);
}

#[test]
fn key_frames_are_large_and_made_up_for() {
    let model = EncoderModel { key_interval: Span::from_secs(1), key_size: 4.0, jitter: 0.0, ..MODEL };
    let mut encoder = encoder(model);
    encoder.set_target_rate(Rate(1_000_000), Time::ZERO);
    let frames = frames(&mut encoder, 60);
    let sizes: Vec<u64> = frames.iter().map(|f| f.1).collect();
    assert_eq!(sizes[0], payload(4.0 * 1e6 / 240.0, 1460.0, 40.0) as u64);
    assert_eq!((sizes[30], sizes[1], sizes[8]), (sizes[0], sizes[7], sizes[29]));
    assert_eq!(sizes[1], payload(4.0 / 7.0 * 1e6 / 240.0, 1460.0, 40.0) as u64);
}

#[test]
fn a_pause_has_no_frames_and_ends_with_a_key_frame() {
    let model = EncoderModel { key_size: 4.0, jitter: 0.0, ..MODEL };
    let at = |ms: u64| Time(ms * 1_000_000);
    let pause = |from, to| Period { start: at(from), stop: at(to) };
    // 30 frames per second from 1 s on: frames 15 to 44 lie in the first pause, none in the other, which is between two
    // frames
    let mut encoder = encoder(model).pausing(vec![pause(1500, 2500), pause(1010, 1020)]);
    let frames = frames(&mut encoder, 60);
    let times: Vec<f64> = frames.iter().map(|f| f.0).collect();
    for (frame, time) in [(1, 1.0 + 1.0 / 30.0), (14, 1.0 + 14.0 / 30.0), (15, 2.5), (16, 2.5 + 1.0 / 30.0)] {
        assert!((times[frame] - time).abs() < 1e-6, "{times:?}");
    }
    let sizes: Vec<u64> = frames.iter().map(|f| f.1).collect();
    assert_eq!((sizes[15], sizes[16], sizes[14]), (sizes[0], sizes[1], sizes[40]));
    assert!(sizes[0] > 3 * sizes[14]);
}

#[test]
fn a_key_frame_comes_on_request_but_not_twice_in_300_ms() {
    let at = |ms: u64| Time(ms * 1_000_000);
    let mut encoder = encoder(EncoderModel { key_size: 4.0, jitter: 0.0, ..MODEL });
    let keys = |encoder: &mut Encoder, count| {
        let made = (0..count).filter(|_| {
            frames(encoder, 1);
            encoder.last_is_key_frame()
        });
        made.count()
    };
    assert_eq!(keys(&mut encoder, 30), 1, "the first");
    encoder.request_key(at(1990));
    frames(&mut encoder, 1);
    assert!(encoder.last_is_key_frame());
    encoder.request_key(at(2289));
    assert_eq!(keys(&mut encoder, 30), 0);
    encoder.request_key(at(2290));
    assert_eq!(keys(&mut encoder, 30), 1);
}

#[test]
fn frames_are_skipped_while_the_senders_queue_is_too_long() {
    let mut encoder = encoder(EncoderModel { max_queue: Span::from_millis(500), ..MODEL });
    frames(&mut encoder, 3);
    encoder.on_queueing_delay(Span::from_millis(501));
    for n in 3..6 {
        let now = encoder.next_wake().unwrap();
        assert_eq!((now, encoder.next_action(now)), (encoder.capture(n), Action::Wait));
    }
    encoder.on_queueing_delay(Span::from_millis(500));
    assert_eq!(frames(&mut encoder, 1)[0].0, encoder.capture(6).as_secs_f64());
    assert_eq!((encoder.captured(), encoder.skipped()), (4, 3));
}

#[test]
fn no_frame_is_less_than_a_tenth_of_its_share() {
    let mut wild = encoder(EncoderModel { jitter: 1.0, ..MODEL });
    wild.set_target_rate(Rate(1_000_000), Time::ZERO);
    let min_size = frames(&mut wild, 3000).iter().map(|frame| frame.1).min();
    // a tenth of 4167 bytes, less a header
    assert_eq!(min_size, Some(376));
    // a key frame of eight frames' size leaves nothing for the next seven
    let mut keys = encoder(EncoderModel { key_size: 8.0, jitter: 0.0, ..MODEL });
    keys.set_target_rate(Rate(1_000_000), Time::ZERO);
    assert_eq!(frames(&mut keys, 8)[7].1, 376);
}

#[test]
fn nothing_is_captured_after_the_stop_and_frames_count_from_the_warm_up() {
    let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(2.0) };
    let mut encoder = Encoder::new(MODEL, Stream::new(1, "encoder"), period);
    frames(&mut encoder, 30);
    encoder.measure_from(Time::from_secs_f64(1.0));
    frames(&mut encoder, 30);
    assert_eq!(encoder.captured(), 30);
    assert_eq!(encoder.next_wake(), Some(period.stop));
    assert_eq!(encoder.next_action(period.stop), Action::Stop);
    assert_eq!(encoder.next_wake(), None);
}
