//! Captures of runs, read back: what leaves and reaches hosts, in order, with the results that a run has without one.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test reads its files")]

use paceline_live::capture::{CaptureError, CaptureFile, Written, simulate};
use paceline_live::scenario::load;
use paceline_scenario::Scenario;
use paceline_sim::RunOptions;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::path::{Path, PathBuf};

fn example(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    load(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("paceline-{}-{name}.pcapng", std::process::id()))
}

fn pcap<'a>(path: &'a Path, hosts: &'a [String]) -> Written<'a> {
    Written { pcap: Some(CaptureFile { path, hosts }), qlog: None }
}

/// A packet of a file: interface, time in ns, length on the wire, bytes kept, flags.
struct Kept {
    interface: usize,
    nanos: u128,
    len: u32,
    bytes: Vec<u8>,
    out: bool,
}

fn read(path: &Path) -> (Vec<String>, Vec<Kept>) {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets.push(Kept {
                interface: packet.interface_id as usize,
                nanos: packet.timestamp.as_nanos(),
                len: packet.original_len - 16,
                // after what Linux shows of a link without headers
                bytes: packet.data[16..].to_vec(),
                out: packet.options.contains(&EnhancedPacketOption::Flags(2)),
            });
        }
    }
    let name = |interface: &pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock<'_>| {
        interface.options.iter().find_map(|option| match option {
            pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption::IfName(name) => {
                Some(name.to_string())
            }
            _ => None,
        })
    };
    (reader.interfaces().iter().map(|interface| name(interface).expect("a name")).collect(), packets)
}

/// UDP, with port 5010 at either end.
fn is_ours(bytes: &[u8]) -> bool {
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    bytes[9] == 17 && (port(20) == 5010 || port(22) == 5010)
}

#[test]
fn a_run_gives_the_same_with_a_capture_and_every_packet_is_in_it() {
    for name in ["flow-web.toml", "tfrc.toml", "impairments.toml", "loss-bursts.toml", "rap.toml"] {
        let scenario = example(name);
        let to = file(name);
        let options = RunOptions::default();
        let output = simulate(&scenario, 1, &options, &pcap(&to, &[])).unwrap();
        let plain = paceline_sim::simulate(&scenario, 1, &options).unwrap();
        let json = |summary: &paceline_sim::Summary| serde_json::to_string(summary).unwrap();
        assert_eq!(json(&output.summary), json(&plain.summary), "{name}");
        let (hosts, packets) = read(&to);
        std::fs::remove_file(&to).unwrap();
        assert!(hosts.len() >= 2 && packets.len() > 1000, "{name}: {hosts:?}, {}", packets.len());
        assert!(packets.is_sorted_by_key(|packet| packet.nanos), "{name}: out of order");
        assert!(
            packets.iter().all(|p| p.bytes.len() <= 128 && p.bytes.len() as u32 <= p.len && p.interface < hosts.len())
        );
        let ours = packets.iter().filter(|packet| is_ours(&packet.bytes));
        let read = ours.map(|p| paceline_packet::wire::tfrc::decode(&p.bytes[28..]));
        let read = read.map(|message| assert!(message.is_ok(), "{name}: {message:?}")).count();
        assert_eq!(read > 500, ["tfrc.toml", "rap.toml"].contains(&name), "{name}: {read} of the project's messages");
        let totals = &plain.summary.engine;
        let out = packets.iter().filter(|packet| packet.out).count() as u64;
        // a host hands over a little before the packet leaves: at the end a few are still in it
        let inside = totals.packets_sent - out;
        assert!(inside <= 2 * hosts.len() as u64, "{name}: {inside} of {} have not left", totals.packets_sent);
        let damaged = totals.drops.get("corrupt").copied().unwrap_or(0);
        assert_eq!(packets.len() as u64 - out, totals.packets_delivered + damaged, "{name}: what reached hosts");
    }
}

