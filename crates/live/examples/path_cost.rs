//! What an emulated path costs and how exact it is, over sockets: `cargo run -p paceline-live --example path_cost`.
//!
//! Three numbers: how late frames are released at 10, 50 and 100 Mbit/s; how many frames a second the whole path carries
//! when nothing holds them back; how many the core alone does.

use paceline_live::clock::{Clock, Waiter};
use paceline_live::path::device::{Device, Messages};
use paceline_live::path::{Emulator, Folder, PathReport, PathSpec, RelayOptions, Sent, Side, Stop, run};
use paceline_scenario::Document;
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::thread;

fn path(rate: &str) -> PathSpec {
    let text = format!("[link.bottleneck]\nrate = {rate:?}\ndelay = \"5 ms\"\nqueue = {{ limit = \"500 kB\" }}\n");
    let document = Document::parse(&text, "path").expect("TOML");
    PathSpec::of(document, &Folder::Profiles).expect("a path")
}

fn frame() -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[..10].copy_from_slice(&[0x45, 0, 0x03, 0xe8, 0, 0, 0, 0, 64, 17]);
    frame
}

/// Sends frames for `seconds`, one every `gap` (zero: as many as go), and reads them at the far end.
fn drive(spec: &PathSpec, gap: Span, seconds: u64) -> io::Result<PathReport> {
    let (mut near, mut near_end) = Messages::pair()?;
    let (mut far, mut far_end) = Messages::pair()?;
    let (stop, sent) = (Stop::new()?, Stop::new()?);
    thread::scope(|scope| {
        let relay = scope.spawn(|| run(spec, &mut near_end, &mut far_end, &RelayOptions::default(), &stop));
        let reader = scope.spawn(|| -> io::Result<()> {
            let mut waiter = Waiter::new(Clock::start())?;
            let mut buffer = vec![0; 2048];
            while !sent.is_stopped() {
                while far.recv(&mut buffer)?.is_some() {}
                let soon = waiter.clock().now() + Span::from_millis(50);
                waiter.wait(&mut [PollFd::new(&far, PollFlags::IN)], soon)?;
            }
            Ok(())
        });
        let mut waiter = Waiter::new(Clock::start())?.without_spin();
        let (frame, end) = (frame(), Time::ZERO + Span::from_secs(seconds));
        let mut next = Time::ZERO;
        while waiter.clock().now() < end {
            if gap > Span::ZERO {
                waiter.sleep_until(next)?;
                next += gap;
            }
            if near.send(&frame)? == Sent::Full {
                waiter.wait(&mut [PollFd::new(&near, PollFlags::OUT)], end)?;
            }
        }
        sent.stop();
        stop.stop();
        reader.join().expect("the reader")?;
        relay.join().expect("the relay")
    })
}

fn main() -> io::Result<()> {
    for (rate, micros) in [("10 Mbit/s", 800), ("50 Mbit/s", 160), ("100 Mbit/s", 80)] {
        let report = drive(&path(rate), Span::from_micros(micros + micros / 20), 5)?;
        let (lag, steal) = (report.lag, 100.0 * report.host.steal_share);
        println!(
            "{rate}: {} frames, lag p50 {:.1} us, p95 {:.1} us, p99 {:.1} us (steal {steal:.1} %, load {:.1})",
            lag.count,
            lag.p50_s * 1e6,
            lag.p95_s * 1e6,
            lag.p99_s * 1e6,
            report.host.after.load_1min,
        );
    }
    let report = drive(&path("1000 Gbit/s"), Span::ZERO, 5)?;
    let there = &report.directions[0];
    println!("unlimited: {:.0} frames/s of 1000 B", there.delivered as f64 / report.duration_s);
    let (clock, frame, n) = (Clock::start(), frame(), 2_000_000u64);
    let mut core = Emulator::new(&path("10 Gbit/s"), None, Emulator::MEMORY);
    for now in (0..n).map(|i| Time(i * 1000)) {
        core.arrive(Side::Near, now, &frame);
        while core.poll(now).is_some() {}
    }
    println!("core: {:.0} ns a frame", clock.now().0 as f64 / n as f64);
    Ok(())
}
