//! SCReAM v2's law of its authors' code against traces of that code, fed open loop: frames, sendings and feedback are theirs.
//!
//! The traces are of EricssonResearch/scream @c8f84c3 under a virtual clock, with true propagation and queue. `scream/` holds the
//! beginnings of three of them: `F` a frame (tick, bytes), `T` a sending (tick, number, bytes, marker), `P` a poll (tick), `A`
//! feedback (tick, report's tick, packets as number:ATO:ECN or number:x, and then the reference's window, inflection point, bytes
//! in flight, round trip in ticks and target). The whole of them is read where `PACELINE_SCREAM_TRACES` names their folder.

use paceline_control::scream::ericsson::{AckedPacket, Faults, Law, Settings};

/// What a trace says of its sender.
#[derive(Clone, Copy)]
struct Sender {
    name: &'static str,
    part: &'static str,
    min_rate: f32,
    max_rate: f32,
    l4s: bool,
    /// Whether timestamps are those of the frames, not all the same.
    stamps: bool,
}

const SENDERS: [Sender; 4] = [
    Sender { name: "b", part: "", min_rate: 150e3, max_rate: 1.5e6, l4s: false, stamps: true },
    Sender {
        name: "cls",
        part: include_str!("scream/cls.csv"),
        min_rate: 1e6,
        max_rate: 15e6,
        l4s: false,
        stamps: true,
    },
    Sender {
        name: "l4s",
        part: include_str!("scream/l4s.csv"),
        min_rate: 1e6,
        max_rate: 15e6,
        l4s: true,
        stamps: true,
    },
    Sender {
        name: "loss",
        part: include_str!("scream/loss.csv"),
        min_rate: 150e3,
        max_rate: 4.5e6,
        l4s: false,
        stamps: false,
    },
];

fn settings(sender: &Sender) -> Settings {
    Settings {
        window: (f64::from(sender.min_rate) * 0.1 / 8.0) as i32,
        min_ref_wnd: 2400,
        min_rate: sender.min_rate,
        start_rate: sender.min_rate,
        max_rate: sender.max_rate,
        l4s: sender.l4s,
        faults: Faults { media_time: sender.stamps, ..Faults::RECORDED },
        ..Settings::default()
    }
}

fn number<T: std::str::FromStr>(field: &str) -> T {
    field.parse().unwrap_or_else(|_| panic!("no number: {field}"))
}

/// The sizes of a frame's packets.
fn packets(bytes: u32) -> impl Iterator<Item = u32> {
    let rest = Some(bytes % 1200).filter(|rest| *rest > 0);
    std::iter::repeat_n(1200, (bytes / 1200) as usize).chain(rest)
}

/// The packets that feedback tells of for the first time, and the number after the last.
fn acked_packets(report: u32, packets: &str) -> (Vec<AckedPacket>, u32) {
    let mut acked = Vec::new();
    let mut next = 0;
    for packet in packets.split(' ') {
        let words: Vec<&str> = packet.split(':').collect();
        next = number::<u32>(words[0]) + 1;
        if words[1] != "x" {
            let at = report.wrapping_sub(number::<u32>(words[1]) << 6);
            acked.push(AckedPacket { number: number(words[0]), at, marked: words[2] == "3" });
        }
    }
    (acked, next)
}

/// A sender that is fed: what it was told last.
struct Fed {
    law: Law,
    next: u32,
}

impl Fed {
    fn new(sender: &Sender) -> Fed {
        Fed { law: Law::new(settings(sender)), next: 0 }
    }

    fn frame(&mut self, now: u32, bytes: u32) -> f32 {
        let rate = self.law.encoder_rate(now);
        self.law.frame(now, packets(bytes));
        rate
    }

    fn sent(&mut self, now: u32, number: u32, size: u32, ends: bool) {
        self.law.poll(now);
        self.law.sent(now, number, size, ends);
    }

    fn feedback(&mut self, now: u32, report: u32, packets: &str) {
        let (acked, next) = acked_packets(report, packets);
        self.law.feedback(now, &acked, self.next > 0);
        self.next = next;
    }
}

