//! The gateway's programs in the kernel and their twin in Rust, packet by packet: against each other, and against what must hold.
//! What must hold is held of the twin alone by itself, and of the programs beside it by the tests that are ignored.

mod attack;
mod conversation;
mod frame;
use crate::needs;

use frame::{ACK, Frame, SYN, ethernet, is_right, window_of};
use paceline_live::clock::Clock;
use paceline_live::gateway::bpf::attach::DataPath;
use paceline_live::gateway::bpf::system::Program;
use paceline_live::gateway::table::{Control, FlowState, Key};
use paceline_live::gateway::window_clamp::WindowClamp;
use proptest::prelude::*;
use std::cell::Cell;

fn ready() -> bool {
    static FOUND: std::sync::LazyLock<(bool, bool)> =
        std::sync::LazyLock::new(|| (needs::have("root"), DataPath::load(14).is_ok()));
    FOUND.0 && needs::probed("BPF", FOUND.1)
}

thread_local! {
    /// Whether the pairs of this test have the programs in the kernel.
    static WITH_PROGRAMS: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test with the programs in the kernel beside the twin, where they can be.
fn with_programs(test: fn()) {
    if ready() {
        WITH_PROGRAMS.set(true);
        test();
    }
}

macro_rules! held {
    ($($($path:ident)::+),* $(,)?) => {
        mod twin {
            $(held!(@twin $($path)::+);)*
        }
        mod programs {
            $(held!(@programs $($path)::+);)*
        }
    };
    (@twin $module:ident::$name:ident) => { #[test] fn $name() { super::$module::$name(); } };
    (@twin $name:ident) => { #[test] fn $name() { super::$name(); } };
    (@programs $module:ident::$name:ident) => {
        #[test] #[ignore = "real time"] fn $name() { super::with_programs(super::$module::$name); }
    };
    (@programs $name:ident) => {
        #[test] #[ignore = "real time"] fn $name() { super::with_programs(super::$name); }
    };
}

held!(
    a_window_is_lowered_and_its_checksum_right,
    never_below_two_segments,
    what_began_before_is_left_alone_and_a_passed_deadline_ends_it,
    the_scale_is_what_both_ends_have_agreed_on,
    a_syn_that_is_sent_again_with_another_offer_leaves_the_scale_unknown,
    another_connection_between_the_same_ends_has_a_scale_of_its_own,
    as_much_is_read_as_is_said,
    what_is_sent_is_all_that_takes_a_number,
    both_ends_may_open_at_once,
    a_reset_of_an_earlier_connection_does_not_end_one_that_begins,
    attack::a_window_that_is_signed_stays,
    attack::who_sees_one_direction_alone_vouches_for_nothing,
    conversation::windows_keep_what_is_promised,
);

/// What does not depend on the clock.
fn timeless(state: &FlowState) -> FlowState {
    FlowState {
        seen: 0,
        handshake: u64::from(state.handshake != 0),
        probe: u64::from(state.probe != 0),
        wan_rtt: u32::from(state.wan_rtt != 0),
        lan_rtt: u32::from(state.lan_rtt != 0),
        lan_rtt_min: u32::from(state.lan_rtt_min != 0),
        longest: state.longest.map(|longest| u32::from(longest != 0)),
        ..*state
    }
}

/// The programs, if they are there, and their twin, fed with the same frames.
struct Pair {
    kernel: Option<DataPath>,
    twin: WindowClamp,
    now: u64,
    /// Whether the kernel runs programs over packets whose sum a device has computed.
    sums: bool,
}

impl Pair {
    fn new() -> Pair {
        let kernel = WITH_PROGRAMS.get().then(|| DataPath::load(14).unwrap());
        // No IP: nothing is counted but that it passed, which the twin does too.
        let (other, mut twin) = ([0; 40], WindowClamp::new());
        let sums = kernel.as_ref().is_some_and(|kernel| kernel.egress.test_run_summed(&other).is_ok());
        if sums {
            twin.forward(0, &other);
        }
        Pair { kernel, twin, now: 1_000_000, sums }
    }

    fn control(&mut self, control: Control) {
        if let Some(kernel) = &self.kernel {
            kernel.set_control(&control).unwrap();
        }
        self.twin.control = control;
    }

    /// The programs, of a test that is of them.
    fn programs(&self) -> &DataPath {
        self.kernel.as_ref().expect("a test with the programs")
    }

    fn clamp(&mut self, key: Key, window: u32) {
        if let Some(kernel) = &self.kernel {
            kernel.clamps.set(&key, &window).unwrap();
        }
        self.twin.clamp(key, Some(window));
    }

    /// The packet as both left it.
    fn pass(&mut self, down: bool, packet: &[u8]) -> Vec<u8> {
        let mut twin = packet.to_vec();
        self.now += 1_000_000;
        if down {
            self.twin.forward(self.now, &twin);
        } else {
            self.twin.back(self.now, &mut twin);
        }
        let Some(kernel) = &self.kernel else { return twin };
        let program: &Program = if down { &kernel.egress } else { &kernel.ingress };
        // With a sum by a device the kernel checks that it still is the packet's afterwards.
        let packet_in = ethernet(packet);
        let run = if self.sums { program.test_run_summed(&packet_in) } else { program.test_run(&packet_in, 1) };
        let run = run.unwrap();
        assert_eq!(run.verdict, -1);
        assert_eq!(run.packet[14..], twin, "of {packet:02x?}");
        assert_eq!(kernel.counts().unwrap(), self.twin.counts(), "of {packet:02x?}");
        twin
    }

    fn agree(&self) {
        let Some(kernel) = &self.kernel else { return };
        let mut kernel = kernel.connections().unwrap();
        kernel.sort_by_key(|(key, _)| *key);
        let kernel: Vec<_> = kernel.iter().map(|(key, state)| (*key, timeless(state))).collect();
        let mut twin: Vec<_> = self.twin.flows().map(|(key, state)| (*key, timeless(state))).collect();
        twin.sort_by_key(|(key, _)| *key);
        assert_eq!(kernel, twin);
    }
}

fn on(window: u32) -> Control {
    Control { deadline: u64::MAX, window, ..Control::default() }
}

/// A handshake, with the station's SYN first or the remote one.
fn handshake(pair: &mut Pair, six: bool, remote_opens: bool) {
    let scale = |shift| vec![2, 4, 5, 0xb4, 1, 3, 3, shift];
    let lan = Frame { six, window: 64_000, options: scale(7), ..Frame::of(false, SYN, 1000, 0) };
    let remote = Frame { six, window: 64_000, options: scale(9), ..Frame::of(true, SYN, 5000, 0) };
    for down in [remote_opens, !remote_opens] {
        let frame = if down { remote.clone() } else { lan.clone() };
        let first = down == remote_opens;
        let packet = Frame { flags: if first { SYN } else { SYN | ACK }, ..frame }.ip();
        assert_eq!(pair.pass(down, &packet), packet, "a SYN is left as it is");
    }
}

fn a_window_is_lowered_and_its_checksum_right() {
    for (six, remote_opens) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut pair = Pair::new();
        pair.control(on(30_000));
        handshake(&mut pair, six, remote_opens);
        let ack = Frame { six, window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
        let after = pair.pass(false, &ack.ip());
        // 30,000 bytes in units of 128, rounded up.
        assert_eq!(window_of(&after), 235);
        assert!(is_right(&ack.ip()) && is_right(&after));
        // Never raised.
        let small = Frame { window: 200, ..ack.clone() };
        assert_eq!(pair.pass(false, &small.ip()), small.ip());
        // Never below what the sender has sent: 40,000 bytes are on their way.
        for i in 0..40 {
            let data = Frame { six, payload: 1000, ..Frame::of(true, ACK, 5001 + 1000 * i, 1001) };
            pair.pass(true, &data.ip());
        }
        assert_eq!(window_of(&pair.pass(false, &ack.ip())), 313);
        let later = Frame { ack: 5001 + 30_000, ..ack.clone() };
        assert_eq!(window_of(&pair.pass(false, &later.ip())), 235);
        // Zero windows and resets stay.
        for frame in [Frame { window: 0, ..ack.clone() }, Frame { flags: 4 | ACK, ..ack.clone() }] {
            assert_eq!(pair.pass(false, &frame.ip()), frame.ip());
        }
        pair.agree();
    }
}

fn never_below_two_segments() {
    let mut pair = Pair::new();
    pair.control(on(1));
    handshake(&mut pair, false, false);
    let ack = Frame { window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
    // The MSS of the SYN, 1460.
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), (2_u16 * 1460).div_ceil(128));
    let data = Frame { payload: 3000, ..Frame::of(true, ACK, 5001, 1001) };
    pair.pass(true, &data.ip());
    let ack = Frame { ack: 8001, ..ack };
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), 6000_u16.div_ceil(128));
}

