//! Arbitrary packets through the gateway's programs in the kernel and through their counterpart in Rust: the resulting
//! packets and counters are equal. Needs root.

use paceline_live::gateway::bpf::attach::DataPath;
use paceline_live::gateway::table::{Control, Key};
use paceline_live::gateway::window_clamp::WindowClamp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// An Ethernet header's length.
const LINK: usize = 14;

struct Kernel {
    path: DataPath,
    /// Whether the kernel can run programs over packets with a device-computed checksum (Linux 6.13), which it verifies
    /// afterwards.
    sums: bool,
}

/// The kernel's programs, or why they cannot run here.
fn kernel() -> &'static Result<Kernel, String> {
    static KERNEL: OnceLock<Result<Kernel, String>> = OnceLock::new();
    KERNEL.get_or_init(|| {
        let path = DataPath::load(LINK as i32).map_err(|error| error.to_string())?;
        let sums = path.egress.test_run_summed(&[0; 64]).is_ok();
        Ok(Kernel { path, sums })
    })
}

/// Checks that [`program`] can run here.
///
/// # Errors
/// Why it cannot: it needs root, and a kernel with BPF.
pub fn program_ready() -> Result<(), &'static str> {
    kernel().as_ref().map(|_| ()).map_err(String::as_str)
}

/// A TCP packet between a station and a remote host, made from `bytes`, with addresses derived from `serial`; also
/// returns the remaining bytes.
fn packet(serial: u32, down: bool, six: bool, bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let [flags, seq, ack, window, extent, rest @ ..] = bytes else { return None };
    let (options, rest) = rest.split_at((4 * usize::from(extent >> 4)).min(40).min(rest.len()) & !3);
    let ports = if down { [443_u16, 40_000] } else { [40_000, 443] };
    let near = |step: u8| (1_u32 << 31).wrapping_add(u32::from(step).wrapping_sub(20).wrapping_mul(700)).to_be_bytes();
    let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    tcp.extend(near(*seq));
    tcp.extend(near(*ack));
    tcp.extend([((20 + options.len()) as u8 / 4) << 4, *flags]);
    tcp.extend((u16::from(*window) << (flags >> 6 << 1)).to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(options);
    tcp.resize(tcp.len() + 100 * usize::from(extent & 15), 0);
    // Each word of an address differs from those of every other input, so that what the kernel remembers of earlier
    // inputs does not matter.
    let [_, a, b, c] = serial.to_be_bytes();
    let of = |host: u8| [host, a, b, c].repeat(if six { 4 } else { 1 });
    let ends = if down { [of(192), of(10)] } else { [of(10), of(192)] }.concat();
    let mut whole = if six {
        let len = (tcp.len() as u16).to_be_bytes();
        vec![0x60, 0, 0, 0, len[0], len[1], 6, 64]
    } else {
        let len = (20 + tcp.len() as u16).to_be_bytes();
        vec![0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 6, 0, 0]
    };
    whole.extend(ends);
    whole.extend(tcp);
    Some((whole, rest))
}

/// Changes a byte, or truncates the packet; addresses stay.
fn damage(packet: &mut Vec<u8>, six: bool, at: u8, with: u8) {
    let addresses = if six { 8..40 } else { 12..20 };
    match usize::from(at) {
        at if at >= 200 => packet.truncate(addresses.end.max(at - 200 + addresses.end)),
        at if !addresses.contains(&at) && at < packet.len() => packet[at] ^= with,
        _ => {}
    }
}

fn ethernet(packet: &[u8], six: bool) -> Vec<u8> {
    let kind: [u8; 2] = if six { [0x86, 0xdd] } else { [8, 0] };
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &kind[..], packet].concat()
}

/// The target `program`; panics if [`program_ready`] fails.
pub fn program(bytes: &[u8]) {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed) % (1 << 24);
    let Kernel { path, sums } = kernel().as_ref().expect("the target is ready");
    let Some((&window, mut rest)) = bytes.split_first() else { return };
    let mut twin = WindowClamp::new();
    let control = Control { deadline: u64::MAX, window: u32::from(window) * 300, interval: 1, ..Control::default() };
    path.set_control(&control).expect("the map is there");
    twin.control = control;
    let before = path.counts().expect("the map is there");
    let (mut now, mut clamped) = (1_000_000, Vec::<Key>::new());
    while let [how, more @ ..] = rest {
        let (down, six) = (how & 1 != 0, how & 2 != 0);
        let Some((mut packet, after)) = packet(serial, down, six, more) else { break };
        rest = after;
        if how & 4 != 0
            && let [at, with, more @ ..] = rest
        {
            damage(&mut packet, six, *at, *with);
            rest = more;
        }
        let first = twin.flows().next().map(|(key, _)| *key);
        if how & 0xf8 == 8
            && let Some(key) = first
        {
            let window = u32::from(*how) * 4000;
            path.clamps.set(&key, &window).expect("there is room");
            twin.clamp(key, Some(window));
            clamped.push(key);
        }
        let frame = ethernet(&packet, six);
        let program = if down { &path.egress } else { &path.ingress };
        let run = if *sums { program.test_run_summed(&frame) } else { program.test_run(&frame, 1) };
        // The kernel runs programs only over whole IP headers, and only if the frame's EtherType matches its packet.
        let run = match run {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => continue,
            run => run.unwrap_or_else(|error| panic!("{error}: {packet:02x?}")),
        };
        assert_eq!(run.verdict, -1);
        now += 1_000_000;
        let mut kept = packet.clone();
        if down {
            twin.forward(now, &kept);
        } else {
            twin.back(now, &mut kept);
        }
        assert_eq!(run.packet[LINK..], kept, "of {packet:02x?}");
    }
    let after = path.counts().expect("the map is there");
    let counts: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(counts[..], twin.counts()[..]);
    for key in clamped {
        path.clamps.remove(&key).expect("it is there");
    }
}
