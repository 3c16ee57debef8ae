//! Feedback on arrivals of each kind, between both ends of a session.

use super::DONE;
use super::pair::{GOOD, Pair, Path, spec};
use paceline_live::session::{Side, replay};
use paceline_units::Time;

/// Both ends have the flow's settings from the agreement on it, the feedback's among them.
#[test]
fn every_kind_of_feedback_runs_ends_and_replays() {
    let kinds: [&[(&str, &str)]; 4] = [
        &[("rtp.feedback", "twcc")],
        &[("rtp.feedback", "twcc"), ("rtp.reduced_size", "true"), ("rtp.feedback_share", "5 %")],
        &[("rtp.reduced_size", "true"), ("rtp.feedback_packets", "16"), ("rtp.feedback_frames", "true")],
        &[("rtp.feedback", "twcc"), ("rtp.feedback_frames", "true"), ("rtp.reduced_size", "true")],
    ];
    for kind in kinds {
        let nada = [("cc", "nada"), ("app", "{ kind = \"encoder\" }"), ("rtp.bandwidth", "4 Mbit/s")];
        let settings: Vec<_> = nada.iter().chain(kind).copied().collect();
        let mut pair = Pair::new(&settings, 10, Path { loss: 0.005, late: 0.02, twice: 0.02, ..GOOD });
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{kind:?}");
        assert!((100e3..2e6).contains(&pair.goodput(10.0)), "{kind:?}: {} bit/s", pair.goodput(10.0));
        let stats = pair.sender().source().sender.stats();
        assert!(stats.mean_rtt().is_some() && stats.timeouts == 0, "{kind:?}: {stats:?}");
        for end in [0, 1] {
            let counts = pair.ends[end].session.counts();
            assert_eq!((counts.garbage, counts.disregarded), (0, 0), "{kind:?}, end {end}");
            let log = pair.ends[end].log.get_ref().clone();
            let replayed = replay(&log).unwrap_or_else(|error| panic!("{kind:?}, end {end}: {error}"));
            assert_eq!((replayed.datagrams, replayed.unread), (pair.ends[end].sent, 0), "{kind:?}, end {end}");
        }
    }
}

/// A full packet with its extension fits the wire as one without does.
#[test]
fn numbered_packets_are_no_longer_than_others() {
    for (kind, header) in [("rfc8888", 40), ("twcc", 48)] {
        let settings = [("cc", "nada"), ("app", "{ kind = \"encoder\" }"), ("rtp.feedback", kind)];
        let model = spec(&settings, 1, Side::Sender).flow.model().unwrap();
        assert_eq!((model.transport.header(), model.transport.segment()), (header, 1500 - header));
    }
}
