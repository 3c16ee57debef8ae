//! Arbitrary bytes as frames of a stream, split at any place, and as a part of a frame; what is read can be written,
//! and reads the same. Arbitrary datagrams at either end of a flow over QUIC: data from a peer with an unknown key are
//! never accepted.

use paceline_live::quic::frames::{Reader, part};
use paceline_live::session::{
    EcnBits, Family, FlowSpec, ForeignSchemes, Input, Outbox, Session, SessionSpec, Side, State,
};
use paceline_packet::wire::tfrc::{Accept, ConnectionId, Datagram, Ecn, Message, Nonce, RateLimit, Request};
use paceline_units::{Span, Time};

fn frames(cut: usize, bytes: &[u8]) {
    if let Ok((found, length)) = part(bytes) {
        // A number may be encoded longer than necessary.
        let mut again = Vec::new();
        found.write(&mut again);
        assert!(again.len() as u64 + length <= bytes.len() as u64);
        again.resize(again.len() + length as usize, 0);
        assert_eq!(part(&again), Ok((found, length)));
    }
    let (mut reader, mut begun, mut ended, mut payload) = (Reader::default(), 0, 0, 0);
    let mut whole = true;
    for piece in bytes.chunks(cut) {
        match reader.read(piece, |_| begun += 1, |_| ended += 1) {
            Ok(more) => payload += more,
            Err(_) => {
                whole = false;
                break;
            }
        }
    }
    assert!(payload <= bytes.len() as u64 && ended <= begun && begun <= ended + 1);
    let (mut once, mut all) = (Reader::default(), 0);
    if let Ok(found) = once.read(bytes, |_| all += 1, |_| {}) {
        assert_eq!((whole, found, all), (true, payload, begun));
    }
}

fn datagrams(side: Side, bytes: &[u8]) {
    let settings = vec![("transport".to_owned(), "quic".to_owned())];
    let (family, foreign) = (Family::V4, ForeignSchemes::default());
    let flow = FlowSpec { settings, for_ms: 2000, seed: 1, family, name: None, foreign };
    let spec = SessionSpec { side, flow, connection: 1, nonce: 2, limit: None, announces: false, rtp: None };
    let mut session = Session::new(&spec).expect("a flow");
    let mut out = Outbox::default();
    session.input(Time::ZERO, Input::Start, &mut out);
    let message = match side {
        Side::Sender => Message::Accept(Accept { nonce: Nonce(2), limit: RateLimit::None }),
        Side::Receiver => Message::Request(Request { nonce: Nonce(2), packet_size: 1472, ecn: Ecn::Off }),
    };
    let mut begins = Vec::new();
    Datagram { connection: ConnectionId(1), message }.encode(&mut begins);
    session.input(Time::ZERO, Input::Datagram(&begins, EcnBits::NotEct), &mut out);
    let (mut now, mut rest) = (Time::ZERO, bytes);
    while let [first, second, more @ ..] = rest {
        now += Span::from_millis(u64::from(*first));
        let length = (usize::from(*second) * 8).min(more.len());
        let (datagram, after) = more.split_at(length);
        out.clear();
        session.input(now, Input::Datagram(datagram, EcnBits::of_tos(*first)), &mut out);
        session.input(now, Input::Timer, &mut out);
        assert!(out.len() < 1000);
        rest = after;
    }
    if let Session::Receiver(receiver) = &session {
        assert_eq!(receiver.sink().receiver.stats().bytes, 0);
    }
    session.input(now, Input::Stop, &mut out);
    assert!(matches!(session.state(), State::Ended(_) | State::Closing));
}

/// The target `quic`.
pub fn quic(bytes: &[u8]) {
    let [kind, bytes @ ..] = bytes else { return };
    match kind % 4 {
        0 => datagrams(Side::Sender, bytes),
        1 => datagrams(Side::Receiver, bytes),
        _ => frames(usize::from(*kind) + 1, bytes),
    }
}