fn what_began_before_is_left_alone_and_a_passed_deadline_ends_it() {
    let mut pair = Pair::new();
    pair.control(on(3000));
    let ack = Frame { window: 1000, ..Frame::of(false, ACK, 1001, 5001) };
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    handshake(&mut pair, false, false);
    assert_ne!(pair.pass(false, &ack.ip()), ack.ip());
    pair.control(Control { mode: Control::DRY, ..on(3000) });
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    // A nanosecond after the machine's start.
    pair.control(Control { deadline: 1, ..on(3000) });
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    pair.control(on(0));
    assert_eq!(pair.pass(false, &ack.ip()), ack.ip());
    let key = *pair.twin.flows().next().unwrap().0;
    pair.clamp(key, 5000);
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), 40);
}

/// A connection that a SYN with `lan` and a SYN-ACK with `remote` as options begin.
fn begun(lan: &[u8], remote: &[u8]) -> Pair {
    let mut pair = Pair::new();
    pair.control(on(30_000));
    pair.pass(false, &Frame { options: lan.to_vec(), ..Frame::of(false, SYN, 1000, 0) }.ip());
    pair.pass(true, &Frame { options: remote.to_vec(), ..Frame::of(true, SYN | ACK, 5000, 1001) }.ip());
    pair
}

