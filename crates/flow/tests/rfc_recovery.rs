//! What losses, marks and timeouts do under profile `rfc`, rule by rule: how often the window is cut, when a recovery may
//! begin, what is sent again.

use crate::rfc_sender::{Bench, config, ms};
use paceline_control::{Ecn, Profile, TcpController, WindowController, registry};
use paceline_flow::tcp::{TcpConfig, TcpSender};
use paceline_packet::Flags;
use paceline_random::Stream;
use paceline_units::Time;

const NONE: [u32; 0] = [];
const ECHO: Flags = Flags(Flags::ACK.0 | Flags::ECE.0);

/// A sender of which nothing has been acknowledged.
fn unconnected(scheme: &str) -> Bench {
    let named = registry::scheme(scheme).unwrap();
    let controller = TcpController::new(named, Profile::Rfc, &[]).unwrap();
    let mut sender = TcpSender::new(&config(scheme), controller, Stream::new(1, "t"));
    let mut out = Vec::new();
    sender.supply_endless(Time(0), &mut out);
    sender.start(Time(0), &mut out);
    Bench { sender, now: Time(0), out, sent: Time(0) }
}

fn threshold(b: &Bench) -> f64 {
    b.sender.controller().threshold()
}

/// A lost SYN costs the initial window and the timer, and says nothing of a threshold; one that is merely late cannot be told
/// from it.
#[test]
fn rfc_5681_3_1_a_lost_syn_leaves_one_segment_and_no_threshold() {
    for scheme in ["tahoe", "reno", "newreno", "sack", "cubic", "vegas", "veno"] {
        let mut b = unconnected(scheme);
        assert_eq!(b.seqs(), [0]);
        b.pass(ms(1000)); // RFC 6298 (2.1)
        assert_eq!(b.seqs(), [0], "{scheme}");
        b.pass(ms(100));
        b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]);
        assert_eq!(b.seqs(), [1], "{scheme}: one segment");
        assert_eq!((b.window(), threshold(&b)), (1.0, f64::INFINITY), "{scheme}");
        assert_eq!(b.sender.next_wake().since(b.now), ms(3000), "{scheme}: RFC 6298 (5.7)");
        assert_eq!((b.sender.stats().timeouts, b.sender.stats().window_cuts), (1, 0), "{scheme}");
        for _ in 0..3 {
            b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]); // answers to SYNs sent before
        }
        assert_eq!((b.seqs(), b.sender.stats().fast_retransmits), (vec![], 0), "{scheme}: a SYN/ACK is no duplicate");
        b.pass(ms(100));
        b.ack(2);
        b.pass(ms(100));
        if scheme != "vegas" {
            assert_eq!((b.window(), b.seqs()), (2.0, vec![2, 3]), "{scheme}: slow start");
        }
    }
    // in time: the initial window
    let mut b = unconnected("newreno");
    b.seqs();
    b.pass(ms(900));
    b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]);
    assert_eq!(b.seqs(), [1, 2, 3]);
}

/// The same with RACK, whose tail loss probe comes before the timer. Prague's law has a first window of its own.
#[test]
fn rfc_5681_3_1_a_lost_syn_leaves_one_segment_with_rack() {
    for scheme in ["bbr", "bbr3", "copa", "c4"] {
        let mut b = unconnected(scheme);
        assert_eq!(b.seqs(), [0]);
        b.pass(ms(1000));
        assert_eq!(b.seqs(), [0], "{scheme}");
        b.pass(ms(100));
        b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]);
        assert_eq!((b.seqs(), b.window()), (vec![1], 1.0), "{scheme}");
        let (established, mut probe) = (b.now, b.now);
        while b.sender.stats().timeouts == 1 {
            let wait = b.sender.next_wake().since(b.now);
            b.pass(wait);
            if b.seqs() == [2] {
                probe = b.now;
            }
        }
        assert!(probe > established && probe < established + ms(1000), "{scheme}: RFC 8985, 7.3");
        assert_eq!(b.now, probe + ms(3000), "{scheme}: RFC 6298 (5.7)");
    }
}

/// Prague's window exceeds the SYN, and its pacing has a pause after it.
#[test]
fn no_data_before_the_handshake_is_over() {
    for scheme in ["prague", "bbr", "bbr3", "copa", "c4", "dctcp"] {
        let mut b = unconnected(scheme);
        assert_eq!(b.seqs(), [0]);
        for _ in 0..90 {
            b.pass(ms(10));
            assert_eq!(b.seqs(), NONE, "{scheme} at {:?}", b.now);
        }
        b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]);
        assert_eq!(b.seqs().first(), Some(&1), "{scheme}");
    }
}

