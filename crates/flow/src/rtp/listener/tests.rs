//! Reports on streams of other senders, and their limits.

use super::*;
use crate::Segment;
use crate::rtp::FeedbackConfig;
use paceline_control::{Profile, RtpSettings};
use paceline_packet::Extra;
use paceline_packet::rtcp::{Arrival, Bye, SenderInfo};
use paceline_packet::{Ntp, NtpSpan};
use paceline_units::{Rate, Span};

#[derive(Default)]
struct Sent(Vec<(u16, Compound)>);

impl Transmit for Sent {
    fn transmit(&mut self, segment: Segment) {
        let Some(Extra::Rtcp(report)) = segment.extra else { panic!("a listener sends reports alone") };
        self.0.push((segment.size, *report));
    }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn listener(feedback: Option<FeedbackFormat>) -> RtpListener {
    let config = FeedbackConfig { format: feedback.unwrap_or_default(), reduced: true, ..FeedbackConfig::PLAIN };
    let kind = if feedback.is_some() { RtpFeedback::Arrivals } else { RtpFeedback::Reports };
    let settings = RtpSettings { feedback: kind, feedback_config: config, ..RtpSettings::default() };
    let mut config = RtpConfig::new(Profile::Rfc, settings);
    config.timing.bandwidth = Rate::from_bps(1_000_000_000);
    RtpListener::new(&config, Stream::new(1, "listener"))
}

fn data(ssrc: u32, sequence: u16, transport: Option<u16>) -> RtpData {
    let (timestamp, payload_type) = (u32::from(sequence) * 900, 111);
    RtpData { ssrc: Ssrc(ssrc), timestamp, sequence, payload_type, marker: false, transport, original: None }
}

/// Receives a packet with 1000 bytes of payload and 40 of headers.
fn comes(listener: &mut RtpListener, now: Time, data: RtpData, out: &mut Sent) {
    let packet = ReceivedPacket { data: &data, size: 1040, payload: 1000, flags: Flags::NONE };
    listener.on_data(now, packet, out);
}

/// Advances the time to `to`.
fn pass(listener: &mut RtpListener, to: Time, out: &mut Sent) {
    while listener.next_wake() <= to {
        listener.on_timer(listener.next_wake(), out);
    }
}

#[test]
fn each_stream_has_a_block_of_its_own() {
    let (mut listener, mut out) = (listener(None), Sent::default());
    for k in 0..600_u16 {
        let now = ms(u64::from(k) * 10);
        pass(&mut listener, now, &mut out);
        // a twentieth of the first stream's packets are lost
        if k % 20 != 7 {
            comes(&mut listener, now, data(1, 65_500_u16.wrapping_add(k), None), &mut out);
        }
        comes(&mut listener, now, data(2, k, None), &mut out);
    }
    let of = |ssrc: u32| listener.streams().iter().find(|stream| stream.ssrc == Ssrc(ssrc)).unwrap();
    assert_eq!((of(1).packets, of(1).lost(), of(2).packets, of(2).lost()), (570, 30, 600, 0));
    assert_eq!((of(2).bytes, of(2).wire_bytes, of(2).payload_type), (600_000, 624_000, 111));
    let (_, last) = out.0.last().unwrap();
    assert_eq!(last.reports.iter().map(|block| block.ssrc.0).collect::<Vec<_>>(), [1, 2]);
    assert!((10..=14).contains(&last.reports[0].fraction_lost), "a twentieth of 256");
    assert_eq!(last.reports[1].fraction_lost, 0);
    assert!(!last.reduced && last.cname.ends_with("@paceline"));
}

#[test]
fn transport_wide_numbers_run_over_all_streams() {
    let (mut listener, mut out) = (listener(Some(FeedbackFormat::Transport)), Sent::default());
    for k in 0..100_u16 {
        let now = ms(u64::from(k) * 10);
        pass(&mut listener, now, &mut out);
        if k != 50 {
            let (ssrc, number) = if k % 2 == 0 { (1, k / 2) } else { (2, k / 2) };
            comes(&mut listener, now, data(ssrc, number, Some(65_530_u16.wrapping_add(k))), &mut out);
        }
    }
    pass(&mut listener, ms(1100), &mut out);
    let feedback: Vec<_> = out.0.iter().flat_map(|(_, report)| &report.transport).collect();
    assert_eq!(feedback[0].base, 65_530);
    let (all, missing) = feedback.iter().fold((0, 0), |(all, missing), feedback| {
        (all + feedback.packets.len(), missing + feedback.packets.iter().filter(|p| p.is_none()).count())
    });
    assert_eq!((all, missing), (100, 1));
    assert!(out.0.iter().any(|(_, report)| report.reduced));
}

#[test]
fn rfc_8888_tells_of_each_stream() {
    let (mut listener, mut out) = (listener(Some(FeedbackFormat::Rfc8888)), Sent::default());
    for k in 0..20_u16 {
        comes(&mut listener, ms(u64::from(k) * 5), data(u32::from(k % 2), k / 2, None), &mut out);
    }
    pass(&mut listener, ms(200), &mut out);
    let arrivals = out.0.iter().find_map(|(_, report)| report.arrivals.as_ref()).unwrap();
    assert_eq!(arrivals.streams.len(), 2);
    assert!(arrivals.streams[0].packets.iter().all(|arrival| matches!(arrival, Arrival::Received { .. })));
}

#[test]
fn what_goes_back_is_a_twentieth_of_what_came() {
    for format in [FeedbackFormat::Transport, FeedbackFormat::Rfc8888] {
        let (mut listener, mut out) = (listener(Some(format)), Sent::default());
        // packets of 60 bytes on the wire, as for narrowband audio
        let (mut received, mut first) = (0, None);
        for k in 0..5000_u16 {
            let now = ms(u64::from(k) * 20);
            pass(&mut listener, now, &mut out);
            let data = data(1, k, Some(k));
            listener.on_data(now, ReceivedPacket { data: &data, size: 60, payload: 20, flags: Flags::NONE }, &mut out);
            received += 60;
            let sent: u64 = out.0.iter().map(|(size, _)| u64::from(*size)).sum();
            // the bytes received cover all reports but the last
            let last = out.0.last().map_or(0, |(size, _)| u64::from(*size));
            assert!((sent - last) as f64 <= SHARE * f64::from(received), "{k}: {sent} of {received}");
            first = first.or((sent > 0).then_some(k));
        }
        assert!(first.is_some_and(|first| first >= 1), "not before the second packet");
        assert!(out.0.len() > 20, "and yet it is told: {}", out.0.len());
    }
}

#[test]
fn one_packet_makes_no_answer() {
    let (mut listener, mut out) = (listener(Some(FeedbackFormat::Transport)), Sent::default());
    comes(&mut listener, ms(0), data(1, 0, Some(0)), &mut out);
    pass(&mut listener, ms(60_000), &mut out);
    listener.leave(ms(60_000), &mut out);
    assert!(out.0.is_empty() && !listener.is_valid());
}

#[test]
fn sender_reports_are_echoed_and_a_bye_ends_it() {
    let (mut listener, mut out) = (listener(None), Sent::default());
    let us = |bye: Option<Bye>| Compound {
        ssrc: Ssrc(1),
        sender: Some(SenderInfo { ntp: Ntp(0x1234_5678_9abc_def0), rtp: 0, packets: 0, octets: 0 }),
        cname: "them".into(),
        bye,
        ..Participant::new(Stream::new(2, "them")).report()
    };
    for k in 0..400_u16 {
        let now = ms(u64::from(k) * 10);
        pass(&mut listener, now, &mut out);
        comes(&mut listener, now, data(1, k, None), &mut out);
        if k == 200 {
            listener.on_rtcp(now, 80, &us(None));
        }
    }
    pass(&mut listener, ms(9000), &mut out);
    let blocks: Vec<_> = out.0.iter().flat_map(|(_, report)| &report.reports).collect();
    assert_eq!(blocks[blocks.len() - 1].lsr, NtpMiddle(0x5678_9abc));
    assert!(blocks[blocks.len() - 1].dlsr > NtpSpan(0));
    assert!(!listener.has_left());
    listener.on_rtcp(ms(9000), 80, &us(Some(Bye { sources: vec![Ssrc(1)], reason: None })));
    assert!(listener.has_left());
    listener.leave(ms(9000), &mut out);
    assert!(out.0.last().unwrap().1.bye.is_some());
    assert_eq!(listener.next_wake(), Time::NEVER);
}

#[test]
fn a_bye_ends_its_stream_alone() {
    let (mut listener, mut out) = (listener(None), Sent::default());
    let bye = |ssrc: u32| Compound {
        ssrc: Ssrc(ssrc),
        cname: "them".into(),
        bye: Some(Bye { sources: vec![Ssrc(ssrc)], reason: None }),
        ..Participant::new(Stream::new(2, "them")).report()
    };
    for k in 0..400_u16 {
        let now = ms(u64::from(k) * 10);
        match k {
            100 => listener.on_rtcp(now, 80, &bye(1)),
            300 => listener.on_rtcp(now, 80, &bye(2)),
            _ => {}
        }
        // packets in flight at its BYE still arrive
        if k < 110 {
            comes(&mut listener, now, data(1, k, None), &mut out);
        }
        comes(&mut listener, now, data(2, k, None), &mut out);
        // a single packet of another source is no stream that must leave too
        if k == 50 {
            comes(&mut listener, now, data(3, 0, None), &mut out);
        }
        let left: Vec<_> = listener.streams().iter().map(ReceivedStream::has_left).collect();
        match k {
            120 => assert_eq!((left, listener.has_left()), (vec![true, false, false], false)),
            // packets that arrive for a while may have been in flight
            310 => assert!(listener.has_left()),
            _ => {}
        }
    }
    comes(&mut listener, ms(5001), data(2, 400, None), &mut out);
    assert!(!listener.has_left(), "it has come back");
}

/// A stream with a packet every 10 ms that loses everything between two numbers; its timestamps show whether it
/// continued.
#[test]
fn a_leap_is_a_loss_where_timestamps_go_on() {
    // silence in packets, an additional timestamp offset, losses, restarts
    let cases: [(u64, u32, i64, u32); 6] = [
        (2998, 0, 2998 + 5, 0),
        (2999, 0, 2999 + 5, 0),
        (50_000, 0, 50_000 + 5, 0),
        // numbers wrap
        (70_000, 0, 70_000 + 5, 0),
        (3000, 1 << 31, 5, 1),
        (50_000, 123_456_789, 5, 1),
    ];
    for (gone, moved, lost, restarts) in cases {
        let (mut listener, mut out) = (listener(None), Sent::default());
        for k in (0..1000).chain(1000 + gone..2000 + gone) {
            // five are lost before
            if (500..505).contains(&k) {
                continue;
            }
            let moved = if k < 1000 { 0 } else { moved };
            let sent =
                RtpData { timestamp: (k as u32).wrapping_mul(900).wrapping_add(moved), ..data(1, k as u16, None) };
            comes(&mut listener, ms(k * 10), sent, &mut out);
        }
        let stream = &listener.streams()[0];
        assert_eq!((stream.lost(), stream.restarts(), stream.packets), (lost, restarts, 1995), "{gone} {moved}");
    }
}

/// A leap without a pause is a restart, and so is one of a stream not observed long enough.
#[test]
fn a_leap_without_an_outage_is_a_beginning() {
    for (first, restarts) in [(1000, 1), (20, 1)] {
        let (mut listener, mut out) = (listener(None), Sent::default());
        for k in 0..2 * first {
            let number = if k < first { k } else { k + 30_000 };
            let timestamp = if k < first { u32::from(k) } else { u32::from(k) + 4_000_000 } * 900;
            comes(&mut listener, ms(u64::from(k) * 10), RtpData { timestamp, ..data(1, number, None) }, &mut out);
        }
        let stream = &listener.streams()[0];
        assert_eq!((stream.lost(), stream.restarts()), (0, restarts), "{first}");
    }
}

#[test]
fn streams_beyond_a_reports_blocks_are_not_heard() {
    let (mut listener, mut out) = (listener(None), Sent::default());
    for k in 0..4_u16 {
        for ssrc in 0..40 {
            comes(&mut listener, ms(u64::from(k) * 300), data(ssrc, k, None), &mut out);
        }
    }
    assert_eq!((listener.streams().len(), listener.beyond()), (MAX_STREAMS, 4 * 9));
    pass(&mut listener, Time::ZERO + Span::from_secs(20), &mut out);
    assert_eq!(out.0[0].1.reports.len(), MAX_STREAMS);
}