/// The window that the gateway leaves of an ACK's 10,000 units.
fn left_of_10_000(pair: &mut Pair) -> u16 {
    let ack = Frame { window: 10_000, ..Frame::of(false, ACK, 1001, 5001) };
    let left = window_of(&pair.pass(false, &ack.ip()));
    pair.agree();
    left
}

const SCALE_7: [u8; 4] = [1, 3, 3, 7];
/// 30,000 bytes in units of 128.
const LOWERED_7: u16 = 235;

fn the_scale_is_what_both_ends_have_agreed_on() {
    let of = |lan: &[u8], remote: &[u8]| left_of_10_000(&mut begun(lan, remote));
    assert_eq!(of(&SCALE_7, &SCALE_7), LOWERED_7);
    // One end alone: windows are not scaled, and 10,000 bytes are fewer than 30,000.
    assert_eq!(of(&SCALE_7, &[]), 10_000);
    assert_eq!(of(&[], &SCALE_7), 10_000);
    // More than 14 is 14 (RFC 7323, section 2.3): two units of 16 kB.
    assert_eq!(of(&[3, 3, 15, 0], &SCALE_7), 2);
    // Options that cannot be read: of no length, past the header's end.
    assert_eq!(of(&[3, 3, 7, 8, 0, 1, 1, 1], &SCALE_7), 10_000);
    assert_eq!(of(&[3, 3, 7, 1, 8, 10, 0, 0], &SCALE_7), 10_000);
    assert_eq!(of(&SCALE_7, &[3, 3, 7, 8, 1, 1, 1, 1]), 10_000);
}

fn a_syn_that_is_sent_again_with_another_offer_leaves_the_scale_unknown() {
    let again = |down: bool, options: &[u8]| {
        let mut pair = begun(&SCALE_7, &SCALE_7);
        let (flags, seq) = if down { (SYN | ACK, 5000) } else { (SYN, 1000) };
        pair.pass(down, &Frame { options: options.to_vec(), ..Frame::of(down, flags, seq, 0) }.ip());
        left_of_10_000(&mut pair)
    };
    assert_eq!(again(false, &SCALE_7), LOWERED_7);
    assert_eq!(again(true, &[1, 3, 3, 2]), LOWERED_7, "the remote end's scale is not that of these windows");
    assert_eq!(again(false, &[1, 3, 3, 2]), 10_000);
    assert_eq!(again(false, &[]), 10_000);
    assert_eq!(again(true, &[]), 10_000);
    let mut pair = begun(&[], &SCALE_7);
    pair.pass(false, &Frame { options: SCALE_7.to_vec(), ..Frame::of(false, SYN, 1000, 0) }.ip());
    assert_eq!(left_of_10_000(&mut pair), 10_000);
}

