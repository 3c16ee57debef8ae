//! A sender of media whose other end is a stranger that tells when packets arrive: how it agrees, how it may lie, and what ends the flow.

use super::rtp::{Sender, empty};
use paceline_live::session::{CAUTIOUS_BPS, EcnBits, End, Input, Session, State};
use paceline_packet::rtcp::{
    Arrival, ArrivalDelta, ArrivalFeedback, ArrivalOffset, Compound, Ecn, ReferenceTime, StreamArrivals,
    TransportFeedback,
};
use paceline_packet::{NtpMiddle, rtp::Ssrc, wire::rtcp};
use paceline_random::Stream;
use paceline_units::Span;

const WAY: Span = Span::from_millis(20);
const ENCODER: (&str, &str) = ("app", "{ kind = \"encoder\", min_rate = \"50 kbit/s\", max_rate = \"1 Mbit/s\" }");

fn call(cc: &'static str, feedback: &'static str) -> Sender {
    let more = [ENCODER, ("rtp.feedback", feedback), ("rtp.bandwidth", "1 Mbit/s"), ("params.max_rate", "1e6")];
    Sender::new(&[("cc", cc)].into_iter().chain(more).collect::<Vec<_>>())
}

/// What a receiver to which each packet takes `WAY` says of those from `from` on that have come.
fn transport(sender: &Sender, from: usize) -> Option<TransportFeedback> {
    let of = |i: usize| sender.left[i] + WAY;
    let come = (from..sender.data.len()).take_while(|&i| of(i) <= sender.now).collect::<Vec<_>>();
    let &first = come.first()?;
    let (reference, mut at) = ReferenceTime::before(of(first));
    let packets = come.iter().map(|&i| {
        let delta = ArrivalDelta::nearest(at, of(i)).unwrap();
        at = delta.after(at);
        Some(delta)
    });
    let packets = packets.collect();
    let (ssrc, base) = (sender.data[first].ssrc, sender.data[first].transport.unwrap());
    Some(TransportFeedback { ssrc, base, reference, count: 0, packets })
}

/// The same by RFC 8888.
fn arrivals(sender: &Sender, from: usize) -> Option<ArrivalFeedback> {
    let of = |i: usize| sender.left[i] + WAY;
    let come = (from..sender.data.len()).take_while(|&i| of(i) <= sender.now).collect::<Vec<_>>();
    let &first = come.first()?;
    let packets = come
        .iter()
        .map(|&i| Arrival::Received { ecn: Ecn::NotEct, offset: ArrivalOffset::nearest(sender.now.since(of(i))) });
    let (ssrc, begin) = (sender.data[first].ssrc, sender.data[first].sequence);
    let streams = vec![StreamArrivals { ssrc, begin, packets: packets.collect() }];
    Some(ArrivalFeedback { reported: NtpMiddle::at(sender.now), streams })
}

/// Feedback each 50 ms until `until`.
fn call_until(sender: &mut Sender, until: f64, reported: &mut usize) {
    while sender.now.as_secs_f64() < until && !sender.is_over() {
        sender.until(sender.now.as_secs_f64() + 0.05);
        let by_transport = sender.data.last().is_some_and(|data| data.transport.is_some());
        let mut compound = empty();
        let many = if by_transport {
            compound.transport.extend(transport(sender, *reported));
            compound.transport.first().map_or(0, |feedback| feedback.packets.len())
        } else {
            compound.arrivals = arrivals(sender, *reported);
            compound.arrivals.as_ref().map_or(0, |feedback| feedback.streams[0].packets.len())
        };
        if many > 0 {
            *reported += many;
            let mut bytes = Vec::new();
            rtcp::encode(&compound, &mut bytes).unwrap();
            sender.until(sender.now.as_secs_f64() + WAY.as_secs_f64()); // what is due meanwhile leaves in time
            sender.give(sender.now, Input::Datagram(&bytes, EcnBits::NotEct));
        }
    }
}

