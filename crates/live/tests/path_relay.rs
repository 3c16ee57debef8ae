//! The path in real time, over sockets: medians alone are held to bounds, as the host may take the processor away.

use crate::realtime;

use paceline_live::clock::{Clock, Waiter};
use paceline_live::path::device::{Device, Messages};
use paceline_live::path::{Folder, PathCapture, PathReport, PathSpec, RelayOptions, Sent, Stop, run};
use paceline_live::start_signal::{Announcer, Beginning};
use paceline_scenario::Document;
use paceline_units::{Span, Time};
use std::path::Path;
use std::thread;

fn path(links: &str) -> PathSpec {
    let document = Document::parse(links, "path").unwrap_or_else(|error| panic!("{error}"));
    PathSpec::of(document, &Folder::Profiles).unwrap_or_else(|error| panic!("{error}"))
}

fn frame(size: u16, number: u32) -> Vec<u8> {
    let mut frame = vec![0; usize::from(size)];
    frame[0] = 0x45;
    frame[2..4].copy_from_slice(&size.to_be_bytes());
    frame[9] = 17;
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    frame
}

struct Stopping<'a>(&'a Stop);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a path while `work` has the sockets of its ends; it stops when the work is done.
fn with_path<T>(
    spec: &PathSpec,
    options: &RelayOptions<'_>,
    work: impl FnOnce(&mut Messages, &mut Messages) -> T,
) -> (T, PathReport) {
    let (mut near, mut near_end) = Messages::pair().unwrap();
    let (mut far, mut far_end) = Messages::pair().unwrap();
    let stop = Stop::new().unwrap();
    thread::scope(|scope| {
        let relay = scope.spawn(|| run(spec, &mut near_end, &mut far_end, options, &stop).unwrap());
        // Also when the work panics: the scope waits for the relay.
        let stopping = Stopping(&stop);
        let done = work(&mut near, &mut far);
        drop(stopping);
        (done, relay.join().unwrap())
    })
}

