//! The acked bitrate, from the packets of the last second or more: robust against single pauses of the path.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/robust_throughput_estimator.cc. Left out: packets that
//! feedback does not cover, which do not occur here.

use super::{PacketResult, nanos};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// This many packets are kept, and all of the last second, but at most MAX_WINDOW_PACKETS and none older than
/// MAX_WINDOW_DURATION.
const WINDOW_PACKETS: usize = 20;
const MIN_WINDOW_DURATION: i64 = Span::from_secs(1).0 as i64;
const MAX_WINDOW_PACKETS: usize = 500;
const MAX_WINDOW_DURATION: i64 = Span::from_secs(5).0 as i64;
/// Packets needed for an estimate.
const REQUIRED_PACKETS: usize = 10;
/// If a packet arrived this long before one that feedback has already reported, the receiver's clock has jumped.
const MAX_REORDERING_TIME: i64 = Span::from_secs(1).0 as i64;
/// The minimum time over which a rate is computed.
const MIN_DURATION: i64 = Span::from_millis(1).0 as i64;

#[derive(Clone, Copy, Debug)]
struct Received {
    arrived: Time,
    sent: Time,
    bits: f64,
}

/// The packets of the window, in order of arrival.
#[derive(Clone, Debug)]
pub struct Throughput {
    window: VecDeque<Received>,
    /// The latest departure of the packets that have left the window.
    latest_discarded_send_time: Option<Time>,
    min_window_duration: i64,
}

impl Default for Throughput {
    fn default() -> Throughput {
        Throughput {
            window: VecDeque::new(),
            latest_discarded_send_time: None,
            min_window_duration: MIN_WINDOW_DURATION,
        }
    }
}

impl Throughput {
    /// Handles feedback on these packets, in order of arrival.
    pub fn feedback(&mut self, packets: &[PacketResult]) {
        for packet in packets {
            let Some(arrived) = packet.arrived else { continue };
            let place = self.window.iter().rposition(|p| p.arrived <= arrived).map_or(0, |i| i + 1);
            self.window.insert(place, Received { arrived, sent: packet.sent, bits: packet.size * 8.0 });
            let last = self.window.back().map_or(arrived, |p| p.arrived);
            if nanos(last, arrived) > MAX_REORDERING_TIME {
                self.window.clear();
                self.latest_discarded_send_time = None;
            }
        }
        while let Some(first) = self.window.front().copied().filter(|first| self.outside(first)) {
            self.latest_discarded_send_time = self.latest_discarded_send_time.max(Some(first.sent));
            self.window.pop_front();
        }
    }

    fn outside(&self, first: &Received) -> bool {
        let length = self.window.back().map_or(0, |last| nanos(last.arrived, first.arrived));
        let packets = self.window.len();
        packets > MAX_WINDOW_PACKETS
            || length > MAX_WINDOW_DURATION
            || packets > WINDOW_PACKETS && length > self.min_window_duration
    }

    /// The rate; `None` before enough packets have arrived.
    pub fn rate(&self) -> Option<f64> {
        if self.window.len() < REQUIRED_PACKETS {
            return None;
        }
        let received = self.receive_rate()?;
        Some(self.send_rate().map_or(received, |sent| sent.min(received)))
    }

    /// The time of arrivals does not include the first packet's transmission, so its size does not count. The longest
    /// gap counts as the second longest, since a path may pause.
    fn receive_rate(&self) -> Option<f64> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let (mut longest, mut second) = (0, 0);
        for (a, b) in self.window.iter().zip(self.window.iter().skip(1)) {
            let gap = nanos(b.arrived, a.arrived);
            if gap > longest {
                (longest, second) = (gap, longest);
            } else if gap > second {
                second = gap;
            }
        }
        let bits: f64 = self.window.iter().skip(1).map(|p| p.bits).sum();
        Some(per_second(bits, nanos(last.arrived, first.arrived) - longest + second))
    }

    /// The pacer waits for a packet's size after sending it, so the last packet's size does not count. Packets sent
    /// before one that has left the window were late and do not count either; without enough others there is no rate.
    fn send_rate(&self) -> Option<f64> {
        let mut counted = 0;
        let (mut first, mut last, mut bits) = (Time::NEVER, None, 0.0);
        for packet in
            self.window.iter().filter(|p| self.latest_discarded_send_time.is_none_or(|latest| p.sent >= latest))
        {
            counted += 1;
            first = first.min(packet.sent);
            bits += packet.bits;
            if last.is_none_or(|(sent, _)| packet.sent > sent) {
                last = Some((packet.sent, packet.bits));
            }
        }
        let (sent, of_last) = last.filter(|_| counted >= REQUIRED_PACKETS)?;
        Some(per_second(bits - of_last, nanos(sent, first)))
    }
}

