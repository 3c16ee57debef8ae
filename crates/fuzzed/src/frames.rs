//! Arbitrary frames from a device, whole IP packets or not, over links with every feature: nothing panics, and each
//! frame is accounted for (`finish` asserts it).

use paceline_live::path::{Emulator, Folder, PathSpec, Side};
use paceline_scenario::Document;
use paceline_units::{Size, Span, Time};
use std::path::PathBuf;
use std::sync::OnceLock;

const LINKS: &str = "topology = \"parking-lot\"\n[link.hop1]\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\n\
    queue = { kind = \"droptail\", limit = \"9 kB\" }\nloss = { kind = \"uniform\", rate = \"5 %\" }\n\
    duplicate = { rate = \"10 %\" }\n[link.hop2]\nrate = \"1 Mbit/s\"\n\
    recovery = { block_time = \"2 ms\", block_error = \"30 %\", delay = \"5 ms\", retransmissions = 1 }\n\
    corrupt = { rate = \"20 %\" }\nqueue = { kind = \"red\", limit = \"8 packets\", min_threshold = 1, max_threshold = 4, ecn = true }\n\
    reorder = { rate = \"10 %\", extra = \"3 ms\" }\nbackward = { delay_variation = { max = \"9 ms\" } }\n\
    [link.hop3]\nrate = \"3 Mbit/s\"\npolicer = { rate = \"1 Mbit/s\", burst = \"6 kB\" }\n\
    queue = { kind = \"cake\", bandwidth = \"900 kbit/s\", limit = \"9 kB\", rtt = \"4 ms\", framing = \"atm\" }\n\
    backward = { queue = { kind = \"cake\", bandwidth = \"2 Mbit/s\", limit = \"7 packets\", ingress = true, isolation = \"dual-dsthost\" } }\n";

/// One link with CAKE, with `{}` for further keys, and in the other direction a policer in front of it.
const CAKE: &str = "[link.bottleneck]\nrate = \"3 Mbit/s\"\ndelay = \"2 ms\"\nqueue = { kind = \"cake\", rtt = \"4 ms\", {} }\n\
    backward = { policer = { rate = \"2 Mbit/s\", burst = \"5 kB\" } }\n";

/// Each isolation, with and without a shaper, each framing, and various overheads; with limits that few packets reach.
const SETTINGS: [&str; 8] = [
    "isolation = \"flowblind\", limit = \"9 kB\"",
    "isolation = \"srchost\", bandwidth = \"1 kbit/s\", limit = \"4 packets\"",
    "isolation = \"dsthost\", bandwidth = \"900 kbit/s\", overhead = \"256 B\", mpu = \"256 B\", framing = \"ptm\"",
    "isolation = \"hosts\", bandwidth = \"2 Mbit/s\", framing = \"atm\", limit = \"1 packets\"",
    "isolation = \"flows\", bandwidth = \"2 Mbit/s\", ingress = true, limit = \"7 packets\"",
    "isolation = \"dual-srchost\", limit = \"20 kB\", overhead = \"0 B\"",
    "isolation = \"dual-dsthost\", bandwidth = \"1000 Gbit/s\", ingress = true, limit = \"5 kB\"",
    "isolation = \"triple-isolate\", bandwidth = \"1 Mbit/s\", framing = \"ptm\", limit = \"12 kB\", mtu = \"1 B\"",
];

/// The links of [`LINKS`]; above 127, one with CAKE, by setting.
fn path(which: u8) -> &'static PathSpec {
    static PATHS: OnceLock<Vec<PathSpec>> = OnceLock::new();
    let paths = PATHS.get_or_init(|| {
        let cakes = SETTINGS.iter().map(|more| CAKE.replace("{}", more));
        let texts = core::iter::once(LINKS.to_owned()).chain(cakes);
        let read = |text: String| {
            let document = Document::parse(&text, "links").expect("the links stand above");
            PathSpec::of(document, &Folder::Files(PathBuf::new())).expect("they are a path")
        };
        texts.map(read).collect()
    });
    &paths[usize::from(which.saturating_sub(127)) % paths.len()]
}

/// The target `frames`.
pub fn frames(bytes: &[u8]) {
    let [memory, rest @ ..] = bytes else { return };
    let mut bytes = rest;
    let path = path(*memory);
    let memory = if memory % 2 == 0 { Emulator::MEMORY } else { Size::from_bytes(20_000) };
    let mut emulator = Emulator::new(path, Some(Span::from_millis(1)), memory);
    let mut now = Time::ZERO;
    while let [side, gap, len, rest @ ..] = bytes {
        let (frame, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        bytes = rest;
        now.0 += u64::from(*gap) * 20_000;
        let mut frame = frame.to_vec();
        if side & 2 != 0 {
            // A long packet, with the length that its header gives.
            frame.resize(frame.len() + 1200, 0);
        }
        emulator.arrive(if side & 1 == 0 { Side::Near } else { Side::Far }, now, &frame);
        while let Some(release) = emulator.poll(now) {
            assert!(release.due <= now && release.due >= release.entered);
            let to = release.side;
            if side & 4 != 0 {
                emulator.not_taken(to);
            }
        }
    }
    let _ = emulator.finish(now);
}
