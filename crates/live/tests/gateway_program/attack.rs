//! What others send to mislead the programs, and what they must leave as it is.

use super::frame::{ACK, Frame, SYN, ethernet, window_of};
use super::{LOWERED_7, Pair, SCALE_7, WITH_PROGRAMS, begun, ready};
use paceline_live::gateway::table::flag;

pub(super) fn a_window_that_is_signed_stays() {
    let signature = |kind: u8| [&[1, 1, kind, 18][..], &[7; 16]].concat();
    let left = |pair: &mut Pair, options: &[u8]| {
        let ack = Frame { window: 10_000, options: options.to_vec(), ..Frame::of(false, ACK, 1001, 5001) };
        window_of(&pair.pass(false, &ack.ip()))
    };
    const TIMES: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    for kind in [19, 29] {
        let mut pair = begun(&SCALE_7, &SCALE_7);
        assert_eq!(left(&mut pair, &TIMES), LOWERED_7);
        assert_eq!(left(&mut pair, &signature(kind)), 10_000);
        assert_eq!(left(&mut pair, &[&TIMES[..], &signature(kind)].concat()), 10_000);
        // Nor does one stay that others forge into the options' end; what cannot be read may be signed.
        assert_eq!(left(&mut pair, &[&[0, 0, 0, 0][..], &signature(kind)].concat()), LOWERED_7);
        assert_eq!(left(&mut pair, &[8, 10, 0, 0]), 10_000);
        assert_eq!(left(&mut pair, &[1; 20]), 10_000);
        assert_eq!(left(&mut pair, &[]), LOWERED_7, "the connection's other segments are as they were");
        pair.agree();
        // A connection that begins so is left alone: what decides on windows does not count with it.
        let signed = [&SCALE_7[..], &signature(kind)].concat();
        for (lan, remote) in [(&signed[..], &SCALE_7[..]), (&SCALE_7, &signed)] {
            let mut pair = begun(lan, remote);
            assert_eq!(left(&mut pair, &signature(kind)), 10_000);
            assert_eq!(pair.twin.flows().next().unwrap().1.scale(), None);
            pair.agree();
        }
    }
}

#[test]
#[ignore = "real time"]
fn forged_acks_push_out_strangers_alone() {
    if !ready() {
        return;
    }
    WITH_PROGRAMS.set(true);
    let mut pair = begun(&SCALE_7, &SCALE_7);
    pair.pass(true, &Frame { payload: 1000, ..Frame::of(true, ACK, 5001, 1001) }.ip());
    let ack = Frame { window: 10_000, ..Frame::of(false, ACK, 1001, 6001) }.ip();
    assert_eq!(window_of(&pair.pass(false, &ack)), LOWERED_7);
    // More than any map holds: ACKs and SYNs of both directions between ends that nobody has.
    for n in 0..150_000_u32 {
        let flags = if n % 2 == 0 { ACK } else { SYN };
        let down = n % 4 < 2;
        let mut forged = Frame::of(down, flags, n, n).ip();
        let station = if down { 16 } else { 12 };
        forged[station + 1..station + 4].copy_from_slice(&n.to_be_bytes()[1..]);
        let kernel = pair.programs();
        let program = if down { &kernel.egress } else { &kernel.ingress };
        program.test_run(&ethernet(&forged), 1).unwrap();
        pair.now += 1;
        if down {
            pair.twin.forward(pair.now, &forged);
        } else {
            pair.twin.back(pair.now, &mut forged);
        }
    }
    assert!(pair.programs().connections().unwrap().len() <= 16_385);
    assert!(pair.twin.flows().count() <= 16_385);
    let run = pair.programs().ingress.test_run(&ethernet(&ack), 1).unwrap();
    assert_eq!(window_of(&run.packet[14..]), LOWERED_7);
    let mut twin = ack.clone();
    assert!(pair.twin.back(pair.now, &mut twin));
    assert_eq!(twin, run.packet[14..]);
}

pub(super) fn who_sees_one_direction_alone_vouches_for_nothing() {
    let vouched = |pair: &Pair| {
        pair.agree();
        pair.twin.flows().next().unwrap().1.flags & flag::VALIDATED != 0
    };
    let ack = |pair: &mut Pair, number| drop(pair.pass(false, &Frame::of(false, ACK, 1001, number).ip()));
    let mut pair = begun(&SCALE_7, &SCALE_7);
    ack(&mut pair, 5001);
    pair.pass(true, &Frame { payload: 1000, ..Frame::of(true, ACK, 5001, 1001) }.ip());
    // Nothing of the data, less than that, more than was sent, half the numbers away.
    for number in [5001, 5000, 6002, 5001 + (1 << 31), 0] {
        ack(&mut pair, number);
        assert!(!vouched(&pair), "{number}");
    }
    ack(&mut pair, 5002);
    assert!(vouched(&pair));
    // Another connection between the same ends begins as a stranger.
    pair.pass(false, &Frame { options: SCALE_7.to_vec(), ..Frame::of(false, SYN, 90_000, 0) }.ip());
    assert!(!vouched(&pair));
}
