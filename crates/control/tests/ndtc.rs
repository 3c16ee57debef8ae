//! NDTC's arithmetic against tables worked by hand from draft-ageneau-ccwg-ndtc (July 2026).

use crate::media;

use paceline_control::ndtc::law::{Averages, Frame, Law, Settings};
use paceline_control::{
    Arrivals, Controller, Fate, Interval, MediaController, PacketResult, PathView, Profile, RtpController, RtpEvent,
    RtpFeedback, RtpSession, SentPacket, registry,
};
use paceline_units::{Rate, Size, Span, Time};

/// 25 frames a second: TFRAME 40 ms, TRECV 24 ms, TSEND 12 ms.
const SETTINGS: Settings = Settings {
    frame: 0.040,
    recv: 0.024,
    send: 0.012,
    dither: 0.006,
    init: 10_000.0,
    min: 2000.0,
    max: 50_000.0,
    weight: 0.04,
    iterations: 3,
    margin: 0.25,
    alpha: 40.0,
    ecn_alpha: 400.0,
    beta: 0.7,
};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-9)
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// A frame of 10,000 bytes in 8 packets that left at `sent` ms over 12 ms and came over `recv` s.
fn whole(sent: u64, recv: f64) -> Frame {
    Frame { length: 10_000.0, send: 0.012, recv, sent: at(sent), packets: 8, lost: 0, marked: 0, timed: true }
}

/// The dual-variable EWMA: as long as 1/COUNT is above LAMBDA its averages are plain ones, from the 25th sample on they forget.
#[test]
fn the_first_samples_weigh_alike_and_later_ones_a_twenty_fifth() {
    let mut averages = Averages::default();
    for (send, recv) in [(1.0, 2.0), (3.0, 4.0), (5.0, 9.0)] {
        averages.update(send, recv, 0.04);
    }
    // means 3 and 5, squares 4 + 0 + 4 and 9 + 1 + 16, products 6 + 0 + 8
    assert!(close(averages.send, 3.0) && close(averages.recv, 5.0));
    assert!(close(averages.var_send, 8.0 / 3.0) && close(averages.var_recv, 26.0 / 3.0));
    assert!(close(averages.covar, 14.0 / 3.0));
    let mut averages = Averages::default();
    for _ in 0..99 {
        averages.update(1.0, 1.0, 0.04);
    }
    averages.update(2.0, 3.0, 0.04);
    // 1 + 0.04 · 1, 1 + 0.04 · 2, and 0.96 · 0.04 times 1, 4 and 2
    assert!(close(averages.send, 1.04) && close(averages.recv, 1.08));
    assert!(close(averages.var_send, 0.0384) && close(averages.var_recv, 0.1536) && close(averages.covar, 0.0768));
}

/// Samples, SLOPE, INTERCEPT, and ESTIMATE + MARGIN with KMARGIN = 1/4.
#[test]
fn fdace_s_line_estimate_and_margin() {
    type Row = (&'static [(f64, f64)], f64, f64, f64);
    let table: [Row; 6] = [
        // NRECV = 1 + NSEND / 2, from AVG_NRECV = 2.5 on: 2.25, 2.125, 2.0625; all of it is explained
        (&[(1.0, 1.5), (3.0, 2.5), (5.0, 3.5)], 0.5, 1.0, 2.0625),
        // as sent, so received: SLOPE 1 keeps AVG_NRECV
        (&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], 1.0, 0.0, 2.0),
        // nothing explained: AVG_NRECV 2, and a quarter of the deviation 1
        (&[(1.0, 1.0), (3.0, 1.0), (1.0, 3.0), (3.0, 3.0)], 0.0, 2.0, 2.25),
        // a falling line is none: R2 is 1 all the same
        (&[(1.0, 3.0), (3.0, 1.0)], 0.0, 2.0, 2.0),
        // steeper than 1 is 1: AVG_NRECV 2, INTERCEPT max(2 - 1.5, 0), so 2.5, 3, 3.5
        (&[(1.0, 1.0), (2.0, 3.0)], 1.0, 0.5, 3.5),
        // one sample alone
        (&[(1.0, 2.0)], 0.0, 2.0, 2.0),
    ];
    for (row, (samples, slope, intercept, estimate)) in table.into_iter().enumerate() {
        let mut averages = Averages::default();
        for &(send, recv) in samples {
            averages.update(send, recv, 0.04);
        }
        let line = averages.line();
        assert!(close(line.0, slope) && close(line.1, intercept), "row {row}: {line:?}");
        assert!(close(averages.estimate(3, 0.25), estimate), "row {row}: {}", averages.estimate(3, 0.25));
        // what the appendix unrolls
        let unrolled = slope * slope * slope * averages.recv + (slope * slope + slope + 1.0) * intercept;
        assert!(close(averages.estimate(3, 0.0), unrolled), "row {row}: {unrolled}");
    }
}

