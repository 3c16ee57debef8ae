//! Requests: pages and pieces that a client asks for, over TCP and over QUIC, against times counted by hand.

use super::read::checked;
use paceline_sim::summary::{FlowSummary, StreamSummary, Summary};
use paceline_sim::{RunOptions, simulate};

fn run(text: &str, seed: u64) -> Summary {
    let scenario = checked(text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary
}

/// A path of 100 ms there and back on which nothing takes time but the propagation, with one flow of a profile; `link` is the
/// bottleneck's.
fn path(profile: &str, link: &str, flow: &str) -> String {
    format!(
        "profile = \"{profile}\"\nduration = \"20 s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"10 Gbit/s\"\n\
         delay = \"0 s\"\n[link.bottleneck]\nrate = \"10 Gbit/s\"\ndelay = \"50 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"1000 packets\" }}\n{link}\n[flow.page]\ncc = \"newreno\"\n{flow}\n"
    )
}

const QUIC: &str = "transport = \"quic\"\n";
const ZERO: &str = "transport = \"quic\"\nquic = { handshake = \"zero-rtt\" }\n";

/// Pages of 4 to 6 kB, which an initial window of ten holds: whatever the transport, it is round trips that count.
fn pages(transport: &str, arrivals: &str, request: &str) -> String {
    format!(
        "{transport}app = {{ kind = \"web\", median_size = \"5 kB\", shape = 6, max_size = \"6 kB\", gap = \"2 s\", \
         arrivals = \"{arrivals}\", request = {{ {request} }} }}\n"
    )
}

/// Round trips of 100 ms that a page takes in the mean; transmission is below a fiftieth of one.
fn round_trips(text: &str) -> f64 {
    let flow = run(text, 1).flows.remove(0);
    assert!(flow.transfers_completed > 4 && flow.packets_retransmitted == 0, "{flow:?}");
    flow.transfer_time_mean_s.unwrap() / 0.1
}

#[track_caller]
fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.02, "{found} is not {expected}");
}

/// On a fresh connection TCP's handshake takes one, TLS's one, request and answer one. QUIC's takes one for both, and none where a
/// session is resumed. 4 to 6 kB are more than RFC 5681's initial window of three: with profile `rfc` a flight more, and delayed
/// acknowledgements.
#[test]
fn a_page_takes_its_handshakes_and_a_round_trip() {
    for (transport, request, expected) in [("", "tls = false", 2.0), ("", "", 3.0), (QUIC, "", 2.0), (ZERO, "", 1.0)] {
        is_near(round_trips(&path("linux", "", &pages(transport, "think", request))), expected);
    }
    let small = "app = { kind = \"web\", median_size = \"2 kB\", shape = 6, max_size = \"4 kB\", gap = \"2 s\", request = { tls = false } }";
    is_near(round_trips(&path("rfc", "", small)), 2.0);
}

/// On a connection that stays the first page has the handshakes, and the others a round trip each.
#[test]
fn later_pages_of_a_connection_take_one_round_trip() {
    for (transport, request, first) in [("", "tls = false", 2.0), ("", "", 3.0), (QUIC, "", 2.0), (ZERO, "", 1.0)] {
        let text = path("linux", "", &pages(transport, "think-persistent", request));
        let pages = run(&text, 1).flows[0].transfers_completed as f64;
        is_near(round_trips(&text), (first + pages - 1.0) / pages);
    }
    // both ends know all already: no first page is unlike the others
    let done = "transport = \"quic\"\nquic = { handshake = \"done\" }\n";
    is_near(round_trips(&path("rfc", "", &pages(done, "think-persistent", ""))), 1.0);
    let warm = format!("handshake = false\n{}", pages("", "think-persistent", ""));
    is_near(round_trips(&path("linux", "", &warm)), 1.0);
}

/// Requests change when pages come, not which.
#[test]
fn a_page_has_the_same_bytes_with_and_without_requests() {
    for transport in ["", QUIC] {
        let requested = run(&path("linux", "", &pages(transport, "think", "")), 1).flows.remove(0);
        let pushed = pages(transport, "think", "").replace(", request = {  }", "");
        let pushed = run(&path("linux", "", &pushed), 1).flows.remove(0);
        let mean = |flow: &FlowSummary| flow.bytes_delivered as f64 / flow.transfers_completed as f64;
        assert!((mean(&requested) / mean(&pushed) - 1.0).abs() < 0.05, "{} {}", mean(&requested), mean(&pushed));
    }
}

