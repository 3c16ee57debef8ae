//! The control channel: one TCP connection, on the port number that the data have over UDP. It carries what the two ends
//! must agree on before the first data packet, and what they have measured after the last.
//!
//! A message is its length (32 bits, big-endian) and JSON. A server reads no more than [`MOST_ASKED`] bytes of a message, a
//! client no more than [`MOST_TOLD`]; both wait no longer for one than they say. That a client has the connection shows that
//! it owns its address: a server sends datagrams there alone, and none before the client's own with the flow's secret have come.

use super::half::{EVERY, Half};
use crate::session::FlowSpec;
use hmac::{Hmac, KeyInit, Mac};
use paceline_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::io::{self, Read, Write};

/// The version of the messages.
pub const VERSION: u32 = 2;
/// The longest message that a server takes.
pub const MOST_ASKED: usize = 64 << 10;
/// The longest message that a client takes: the recordings of a day.
pub const MOST_TOLD: usize = 512 << 20;
/// Flows that one client asks for at most.
pub const MOST_FLOWS: usize = 64;
/// What a proof of the key begins with, so that it proves nothing elsewhere.
const PURPOSE: &[u8] = b"paceline serve, version 1";

/// Which way a flow goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Reverse,
}

/// What of a flow is measured, each end by its own time since the data began: as a scenario's warm-up and duration have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// Where measuring begins, in milliseconds.
    pub from_ms: u64,
    /// Where it ends, and the flow with it, whatever is still under way.
    pub to_ms: u64,
    /// How often an end records, in microseconds.
    pub every_us: u64,
}

impl Measure {
    /// Where measuring begins.
    #[must_use]
    pub fn from(&self) -> Span {
        Span(self.from_ms.saturating_mul(1_000_000))
    }

    /// Where measuring ends.
    #[must_use]
    pub fn to(&self) -> Span {
        Span(self.to_ms.saturating_mul(1_000_000))
    }

    /// How often an end records: a thousand times a second at most.
    #[must_use]
    pub fn every(&self) -> Span {
        Span(self.every_us.max(1000).saturating_mul(1000))
    }
}

/// A flow that a client asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The flow.
    pub spec: FlowSpec,
    /// Which way it goes.
    pub direction: Direction,
    /// With the kernel's TCP and this congestion control, over a connection of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What is measured of it; `None`: all, until it has ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
}

impl Offer {
    /// How long the flow lasts, in milliseconds: its application, or what is measured of it.
    #[must_use]
    pub fn lasts_ms(&self) -> u64 {
        self.spec.for_ms.max(self.measure.map_or(0, |measure| measure.to_ms))
    }

    /// Samples that an end takes of it at most.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let every = self.measure.map_or(EVERY, |measure| measure.every());
        self.lasts_ms().saturating_mul(1_000_000) / every.0
    }
}

/// What a client says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Ask {
    /// First of all.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// The answer to a challenge: HMAC-SHA-256 of [`PURPOSE`] and the challenge under the key, in hexadecimal digits.
    Proof {
        /// The digits.
        proof: String,
    },
    /// These flows, please. They begin when the data do.
    Open {
        /// The flows.
        flows: Vec<Offer>,
    },
    /// This connection is that of a flow of the kernel's TCP: what follows are its data.
    Attach {
        /// The flow's ticket.
        ticket: u64,
    },
    /// No more.
    Stop,
}

/// What a server says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Tell {
    /// Prove that you have the key.
    Challenge {
        /// 32 random bytes in hexadecimal digits.
        challenge: String,
    },
    /// Go on.
    Welcome {
        /// The highest rate of a flow, in bit/s.
        max_rate_bps: u64,
        /// The longest flow.
        max_duration_ms: u64,
    },
    /// No, and why.
    Refused {
        /// In words.
        why: String,
    },
    /// The flows are there.
    Opened {
        /// For each that was asked for, its connection id and its secret; of the kernel's TCP its ticket in place of the latter.
        flows: Vec<(u32, u64)>,
        /// The highest rate, in bytes of datagrams' contents a second.
        limit: u32,
    },
    /// A flow is over at the server.
    Result {
        /// Its place in what was asked for.
        flow: usize,
        /// What the server's end measured.
        half: Box<Half>,
    },
}