/// The count of feedbacks and of windows that fell.
fn replay_part(sender: &Sender) -> [usize; 2] {
    let mut fed = Fed::new(sender);
    let (mut feedbacks, mut falls, mut before) = (0, 0, 0);
    for (line, row) in sender.part.lines().enumerate() {
        let f: Vec<&str> = row.split(',').collect();
        let now: u32 = number(f[1]);
        match f[0] {
            "F" => _ = fed.frame(now, number(f[2])),
            "T" => fed.sent(now, number(f[2]), number(f[3]), f[4] == "1"),
            "P" => fed.law.poll(now),
            _ => {
                fed.feedback(now, number(f[2]), f[3]);
                let law = &fed.law;
                let ours = [
                    law.window,
                    law.inflection,
                    law.in_flight(),
                    law.srtt as i32,
                    law.target().round_ties_even() as i32,
                ];
                let theirs = [4, 5, 6, 7, 8].map(|i| number::<i32>(f[i]));
                assert_eq!(ours, theirs, "{} row {}", sender.name, line + 1);
                feedbacks += 1;
                falls += usize::from(law.window < before);
                before = law.window;
            }
        }
    }
    [feedbacks, falls]
}

#[test]
fn beginnings_of_traces_to_the_last_byte() {
    let counts = SENDERS.map(|sender| replay_part(&sender));
    assert_eq!(counts, [[0, 0], [39, 6], [69, 13], [210, 15]]);
}

/// The last digit of a number with so many of them.
const DIGIT: [f64; 7] = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];

/// Feeds a whole trace: the count of feedbacks.
fn replay(sender: &Sender, text: &str) -> usize {
    let mut fed = Fed::new(sender);
    let mut feedbacks = 0;
    for (line, row) in text.lines().enumerate().filter(|(_, row)| !row.starts_with('#')) {
        let at = |what: &str| format!("{} row {}: {what}", sender.name, line + 1);
        let f: Vec<&str> = row.split(',').collect();
        let now: u32 = number(f[1]);
        // as many digits as the trace has
        let near = |what: &str, ours: f32, i: usize| {
            let digits = f[i].split_once('.').map_or(0, |(_, part)| part.len());
            let half = 0.5 * DIGIT[digits] + f64::from(ours.abs()) * 1e-6;
            let theirs: f64 = number(f[i]);
            assert!((f64::from(ours) - theirs).abs() <= half, "{}: {ours} not {theirs}", at(what));
        };
        match f[0] {
            "F" => {
                let rate = fed.frame(now, number(f[3]));
                if f[2] != "-1" {
                    near("encoder's rate", rate, 2);
                }
                let frames = fed.law.frames();
                ["period", "adjust", "pacing"].into_iter().enumerate().for_each(|(i, w)| near(w, frames[i], 5 + i));
                near("target", fed.law.target(), 8);
            }
            "T" => fed.sent(now, number(f[2]), number(f[3]), f[4] == "1"),
            "R" => {
                fed.law.poll(now);
                let rates = fed.law.rates();
                ["sent", "acked", "written"].into_iter().enumerate().for_each(|(i, w)| near(w, rates[i], 2 + i));
            }
            "M" => {
                fed.law.poll(now);
                assert_eq!(fed.law.mss(), number::<i32>(f[2]), "{}", at("packet size"));
            }
            _ => {
                fed.feedback(now, number(f[2]), f[3]);
                let law = &fed.law;
                let [max, before] = law.max_bytes_in_flight();
                let (srtt, short) = (law.srtt as i32, law.srtt_short as i32);
                let ours = [law.window, law.inflection, law.in_flight(), max, before, srtt, short];
                assert_eq!(ours, std::array::from_fn(|i| number::<i32>(f[4 + i])), "{}", at("window"));
                near("delay", law.delay, 11);
                near("mean delay", law.delay_mean, 12);
                near("least delay", law.queue_delay_min, 13);
                near("variation", law.variation, 14);
                near("headroom", law.headroom, 15);
                near("alpha", law.alpha, 16);
                near("loss rate", law.loss_rate, 18);
                near("time since congestion", law.post_congestion, 19);
                near("target", law.target(), 20);
                near("pace", law.pace, 21);
                assert_eq!(law.limited, f[22] == "1", "{}", at("limited"));
                feedbacks += 1;
            }
        }
    }
    feedbacks
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test asks where the recorded traces are")]
fn whole_traces_to_the_last_byte() {
    let Ok(folder) = std::env::var("PACELINE_SCREAM_TRACES") else {
        eprintln!("skipped: PACELINE_SCREAM_TRACES does not name a folder of recorded traces");
        return;
    };
    let counts = SENDERS.map(|sender| {
        let path = std::path::Path::new(&folder).join(format!("tr_{}_trace.csv", sender.name));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        replay(&sender, &text)
    });
    assert_eq!(counts, [417, 179, 132, 359]);
}
