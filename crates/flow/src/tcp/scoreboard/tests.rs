//! Tests of the scoreboard.

use super::*;

fn block(start: u32, end: u32) -> [Block; 3] {
    [Block { start, end }, Block::default(), Block::default()]
}

fn order(sent: &Scoreboard) -> Vec<u32> {
    core::iter::successors(sent.oldest(), |&(seq, _)| sent.after(seq)).map(|(seq, _)| seq).collect()
}

#[test]
fn counts_what_is_in_flight_and_keeps_the_order_of_transmission() {
    let mut sent = Scoreboard::new(1, true);
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
    sent.acked(7, |d| acked.push((d.seq, d.retransmitted)));
    assert_eq!((acked, sent.in_flight(), order(&sent)), (vec![(1, true), (2, true)], 2, vec![7, 8]));
    assert_eq!((sent.sacked(), sent.lost(), sent.retransmitted()), (0, 0, 0));
}

#[test]
fn rfc_2018_8_a_receiver_that_renounces() {
    let mut sent = Scoreboard::new(0, true);
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

/// Remembering the last report changes nothing: a scoreboard that remembers it, and takes a fast path for a block that
/// has grown by a segment, has the same state as one that processes every block in full.
#[test]
fn reports_are_taken_in_as_if_each_were_the_first() {
    use paceline_random::{Sequence, Stream};
    let mut grown = 0;
    for seed in 0..300 {
        let mut draws = Sequence::new(Stream::new(seed, "reports"));
        let mut below = |n: u32| (draws.unit() * f64::from(n)) as u32;
        let mut pair = [Scoreboard::new(0, true), Scoreboard::new(0, true)];
        let mut blocks = [Block::default(); 3];
        let (mut una, mut next, mut now) = (0, 0, 0);
        for _ in 0..200 {
            now += 1;
            let (what, a, b) = (below(12), below(30), below(6));
            match what {
                0..2 => {
                    next += b;
                    for sent in &mut pair {
                        (next - b..next).for_each(|seq| _ = sent.leaves(seq, Time(now)));
                    }
                }
                2 => una = (una + b).min(next),
                3 => pair.iter_mut().for_each(|sent| _ = sent.lose(una + a)),
                4 => pair.iter_mut().for_each(|sent| _ = sent.next_lost().map(|seq| sent.leaves(seq, Time(now)))),
                5 if a == 0 => pair.iter_mut().for_each(|sent| sent.timed_out(|sent| sent.0 % 3 == 0)),
                5 if a == 1 => pair.iter_mut().for_each(Scoreboard::found),
                6 => blocks = [Block { start: una + a, end: una + a + b }, blocks[0], blocks[1]],
                7 => blocks.rotate_left(1),
                _ => blocks[0].end += u32::from(below(8) > 0), // usually the same block grows
            }
            let [one, other] = pair.each_mut();
            other.known = [Block::default(); 3];
            let mut news = [Vec::new(), Vec::new()];
            if let Some(d) = one.grown(&blocks) {
                grown += 1;
                news[0].push(d);
            } else {
                one.reported(&blocks, |d| news[0].push(d));
            }
            other.reported(&blocks, |d| news[1].push(d));
            assert_eq!(news[0], news[1], "seed {seed}");
            let [one, other] = pair.each_mut().map(|sent| {
                let mut acked = Vec::new();
                sent.acked(una, |d| acked.push(d));
                let marks: Vec<_> = (una..next).map(|seq| sent.slots.get(seq).map(|slot| slot.marks)).collect();
                let counts = (sent.sacked(), sent.lost(), sent.retransmitted(), sent.in_flight(), sent.forward());
                let reported: Vec<_> = (una..next).map(|seq| sent.not_sacked(seq)).collect();
                (acked, marks, counts, reported, order(sent), sent.next_lost())
            });
            assert_eq!(one, other, "seed {seed}");
        }
    }
    assert!(grown > 1000, "{grown}");
}