/// What arrives by `until`: when, and the packet's number.
fn collect(device: &mut Messages, waiter: &mut Waiter, until: Time) -> Vec<(Time, u32)> {
    use rustix::event::{PollFd, PollFlags};
    let mut got = Vec::new();
    let mut buffer = vec![0; 65_536];
    while waiter.clock().now() < until {
        while let Some(len) = device.recv(&mut buffer).unwrap() {
            let number = buffer[20..24].try_into().map(u32::from_be_bytes).unwrap();
            assert!(len >= 24);
            got.push((waiter.clock().now(), number));
        }
        waiter.wait(&mut [PollFd::new(device, PollFlags::IN)], until).unwrap();
    }
    got
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// What measures microseconds: `./check` has nothing run beside it.
mod alone {
    use super::*;

    #[test]
    #[ignore = "real time"]
    fn delay_rate_and_queue_are_as_set() {
        realtime::tried(|| {
            let spec = path(
                "[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = { kind = \"droptail\", limit = \"20 packets\" }\n",
            );
            let options = RelayOptions { record: Some(Span::from_millis(5)), ..RelayOptions::default() };
            // 60 at once: one is sent and 20 wait; the others are too many. One every millisecond comes out, from 11 ms on.
            let ((start, got), report) = with_path(&spec, &options, |near, far| {
                let mut waiter = Waiter::new(Clock::start()).unwrap();
                let start = waiter.clock().now();
                (0..60).for_each(|i| assert_eq!(near.send(&frame(1000, i)).unwrap(), Sent::Whole));
                (start, collect(far, &mut waiter, start + Span::from_millis(60)))
            });
            let [there, back] = &report.directions[..] else { panic!("two directions") };
            assert_eq!(back.entered, 0);
            assert_eq!((there.entered, there.drops["overflow"]), (60, 60 - there.delivered));
            assert_eq!((there.delivered, there.in_flight), (got.len() as u64, 0));
            // Never early, never less than the queue holds; while the burst is read, a few more may be sent.
            let first = got[0].0.since(start);
            assert!(first >= Span::from_millis(11) && got.len() >= 21, "{first}, {} frames", got.len());
            let gaps = median(got.windows(2).map(|w| w[1].0.since(w[0].0).0).collect());
            assert!(gaps.abs_diff(1_000_000) < 50_000 && report.lag.p50_s < 50e-6, "gaps {gaps} ns: {report:?}");
            assert!(got.len() <= 23, "{} frames", got.len());
            let tables: Vec<&str> = report.series.iter().map(|series| series.table).collect();
            assert_eq!(tables, ["queue", "delay", "queue"], "the way back has had no frame, but a queue");
        });
    }
}

/// Before the flows begin a path's time goes on as ever; with the first frame after they said so it stands at theirs, whatever is
/// on the way arrives all the same, and neither that nor what was before is measured.
#[test]
#[ignore = "real time"]
fn a_path_begins_anew_with_the_flows() {
    realtime::tried(|| {
        let spec = path(
            "[link.bottleneck]\nrate = \"8 Mbit/s\"\n\
             delay_schedule = [{ at = \"0 s\", delay = \"10 ms\" }, { at = \"150 ms\", delay = \"80 ms\" }]\n",
        );
        let pipe = std::env::temp_dir().join(format!("paceline-begins-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        let beginning = Beginning::new(&pipe).unwrap();
        let options = RelayOptions {
            beginning: Some(&beginning),
            record: Some(Span::from_millis(10)),
            ..RelayOptions::default()
        };
        let (took, report) = with_path(&spec, &options, |near, far| {
            let clock = Clock::start();
            let flows = Announcer::new(&pipe, clock).unwrap();
            let mut waiter = Waiter::new(clock).unwrap();
            let mut sent = Vec::new();
            for (number, at_ms) in [20, 250, 300, 310].into_iter().enumerate() {
                waiter.sleep_until(Time::ZERO + Span::from_millis(at_ms)).unwrap();
                sent.push(clock.now());
                if number == 2 {
                    flows.say_now();
                }
                near.send(&frame(1000, number as u32)).unwrap();
            }
            let got = collect(far, &mut waiter, Time::ZERO + Span::from_millis(420));
            let took: Vec<(u32, f64)> =
                got.iter().map(|&(at, number)| (number, at.since(sent[number as usize]).as_secs_f64() * 1e3)).collect();
            took
        });
        std::fs::remove_file(&pipe).unwrap();
        let order: Vec<u32> = took.iter().map(|(number, _)| *number).collect();
        assert_eq!(order, [0, 2, 3, 1], "the second was on its way when the flows began: {took:?}");
        // the first is collected late
        for ((_, ms), expected) in took[1..].iter().zip([11.0, 11.0, 81.0]) {
            assert!((ms - expected).abs() < 5.0, "{took:?}");
        }
        let there = &report.directions[0];
        assert_eq!((there.entered, there.delivered, there.in_flight), (2, 2, 0));
        assert!((report.set_up_s - 0.3).abs() < 0.02, "{}", report.set_up_s);
        assert!((report.duration_s - 0.12).abs() < 0.02, "{}", report.duration_s);
        let rows = report.series[0].columns[0].1.len();
        assert!((11..=14).contains(&rows), "{rows} rows of 10 ms");
    });
}

#[test]
#[ignore = "real time"]
fn it_stops_at_once_and_keeps_what_it_has() {
    realtime::tried(|| {
        let spec = path("[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"50 s\"\n");
        let clock = Clock::start();
        let (before, report) = with_path(&spec, &RelayOptions::default(), |near, _| {
            near.send(&frame(100, 1)).unwrap();
            Waiter::new(clock).unwrap().sleep_until(clock.now() + Span::from_millis(50)).unwrap();
            clock.now()
        });
        assert!(clock.now().since(before) < Span::from_secs(2));
        let there = &report.directions[0];
        assert_eq!((there.entered, there.delivered, there.in_flight), (1, 0, 1));
        assert_eq!(report.failure, None);
    });
}

#[test]
#[ignore = "real time"]
fn a_device_that_goes_ends_it_and_a_full_one_does_not_block_it() {
    realtime::tried(|| {
        let spec = path("[link.bottleneck]\nrate = \"1000 Gbit/s\"\nqueue = { kind = \"unlimited\" }\n");
        let (sent, report) = with_path(&spec, &RelayOptions::default(), |near, _far| {
            // Nobody reads at the far end.
            let clock = Clock::start();
            let mut sent = 0u64;
            while clock.now() < Time::ZERO + Span::from_millis(200) {
                match near.send(&frame(1000, 1)).unwrap() {
                    Sent::Whole => sent += 1,
                    _ => thread::yield_now(),
                }
            }
            sent
        });
        let there = &report.directions[0];
        assert!(there.drops["device"] > 0 && there.entered <= sent, "{there:?}");
        let (_, report) = with_path(&spec, &RelayOptions::default(), |near, far| {
            *far = Messages::pair().unwrap().0;
            *near = Messages::pair().unwrap().0;
            let clock = Clock::start();
            Waiter::new(clock).unwrap().sleep_until(Time::ZERO + Span::from_millis(50)).unwrap();
        });
        let failure = report.failure.expect("it has ended");
        assert!(failure.starts_with("the device of the "), "{failure}");
    });
}

#[test]
#[ignore = "real time"]
fn its_time_is_over_and_its_capture_is_whole() {
    realtime::tried(|| {
        let spec = path("[link.bottleneck]\nrate = \"80 Mbit/s\"\n");
        let file = std::env::temp_dir().join(format!("paceline-{}-path.pcapng", std::process::id()));
        let capture = PathCapture { path: &file, snap: 64 };
        let options =
            RelayOptions { capture: Some(capture), duration: Some(Span::from_millis(300)), ..RelayOptions::default() };
        let (_, report) = with_path(&spec, &options, |near, far| {
            for i in 0..20 {
                near.send(&frame(1000, i)).unwrap();
                far.send(&frame(500, i)).unwrap();
            }
            let mut waiter = Waiter::new(Clock::start()).unwrap();
            waiter.sleep_until(Time::ZERO + Span::from_millis(500)).unwrap();
        });
        assert!((0.3..0.45).contains(&report.duration_s), "{}", report.duration_s);
        let delivered: u64 = report.directions.iter().map(|way| way.delivered).sum();
        assert_eq!(delivered, 40);
        let counted = report.capture.expect("a capture");
        assert_eq!((counted.packets, counted.missing, counted.failure), (80, 0, None));
        let read = read(&file);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read.len(), 80);
        for (interface, out) in [(0, true), (0, false), (1, true), (1, false)] {
            let those = read.iter().filter(|packet| (packet.0, packet.1) == (interface, out));
            let size = if (interface == 0) == out { 1000 } else { 500 };
            assert_eq!(those.filter(|packet| packet.2 == size && packet.3 == 64).count(), 20);
        }
    });
}

#[test]
#[ignore = "real time"]
fn a_full_disk_costs_the_capture_and_nothing_else() {
    realtime::tried(|| {
        let spec = path("[link.bottleneck]\nrate = \"80 Mbit/s\"\n");
        let capture = PathCapture { path: Path::new("/dev/full"), snap: 2000 };
        let options = RelayOptions { capture: Some(capture), ..RelayOptions::default() };
        let (_, report) = with_path(&spec, &options, |near, far| {
            let mut waiter = Waiter::new(Clock::start()).unwrap();
            for i in 0..300 {
                near.send(&frame(1000, i)).unwrap();
                let next = waiter.clock().now() + Span::from_micros(200);
                collect(far, &mut waiter, next);
            }
            let soon = waiter.clock().now() + Span::from_millis(50);
            collect(far, &mut waiter, soon)
        });
        let there = &report.directions[0];
        assert_eq!((report.failure, there.entered), (None, there.delivered));
        let capture = report.capture.expect("a capture");
        let failure = capture.failure.expect("the disk is full");
        assert!(failure.contains("No space left"), "{failure}");
        assert!(capture.missing > 0, "{} of {} packets", capture.missing, capture.packets);
    });
}

/// Interface, whether it leaves the host, length on the wire, bytes kept.
fn read(file: &Path) -> Vec<(u32, bool, u32, usize)> {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    let bytes = std::fs::read(file).unwrap();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let out = packet.options.contains(&EnhancedPacketOption::Flags(2));
            // after what Linux shows of a link without headers
            packets.push((packet.interface_id, out, packet.original_len - 16, packet.data.len() - 16));
        }
    }
    packets
}
