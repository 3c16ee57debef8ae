//! The control channel's encryption: the Noise protocol framework (revision 34), by the crate `snow`.
//!
//! With a key, the handshake proves that both ends have it (pattern `NNpsk0`); without one there is no authentication
//! (`NN`). In both cases fresh X25519 keys encrypt what follows, and are discarded with the connection. The client's
//! half of the handshake is in [`Greeting::Hello`], the server's in [`Answer::Hello`]. After it each end writes parts:
//! a length (16 bits, big-endian) and a Noise transport message of that many bytes, at most 65,535 (section 3 there).
//! The decrypted parts form the stream of [`control`]'s messages.

use super::control::{self, Answer, Greeting, MAX_GREETING, VERSION};
use crate::clock::Clock;
use paceline_units::{Span, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::io::{self, Read, Write};
use std::net::Shutdown;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A key shared by two hosts: random, so it cannot be guessed.
pub type Key = [u8; 32];

/// Time limit for an end's next message.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the authentication tag, in bytes.
const TAG: usize = 16;
/// Maximum length of a message's part, in bytes.
const MAX_PART: usize = 65_535 - TAG;
/// Length of a handshake message in bytes: a public key, and a tag once there is a key for one.
const PLAIN: usize = 32;
const TAGGED: usize = PLAIN + TAG;

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// One end of a new handshake.
fn handshake(key: Option<&Key>, begins: bool) -> io::Result<HandshakeState> {
    let pattern = if key.is_some() { "NNpsk0" } else { "NN" };
    // binds the handshake to this purpose and version, so that it cannot be used elsewhere
    let prologue = format!("paceline control channel, version {VERSION}");
    let made = || {
        let mut builder = Builder::new(format!("Noise_{pattern}_25519_ChaChaPoly_SHA256").parse()?);
        if let Some(key) = key {
            builder = builder.psk(0, key)?;
        }
        let builder = builder.prologue(prologue.as_bytes())?;
        if begins { builder.build_initiator() } else { builder.build_responder() }
    };
    made().map_err(|error: snow::Error| io::Error::other(format!("the handshake: {error}")))
}

/// The next handshake message, in hexadecimal digits.
fn next(state: &mut HandshakeState) -> io::Result<String> {
    let mut bytes = [0; TAGGED];
    let len = state.write_message(&[], &mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(control::hex(&bytes[..len]))
}

/// Reads the other end's message of `len` bytes; returns whether it is valid, i.e. from a holder of the key.
fn takes(state: &mut HandshakeState, digits: &str, len: usize) -> bool {
    let bytes = control::unhex(digits).filter(|bytes| bytes.len() == len);
    bytes.is_some_and(|bytes| state.read_message(&bytes, &mut []).is_ok())
}

/// Why a client has no channel.
#[derive(Debug)]
pub enum Unanswered {
    /// An error of the connection.
    Io(io::Error),
    /// The server refused, with this reason.
    Refused(String),
    /// The server requires a key.
    Key,
    /// The server has no key.
    Keyless,
    /// The server does not have the client's key.
    WrongKey,
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Unanswered {
        Unanswered::Io(error)
    }
}

/// Result of a server's half of the handshake.
pub enum Answered {
    /// The answer to send, and the resulting channel.
    Hello(String, StatelessTransportState),
    /// The client does not have the key, or its message is not a handshake.
    WrongKey,
}

/// A server's half of the handshake, given the digits of [`Greeting::Hello`].
///
/// # Errors
/// If the system has no random bytes.
pub fn answer(key: Option<&Key>, digits: &str) -> io::Result<Answered> {
    let mut state = handshake(key, false)?;
    if !takes(&mut state, digits, if key.is_some() { TAGGED } else { PLAIN }) {
        return Ok(Answered::WrongKey);
    }
    Ok(Answered::Hello(next(&mut state)?, transport(state)?))
}

/// An encrypted connection.
pub struct Channel {
    writer: ChannelWriter,
    reader: ChannelReader,
}

/// The writing half of a channel.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) struct ChannelWriter {
    stream: Arc<TcpStream>,
    noise: Arc<StatelessTransportState>,
    /// Parts written.
    count: u64,
}

/// The reading half of a channel, possibly on a separate thread.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) struct ChannelReader {
    stream: Arc<TcpStream>,
    noise: Arc<StatelessTransportState>,
    part: Part,
    /// Message bytes received, readable by other threads.
    pub(super) received_bytes: Arc<AtomicU64>,
}

