//! Runs a log's inputs through a new session, and compares the results bit for bit.

use super::controller_calls;
use super::log::{Broken, LogReader, Record, state};
use super::{Outbox, Outgoing, Session};
use paceline_scenario::ScenarioError;
use paceline_units::Time;

/// The message about a damaged record.
pub(super) fn wrong(record: u64, what: &str) -> String {
    format!("record {record} has {what} that no record has")
}

/// A log replayed without a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of datagrams sent because of them.
    pub datagrams: u64,
    /// Time of the last input.
    pub end: Time,
    /// Bytes at the end of the log that are not a whole record.
    pub unread: usize,
}

/// Where a new session's behaviour differs from the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Divergence {
    /// The input's number, from 0.
    pub input: u64,
    /// Its time.
    pub time: Time,
    /// What differs: the logged and the new value.
    pub what: String,
}

impl core::fmt::Display for Divergence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "input {} at {:.9} s: {}", self.input, self.time.as_secs_f64(), self.what)
    }
}

/// Why a log could not be replayed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is not an event log, or is damaged.
    #[error("no event log that can be read: {0}")]
    Log(String),
    /// Its session cannot be created.
    #[error("the log's session cannot be made: {0}")]
    Session(#[from] ScenarioError),
    /// The session differs.
    #[error("{0}")]
    Diverged(Divergence),
}

/// Runs a log's inputs through a new session, and compares all datagrams, its state and its figure. For a QUIC sender
/// the inputs are the calls to its congestion control, the datagrams are the packets that they report, and the time is
/// that of the last path.
///
/// # Errors
/// The first difference, or why the log cannot be replayed.
pub fn replay(log: &[u8]) -> Result<Replayed, ReplayError> {
    let (mut reader, spec) = LogReader::new(log).map_err(ReplayError::Log)?;
    if spec.flow.is_quic() {
        return controller_calls::replay(reader, &spec);
    }
    let mut session = Session::new(&spec)?;
    let mut done = Replayed { inputs: 0, datagrams: 0, end: Time::ZERO, unread: 0 };
    let mut out = Outbox::default();
    loop {
        let record = match reader.record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(Broken::Short) => break,
            Err(Broken::Wrong(what)) => {
                return Err(ReplayError::Log(wrong(done.inputs, what)));
            }
        };
        out.clear();
        session.input(record.time, record.input.input(), &mut out);
        if let Some(what) = difference(&record, &out, &session) {
            return Err(ReplayError::Diverged(Divergence { input: done.inputs, time: record.time, what }));
        }
        done.inputs += 1;
        done.datagrams += out.len() as u64;
        done.end = record.time;
    }
    Ok(Replayed { unread: reader.left(), ..done })
}

fn difference(record: &Record, out: &Outbox, session: &Session) -> Option<String> {
    if record.out.len() != out.len() {
        return Some(format!("{} datagrams left, now {}", record.out.len(), out.len()));
    }
    let shown = |datagram: &Outgoing<'_>| {
        let header: String = datagram.header.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{header} and {} bytes", datagram.payload)
    };
    for (index, (logged, now)) in record.out.iter().zip(out.iter()).enumerate() {
        if logged != now {
            return Some(format!("datagram {index} was {}, now {}", shown(&logged), shown(&now)));
        }
    }
    if record.state != state(session.state()) {
        return Some(format!("the state was number {}, now {}", record.state, state(session.state())));
    }
    let figure = session.figure();
    (record.figure != figure.to_bits())
        .then(|| format!("the figure was {}, now {figure}", f64::from_bits(record.figure)))
}
