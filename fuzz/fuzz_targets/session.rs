//! Any datagrams at either end of a running flow of any scheme, at any times; any bytes as a message of the control channel, and as an
//! event log. What a session has done is done again by its log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_live::endpoint::control::{self, Ask, MOST_ASKED, Tell};
use paceline_live::session::log::LogWriter;
use paceline_live::session::{EcnBits, Family, FlowSpec, Input, Outbox, RtpPeer, Session, SessionSpec, Side, replay};
use paceline_packet::wire::tfrc::{Accept, ConnectionId, Datagram, Ecn, Message, Nonce, RateLimit, Request};
use paceline_units::Time;

const SCHEMES: [&str; 11] =
    ["newreno", "sack", "vegas", "cubic", "tfrc", "tfrc-veno", "multfrc", "rap", "tfrcp", "lda-plus", "nada"];
const CONNECTION: ConnectionId = ConnectionId(1);
const NONCE: Nonce = Nonce(2);

/// Gives a session inputs that `bytes` say: lengths, times, and datagrams, some of which begin as the flow's own do.
fn drive(spec: &SessionSpec, mut bytes: &[u8]) {
    let Ok(mut session) = Session::new(spec) else { return };
    let Ok(mut log) = LogWriter::new(Vec::new(), spec) else { return };
    let (mut now, mut out) = (Time::ZERO, Outbox::default());
    let mut give = |now: Time, input: Input<'_>| {
        out.clear();
        session.input(now, input, &mut out);
        let _ = log.write(now, input, &out, &session);
    };
    let message = match spec.side {
        Side::Sender => Message::Accept(Accept { nonce: NONCE, limit: RateLimit::None }),
        Side::Receiver => Message::Request(Request { nonce: NONCE, packet_size: 1000, ecn: Ecn::Off }),
    };
    let mut first = Vec::new();
    Datagram { connection: CONNECTION, message }.encode(&mut first);
    give(now, Input::Start);
    give(now, Input::Datagram(&first, EcnBits::NotEct));
    while let [len, ms, kind, rest @ ..] = bytes {
        let (datagram, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        bytes = rest;
        now.0 += u64::from(*ms) * 1_000_000;
        let mut whole = Vec::new();
        if kind & 0x80 != 0 {
            whole.extend_from_slice(&[b'P', b'T', 0x10 | kind & 0xf, 0, 0, 0, 0, 1]);
        }
        whole.extend_from_slice(datagram);
        give(now, Input::Timer);
        give(now, Input::Datagram(&whole, if kind & 0x40 != 0 { EcnBits::Ce } else { EcnBits::Ect }));
    }
    give(now, Input::Stop);
    drop(give);
    if let Err(error) = replay(log.get_ref()) {
        panic!("{error}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = control::read::<Ask>(&mut &bytes[..], MOST_ASKED);
    let _ = control::read::<Tell>(&mut &bytes[..], MOST_ASKED);
    let _ = replay(bytes);
    let [scheme, side, bytes @ ..] = bytes else { return };
    let mut settings = vec![("cc".to_owned(), SCHEMES[usize::from(*scheme) % SCHEMES.len()].to_owned())];
    if settings[0].1 == "nada" {
        settings.push(("app.kind".to_owned(), "encoder".to_owned()));
    }
    // a sender's other end may be a receiver of plain RTP
    let rtp = (side % 3 == 2).then_some(RtpPeer { payload_type: 96 });
    let side = if side % 3 == 1 { Side::Receiver } else { Side::Sender };
    let flow = FlowSpec { settings, for_ms: 10_000, seed: 1, family: Family::V4 };
    let (connection, nonce) = (CONNECTION.0, NONCE.0);
    drive(&SessionSpec { side, flow, connection, nonce, limit: None, announces: false, rtp }, bytes);
});
