use super::*;
use proptest::prelude::*;

const MODEL: PlayoutModel =
    PlayoutModel { min_margin: Span::ZERO, max_margin: Span::from_secs(10), patience: Span::from_millis(300) };

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Frames of three packets every 40 ms; packet `n` arrives at `now`. Frames in `keys` are key frames.
fn arrive(buffer: &mut FrameBuffer, n: u64, now: Time, keys: &[u64]) {
    let frame = n / 3;
    let part = if keys.contains(&frame) { Part::Key } else { Part::Delta };
    let packet =
        MediaPacket { sequence: (65_500 + n) as u16, part, captured: Offset::at(ms(frame * 40)), last: n % 3 == 2 };
    buffer.on_packet(now, &packet);
}

/// All packets of `frames` frames, except those lost, each 50 ms after its capture.
fn play(frames: u64, lost: &[u64], keys: &[u64]) -> FrameBuffer {
    let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
    for n in (0..frames * 3).filter(|n| !lost.contains(n)) {
        arrive(&mut buffer, n, ms(n / 3 * 40 + 50), keys);
    }
    buffer
}

fn counts(buffer: &FrameBuffer, end: Time) -> PlayoutReport {
    buffer.report(end).playout.unwrap()
}

#[test]
fn frames_that_come_evenly_are_shown_as_they_come() {
    let buffer = play(50, &[], &[0]);
    let report = buffer.report(ms(5000));
    assert_eq!(
        (report.complete, report.delays.first(), report.delays.last()),
        (50, Some(&Offset(50_000_000)), Some(&Offset(50_000_000)))
    );
    let counts = report.playout.unwrap();
    assert_eq!((counts.shown, counts.late, counts.keys, counts.buffered), (50, 0, 1, Span::ZERO));
    assert_eq!(buffer.next_wake(), Time::NEVER);
}

#[test]
fn a_sample_tells_of_what_was_shown_by_then() {
    let model = PlayoutModel { min_margin: Span::from_millis(100), ..MODEL };
    let mut buffer = FrameBuffer::new(model, Time::ZERO);
    for n in 0..30 {
        arrive(&mut buffer, n, ms(n / 3 * 40 + 50), &[0]);
    }
    // all have arrived at 410 ms; frame n is shown at 150 + 40 n ms
    let untouched = buffer.clone();
    let [frames, mean, max, stands] = buffer.sample(ms(420));
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    near(frames, 7.0);
    near(mean, 0.150);
    near(max, 0.150);
    near(stands, 0.030);
    near(buffer.sample(ms(500))[0], 2.0);
    let [frames, mean, _, stands] = buffer.sample(ms(800));
    near(frames, 1.0);
    near(mean, 0.150);
    near(stands, 0.290);
    assert!(buffer.sample(ms(1000))[1].is_nan());
    assert_eq!(buffer.report(ms(1000)), untouched.report(ms(1000)), "looking changes nothing");
}

#[test]
fn a_frame_is_decoded_when_the_one_before_is() {
    let mut buffer = play(10, &[12], &[0]);
    let before = counts(&buffer, ms(5000));
    assert_eq!((before.shown, before.waiting, before.undecodable), (4, 5, 0), "frame 4 lacks its first packet");
    assert_eq!(buffer.next_wake(), ms(4 * 40 + 50 + 300), "asked for 300 ms after the gap showed");
    arrive(&mut buffer, 12, ms(600), &[0]);
    let after = counts(&buffer, ms(5000));
    assert_eq!((after.shown, after.waiting, buffer.next_wake()), (10, 0, Time::NEVER));
    // due at 160 + 50 ms; then the mean is 128 ms and the deviation 62.4 ms: at 200 + 377.6 ms; from then on after 600
    // ms
    assert_eq!(after.late, 2);
    let buffered: u64 = (0..6).map(|frame| 600 - (210 + frame * 40)).sum();
    assert!(after.buffered > Span::from_millis(buffered));
}

#[test]
fn a_whole_key_frame_ends_the_wait() {
    let buffer = play(20, &[12, 22], &[0, 12]);
    let counts = counts(&buffer, ms(5000));
    // 0 to 3 shown; 4 and 7 lost; 5, 6 and 8 to 11 undecodable; 12 to 19 shown
    assert_eq!((counts.shown, counts.undecodable, counts.waiting, counts.keys), (12, 6, 0, 2));
    assert_eq!(buffer.next_wake(), Time::NEVER);
}

