//! The cases and numbers of libwebrtc's delay_based_bwe_unittest.cc, on a link and a stream like those of its helper.

use super::*;
use crate::gcc::probe_estimate::{Cluster, ProbeBitrateEstimator};
use crate::gcc::throughput::Throughput;

const FIVE: Cluster = Cluster { id: 0, packets: 5, bytes: 2000.0 };
const EIGHT: Cluster = Cluster { id: 1, packets: 8, bytes: 4000.0 };

#[derive(Default)]
struct Bench {
    delay: Delay,
    throughput: Throughput,
    probe: ProbeBitrateEstimator,
    now: Time,
    /// How far the receiver's clock is ahead.
    offset: i64,
    /// The estimate, if the last feedback changed it.
    latest: Option<f64>,
}

fn bench() -> Bench {
    Bench { now: Time(100_000_000_000), ..Bench::default() }
}

fn ms(n: f64) -> Span {
    Span::from_secs_f64(n / 1e3)
}

impl Bench {
    fn feedback(&mut self, packets: &[PacketResult]) {
        let packets: Vec<PacketResult> = packets
            .iter()
            .map(|p| PacketResult { arrived: p.arrived.map(|t| Time(t.0.saturating_add_signed(self.offset))), ..*p })
            .collect();
        for packet in &packets {
            self.probe.packet(packet);
        }
        self.throughput.feedback(&packets);
        let found = self.probe.take();
        let outcome = self.delay.feedback(&packets, self.now, self.throughput.rate(), found);
        if outcome.rate.is_some() {
            self.latest = outcome.rate;
        }
    }

    /// One packet, which arrives now.
    fn packet(&mut self, sent: Time, size: f64, cluster: Option<Cluster>) {
        self.feedback(&[PacketResult { cluster, ..PacketResult::new(sent, Some(self.now), size) }]);
    }

    fn burst(&mut self, cluster: Cluster, sent_ms: f64, arrived_ms: f64) {
        let mut sent = Time::ZERO;
        for _ in 0..cluster.packets {
            sent += ms(sent_ms);
            self.now += ms(arrived_ms);
            self.packet(sent, 1000.0, Some(cluster));
        }
    }
}

#[track_caller]
fn near(got: Option<f64>, want: f64, within: f64) {
    let got = got.expect("an estimate");
    assert!((got - want).abs() <= within, "{got} instead of {want}");
}

#[test]
fn probes_set_the_estimate() {
    let mut b = bench();
    b.burst(FIVE, 10.0, 10.0);
    assert!(b.latest.is_some());
    b.burst(EIGHT, 5.0, 5.0);
    assert!(b.latest.unwrap() > 1500e3, "{:?}", b.latest);

    let mut b = bench();
    b.burst(FIVE, 10.0, 1.0);
    assert_eq!(b.latest, None, "it came ten times faster");

    for (sent, arrived, want) in [(5.0, 7.0, 1140e3), (1.0, 2.0, 4000e3)] {
        let mut b = bench();
        b.burst(EIGHT, sent, arrived);
        near(b.latest, 0.95 * want, 10e3);
    }
}

#[test]
fn other_packets_among_probes_do_no_harm() {
    let mut b = bench();
    for _ in 0..5 {
        b.now += ms(5.0);
        b.packet(b.now, 1000.0, Some(FIVE));
        b.now += ms(5.0);
        b.packet(b.now, 100.0, None);
    }
    assert!(b.latest.unwrap() > 800e3 - 1e-6, "{:?}", b.latest);
}

/// 5 s with a packet of 1200 bytes each 20 ms, the first five as probes: 730 kbit/s, within 50.
fn five_seconds() -> (Bench, Time) {
    let (mut b, mut sent) = (bench(), Time::ZERO);
    for i in 0..253 {
        let cluster = (i < 5).then_some(Cluster { id: 0, packets: 5, bytes: 5000.0 });
        assert!(i >= 3 || b.latest.is_none());
        b.packet(sent, 1200.0, cluster);
        b.now += ms(20.0);
        sent += ms(20.0);
    }
    near(b.latest, 730e3, 50e3);
    (b, sent)
}

#[test]
fn it_begins_with_a_probe_and_reordering_does_not_disturb_it() {
    let (mut b, mut sent) = five_seconds();
    for _ in 0..10 {
        b.now += ms(40.0);
        sent += ms(40.0);
        b.packet(sent, 1000.0, None);
        b.packet(sent - ms(20.0), 1000.0, None);
    }
    near(b.latest, 730e3, 50e3);
}

/// A stream of 30 frames per second in packets of 1200 bytes, over a link on which packets arrive back to back.
struct Stream {
    bench: Bench,
    fps: f64,
    capacity: f64,
    free: Time,
    first: bool,
}

fn stream(fps: f64, capacity: f64) -> Stream {
    let bench = bench();
    Stream { free: bench.now, bench, fps, capacity, first: true }
}

