//! What the end of a run cuts off counts against it, or is told of: streams, transfers, frozen pictures, silences.

use super::read;
use paceline_sim::summary::Notice;
use paceline_sim::{RunOptions, Summary, simulate};

fn summary(text: &str) -> Summary {
    let scenario = read::scenario(text);
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary
}

fn notice<'a>(summary: &'a Summary, kind: &str) -> &'a Notice {
    let found: Vec<_> = summary.notices.iter().filter(|notice| notice.kind == kind).collect();
    assert_eq!(found.len(), 1, "{kind}: {:?}", summary.notices);
    found[0]
}

/// Films of 2 Mbit/s on a link that has 1 Mbit/s: one in time, one that comes too late to begin.
fn films(playout: &str, duration: u32) -> String {
    format!(
        "duration = \"{duration} s\"
         [link.bottleneck]
         rate = \"1 Mbit/s\"
         delay = \"10 ms\"
         [flow.film]
         count = 2
         start = [\"0 s\", \"{}.9 s\"]
         app = {{ kind = \"stream\", media_rate = \"2 Mbit/s\", length = \"40 s\", playout = \"{playout}\" }}",
        duration - 1
    )
}

#[test]
fn a_stream_that_the_run_cuts_counts_what_was_due() {
    let cut = summary(&films("clock", 20));
    let [film, last] = &cut.streams[..] else { panic!("{:?}", cut.streams) };
    // 2 s of the medium take some 4 s and a bit; in the 15 s after that half of what is due arrives.
    assert!(film.began && !film.completed && film.due_packets < film.media_packets / 2, "{film:?}");
    let share = film.late_packets as f64 / film.due_packets as f64;
    assert!((0.2..0.6).contains(&share) && film.late_share == Some(share), "{film:?}");
    assert!((film.late_packets as f64) < 0.3 * film.media_packets as f64, "by the whole medium it would be few");
    assert!(!last.began && last.fill_s.is_none() && last.late_share == Some(1.0), "{last:?}");
    assert_eq!((last.late_packets, last.due_packets), (last.media_packets, last.media_packets));
    let found = notice(&cut, "streams-cut");
    assert_eq!((found.cases, found.of), (Some(2), Some(2)));
    assert!(
        found.text.contains("`film`") && found.text.contains("40 s") && found.text.contains("`duration` than 20 s")
    );
}

#[test]
fn a_stream_that_waits_for_data_counts_its_waiting() {
    let cut = summary(&films("stall", 20));
    let [film, last] = &cut.streams[..] else { panic!("{:?}", cut.streams) };
    assert!(film.began && film.stalls > 0 && film.late_share.is_none() && film.due_packets == 0, "{film:?}");
    let played = 20.0 - film.fill_s.unwrap() - film.stall_s;
    let share = film.stall_s / (film.stall_s + played);
    assert!((film.stall_share.unwrap() - share).abs() < 1e-9 && share > 0.3, "{film:?}");
    assert_eq!((last.stalls, last.stall_share), (1, Some(1.0)), "nothing is as bad as never to begin");
    assert!((last.stall_s - 0.1).abs() < 1e-9);
}

#[test]
fn streams_that_the_run_waits_for_are_not_told_of() {
    let text = films("clock", 60).replace("\"59.9 s\"", "\"1 s\"");
    let whole = summary(&text);
    for film in &whole.streams {
        assert!(film.began && film.due_packets == film.media_packets, "{film:?}");
        assert!(film.late_share.unwrap() > 0.5, "{film:?}");
    }
    assert!(whole.notices.iter().all(|notice| notice.kind != "streams-cut"), "{:?}", whole.notices);
}

#[test]
fn who_ended_the_run_is_told() {
    let text = format!(
        "stop_after = \"file\"\n{}\n[flow.file]\napp = {{ kind = \"ftp\", size = \"10 kB\" }}",
        films("clock", 20)
    );
    let cut = summary(&text);
    assert!(cut.end_s < 19.0);
    assert!(notice(&cut, "streams-cut").text.contains("let it name `film`"), "{:?}", cut.notices);
    let film = &cut.streams[1];
    assert!(!film.began && film.late_share.is_none() && film.due_packets == 0, "it was not to begin: {film:?}");
}

#[test]
fn transfers_under_way_are_counted_and_told_of() {
    let cut = summary(
        "duration = \"10 s\"
         [link.bottleneck]
         rate = \"1 Mbit/s\"
         delay = \"10 ms\"
         [flow.file]
         count = 3
         start = [\"0 s\", \"9 s\", \"9 s\"]
         app = { kind = \"ftp\", size = \"500 kB\" }
         [flow.pages]
         app = { kind = \"web\", gap = \"100 ms\", mean_size = \"50 kB\" }",
    );
    let flows = |name: &str| cut.flows.iter().filter(|flow| flow.flow == name).collect::<Vec<_>>();
    let ends: Vec<_> = flows("file").iter().map(|flow| (flow.transfers_completed, flow.transfers_unfinished)).collect();
    assert_eq!(ends, [(1, 0), (0, 1), (0, 1)]);
    let found = notice(&cut, "transfers-cut");
    assert_eq!((found.cases, found.of), (Some(2), Some(3)));
    assert!(found.text.contains("`file`") && !found.text.contains("`pages`"));
    let pages = flows("pages")[0];
    assert_eq!(pages.transfers_started - pages.transfers_completed, pages.transfers_unfinished, "{pages:?}");
}

/// A call whose way breaks for good after 5 of 20 s.
const BROKEN: &str = "
    duration = \"20 s\"
    [link.bottleneck]
    rate = \"5 Mbit/s\"
    delay = \"10 ms\"
    outage = [{ from = \"5 s\", to = \"30 s\" }]
    [flow.call]
    cc = \"nada\"
    app = { kind = \"encoder\" }
    delays = true
    [flow.game]
    cc = \"udp\"
    app = { kind = \"cbr\", rate = \"100 kbit/s\" }
    [flow.beaten]
    cc = \"udp\"
    start = \"6 s\"
    app = { kind = \"cbr\", rate = \"100 kbit/s\" }";

#[test]
fn what_breaks_for_good_is_frozen_and_silent_until_the_end() {
    let broken = summary(BROKEN);
    let flow = |name: &str| broken.flows.iter().find(|flow| flow.flow == name).unwrap();
    let call = flow("call");
    assert!(call.freezes == Some(1) && (14.95..15.05).contains(&call.freeze_s.unwrap()), "{call:?}");
    let share = call.frames_complete.unwrap() as f64 / call.frames_sent.unwrap() as f64;
    assert!(call.complete_share == Some(share) && share < 0.3, "{call:?}");
    for name in ["call", "game"] {
        assert!((14.9..15.1).contains(&flow(name).interarrival_max_s.unwrap()), "{name}");
    }
    assert_eq!(flow("beaten").interarrival_max_s, Some(14.0), "of what nothing ever came");
    let stopped = summary(&BROKEN.replace("cc = \"nada\"", "cc = \"nada\"\nstop = \"5 s\""));
    let call = stopped.flows.iter().find(|flow| flow.flow == "call").unwrap();
    assert_eq!(call.freezes, Some(0), "a call that is over shows nothing");
    assert!(call.interarrival_max_s.unwrap() < 1.0);
}

#[test]
fn friendliness_to_flows_that_got_nothing_is_told_of() {
    let text = format!("friendliness_to = \"beaten\"\n{BROKEN}");
    let broken = summary(&text);
    assert!(broken.groups.iter().all(|group| group.friendliness.is_none()));
    assert!(notice(&broken, "no-reference").text.contains("`beaten`"));
    let fine = summary(&text.replace("\"beaten\"", "\"game\""));
    assert!(fine.notices.iter().all(|notice| notice.kind != "no-reference"));
}
