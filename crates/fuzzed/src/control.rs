//! Arbitrary bytes as messages of the control channel and as parts of its handshake, and the client's handling of
//! results that a server may have sent.

use paceline_live::endpoint::channel::{self, Answered};
use paceline_live::endpoint::control::{
    self, Answer, ClientMessage, Greeting, MAX_GREETING, MAX_REQUEST, ServerMessage,
};
use paceline_live::endpoint::half::{joined, recordings};
use paceline_live::endpoint::remote_results::checked;
use paceline_live::results::groups;

/// A message with its length prefix, whose content is nearly always parsed as JSON.
fn framed(text: &[u8]) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text);
    bytes
}

/// The target `control`.
pub fn control(bytes: &[u8]) {
    let _ = control::read::<ClientMessage>(&mut &bytes[..], MAX_REQUEST);
    let whole = framed(bytes);
    if let Ok(Greeting::Hello { handshake, .. }) = control::read(&mut &whole[..], MAX_GREETING) {
        assert!(matches!(
            channel::answer(Some(b"a key that nobody knows, or does"), &handshake),
            Ok(Answered::WrongKey)
        ));
        let _ = channel::answer(None, &handshake);
    }
    let _ = control::read::<Answer>(&mut &whole[..], MAX_GREETING);
    if let Ok(ClientMessage::Open { flows, .. }) = control::read(&mut &whole[..], MAX_REQUEST) {
        for offer in flows {
            let _ = offer.spec.model();
        }
    }
    if let Ok(ServerMessage::Result { half, .. }) = control::read::<ServerMessage>(&mut &whole[..], MAX_REQUEST) {
        let half = checked(*half);
        assert!(!half.ended.contains(char::is_control));
        let rows = vec![joined(&half, &half, 0.5, 1.0), joined(&half, &Default::default(), 0.0, 0.0)];
        let _ = groups(&rows);
        assert!(serde_json::to_vec(&rows).is_ok());
        for series in recordings(&half, &Default::default(), "flow", 0) {
            let rows = series.columns.first().map_or(0, |(_, values)| values.len());
            assert!(series.columns.iter().all(|(_, values)| values.len() == rows));
        }
    }
}