fn another_connection_between_the_same_ends_has_a_scale_of_its_own() {
    let mut pair = begun(&SCALE_7, &SCALE_7);
    assert_eq!(left_of_10_000(&mut pair), LOWERED_7);
    pair.pass(false, &Frame { options: vec![1, 3, 3, 2], ..Frame::of(false, SYN, 90_000, 0) }.ip());
    assert_eq!(left_of_10_000(&mut pair), 10_000, "an old ACK before the answer");
    pair.pass(true, &Frame { options: SCALE_7.to_vec(), ..Frame::of(true, SYN | ACK, 5000, 90_001) }.ip());
    assert_eq!(left_of_10_000(&mut pair), 7500);
    // SYN cookies make another number each time.
    let mut pair = begun(&SCALE_7, &SCALE_7);
    pair.pass(true, &Frame { options: SCALE_7.to_vec(), ..Frame::of(true, SYN | ACK, 4900, 1001) }.ip());
    let ack = Frame { window: 10_000, ..Frame::of(false, ACK, 1001, 4901) };
    assert_eq!(window_of(&pair.pass(false, &ack.ip())), LOWERED_7);
    // Once one is answered, another teaches nothing: here it would make 10,000 bytes a million.
    let mut pair = begun(&SCALE_7, &[]);
    assert_eq!(left_of_10_000(&mut pair), 10_000);
    pair.pass(true, &Frame { options: SCALE_7.to_vec(), ..Frame::of(true, SYN | ACK, 77, 1001) }.ip());
    assert_eq!(left_of_10_000(&mut pair), 10_000);
}

fn as_much_is_read_as_is_said() {
    // 16 options, of which the last is the scale; the 17th is not read, and so nothing is known.
    let after =
        |selective: usize, nothings: usize| [[4, 2].repeat(selective), vec![1; nothings], vec![3, 3, 7]].concat();
    assert_eq!(left_of_10_000(&mut begun(&after(2, 13), &SCALE_7)), LOWERED_7);
    assert_eq!(left_of_10_000(&mut begun(&after(1, 15), &SCALE_7)), 10_000);
    // Four extension headers.
    let mut pair = Pair::new();
    pair.control(on(30_000));
    handshake(&mut pair, true, false);
    for (extensions, left) in [(4, LOWERED_7), (5, 10_000)] {
        let ack = Frame { six: true, window: 10_000, extensions, ..Frame::of(false, ACK, 1001, 5001) }.ip();
        let at = 40 + 8 * extensions + 14;
        assert_eq!(u16::from_be_bytes(pair.pass(false, &ack)[at..at + 2].try_into().unwrap()), left);
    }
    // Fragments, the first too; a header that is shorter than one is, or longer than the segment.
    let mut pair = begun(&SCALE_7, &SCALE_7);
    let ack = Frame { window: 10_000, ..Frame::of(false, ACK, 1001, 5001) }.ip();
    for (at, byte) in [(6, 0x20), (7, 1), (32, 0x40), (32, 0x60)] {
        let mut odd = ack.clone();
        odd[at] = byte;
        assert_eq!(pair.pass(false, &odd), odd);
    }
    // Not to be fragmented; of no length, as several segments together that are longer than the field can say.
    for change in [(6, 0x40), (3, 0)] {
        let mut whole = ack.clone();
        whole[change.0] = change.1;
        assert_eq!(window_of(&pair.pass(false, &whole)), LOWERED_7);
    }
    pair.agree();
}

fn what_is_sent_is_all_that_takes_a_number() {
    let units = |pair: &mut Pair| {
        window_of(&pair.pass(false, &Frame { window: 500, ..Frame::of(false, ACK, 1001, 5001) }.ip()))
    };
    // Data with the SYN-ACK.
    let mut pair = Pair::new();
    pair.control(on(1));
    pair.pass(false, &Frame { options: SCALE_7.to_vec(), ..Frame::of(false, SYN, 1000, 0) }.ip());
    let answer = Frame { payload: 2000, options: SCALE_7.to_vec(), ..Frame::of(true, SYN | ACK, 5000, 1001) };
    pair.pass(true, &answer.ip());
    assert_eq!(units(&mut pair), 2000_u16.div_ceil(128));
    // The FIN after 5120 bytes, which are 40 units.
    let mut pair = begun(&SCALE_7, &SCALE_7);
    pair.control(on(1));
    for i in 0..10 {
        pair.pass(true, &Frame { payload: 512, ..Frame::of(true, ACK, 5001 + 512 * i, 1001) }.ip());
    }
    assert_eq!(units(&mut pair), 40);
    pair.pass(true, &Frame::of(true, ACK | 1, 5001 + 5120, 1001).ip());
    assert_eq!(units(&mut pair), 41);
    pair.agree();
}

