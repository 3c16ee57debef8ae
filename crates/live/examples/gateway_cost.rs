//! What the gateway's data path costs a packet: each kind of packet a million times through the programs in the kernel
//! (`BPF_PROG_TEST_RUN`), as root. Prints nanoseconds a packet, the least of ten rounds, and packets a second on a core.

use paceline_live::gateway::bpf::attach::DataPath;
use paceline_live::gateway::table::Control;

const ROUNDS: u32 = 10;
const PACKETS: u32 = 1_000_000;
const SINGLES: u32 = 10_000;

/// An Ethernet frame of TCP over IPv4, with `options` and `payload` bytes.
fn frame(down: bool, flags: u8, window: u16, options: &[u8], payload: usize) -> Vec<u8> {
    let mut ends = [[10, 0, 0, 2], [192, 0, 2, 1]];
    let mut ports = [40_000_u16, 443];
    if down {
        ends.reverse();
        ports.reverse();
    }
    let len = (40 + options.len() + payload) as u16;
    let mut frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0][..], &len.to_be_bytes()].concat();
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(ends.concat());
    frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    frame.extend(5001_u32.to_be_bytes());
    frame.extend(5001_u32.to_be_bytes());
    frame.extend([((20 + options.len()) / 4 * 16) as u8, flags]);
    frame.extend(window.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(options);
    frame.resize(frame.len() + payload, 0);
    frame
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let path = DataPath::load(14)?;
    let scale = [2, 4, 5, 0xb4, 1, 3, 3, 7];
    path.ingress.test_run(&frame(false, SYN, 64_000, &scale, 0), 1)?;
    path.egress.test_run(&frame(true, SYN | ACK, 64_000, &scale, 0), 1)?;
    path.set_control(&Control { deadline: u64::MAX, window: 60_000, interval: 1, ..Control::default() })?;
    let mut udp = frame(true, ACK, 0, &[], 100);
    udp[23] = 17;
    let ack = frame(false, ACK, 1000, &[], 0);
    for (what, program, packet) in [
        ("data towards a station", &path.egress, frame(true, ACK, 500, &[], 1400)),
        ("ACK, its window left as it is", &path.ingress, frame(false, ACK, 100, &[], 0)),
        ("SYN, read with its options", &path.ingress, frame(false, SYN, 64_000, &scale, 0)),
        ("UDP, counted", &path.egress, udp),
    ] {
        let mut min = u32::MAX;
        for _ in 0..ROUNDS {
            min = min.min(program.test_run(&packet, PACKETS)?.nanoseconds);
        }
        println!("{what}: {min} ns, {:.1} million packets a second", 1e3 / f64::from(min.max(1)));
    }
    path.ingress.test_run(&frame(false, SYN, 64_000, &scale, 0), 1)?;
    path.egress.test_run(&frame(true, SYN | ACK, 64_000, &scale, 0), 1)?;
    // One packet at a time, with what it takes to begin; the difference is what lowering costs.
    let alone = |packet: &[u8]| -> std::io::Result<u32> {
        let runs = (0..SINGLES).map(|_| path.ingress.test_run(packet, 1));
        runs.map(|run| run.map(|run| run.nanoseconds)).try_fold(u32::MAX, |min, run| Ok(min.min(run?)))
    };
    let (left, lowered) = (alone(&frame(false, ACK, 100, &[], 0))?, alone(&ack)?);
    println!("ACK, one at a time: {left} ns, and {lowered} ns if its window is lowered");
    Ok(())
}