/// The sum of 16-bit words in ones' complement (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let total: u32 = words.sum();
    let folded = (total & 0xffff) + (total >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// What is left out of a packet are zeros, which no checksum counts but in the length.
#[test]
fn checksums_are_those_of_the_whole_packet_and_wrong_in_damaged_ones() {
    let to = file("checksums");
    for (name, damages) in [("impairments.toml", true), ("tfrc.toml", false)] {
        let output = simulate(&example(name), 1, &RunOptions::default(), &pcap(&to, &[])).unwrap();
        let (_, packets) = read(&to);
        let mut wrong = 0;
        for packet in &packets {
            assert_eq!(sum(&packet.bytes[..20]), 0xffff, "{name}: IPv4's");
            let len = u16::from_be_bytes([packet.bytes[2], packet.bytes[3]]);
            assert_eq!(u32::from(len), packet.len);
            let mut covered = packet.bytes[12..].to_vec();
            covered.extend([0, packet.bytes[9]]);
            covered.extend((len - 20).to_be_bytes());
            wrong += u64::from(sum(&covered) != 0xffff);
        }
        assert_eq!(wrong, output.summary.engine.drops.get("corrupt").copied().unwrap_or(0), "{name}");
        assert_eq!(wrong > 0, damages, "{name}");
    }
    std::fs::remove_file(&to).unwrap();
}

#[test]
fn one_hosts_capture_is_that_part_of_all() {
    let scenario = example("tfrc.toml");
    let (all, one) = (file("all"), file("one"));
    let options = RunOptions::default();
    simulate(&scenario, 1, &options, &pcap(&all, &[])).unwrap();
    let (hosts, packets) = read(&all);
    let wanted = [hosts[1].clone()];
    simulate(&scenario, 1, &options, &pcap(&one, &wanted)).unwrap();
    let (only, part) = read(&one);
    assert_eq!(only, wanted);
    let expected: Vec<_> = packets.iter().filter(|p| p.interface == 1).map(|p| (p.nanos, p.len, &p.bytes)).collect();
    assert_eq!(part.iter().map(|p| (p.nanos, p.len, &p.bytes)).collect::<Vec<_>>(), expected);
    [all, one].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn what_cannot_be_captured_is_named() {
    let scenario = example("tfrc.toml");
    let options = RunOptions::default();
    let hosts = ["nobody".to_owned()];
    let to = file("nobody");
    let refused = simulate(&scenario, 1, &options, &pcap(&to, &hosts)).unwrap_err();
    assert!(matches!(refused, CaptureError::NoHost(..)) && refused.to_string().contains("`nobody`"), "{refused}");
    assert!(!to.exists());
    let nowhere = Path::new("no such folder/x.pcapng");
    let refused = simulate(&scenario, 1, &options, &pcap(nowhere, &[])).unwrap_err();
    assert!(matches!(refused, CaptureError::File(..)), "{refused}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run() {
    let full = Path::new("/dev/full");
    let scenario = example("tfrc.toml");
    let refused = simulate(&scenario, 1, &RunOptions::default(), &pcap(full, &[])).unwrap_err();
    let CaptureError::File(_, error) = &refused else { panic!("{refused}") };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

/// A watch that is told to stop: what was written before can be read.
#[test]
fn a_cancelled_run_leaves_a_file_that_can_be_read() {
    let scenario = example("tfrc.toml");
    let to = file("cancelled");
    let watch = paceline_sim::Watch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.progress() < 0.05 {
                std::thread::yield_now();
            }
            watch.cancel();
        });
        let options = RunOptions { watch: Some(&watch), ..RunOptions::default() };
        let ended = simulate(&scenario, 1, &options, &pcap(&to, &[]));
        // on a machine that is slow to tell, the run may be over
        assert!(matches!(ended, Ok(_) | Err(CaptureError::Run(paceline_sim::RunError::Cancelled))));
    });
    let (_, packets) = read(&to);
    assert!(!packets.is_empty());
    std::fs::remove_file(&to).unwrap();
}

