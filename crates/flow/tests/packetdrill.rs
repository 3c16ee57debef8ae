//! Windows of a real kernel: what the scripts of packetdrill (google/packetdrill @5018df2a and @8d63bbc7, gtests/net/tcp)
//! assert of Linux, as tables of events, segments sent and windows, on the sender of profile `linux`.
//!
//! A script's bytes n 000 + 1 are segment n + 1 here, its SYN is segment 0. Left out are scripts of what this sender has not: a
//! peer without SACK, limits of the send buffer, TSO, a device that refuses packets, and `slow_start/after-win-update`.

use crate::linux_sender::{Bench, config};
use paceline_control::WindowController;
use paceline_flow::tcp::TcpConfig;
use std::collections::BTreeMap;
use std::ops::Range;

/// A script's connection: established after a round trip.
struct Script {
    bench: Bench,
    /// When each segment was sent last, in ns.
    sent: BTreeMap<u32, u64>,
    new: Vec<u32>,
    /// What is acknowledged, and whether segments beyond it are reported.
    next: u32,
    holes: bool,
}

impl Script {
    /// Over a round trip of so many ms, with so many segments to send.
    fn new(scheme: &str, rtt: u64, segments: u64) -> Script {
        Script::of(Bench::new(scheme, rtt, segments))
    }

    fn of(bench: Bench) -> Script {
        let mut script = Script { bench, sent: BTreeMap::new(), new: Vec::new(), next: 1, holes: false };
        script.take();
        script.new.retain(|seq| *seq > 0);
        script
    }

    fn take(&mut self) {
        for seq in self.bench.seqs() {
            self.sent.insert(seq, self.bench.now.0);
            self.new.push(seq);
        }
    }

    fn after(&mut self, ms: u64) -> &mut Script {
        self.bench.pass(ms);
        self.take();
        self
    }

    fn write(&mut self, segments: u64) -> &mut Script {
        self.bench.sender.supply(segments * 1448, self.bench.now, &mut self.bench.out);
        self.take();
        self
    }

    /// The cumulative acknowledgement `next` with these blocks. Scripts have no time stamps: it echoes the segment that a kernel
    /// measures the round trip by, the last one acknowledged, or the one that has filled a hole.
    fn sack(&mut self, next: u32, blocks: &[(u32, u32)]) -> &mut Script {
        let echoed = match (next > self.next, self.holes, blocks.first()) {
            (true, true, _) => self.next,
            (true, false, _) | (false, _, None) => next - 1,
            (false, _, Some(block)) => block.1 - 1,
        };
        (self.next, self.holes) = (self.next.max(next), !blocks.is_empty());
        let ago = (self.bench.now.0 - self.sent[&echoed]) / 1_000_000;
        self.bench.ack(next, ago, blocks);
        self.take();
        self
    }

    fn ack(&mut self, next: u32) -> &mut Script {
        self.sack(next, &[])
    }

    /// Since this was asked last, these segments have been sent.
    #[track_caller]
    fn sends(&mut self, segments: Range<u32>) -> &mut Script {
        assert_eq!(std::mem::take(&mut self.new), segments.collect::<Vec<_>>());
        self
    }

    #[track_caller]
    fn cwnd(&mut self, window: u32) -> &mut Script {
        assert_eq!(self.bench.window().floor() as u32, window);
        self
    }

    #[track_caller]
    fn ssthresh(&mut self, segments: f64) -> &mut Script {
        assert_eq!(self.bench.sender.controller().threshold(), segments);
        self
    }
}

/// slow_start/slow-start-ack-per-{1,4}pkt, slow-start-app-limited, slow-start-app-limited-9-packets-out.
#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    for scheme in ["cubic", "reno"] {
        let mut s = Script::new(scheme, 100, 30);
        s.sends(1..11).cwnd(10).after(105);
        for n in 0..10 {
            s.ack(2 + n).sends(11 + 2 * n..13 + 2 * n).after(5 * u64::from(n % 2));
        }
        s.cwnd(20);

        let mut s = Script::new(scheme, 100, 30);
        s.sends(1..11);
        s.after(110).ack(5).sends(11..19);
        s.after(10).ack(9).sends(19..27);
        s.after(5).ack(11).sends(27..31).cwnd(20);

        let mut s = Script::new(scheme, 100, 10);
        s.sends(1..11).cwnd(10).after(105);
        for n in 1..=5 {
            s.ack(1 + 2 * n).sends(0..0).cwnd(10 + 2 * n).after(5);
        }

        let mut s = Script::new(scheme, 100, 9);
        s.sends(1..10).cwnd(10).after(105);
        for (next, window) in [(3, 12), (5, 14), (7, 16), (9, 18), (10, 18)] {
            s.ack(next).cwnd(window).after(5);
        }
    }
}

