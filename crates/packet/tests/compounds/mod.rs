//! Compound packets to test with.

use paceline_packet::rtcp::*;
use paceline_packet::rtp::Ssrc;
use paceline_packet::{Ntp, NtpMiddle, NtpSpan};
use paceline_units::Rate;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// A report block.
pub const BLOCK: ReportBlock = ReportBlock {
    ssrc: Ssrc(7),
    fraction_lost: 1,
    cumulative_lost: 2,
    extended_highest: 3,
    jitter: 4,
    lsr: NtpMiddle(5),
    dlsr: NtpSpan(6),
};

/// A receiver report without a block.
pub fn plain(ssrc: u32, cname: &str) -> Compound {
    let (ssrc, cname) = (Ssrc(ssrc), cname.into());
    Compound {
        ssrc,
        sender: None,
        reports: vec![],
        cname,
        apps: vec![],
        arrivals: None,
        transport: vec![],
        ecn: vec![],
        ecn_summary: vec![],
        repair: vec![],
        bye: None,
        reduced: false,
    }
}

fn text() -> impl Strategy<Value = Arc<str>> {
    // of up to 255 bytes, not all characters of one byte
    "[ -~äß]{1,40}|x{200,255}".prop_map(Arc::from)
}

fn block() -> impl Strategy<Value = ReportBlock> {
    (any::<(u32, u8, u32, u32, u32, u32)>(), ReportBlock::CUMULATIVE_MIN..=ReportBlock::CUMULATIVE_MAX).prop_map(
        |((ssrc, fraction_lost, extended_highest, jitter, lsr, dlsr), cumulative_lost)| ReportBlock {
            ssrc: Ssrc(ssrc),
            fraction_lost,
            cumulative_lost,
            extended_highest,
            jitter,
            lsr: NtpMiddle(lsr),
            dlsr: NtpSpan(dlsr),
        },
    )
}

fn app() -> impl Strategy<Value = App> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(first, count)| App::Probe(Probe { first, count })),
        any::<(u32, u64)>().prop_map(|(ssrc, rate)| App::Bottleneck(Bottleneck { ssrc: Ssrc(ssrc), rate: Rate(rate) })),
        any::<(u32, u32)>().prop_map(|(ssrc, fraction)| App::Loss(Loss { ssrc: Ssrc(ssrc), fraction })),
        ("[a-z]{4}", 0u8..32, vec(any::<[u8; 4]>(), 0..6)).prop_map(|(name, subtype, data)| {
            let name = name.as_bytes().try_into().expect("four bytes");
            App::Other(OtherApp { name, subtype, data: data.concat().into() })
        }),
    ]
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    prop_oneof![
        Just(Arrival::Missing),
        (ecn, any::<u16>()).prop_map(|(ecn, bits)| Arrival::Received { ecn, offset: ArrivalOffset::from_bits(bits) }),
    ]
}

fn arrivals() -> impl Strategy<Value = ArrivalFeedback> {
    let stream = (any::<(u32, u16)>(), vec(arrival(), 0..20)).prop_map(|((ssrc, begin), packets)| StreamArrivals {
        ssrc: Ssrc(ssrc),
        begin,
        packets,
    });
    (any::<u32>(), vec(stream, 0..4)).prop_map(|(time, streams)| ArrivalFeedback { reported: NtpMiddle(time), streams })
}

/// Statuses as they come: in runs, and one by one.
fn statuses() -> impl Strategy<Value = Vec<Option<ArrivalDelta>>> {
    let one = prop_oneof![
        Just(None),
        (0i16..=255).prop_map(|delta| Some(ArrivalDelta(delta))),
        any::<i16>().prop_map(|delta| Some(ArrivalDelta(delta))),
    ];
    let run = prop_oneof![8 => 1usize..20, 1 => 1usize..9000];
    vec((one, run), 1..12)
        .prop_map(|runs| runs.into_iter().flat_map(|(one, run)| vec![one; run]).take(20_000).collect())
}