/// The first segment's loss is found by duplicates even if the SYN was lost before it.
#[test]
fn a_lost_syn_does_not_forbid_fast_retransmit() {
    for scheme in ["newreno", "sack"] {
        let mut b = unconnected(scheme);
        b.pass(ms(1000));
        b.ack_with(1, Flags::ACK.with(Flags::SYN), &[]);
        b.ack(2);
        b.ack(3);
        b.ack(4);
        b.seqs(); // 2 to 7 in all
        for end in [6, 7, 8] {
            b.ack_with(4, Flags::ACK, &[(5, end)]);
        }
        assert_eq!((b.sender.stats().fast_retransmits, b.sender.stats().timeouts), (1, 1), "{scheme}");
    }
}

/// Nor does a connection without a handshake forbid it, whose first segment is data.
#[test]
fn the_first_segment_s_loss_is_found_without_a_handshake() {
    for scheme in ["newreno", "sack", "reno", "tahoe"] {
        let named = registry::scheme(scheme).unwrap();
        let config = TcpConfig { handshake: false, initial_window: 5, ..config(scheme) };
        let controller = TcpController::new(named, Profile::Rfc, &[]).unwrap();
        let mut b = Bench { sender: TcpSender::new(&config, controller, Stream::new(1, "t")), ..unconnected(scheme) };
        b.out.clear();
        b.sender.supply_endless(b.now, &mut b.out);
        b.sender.start(b.now, &mut b.out);
        assert_eq!(b.seqs(), [0, 1, 2, 3, 4], "{scheme}");
        for end in [2, 3, 4] {
            b.ack_with(0, Flags::ACK, &[(1, end)]);
        }
        assert_eq!((b.seqs().last(), b.sender.stats().fast_retransmits), (Some(&0), 1), "{scheme}");
    }
}

/// "the same segment": a timeout of another one is another sign of congestion, backed off or not.
#[test]
fn rfc_5681_3_1_a_timeout_of_another_segment_cuts_again() {
    for (scheme, first) in [("newreno", 5.0), ("sack", 5.0), ("tahoe", 5.0), ("cubic", 7.0), ("vegas", 5.0)] {
        let mut b = Bench::new(scheme, config(scheme), 10);
        b.seqs();
        b.pass(ms(1000));
        assert_eq!((b.seqs(), b.window(), threshold(&b)), (vec![1], 1.0, first), "{scheme}: of ten in flight");
        b.pass(ms(100));
        b.ack(2);
        assert!(b.window() <= 2.0);
        b.pass(ms(2000)); // Karn: still backed off
        assert_eq!(b.seqs().last(), Some(&2), "{scheme}");
        assert_eq!((b.window(), threshold(&b)), (1.0, 2.0), "{scheme}: of at most two in flight");
        b.pass(ms(4000));
        assert_eq!((b.seqs(), threshold(&b)), (vec![2], 2.0), "{scheme}: the same segment");
    }
    // the threshold stays where the same segment's first timeout put it, though what is in flight has shrunk
    let mut b = Bench::new("newreno", config("newreno"), 10);
    b.pass(ms(1000));
    b.pass(ms(2000));
    assert_eq!(threshold(&b), 5.0);
}

/// Section 5 has no test of RecoveryPoint: a loss of the very next segment is repaired without a timeout.
#[test]
fn rfc_6675_5_recovery_may_follow_recovery() {
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    for end in [3, 4, 5] {
        b.ack_with(1, Flags::ACK, &[(2, end)]);
    }
    assert_eq!((b.seqs(), b.window()), (vec![11, 12, 1], 5.0));
    b.ack_with(1, Flags::ACK, &[(2, 13)]); // only the retransmission is in flight
    assert_eq!(b.seqs(), [13, 14, 15, 16]);
    b.ack(13); // all that recovery began with; 13 is lost
    assert_eq!(b.seqs(), [17]);
    for end in [15, 16] {
        b.ack_with(13, Flags::ACK, &[(14, end)]);
    }
    assert_eq!(b.seqs(), [18, 19]);
    b.ack_with(13, Flags::ACK, &[(14, 17)]);
    assert_eq!(b.seqs(), [13]);
    assert_eq!((b.sender.stats().fast_retransmits, b.sender.stats().timeouts), (2, 0));
    assert_eq!(b.window(), 2.5, "half of 13 to 17");
}

