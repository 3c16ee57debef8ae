//! Proportional rate reduction under profile `rfc`: RFC 9937, acknowledgement by acknowledgement, worked by hand.

use crate::rfc_sender::{Bench, config, ms};
use paceline_control::{Profile, WindowController, registry};
use paceline_flow::tcp::TcpConfig;
use paceline_packet::Flags;

/// Segments 1 to 20 are out, and the receiver acknowledges each segment.
fn bench(prr: bool, limited_transmit: bool) -> Bench {
    let mut b = Bench::new("sack", TcpConfig { prr, limited_transmit, ..config("sack") }, 20);
    assert_eq!(b.seqs(), (1..=20).collect::<Vec<_>>());
    b.pass(ms(100));
    b
}

/// What is sent for an acknowledgement of all below `next` that reports `blocks`.
fn sent_for_ack(b: &mut Bench, next: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
    b.pass(ms(1));
    b.ack_with(next, Flags::ACK, blocks);
    b.seqs()
}

/// One of 20 is lost. The third report (two more segments have left by limited transmit) finds 18 in flight, RecoverFS 20 and ssthresh
/// 10: from there one segment for every two acknowledgements, the retransmission first, until 10 are in flight, then for each. RFC 6675 is
/// silent for half a window instead.
#[test]
fn rfc_9937_6_a_single_loss() {
    for prr in [true, false] {
        let mut b = bench(prr, true);
        assert_eq!((sent_for_ack(&mut b, 1, &[(2, 3)]), sent_for_ack(&mut b, 1, &[(2, 4)])), (vec![21], vec![22]));
        let mut next = 23;
        for (n, end) in (5..=23).enumerate() {
            let sent = sent_for_ack(&mut b, 1, &[(2, end)]);
            let expected = match (prr, n) {
                (_, 0) => vec![1],
                (true, _) if n > 16 || n < 16 && n % 2 == 0 => vec![next], // the 16th leaves 10: one for one from there
                (false, _) if n > 9 => vec![next], // 19 in flight with the retransmission: the tenth leaves 9
                _ => vec![],
            };
            next += u32::from(n > 0) * expected.len() as u32;
            assert_eq!(sent, expected, "prr {prr}, report {n}");
        }
        assert_eq!(next, 32, "nine new segments and the retransmission are in flight");
        sent_for_ack(&mut b, 23, &[]);
        assert_eq!((b.window(), b.sender.controller().threshold()), (10.0, 10.0), "prr {prr}");
    }
}

/// 15 of 20 are lost: 2 in flight when that is found. RFC 6675 sends 8 at once; PRR one for each that is delivered, and two where
/// an acknowledgement moves the left edge and tells of no further loss (SafeACK), up to ssthresh.
#[test]
fn rfc_9937_6_a_burst_of_losses() {
    let mut b = bench(true, false);
    for (next, blocks, sent) in [
        (1, [(16, 17)], vec![]),
        (1, [(16, 18)], vec![]),
        (1, [(16, 19)], vec![1]), // in flight: 19 and 20
        (1, [(16, 20)], vec![2]),
        (1, [(16, 21)], vec![3]), // in flight: 1, 2 and 3
        (2, [(16, 21)], vec![4, 5]),
        (3, [(16, 21)], vec![6, 7]),
        (4, [(16, 21)], vec![8, 9]), // 6
        (5, [(16, 21)], vec![10, 11]),
        (6, [(16, 21)], vec![12, 13]),
        (7, [(16, 21)], vec![14, 15]), // 9
        (8, [(16, 21)], vec![21, 22]), // 10: ssthresh
        (9, [(16, 21)], vec![23]),
        (11, [(16, 21)], vec![24, 25]),
    ] {
        assert_eq!(sent_for_ack(&mut b, next, &blocks), sent, "{next} {blocks:?}");
    }
    let mut old = bench(false, false);
    sent_for_ack(&mut old, 1, &[(16, 17)]);
    sent_for_ack(&mut old, 1, &[(16, 18)]);
    assert_eq!(sent_for_ack(&mut old, 1, &[(16, 19)]), (1..=8).collect::<Vec<_>>());
}

/// SafeACK: 1 to 10 are lost of 20, 11 to 15 reported, 1 to 3 sent again; then the retransmission of 1 arrives. With 17 and 18
/// reported too, three are delivered and four may leave. With 19 as well it tells that 16 is lost: four for four.
#[test]
fn rfc_9937_6_safe_ack() {
    for (end, delivered) in [(19, 3), (20, 4)] {
        let mut b = bench(true, false);
        for (end, sent) in [(12, vec![]), (13, vec![]), (14, vec![1]), (15, vec![2]), (16, vec![3])] {
            assert_eq!(sent_for_ack(&mut b, 1, &[(11, end)]), sent);
        }
        assert_eq!(sent_for_ack(&mut b, 2, &[(17, end), (11, 16)]), [4, 5, 6, 7], "{delivered} delivered");
    }
}

/// Nothing is delivered, nothing is sent; what was missed while the application was silent is made up (prr_delivered - prr_out),
/// and no more than ssthresh is in flight.
#[test]
fn rfc_9937_6_duplicates_without_news() {
    let mut b = bench(true, false);
    for end in [17, 18, 19] {
        sent_for_ack(&mut b, 1, &[(16, end)]);
    }
    for _ in 0..5 {
        assert!(sent_for_ack(&mut b, 1, &[(16, 19)]).is_empty());
    }
    // three reports in one: three segments
    assert_eq!(sent_for_ack(&mut b, 2, &[(16, 21)]), vec![2, 3, 4, 5]);
}

/// A timeout ends it: the window is 1 and slow start goes on from there.
#[test]
fn rfc_9937_6_a_timeout() {
    let mut b = bench(true, false);
    for end in [17, 18, 19] {
        sent_for_ack(&mut b, 1, &[(16, end)]);
    }
    let wait = b.sender.next_wake().since(b.now);
    b.pass(wait);
    assert_eq!(b.seqs(), [1]);
    b.pass(ms(100));
    assert_eq!(sent_for_ack(&mut b, 2, &[(16, 19)]), [2, 3]);
}

/// It is a setting of profile `rfc`, off by default: RFC 6675 is what SACK says there.
#[test]
fn the_default() {
    for scheme in ["sack", "cubic"] {
        assert!(!TcpConfig::new(Profile::Rfc, registry::scheme(scheme).unwrap()).prr);
    }
}