/// Transport-wide feedback.
pub fn transport() -> impl Strategy<Value = TransportFeedback> {
    (any::<(u32, u16, u32, u8)>(), prop_oneof![vec(small_or_missing(), 1..60), statuses()]).prop_map(
        |((ssrc, base, time, count), packets)| TransportFeedback {
            ssrc: Ssrc(ssrc),
            base,
            reference: ReferenceTime::from_bits(time),
            count,
            packets,
        },
    )
}

fn small_or_missing() -> impl Strategy<Value = Option<ArrivalDelta>> {
    prop::option::of((0i16..300).prop_map(ArrivalDelta))
}

/// NACK and PLI; the packets of a NACK are up to 40 apart.
pub fn repair() -> impl Strategy<Value = Repair> {
    let nack = (any::<(u32, u16)>(), vec(1u16..40, 0..60)).prop_map(|((ssrc, first), gaps)| {
        let after = gaps.into_iter().scan(first, |number, gap| {
            *number = number.wrapping_add(gap);
            Some(*number)
        });
        Repair::Nack(Nack { ssrc: Ssrc(ssrc), lost: core::iter::once(first).chain(after).collect() })
    });
    prop_oneof![nack, any::<u32>().prop_map(|ssrc| Repair::Pli(Ssrc(ssrc)))]
}

fn counts() -> impl Strategy<Value = EcnCounts> {
    any::<(u32, u32, u16, u16, u16, u16)>().prop_map(|(ect0, ect1, ce, not_ect, lost, duplicates)| EcnCounts {
        ect0,
        ect1,
        ce,
        not_ect,
        lost,
        duplicates,
    })
}

/// ECN feedback.
pub fn ecn() -> impl Strategy<Value = EcnFeedback> {
    (any::<(u32, u32)>(), counts()).prop_map(|((ssrc, extended_highest), counts)| EcnFeedback {
        ssrc: Ssrc(ssrc),
        extended_highest,
        counts,
    })
}

/// What stands beside report blocks.
pub fn ecn_summary() -> impl Strategy<Value = EcnSummary> {
    (any::<u32>(), counts()).prop_map(|(ssrc, counts)| EcnSummary { ssrc: Ssrc(ssrc), counts })
}

/// Any packet of reduced size that has an encoding.
pub fn reduced() -> impl Strategy<Value = Compound> {
    (any::<u32>(), prop::option::of(arrivals()), vec(transport(), 0..3), vec(ecn(), 0..2), vec(repair(), 0..3))
        .prop_filter("some feedback", |(_, arrivals, transport, ecn, repair)| {
            arrivals.is_some() || !transport.is_empty() || !ecn.is_empty() || !repair.is_empty()
        })
        .prop_map(|(ssrc, arrivals, transport, ecn, repair)| Compound {
            arrivals,
            transport,
            ecn,
            repair,
            reduced: true,
            ..plain(ssrc, "")
        })
}

/// Any compound packet that has an encoding.
pub fn compound() -> impl Strategy<Value = Compound> {
    let sender = any::<(u64, u32, u32, u32)>().prop_map(|(ntp, rtp, packets, octets)| SenderInfo {
        ntp: Ntp(ntp),
        rtp,
        packets,
        octets,
    });
    let bye = (vec(any::<u32>().prop_map(Ssrc), 0..32), prop::option::of(text()))
        .prop_map(|(sources, reason)| Bye { sources, reason });
    let reports = prop_oneof![3 => vec(block(), 0..3), 1 => vec(block(), 29..70)];
    (
        any::<u32>(),
        prop::option::of(sender),
        reports,
        text(),
        vec(app(), 0..4),
        prop::option::of(arrivals()),
        vec(transport(), 0..3),
        (vec(ecn(), 0..3), vec(ecn_summary(), 0..4)),
        vec(repair(), 0..3),
        prop::option::of(bye),
    )
        .prop_map(|(ssrc, sender, reports, cname, apps, arrivals, transport, (ecn, ecn_summary), repair, bye)| {
            Compound {
                ssrc: Ssrc(ssrc),
                sender,
                reports,
                cname,
                apps,
                arrivals,
                transport,
                ecn,
                ecn_summary,
                repair,
                bye,
                reduced: false,
            }
        })
}