/// After a timeout: not until HighACK reaches RecoveryPoint, and then at once.
#[test]
fn rfc_6675_5_1_no_recovery_before_the_timeout_s_recovery_point() {
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(1000));
    assert_eq!(b.seqs(), [1]);
    b.ack(2);
    assert_eq!(b.seqs(), [2, 3]);
    b.ack_with(2, Flags::ACK, &[(5, 8)]); // late originals
    assert_eq!((b.seqs(), b.sender.stats().fast_retransmits), (vec![], 0));
    b.ack(11);
    assert_eq!(b.seqs(), [11, 12, 13]);
    for (end, next) in [(13, 14), (14, 15), (15, 11)] {
        b.ack_with(11, Flags::ACK, &[(12, end)]);
        assert_eq!(b.seqs(), [next]);
    }
    assert_eq!(b.sender.stats().fast_retransmits, 1);
}

/// Section 2: what reports something new is a duplicate, even if it moves the left edge.
#[test]
fn rfc_6675_2_a_duplicate_may_acknowledge() {
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    b.ack_with(3, Flags::ACK, &[(4, 7)]);
    assert_eq!(b.seqs()[0], 3, "three reported above it: lost");
    assert_eq!(b.sender.stats().fast_retransmits, 1);
}

/// Section 5 step (3): limited transmit goes by the pipe, so that lost acknowledgements do not lessen it.
#[test]
fn rfc_6675_5_limited_transmit_goes_by_the_pipe() {
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    b.ack_with(1, Flags::ACK, &[(2, 4)]);
    assert_eq!(b.seqs(), [11, 12]);
    b.ack_with(1, Flags::ACK, &[(2, 5)]);
    assert_eq!((b.seqs(), b.window()), (vec![1], 5.0), "FlightSize is without the two");

    // what takes the place of the acknowledged is no limited transmit
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    b.ack_with(5, Flags::ACK, &[(6, 7)]);
    assert_eq!((b.seqs(), b.window()), ((11..17).collect(), 11.0), "four and growth, and one for the one reported");
    b.ack_with(5, Flags::ACK, &[(6, 9)]);
    assert_eq!((b.seqs()[0], b.window()), (5, 5.5), "half of 5 to 15");

    let c = TcpConfig { limited_transmit: false, ..config("sack") };
    let mut b = Bench::new("sack", c, 10);
    b.seqs();
    b.ack_with(1, Flags::ACK, &[(2, 4)]);
    assert_eq!(b.seqs(), NONE);
}

/// RFC 5681 section 3.2 and RFC 6675 section 5: duplicates leave cwnd as it is, those without news let nothing out, and an
/// acknowledgement of new data begins their count again.
#[test]
fn rfc_5681_3_2_the_first_duplicates() {
    for scheme in ["newreno", "sack"] {
        let mut b = Bench::new(scheme, config(scheme), 10);
        b.seqs();
        b.pass(ms(100));
        for end in [3, 4] {
            b.ack_with(1, Flags::ACK, &[(2, end)]);
        }
        assert_eq!((b.seqs(), b.window()), (vec![11, 12], 10.0), "{scheme}");
    }
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    (0..5).for_each(|_| b.ack(1));
    assert_eq!((b.seqs(), b.sender.stats().fast_retransmits), (vec![], 0), "nothing new is reported");
    for end in [3, 4] {
        b.ack_with(1, Flags::ACK, &[(2, end)]);
    }
    b.ack(4);
    b.ack_with(4, Flags::ACK, &[(5, 6)]);
    assert_eq!(b.sender.stats().fast_retransmits, 0, "the first duplicate after an acknowledgement");
}

/// RFC 3042: "previously unsent data".
#[test]
fn rfc_3042_limited_transmit_sends_nothing_again() {
    let mut b = Bench::new("newreno", config("newreno"), 10);
    b.seqs();
    b.pass(ms(1000));
    b.ack(2);
    assert_eq!(b.seqs(), [1, 2, 3]);
    b.ack(2);
    b.ack(2);
    assert_eq!(b.seqs(), NONE);
}