/// slow_start/slow-start-fq-ack-per-2pkt: behind `fq` the first ten leave at once, and then pairs at the window's rate, within 2 ms
/// of the script's times.
#[test]
fn a_paced_window_leaves_in_pairs() {
    let config = TcpConfig { pacing: true, ..config("cubic") };
    let mut s = Script::of(Bench::of(&config, "cubic", 100, 28));
    s.sends(1..11).cwnd(10);
    s.after(105).ack(3).cwnd(12).sends(11..13);
    s.after(3).ack(5).cwnd(14);
    // the script's times from here on, in ms
    let (acked_at, sent_at) = ([2, 11, 12], [1, 9, 16, 23]);
    let (mut next, mut pairs) = (7, Vec::new());
    for ms in 1..40_u64 {
        s.after(1);
        if acked_at.contains(&ms) {
            s.ack(next);
            next += 2;
        }
        if !s.new.is_empty() {
            pairs.push((ms, std::mem::take(&mut s.new)));
        }
    }
    for (i, sent) in (0..).zip(sent_at) {
        let (at, pair) = &pairs[i as usize];
        assert_eq!(*pair, [13 + 2 * i, 14 + 2 * i]);
        assert!(at.abs_diff(sent) <= 2, "{pairs:?}");
    }
}

/// slow_start/slow-start-after-idle: its later half sends 5 segments of 10 by TSO alone.
#[test]
fn slow_start_begins_again_after_two_seconds() {
    let mut s = Script::new("cubic", 100, 26);
    s.sends(1..11).cwnd(10);
    s.after(100).ack(11).cwnd(20).sends(11..27);
    s.after(100).ack(27).cwnd(36);
    s.after(2000).write(20).cwnd(10);
}

/// Two segments acknowledged every 100 ms until `end` is.
fn until(s: &mut Script, end: u32) {
    while s.next < end {
        let next = s.next + 2;
        s.after(100).ack(next);
    }
}

/// cubic/cubic-bulk-166k: two segments acknowledged every 100 ms, whatever is sent. The script's kernel leaves slow start at 48:
/// it begins HyStart's first round at a window of 16, with the fourth acknowledgement. Linux 6.14 and later begin it with the
/// connection, so that the ninth long sample of the second round comes at 36.
#[test]
fn cubic_over_166_kbit_s() {
    let mut s = Script::new("cubic", 100, 400);
    s.cwnd(10);
    for (end, window) in [(11, 20), (21, 30), (27, 36), (29, 36), (31, 36)] {
        until(&mut s, end);
        s.cwnd(window);
    }
    // for two that are acknowledged the window never grows by more than one, and at last by one
    let mut before = 36;
    for n in 16..=200 {
        until(&mut s, 1 + 2 * n);
        let window = s.bench.window().floor() as u32;
        assert!((before..=before + 1).contains(&window), "{window} after {before}");
        assert!(n < 60 || window == before + 1, "{window} after {before} with {n} acknowledgements");
        before = window;
    }
}

/// cubic/cubic-bulk-166k-idle-restart: four seconds of silence are no credit. Two and three seconds after it the script's window
/// has grown by 1 and 4. Its kernel does not restart after idle; this sender is in slow start for the first 1.3 s.
#[test]
fn cubic_has_no_credit_for_idle_time() {
    let mut s = Script::new("cubic", 100, 40);
    until(&mut s, 41);
    s.cwnd(36).after(4000).write(160).cwnd(10);
    for (end, window) in [(67, 36), (81, 36 + 1), (101, 36 + 4)] {
        until(&mut s, end);
        s.cwnd(window);
    }
}

/// cubic/cubic-hystart-delay-rtt-jumps-upward: the ninth sample of a round trip that is 12.5 % longer ends slow start.
#[test]
fn hystart_ends_slow_start_by_delay() {
    let mut s = Script::new("cubic", 200, 30);
    s.sends(1..11).cwnd(10);
    s.after(200).ack(11).sends(11..31).cwnd(20).after(240);
    for n in 1..=8 {
        s.ack(11 + 2 * n).cwnd(20 + 2 * n).ssthresh(f64::INFINITY).after(1);
    }
    s.ack(29).cwnd(36).ssthresh(36.0);
    s.after(1).ack(31).cwnd(36).ssthresh(36.0);
}

/// cubic/cubic-hystart-delay-min-rtt-jumps-downward: a new least round trip is none that is longer.
#[test]
fn hystart_goes_on_when_the_round_trip_falls() {
    let mut s = Script::new("cubic", 200, 28);
    s.sends(1..11).cwnd(10);
    s.after(200).ack(11).sends(11..29).cwnd(20);
    s.after(180).write(2).sends(29..31).after(20);
    for n in 1..=10 {
        s.ack(11 + 2 * n).cwnd(20 + 2 * n).ssthresh(f64::INFINITY).after(1);
    }
}

