//! The messages of the control channel: one TCP connection, on the port number that the data use over UDP. It carries
//! what the two ends must agree on before the first data packet, and their measurements after the last.
//!
//! A message is its length (32 bits, big-endian) and JSON. The first one of each end, a [`Greeting`] and its
//! [`Answer`], is unencrypted and carries a handshake; all others, a [`ClientMessage`] or a [`ServerMessage`], go
//! through the resulting [`super::channel::Channel`]. A server reads at most [`MAX_REQUEST`] bytes of a message, a
//! client at most [`MAX_RESULT`]; each read has a time limit. The connection proves that the client owns its address: a
//! server sends datagrams only there, and none before the client's own with the flow's secret have arrived.

use super::half::{EVERY, Half};
use super::numbers::few;
use crate::peer_text::peer_text;
use crate::quic::Fingerprint;
use crate::session::FlowSpec;
use paceline_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::io::{self, Read, Write};

/// Version of the protocol.
pub const VERSION: u32 = 4;
/// Maximum length of a greeting and its answer, in bytes.
pub const MAX_GREETING: usize = 4 << 10;
/// Maximum length of a message to a server, and to a client before its flows begin, in bytes.
pub const MAX_REQUEST: usize = 64 << 10;
/// Maximum length of a message to a client, in bytes: the recordings of a day.
pub const MAX_RESULT: usize = 512 << 20;
/// Maximum number of flows per client.
pub const MAX_FLOWS: usize = 64;

/// Direction of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Reverse,
}

/// The measured part of a flow, by each end's own time since its data began; corresponds to a scenario's warm-up and
/// duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// Where measuring begins, in milliseconds.
    pub from_ms: u64,
    /// Where it ends, and the flow with it, even with data in flight.
    pub to_ms: u64,
    /// Interval between an end's recorded samples, in microseconds.
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

    /// Interval between recorded samples: at least 1 ms.
    #[must_use]
    pub fn every(&self) -> Span {
        Span(self.every_us.max(1000).saturating_mul(1000))
    }
}

/// A flow that a client requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The flow.
    pub spec: FlowSpec,
    /// Its direction.
    pub direction: Direction,
    /// The congestion control, if the flow uses the kernel's TCP, over its own connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The measured part; `None`: all, until the flow ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
}

impl Offer {
    /// The offer as sent to the other end: without this end's own controller if the other end receives the flow.
    #[must_use]
    pub fn for_peer(&self) -> Offer {
        let spec = if self.direction == Direction::Forward { self.spec.for_receiver() } else { self.spec.clone() };
        Offer { spec, ..self.clone() }
    }

    /// Duration of the flow in milliseconds: its application's, or the measured part's.
    #[must_use]
    pub fn lasts_ms(&self) -> u64 {
        self.spec.for_ms.max(self.measure.map_or(0, |measure| measure.to_ms))
    }

    /// Maximum number of samples that an end records.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let every = self.measure.map_or(EVERY, |measure| measure.every());
        self.lasts_ms().saturating_mul(1_000_000) / every.0
    }
}

/// A client's first message, unencrypted. `Hello` and [`Answer::Refused`] keep their form in all versions, so ends of
/// different versions can report the mismatch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Greeting {
    /// A request for flows.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Whether the handshake uses a key.
        #[serde(default)]
        keyed: bool,
        /// First message of the handshake, in hexadecimal digits.
        #[serde(default)]
        handshake: String,
    },
    /// This connection belongs to a kernel-TCP flow: its data follow.
    Attach {
        /// The flow's ticket.
        ticket: u64,
    },
}

/// A server's answer to a [`Greeting`], unencrypted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Answer {
    /// Accepted.
    Hello {
        /// Second message of the handshake, in hexadecimal digits.
        handshake: String,
    },
    /// The server requires a handshake with a key.
    Key,
    /// The server has no key.
    Keyless,
    /// Refused.
    Refused {
        /// The reason, in words.
        #[serde(deserialize_with = "cleaned")]
        why: String,
    },
}

/// A client's message. (The variant's name is the message's key, not a tag inside: a tag may come last, so everything
/// before it would have to be kept in memory, at many times the size of its text.)
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientMessage {
    /// Requests flows. They begin when their data do.
    Open {
        /// The flows. One more than allowed is read, so that the refusal can name the reason.
        #[serde(deserialize_with = "few::<_, _, { MAX_FLOWS + 1 }>")]
        flows: Vec<Offer>,
        /// The client's key for flows over QUIC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Fingerprint>,
    },
    /// Ends the flows.
    Stop,
}

/// A server's message; its name is the key, as in [`ClientMessage`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerMessage {
    /// The server's limits.
    Welcome {
        /// Maximum rate of a flow, in bit/s.
        max_rate_bps: u64,
        /// Maximum duration of a flow, in milliseconds.
        max_duration_ms: u64,
    },
    /// Refused.
    Refused {
        /// The reason, in words.
        #[serde(deserialize_with = "cleaned")]
        why: String,
    },
    /// The flows are open.
    Opened {
        /// For each requested flow, its connection id and its secret; for kernel TCP its ticket instead of the secret.
        flows: Vec<(u32, u64)>,
        /// Maximum rate, in bytes of UDP payload per second.
        limit: u32,
        /// The server's key for flows over QUIC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Fingerprint>,
    },
    /// A flow has ended at the server.
    Result {
        /// Its index in the request.
        flow: usize,
        /// What the server's end measured.
        half: Box<Half>,
    },
}

/// Deserializes a text of the other end, sanitised by [`peer_text`].
pub(super) fn cleaned<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| peer_text(&text))
}

