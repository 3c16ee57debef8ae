//! Bulk flows of the kernel's TCP over loopback.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

use crate::needs;
use crate::realtime;

use paceline_live::clock::Clock;
use paceline_live::kernel::flow::{
    Ended, FlowError, Received, Receiving, Sending, Sent, receive, send, set_congestion_control,
};
use paceline_live::kernel::log::{Direction, KERNEL};
use paceline_units::Span;
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow::{Break, Continue};
use std::process::Command;
use std::time::Duration;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
#[ignore = "real time"]
fn what_is_sent_arrives_and_the_log_agrees() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        let reader = std::thread::spawn(move || receive(&server, &Receiving::default(), clock, &mut |_| Continue(())));
        let options = Sending {
            bytes: Some(40_000_001),
            congestion_control: Some("reno".to_owned()),
            ..Sending::lasting(Span::from_secs(20))
        };
        let sent = send(&client, &options, clock, &mut |_| Continue(())).unwrap();
        let received = reader.join().unwrap().unwrap();
        assert_eq!((sent.ended, sent.drained, received.ended), (Ended::Bytes, true, Ended::PeerClosed));
        assert_eq!((sent.written, received.bytes), (40_000_001, 40_000_001));
        // The handshake's byte was counted before the log began, the FIN's is taken out.
        assert_eq!(sent.log.moved().0, 40_000_001);
        assert_eq!(received.intervals.iter().map(|(_, bytes)| bytes).sum::<u64>(), received.bytes);
        let row = sent.row();
        assert_eq!((row.bytes_delivered, row.cc.as_str(), row.profile.as_str()), (Some(40_000_001), "reno", "kernel"));
        assert!(row.goodput_bps > 1e6 && row.rtt_min_s.unwrap() < 0.5 && row.cwnd_max_packets.unwrap() >= 10.0);
        let series = sent.log.series("f", 0, Direction::Out);
        assert_eq!(series[0].columns.len(), KERNEL.len());
        assert!(series.iter().all(|s| s.columns.iter().all(|(_, c)| c.len() == s.columns[0].1.len())));
    });
}

#[test]
#[ignore = "real time"]
fn bbr_tells_of_its_bandwidth_where_the_kernel_has_it() {
    realtime::tried(|| {
        if !needs::have("bbr") {
            return;
        }
        let (client, server) = pair();
        let clock = Clock::start();
        let reader = std::thread::spawn(move || receive(&server, &Receiving::default(), clock, &mut |_| Continue(())));
        let options =
            Sending { congestion_control: Some("bbr".to_owned()), ..Sending::lasting(Span::from_millis(300)) };
        let sent = send(&client, &options, clock, &mut |_| Continue(())).unwrap();
        reader.join().unwrap().unwrap();
        let kernel = &sent.log.series("f", 0, Direction::Out)[0];
        let last = |name: &str| *kernel.columns.iter().find(|(column, _)| *column == name).unwrap().1.last().unwrap();
        assert!(last("cc_bandwidth_bps") > 1e6 && last("cc_pacing_gain") >= 0.25 && last("cc_cwnd_gain") >= 1.0);
    });
}

#[test]
#[ignore = "real time"]
fn a_flow_ends_in_time_and_logs_on_schedule() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        let reader = std::thread::spawn(move || receive(&server, &Receiving::default(), clock, &mut |_| Continue(())));
        let sent = send(&client, &Sending::lasting(Span::from_millis(500)), clock, &mut |_| Continue(())).unwrap();
        let received = reader.join().unwrap().unwrap();
        assert_eq!((sent.ended, sent.drained, received.bytes), (Ended::Time, true, sent.written));
        let times: Vec<u64> = sent.log.samples().iter().map(|s| s.time.0).collect();
        // Of the 51 instants some may be missed where the host is busy; those kept are on the grid in the median.
        assert!((20..=53).contains(&times.len()), "{}", times.len());
        let mut late: Vec<u64> = times[1..].iter().map(|t| (t - times[0]) % 10_000_000).collect();
        late.sort_unstable();
        assert!(late[late.len() / 2] < 5_000_000, "{late:?}");
        assert!((sent.row().active_s - 0.5).abs() < 0.2);
    });
}