#[test]
fn feedback_on_arrivals_lets_each_controller_of_media_grow_and_its_end_ends_the_flow() {
    for (cc, feedback) in
        [("gcc", "twcc"), ("gcc", "rfc8888"), ("scream", "rfc8888"), ("scream-libwebrtc", "twcc"), ("nada", "twcc")]
    {
        let mut sender = call(cc, feedback);
        let mut reported = 0;
        call_until(&mut sender, 20.0, &mut reported);
        assert_eq!(sender.session.state(), State::Running, "{cc} {feedback}");
        let figure = sender.session.figure();
        assert!((0.9e6..=1e6 + 1.0).contains(&figure), "{cc} {feedback}: {figure}");
        let bytes = sender.bytes;
        call_until(&mut sender, 25.0, &mut reported);
        let rate = (sender.bytes - bytes) as f64 * 8.0 / 5.0;
        assert!((0.75e6..1.2e6).contains(&rate), "{cc} {feedback}: {rate}");
        // it falls silent: RFC 8083 section 4.1
        let (silent, before) = (sender.now.as_secs_f64(), sender.bytes);
        sender.until(60.0);
        assert_eq!(sender.session.state(), State::Ended(End::ReportsCeased), "{cc} {feedback}");
        assert!((14.9..15.1).contains(&(sender.ended - silent)), "{cc} {feedback}: {}", sender.ended - silent);
        assert!((sender.bytes - before) as f64 * 8.0 < 15.0 * 1.2e6);
        sender.replays();
    }
}

/// Whoever does not know the stream's SSRC, or tells of what never left, has not agreed.
#[test]
fn feedback_on_what_never_left_is_no_agreement() {
    let mut sender = call("gcc", "twcc");
    sender.until(2.0);
    let honest = transport(&sender, 0).unwrap();
    while sender.now.as_secs_f64() < 15.0 {
        // beyond what the rate before agreement left no room for, too
        let never = sender.data.last().unwrap().transport.unwrap() + 1000;
        for lie in [
            TransportFeedback { ssrc: Ssrc(honest.ssrc.0 ^ 1), ..honest.clone() },
            TransportFeedback { base: never, ..honest.clone() },
            TransportFeedback { base: 0u16.wrapping_sub(honest.packets.len() as u16), ..honest.clone() },
            TransportFeedback { packets: vec![None; honest.packets.len()], ..honest.clone() },
            TransportFeedback { packets: vec![None; TransportFeedback::MAX], ..honest.clone() },
            TransportFeedback { base: never, packets: vec![Some(ArrivalDelta(0)); 30_000], ..honest.clone() },
        ] {
            sender.receive_rtcp(&Compound { transport: vec![lie], ..empty() });
        }
        sender.until(sender.now.as_secs_f64() + 0.5);
    }
    assert!((sender.bytes as f64) < f64::from(CAUTIOUS_BPS) / 8.0 * 15.2, "{}", sender.bytes);
    sender.until(40.0);
    assert_eq!(sender.session.state(), State::Ended(End::NoReports));
    sender.replays();
}

/// One that has agreed may say what it likes: the flow stays within its rate, and what it sends leaves in bounded inputs.
#[test]
fn a_receiver_that_lies_gets_no_more_than_the_rate_at_most() {
    let stream = Stream::new(7, "lies");
    let mut draws = 0;
    let mut draw = |max: u64| {
        draws += 1;
        (stream.unit(draws) * max as f64) as u64
    };
    for cc in ["gcc", "scream", "scream-ericsson", "scream-libwebrtc", "nada"] {
        let mut sender = call(cc, "twcc");
        let mut reported = 0;
        call_until(&mut sender, 5.0, &mut reported);
        let (begin, bytes) = (sender.now.as_secs_f64(), sender.bytes);
        while sender.now.as_secs_f64() < 25.0 && !sender.is_over() {
            sender.until(sender.now.as_secs_f64() + 0.02);
            let newest = sender.data.last().unwrap();
            let max = if draw(10) == 0 { 5000 } else { 60 };
            let many = 1 + draw(max) as usize;
            let delta = |draw: u64| (draw != 0).then(|| ArrivalDelta((draw as u16).wrapping_sub(2048) as i16));
            let lie = TransportFeedback {
                ssrc: newest.ssrc,
                base: newest.transport.unwrap().wrapping_sub(draw(200) as u16),
                reference: ReferenceTime::from_bits(draw(1 << 24) as u32),
                count: draw(256) as u8,
                packets: (0..many).map(|_| delta(draw(4096))).collect(),
            };
            sender.receive_rtcp(&Compound { transport: vec![lie], ..empty() });
        }
        let rate = (sender.bytes - bytes) as f64 * 8.0 / (sender.now.as_secs_f64() - begin);
        assert!(rate < 2.5e6, "{cc}: {rate}");
        let Session::Sender(inner) = &sender.session else { panic!() };
        assert_eq!(inner.counts().garbage, 0, "{cc}");
        sender.replays();
    }
}