/// One page of 2 kB, of which nothing passes that goes back between these times: the request is lost.
fn lost_request(profile: &str, transport: &str, (from, to): (&str, &str)) -> f64 {
    let loss = format!(
        "[link.bottleneck.backward]\nloss = {{ kind = \"uniform\", rate = \"99.999999 %\", during = [{{ from = \"{from}\", to = \"{to}\" }}] }}"
    );
    let app = "app = { kind = \"web\", median_size = \"2 kB\", shape = 6, max_size = \"4 kB\", gap = \"1000 s\", request = {} }";
    let tls = if transport.is_empty() { "{ tls = false } }" } else { "{} }" };
    let app = app.replace("{} }", tls);
    let flow = run(&path(profile, &loss, &format!("{transport}{app}")), 1).flows.remove(0);
    assert_eq!((flow.transfers_completed, flow.transfers_unfinished), (1, 0));
    flow.transfer_time_mean_s.unwrap()
}

/// TCP has its round trip from the SYN, and waits the least timeout of profile `rfc`, a second (RFC 6298 (2.4)); Linux its timeout of
/// 300 ms, a round trip and 200 ms; QUIC a probe timeout, of a round trip, four times its half, and 25 ms (RFC 9002 section 6.2.1).
/// What is lost before there is a round trip waits for a second over TCP (section 2.1), over QUIC for three times 333 ms (6.2.2).
#[test]
fn a_lost_request_is_sent_again() {
    let request = ("90 ms", "110 ms");
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.001, "{found} is not {expected}");
    near(lost_request("rfc", "", request), 0.1 + 1.0 + 0.1);
    near(lost_request("linux", "", request), 0.1 + 0.3 + 0.1);
    near(lost_request("rfc", QUIC, request), 0.1 + (0.1 + 4.0 * 0.05 + 0.025) + 0.1);
    let first = ("0 s", "10 ms");
    near(lost_request("rfc", "", first), 1.0 + 0.2);
    near(lost_request("rfc", QUIC, first), 3.0 * 0.333 + 0.2);
    near(lost_request("rfc", ZERO, first), 3.0 * 0.333 + 0.1);
}

/// Pages of a packet each that are asked for at a mean distance of 5 ms until the flow stops, on a connection that both ends know: their
/// mean time in round trips, and how many are complete.
fn open_pages(link: &str, transport: &str, stop: &str) -> (f64, u64) {
    let app = "app = { kind = \"web\", median_size = \"1 kB\", shape = 50, max_size = \"1050 B\", gap = \"5 ms\", arrivals = \"open\", request = {} }";
    let text = path("linux", link, &format!("{transport}initial_window = 100\nstop = \"{stop}\"\n{app}"));
    let flow = run(&text, 1).flows.remove(0);
    (flow.transfer_time_mean_s.unwrap() / 0.1, flow.transfers_completed)
}

const KNOWN: &str = "transport = \"quic\"\nquic = { handshake = \"done\" }\n";

/// The first of twelve answers is lost. It takes some two round trips, over both; over TCP those behind it wait for it.
#[test]
fn a_loss_holds_one_page_over_quic_and_all_that_follow_over_tcp() {
    let lost =
        "loss = { kind = \"uniform\", rate = \"99.999999 %\", during = [{ from = \"50 ms\", to = \"50.2 ms\" }] }";
    let of = |link: &str, transport: &str| {
        let (trips, complete) = open_pages(link, transport, "149 ms");
        assert_eq!(complete, 12, "{transport}");
        trips
    };
    is_near(of("", KNOWN), 1.0);
    is_near(of("", "handshake = false\n"), 1.0);
    let (quic, tcp) = (of(lost, KNOWN), of(lost, "handshake = false\n"));
    assert!((1.08..1.12).contains(&quic), "one of twelve takes a round trip more, and what tells of its loss: {quic}");
    assert!(
        (1.7..1.9).contains(&tcp),
        "those asked for within a round trip wait half of one in the mean, and more: {tcp}"
    );
}

/// A stream is open until its answer is acknowledged, and the client hears of another: with one, 225 ms for each page, as its
/// acknowledgement waits for 25 ms; with two, 200 ms for both. Those asked for in time for the server's stop are answered.
#[test]
fn so_many_pages_at_once_as_streams_may_be_open() {
    let of = |streams: u32| {
        let quic = format!("transport = \"quic\"\nquic = {{ handshake = \"done\", max_streams = {streams} }}\n");
        open_pages("", &quic, "3 s").1
    };
    assert_eq!((of(1), of(2)), (14, 30));
    assert!(of(1000) > 500);
}