/// TARGET = TRECV AVAILABLE: a frame that comes as it left has room for twice as much, one that takes TRECV is of the right size.
#[test]
fn the_target_is_what_arrives_within_trecv() {
    for (recv, target) in [(0.012, 20_000.0), (0.024, 10_000.0), (0.048, 5000.0), (0.2, 2000.0), (0.002, 50_000.0)] {
        let mut law = Law::new(SETTINGS);
        assert_eq!((law.target, law.slope), (10_000.0, 1.0), "INIT_TARGET");
        law.frame(&whole(0, recv), at(50));
        assert!(close(law.target, target), "{recv} s: {}", law.target);
        assert!(close(law.available, 10_000.0 / recv.min(0.12)), "RECV counts as 3 TFRAME at most");
    }
}

/// A frame that is one packet, shorter than MIN_TARGET / 2, incomplete, or whose times are not known says nothing of capacity.
#[test]
fn fdace_runs_on_whole_frames_alone() {
    let one = whole(0, 0.024);
    for frame in [
        Frame { packets: 1, ..one },
        Frame { length: 999.0, ..one },
        Frame { lost: 1, ..one },
        Frame { timed: false, ..one },
    ] {
        let mut law = Law::new(SETTINGS);
        law.frame(&frame, at(50));
        assert_eq!(law.averages, Averages::default(), "{frame:?}");
        assert_eq!(law.target, 10_000.0);
    }
    let mut law = Law::new(SETTINGS);
    law.frame(&Frame { length: 1000.0, ..one }, at(50));
    assert_eq!(law.averages.count, 1.0);
}

/// The AIMD logic, with TARGET 10,000 and CMAX 20,000. Of each frame: when it left, lost of 8, when feedback came, and CSIZE
/// after it.
#[test]
fn the_aimd_logic_by_losses() {
    let mut law = Law::new(SETTINGS);
    law.frame(&whole(0, 0.024), at(50));
    assert_eq!(law.size, 50_000.0, "MAX_TARGET; nothing to add above CMAX");
    let table = [
        // min(50000, 20000) · 0.7
        (40, 1, 90, 14_000.0),
        // left before that feedback: neither down nor up
        (80, 1, 130, 14_000.0),
        // left after it: up by ALPHA
        (120, 0, 170, 14_040.0),
        (160, 2, 210, 9828.0),
    ];
    for (row, (sent, lost, now, size)) in table.into_iter().enumerate() {
        law.frame(&Frame { lost, ..whole(sent, 0.024) }, at(now));
        assert!(close(law.size, size), "row {row}: {}", law.size);
    }
    // below TARGET the flow is limited by congestion
    assert!(close(law.target, 9828.0));
    // no feedback for long is a loss, and MIN_TARGET the least
    for _ in 0..20 {
        law.silence(at(300));
    }
    assert_eq!(law.target, 2000.0);
}