/// What the headers of a scenario's packets say, in order of time.
fn headers(name: &str, text: &str) -> Vec<(bool, etherparse::LaxPacketHeaders<'static>)> {
    let (scenario, target) = (file(name).with_extension("toml"), file(name));
    std::fs::write(&scenario, text).unwrap();
    let loaded = load(&scenario).unwrap_or_else(|error| panic!("{error}"));
    simulate(&loaded, 1, &RunOptions::default(), &pcap(&target, &[])).unwrap();
    let (_, packets) = read(&target);
    std::fs::remove_file(&scenario).unwrap();
    std::fs::remove_file(&target).unwrap();
    let parsed = |kept: Kept| {
        let bytes: &'static [u8] = kept.bytes.leak();
        (kept.out, etherparse::LaxPacketHeaders::from_ip(bytes).unwrap())
    };
    packets.into_iter().map(parsed).collect()
}

/// RFC 3550 section 11: RTP has an even port, and its RTCP the next one, at both ends.
#[test]
fn rtp_has_even_ports_and_rtcp_the_next() {
    let text = "duration = \"20 s\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n[flow.a]\ncc = \"lda-plus\"\ncount = 3\n";
    let mut ports = std::collections::BTreeSet::new();
    for (_, packet) in headers("ports", text) {
        let Some(etherparse::TransportHeader::Udp(udp)) = packet.transport else { panic!("UDP") };
        let (near, far) = (udp.source_port.max(udp.destination_port), udp.source_port.min(udp.destination_port));
        assert_eq!(near % 2, far % 2);
        ports.insert((near, far));
    }
    let (rtp, rtcp): (Vec<(u16, u16)>, Vec<_>) = ports.into_iter().partition(|(near, _)| near % 2 == 0);
    assert!(rtp.len() == 3 && rtp.iter().all(|(_, far)| *far == 5004));
    assert_eq!(rtcp, rtp.iter().map(|(near, far)| (near + 1, far + 1)).collect::<Vec<_>>());
}

/// RFC 3168 sections 5 and 6.1.1: a SYN asks with both flags and its acknowledgement agrees with one; new data are ECT(0), what
/// only acknowledges is not. RFC 7323 section 2: the window of a SYN is not scaled, those after it are.
#[test]
fn tcps_handshake_agrees_on_ecn_and_on_the_scale_of_windows() {
    let text = "duration = \"5 s\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n[flow.a]\ncc = \"newreno\"\necn = true\n\
                handshake = true\nsegment = \"1000 B\"\nreceive_window = 1000\n";
    let mut seen = [0; 4];
    let (mut isn, mut next, mut end) = (None, None, 0);
    for (out, packet) in headers("handshake", text) {
        let (Some(etherparse::NetHeaders::Ipv4(ip, _)), Some(etherparse::TransportHeader::Tcp(tcp))) =
            (packet.net, packet.transport)
        else {
            panic!("TCP over IPv4")
        };
        let data = tcp.destination_port == 5001;
        match (tcp.syn, data) {
            (true, _) => {
                assert_eq!((tcp.ece, tcp.cwr, ip.ecn.value()), (true, data, 0));
                assert_eq!(tcp.window_size, u16::MAX, "10^6 bytes do not fit");
                isn = isn.or(data.then_some(tcp.sequence_number));
            }
            (false, true) if out => {
                let offset = tcp.sequence_number.wrapping_sub(isn.expect("a SYN first"));
                // what is sent again is not ECN-capable (RFC 3168 section 6.1.5)
                assert_eq!(ip.ecn.value(), if offset > end { 2 } else { 0 });
                end = end.max(offset);
                // a SYN has a number of its own (RFC 9293 section 3.4)
                next = next.or(Some(tcp.sequence_number));
            }
            (false, true) => {}
            (false, false) => {
                assert_eq!(ip.ecn.value(), 0);
                assert!((999_000..=1_016_000).contains(&(u64::from(tcp.window_size) << 4)), "{}", tcp.window_size);
            }
        }
        seen[usize::from(tcp.syn) * 2 + usize::from(data)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    assert_eq!(next, isn.map(|isn: u32| isn.wrapping_add(1)));
}
