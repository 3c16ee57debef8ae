//! What must hold of each window in any conversation, reckoned without wrapping numbers and without the twin.

use super::frame::{ACK, Frame, SYN, is_right, window_of};
use super::{Pair, on};
use proptest::prelude::*;

/// A step of a conversation.
#[derive(Clone, Debug)]
enum Step {
    /// New data of so many bytes from the remote end.
    Data(usize),
    /// Its last so many bytes once more.
    Again(usize),
    /// The station acknowledges this share of what is outstanding (in 256ths), with this window field.
    Ack(u64, u16),
    /// An old ACK comes late, so many bytes behind.
    Old(u64, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let window = || prop_oneof![4 => any::<u16>(), 1 => Just(0), 2 => 0..400_u16];
    // Much is outstanding most of the time: more than two segments.
    let share = prop_oneof![3 => 0..24_u64, 1 => 0..=256_u64];
    prop_oneof![
        8 => (1..1500_usize).prop_map(Step::Data),
        1 => (1..1400_usize).prop_map(Step::Again),
        4 => (share, window()).prop_map(|(share, field)| Step::Ack(share, field)),
        1 => (0..20_000_u64, window()).prop_map(|(behind, field)| Step::Old(behind, field)),
    ]
}

/// Initial sequence numbers near a wrap, and near where signed differences turn.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        1 => 0..20_u32,
        3 => (0..30_000_u32).prop_map(|d| u32::MAX - d),
        1 => (0..30_000_u32).prop_map(|d| (1 << 31) - d),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A window is never raised; ACK and window never fall below what was sent, nor the window below two segments; and it is
    /// lowered as far as that allows.
    fn promised(
        steps in proptest::collection::vec(step(), 1..100),
        isns in (number(), number()),
        shift in 0..17_u8,
        scaled in any::<bool>(),
        mss in prop_oneof![Just(None), Just(Some(536_u16)), Just(Some(1460)), Just(Some(8960))],
        limit in prop_oneof![1..4000_u32, 1..200_000_u32],
        six in any::<bool>(),
    ) {
        let (lan, remote) = isns;
        let mut pair = Pair::new();
        pair.control(on(limit));
        let mut offer = vec![1, 3, 3, shift];
        offer.extend(mss.iter().flat_map(|mss| [&[2, 4][..], &mss.to_be_bytes()].concat()));
        let answer = if scaled { vec![1, 3, 3, 9] } else { vec![] };
        pair.pass(false, &Frame { six, options: offer, ..Frame::of(false, SYN, lan, 0) }.ip());
        let lan = lan.wrapping_add(1);
        pair.pass(true, &Frame { six, options: answer, ..Frame::of(true, SYN | ACK, remote, lan) }.ip());
        let shift = if scaled { shift.min(14) } else { 0 };
        let at = |offset: u64| remote.wrapping_add(1).wrapping_add(offset as u32);
        let (mut sent, mut acked, mut largest) = (0_u64, 0_u64, 0_u64);
        for step in steps {
            let (ack, field) = match step {
                Step::Data(len) | Step::Again(len) => {
                    let again = matches!(step, Step::Again(_));
                    let from = if again { sent.saturating_sub(len as u64) } else { sent };
                    let len = if again { (sent - from) as usize } else { len };
                    pair.pass(true, &Frame { six, payload: len, ..Frame::of(true, ACK, at(from), lan) }.ip());
                    largest = largest.max(len as u64);
                    sent = sent.max(from + len as u64);
                    continue;
                }
                Step::Ack(share, field) => {
                    acked += (sent - acked) * share / 256;
                    (acked, field)
                }
                Step::Old(behind, field) => (acked.saturating_sub(behind), field),
            };
            let packet = Frame { six, window: field, ..Frame::of(false, ACK, lan, at(ack)) }.ip();
            let after = pair.pass(false, &packet);
            prop_assert!(is_right(&after));
            let new = window_of(&after);
            let segment = largest.max(u64::from(mss.unwrap_or(536).min(1460)));
            let window = u64::from(new) << shift;
            prop_assert!(new <= field, "raised");
            if new != field {
                prop_assert!(ack + window >= sent, "{ack} + {window} < {sent}");
                prop_assert!(window >= 2 * segment, "{window} of two segments of {segment}");
            }
            let wanted = u64::from(limit).max(sent - ack).max(2 * segment).div_ceil(1 << shift);
            prop_assert_eq!(u64::from(new), wanted.min(u64::from(field)));
        }
        pair.agree();
    }
}

pub(super) fn windows_keep_what_is_promised() {
    promised();
}