/// The file in which a server leaves what it measured of a flow, if it was given a folder for that.
#[must_use]
pub fn result_file(flow: usize) -> String {
    format!("far-{flow}.json")
}

/// Writes a message.
///
/// # Errors
/// What the connection says.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let len = u32::try_from(text.len()).map_err(|_| io::Error::other("a message of more than 4 GB"))?;
    let mut bytes = len.to_be_bytes().to_vec();
    bytes.extend_from_slice(&text);
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message of `most` bytes at most.
///
/// # Errors
/// What the connection says; `InvalidData` of what is too long or no message; `UnexpectedEof` at its end.
pub fn read<T: DeserializeOwned>(from: &mut impl Read, most: usize) -> io::Result<T> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_be_bytes(len) as usize;
    if len > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {len} bytes; {most} at most")));
    }
    let mut text = Vec::new();
    from.take(len as u64).read_to_end(&mut text)?;
    if text.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("no message: {error}")))
}

/// Random bytes of the system.
///
/// # Errors
/// If it has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(format!("getrandom(2): {error}")))?;
    Ok(bytes)
}

/// Hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if digits.len() % 2 != 0 || digits.len() > 256 {
        return None;
    }
    let value = |digit: u8| (digit as char).to_digit(16);
    digits.chunks(2).map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect()
}

fn mac(key: &[u8], challenge: &str) -> Option<Hmac<Sha256>> {
    // a key of any length is one
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).ok()?;
    mac.update(PURPOSE);
    mac.update(challenge.as_bytes());
    Some(mac)
}

/// The proof that one has the key (RFC 2104 with SHA-256).
#[must_use]
pub fn proof(key: &[u8], challenge: &str) -> String {
    mac(key, challenge).map(|mac| hex(&mac.finalize().into_bytes())).unwrap_or_default()
}

/// Whether a proof is right. The comparison takes the same time for any wrong one.
#[must_use]
pub fn is_proven(key: &[u8], challenge: &str, proof: &str) -> bool {
    let (Some(mac), Some(proof)) = (mac(key, challenge), unhex(proof)) else { return false };
    mac.verify_slice(&proof).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: &str = "97d44f1338ff05a5eaf06ed689d72fdfd5bfe54676440684ef5387589e285e7c";

    #[test]
    fn messages_come_back() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Ask::Hello { version: VERSION }).unwrap();
        write(&mut bytes, &Ask::Stop).unwrap();
        let mut rest = &bytes[..];
        assert!(matches!(read(&mut rest, MOST_ASKED), Ok(Ask::Hello { version: VERSION })));
        assert!(matches!(read(&mut rest, MOST_ASKED), Ok(Ask::Stop)));
        let end = read::<Ask>(&mut rest, MOST_ASKED).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_long_message_is_not_read() {
        let mut bytes = (MOST_ASKED as u32 + 1).to_be_bytes().to_vec();
        bytes.resize(MOST_ASKED * 2, b' ');
        let error = read::<Ask>(&mut &bytes[..], MOST_ASKED).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_proof_needs_the_key_and_the_challenge() {
        let proof = proof(b"key", "challenge");
        assert!(is_proven(b"key", "challenge", &proof));
        assert!(!is_proven(b"key", "another", &proof) && !is_proven(b"other", "challenge", &proof));
        // RFC 2104 with SHA-256 over what the proof is for and the challenge, as `openssl dgst -sha256 -mac HMAC` has it
        assert_eq!(proof, KNOWN);
        for wrong in ["", "zz", "0", &proof[2..], &"00".repeat(200)] {
            assert!(!is_proven(b"key", "challenge", wrong));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300), framed: bool) {
            let mut all = if framed { (bytes.len() as u32).to_be_bytes().to_vec() } else { Vec::new() };
            all.extend_from_slice(&bytes);
            let _ = read::<Ask>(&mut &all[..], MOST_ASKED);
            let _ = read::<Tell>(&mut &all[..], MOST_ASKED);
        }
    }
}