#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
impl Channel {
    /// A client's channel: greets the server and reads its answer, within [`PATIENCE`].
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn open(stream: TcpStream, key: Option<&Key>) -> Result<Channel, Unanswered> {
        let mut state = handshake(key, true)?;
        let hello = Greeting::Hello { version: VERSION, keyed: key.is_some(), handshake: next(&mut state)? };
        // a server that is full may have sent its reason and closed the connection already
        let _ = control::write(&mut Within::of(&stream, PATIENCE), &hello);
        match control::read(&mut Within::of(&stream, PATIENCE), MAX_GREETING)? {
            Answer::Refused { why } => Err(Unanswered::Refused(why)),
            Answer::Key => Err(Unanswered::Key),
            Answer::Keyless => Err(Unanswered::Keyless),
            Answer::Hello { handshake } if takes(&mut state, &handshake, TAGGED) => {
                Ok(Channel::new(stream, transport(state)?))
            }
            Answer::Hello { .. } => Err(Unanswered::WrongKey),
        }
    }

    /// A channel after a handshake.
    #[must_use]
    pub fn new(stream: TcpStream, noise: StatelessTransportState) -> Channel {
        let (stream, noise) = (Arc::new(stream), Arc::new(noise));
        let speaks = ChannelWriter { stream: Arc::clone(&stream), noise: Arc::clone(&noise), count: 0 };
        Channel {
            writer: speaks,
            reader: ChannelReader { stream, noise, part: Part::default(), received_bytes: Arc::default() },
        }
    }

    /// Writes a message, which the other end must accept within `patience`.
    ///
    /// # Errors
    /// The connection's; `TimedOut`.
    pub fn write(&mut self, message: &impl Serialize, patience: Duration) -> io::Result<()> {
        self.writer.write(message, patience)
    }

    /// Reads a message of at most `max` bytes, which the other end must send within `patience`.
    ///
    /// # Errors
    /// As [`control::read`]; `InvalidData` for bytes that the other end has not written; `TimedOut`.
    pub fn read<T: DeserializeOwned>(&mut self, max: usize, patience: Duration) -> io::Result<T> {
        self.reader.read(max, Some(patience))
    }

    /// Reads the text of such a message.
    pub(super) fn text(&mut self, max: usize, patience: Duration) -> io::Result<Vec<u8>> {
        self.reader.text(max, Some(patience))
    }

    /// Waits up to `patience` for data to read; returns like `TcpStream::peek`.
    pub(super) fn wait(&self, patience: Duration) -> io::Result<usize> {
        if !self.reader.part.rest().is_empty() {
            return Ok(1);
        }
        self.reader.stream.set_read_timeout(Some(patience))?;
        self.reader.stream.peek(&mut [0])
    }

    /// Whether anything that the other end encrypted has arrived.
    pub(super) fn has_decrypted(&self) -> bool {
        self.reader.part.count > 0
    }

    /// Splits the channel into its two halves.
    pub(super) fn split(self) -> (ChannelWriter, ChannelReader) {
        (self.writer, self.reader)
    }

    /// Ends the connection.
    pub fn shutdown(&self) {
        self.writer.shutdown();
    }
}

impl ChannelWriter {
    /// As [`Channel::write`].
    pub(super) fn write(&mut self, message: &impl Serialize, patience: Duration) -> io::Result<()> {
        let to = Within::of(&self.stream, patience);
        control::write(&mut Seals { noise: &self.noise, count: &mut self.count, to }, message)
    }

    /// Ends the connection.
    pub(super) fn shutdown(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl ChannelReader {
    /// As [`Channel::read`]; `None` waits without limit.
    pub(super) fn read<T: DeserializeOwned>(&mut self, max: usize, patience: Option<Duration>) -> io::Result<T> {
        control::parse(&self.text(max, patience)?)
    }

    fn text(&mut self, max: usize, patience: Option<Duration>) -> io::Result<Vec<u8>> {
        let clock = Clock::start();
        let until = patience.map(|patience| clock.now() + span(patience));
        let from = Within { stream: &self.stream, clock, until };
        control::text(
            &mut Opens { noise: &self.noise, part: &mut self.part, from, received_bytes: &self.received_bytes },
            max,
        )
    }
}

fn transport(state: HandshakeState) -> io::Result<StatelessTransportState> {
    state.into_stateless_transport_mode().map_err(|error| io::Error::other(error.to_string()))
}

/// Encrypts what is written through it.
struct Seals<'a, W> {
    noise: &'a StatelessTransportState,
    /// Parts written.
    count: &'a mut u64,
    to: W,
}

impl<W: Write> Write for Seals<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(MAX_PART)];
        let mut part = vec![0; 2 + bytes.len() + TAG];
        let len = u16::try_from(bytes.len() + TAG).map_err(io::Error::other)?;
        part[..2].copy_from_slice(&len.to_be_bytes());
        self.noise
            .write_message(*self.count, bytes, &mut part[2..])
            .map_err(|error| io::Error::other(error.to_string()))?;
        *self.count += 1;
        self.to.write_all(&part)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Decrypted data of one end's stream.