/// By marks: `ecn_average` begins with 1, and growth is by EALPHA, in the frame of the mark too.
#[test]
fn the_aimd_logic_by_marks() {
    let mut law = Law::new(SETTINGS);
    law.frame(&whole(0, 0.024), at(50));
    assert!(close(law.ecn_average, 15.0 / 16.0));
    law.frame(&Frame { marked: 2, ..whole(40, 0.024) }, at(90));
    // 15/16 + (1/4 - 15/16) / 16
    let average = 229.0 / 256.0;
    assert!(close(law.ecn_average, average));
    let size = 20_000.0 * (1.0 - average * 0.3) + 300.0;
    assert!(close(law.size, size), "{}", law.size);
    law.frame(&Frame { marked: 8, ..whole(80, 0.024) }, at(130));
    assert!(close(law.size, size), "left before the feedback on that: no decrease, and of all marks no increase");
    law.frame(&whole(120, 0.024), at(170));
    assert!(close(law.size, size + 400.0));
    // a loss makes growth slow again
    law.frame(&Frame { lost: 1, ..whole(160, 0.024) }, at(210));
    let size = (size + 400.0) * 0.7;
    law.frame(&whole(220, 0.024), at(270));
    assert!(close(law.size, size + 40.0), "{}", law.size);
}

/// CSLOPE = 1 at CTARGET = CMAX, 0 at CTARGET = TARGET, and (1 - 0.5 CMAX / CTARGET) / 0.5 between, where FDACE sees no limit.
#[test]
fn congestion_caps_the_slope() {
    let mut law = Law::new(SETTINGS);
    // NRECV = NSEND: slope 1, TARGET 20,000 and more
    for (send, sent) in [(0.012, 0), (0.010, 40), (0.014, 80)] {
        law.frame(&Frame { send, recv: send, ..whole(sent, 0.0) }, at(sent + 50));
    }
    assert!(close(law.slope, 1.0) && close(law.target, 20_000.0), "{} {}", law.slope, law.target);
    law.frame(&Frame { lost: 1, ..whole(120, 0.012) }, at(170));
    // CMAX 40,000, CSIZE 28,000
    assert!(close(law.size, 28_000.0) && close(law.slope, 4.0 / 7.0) && close(law.target, 20_000.0));
    law.frame(&Frame { lost: 1, ..whole(200, 0.012) }, at(250));
    assert!(close(law.size, 19_600.0) && law.slope == 0.0 && close(law.target, 19_600.0));
}

/// The pacer: SEND = min(PACE LENGTH / TARGET, TFRAME), DELAY = SLOPE max(PACE + SLOPE DELTA - SEND, 0), DELTA 6 ms.
#[test]
fn frames_leave_over_a_dithered_time() {
    // SLOPE 1, as at the beginning; TARGET 10,000
    let law = Law::new(SETTINGS);
    for (length, draw, delay, send) in [
        (10_000.0, 0.0, 0.006, 0.012),
        (10_000.0, 1.0, 0.006, 0.018),
        (10_000.0, -1.0, 0.006, 0.006),
        (5000.0, 0.0, 0.012, 0.006),
        (20_000.0, 0.0, 0.0, 0.024),
        (100_000.0, 1.0, 0.0, 0.040),
    ] {
        let schedule = law.schedule(length, draw);
        assert!(close(schedule.send, send) && close(schedule.delay, delay), "{length} {draw}: {schedule:?}");
    }
    // SLOPE 0: TRECV, whatever the draw, and no delay
    let mut law = Law::new(SETTINGS);
    law.frame(&whole(0, 0.024), at(50));
    for draw in [-1.0, 0.0, 1.0] {
        let schedule = law.schedule(10_000.0, draw);
        assert!(close(schedule.send, 0.024) && schedule.delay == 0.0, "{schedule:?}");
    }
}

/// A controller whose packets have 960 bytes of payload and 40 of headers, at 25 frames a second.
fn started(given: &[(&str, f64)]) -> RtpController {
    let mut controller = RtpController::new(registry::scheme("ndtc").unwrap(), Profile::Rfc, given).unwrap();
    controller.frames_every(Span::from_millis(40));
    let session = RtpSession { packet: Size(1000), interval: Span::from_millis(40) };
    controller.on_feedback(&RtpEvent::Started(session), &path(0));
    controller
}

