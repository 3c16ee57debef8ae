//! What is known of segments, step by step.

use super::*;

fn block(start: u32, end: u32) -> [Block; 3] {
    [Block { start, end }, Block::default(), Block::default()]
}

fn order(sent: &Sent) -> Vec<u32> {
    core::iter::successors(sent.oldest(), |&(seq, _)| sent.after(seq)).map(|(seq, _)| seq).collect()
}

#[test]
fn counts_what_is_in_flight_and_keeps_the_order_of_transmission() {
    let mut sent = Sent::new(1, true);
    for seq in 1..9 {
        sent.leaves(seq, Time(u64::from(seq)));
    }
    assert_eq!((sent.in_flight(), order(&sent)), (8, (1..9).collect()));
    let mut news = Vec::new();
    sent.reported(&block(3, 5), |d| news.push(d.seq));
    sent.reported(&block(3, 7), |d| news.push(d.seq)); // only what is new
    assert_eq!((news, sent.in_flight()), (vec![3, 4, 5, 6], 4));
    sent.lose(2);
    sent.lose(1);
    assert_eq!((sent.in_flight(), order(&sent), sent.next_lost()), (2, vec![7, 8], Some(1)));
    sent.leaves(1, Time(20));
    assert_eq!((sent.in_flight(), order(&sent), sent.next_lost()), (3, vec![7, 8, 1], Some(2)));
    assert!(sent.lose(1), "the retransmission is lost too");
    sent.leaves(1, Time(30));
    sent.leaves(2, Time(31));
    assert_eq!((sent.in_flight(), sent.next_lost()), (4, None));
    let mut acked = Vec::new();
    sent.acked(7, |d| acked.push((d.seq, d.again)));
    assert_eq!((acked, sent.in_flight(), order(&sent)), (vec![(1, true), (2, true)], 2, vec![7, 8]));
    assert_eq!((sent.sacked(), sent.lost(), sent.again()), (0, 0, 0));
}

#[test]
fn rfc_2018_8_a_receiver_that_renounces() {
    let mut sent = Sent::new(0, true);
    for seq in 0..4 {
        sent.leaves(seq, Time(0));
    }
    sent.reported(&block(1, 3), |_| {});
    sent.acked(1, |_| {});
    sent.timed_out(|_| false);
    assert_eq!((sent.sacked(), sent.lost(), sent.in_flight()), (0, 3, 0));
    sent.found();
    assert_eq!((sent.lost(), order(&sent)), (0, vec![1, 2, 3]));
}
