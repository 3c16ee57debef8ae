//! The viewer of a live video: which frames arrive complete and how old they are then, and when the picture freezes.
//!
//! A frame is shown as soon as all its packets have arrived, unless a later one has been shown. There is no jitter
//! buffer, and frames do not depend on each other.

use crate::picture::Picture;
use crate::playout::PlayoutReport;
use paceline_units::{Offset, Span, Time};
use std::collections::VecDeque;

/// The maximum number of packets kept.
const MAX_PACKETS: usize = 4096;
/// A jump of the sequence number beyond this is no gap: numbering has restarted.
const MAX_JUMP: usize = 3000;
/// A packet as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct FramePacket {
    /// Its sequence number.
    pub sequence: u16,
    /// The timestamp, common to all packets of its frame.
    pub timestamp: u32,
    /// Whether it is the last of its frame.
    pub last: bool,
    /// Capture time of its frame, on the receiver's clock; the sender's clock may have any constant offset.
    pub captured: Offset,
}

/// The fates of frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewReport {
    /// Frames of which all packets have arrived.
    pub complete: u64,
    /// The times from a frame's capture to the arrival of its last packet, in ascending order; of very many frames only
    /// every second, fourth, ... one.
    pub delays: Vec<Offset>,
    /// How often the picture froze, or never appeared.
    pub freezes: u64,
    /// The total time of these freezes: the whole time that each such picture was shown.
    pub frozen: Span,
    /// Further results if frames are buffered and depend on each other.
    pub playout: Option<PlayoutReport>,
}

impl ViewReport {
    /// Mean delay; `None` without a frame.
    #[must_use]
    pub fn mean_delay(&self) -> Option<Offset> {
        let sum: i128 = self.delays.iter().map(|delay| i128::from(delay.0)).sum();
        sum.checked_div(self.delays.len() as i128).map(|mean| Offset(mean as i64))
    }

    /// The `q`-quantile of the delays; `None` without a frame.
    #[must_use]
    pub fn delay(&self, q: f64) -> Option<Offset> {
        let rank = libm::ceil(q * self.delays.len() as f64) as usize;
        self.delays.get(rank.max(1) - 1).copied()
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
struct Packet {
    timestamp: u32,
    last: bool,
    captured: Offset,
    /// Whether its frame is known to be complete; only set on last packets.
    whole: bool,
}

/// The viewer.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    picture: Picture,
    /// Frames of which all packets have arrived.
    complete: u64,
    /// The sequence number of the first packet kept.
    base: u16,
    packets: VecDeque<Option<Packet>>,
}

impl Viewer {
    /// A viewer that expects a picture from `start` on.
    #[must_use]
    pub fn new(start: Time) -> Viewer {
        Viewer { picture: Picture::new(start), ..Viewer::default() }
    }

    /// Counts frames captured at `captured` or later, and freezes that end after `at`.
    pub fn measure_from(&mut self, at: Time, captured: Offset) {
        self.picture.measure_from(at, captured);
        self.complete = 0;
    }

    /// A packet has arrived. Duplicates have no effect.
    pub fn on_packet(&mut self, now: Time, packet: &FramePacket) {
        let mut place = usize::from(packet.sequence.wrapping_sub(self.base));
        if self.packets.is_empty() || (place > self.packets.len() + MAX_JUMP && place < usize::from(u16::MAX / 2)) {
            self.packets.clear();
            self.base = packet.sequence;
            place = 0;
        } else if place >= self.packets.len() && place >= usize::from(u16::MAX / 2) {
            return; // too late
        }
        let late = place + 1 < self.packets.len();
        if place >= self.packets.len() {
            self.packets.resize(place + 1, None);
        }
        if self.packets[place].is_some() {
            return;
        }
        let FramePacket { timestamp, last, captured, .. } = *packet;
        self.packets[place] = Some(Packet { timestamp, last, captured, whole: false });
        if last || late {
            self.look(now, place);
        }
        if last && late {
            // the start of the next frame is now certain
            self.look(now, place + 1);
        }
        while self.packets.len() > MAX_PACKETS {
            self.packets.pop_front();
            self.base = self.base.wrapping_add(1);
        }
    }

    /// A complete frame has arrived, reassembled elsewhere.
    pub fn on_frame(&mut self, now: Time, captured: Offset) {
        self.frame(now, captured);
    }

