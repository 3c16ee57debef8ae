//! Also with calls that no real connection makes: the logs replay, and damaged ones produce an error.

#![expect(clippy::disallowed_types, reason = "quinn's times are Instants, of no account here")]

use super::*;
use crate::session::{Family, FlowSpec, ForeignSchemes, replay as replay_log};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const SCHEMES: [&str; 6] = ["newreno", "cubic", "bbr", "bbr3", "copa", "c4"];

fn spec(cc: &str, side: Side) -> SessionSpec {
    let settings = [("transport", "quic"), ("cc", cc)].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let foreign = ForeignSchemes::default();
    let flow = FlowSpec { settings, for_ms: 1000, seed: 5, family: Family::V4, name: None, foreign };
    SessionSpec { side, flow, connection: 1, nonce: 2, limit: None, announces: false, rtp: None }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event, preceded by a number of microseconds; packets are identified by how many sends ago they left.
#[derive(Clone, Debug)]
enum Step {
    Sent(u64),
    Acked(Vec<usize>, u64, bool),
    Lost(usize, u64, bool),
    Marked(usize),
    Datagram(u16),
    Path,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        12 => (1u64..5000).prop_map(Step::Sent),
        12 => (prop::collection::vec(0usize..20, 0..5), 0u64..40_000, any::<bool>()).prop_map(|(which, left, limited)| Step::Acked(which, left, limited)),
        2 => (0usize..20, 0u64..9000, prop::bool::weighted(0.2)).prop_map(|(newest, bytes, persistent)| Step::Lost(newest, bytes, persistent)),
        1 => (0usize..20).prop_map(Step::Marked),
        1 => (1200u16..9000).prop_map(Step::Datagram),
        1 => Just(Step::Path),
    ];
    prop::collection::vec((0u64..60_000, step), 1..200)
}

/// The log of a control that receives these calls.
fn logged(cc: &str, steps: &[(u64, Step)]) -> Vec<u8> {
    #[expect(clippy::disallowed_methods, reason = "quinn's times have no other beginning")]
    let now = Instant::now();
    let spec = spec(cc, Side::Sender);
    let controllers = controllers(&spec.flow.model().unwrap(), spec.flow.seed).unwrap();
    let to = Shared::default();
    let mut log = CallLog::new(Box::new(to.clone()), &spec).unwrap();
    let (mut path, mut law, mut at) = (0, controllers.law(0, 1472), Time::ZERO);
    let mut write = |path: u64, at: Time, what: What<'_>, law: &Law| {
        log.write(&Seen { now, at, path, what, left: &[], state: &law.state() }).unwrap();
    };
    write(0, at, What::Began { datagram: 1472 }, &law);
    let mut packets: Vec<_>;
    let mut left = vec![(Time::ZERO, 0)];
    for (micros, step) in steps {
        at += Span::from_micros(*micros);
        let nth = |ago: usize| left[left.len().saturating_sub(1 + ago)];
        let call = match step {
            Step::Sent(bytes) => Call::Sent { bytes: *bytes, last_packet_number: left.len() as u64 },
            Step::Acked(which, in_flight, limited) => {
                packets = which.iter().map(|ago| nth(*ago)).collect();
                let smoothed = Span::from_millis(40);
                Call::Acked { packets: &packets, in_flight: *in_flight, smoothed, limited: *limited }
            }
            Step::Lost(newest, bytes, persistent) => {
                Call::Lost { sent: nth(*newest).0, bytes: *bytes, persistent: *persistent }
            }
            Step::Marked(newest) => Call::Marked { sent: nth(*newest).0 },
            Step::Datagram(size) => Call::Datagram(*size),
            Step::Path => {
                path += 1;
                (law, at, left) = (controllers.law(path, 1300), Time::ZERO, vec![(Time::ZERO, 0)]);
                write(path, at, What::Began { datagram: 1300 }, &law);
                continue;
            }
        };
        law.take(at, call);
        write(path, at, What::Called(call), &law);
        if let Step::Sent(bytes) = step {
            left.push((at, *bytes));
        }
    }
    to.0.lock().unwrap().clone()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_is_done_again(scheme in 0..SCHEMES.len(), steps in steps()) {
        let log = logged(SCHEMES[scheme], &steps);
        let sent = steps.iter().filter(|(_, step)| matches!(step, Step::Sent(_))).count();
        let done = replay_log(&log).unwrap();
        prop_assert_eq!((done.inputs, done.datagrams, done.unread), (1 + steps.len() as u64, sent as u64, 0));
    }

    /// Arbitrary bytes after a log's head, and a log with changed bytes, are either read or rejected.
    #[test]
    fn a_damaged_log_gets_an_answer(
        scheme in 0..SCHEMES.len(),
        steps in steps(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        junk in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut log = logged(SCHEMES[scheme], &steps);
        let begin = logged(SCHEMES[scheme], &[]).len();
        let mut other = log[..begin].to_vec();
        other.extend_from_slice(&junk);
        let _ = replay_log(&other);
        let range = log.len() - begin;
        for (at, byte) in changes {
            if range > 0 {
                log[begin + at.index(range)] = byte;
            }
        }
        match replay_log(&log) {
            Ok(done) => prop_assert!(done.inputs <= 1 + steps.len() as u64),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Impossible times, and calls that would keep a control busy forever, are rejected.
#[test]
fn damage_is_named() {
    let whole = logged("newreno", &[(10, Step::Sent(1472))]);
    let begin = logged("newreno", &[]);
    let said = |record: &[u8]| replay_log(&[&begin, record].concat()).unwrap_err().to_string();
    assert_eq!(replay_log(&whole[..whole.len() - 1]).unwrap().inputs, 1, "it ends before what is not whole");
    // change one number of a call: type, path, 10,000 ns, bytes
    let mut other = whole.clone();
    assert_eq!(other[begin.len()..][..6], [SENT, 0, 0x90, 0x4e, 0xc0, 0x0b]);
    other[begin.len() + 4] += 1;
    let found = replay_log(&other).unwrap_err().to_string();
    assert_eq!(found, "input 1 at 0.000010000 s: the number of bytes in flight was 1472 bytes, now 1473 bytes");
    // type, path, time, and the rest
    for (record, names) in [
        (&[9, 0, 0][..], "a call's kind"),
        (&[BEGAN, 0, 0, 0x80, 1], "a size of datagrams"),
        (&[SENT, 0, 0, 0xff, 0xff, 0x7f, 1], "a packet's size"),
        (&[SENT, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "a time"),
        (&[ACKED, 0, 5, 1, 6, 1], "a time"),
        (&[LOST, 0, 5, 1, 9, 2], "a yes or no"),
    ] {
        assert_eq!(said(record), format!("no event log that can be read: record 1 has {names} that no record has"));
    }
    let later = |path: u8| [&[SENT, path, 0, 1, 1][..], &[0; 4], &[0; 9]].concat();
    assert!(said(&later(3)).contains("record 1 has a path's number"), "{}", said(&later(3)));
    assert!(
        said(&later(0)).starts_with("input 1 at 0.000000000 s: the window was 0 bytes, now 14720"),
        "{}",
        said(&later(0))
    );
}

/// Only the sending end has a controller.
#[test]
fn a_receiver_has_no_controller() {
    let mut log = Vec::new();
    head(&mut log, &spec("newreno", Side::Receiver)).unwrap();
    assert!(replay_log(&log).unwrap_err().to_string().contains("has no controller"));
}
