//! How marks are told and counted: RFC 9768's three bits, RFC 8257's changes.

use crate::rfc_sender;

use paceline_control::Ecn;
use paceline_flow::Segment;
use paceline_flow::tcp::{TcpConfig, TcpReceiver, TcpSender};
use paceline_packet::{ACE_OFFSET, Flags, Packet, Stamp};
use paceline_random::Stream;
use paceline_units::Time;
use rfc_sender::{Bench, config, ms};

/// What a receiver with delayed acknowledgements says of segments of which some are marked: of each acknowledgement the next
/// segment expected and its flags.
fn acks_for(ecn: Ecn, marked: &[bool]) -> Vec<(u32, Flags)> {
    let config = TcpConfig { ecn, handshake: false, ..config("dctcp") };
    let mut receiver = TcpReceiver::new(&config);
    let mut out: Vec<Segment> = Vec::new();
    for (seq, &marked) in (0..).zip(marked) {
        let flags = if marked { Flags::ECT.with(Flags::CE) } else { Flags::ECT };
        let data = Segment { seq, stamp: Stamp::at(Time::ZERO), size: 1500, flags, extra: None };
        receiver.on_data(Time::ZERO, &rfc_sender::segments::packet(Time::ZERO, &data), &mut out);
    }
    out.into_iter().map(|ack| (ack.seq, ack.flags)).collect()
}

/// RFC 8257 section 3.2: a change is told at once, what waits as it came, and each state says how its segments were.
#[test]
fn dctcp_tells_each_change_at_once() {
    let acks = acks_for(Ecn::Dctcp, &[false, false, false, true, true, true, false, false]);
    let echo: Vec<(u32, bool)> = acks.iter().map(|(next, flags)| (*next, flags.has(Flags::ECE))).collect();
    // 1, 2 unmarked; 3 waits and goes as unmarked when 4, marked, comes; 5 and 6 marked; 7 tells of the change
    assert_eq!(echo, [(2, false), (3, false), (4, true), (6, true), (7, false)]);
}

/// RFC 9768 section 3.2.2: the count begins with 5 and wraps at 8.
#[test]
fn accurate_ecn_counts_modulo_8() {
    let acks = acks_for(Ecn::Accurate, &[false, false, true, false, true, true, true, true]);
    let counts: Vec<u32> = acks.iter().map(|(_, flags)| flags.ace()).collect();
    // 3 and 5 are told at once, as the segments before them were not marked; 4 and 6 wait for the next
    assert_eq!(acks.iter().map(|(next, _)| *next).collect::<Vec<u32>>(), [2, 3, 5, 7]);
    assert_eq!(counts, [ACE_OFFSET, 6, 7, 1]);
}

/// RFC 9768 section 3.2.2.5.1: the acknowledgement of a mark after none does not wait; of one after another it does.
#[test]
fn accurate_ecn_tells_a_mark_after_none_at_once() {
    let next = |marked: &[bool]| acks_for(Ecn::Accurate, marked).iter().map(|(next, _)| *next).collect::<Vec<u32>>();
    assert_eq!(next(&[true]), [1]);
    assert_eq!(next(&[false, true]), [2]);
    assert_eq!(next(&[true, true]), [1]);
    assert_eq!(next(&[true, true, true]), [1, 3]);
    assert_eq!(next(&[true, false]), [1]);
    assert_eq!(next(&[true, false, false]), [1, 3]);
    assert_eq!(next(&[true, false, true]), [1, 3]);
}

/// The share of marks that the sender has counted in the round trip after the first acknowledgement, which begins it: alpha of
/// DCTCP with a gain of one.
fn share(acks: &[(u32, u32)]) -> f64 {
    let acks: Vec<_> = acks.iter().map(|&(next, marks)| (next, marks, None)).collect();
    share_with(&acks)
}

/// An acknowledgement: the next segment, the count of marks, a block.
type Ack = (u32, u32, Option<(u32, u32)>);