    /// Reports the frame around `place` if it has just become complete.
    fn look(&mut self, now: Time, place: usize) {
        let Some(packet) = self.packets.get(place).copied().flatten() else { return };
        if let Some(end) = self.whole_until(place, packet.timestamp)
            && let Some(last) = &mut self.packets[end]
            && !core::mem::replace(&mut last.whole, true)
        {
            self.frame(now, packet.captured);
        }
    }

    /// The last packet of the frame around `place`, if all its packets have arrived. The frame's start shows by the end
    /// of the previous frame, or by a gap of a single packet after one that was not the last of its frame. In doubt it
    /// counts as incomplete.
    fn whole_until(&self, place: usize, timestamp: u32) -> Option<usize> {
        let is_ours = |packet: &Option<Packet>| packet.is_some_and(|packet| packet.timestamp == timestamp);
        let ends = |packet: &Option<Packet>| !is_ours(packet) || packet.is_some_and(|packet| packet.last);
        let end = place + self.packets.range(place..).position(ends)?;
        let begins = match self.packets.range(..place).rposition(|packet| !is_ours(packet)) {
            // the first packet of all
            None => true,
            Some(before) => match self.packets[before] {
                // of a frame that ends there, or that its sender abandoned before its end
                Some(_) => true,
                None => {
                    let other = before.checked_sub(1).and_then(|at| self.packets[at]);
                    other.is_some_and(|packet| packet.timestamp != timestamp && !packet.last)
                }
            },
        };
        (begins && is_ours(&self.packets[end])).then_some(end)
    }

    /// A frame is complete.
    fn frame(&mut self, now: Time, captured: Offset) {
        self.complete += u64::from(self.picture.counts(captured));
        self.picture.on_complete(now, captured);
        self.picture.keep(now, captured);
        self.picture.show(now, captured);
    }

    /// The minimum time from a frame's capture until it was complete, over all frames so far, whether they count or
    /// not.
    #[must_use]
    pub fn min_delay(&self) -> Option<Offset> {
        self.picture.min_delay()
    }

    /// A row of a recording: the number of frames completed since the previous row, the mean and maximum of their
    /// delays, and how long the picture has been shown, or the screen has been empty. In seconds; NaN if there is no
    /// frame.
    pub fn sample(&mut self, now: Time) -> [f64; 4] {
        self.picture.sample(now)
    }

