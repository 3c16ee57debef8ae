//! The messages of the control channel: one TCP connection, on the port number that the data have over UDP. It carries what the
//! two ends must agree on before the first data packet, and what they have measured after the last.
//!
//! A message is its length (32 bits, big-endian) and JSON. The first of each end, a [`Greeting`] and its [`Answer`], go in the
//! clear and carry a handshake; all others, a [`ClientMessage`] or a [`ServerMessage`], go through the [`super::channel::Channel`] that it makes.
//! A server reads no more than [`MAX_REQUEST`] bytes of a message, a client no more than [`MAX_RESULT`]; both wait no longer for one
//! than they say. That a client has the connection shows that it owns its address: a server sends datagrams there alone, and
//! none before the client's own with the flow's secret have come.

use super::half::{EVERY, Half};
use super::numbers::few;
use crate::peer_text::peer_text;
use crate::quic::Fingerprint;
use crate::session::FlowSpec;
use paceline_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::io::{self, Read, Write};

/// The version of the messages.
pub const VERSION: u32 = 4;
/// The longest greeting and answer.
pub const MAX_GREETING: usize = 4 << 10;
/// The longest message that a server takes, and a client before its flows begin.
pub const MAX_REQUEST: usize = 64 << 10;
/// The longest message that a client takes: the recordings of a day.
pub const MAX_RESULT: usize = 512 << 20;
/// Flows that one client asks for at most.
pub const MAX_FLOWS: usize = 64;

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
    /// What the other end is told of it: of one that it receives, not which controller of this end's own sends it.
    #[must_use]
    pub fn for_peer(&self) -> Offer {
        let spec = if self.direction == Direction::Forward { self.spec.for_receiver() } else { self.spec.clone() };
        Offer { spec, ..self.clone() }
    }

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

/// What a client says first, in the clear. The form of `Hello` and of [`Answer::Refused`] stays the same in all versions, so that
/// ends of different ones can tell each other so.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Greeting {
    /// Flows are wanted.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Whether the handshake is one with a key.
        #[serde(default)]
        keyed: bool,
        /// The handshake's first message in hexadecimal digits.
        #[serde(default)]
        handshake: String,
    },
    /// This connection is that of a flow of the kernel's TCP: what follows are its data.
    Attach {
        /// The flow's ticket.
        ticket: u64,
    },
}

/// What a server says to a [`Greeting`], in the clear.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub enum Answer {
    /// Go on.
    Hello {
        /// The handshake's second message in hexadecimal digits.
        handshake: String,
    },
    /// A handshake with a key is wanted.
    Key,
    /// There is no key here.
    Keyless,
    /// No, and why.
    Refused {
        /// In words.
        #[serde(deserialize_with = "cleaned")]
        why: String,
    },
}

/// What a client says. (A message stands under its name, not beside a tag, which may come last: all before it would be kept, and is
/// many times as large as its text.)
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientMessage {
    /// These flows, please. They begin when the data do.
    Open {
        /// The flows. One too many is heard, and told why it is not served.
        #[serde(deserialize_with = "few::<_, _, { MAX_FLOWS + 1 }>")]
        flows: Vec<Offer>,
        /// The client's key of flows over QUIC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Fingerprint>,
    },
    /// No more.
    Stop,
}

/// What a server says, each under its name as in [`ClientMessage`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerMessage {
    /// These are the bounds.
    Welcome {
        /// The highest rate of a flow, in bit/s.
        max_rate_bps: u64,
        /// The longest flow.
        max_duration_ms: u64,
    },
    /// No, and why.
    Refused {
        /// In words.
        #[serde(deserialize_with = "cleaned")]
        why: String,
    },
    /// The flows are there.
    Opened {
        /// For each that was asked for, its connection id and its secret; of the kernel's TCP its ticket in place of the latter.
        flows: Vec<(u32, u64)>,
        /// The highest rate, in bytes of datagrams' contents a second.
        limit: u32,
        /// The server's key of flows over QUIC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Fingerprint>,
    },
    /// A flow is over at the server.
    Result {
        /// Its place in what was asked for.
        flow: usize,
        /// What the server's end measured.
        half: Box<Half>,
    },
}

/// A text of the other end, as [`peer_text`] has it.
pub(super) fn cleaned<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| peer_text(&text))
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

/// Reads a message of `max` bytes at most.
///
/// # Errors
/// What the connection says; `InvalidData` of what is too long or no message; `UnexpectedEof` at its end.
pub fn read<T: DeserializeOwned>(from: &mut impl Read, max: usize) -> io::Result<T> {
    parse(&text(from, max)?)
}

/// The text of a message of `max` bytes at most.
///
/// # Errors
/// What the connection says; `InvalidData` of what is too long; `UnexpectedEof` at its end.
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

/// What a message says.
///
/// # Errors
/// `InvalidData` of what is none.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    // what is wrong with it may be quoted
    let no_message = |error: serde_json::Error| format!("no message: {}", peer_text(&error.to_string()));
    serde_json::from_slice(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, no_message(error)))
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

/// The bytes of hexadecimal digits; none if they are no such, or more than 256.
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

    /// The form in which ends of all versions understand each other.
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

    /// What is in excess is found where it begins: nothing is kept of a message before it is known what it is.
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