/// A film of 60 s of 1 Mbit/s, which plays when 3 s of it are there.
fn film(transport: &str, more: &str) -> StreamSummary {
    let app = format!("app = {{ kind = \"stream\", media_rate = \"1 Mbit/s\", length = \"60 s\", {more} }}");
    let text = path("linux", "", &format!("{transport}initial_window = 1000\n{app}"));
    run(&text.replace("duration = \"20 s\"", "duration = \"100 s\""), 1).streams.remove(0)
}

/// 100 kB come at once and each 100 ms after that, so that 3 s are there 300 ms after the first: with a request a handshake, the request's
/// way and the answer's earlier.
#[test]
fn a_film_that_is_asked_for_begins_when_its_request_has_come() {
    let fill = |transport: &str, more: &str| film(transport, more).fill_s.unwrap();
    is_near(fill("", ""), 0.45);
    is_near(fill("", "request = { tls = false }"), 0.5);
    is_near(fill("", "request = {}"), 0.6);
    is_near(fill(QUIC, "request = {}"), 0.5);
    is_near(fill(ZERO, "request = {}"), 0.4);
}

/// Pieces of 2 s: two make 3 s, of a round trip each and what pacing takes. The player asks for one when it has room for it, so that
/// nothing is thrown away, and all is in time.
#[test]
fn a_player_asks_for_pieces_as_it_has_room() {
    let pieces = "request = { piece = \"2 s\" }";
    for (transport, trips) in [(QUIC, 3.0), (ZERO, 2.0)] {
        let fill = film(transport, pieces).fill_s.unwrap() / 0.1;
        assert!((0.0..0.25).contains(&(fill - trips)), "{fill} is not {trips}");
    }
    for transport in ["", QUIC] {
        let held = format!("client_buffer = \"1 MB\", {pieces}");
        let stream = film(transport, &held);
        assert!(stream.completed && stream.late_packets == 0 && stream.discarded_packets == 0, "{stream:?}");
        // 8 s of it are the most that is held, and it plays from the first second on
        assert!((51.0..54.0).contains(&stream.duration_s), "{}", stream.duration_s);
        let pushed = film(transport, "client_buffer = \"1 MB\"");
        assert!(pushed.discarded_packets > 3000, "what nobody asked for does not fit: {pushed:?}");
    }
}

/// Loss of both ways, and connections that follow each other: each page comes whole, once, and nothing is left over.
#[test]
fn pages_come_whole_whatever_is_lost() {
    let loss = "loss = { kind = \"uniform\", rate = \"5 %\" }\n[link.bottleneck.backward]\nloss = { kind = \"uniform\", rate = \"5 %\" }";
    for transport in ["", QUIC, ZERO] {
        for arrivals in ["think", "think-persistent", "open"] {
            for seed in 1..=5 {
                let app = format!(
                    "app = {{ kind = \"web\", mean_size = \"30 kB\", shape = 100, max_size = \"30 kB\", gap = \"200 ms\", arrivals = \"{arrivals}\", request = {{}} }}"
                );
                let flow = run(&path("linux", loss, &format!("{transport}{app}")), seed).flows.remove(0);
                assert!(flow.transfers_completed > 12, "{transport}{arrivals} {seed}: {flow:?}");
                let most = if arrivals == "open" { 100 } else { 1 };
                assert!(flow.transfers_unfinished <= most, "{transport}{arrivals} {seed}: {flow:?}");
                assert_eq!(flow.transfers_started, flow.transfers_completed + flow.transfers_unfinished);
                let pages = flow.transfers_completed * 29_700..=flow.transfers_started * 30_000;
                assert!(pages.contains(&flow.bytes_delivered), "{transport}{arrivals} {seed}: {flow:?}");
            }
        }
    }
}

/// A resumed session's answer is data from its first packet on, and what its handshake is lost with is of no use without it: probes bring
/// that first. Where they brought new data a page took many timeouts, and a third of the pages of these runs were missing.
#[test]
fn a_lost_handshake_is_probed_for_before_data() {
    let pages = |transport: &str| -> u64 {
        let loss = "loss = { kind = \"uniform\", rate = \"1 %\" }\n[link.bottleneck.backward]\nloss = { kind = \"uniform\", rate = \"1 %\" }";
        let app = "app = { kind = \"web\", gap = \"1 s\", max_size = \"1 MB\", request = {} }";
        let text =
            path("linux", loss, &format!("{transport}{app}")).replace("duration = \"20 s\"", "duration = \"200 s\"");
        (1..=10).map(|seed| run(&text, seed).flows[0].transfers_completed).sum()
    };
    let (resumed, fresh) = (pages(ZERO), pages(QUIC));
    assert!(resumed > fresh, "{resumed} pages, {fresh} without resumption");
}
