//! Profile `linux`, rule by rule, on the machines alone: RACK-TLP (RFC 8985), PRR (RFC 6937), undoing (RFC 4015), delayed
//! acknowledgements, DSACK (RFC 2883).

use crate::linux_sender::{Bench, config};
use crate::segments::packet;
use paceline_control::WindowController;
use paceline_flow::Segment;
use paceline_flow::tcp::TcpReceiver;
use paceline_packet::{Extra, Flags, Stamp};
use paceline_units::Time;

#[test]
fn rfc_6928_ten_segments_and_slow_start_by_what_is_acknowledged() {
    let mut b = Bench::new("reno", 100, 0);
    assert_eq!(b.seqs(), (0..11).collect::<Vec<_>>());
    b.pass(100);
    b.ack(5, 100, &[]);
    assert_eq!(b.window(), 14.0);
    assert_eq!(b.seqs().len(), 8);
}

#[test]
fn rfc_8985_6_2_three_reported_or_a_reordering_window() {
    let mut b = Bench::new("reno", 100, 0);
    b.seqs();
    b.pass(100);
    b.ack(1, 100, &[(2, 3)]);
    assert_eq!(b.seqs(), [11], "what has left the network makes room (RFC 3042)");
    b.ack(1, 100, &[(2, 4)]);
    assert_eq!(b.seqs(), [12]);
    assert_eq!(b.window(), 10.0);
    b.ack(1, 100, &[(2, 5)]);
    assert_eq!(b.seqs(), [1], "DupThresh is reached, and no reordering has been seen");
    assert_eq!((b.window(), b.sender.stats().window_cuts), (5.0, 1));

    let mut late = Bench::new("reno", 100, 4);
    late.seqs();
    late.pass(100);
    late.ack(1, 100, &[(2, 3)]);
    late.pass(24);
    assert_eq!(late.seqs(), [] as [u32; 0]);
    late.pass(2);
    assert_eq!(late.seqs(), [1], "a quarter of the least round trip later: the timer");
    assert_eq!(late.sender.stats().timeouts, 0);
}

#[test]
fn rfc_8985_6_2_a_lost_retransmission_is_found() {
    let mut b = Bench::new("reno", 100, 0);
    b.seqs();
    b.pass(100);
    b.ack(1, 100, &[(2, 5)]);
    assert_eq!(b.seqs()[0], 1);
    b.pass(1);
    b.ack(1, 101, &[(2, 9)]); // lets segment 12 out, after the retransmission
    assert_eq!(b.seqs(), [12]);
    b.pass(100);
    b.ack(1, 100, &[(12, 13), (2, 9)]); // 12 has arrived, 1 has not
    assert_eq!(b.seqs()[0], 1);
    assert_eq!((b.sender.stats().window_cuts, b.sender.stats().timeouts), (1, 0));
}

#[test]
fn rfc_8985_7_a_lost_tail_is_repaired_by_the_probe() {
    let mut b = Bench::new("reno", 100, 9);
    assert_eq!(b.seqs(), (0..10).collect::<Vec<_>>());
    b.pass(100);
    b.ack(9, 100, &[]);
    // 7.2: one segment is out: 2 SRTT and the longest delay of an acknowledgement, not after the RTO (SRTT + 200 ms)
    b.pass(299);
    assert_eq!(b.seqs(), [] as [u32; 0]);
    b.pass(2);
    assert_eq!(b.seqs(), [9], "7.3: nothing new: the last one again");
    b.pass(100);
    b.ack(10, 100, &[]);
    assert!(b.sender.acked_all());
    assert_eq!((b.sender.stats().timeouts, b.sender.stats().window_cuts), (0, 0));
    // 7.4.2: beyond the probe's end without a DSACK: it has repaired a loss: one cut
    assert_eq!(b.window(), 18.0);
    b.sender.supply(1448, b.now, &mut b.out);
    b.pass(50);
    b.ack(11, 50, &[]);
    assert_eq!(b.sender.stats().window_cuts, 1);
    assert_eq!(b.window(), 7.0); // half of 14: half the way from 18 to 10, for it was not used (RFC 2861)
}

#[test]
fn rfc_8985_7_3_two_lost_at_the_end_take_the_probe_and_rack() {
    let mut b = Bench::new("reno", 100, 10);
    b.seqs();
    b.pass(100);
    b.ack(8, 100, &[]);
    b.pass(203);
    assert_eq!(b.seqs(), [10], "2 SRTT, and two ticks");
    b.pass(100);
    b.ack(8, 100, &[(10, 11)]); // RACK takes over: 8 and 9 were sent long before the probe
    assert_eq!(b.seqs(), [8], "PRR: one delivered, one sent");
    b.pass(100);
    b.ack(9, 100, &[(10, 11)]);
    assert_eq!(b.seqs(), [9]);
    assert_eq!((b.sender.stats().timeouts, b.sender.stats().window_cuts), (0, 1));
}

#[test]
fn rfc_8985_7_4_2_a_probe_for_nothing_costs_nothing() {
    for dsack in [true, false] {
        let mut b = Bench::new("reno", 100, 9);
        b.seqs();
        b.pass(100);
        b.ack(9, 100, &[]);
        b.pass(301);
        assert_eq!(b.seqs(), [9]);
        b.ack(10, 301, &[]); // the original was late
        b.pass(100);
        if dsack {
            b.ack(10, 100, &[(9, 10)]);
        } else {
            b.ack(10, 100, &[]);
        }
        b.sender.supply(1448, b.now, &mut b.out);
        b.pass(100);
        b.ack(11, 100, &[]);
        assert_eq!(b.sender.stats().window_cuts, 0, "dsack {dsack}");
    }
}

