//! The RFCs' rules, one by one, on the machines alone: segments in, segments out.

use crate::rfc_sender::segments::packet;
use crate::rfc_sender::{Bench, config, ms};
use paceline_control::{Ecn, GaugeUnit, Gauges, Profile, TcpController, WindowController, registry};
use paceline_flow::Segment;
use paceline_flow::tcp::{PartialAcks, TcpConfig, TcpReceiver, TcpSender};
use paceline_packet::{Extra, Flags, Stamp, TcpOptions};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::num::NonZeroU32;

#[test]
fn rfc_5681_3_1_slow_start_then_avoidance() {
    let mut b = Bench::new("newreno", config("newreno"), 3);
    assert_eq!(b.seqs(), [1, 2, 3]);
    b.pass(ms(100));
    b.ack(2);
    b.ack(3);
    assert_eq!(b.window(), 5.0);
    b.ack(4); // one segment per acknowledgement
    assert_eq!(b.window(), 6.0);
    assert_eq!(b.seqs(), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn rfc_5681_3_2_fast_retransmit_and_rfc_3042_limited_transmit() {
    let mut b = Bench::new("newreno", config("newreno"), 10);
    assert_eq!(b.seqs().len(), 10);
    b.pass(ms(100));
    b.ack(1);
    assert_eq!(b.seqs(), [11]); // RFC 3042
    b.ack(1);
    assert_eq!(b.seqs(), [12]);
    b.ack(1);
    assert_eq!(b.seqs(), [1]); // the third duplicate
    // FlightSize is 10: what limited transmit sent does not count
    assert_eq!(b.window(), 5.0);
    assert_eq!(b.sender.stats().fast_retransmits, 1);
    b.ack(1);
    b.ack(1);
    b.ack(1);
    assert_eq!(b.seqs(), [] as [u32; 0]); // 5 + 6 duplicates = 11 of 12 outstanding
    b.ack(1);
    b.ack(1);
    assert_eq!(b.seqs(), [13]);
    // a full acknowledgement: RFC 6582 section 3.2 step 3, min(ssthresh, FlightSize + 1)
    b.ack(13);
    assert_eq!(b.window(), 2.0);
}

#[test]
fn rfc_6582_partial_acknowledgements() {
    for (variant, survives) in [(PartialAcks::Impatient, false), (PartialAcks::SlowButSteady, true)] {
        let c = TcpConfig { partial_acks: variant, limited_transmit: false, ..config("newreno") };
        let mut b = Bench::new("newreno", c, 10);
        b.seqs();
        b.pass(ms(100));
        for _ in 0..3 {
            b.ack(1);
        }
        assert_eq!(b.seqs(), [1]);
        for hole in [3, 5, 7] {
            b.pass(ms(100));
            b.ack(hole);
            assert_eq!(b.seqs()[0], hole, "each partial acknowledgement repairs the next hole");
        }
        assert_eq!(b.sender.stats().fast_retransmits, 1, "one recovery, one cut");
        // section 4: the impatient variant's timer runs since the first partial acknowledgement
        b.pass(ms(850));
        assert_eq!(b.sender.stats().timeouts, u64::from(!survives), "{variant:?}");
    }
}

#[test]
fn rfc_6582_one_fast_retransmit_per_window() {
    let c = TcpConfig { limited_transmit: false, ..config("newreno") };
    let mut b = Bench::new("newreno", c, 10);
    b.seqs();
    b.pass(ms(1500)); // timeout: recover is 11
    assert_eq!(b.seqs(), [1]);
    b.ack(2);
    b.seqs();
    for _ in 0..5 {
        b.ack(2);
    }
    assert_eq!(b.sender.stats().fast_retransmits, 0);
}

#[test]
fn rfc_6298_backs_off_and_keeps_ssthresh() {
    let mut b = Bench::new("newreno", config("newreno"), 10);
    b.seqs();
    let mut at = Vec::new();
    let mut thresholds = Vec::new();
    for _ in 0..4 {
        let wake = b.sender.next_wake();
        b.now = wake;
        b.pass(Span::ZERO);
        assert_eq!(b.seqs(), [1]);
        at.push(wake.0 / 1_000_000);
        thresholds.push(b.sender.controller().threshold());
    }
    assert_eq!(at, [1100, 3100, 7100, 15100]); // (2.4) 1 s at least, (5.5) doubled
    assert_eq!(thresholds, [5.0; 4]); // RFC 5681 section 3.1: once for one segment
    assert_eq!(b.window(), 1.0);
    // of the series only the first counts for T_0, and the window was never above the initial one
    assert_eq!((b.sender.stats().timeouts, b.sender.stats().first_timeouts), (4, 1));
    assert_eq!(b.sender.stats().mean_timeout(), Some(Span::from_secs(1)));
    assert_eq!(b.sender.stats().window_max, 10.0);
    // Karn: the acknowledgement of a retransmission is no sample, the timeout stays backed off
    b.pass(ms(100));
    b.ack(2);
    assert_eq!(b.sender.srtt(), ms(100));
    assert_eq!(b.sender.next_wake().since(b.now), Span::from_secs(16));
}

#[test]
fn rfc_6298_5_7_lost_syn() {
    let scheme = registry::scheme("newreno").unwrap();
    let controller = TcpController::new(scheme, Profile::Rfc, &[]).unwrap();
    let mut sender = TcpSender::new(&config("newreno"), controller, Stream::new(1, "t"));
    let mut out: Vec<Segment> = Vec::new();
    sender.start(Time(0), &mut out);
    assert!(out.is_empty(), "the SYN waits for data");
    sender.supply_endless(Time(0), &mut out);
    assert_eq!((out[0].seq, out[0].size, out[0].flags), (0, 40, Flags::SYN));
    sender.on_timer(Time::ZERO + Span::from_secs(1), &mut out);
    assert!(out[1].flags.has(Flags::SYN) && out[1].flags.has(Flags::RETRANSMISSION));
    let now = Time::ZERO + ms(1100);
    let ack = Segment { seq: 1, stamp: out[1].stamp, size: 40, flags: Flags::ACK.with(Flags::SYN), extra: None };
    sender.on_ack(now, &packet(now, &ack), None, &mut out);
    assert_eq!(sender.next_wake().since(now), Span::from_secs(3));
}

#[test]
fn rfc_5681_4_1_restart_after_idle() {
    let scheme = registry::scheme("newreno").unwrap();
    let c = TcpConfig { initial_window: 3, delayed_ack: None, ..config("newreno") };
    let mut sender = TcpSender::new(&c, TcpController::new(scheme, Profile::Rfc, &[]).unwrap(), Stream::new(1, "t"));
    let (mut now, mut out) = (Time(0), Vec::new());
    sender.supply(100_000, now, &mut out);
    sender.start(now, &mut out);
    while !sender.acked_all() {
        now += ms(10);
        for s in core::mem::take(&mut out) {
            let ack = Segment { seq: s.seq + 1, size: 40, flags: Flags::ACK, ..s };
            sender.on_ack(now, &packet(now, &ack), None, &mut out);
        }
    }
    assert!(sender.controller().window() > 20.0);
    sender.supply(1, now + ms(900), &mut out);
    assert!(sender.controller().window() > 20.0, "not idle for a whole timeout yet");
    let ack = Segment { seq: out[0].seq + 1, size: 40, flags: Flags::ACK, ..out[0].clone() };
    now += ms(910);
    sender.on_ack(now, &packet(now, &ack), None, &mut out);
    sender.supply(100_000, now + ms(1100), &mut out);
    assert_eq!(sender.controller().window(), 3.0);
}

#[test]
fn rfc_6675_holes_first_and_pipe() {
    let mut b = Bench::new("sack", config("sack"), 10);
    assert_eq!(b.seqs(), (1..11).collect::<Vec<_>>());
    b.pass(ms(100));
    // 1, 3 and 5 are lost
    b.ack_with(1, Flags::ACK, &[(2, 3)]);
    assert_eq!(b.seqs(), [11]);
    b.ack_with(1, Flags::ACK, &[(4, 5), (2, 3)]);
    assert_eq!(b.seqs(), [12]);
    b.ack_with(1, Flags::ACK, &[(6, 7), (4, 5), (2, 3)]);
    assert_eq!(b.seqs(), [1]);
    assert_eq!(b.window(), 5.0);
    // pipe: 7..13 in flight, 1 again, 3 and 5 not yet lost: 9
    b.ack_with(1, Flags::ACK, &[(6, 9), (4, 5), (2, 3)]); // now 3 is lost, and 5: pipe 1 + 4
    assert_eq!(b.seqs(), [] as [u32; 0]);
    b.ack_with(1, Flags::ACK, &[(6, 10), (4, 5), (2, 3)]);
    assert_eq!(b.seqs(), [3]);
    b.ack_with(1, Flags::ACK, &[(6, 11), (4, 5), (2, 3)]);
    assert_eq!(b.seqs(), [5]);
    b.ack_with(1, Flags::ACK, &[(6, 12), (4, 5), (2, 3)]);
    assert_eq!(b.seqs(), [13]);
    b.ack_with(13, Flags::ACK, &[]);
    assert_eq!(b.window(), 5.0);
    assert_eq!(b.sender.stats().retransmitted, 3);
    assert_eq!(b.sender.stats().timeouts, 0);
}

#[test]
fn rfc_6675_rescue() {
    let scheme = registry::scheme("sack").unwrap();
    let c = TcpConfig { initial_window: 10, ..config("sack") };
    let mut sender = TcpSender::new(&c, TcpController::new(scheme, Profile::Rfc, &[]).unwrap(), Stream::new(1, "t"));
    let mut out = Vec::new();
    sender.supply(14_600, Time(0), &mut out); // segments 1 to 10
    sender.start(Time(0), &mut out);
    let mut b = Bench { sender, now: Time(0), out, sent: Time(0) };
    b.pass(ms(100));
    b.ack(1);
    b.seqs();
    b.pass(ms(100));
    // 1 is lost, and the tail 9 and 10
    b.ack_with(1, Flags::ACK, &[(2, 9)]);
    assert_eq!(b.seqs(), [1], "section 5 step (4.3): not before more than this is acknowledged");
    b.ack_with(9, Flags::ACK, &[]);
    assert_eq!(b.seqs(), [10], "NextSeg rule 4: the highest, once");
    b.ack_with(9, Flags::ACK, &[(10, 11)]);
    assert_eq!(b.seqs(), [9], "rule 3");
}

#[test]
fn rfc_3168_one_cut_per_window() {
    let c = TcpConfig { ecn: Ecn::Classic, ..config("newreno") };
    let mut b = Bench::new("newreno", c, 10);
    assert!(b.out.iter().all(|s| s.flags.has(Flags::ECT)));
    b.seqs();
    b.pass(ms(100));
    let echo = Flags::ACK.with(Flags::ECE);
    b.ack_with(2, echo, &[]);
    assert_eq!(b.window(), 5.0);
    for next in 3..8 {
        b.ack_with(next, echo, &[]);
    }
    assert_eq!(b.window(), 5.0);
    assert_eq!(b.sender.stats().ecn_cuts, 1);
    let cwr: Vec<bool> = b.out.iter().map(|s| s.flags.has(Flags::CWR)).collect();
    assert!(cwr[0] && !cwr[1..].contains(&true), "section 6.1.2: the first new segment says so");
}

#[test]
fn rfc_3168_6_1_3_the_receiver_echoes_until_cwr() {
    let c = TcpConfig { ecn: Ecn::Classic, delayed_ack: None, handshake: false, ..config("newreno") };
    let mut receiver = TcpReceiver::new(&c);
    let mut echoes = Vec::new();
    for (seq, flags) in [
        (0, Flags::SYN),
        (1, Flags::ECT.with(Flags::CE)),
        (2, Flags::ECT),
        (3, Flags::ECT.with(Flags::CWR)),
        (4, Flags::ECT.with(Flags::CWR).with(Flags::CE)),
    ] {
        let s = Segment { seq, stamp: Stamp(0), size: 1500, flags, extra: None };
        let mut out: Vec<Segment> = Vec::new();
        receiver.on_data(Time(0), &packet(Time(0), &s), &mut out);
        echoes.push(out[0].flags.has(Flags::ECE));
    }
    assert_eq!(echoes, [false, true, true, false, true]);
    assert_eq!(receiver.stats().marks, 2);
}

#[test]
fn rfc_5681_4_2_delayed_acknowledgements() {
    let mut receiver = TcpReceiver::new(&config("newreno"));
    let mut out: Vec<Segment> = Vec::new();
    let arrive = |receiver: &mut TcpReceiver, at: u64, seq: u32, out: &mut Vec<Segment>| {
        let now = Time(at * 1_000_000);
        let flags = if seq == 0 { Flags::SYN } else { Flags::NONE };
        let s = Segment { seq, stamp: Stamp(seq), size: if seq == 0 { 40 } else { 1500 }, flags, extra: None };
        receiver.on_data(now, &packet(now, &s), out)
    };
    let acks = |out: &mut Vec<Segment>| out.drain(..).map(|s| (s.seq, s.stamp.0)).collect::<Vec<_>>();
    assert_eq!(arrive(&mut receiver, 0, 0, &mut out).bytes, 0);
    assert_eq!(acks(&mut out), [(1, 0)]); // a SYN at once
    assert_eq!(arrive(&mut receiver, 1, 1, &mut out).bytes, 1460);
    assert_eq!(acks(&mut out), []);
    arrive(&mut receiver, 2, 2, &mut out);
    assert_eq!(acks(&mut out), [(3, 1)]); // the second segment; the stamp of the first (RFC 7323 section 4.3)
    arrive(&mut receiver, 3, 3, &mut out);
    assert_eq!(receiver.next_wake(), Time(203_000_000));
    receiver.on_timer(Time(202_000_000), &mut out);
    assert_eq!(acks(&mut out), []);
    receiver.on_timer(Time(203_000_000), &mut out);
    assert_eq!(acks(&mut out), [(4, 3)]);
    arrive(&mut receiver, 300, 5, &mut out);
    assert_eq!(acks(&mut out), [(4, 3)]); // out of order: at once
    let filled = arrive(&mut receiver, 301, 4, &mut out);
    assert_eq!((filled.bytes, filled.segments), (2920, 2));
    assert_eq!(acks(&mut out), [(6, 4)]); // fills a gap: at once
}

#[test]
fn rfc_2018_the_newest_block_comes_first() {
    let c = TcpConfig { delayed_ack: None, handshake: false, ..config("sack") };
    let mut receiver = TcpReceiver::new(&c);
    let mut last = None;
    for seq in [0, 2, 4, 6, 8, 3] {
        let flags = if seq == 0 { Flags::SYN } else { Flags::NONE };
        let s = Segment { seq, stamp: Stamp(0), size: 1500, flags, extra: None };
        let mut out: Vec<Segment> = Vec::new();
        receiver.on_data(Time(0), &packet(Time(0), &s), &mut out);
        last = out[0]
            .extra
            .as_ref()
            .and_then(Extra::tcp)
            .map(|e| (out[0].size, e.blocks().map(|b| (b.start, b.end)).collect::<Vec<_>>()));
    }
    assert_eq!(last, Some((68, vec![(2, 5), (8, 9), (6, 7)])));
}

#[test]
fn a_short_segment_is_sent_again_as_it_was() {
    let scheme = registry::scheme("newreno").unwrap();
    let c = config("newreno");
    let mut sender = TcpSender::new(&c, TcpController::new(scheme, Profile::Rfc, &[]).unwrap(), Stream::new(1, "t"));
    let mut out: Vec<Segment> = Vec::new();
    sender.supply(1500, Time(0), &mut out);
    sender.start(Time(0), &mut out);
    let now = Time::ZERO + ms(50);
    let ack = Segment { seq: 1, stamp: Stamp(0), size: 40, flags: Flags::ACK.with(Flags::SYN), extra: None };
    sender.on_ack(now, &packet(now, &ack), None, &mut out);
    assert_eq!(out.iter().map(|s| s.size).collect::<Vec<_>>(), [40, 1500, 80]);
    assert!(out[2].flags.has(Flags::PUSH) && !out[1].flags.has(Flags::PUSH));
    out.clear();
    let ack = Segment { seq: 2, ..ack };
    sender.on_ack(now, &packet(now, &ack), None, &mut out);
    sender.on_timer(sender.next_wake(), &mut out);
    assert_eq!((out[0].seq, out[0].size), (2, 80));
    let ack = Segment { seq: 3, ..ack };
    sender.on_ack(now, &packet(now, &ack), None, &mut out);
    assert_eq!(sender.stats().bytes_acked, 1500);
    assert!(sender.acked_all());
}

#[test]
fn a_lowered_window_holds_the_sender_back() {
    let mut b = Bench::new("newreno", config("newreno"), 10);
    b.seqs();
    b.pass(ms(100));
    let ack = Segment { seq: 5, stamp: Stamp(0), size: 40, flags: Flags::ACK, extra: None };
    let extra = TcpOptions { window: NonZeroU32::new(6), ..TcpOptions::NONE };
    b.sender.on_ack(b.now, &packet(b.now, &ack), Some(&extra), &mut b.out);
    assert_eq!(b.seqs(), [] as [u32; 0]);
    b.ack(6); // without a window: the standing one again
    assert!(!b.seqs().is_empty());
}

#[test]
fn a_restarted_connection_ignores_the_old_ones_stragglers() {
    let c = TcpConfig { delayed_ack: None, ..config("newreno") };
    let mut b = Bench::new("newreno", c.clone(), 10);
    let mut receiver = TcpReceiver::new(&c);
    let old: Vec<Segment> = b.out.drain(..).collect();
    let mut acks: Vec<Segment> = Vec::new();
    let syn = Segment { seq: 0, stamp: Stamp(0), size: 40, flags: Flags::SYN, extra: None };
    receiver.on_data(b.now, &packet(b.now, &syn), &mut acks);
    receiver.on_data(b.now, &packet(b.now, &old[0]), &mut acks);
    b.sender.restart(b.now);
    b.sender.supply(1460, b.now, &mut b.out);
    b.sender.start(b.now, &mut b.out);
    assert_eq!(b.window(), 1.0);
    let fresh = b.out.pop().unwrap();
    assert!(fresh.flags.has(Flags::SYN) && fresh.seq > old.last().unwrap().seq);
    b.sender.on_ack(b.now, &packet(b.now, &acks[1]), None, &mut b.out);
    assert!(b.out.is_empty());
    acks.clear();
    receiver.on_data(b.now, &packet(b.now, &fresh), &mut acks);
    assert_eq!(acks[0].seq, fresh.seq + 1);
    acks.clear();
    assert_eq!(receiver.on_data(b.now, &packet(b.now, &old[1]), &mut acks).bytes, 0);
    assert!(acks.is_empty());
    assert_eq!(receiver.bytes_in_order(), 1460);
}

#[test]
fn statistics_leave_out_a_warm_up() {
    let mut b = Bench::new("newreno", config("newreno"), 4);
    b.seqs();
    b.pass(ms(100));
    b.sender.account(b.now);
    let warm = b.sender.stats().clone();
    b.ack(2);
    b.pass(ms(100));
    b.sender.account(b.now);
    let stats = b.sender.stats().since(&warm);
    assert_eq!((stats.packets_sent, stats.bytes_acked, stats.rtt_count), (2, 1460, 1));
    assert_eq!(stats.mean_window(), Some(5.0));
    assert_eq!(stats.window_max, 5.0);
    let rtt = stats.rtt_min().unwrap().as_secs_f64();
    assert!((rtt / 0.1 - 1.0).abs() < 0.02, "{rtt}");
}

/// Duplicates make Tahoe begin again as after a timeout, but none has expired.
#[test]
fn tahoe_s_retransmission_is_no_series_of_timeouts() {
    let mut b = Bench::new("tahoe", config("tahoe"), 10);
    b.pass(ms(100));
    (0..3).for_each(|_| b.ack(1));
    let stats = b.sender.stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts, stats.first_timeouts, stats.mean_timeout()), (1, 0, 0, None));
}

