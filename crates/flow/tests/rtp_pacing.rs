//! When packets of RTP leave: evenly by the rate, with credit for a timer that is late and for nothing else.

use paceline_control::{MediaController, Profile, RtpController, registry};
use paceline_flow::Segment;
use paceline_flow::rtp::{RtpConfig, RtpSender};
use paceline_packet::Extra;
use paceline_random::Stream;
use paceline_units::Time;

/// NADA before its first feedback: 800 kbit/s, which is a packet of 1000 bytes each 10 ms, or each millisecond with `rate` 8 Mbit/s.
fn sender(rate: f64) -> RtpSender {
    let given = [("min_rate", rate), ("max_rate", rate), ("silence", 0.0)];
    let controller = RtpController::new(registry::scheme("nada").unwrap(), Profile::Rfc, &given).unwrap();
    let settings = controller.settings();
    let config = RtpConfig { segment: 960, gap_jitter: 0.0, ..RtpConfig::new(Profile::Rfc, settings) };
    let mut sender = RtpSender::new(&config, controller, Stream::new(1, "sender"));
    sender.start(Time::ZERO, &mut Vec::new());
    sender
}

fn ms(n: f64) -> Time {
    Time::from_secs_f64(n / 1e3)
}

fn packets(out: &[Segment]) -> usize {
    out.iter().filter(|segment| matches!(segment.extra, Some(Extra::Rtp(_)))).count()
}

/// How many leave when `bytes` are written, and when each other does (ms), each timer fired on time.
fn write(sender: &mut RtpSender, at: f64, bytes: u64) -> (usize, Vec<f64>) {
    let (mut out, mut left) = (Vec::new(), Vec::new());
    sender.supply(bytes, ms(at), &mut out);
    let at_once = packets(&out);
    while !sender.acked_all() {
        let now = sender.next_wake();
        out.clear();
        sender.on_timer(now, &mut out);
        left.extend(std::iter::repeat_n(now.as_secs_f64() * 1e3, packets(&out)));
    }
    (at_once, left)
}

#[test]
fn idle_time_gives_no_credit() {
    let mut sender = sender(8e6);
    for at in [100.0, 200.0, 1000.0] {
        let (at_once, left) = write(&mut sender, at, 960 * 4);
        assert_eq!(at_once, 1, "at {at} ms");
        let expected = [at + 1.0, at + 2.0, at + 3.0];
        assert!(left.len() == 3 && left.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{left:?}");
    }
}

#[test]
fn a_gap_that_runs_is_waited_for() {
    let mut sender = sender(800e3);
    write(&mut sender, 100.0, 960);
    let (at_once, left) = write(&mut sender, 104.0, 960);
    assert!(at_once == 0 && left.len() == 1 && (left[0] - 110.0).abs() < 1e-3, "{left:?}");
}

#[test]
fn a_late_timer_catches_up_on_ten_milliseconds() {
    for (late, expected) in [(0.0, 1), (0.5, 1), (5.0, 6), (10.0, 11), (50.0, 11)] {
        let mut sender = sender(8e6);
        let mut out = Vec::new();
        sender.supply(960 * 100, ms(100.0), &mut out);
        assert_eq!(packets(&out), 1);
        out.clear();
        sender.on_timer(ms(101.0 + late), &mut out);
        assert_eq!(packets(&out), expected, "{late} ms late");
        // on time from there on
        out.clear();
        sender.on_timer(sender.next_wake(), &mut out);
        assert_eq!(packets(&out), 1);
    }
}