fn per_second(bits: f64, time: i64) -> f64 {
    bits * 1e9 / time.max(MIN_DURATION) as f64
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's robust_throughput_estimator_unittest.cc. As there, rates are in bytes per
    //! second and packets have 1000 bytes.

    use super::*;

    struct Stream {
        throughput: Throughput,
        sent: Time,
        arrived: Time,
    }

    fn stream(min_window_ms: u64) -> Stream {
        let throughput =
            Throughput { min_window_duration: Span::from_millis(min_window_ms).0 as i64, ..Throughput::default() };
        Stream { throughput, sent: Time(100_000_000_000), arrived: Time(10_000_000_000) }
    }

    impl Stream {
        fn packets(&mut self, n: usize, sent: f64, received: f64) -> Vec<PacketResult> {
            (0..n)
                .map(|_| {
                    self.arrived += Span::from_secs_f64(1000.0 / received);
                    let packet = PacketResult::new(self.sent, Some(self.arrived), 1000.0);
                    self.sent += Span::from_secs_f64(1000.0 / sent);
                    packet
                })
                .collect()
        }

        fn run(&mut self, n: usize, sent: f64, received: f64) -> Option<f64> {
            let packets = self.packets(n, sent, received);
            self.acked_bitrate(&packets)
        }

        fn acked_bitrate(&mut self, packets: &[PacketResult]) -> Option<f64> {
            self.throughput.feedback(packets);
            self.throughput.rate().map(|rate| rate / 8.0)
        }
    }

    #[track_caller]
    fn near(rate: Option<f64>, want: f64, share: f64) {
        let rate = rate.expect("a rate");
        assert!((rate - want).abs() <= share * want, "{rate} instead of {want}");
    }

    #[test]
    fn ten_packets_make_an_estimate() {
        let mut stream = stream(1000);
        assert_eq!(stream.run(9, 100e3, 100e3), None);
        near(stream.run(1, 100e3, 100e3), 100e3, 1e-9);
        near(stream.run(15, 100e3, 100e3), 100e3, 1e-9);
    }

    #[test]
    fn it_follows_the_rate_within_a_second() {
        let mut stream = stream(1000);
        for _ in 0..10 {
            near(stream.run(10, 100e3, 100e3), 100e3, 1e-9);
        }
        for _ in 0..20 {
            let rate = stream.run(10, 200e3, 200e3).unwrap();
            assert!((100e3 - 1e-6..=200e3 + 1e-6).contains(&rate), "{rate}");
        }
        for _ in 0..20 {
            near(stream.run(10, 200e3, 200e3), 200e3, 1e-9);
        }
        for _ in 0..5 {
            let rate = stream.run(10, 50e3, 50e3).unwrap();
            assert!((50e3 - 1e-6..=200e3 + 1e-6).contains(&rate), "{rate}");
        }
        for _ in 0..5 {
            near(stream.run(10, 50e3, 50e3), 50e3, 1e-9);
        }
    }

    #[test]
    fn the_slower_side_counts() {
        near(stream(1000).run(20, 100e3, 25e3), 25e3, 0.05);
        near(stream(1000).run(20, 50e3, 100e3), 50e3, 0.05);
    }

    #[test]
    fn a_pause_of_the_path_is_left_out() {
        let mut stream = stream(500);
        near(stream.run(20, 100e3, 100e3), 100e3, 1e-9);
        stream.arrived += Span::from_millis(250);
        for _ in 0..30 {
            near(stream.run(1, 100e3, 600e3), 100e3, 0.05);
        }
        for _ in 0..20 {
            near(stream.run(5, 100e3, 100e3), 100e3, 0.05);
        }
    }

    #[test]
    fn lost_packets_do_not_count() {
        let mut stream = stream(1000);
        let mut packets = stream.packets(20, 100e3, 100e3);
        for lost in packets.iter_mut().skip(1).step_by(2) {
            lost.arrived = None;
        }
        near(stream.acked_bitrate(&packets), 50e3, 0.05);
    }

    #[test]
    fn feedback_out_of_order_ends_as_if_in_order() {
        let mut stream = stream(1000);
        near(stream.run(20, 100e3, 100e3), 100e3, 1e-9);
        let late = stream.packets(10, 100e3, 100e3);
        assert!(stream.run(10, 100e3, 100e3).unwrap() < 99e3);
        near(stream.acked_bitrate(&late), 100e3, 1e-9);
        for _ in 0..10 {
            near(stream.run(15, 100e3, 100e3), 100e3, 1e-9);
        }
    }

    #[test]
    fn a_packet_that_comes_very_late_does_not_stretch_the_sending() {
        let mut stream = stream(500);
        let mut late = stream.packets(1, 100e3, 100e3);
        for _ in 0..10 {
            near(stream.run(10, 100e3, 100e3), 100e3, 1e-9);
        }
        late[0].arrived = Some(stream.arrived);
        near(stream.acked_bitrate(&late), 100e3, 0.05);
        for _ in 0..10 {
            near(stream.run(10, 100e3, 100e3), 100e3, 0.05);
        }
    }

    #[test]
    fn a_receiver_clock_that_jumps_back_begins_anew() {
        let mut stream = stream(1000);
        near(stream.run(20, 100e3, 100e3), 100e3, 1e-9);
        stream.arrived = stream.arrived - Span::from_secs(2);
        near(stream.run(20, 200e3, 200e3), 200e3, 1e-9);
    }

    #[test]
    fn a_minute_of_silence_begins_anew() {
        let mut stream = stream(1000);
        near(stream.run(20, 100e3, 100e3), 100e3, 0.05);
        stream.sent += Span::from_secs(60);
        stream.arrived += Span::from_secs(60);
        assert_eq!(stream.run(5, 100e3, 100e3), None);
        for _ in 0..4 {
            near(stream.run(5, 100e3, 100e3), 100e3, 1e-9);
        }
    }

    #[test]
    fn the_window_has_500_packets_at_most() {
        let mut stream = stream(1000);
        stream.run(2000, 1e9, 1e9);
        assert_eq!(stream.throughput.window.len(), 500);
    }
}
