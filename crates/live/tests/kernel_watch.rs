//! Following connections of this very process and of others, over loopback.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

use crate::realtime;

use paceline_live::clock::Clock;
use paceline_live::kernel::watch::{Control, MAX_READINGS, Options, Selection, Watching};
use paceline_live::results::LiveOutput;
use paceline_units::Span;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn options(selection: Selection) -> Options {
    Options {
        selection,
        every: Span::from_millis(10),
        search_every: Span::from_millis(20),
        duration: None,
        max_readings: MAX_READINGS,
    }
}

/// Watches while `work` goes on, and until it has had time to end.
fn watched(options: Options, work: impl FnOnce()) -> LiveOutput {
    let mut watching = Watching::open(options, Clock::start()).unwrap();
    let control = Control::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| watching.run(&control));
        work();
        std::thread::sleep(Duration::from_millis(300));
        control.stop.store(true, Ordering::Relaxed);
        thread.join().unwrap().unwrap();
    });
    watching.finish("test")
}

/// A transfer of `bytes` to the listener, which the other end reads whole before both close.
fn transfer(listener: &TcpListener, bytes: usize) {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let reader = std::thread::spawn(move || server.read_to_end(&mut Vec::new()).unwrap());
    client.write_all(&vec![1; bytes]).unwrap();
    drop(client);
    assert_eq!(reader.join().unwrap(), bytes);
}

#[test]
#[ignore = "real time"]
fn a_port_is_followed_from_both_ends_and_each_byte_is_counted() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let done = watched(options(Selection::Ports(vec![port])), || {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            for _ in 0..20 {
                client.write_all(&[1; 10_000]).unwrap();
                server.read_exact(&mut [0; 10_000]).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
            // What is written in the last instant before the end lies between two readings.
            client.write_all(&[1; 777]).unwrap();
            server.read_exact(&mut [0; 777]).unwrap();
        });
        let flows = &done.summary.flows;
        assert_eq!(flows.len(), 2, "{flows:?}");
        for flow in flows {
            assert!(flow.to.ends_with(&format!(":{port}")), "{flow:?}");
            assert!((Some(200_777)..=Some(200_778)).contains(&flow.bytes_delivered), "{flow:?}");
            assert_eq!(flow.ended.as_deref(), Some("closed"));
            assert_eq!(flow.pid, Some(std::process::id()));
        }
        let sender = flows.iter().find(|flow| flow.cwnd_max_packets.is_some()).unwrap();
        assert!(sender.rtt_min_s.unwrap() > 0.0 && sender.packets_sent.unwrap() >= 21);
        let kernel: Vec<_> = done.series.iter().filter(|series| series.table == "kernel").collect();
        assert_eq!(kernel.len(), 2);
        assert!(kernel.iter().all(|series| series.columns[0].1.len() >= 10), "too few readings");
    });
}

#[test]
#[ignore = "real time"]
fn a_connection_between_two_searches_is_not_lost() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rare = Options { search_every: Span::from_secs(60), ..options(Selection::Ports(vec![port])) };
        let done = watched(rare, || {
            for _ in 0..3 {
                transfer(&listener, 5000);
            }
        });
        let bytes: Vec<u64> = done.summary.flows.iter().filter_map(|flow| flow.bytes_delivered).collect();
        assert_eq!(bytes.len(), 6, "{bytes:?}");
        assert!(bytes.iter().all(|bytes| (5000..=5002).contains(bytes)), "{bytes:?}");
    });
}

#[test]
#[ignore = "real time"]
fn what_was_there_before_is_counted_from_the_beginning_of_the_watch() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 40_000]).unwrap();
        server.read_exact(&mut [0; 40_000]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let done = watched(options(Selection::Ports(vec![port])), || {
            client.write_all(&[1; 1234]).unwrap();
            server.read_exact(&mut [0; 1234]).unwrap();
        });
        assert!(
            done.summary
                .flows
                .iter()
                .all(|flow| flow.bytes_delivered == Some(1234) && flow.ended.as_deref() == Some("open"))
        );
    });
}

#[test]
#[ignore = "real time"]
fn many_connections_are_read_by_listing_them() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let done = watched(options(Selection::Ports(vec![port])), || {
            let mut pairs = Vec::new();
            for _ in 0..30 {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                pairs.push((client, listener.accept().unwrap().0));
            }
            std::thread::sleep(Duration::from_millis(100));
            for (client, server) in &mut pairs {
                client.write_all(&[2; 100]).unwrap();
                server.read_exact(&mut [0; 100]).unwrap();
            }
            std::thread::sleep(Duration::from_millis(50));
        });
        assert_eq!(done.summary.flows.len(), 60);
        assert!(done.summary.flows.iter().all(|flow| (Some(100)..=Some(101)).contains(&flow.bytes_delivered)));
        assert_eq!(done.summary.groups.len(), 1);
    });
}

#[test]
#[ignore = "real time"]
fn a_long_log_is_thinned() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let few = Options { max_readings: 40, every: Span::from_millis(2), ..options(Selection::Ports(vec![port])) };
        let done = watched(few, || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _server = listener.accept().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            drop(client);
        });
        let readings: usize = done.series.iter().filter(|s| s.table == "kernel").map(|s| s.columns[0].1.len()).sum();
        assert!(readings <= 44, "{readings}");
        assert!(done.summary.notes.iter().any(|note| note.contains("apart")), "{:?}", done.summary.notes);
    });
}

#[test]
fn an_absent_process_is_named() {
    realtime::tried(|| {
        let error = Watching::open(options(Selection::Processes(vec![u32::MAX])), Clock::start()).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no process {}", u32::MAX));
    });
}