/// The file in which a server stores its measurements of a flow, if it was given a folder for them.
#[must_use]
pub fn result_file(flow: usize) -> String {
    format!("far-{flow}.json")
}

/// Writes a message.
///
/// # Errors
/// The connection's.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let len = u32::try_from(text.len()).map_err(|_| io::Error::other("a message of more than 4 GB"))?;
    let mut bytes = len.to_be_bytes().to_vec();
    bytes.extend_from_slice(&text);
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message of at most `max` bytes.
///
/// # Errors
/// The connection's; `InvalidData` if it is too long or not a message; `UnexpectedEof` at the connection's end.
pub fn read<T: DeserializeOwned>(from: &mut impl Read, max: usize) -> io::Result<T> {
    parse(&text(from, max)?)
}

/// Reads the text of a message of at most `max` bytes.
///
/// # Errors
/// The connection's; `InvalidData` if it is too long; `UnexpectedEof` at the connection's end.
pub(super) fn text(from: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_be_bytes(len) as usize;
    if len > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {len} bytes; {max} at most")));
    }
    let mut text = Vec::new();
    from.take(len as u64).read_to_end(&mut text)?;
    if text.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(text)
}

/// Parses a message.
///
/// # Errors
/// `InvalidData` if it is not a message.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    // the error may quote the message
    let no_message = |error: serde_json::Error| format!("no message: {}", peer_text(&error.to_string()));
    serde_json::from_slice(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, no_message(error)))
}

/// Random bytes from the system.
///
/// # Errors
/// If the system has none.
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

/// Decodes hexadecimal digits; `None` if they are invalid, or more than 256.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 256 {
        return None;
    }
    let value = |digit: u8| (digit as char).to_digit(16);
    digits.chunks(2).map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_come_back() {
        let mut bytes = Vec::new();
        write(&mut bytes, &ClientMessage::Open { flows: Vec::new(), key: None }).unwrap();
        write(&mut bytes, &ClientMessage::Stop).unwrap();
        let mut rest = &bytes[..];
        assert!(matches!(read(&mut rest, MAX_REQUEST), Ok(ClientMessage::Open { flows, .. }) if flows.is_empty()));
        assert!(matches!(read(&mut rest, MAX_REQUEST), Ok(ClientMessage::Stop)));
        let end = read::<ClientMessage>(&mut rest, MAX_REQUEST).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_long_message_is_not_read() {
        let mut bytes = (MAX_REQUEST as u32 + 1).to_be_bytes().to_vec();
        bytes.resize(MAX_REQUEST * 2, b' ');
        let error = read::<ClientMessage>(&mut &bytes[..], MAX_REQUEST).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    /// The form that all versions understand.
    #[test]
    fn greetings_of_other_versions_are_understood() {
        let framed = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
        let old = framed(r#"{"say":"hello","version":2}"#);
        assert!(matches!(read(&mut &old[..], MAX_GREETING), Ok(Greeting::Hello { version: 2, .. })));
        let new = framed(r#"{"say":"refused","why":"it is 2100","more":1}"#);
        assert!(matches!(read(&mut &new[..], MAX_GREETING), Ok(Answer::Refused { why }) if why == "it is 2100"));
        let mut hello = Vec::new();
        write(&mut hello, &Greeting::Hello { version: 3, keyed: true, handshake: String::new() }).unwrap();
        assert!(hello[4..].starts_with(br#"{"say":"hello","version":3,"#));
    }

    /// Excess is detected where it begins: nothing of a message is kept before its type is known.
    #[test]
    fn no_more_than_the_bound_is_taken_in() {
        let tables = vec![r#"{"table":"","columns":[]}"#; 10_000].join(",");
        let many = format!(r#"{{"result":{{"flow":0,"half":{{"tables":[{tables}]}}}}}}"#);
        let said = parse::<ServerMessage>(many.as_bytes()).unwrap_err().to_string();
        assert!(said.contains("a list of more than 16") && said.contains("line 1 column 4"), "{said}");
        let flow = r#"{"spec":{"settings":[],"for_ms":1,"seed":1,"family":"v4"},"direction":"forward"}"#;
        let many = format!(r#"{{"open":{{"flows":[{}]}}}}"#, vec![flow; 700].join(","));
        let said = parse::<ClientMessage>(many.as_bytes()).unwrap_err().to_string();
        assert!(said.contains("a list of more than 65") && many.len() < MAX_REQUEST, "{said}");
    }

    #[test]
    fn what_is_quoted_of_a_message_is_cleaned() {
        for hostile in [r#"{"\u001b[2J\n\u202e":{}}"#, r#"{"refused":{"why":"\u001b[2J\n\u202e"}}"#] {
            let bytes = [&(hostile.len() as u32).to_be_bytes(), hostile.as_bytes()].concat();
            let said = match read::<ServerMessage>(&mut &bytes[..], MAX_RESULT) {
                Ok(ServerMessage::Refused { why }) => why,
                Err(error) => error.to_string(),
                other => panic!("{other:?}"),
            };
            assert!(said.contains(r"\u001b[2J\n\u202e") && said.is_ascii(), "{said}");
            assert!(!said.contains(|c: char| c.is_control()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300), framed: bool) {
            let mut all = if framed { (bytes.len() as u32).to_be_bytes().to_vec() } else { Vec::new() };
            all.extend_from_slice(&bytes);
            let _ = read::<Greeting>(&mut &all[..], MAX_GREETING);
            let _ = read::<Answer>(&mut &all[..], MAX_GREETING);
            let _ = read::<ClientMessage>(&mut &all[..], MAX_REQUEST);
            let _ = read::<ServerMessage>(&mut &all[..], MAX_REQUEST);
        }
    }
}