/// RFC 6675 section 5.1, erratum 1610 to RFC 2018: what was reported is not sent again after a timeout, ...
#[test]
fn rfc_6675_5_1_after_a_timeout_only_the_holes_are_sent() {
    for reported in [true, false] {
        let mut b = Bench::new("sack", config("sack"), 10);
        b.seqs();
        b.pass(ms(100));
        b.ack_with(1, Flags::ACK, &[(3, 6), (7, 8)]);
        assert_eq!(b.seqs(), [1]);
        b.pass(ms(1000));
        assert_eq!((b.seqs(), b.window()), (vec![1], 1.0));
        let blocks: &[(u32, u32)] = if reported { &[(3, 6), (7, 8)] } else { &[] };
        b.ack_with(2, Flags::ACK, blocks);
        assert_eq!(b.seqs(), [2, 6], "told again: {reported}");
        b.ack_with(6, Flags::ACK, if reported { &[(7, 8)] } else { &[] });
        assert_eq!(b.seqs(), [8, 9], "told again: {reported}");
        b.ack(8);
        b.ack(11);
        assert_eq!(b.sender.stats().retransmitted, 1 + 1 + 2 + 2 + 1, "1 twice, 2, 6, 8, 9, 10");
    }
}

/// ... unless the receiver asks for it: it has thrown it away (RFC 2018 section 8), and nothing of it counts.
#[test]
fn rfc_2018_8_a_receiver_that_renounces() {
    let mut b = Bench::new("sack", config("sack"), 10);
    b.seqs();
    b.pass(ms(100));
    b.ack_with(1, Flags::ACK, &[(3, 8)]);
    b.pass(ms(1000));
    b.ack(2);
    assert_eq!(b.seqs(), [1, 2, 1, 2, 8]);
    b.ack(3); // and not 8: 3 to 7 are gone
    b.seqs();
    b.pass(ms(2000));
    assert_eq!(b.seqs(), [3]);
    b.ack(4);
    assert_eq!(b.seqs(), [4, 5]);
}

fn marked(scheme: &str) -> Bench {
    let c = TcpConfig { ecn: Ecn::Classic, ..config(scheme) };
    let mut b = Bench::new(scheme, c, 10);
    b.seqs();
    b.pass(ms(100));
    b.ack_with(2, ECHO, &[]);
    b
}

/// RFC 3168 section 6.1.2: one reduction for the marks and losses of one window of data, and they are repaired all the same;
/// the next window's loss is a new one.
#[test]
fn rfc_3168_6_1_2_a_mark_and_a_loss_of_one_window() {
    for scheme in ["sack", "newreno", "cubic", "reno"] {
        let mut b = marked(scheme);
        let cut = if scheme == "cubic" { 7.0 } else { 5.0 };
        assert_eq!((b.window(), b.sender.stats().ecn_cuts), (cut, 1), "{scheme}");
        assert_eq!(b.seqs(), NONE);
        for end in [4, 5, 6] {
            b.ack_with(2, ECHO, &[(3, end)]);
        }
        assert_eq!(b.seqs()[0], 2, "{scheme}: repaired");
        assert_eq!((b.window(), b.sender.stats().window_cuts), (cut, 1), "{scheme}: but not cut again");
        let next = b.sender.in_flight() + 2;
        b.ack(next);
        b.pass(ms(100));
        b.ack(next + 1);
        b.seqs();
        let window = b.window();
        for end in [3, 4, 5] {
            b.ack_with(next + 1, Flags::ACK, &[(next + 2, next + end)]);
        }
        assert_eq!(b.seqs().last(), Some(&(next + 1)), "{scheme}: the next window's");
        assert!(b.window() < 0.8 * window, "{scheme}: {window} to {}", b.window());
        assert_eq!((b.sender.stats().window_cuts, b.sender.stats().timeouts), (2, 0), "{scheme}");
    }
}

/// Tahoe begins again from the lost segment; the threshold is the mark's.
#[test]
fn rfc_3168_6_1_2_tahoe_keeps_the_mark_s_threshold() {
    let mut b = marked("tahoe");
    (0..3).for_each(|_| b.ack_with(2, ECHO, &[]));
    assert_eq!((b.seqs(), b.window(), threshold(&b)), (vec![2], 1.0, 5.0));
}

#[test]
fn rfc_3168_6_1_2_vegas_cuts_once() {
    let mut b = marked("vegas");
    assert_eq!(b.window(), 5.0);
    (0..3).for_each(|_| b.ack_with(2, ECHO, &[]));
    assert_eq!((b.seqs(), b.sender.stats().window_cuts), (vec![2], 1));
    // and the other way round
    let mut b = Bench::new("vegas", TcpConfig { ecn: Ecn::Classic, ..config("vegas") }, 10);
    b.seqs();
    b.pass(ms(100));
    b.ack(2);
    (0..3).for_each(|_| b.ack(2));
    assert!(b.out.iter().any(|s| s.seq == 2) && b.sender.stats().window_cuts == 1);
    b.ack_with(5, ECHO, &[]);
    assert_eq!(b.sender.stats().window_cuts, 1);
}