/// The same where acknowledgements may have a block.
fn share_with(acks: &[Ack]) -> f64 {
    let scheme = paceline_control::registry::scheme("dctcp").unwrap();
    let config = TcpConfig { ecn: Ecn::Accurate, ..config("dctcp") };
    let controller = paceline_control::TcpController::new(scheme, config.profile, &[("g", 1.0)]).unwrap();
    let mut bench = Bench::of(config, controller, 8);
    bench.pass(ms(100));
    for (next, marks, block) in acks {
        bench.ack_with(*next, Flags::ACK.with_ace(marks + ACE_OFFSET), block.as_slice());
    }
    let mut alpha = Alpha(f64::NAN);
    bench.sender.gauges(&mut alpha);
    alpha.0
}

struct Alpha(f64);

impl paceline_control::Gauges for Alpha {
    fn gauge(&mut self, name: &'static str, _: paceline_control::GaugeUnit, value: f64) {
        if name == "alpha" {
            self.0 = value;
        }
    }
}

/// RFC 9768 appendix A.2: a count that may have gone round while acknowledgements were lost is taken for the most that it can be.
#[test]
fn a_count_that_may_have_wrapped_is_taken_for_the_most() {
    assert!((share(&[(2, 0), (4, 0), (6, 1), (8, 1), (10, 1)]) - 1.0 / 8.0).abs() < 1e-12);
    // one acknowledgement of eight segments: the bits say none, which may be eight
    assert!((share(&[(2, 0), (10, 0)]) - 1.0).abs() < 1e-12);
    assert!((share(&[(2, 0), (10, 3)]) - 3.0 / 8.0).abs() < 1e-12);
}

/// Where acknowledgements of many segments are usual (a mean above 4), none was lost that would have told of a turn: the count is
/// taken as it stands, as Linux does.
#[test]
fn where_acknowledgements_are_thinned_the_count_is_taken_as_it_stands() {
    assert!((share(&[(2, 0), (10, 0)]) - 1.0).abs() < 1e-12); // a mean of 2.1
    assert_eq!(share(&[(6, 0), (14, 0)]), 0.0);
    assert!((share(&[(6, 0), (14, 3)]) - 3.0 / 8.0).abs() < 1e-12);
}

/// Segments that were reported before are not told of anew by the acknowledgement that covers them.
#[test]
fn a_repaired_loss_is_no_wrapped_count() {
    assert_eq!(share_with(&[(2, 0, None), (2, 0, Some((3, 6))), (2, 0, Some((3, 10))), (10, 0, None)]), 0.0);
    assert_eq!(share_with(&[(2, 0, None), (2, 0, Some((3, 6))), (2, 1, Some((3, 10))), (10, 1, None)]), 1.0 / 8.0);
}

/// A sender and a receiver, each set as it is, over the handshake and one segment: what the two SYNs say, and the segment.
fn handshake(a: Ecn, b: Ecn, arrives: Flags) -> [Flags; 3] {
    let set = |ecn| TcpConfig { ecn, ..config("dctcp") };
    let scheme = paceline_control::registry::scheme("newreno").unwrap();
    let controller = paceline_control::TcpController::new(scheme, set(a).profile, &[]).unwrap();
    let mut sender = TcpSender::new(&set(a), controller, Stream::new(1, "t"));
    let mut receiver = TcpReceiver::new(&set(b));
    let (mut there, mut back): (Vec<Segment>, Vec<Segment>) = (Vec::new(), Vec::new());
    sender.supply_endless(Time::ZERO, &mut there);
    sender.start(Time::ZERO, &mut there);
    let syn = there.pop().unwrap();
    let packet = rfc_sender::segments::packet(Time::ZERO, &syn);
    receiver.on_data(Time::ZERO, &Packet { flags: packet.flags.with(arrives), ..packet }, &mut back);
    let answer = back.pop().unwrap();
    sender.on_ack(Time::ZERO + ms(100), &rfc_sender::segments::packet(Time::ZERO, &answer), None, &mut there);
    [syn.flags, answer.flags, there[0].flags]
}