#[test]
fn rfc_6937_one_segment_for_two_acknowledgements() {
    let mut b = Bench::new("reno", 100, 0);
    b.seqs();
    b.pass(100);
    b.ack(11, 100, &[]); // window 20, segments 11..31
    assert_eq!(b.seqs().len(), 20);
    b.pass(100);
    b.ack(11, 100, &[(12, 15)]);
    assert_eq!(b.window(), 10.0);
    let mut sent = b.seqs().len();
    for end in 16..32 {
        b.pass(1);
        b.ack(11, 101, &[(12, end)]);
        let now = b.seqs().len();
        assert!(now <= 1);
        sent += now;
    }
    assert!((9..=10).contains(&sent), "{sent} for 19 delivered");
}

#[test]
fn rfc_4015_a_cut_for_a_late_segment_is_undone_by_its_time_stamp() {
    let mut b = Bench::new("reno", 100, 0);
    b.seqs();
    b.pass(100);
    b.ack(1, 100, &[(2, 5)]);
    assert_eq!(b.seqs(), [1, 11]);
    assert_eq!(b.window(), 5.0);
    b.pass(5);
    b.ack(5, 105, &[]); // echoes the original, sent before the retransmission
    b.pass(95);
    b.ack(5, 100, &[(1, 2)]); // the DSACK of the retransmission (RFC 3708)
    assert!(b.window() >= 10.0, "{}", b.window());
}

#[test]
fn rfc_6298_the_minimum_timeout_is_added_and_doubles() {
    let mut b = Bench::new("reno", 100, 0);
    b.seqs();
    let began = b.now;
    let mut at = Vec::new();
    for _ in 0..4 {
        let wake = b.sender.next_wake();
        b.now = wake;
        b.sender.on_timer(wake, &mut b.out);
        at.push((wake.since(began).0 / 1_000_000, b.seqs()[0]));
    }
    // SRTT 100 ms, variation 200 ms: the probe at 202 ms, then RTO 300 ms, doubled
    assert_eq!(at[0], (202, 11));
    assert_eq!(at[1..].iter().map(|a| a.1).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!((at[2].0 - at[1].0, at[3].0 - at[2].0), (600, 1200));
    assert_eq!((b.window(), b.sender.controller().threshold()), (1.0, 5.0));
}

#[test]
fn rfc_2861_restart_after_idle() {
    let mut b = Bench::new("reno", 100, 40);
    for next in [11, 31, 41] {
        b.pass(100);
        b.ack(next, 100, &[]);
    }
    assert!(b.sender.acked_all());
    assert_eq!(b.window(), 40.0);
    b.pass(650); // two timeouts of 300 ms
    b.sender.supply(1448, b.now, &mut b.out);
    assert_eq!(b.window(), 10.0);
}

#[test]
fn rfc_7661_a_window_that_is_not_used_does_not_grow() {
    let mut b = Bench::new("reno", 100, 2);
    for n in 0..6 {
        b.pass(50);
        b.ack(3 + 2 * n, 50, &[]);
        b.sender.supply(2 * 1448, b.now, &mut b.out);
    }
    assert_eq!(b.window(), 10.0);
}

#[test]
fn the_receiver_acknowledges_quickly_at_first_and_tells_of_duplicates() {
    let mut receiver = TcpReceiver::new(&config("cubic"));
    let mut arrive = |at: u64, seq: u32| {
        let now = Time(at * 1_000_000);
        let flags = if seq == 0 { Flags::SYN } else { Flags::NONE };
        let s = Segment { seq, stamp: Stamp::at(now), size: if seq == 0 { 52 } else { 1500 }, flags, extra: None };
        let mut out: Vec<Segment> = Vec::new();
        receiver.on_data(now, &packet(now, &s), &mut out);
        (out, receiver.next_wake())
    };
    let mut acks = 0;
    for seq in 0..27 {
        acks += arrive(100 + u64::from(seq), seq).0.len();
    }
    assert_eq!(acks, 1 + 16 + 5, "the SYN, 16 at once, then every second");
    let (out, due) = arrive(200, 27);
    assert!(out.is_empty());
    assert_eq!(due, Time(240_000_000));
    // RFC 2883 section 4: the duplicate's block first; with time stamps 52 bytes, and 12 for a block
    let (out, _) = arrive(210, 5);
    let blocks: Vec<_> =
        out[0].extra.as_ref().and_then(Extra::tcp).unwrap().blocks().map(|b| (b.start, b.end)).collect();
    assert_eq!((out[0].seq, out[0].size, blocks), (28, 64, vec![(5, 6)]));
    arrive(211, 30);
    let (out, _) = arrive(212, 30);
    let blocks: Vec<_> =
        out[0].extra.as_ref().and_then(Extra::tcp).unwrap().blocks().map(|b| (b.start, b.end)).collect();
    assert_eq!(blocks, [(30, 31), (30, 31)]);
    // a pause longer than a timeout: the sender may be in slow start again
    arrive(213, 28);
    arrive(214, 29);
    assert_eq!(arrive(900, 31).0.len(), 1);
}