#[test]
#[ignore = "real time"]
#[expect(clippy::disallowed_methods, reason = "the programs read the clock")]
fn times_are_those_between_packets() {
    if !ready() {
        return;
    }
    WITH_PROGRAMS.set(true);
    let mut pair = Pair::new();
    pair.control(Control { interval: 6, ..on(30_000) });
    let state = |pair: &Pair| pair.programs().connections().unwrap()[0].1;
    let wait = |ms| std::thread::sleep(std::time::Duration::from_millis(ms));
    // Since `began`, when a wait of so many milliseconds was about to begin.
    let fits = |us: u32, ms: u64, began: Clock| {
        let max = began.now().0 / 1000;
        assert!((1000 * ms..=max).contains(&u64::from(us)), "{us} us, slept {ms} ms of {max} us");
    };
    let began = Clock::start();
    pair.pass(false, &Frame::of(false, SYN, 1000, 0).ip());
    wait(30);
    pair.pass(true, &Frame::of(true, SYN | ACK, 5000, 1001).ip());
    fits(state(&pair).wan_rtt, 30, began);
    let (mut end, mut samples) = (5001, Vec::new());
    for ms in [60, 5, 30] {
        let data = Frame { payload: 1000, ..Frame::of(true, ACK, end, 1001) };
        let began = Clock::start();
        pair.pass(true, &data.ip());
        wait(ms);
        end += 1000;
        // Data that follow do not begin a measurement while one is under way; an ACK of less does not end it.
        pair.pass(true, &Frame { seq: end, ..data }.ip());
        pair.pass(false, &Frame::of(false, ACK, 1001, end - 1).ip());
        pair.pass(false, &Frame::of(false, ACK, 1001, end).ip());
        end += 1000;
        pair.pass(false, &Frame::of(false, ACK, 1001, end).ip());
        samples.push(state(&pair).lan_rtt);
        fits(state(&pair).lan_rtt, ms, began);
    }
    let (known, max) = (state(&pair), *samples.iter().max().unwrap());
    assert_eq!(known.lan_rtt_min, *samples.iter().min().unwrap());
    assert_eq!((known.longest, known.interval), ([max, 0], [6, 0]));
    // What is sent again tells nothing; the next interval begins anew.
    pair.control(Control { interval: 7, ..on(30_000) });
    for again in [false, true] {
        let data = Frame { payload: 1000, ..Frame::of(true, ACK, end, 1001) };
        pair.pass(true, &data.ip());
        wait(5);
        if again {
            pair.pass(true, &data.ip());
        }
        end += 1000;
        pair.pass(false, &Frame::of(false, ACK, 1001, end).ip());
        samples.push(state(&pair).lan_rtt);
    }
    let known = state(&pair);
    assert_eq!((known.longest, known.interval), ([max, samples[3]], [6, 7]));
    assert_eq!(samples[3], samples[4]);
    pair.agree();
}

fn both_ends_may_open_at_once() {
    let mut pair = Pair::new();
    pair.control(on(30_000));
    for (down, flags, seq, ack) in
        [(false, SYN, 1000, 0), (true, SYN, 5000, 0), (false, SYN | ACK, 1000, 5001), (true, SYN | ACK, 5000, 1001)]
    {
        pair.pass(down, &Frame { options: SCALE_7.to_vec(), ..Frame::of(down, flags, seq, ack) }.ip());
    }
    assert_eq!(left_of_10_000(&mut pair), LOWERED_7);
}