    /// The report on the frames, watched until `end`. The picture shown then counts as frozen if it has been shown for
    /// long enough, and so does an empty screen.
    #[must_use]
    pub fn report(&self, end: Time) -> ViewReport {
        ViewReport { complete: self.complete, ..self.picture.report(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// Packets of frames captured every 33 ms, three packets each; packet `n` arrives at `now`.
    fn arrive(viewer: &mut Viewer, n: u64, now: u64) {
        let frame = n / 3;
        let packet = FramePacket {
            sequence: (65_530 + n) as u16,
            timestamp: frame as u32 * 2970,
            last: n % 3 == 2,
            captured: Offset::at(ms(frame * 33)),
        };
        viewer.on_packet(ms(now), &packet);
    }

    fn measure_from(viewer: &mut Viewer, at: u64) {
        viewer.measure_from(ms(at), Offset::at(ms(at)));
    }

    #[test]
    fn a_frame_is_whole_with_its_last_packet_in_whatever_order() {
        let mut viewer = Viewer::default();
        for n in 0..3 {
            arrive(&mut viewer, n, 50 + n);
        }
        for (n, now) in [(3, 80), (5, 81), (4, 90), (4, 95)] {
            arrive(&mut viewer, n, now);
        }
        let report = viewer.report(Time::ZERO);
        assert_eq!(report.complete, 2);
        assert_eq!(report.delays, [Offset(52_000_000), Offset(57_000_000)]);
        assert_eq!(report.mean_delay(), Some(Offset(54_500_000)));
        assert_eq!((report.delay(0.5), report.delay(0.95)), (Some(report.delays[0]), Some(report.delays[1])));
    }

    /// The sender's clock has an offset: by it the first frame took no time, and others less.
    #[test]
    fn frames_faster_than_the_first_have_delays_below_nothing() {
        let mut viewer = Viewer::default();
        for (n, delay) in (0..).zip([200, 150, 80, 120]) {
            let (captured, now) = (1000 + n * 100, 1000 + n * 100 + delay);
            viewer.on_frame(ms(now), Offset::at(ms(captured + 200)));
        }
        let [frames, mean, max, _] = sample(&mut viewer, 2000);
        assert_eq!((frames, mean, max), (4.0, -62.5, 0.0));
        let report = viewer.report(ms(2000));
        assert_eq!(report.delays, [-120, -80, -50, 0].map(|ms| Offset(ms * 1_000_000)));
        assert_eq!((report.mean_delay(), viewer.min_delay()), (Some(Offset(-62_500_000)), Some(Offset(-120_000_000))));
        assert_eq!((report.complete, viewer.picture.shown), (4, Some((Offset::at(ms(1500)), ms(1420)))));
    }

    #[test]
    fn a_loss_makes_its_own_frame_incomplete() {
        let complete = |lost: &[u64]| {
            let mut viewer = Viewer::default();
            for n in (0..30).filter(|n| !lost.contains(n)) {
                arrive(&mut viewer, n, 50 + n * 11);
            }
            viewer.report(Time::ZERO).complete
        };
        assert_eq!(complete(&[]), 10);
        assert_eq!((complete(&[9]), complete(&[10]), complete(&[11])), (9, 9, 9));
        assert_eq!(complete(&[9, 10, 11]), 8, "a frame lost whole leaves doubt of the next");
        assert_eq!(complete(&[11, 12]), 8);
    }

    /// Nothing is lost: after packets of a frame without a last one, the next frame begins.
    #[test]
    fn a_frame_that_its_sender_gave_up_is_not_whole() {
        let mut viewer = Viewer::default();
        for (sequence, frame, last) in [(0, 0, false), (1, 0, true), (2, 1, false), (3, 4, false), (4, 4, true)] {
            let captured = Offset::at(ms(frame * 33));
            viewer.on_packet(ms(200), &FramePacket { sequence, timestamp: frame as u32 * 2970, last, captured });
        }
        let report = viewer.report(Time::ZERO);
        assert_eq!(
            (report.complete, report.delays),
            (2, [200, 68].map(|ms| Offset(ms * 1_000_000)).into_iter().rev().collect())
        );
    }

    #[test]
    fn a_freeze_is_a_picture_that_stays_three_times_the_mean_and_150_ms_longer() {
        let show = |gap: u64| {
            let mut viewer = Viewer::default();
            let mut now = 0;
            for n in 0..60_u64 {
                now += if n == 45 { gap } else { 33 };
                for k in 0..3 {
                    arrive(&mut viewer, n * 3 + k, now);
                }
            }
            let report = viewer.report(Time::ZERO);
            (report.freezes, report.frozen)
        };
        // 33 + 150
        assert_eq!(show(182), (0, Span::ZERO));
        assert_eq!(show(183), (1, Span::from_millis(183)));
    }

    #[test]
    fn a_freeze_is_measured_by_the_last_30_frames() {
        let freezes = |slow: u64, gap: u64| {
            let mut viewer = Viewer::default();
            let mut now = 0;
            for n in 0..71_u64 {
                now += match n {
                    70 => gap,
                    0..40 => 200,
                    _ if n < 40 + slow => 200,
                    _ => 50,
                };
                for k in 0..3 {
                    arrive(&mut viewer, n * 3 + k, now);
                }
            }
            viewer.report(Time::ZERO).freezes
        };
        // 30 of 50 ms: 150 ms longer; 30 of 200 ms: three times as long; half and half: 125 ms, three times as long
        assert_eq!((freezes(0, 199), freezes(0, 200)), (0, 1));
        assert_eq!((freezes(30, 599), freezes(30, 600)), (0, 1));
        assert_eq!((freezes(15, 374), freezes(15, 375)), (0, 1));
    }

    #[test]
    fn a_picture_that_stands_until_the_end_has_frozen() {
        let mut viewer = Viewer::default();
        for n in 0..300 {
            arrive(&mut viewer, n, 50 + n * 11);
        }
        let frozen = |viewer: &Viewer, now| {
            let report = viewer.report(ms(now));
            (report.freezes, report.frozen)
        };
        // the last arrived at 50 + 299 * 11 = 3339 ms; 33 + 150 ms
        assert_eq!(frozen(&viewer, 3339 + 182), (0, Span::ZERO));
        assert_eq!(frozen(&viewer, 3339 + 183), (1, Span::from_millis(183)));
        assert_eq!(frozen(&viewer, 13_339), (1, Span::from_secs(10)));
        measure_from(&mut viewer, 5000);
        assert_eq!(frozen(&viewer, 13_339), (1, Span::from_secs(10)), "as one that a picture ends after it");
    }

    /// A sample, in milliseconds.
    fn sample(viewer: &mut Viewer, now: u64) -> [f64; 4] {
        let [frames, mean, max, stands] = viewer.sample(ms(now));
        [frames, mean * 1e3, max * 1e3, stands * 1e3].map(|value| (value * 1e6).round() / 1e6)
    }

    #[test]
    fn a_sample_tells_of_the_frames_since_the_one_before() {
        let mut viewer = Viewer::new(ms(20));
        let is = |found: [f64; 4], expected: [f64; 4]| {
            let same = found
                .iter()
                .zip(expected)
                .all(|(found, expected)| *found == expected || (found.is_nan() && expected.is_nan()));
            assert!(same, "{found:?} is not {expected:?}");
        };
        is(sample(&mut viewer, 10), [0.0, f64::NAN, f64::NAN, 0.0]);
        is(sample(&mut viewer, 50), [0.0, f64::NAN, f64::NAN, 30.0]);
        // captured at 0, 33 and 66 ms; the last packet of the third is missing
        for (n, now) in [(0, 60), (1, 60), (2, 60), (3, 100), (4, 100), (5, 100), (6, 110), (7, 110)] {
            arrive(&mut viewer, n, now);
        }
        // the start of the measurement makes no difference to samples
        measure_from(&mut viewer, 50);
        is(sample(&mut viewer, 120), [2.0, 63.5, 67.0, 20.0]);
        is(sample(&mut viewer, 140), [0.0, f64::NAN, f64::NAN, 40.0]);
        arrive(&mut viewer, 9, 150);
        arrive(&mut viewer, 10, 150);
        arrive(&mut viewer, 11, 150);
        // a frame that completes after its successor is counted, but not shown
        arrive(&mut viewer, 8, 170);
        is(sample(&mut viewer, 180), [2.0, 77.5, 104.0, 30.0]);
        // a sample from before the picture appeared
        is(sample(&mut viewer, 140), [0.0, f64::NAN, f64::NAN, 0.0]);
    }

    #[test]
    fn a_screen_that_stays_empty_has_frozen() {
        let mut viewer = Viewer::new(ms(1000));
        assert_eq!((viewer.report(ms(500)).freezes, viewer.report(ms(1149)).freezes), (0, 0));
        let report = viewer.report(ms(9000));
        assert_eq!((report.freezes, report.frozen), (1, Span::from_secs(8)));
        measure_from(&mut viewer, 4000);
        assert_eq!(viewer.report(ms(9000)).frozen, Span::from_secs(5));
        for n in 90..93 {
            arrive(&mut viewer, n, 9000);
        }
        assert_eq!(viewer.report(ms(9149)).freezes, 0, "a late beginning is none");
        assert_eq!(viewer.report(ms(9150)).freezes, 1, "the only picture of all stands still");
    }

    #[test]
    fn frames_count_from_the_warm_up_and_late_ones_are_not_shown() {
        let mut viewer = Viewer::default();
        for n in 0..9 {
            arrive(&mut viewer, n, 100);
        }
        measure_from(&mut viewer, 100);
        for n in [9, 10, 11, 15, 16, 17, 12, 13, 14] {
            arrive(&mut viewer, n, 200);
        }
        let report = viewer.report(Time::ZERO);
        assert_eq!(report.complete, 2, "those captured at 132 and 165 ms");
        assert_eq!(viewer.picture.shown, Some((Offset::at(ms(165)), ms(200))));
    }

    #[test]
    fn numbers_may_jump_and_go_round() {
        let mut viewer = Viewer::default();
        for n in 0..200_000 {
            arrive(&mut viewer, n, n * 11 + 50);
        }
        assert!(viewer.packets.len() <= MAX_PACKETS);
        let whole = viewer.report(Time::ZERO).complete;
        assert_eq!(whole, 66_666);
        for n in 210_000..210_030 {
            arrive(&mut viewer, n, 3_000_000 + n);
        }
        assert_eq!(viewer.report(Time::ZERO).complete, whole + 10);
    }
}