/// cubic/cubic-rto-ss-ca-cwnd-bump: a probe and a timeout, slow start to 7, and then slowly on.
#[test]
fn cubic_after_a_timeout() {
    let mut s = Script::new("cubic", 100, 1);
    s.sends(1..2).after(100).ack(2).cwnd(10);
    s.write(1).sends(2..3);
    s.after(299).sends(0..0).after(4).sends(2..3); // the probe
    s.after(295).sends(0..0).after(8).sends(2..3); // the timeout
    s.after(100).ack(3).cwnd(2).ssthresh(7.0);
    s.write(200).sends(3..5).cwnd(2);
    s.after(100).ack(4).sends(5..7).cwnd(3);
    s.after(2).ack(5).sends(7..9).cwnd(4);
    s.after(98).ack(6).sends(9..11).cwnd(5);
    s.after(2).ack(7).sends(11..13).cwnd(6);
    s.after(2).ack(8).sends(13..15).cwnd(7);
    let later = [2, 98, 2, 2, 2, 2, 2, 2, 98, 3, 2, 2, 2, 2, 2];
    for (n, after) in (0..).zip(later) {
        s.after(after).ack(9 + n).sends(15 + n..16 + n).cwnd(7);
    }
    s.after(98).ack(24).sends(30..32).cwnd(8);
}

/// fast_recovery/prr-ss-10pkt-lost-1: what is in flight is the threshold from beginning to end: one for one.
#[test]
fn prr_sends_one_for_one() {
    let mut s = Script::new("cubic", 100, 10);
    s.sends(1..11);
    s.after(110).sack(1, &[(2, 3)]).after(10).sack(1, &[(2, 4)]).after(10).sack(1, &[(2, 5)]);
    s.sends(1..2).after(10).cwnd(7).ssthresh(7.0);
    s.after(10).write(7).sends(0..0);
    for n in 0..6 {
        s.after(10).sack(1, &[(2, 6 + n)]).sends(11 + n..12 + n);
    }
    s.after(20).ack(11).sends(17..18);
    s.after(10).cwnd(7).ssthresh(7.0);
}

/// fast_recovery/prr-ss-30pkt-lost1_4: four of ten lost; recovered at once, the threshold may go out.
#[test]
fn prr_ends_at_the_threshold() {
    let mut s = Script::new("cubic", 10, 10);
    s.sends(1..11);
    s.after(10).sack(1, &[(5, 6)]).after(2).sack(1, &[(5, 7)]).sack(1, &[(5, 8)]).sends(1..2);
    s.sack(1, &[(5, 9)]).sends(2..3);
    s.sack(1, &[(5, 10)]).sends(3..4);
    s.sack(1, &[(5, 11)]).sends(4..5);
    s.after(10).sack(2, &[(5, 11)]).sack(3, &[(5, 11)]).sack(4, &[(5, 11)]).ack(11).sends(0..0);
    s.after(10).write(10).sends(11..18);
}

/// fast_recovery/prr-ss-30pkt-lost-1_4-11_16: ten of twenty lost, in two bursts.
#[test]
fn prr_through_two_bursts_of_losses() {
    let mut s = Script::new("cubic", 10, 20);
    s.sends(1..11);
    s.after(10).sack(1, &[(5, 6)]).sends(11..12);
    s.after(2).sack(1, &[(5, 7)]).sends(12..13);
    for n in 0..4 {
        s.after(2).sack(1, &[(5, 8 + n)]).sends(1 + n..2 + n);
    }
    s.after(2).sack(1, &[(5, 12)]).sends(13..14);
    s.after(2).sack(1, &[(5, 13)]).sends(14..15);
    s.after(10).sack(2, &[(5, 13)]).sends(15..17);
    s.after(2).sack(2, &[(3, 13)]);
    assert_eq!(std::mem::take(&mut s.new), [2, 17]);
    s.after(2).sack(2, &[(3, 14)]).sends(18..19);
    s.after(2).sack(2, &[(3, 15)]).sends(19..20);
}

/// fast_recovery/prr-ss-ack-below-snd_una-cubic: what an acknowledgement reports counts though it came late.
#[test]
fn prr_hears_a_late_acknowledgement() {
    let mut s = Script::new("cubic", 10, 10);
    s.sends(1..11);
    s.after(10).sack(1, &[(2, 3)]).sack(1, &[(2, 4)]).sack(1, &[(9, 10), (2, 4)]).sends(1..2);
    s.after(12).sack(5, &[(9, 10)]).sends(5..8);
    s.write(10).sends(0..0);
    s.after(2).sack(4, &[(6, 8)]);
    assert_eq!(std::mem::take(&mut s.new), [8, 11]);
}

/// fast_retransmit/fr-4pkt-sack: three reports, and the first is sent again.
#[test]
fn three_reports_and_the_first_is_sent_again() {
    let mut s = Script::new("cubic", 100, 4);
    s.sends(1..5);
    s.after(100).sack(1, &[(2, 3)]).sack(1, &[(2, 4)]).sends(0..0);
    s.sack(1, &[(2, 5)]).sends(1..2);
    s.after(100).ack(5).sends(0..0);
}