fn path(now: u64) -> PathView {
    PathView { segment: 960, ..media::path(at(now)) }
}

/// Feedback at `now` on a frame of five full packets from number `first` on, that left at `sent` ms over 12 ms and came over `recv`
/// ms; the packet `lost` of it did not.
fn feed(controller: &mut RtpController, now: u64, first: u32, sent: u64, recv: u64, lost: Option<u32>) {
    let fate = |k: u32| match lost {
        Some(lost) if lost == k => Fate::Lost,
        _ => Fate::Arrived { at: Some(at(sent + 20 + recv * u64::from(k) / 4)), marked: false },
    };
    let packet = |k: u32| PacketResult {
        sent: at(sent + 3 * u64::from(k)),
        packet: SentPacket {
            number: first + k,
            size: Size(1000),
            payload: Size(960),
            ends_frame: k == 4,
            ..SentPacket::default()
        },
        fate: fate(k),
    };
    let arrivals = Arrivals {
        packets: (0..5).map(packet).collect(),
        rtt: Some(Span::from_millis(40)),
        since: Span::from_millis(40),
        backlog: Size(0),
        waiting: Span::ZERO,
        in_flight: Size(0),
        interval: Interval::Used,
    };
    controller.on_feedback(&RtpEvent::Arrivals(arrivals), &path(now));
}

/// The encoder's rate is TARGET / TFRAME with the headers of its packets; what feedback tells of packets is told of frames.
#[test]
fn feedback_on_packets_sets_the_encoder_s_rate() {
    let mut controller = started(&[("init_target", 4800.0), ("max_target", 20_000.0)]);
    // five full packets, 25 times a second
    assert_eq!(controller.target(), Some(Rate(1_000_000)));
    assert_eq!(controller.rate(), 125_000.0);
    // LENGTH is 3840 bytes: in 12 ms as they left, in 24 there is room for 7680, eight packets
    feed(&mut controller, 100, 0, 0, 12, None);
    assert_eq!(controller.target(), Some(Rate(8 * 25 * (7680 + 8 * 40))));
    // a loss: CSIZE is 0.7 · min(20000, 2 · 7680), above TARGET
    feed(&mut controller, 200, 5, 100, 12, Some(2));
    assert_eq!(controller.target(), Some(Rate(8 * 25 * (7680 + 8 * 40))));
    // two more: 0.343 · 15360 = 5268.48 bytes in 6 packets
    feed(&mut controller, 300, 10, 210, 12, Some(2));
    feed(&mut controller, 400, 15, 310, 12, Some(2));
    assert_eq!(controller.target(), Some(Rate(8 * 25 * (5268 + 6 * 40) + 96)));
    // silence counts as one
    controller.on_feedback(&RtpEvent::Silence, &path(1000));
    assert_eq!(controller.target(), Some(Rate((8.0 * 25.0 * (5268.48 * 0.7 + 4.0 * 40.0)) as u64)));
}

/// `frame_rate` is the encoder's unless it is given; `max_target` gives way to `min_target`, and INIT_TARGET to both.
#[test]
fn parameters_are_brought_into_order() {
    let target = |given: &[(&str, f64)]| started(given).target().unwrap();
    assert_eq!(target(&[("frame_rate", 50.0), ("init_target", 4800.0)]), Rate(2_000_000));
    assert_eq!(target(&[("init_target", 100.0)]), Rate(8 * 25 * (2000 + 3 * 40)));
    assert_eq!(target(&[("init_target", 1e6)]), Rate(8 * 25 * (8000 + 9 * 40)));
    assert_eq!(target(&[("min_target", 9600.0)]), Rate(8 * 25 * (9600 + 10 * 40)));
    let settings = started(&[("silence", 3.0)]).settings();
    assert!(settings.frames && settings.l4s && settings.even && settings.silence == 3);
    assert_eq!(settings.feedback, RtpFeedback::Arrivals);
}
