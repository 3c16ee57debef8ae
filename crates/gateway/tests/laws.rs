//! What a gateway measures, and what SAP-LAW makes of it, on real kernel TCP.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

use crate::home;

use home::traffic::{Download, check, number, rate, undisturbed};
use home::{Home, Place, SERVER, STATION};
use paceline_units::Span;
use std::net::UdpSocket;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Medians of a number in the statuses of the last `span` seconds.
fn median(said: &str, name: &str, span: f64) -> f64 {
    let at = |line: &str| Some((number(line, "time_s")?, number(line, name)?));
    let found: Vec<(f64, f64)> = said.lines().filter_map(at).collect();
    let from = found.last().expect("statuses").0 - span;
    let mut values: Vec<f64> = found.iter().filter(|(time, _)| *time > from).map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The gateway's delay, when nothing is lowered, before somebody's shaper of 6 Mbit/s with a queue of 250 ms that three
/// downloads have filled.
fn delay_seen(from: &str) -> f64 {
    let home = Home::new(10);
    home.said("tc qdisc add dev lan0 root handle 5: tbf rate 6mbit burst 10kb limit 187500");
    let gateway = home.gateway(&format!("--delay-from {from} --dry-run"));
    sleep(Duration::from_millis(400));
    let downloads: Vec<Download> =
        (0..3).map(|i| Download::start(&home, SERVER, 5001 + i, Span::from_secs(7))).collect();
    sleep(Duration::from_secs(7));
    let (said, _) = gateway.end();
    for download in downloads {
        download.end();
    }
    median(&said, "delay_s", 3.0)
}

#[test]
#[ignore = "real time"]
fn the_delay_is_that_of_the_queue_wherever_it_is_measured() {
    undisturbed("delay of a full queue", || {
        // Three windows of CUBIC keep a queue of 187,500 bytes at 6 Mbit/s between 0.7 and all of it: each falls to 0.7.
        let (queue, ack) = scope(|scope| {
            let queue = scope.spawn(|| delay_seen("queue"));
            let ack = delay_seen("ack");
            (queue.join().unwrap(), ack)
        });
        println!("delay of a queue of 250 ms: {queue:.3} s by the queue, {ack:.3} s by acknowledgements");
        for (from, delay) in [("queue", queue), ("ack", ack)] {
            check((0.15..0.27).contains(&delay), format!("{delay} s by {from}"))?;
        }
        Ok(())
    });
}

/// `bytes_per_s` of datagrams to a station for `duration`.
fn datagrams(home: &Home, bytes_per_s: u64, duration: Duration) {
    let socket = home.inside(Place::Servers, || UdpSocket::bind((SERVER, 7001)).unwrap());
    let _open = home.inside(Place::Stations, || UdpSocket::bind((STATION, 7001)).unwrap());
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed() < duration {
        while sent < bytes_per_s * began.elapsed().as_millis() as u64 / 1000 {
            let _ = socket.send_to(&[0; 972], (STATION, 7001));
            sent += 1000;
        }
        sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "real time"]
fn sap_law_shares_what_udp_leaves_of_the_capacity() {
    undisturbed("SAP-LAW", || {
        let home = Home::new(40);
        let gateway = home.gateway("--algorithm sap-law --capacity 8Mbit/s --interval 500ms");
        sleep(Duration::from_millis(400));
        let downloads: Vec<Download> =
            (0..2).map(|i| Download::start(&home, SERVER, 5001 + i, Span::from_secs(11))).collect();
        sleep(Duration::from_secs(3));
        let together = |span| -> f64 {
            scope(|scope| {
                let each: Vec<_> = downloads.iter().map(|download| scope.spawn(move || rate(download, span))).collect();
                each.into_iter().map(|one| one.join().unwrap()).sum()
            })
        };
        let alone = together(Duration::from_secs(2)) * 8.0;
        let beside = scope(|scope| {
            scope.spawn(|| datagrams(&home, 250_000, Duration::from_secs(5)));
            sleep(Duration::from_secs(2));
            together(Duration::from_secs(2)) * 8.0
        });
        let (said, _) = gateway.end();
        for download in downloads {
            download.end();
        }
        println!("of 8 Mbit/s: {alone:.0} bit/s alone, {beside:.0} beside UDP of 2 Mbit/s");
        assert!(number(said.lines().last().unwrap(), "lowered").unwrap() > 100.0, "{said}");
        // Equation 1 with 1.1 times the UDP traffic; a window is of whole segments, and payload is 1448 of 1514 bytes.
        for (what, rate, left) in [("alone", alone, 8e6), ("beside UDP", beside, 8e6 - 1.1 * 2e6)] {
            check((0.9..1.05).contains(&(rate / left)), format!("{rate} bit/s {what}, {left} is there"))?;
        }
        Ok(())
    });
}