/// The mean of what the base was at each loss, not of what it became.
#[test]
fn the_mean_base_is_that_of_the_losses() {
    let mut b = Bench::new("veno", config("veno"), 10);
    assert_eq!(b.sender.stats().mean_base_rtt(), None);
    b.seqs();
    b.pass(ms(100));
    b.ack(2);
    (0..3).for_each(|_| b.ack(2));
    let first = b.sender.stats().mean_base_rtt().unwrap();
    assert!((first - 0.1).abs() < 1e-9, "{first}");
    let end = b.seqs().into_iter().max().unwrap() + 1;
    b.pass(ms(100));
    b.ack(end); // recovery is over
    b.seqs();
    b.pass(ms(150));
    b.ack(end + 1); // a sample, the first since the base was forgotten
    (0..3).for_each(|_| b.ack(end + 1));
    let both = b.sender.stats().mean_base_rtt().unwrap();
    assert_eq!(b.sender.stats().fast_retransmits, 2);
    assert!((both - 0.125).abs() < 1e-6, "{both}"); // time stamps are a little coarser than the clock
}

#[test]
fn gauges_tell_window_and_round_trip() {
    struct Names(Vec<&'static str>);
    impl Gauges for Names {
        fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
            // the controller's window, and what is under way, are known from the first moment on
            assert!(!value.is_nan() || !["cwnd", "ssthresh", "in_flight"].contains(&name), "{name}");
            self.0.push(name);
        }
    }
    for name in ["newreno", "vegas", "cubic"] {
        let b = Bench::new(name, config(name), 4);
        let mut names = Names(Vec::new());
        b.sender.gauges(&mut names);
        for wanted in ["cwnd", "ssthresh", "srtt", "in_flight"] {
            assert!(names.0.contains(&wanted), "{name}: {wanted}");
        }
    }
}