#[test]
fn a_key_frame_whose_beginning_is_in_doubt_is_not_whole() {
    for (lost, shown) in [(35, 4), (36, 4), (37, 4), (38, 4), (34, 12)] {
        let buffer = play(20, &[12, lost], &[0, 12]);
        assert_eq!(counts(&buffer, ms(5000)).shown, shown, "{lost}");
    }
}

#[test]
fn a_key_frame_is_asked_for_again_each_200_ms_until_one_comes() {
    let mut buffer = play(5, &[3], &[0]);
    assert_eq!((buffer.next_wake(), buffer.take_key_request(ms(389))), (ms(390), false));
    assert!(buffer.take_key_request(ms(390)) && !buffer.take_key_request(ms(589)) && buffer.take_key_request(ms(590)));
    for n in 15..18 {
        arrive(&mut buffer, n, ms(600), &[0, 5]);
    }
    assert_eq!(buffer.next_wake(), Time::NEVER);
    assert_eq!(counts(&buffer, ms(5000)).shown, 2);
}

/// Delays alternate between 50 and 70 ms: a mean of 60 and a deviation of 10, so frames are shown 100 ms after capture.
#[test]
fn the_margin_is_four_times_the_mean_deviation() {
    let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
    for n in 0..6000 {
        arrive(&mut buffer, n, ms(n / 3 * 40 + 50 + n / 3 % 2 * 20), &[0]);
    }
    let report = buffer.report(ms(100_000));
    let last = report.delays[report.delays.len() * 9 / 10].as_secs_f64();
    assert!((last - 0.1).abs() < 0.003, "{last}");
    assert!(report.playout.unwrap().late <= 3, "{:?}", report.playout);
    let bounded = |min, max| {
        let model = PlayoutModel { min_margin: Span::from_millis(min), max_margin: Span::from_millis(max), ..MODEL };
        let mut buffer = FrameBuffer::new(model, Time::ZERO);
        for n in 0..6000 {
            arrive(&mut buffer, n, ms(n / 3 * 40 + 50 + n / 3 % 2 * 20), &[0]);
        }
        let delays = buffer.report(ms(100_000)).delays;
        (delays[delays.len() / 2].as_secs_f64() * 1000.0).round()
    };
    assert_eq!((bounded(60, 10_000), bounded(0, 15)), (120.0, 75.0));
}

/// The sender's clock may be ahead or behind by any offset, so that a frame arrives before its capture. The frames
/// shown, their times and the late ones stay the same, even if the first frame was slow and all others are faster.
#[test]
fn another_clock_changes_no_play_out() {
    let report = |ahead: i64| {
        let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
        for n in 0..900 {
            let (frame, slow) = (n / 3, if n < 3 { 400 } else { n / 3 % 5 * 7 });
            let captured = Offset::at(ms(500 + frame * 40)) + Offset(ahead);
            let part = if frame == 0 { Part::Key } else { Part::Delta };
            let packet = MediaPacket { sequence: n as u16, part, captured, last: n % 3 == 2 };
            buffer.on_packet(ms(500 + frame * 40 + 50 + slow), &packet);
        }
        (buffer.report(ms(20_000)), buffer.min_delay().unwrap())
    };
    let (one, min_delay) = report(0);
    assert_eq!(min_delay, Offset(50_000_000));
    // decisions are the same, and so are times except for rounding
    let near = |a: i64, b: i64| (a - b).abs() < 100;
    for ahead in [-1i64 << 40, -450_000_000, 450_000_000, 1 << 40] {
        let (other, of_other) = report(ahead);
        let [(a, of_a), (b, of_b)] = [(&one, min_delay), (&other, of_other)];
        let [PlayoutReport { buffered: waited, .. }, PlayoutReport { buffered, .. }] =
            [a, b].map(|it| it.playout.unwrap());
        let same = PlayoutReport { buffered: waited, ..b.playout.unwrap() };
        assert_eq!((b.freezes, Some(same)), (a.freezes, a.playout), "{ahead}");
        assert!(
            near(waited.0 as i64 / 300, buffered.0 as i64 / 300) && near(a.frozen.0 as i64, b.frozen.0 as i64),
            "{ahead}"
        );
        assert!(a.delays.iter().zip(&b.delays).all(|(a, b)| near(a.0 - of_a.0, b.0 - of_b.0)), "{ahead}");
        assert_eq!(of_b, of_a - Offset(ahead), "{ahead}");
    }
}