/// A flow of any length keeps so many readings at most, and what it says as a whole stays.
#[test]
#[ignore = "real time"]
fn a_long_flow_keeps_fewer_readings() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        let every = Span::from_millis(1);
        let receiving = Receiving { count_every: every, max_kept: 64, ..Receiving::default() };
        let reader = std::thread::spawn(move || receive(&server, &receiving, clock, &mut |_| Continue(())));
        let options = Sending { log_every: every, max_kept: 64, ..Sending::lasting(Span::from_millis(600)) };
        let sent = send(&client, &options, clock, &mut |_| Continue(())).unwrap();
        let received = reader.join().unwrap().unwrap();
        for (kept, what) in [(sent.log.samples().len(), "readings"), (received.intervals.len(), "intervals")] {
            // every 16 ms in the end, where nothing is missed
            assert!((5..=66).contains(&kept), "{kept} {what}");
        }
        assert_eq!(received.intervals.iter().map(|(_, bytes)| bytes).sum::<u64>(), sent.written);
        assert!(received.intervals.windows(2).all(|two| two[0].0 <= two[1].0));
        // the log ends with the time, when some was still under way
        assert!(
            (0.8 * sent.written as f64..=sent.written as f64).contains(&(sent.log.moved().0 as f64)),
            "{:?}",
            sent.log.moved()
        );
        assert!((sent.row().active_s - 0.6).abs() < 0.2, "{:?}", sent.row());
    });
}

#[test]
#[ignore = "real time"]
fn it_stops_when_told_and_when_the_peer_goes() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        let reader = std::thread::spawn(move || {
            receive(&server, &Receiving::default(), clock, &mut |n| if n > 1000 { Break(()) } else { Continue(()) })
        });
        let forever = Sending { duration: None, ..Sending::lasting(Span::from_secs(1)) };
        let sent = send(&client, &forever, clock, &mut |_| Continue(())).unwrap();
        assert_eq!(reader.join().unwrap().unwrap().ended, Ended::Stopped);
        assert_eq!(sent.ended, Ended::PeerClosed);

        let (client, server) = pair();
        let reader = std::thread::spawn(move || receive(&server, &Receiving::default(), clock, &mut |_| Continue(())));
        let mut ticks = 0;
        let sent = send(&client, &forever, clock, &mut |_| {
            ticks += 1;
            if ticks == 5 { Break(()) } else { Continue(()) }
        });
        let sent = sent.unwrap();
        assert_eq!((sent.ended, sent.drained), (Ended::Stopped, true));
        assert_eq!(reader.join().unwrap().unwrap().bytes, sent.written);
    });
}

#[test]
#[ignore = "real time"]
fn a_flow_is_measured_from_its_warm_up_on_and_cut_at_its_end() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        // The sender goes on after the receiver's end, however late the receiver's thread begins on a busy machine.
        let (warm, end) = (Span::from_millis(400), Span::from_millis(1500));
        let receiving =
            Receiving { longest: Some(Span::from_millis(1000)), measured_from: Some(warm), ..Receiving::default() };
        let reader = std::thread::spawn(move || {
            // Nobody reads any more when the receiver is done: a sender that waited for its bytes would wait in vain.
            let received = receive(&server, &receiving, clock, &mut |_| Continue(())).unwrap();
            std::thread::sleep(Duration::from_millis(2000));
            received
        });
        let options = Sending {
            measured_from: Some(warm),
            at_latest: Some(end),
            congestion_control: Some("reno".to_owned()),
            ..Sending::lasting(Span::from_secs(20))
        };
        let sent = send(&client, &options, clock, &mut |_| Continue(())).unwrap();
        assert_eq!((sent.ended, sent.drained), (Ended::Time, false));
        assert!(
            sent.end.since(sent.log.start()) >= end && sent.end.since(sent.log.start()) < end * 2,
            "{:?}",
            sent.end
        );
        let received = reader.join().unwrap();
        assert_eq!(received.ended, Ended::Time);
        let all: u64 = received.intervals.iter().map(|(_, bytes)| bytes).sum();
        assert!(received.bytes > 0 && received.bytes < all, "{} of {all}", received.bytes);
        // Six tenths of the time; what came until then is in the recordings all the same.
        let row = received.row();
        assert!((0.55..0.75).contains(&row.active_s), "{row:?}");
        assert!((1.05..1.3).contains(&sent.row().active_s), "{:?}", sent.row());
        assert!(sent.log.samples()[0].time < sent.log.start() + warm);
    });
}