/// RFC 9768 sections 3.1 and 3.2.2.1: three bits ask, the answer and the segment after it tell how the IP header came; who has less
/// gets less.
#[test]
fn the_handshake_agrees_on_the_most_that_both_have() {
    let table = [
        (Ecn::Accurate, Ecn::Accurate, Flags::NONE, [0b111, 0b010, 0b010], true),
        (Ecn::Accurate, Ecn::Accurate, Flags::ECT, [0b111, 0b100, 0b010], false), // made ECN-capable on the way
        (Ecn::Accurate, Ecn::Classic, Flags::NONE, [0b111, 0b001, 0b000], true),
        (Ecn::Accurate, Ecn::Off, Flags::NONE, [0b111, 0b000, 0b000], false),
        (Ecn::Classic, Ecn::Accurate, Flags::NONE, [0b011, 0b001, 0b000], true),
        (Ecn::Off, Ecn::Accurate, Flags::NONE, [0b000, 0b000, 0b000], false),
    ];
    for (a, b, arrives, bits, capable) in table {
        let flags = handshake(a, b, arrives);
        assert_eq!(flags.map(Flags::ace), bits, "{a:?} {b:?} {arrives:?}");
        assert_eq!(flags.map(|flags| flags.has(Flags::ECT)), [false, false, capable], "{a:?} {b:?} {arrives:?}");
    }
}

/// RFC 9768 section 3.2.2.4: the first count after the handshake is not zero, unless something clears it; then segments are no
/// longer ECN-capable.
#[test]
fn a_count_that_is_cleared_ends_ecn() {
    for (first, capable) in [(0, false), (ACE_OFFSET, true)] {
        let config = TcpConfig { ecn: Ecn::Accurate, ..config("newreno") };
        let mut bench = Bench::new("newreno", config, 8);
        bench.out.clear();
        bench.pass(ms(100));
        bench.ack_with(3, Flags::ACK.with_ace(first), &[]);
        assert!(!bench.out.is_empty());
        assert!(bench.out.iter().all(|segment| segment.flags.has(Flags::ECT) == capable), "{first}");
    }
}

/// RFC 9768 section 3.1.4.1: the second SYN asks once more, and what follows asks for nothing, lest something drops those that do.
#[test]
fn a_syn_that_is_not_answered_twice_asks_for_less() {
    for ecn in [Ecn::Accurate, Ecn::Classic] {
        let config = TcpConfig { ecn, ..config("newreno") };
        let scheme = paceline_control::registry::scheme("newreno").unwrap();
        let controller = paceline_control::TcpController::new(scheme, config.profile, &[]).unwrap();
        let mut sender = TcpSender::new(&config, controller, Stream::new(1, "t"));
        let mut out: Vec<Segment> = Vec::new();
        sender.supply_endless(Time::ZERO, &mut out);
        sender.start(Time::ZERO, &mut out);
        let mut now = Time::ZERO;
        while out.len() < 4 {
            now += ms(100);
            sender.on_timer(now, &mut out);
        }
        assert!(out.iter().all(|syn| syn.flags.has(Flags::SYN)));
        let requested: Vec<u32> = out.drain(..).map(|syn| syn.flags.ace()).collect();
        let whole = if ecn == Ecn::Accurate { 0b111 } else { 0b011 };
        assert_eq!(requested, [whole, whole, 0, 0], "{ecn:?}");
        // what an answer to the first of them agrees to comes too late
        let flags = Flags::SYN.with(Flags::ACK).with_ace(if ecn == Ecn::Accurate { 0b010 } else { 0b001 });
        let answer = Segment { seq: 1, stamp: Stamp::at(now), size: 40, flags, extra: None };
        sender.on_ack(now + ms(100), &rfc_sender::segments::packet(now, &answer), None, &mut out);
        assert!(!out.is_empty() && out.iter().all(|s| s.flags.0 & (Flags::ECT.0 | Flags::CWR.0 | Flags::ECE.0) == 0));
    }
}