#[test]
fn fillers_between_frames_are_passed_over() {
    let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
    let parts =
        [(Part::Key, false), (Part::Key, true), (Part::Filler, false), (Part::Filler, false), (Part::Delta, true)];
    for (sequence, (part, last)) in (0..).zip(parts) {
        buffer
            .on_packet(ms(9), &MediaPacket { sequence, part, captured: Offset::at(ms(u64::from(sequence / 2))), last });
    }
    let counts = counts(&buffer, ms(1000));
    assert_eq!((counts.shown, counts.keys), (2, 1));
}

/// Frames of two packets every 40 ms, with these capture times; of the second one only the first packet was sent, and
/// no sequence number is missing.
#[test]
fn what_its_sender_gave_up_is_no_part_of_the_next_frame() {
    let play = |next: Part| {
        let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
        let parts = [
            (0, Part::Key, false),
            (0, Part::Key, true),
            (40, Part::Delta, false),
            (80, next, false),
            (80, next, true),
        ];
        for (sequence, (captured, part, last)) in (0..).zip(parts) {
            let now = ms(captured + 50);
            buffer.on_packet(now, &MediaPacket { sequence, part, captured: Offset::at(ms(captured)), last });
        }
        buffer
    };
    let decoding = play(Part::Key);
    let report = counts(&decoding, ms(1000));
    assert_eq!((report.shown, report.keys, report.undecodable, report.buffered), (2, 2, 0, Span::ZERO));
    assert_eq!(decoding.next_wake(), Time::NEVER);
    let blocked = play(Part::Delta);
    let report = counts(&blocked, ms(1000));
    assert_eq!(
        (report.shown, report.undecodable, blocked.next_wake()),
        (1, 1, ms(130 + 300)),
        "a key frame is asked for"
    );
}

proptest! {
    /// For any loss, delay, duplication and reordering: every complete frame is shown, undecodable or waiting; none is
    /// shown before it arrived or out of order, or without its dependency.
    #[test]
    fn every_frames_fate_is_known(
        packets in prop::collection::vec((0u64..3, 0u64..400, 0u32..100), 30..400),
        keys in prop::collection::vec(1u64..130, 0..6),
        end in 0u64..20_000,
    ) {
        let frames = packets.len() as u64 / 3;
        let mut keys = keys;
        keys.push(0);
        let mut arrivals = Vec::new();
        for (n, &(copies, late, lot)) in (0u64..frames * 3).zip(&packets) {
            // the very first packet arrives first: it determines where the sequence begins
            let late = if n == 0 || lot < 70 { 0 } else { late };
            let copies = if n == 0 || lot >= 10 { copies.max(1) } else { 0 };
            arrivals.extend((0..copies).map(|copy| (n / 3 * 40 + 50 + late + copy * 30, n)));
        }
        arrivals.sort_unstable();
        let mut buffer = FrameBuffer::new(MODEL, Time::ZERO);
        let mut arrived = vec![[false; 3]; frames as usize];
        let mut requests = 0;
        for &(at, n) in arrivals.iter().filter(|(at, _)| *at <= end) {
            arrived[(n / 3) as usize][(n % 3) as usize] = true;
            requests += u32::from(buffer.take_key_request(ms(at)));
            arrive(&mut buffer, n, ms(at), &keys);
        }
        let whole = arrived.iter().filter(|frame| **frame == [true; 3]).count() as u64;
        let report = buffer.report(ms(end));
        let counts = report.playout.unwrap();
        prop_assert!(report.complete == counts.shown + counts.undecodable + counts.waiting);
        // the rest of a frame that was given up may still arrive
        prop_assert!(report.complete <= whole, "{report:?} of {whole}");
        prop_assert!(counts.shown as usize == report.delays.len() && counts.late <= counts.shown);
        prop_assert!(report.delays.iter().all(|delay| *delay >= Offset(50_000_000)));
        let lost = arrived.iter().position(|frame| *frame != [true; 3]).map_or(frames, |lost| lost as u64);
        if requests == 0 && arrivals.last().is_some_and(|(at, _)| *at <= end) && !keys.iter().any(|key| *key > lost) {
            prop_assert!(counts.shown <= lost);
        }
    }
}