/// Nobody misses a sender before that, and none of its time is measured.
#[test]
#[ignore = "real time"]
fn a_flow_begins_at_its_start() {
    realtime::tried(|| {
        let (client, server) = pair();
        let clock = Clock::start();
        let begins = Span::from_millis(600);
        let receiving = Receiving { begins, give_up: Span::from_millis(300), ..Receiving::default() };
        let reader = std::thread::spawn(move || receive(&server, &receiving, clock, &mut |_| Continue(())));
        let sending = Sending { begins, ..Sending::lasting(Span::from_millis(900)) };
        let sent = send(&client, &sending, clock, &mut |_| Continue(())).unwrap();
        let received = reader.join().unwrap().unwrap();
        assert_eq!((sent.ended, received.ended), (Ended::Time, Ended::PeerClosed));
        let first = received.intervals.iter().find(|(_, bytes)| *bytes > 0).expect("it came").0;
        assert!(first >= sent.log.start() + begins, "{first:?}");
        assert!((0.25..0.4).contains(&sent.row().active_s), "{:?}", sent.row());
        assert!(received.row().active_s < 0.45, "{:?}", received.row());
    });
}

#[test]
#[ignore = "real time"]
fn a_silent_peer_is_given_up() {
    realtime::tried(|| {
        // Nobody reads: the window closes, and probes are answered. The receiver hears nothing.
        let (client, server) = pair();
        let clock = Clock::start();
        let options = Receiving { give_up: Span::from_millis(300), ..Receiving::default() };
        let received = receive(&server, &options, clock, &mut |_| Continue(())).unwrap();
        assert_eq!((received.ended, received.bytes), (Ended::Vanished, 0));
        drop(client);
    });
}

#[test]
#[ignore = "real time"]
fn an_unknown_congestion_control_is_named_with_those_there_are() {
    realtime::tried(|| {
        let (client, _server) = pair();
        let error = set_congestion_control(&client, "no-such").unwrap_err();
        assert!(matches!(error, FlowError::CongestionControl { .. }));
        let text = error.to_string();
        assert!(text.contains("no-such") && text.contains("reno"), "{text}");
    });
}

/// The ends of flows, with the path between them cut for `cut` after a third of a second, in a network of its own. Each
/// end gives up after `give_up`.
fn cut_off(cut: Duration, give_up: Span) -> (Sent, Received) {
    let inside = move || {
        // SAFETY: no file descriptors or memory are unshared, only the network of this thread.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        let ip = |program: &str, words: &str| {
            let done = Command::new(program).args(words.split(' ')).status().unwrap();
            assert!(done.success(), "{program} {words}");
        };
        ip("ip", "link set lo up");
        let (client, server) = pair();
        let clock = Clock::start();
        let receiving = Receiving { give_up, ..Receiving::default() };
        let sending = Sending { give_up, ..Sending::lasting(Span::from_millis(2000)) };
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| receive(&server, &receiving, clock, &mut |_| Continue(())));
            let writer = scope.spawn(|| send(&client, &sending, clock, &mut |_| Continue(())));
            // Something is under way when the cut comes: what is refused before it was ever sent has no retransmission timer.
            ip("tc", "qdisc add dev lo root tbf rate 200mbit burst 200kb limit 400kb");
            std::thread::sleep(Duration::from_millis(333));
            // A queue without room drops all.
            ip("tc", "qdisc replace dev lo root pfifo limit 0");
            std::thread::sleep(cut);
            ip("tc", "qdisc del dev lo root");
            (writer.join().unwrap().unwrap(), reader.join().unwrap().unwrap())
        })
    };
    std::thread::spawn(inside).join().unwrap()
}

#[test]
#[ignore = "real time"]
fn a_peer_that_vanishes_ends_a_flow_within_seconds() {
    realtime::tried(|| {
        if !needs::have("root") || !needs::have("ip") || !needs::have("tc") {
            return;
        }
        let (sent, received) = cut_off(Duration::from_secs(4), Span::from_millis(1000));
        assert_eq!((sent.ended, received.ended), (Ended::Vanished, Ended::Vanished));
        assert!(!sent.drained && received.bytes <= sent.written);
        let lasted = sent.end.since(received.start).as_secs_f64();
        assert!((1.0..3.5).contains(&lasted), "{lasted} s");
        // What a queue of its own host refuses the kernel does not count as sent again (TCPRetransFail), but its timer expired.
        assert!(sent.row().timeouts.is_none_or(|timeouts| timeouts > 0), "{:?}", sent.row());
        assert!((received.end.since(received.start).as_secs_f64() - 0.34).abs() < 0.3, "the last byte's time");
    });
}

#[test]
#[ignore = "real time"]
fn a_path_that_comes_back_loses_nothing() {
    realtime::tried(|| {
        if !needs::have("root") || !needs::have("ip") || !needs::have("tc") {
            return;
        }
        let (sent, received) = cut_off(Duration::from_millis(500), Span::from_secs(10));
        assert_eq!((sent.ended, received.ended, sent.drained), (Ended::Time, Ended::PeerClosed, true));
        assert_eq!(received.bytes, sent.written);
        assert!(sent.row().packets_retransmitted.unwrap() > 0);
    });
}