fn a_reset_of_an_earlier_connection_does_not_end_one_that_begins() {
    // The server's answer to a SYN is for the connection before; the station resets that, and asks again.
    let mut pair = Pair::new();
    let syn = Frame { options: SCALE_7.to_vec(), ..Frame::of(false, SYN, 1000, 0) }.ip();
    pair.pass(false, &syn);
    pair.pass(true, &Frame::of(true, ACK, 700, 300).ip());
    pair.pass(false, &Frame::of(false, 4, 300, 0).ip());
    assert!(pair.twin.flows().all(|(_, state)| state.is_closed()));
    pair.pass(false, &syn);
    assert!(pair.twin.flows().all(|(_, state)| !state.is_closed()));
    pair.agree();
}

fn frame() -> impl Strategy<Value = Frame> {
    let near = |base: u32| {
        prop_oneof![
            8 => (0..20_000_u32).prop_map(move |d| base.wrapping_add(d)),
            1 => any::<u32>(),
            1 => (0..3000_u32).prop_map(move |d| base.wrapping_sub(d)),
        ]
    };
    let flags = prop_oneof![
        6 => Just(ACK), 2 => Just(SYN), 2 => Just(SYN | ACK), 1 => Just(ACK | 1), 1 => Just(ACK | 4), 1 => any::<u8>()
    ];
    let window = prop_oneof![4 => any::<u16>(), 1 => Just(0), 2 => 0..400_u16];
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![0]),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        any::<[u8; 2]>().prop_map(|[a, b]| vec![2, 4, a, b]),
        Just(vec![4, 2]),
        Just([&[19, 18], &[7; 16][..]].concat()),
        Just(vec![29, 4, 1, 1]),
        Just(vec![8, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    let options = proptest::collection::vec(option, 0..8).prop_map(|options| options.concat());
    let shape = (any::<bool>(), any::<bool>(), 0..3_u8, 0..7_usize, 0..3_usize, 0..1500_usize);
    (shape, flags, near(1 << 31), near(1 << 31), window, options).prop_map(
        |((down, six, flow, extensions, padding, payload), flags, seq, ack, window, options)| Frame {
            down,
            six,
            flow,
            flags,
            seq,
            ack,
            window,
            payload: if payload % 3 == 0 { 0 } else { payload },
            options: if flags & SYN != 0 || seq % 3 == 0 { options } else { Vec::new() },
            extensions: extensions.saturating_sub(1),
            padding: padding * 3,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The programs in the kernel and the twin in Rust agree on each packet, each count and each connection's state.
    #[test]
    #[ignore = "real time"]
    fn programs_and_twin_agree(
        frames in proptest::collection::vec((frame(), any::<u32>()), 1..60),
        window in prop_oneof![Just(0_u32), 1..100_000_u32],
    ) {
        if !ready() {
            return Ok(());
        }
        WITH_PROGRAMS.set(true);
        let mut pair = Pair::new();
        pair.control(on(window));
        for (i, (frame, damage)) in frames.iter().enumerate() {
            let mut packet = frame.ip();
            match damage % 16 {
                // A bit flips, or the end is missing: the programs must bear anything.
                0 => {
                    let at = (*damage >> 4) as usize % (packet.len().min(80) * 8);
                    packet[at / 8] ^= 1 << (at % 8);
                }
                // The kernel runs programs over whole IP headers alone.
                1 => {
                    let header = if frame.six { 40 } else { 20 };
                    packet.truncate(header + (*damage >> 4) as usize % (packet.len() - header));
                }
                2 => {
                    let keys: Vec<Key> = pair.twin.flows().map(|(key, _)| *key).collect();
                    for key in keys {
                        let clamp = (*damage >> 8) % 50_000;
                        pair.clamp(key, clamp);
                    }
                }
                3 => pair.control(Control { interval: i as u32, ..on(window) }),
                _ => {}
            }
            pair.pass(frame.down, &packet);
        }
        pair.agree();
    }
}

#[test]
#[ignore = "real time"]
fn all_connections_are_listed() {
    if !ready() {
        return;
    }
    WITH_PROGRAMS.set(true);
    let path = DataPath::load(14).unwrap();
    for port in 0..3000_u16 {
        let mut packet = Frame::of(false, SYN, 1000, 0).ip();
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        path.ingress.test_run(&ethernet(&packet), 1).unwrap();
    }
    let mut ports: Vec<_> = path.connections().unwrap().iter().map(|(key, _)| key.lan_port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 3000);
}