#[derive(Default)]
struct Part {
    /// Parts read.
    count: u64,
    bytes: Vec<u8>,
    /// Number of bytes already consumed.
    taken: usize,
}

impl Part {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

/// Decrypts what is read through it.
struct Opens<'a, R> {
    noise: &'a StatelessTransportState,
    part: &'a mut Part,
    from: R,
    received_bytes: &'a AtomicU64,
}

impl<R: Read> Read for Opens<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let part = &mut *self.part;
        if part.rest().is_empty() {
            let mut len = [0; 2];
            self.from.read_exact(&mut len)?;
            let len = usize::from(u16::from_be_bytes(len));
            if len <= TAG {
                // an empty part would make the reader loop here
                return Err(invalid("an empty part of a message"));
            }
            let mut sealed = vec![0; len];
            self.from.read_exact(&mut sealed)?;
            part.bytes.resize(len - TAG, 0);
            part.taken = part.bytes.len();
            self.noise
                .read_message(part.count, &sealed, &mut part.bytes)
                .map_err(|_| invalid("what came is not what the other end has written"))?;
            part.count += 1;
            part.taken = 0;
            self.received_bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
        let rest = part.rest();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        part.taken += len;
        Ok(len)
    }
}

/// Reads from or writes to a peer with a deadline for the whole message, in any number of pieces.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) struct Within<'a> {
    stream: &'a TcpStream,
    clock: Clock,
    until: Option<Time>,
}

/// Turns a socket's timeout into a `TimedOut` error with words.
fn late(error: io::Error, why: &str) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::Error::new(io::ErrorKind::TimedOut, why) } else { error }
}

fn span(time: Duration) -> Span {
    Span(time.as_nanos() as u64)
}

#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
impl<'a> Within<'a> {
    /// A deadline `patience` from now.
    pub(super) fn of(stream: &'a TcpStream, patience: Duration) -> Within<'a> {
        let clock = Clock::start();
        Within { stream, clock, until: Some(clock.now() + span(patience)) }
    }

    /// Remaining time; `None` is unlimited.
    fn left(&self, over: &str) -> io::Result<Option<Duration>> {
        match self.until.map(|until| until.since(self.clock.now())) {
            Some(Span::ZERO) => Err(io::Error::new(io::ErrorKind::TimedOut, over)),
            left => Ok(left.map(|left| Duration::from_nanos(left.0))),
        }
    }
}

impl Read for Within<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left("it took too long to speak")?)?;
        let mut stream = self.stream;
        stream.read(buffer).map_err(|error| late(error, "it took too long to speak"))
    }
}