impl Stream {
    /// Sends a frame at this rate; returns whether the estimate fell below it.
    fn frame(&mut self, rate: f64) -> bool {
        let bits = (rate / self.fps).round();
        let n = ((bits + 4.0 * 1200.0) / (8.0 * 1200.0)).floor().max(1.0);
        let size = ((bits + 4.0 * n) / (8.0 * n)).floor();
        let start = self.bench.now;
        let mut packets = Vec::new();
        for _ in 0..n as u32 {
            self.free = self.free.max(start) + Span::from_micros((size * 8e6 / self.capacity).round() as u64);
            packets.push(PacketResult::new(start + Span::from_secs(1), Some(self.free), size));
        }
        self.bench.now = self.free;
        self.bench.latest = None;
        self.bench.feedback(&packets);
        self.bench.now = start + Span::from_micros((1e6 / self.fps).round() as u64);
        let Some(latest) = self.bench.latest else { return false };
        !std::mem::take(&mut self.first) && latest < rate
    }

    /// Ten seconds at 1 Mbit/s, with the estimate as its rate.
    fn steady(&mut self) -> f64 {
        let (mut rate, mut fell) = (900e3, false);
        for _ in 0..300 {
            let over = self.frame(rate);
            fell |= over;
            assert!(!over || (800e3..1100e3).contains(&self.bench.latest.unwrap()), "{:?}", self.bench.latest);
            rate = self.bench.latest.unwrap_or(rate);
            if fell && rate > 1e6 {
                break;
            }
        }
        assert!(fell);
        near(Some(rate), 1e6, 180e3);
        rate
    }

    /// How long after a halving of the capacity the estimate falls below it, in milliseconds.
    fn drop(&mut self, mut rate: f64) -> f64 {
        self.capacity = 500e3;
        let start = self.bench.now;
        for _ in 0..100 {
            self.frame(rate);
            rate = self.bench.latest.unwrap_or(rate);
            if rate <= 500e3 {
                return self.bench.now.since(start).as_secs_f64() * 1e3;
            }
        }
        panic!("it stays at {rate}")
    }
}

/// Within one frame of libwebrtc's 500 ms; with a receiver's clock that jumps by 30 s, 867 and 933 ms.
#[test]
fn the_estimate_follows_a_capacity_that_halves() {
    for (offset, want) in [(0, 500.0), (30, 867.0), (-30, 933.0)] {
        let mut s = stream(30.0, 1e6);
        let rate = s.steady();
        s.bench.offset = offset * 1_000_000_000;
        near(Some(s.drop(rate)), want, 34.0);
    }
}

/// libwebrtc takes 617 frames from 30 to 500 kbit/s.
#[test]
fn the_estimate_grows_by_8_percent_a_second() {
    let mut s = stream(30.0, 1e6);
    let (mut rate, mut frames) = (30e3, 0);
    while rate < 500e3 {
        assert!(!s.frame(rate));
        rate = s.bench.latest.unwrap_or(rate);
        frames += 1;
    }
    assert!((616..=618).contains(&frames), "{frames}");
}

/// 300 kbit/s into 200, before the throughput is known: detected within 40 frames, and then 0.8 to 1 times the
/// capacity.
#[test]
fn an_overuse_at_the_very_beginning() {
    let mut s = stream(90.0, 200e3);
    s.bench.delay.aimd.start(300e3);
    let mut rate = 300e3;
    for _ in 0..40 {
        if s.frame(rate) {
            let latest = s.bench.latest.unwrap();
            assert!(latest <= 200e3 && latest > 160e3, "{latest}");
            return;
        }
        rate = s.bench.latest.unwrap_or(rate);
    }
    panic!("no overuse");
}

/// 50 frames a second, then groups of 15 packets a millisecond apart, each group 10 ms later than it should be.
#[test]
fn packets_sent_close_together_are_one_group() {
    let (mut b, mut sent) = (bench(), Time::ZERO);
    for _ in 0..=300 {
        b.packet(sent, 1000.0, None);
        b.now += ms(20.0);
        sent += ms(20.0);
    }
    assert!(b.latest.unwrap() >= 400e3);
    for _ in 0..100 {
        for _ in 0..15 {
            b.packet(sent, 100.0, None);
            b.now += ms(1.0);
            sent += ms(1.0);
        }
        b.now += ms(10.0);
        sent += ms(5.0);
    }
    assert!(b.latest.unwrap() < 400e3, "{:?}", b.latest);
}

#[test]
fn after_a_pause_the_detector_begins_anew() {
    for silence in [35.0, 640.0] {
        let (mut b, mut sent) = (bench(), Time::ZERO);
        for _ in 0..3000 {
            b.packet(sent, 1000.0, None);
            b.now += ms(10.0);
            sent += ms(10.0);
        }
        let before = b.delay.aimd.estimate().unwrap();
        b.now += ms(1000.0 * silence);
        sent += ms(1000.0 * silence);
        for _ in 0..24 {
            b.packet(sent, 1000.0, None);
            b.now += ms(20.0);
            sent += ms(10.0);
        }
        assert!(b.delay.aimd.estimate().unwrap() < before);
    }
}

/// Sent each 9.75 and 10.25 ms, received each 9.5 and 10.5: no delay builds up, and none is detected.
#[test]
fn times_finer_than_a_millisecond_count() {
    let mut b = bench();
    let mut last = 0.0;
    for _ in 0..1000 {
        b.now += ms(0.5);
        b.packet(b.now - ms(0.5), 1000.0, None);
        b.now += ms(9.5);
        b.packet(b.now - ms(0.25), 1000.0, None);
        b.now += ms(10.0);
        let rate = b.latest.unwrap_or(0.0);
        assert!(rate >= last);
        last = rate;
    }
    assert!(last > 0.0);
}
