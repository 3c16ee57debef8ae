//! Any bytes as messages of the control channel, and what a client makes of results that a server may have told.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_live::endpoint::control::{self, Ask, MOST_ASKED, Tell};
use paceline_live::endpoint::half::{joined, recordings};
use paceline_live::results::groups;

/// A message with its length before it, as bytes that are nearly always read as far as JSON goes.
fn framed(text: &[u8]) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text);
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let _ = control::read::<Ask>(&mut &bytes[..], MOST_ASKED);
    let whole = framed(bytes);
    match control::read::<Ask>(&mut &whole[..], MOST_ASKED) {
        Ok(Ask::Open { flows }) => {
            for offer in flows {
                let _ = offer.spec.model();
            }
        }
        Ok(Ask::Proof { proof }) => assert!(!control::is_proven(b"a key that nobody knows", "challenge", &proof)),
        _ => {}
    }
    if let Ok(Tell::Result { half, .. }) = control::read::<Tell>(&mut &whole[..], MOST_ASKED) {
        let rows = vec![joined(&half, &half, 0.5, 1.0), joined(&half, &Default::default(), 0.0, 0.0)];
        let _ = groups(&rows);
        assert!(serde_json::to_vec(&rows).is_ok());
        let _ = recordings(&half, &half, "flow", 0);
    }
});