impl Write for Within<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left("it took too long to read")?)?;
        let mut stream = self.stream;
        stream.write(buffer).map_err(|error| late(error, "it took too long to read"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::MAX_REQUEST;
    use super::*;
    use proptest::prelude::*;

    /// Both ends after a handshake.
    fn joined(client: Option<&Key>, server: Option<&Key>) -> Option<[StatelessTransportState; 2]> {
        let mut state = handshake(client, true).unwrap();
        let hello = next(&mut state).unwrap();
        let Answered::Hello(said, server) = answer(server, &hello).unwrap() else { return None };
        takes(&mut state, &said, TAGGED).then(|| [transport(state).unwrap(), server])
    }

    fn sealed(noise: &StatelessTransportState, messages: &[&str]) -> Vec<u8> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for message in messages {
            control::write(&mut Seals { noise, count: &mut count, to: &mut bytes }, message).unwrap();
        }
        bytes
    }

    fn opened(noise: &StatelessTransportState, mut bytes: &[u8], max: usize) -> io::Result<String> {
        let from = &mut bytes;
        control::read(&mut Opens { noise, part: &mut Part::default(), from, received_bytes: &AtomicU64::new(0) }, max)
    }

    #[test]
    fn a_handshake_takes_the_same_key_at_both_ends() {
        let (key, other) = ([7; 32], [8; 32]);
        assert!(joined(Some(&key), Some(&key)).is_some() && joined(None, None).is_some());
        for (client, server) in [(Some(&key), Some(&other)), (Some(&key), None), (None, Some(&key))] {
            assert!(joined(client, server).is_none());
        }
        // nor is a server without the key accepted: its answer was written for another greeting
        let (mut mine, mut another) = (handshake(Some(&key), true).unwrap(), handshake(Some(&key), true).unwrap());
        let (_, theirs) = (next(&mut mine).unwrap(), next(&mut another).unwrap());
        let Answered::Hello(said, _) = answer(Some(&key), &theirs).unwrap() else { panic!("the same key") };
        assert!(!takes(&mut mine, &said, TAGGED) && takes(&mut another, &said, TAGGED));
    }

    #[test]
    fn a_long_message_goes_in_parts() {
        let [client, server] = joined(None, None).unwrap();
        let long = "x".repeat(3 * MAX_PART);
        let bytes = sealed(&client, &[&long, "short"]);
        assert_eq!(bytes.len(), 3 * MAX_PART + 2 + 4 + 5 * (2 + TAG) + 7 + 4);
        let (mut from, mut part, received_bytes) = (&bytes[..], Part::default(), AtomicU64::new(0));
        for meant in [&long, "short"] {
            let mut opens = Opens { noise: &server, part: &mut part, from: &mut from, received_bytes: &received_bytes };
            assert_eq!(control::read::<String>(&mut opens, 1 << 20).unwrap(), meant);
        }
        assert!(from.is_empty() && part.rest().is_empty());
        assert_eq!(received_bytes.into_inner() as usize, bytes.len() - 2 * 5);
        let error = opened(&server, &bytes, MAX_REQUEST).unwrap_err();
        assert!(error.to_string().contains("65536 at most"), "{error}");
    }

    /// An observer does not see a flow's secret, and equal messages never look the same.
    #[test]
    fn an_observer_sees_nothing_of_it() {
        let [client, _] = joined(None, None).unwrap();
        let bytes = sealed(&client, &["1311768467463790320", "1311768467463790320"]);
        assert!(!bytes.windows(6).any(|six| b"1311768467463790320".windows(6).any(|secret| secret == six)));
        let (first, second) = bytes.split_at(bytes.len() / 2);
        assert_ne!(first, second);
    }

    #[test]
    fn empty_parts_are_not_waited_through() {
        let [client, server] = joined(None, None).unwrap();
        let mut empty = [0; 2 + TAG];
        empty[1] = TAG as u8;
        client.write_message(0, &[], &mut empty[2..]).unwrap();
        assert!(opened(&server, &empty.repeat(3), MAX_REQUEST).unwrap_err().to_string().contains("empty part"));
    }

    /// A message that is truncated, changed in any bit, reflected, reordered or repeated is rejected.
    #[test]
    fn what_is_not_as_it_was_written_is_no_message() {
        let [[client, server], [_, another]] = [(); 2].map(|()| joined(Some(&[3; 32]), Some(&[3; 32])).unwrap());
        let bytes = sealed(&client, &["a message"]);
        assert_eq!(opened(&server, &bytes, MAX_REQUEST).unwrap(), "a message");
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1u8 << (bit % 8);
            assert!(opened(&server, &changed, MAX_REQUEST).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            let end = opened(&server, &bytes[..cut], MAX_REQUEST).unwrap_err();
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
        assert!(opened(&client, &bytes, MAX_REQUEST).is_err(), "it is the other's");
        let second = &sealed(&client, &["a message", "a message"])[bytes.len()..];
        assert!(opened(&server, second, MAX_REQUEST).is_err(), "it is not the first");
        assert!(opened(&another, &bytes, MAX_REQUEST).is_err(), "it is of another connection");
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300), digits: String) {
            let [_, server] = joined(None, None).unwrap();
            prop_assert!(opened(&server, &bytes, MAX_REQUEST).is_err());
            for key in [None, Some(&[1; 32])] {
                prop_assert!(matches!(answer(key, &digits).unwrap(), Answered::WrongKey));
                let _ = answer(key, &control::hex(&bytes)).unwrap();
            }
        }
    }
}