/// "reduces its congestion window for any reason": else the echo goes on, and the window is cut for it too.
#[test]
fn rfc_3168_6_1_2_cwr_after_a_loss() {
    for scheme in ["newreno", "sack"] {
        let c = TcpConfig { ecn: Ecn::Classic, ..config(scheme) };
        let mut b = Bench::new(scheme, c, 10);
        b.seqs();
        for end in [3, 4, 5] {
            b.ack_with(1, Flags::ACK, &[(2, end)]);
        }
        b.out.clear();
        for end in 6..=13 {
            b.ack_with(1, Flags::ACK, &[(2, end)]);
        }
        assert!(b.out[0].seq == 13 && b.out[0].flags.has(Flags::CWR), "{scheme}: {:?}", b.out);
    }
}

/// A mark at a window of one: the next segment waits for the retransmission timer.
#[test]
fn rfc_3168_6_1_2_a_mark_at_a_window_of_one() {
    for scheme in ["newreno", "sack", "cubic"] {
        let c = TcpConfig { ecn: Ecn::Classic, ..config(scheme) };
        let mut b = Bench::new(scheme, c, 1);
        assert_eq!(b.seqs(), [1]);
        b.pass(ms(100));
        b.ack_with(2, ECHO, &[]);
        assert_eq!((b.seqs(), b.window()), (vec![], 1.0), "{scheme}");
        b.pass(ms(999));
        assert_eq!(b.seqs(), NONE, "{scheme}");
        b.pass(ms(1));
        assert!(b.out[0].flags.has(Flags::CWR), "{scheme}");
        assert_eq!((b.seqs(), b.sender.stats().timeouts), (vec![2], 0), "{scheme}");
        b.pass(ms(100));
        b.ack(3);
        assert_eq!(b.seqs(), [3, 4], "{scheme}: and no longer");
    }
    // a window of two goes to one, and sends on
    let c = TcpConfig { ecn: Ecn::Classic, ..config("newreno") };
    let mut b = Bench::new("newreno", c, 2);
    b.seqs();
    b.ack_with(2, ECHO, &[]);
    assert_eq!((b.window(), threshold(&b)), (1.0, 2.0));
    b.ack(3);
    assert_eq!(b.seqs()[0], 3);
}

/// Vegas after a timeout: RFC 5681's loss window and threshold, and no inflation by what was sent again for nothing.
#[test]
fn rfc_5681_3_1_vegas_after_a_timeout() {
    let mut b = Bench::new("vegas", config("vegas"), 10);
    b.seqs();
    b.pass(ms(1000));
    assert_eq!((b.seqs(), b.window(), threshold(&b)), (vec![1], 1.0, 5.0));
    b.pass(ms(10));
    (0..6).for_each(|_| b.ack(1));
    assert_eq!((b.seqs(), b.window()), (vec![], 1.0));
    b.ack(11); // all that was out; more than the threshold's two that an end of recovery would leave
    assert_eq!(threshold(&b), 5.0);
}

/// RFC 5681 section 3.1: "MUST NOT increment cwnd by more than SMSS", however much one acknowledgement covers.
#[test]
fn rfc_5681_3_1_one_segment_an_acknowledgement_at_most() {
    for scheme in ["newreno", "sack", "veno"] {
        let mut b = Bench::new(scheme, config(scheme), 10);
        b.pass(ms(1000));
        b.ack(2);
        b.pass(ms(2000)); // at a threshold of two
        b.ack(3);
        b.ack(4);
        let before = b.window();
        assert!((2.0..3.0).contains(&before), "{scheme}: {before}");
        b.ack(11);
        assert_eq!(b.window(), before + 1.0, "{scheme}");
    }
    let mut b = Bench::new("cubic", config("cubic"), 10);
    b.pass(ms(1000));
    b.ack(2);
    b.pass(ms(2000));
    b.ack(3);
    b.ack(4);
    let before = b.window();
    b.pass(ms(500));
    b.ack(11);
    assert!(b.window() <= 1.5 * before, "RFC 9438 section 4.2: at most the target, {before} to {}", b.window());
}
