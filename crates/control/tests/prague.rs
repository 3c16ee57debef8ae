//! Prague's arithmetic against udp_prague, to the last digit of each number after each call.
//!
//! The calls are those of open loops: an acknowledgement each `interval` of one packet more, marks and losses by rule, whatever the
//! controller does. The numbers are of L4STeam/udp_prague at e8e34353 (`prague_cc.cpp` under a virtual clock, which begins with 1):
//! of each trace the rows, a sum over all of them, and the last row's alpha, rate and window.

use paceline_control::prague::law::{Counts, Law, Limits, Mode, Phase};

/// Which packets are marked, and how the count of losses changes, of `n` packets in all.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    Plain,
    /// Each so-and-so-many is marked.
    Marked(i64),
    All,
    /// Of 200 one is lost.
    Lost,
    /// Of 200 three are lost, and come after five more.
    Late,
    /// Of 1000 the first 100 are marked.
    Burst,
    /// Each 64th is marked, each 500th lost, and old packets come again.
    Stale,
    /// Round trips of 1, 30, 150 and 1.5 ms; each 50th is marked.
    Steps,
    /// Round trips vary by 2 ms; each 32nd is marked.
    Jitter,
    /// Each 8th is marked after a third, two of 777 are lost; a reset, and round trips by themselves.
    Reset,
}

/// Adds up a row.
fn sum(law: &Law, now: i64, total: &mut u64) {
    let phase = match law.phase {
        Phase::Init => 0,
        Phase::Avoidance => 1,
        Phase::Loss => 2,
        Phase::Reduced => 3,
    };
    let row = [
        law.pacing(now),
        law.packets as u64,
        law.burst as u64,
        law.size,
        law.rtt as u64,
        law.srtt as u64,
        law.vrtt as u64,
        phase,
        u64::from(law.mode == Mode::Rate),
        law.alpha as u64,
        law.rate,
        law.window,
        law.rtts_to_growth as u64,
        law.lost_window,
        law.lost_rate,
    ];
    for value in row {
        *total = (*total ^ value).wrapping_mul(0x0100_0000_01b3);
    }
}

struct Trace {
    name: &'static str,
    rtt: i64,
    interval: i64,
    n: i64,
    rule: Rule,
    limits: Limits,
}

/// Runs a trace. Gives rows, sum, alpha, rate and window.
fn replay(t: &Trace) -> (u64, u64, i64, u64, u64) {
    let mut law = Law::new(t.limits, 10, 1);
    let (mut rows, mut total) = (1, 0xcbf2_9ce4_8422_2325);
    sum(&law, 1, &mut total);
    let (mut received, mut marked, mut lost) = (0, 0, 0);
    for i in 1..=t.n {
        let quarter = 4 * i / t.n;
        let rtt = match t.rule {
            Rule::Steps if quarter < 1 => 1000,
            Rule::Steps if quarter < 2 => 30_000,
            Rule::Steps if quarter < 3 => 150_000,
            Rule::Steps => 1500,
            Rule::Jitter => t.rtt + (i * 7919) % 2000,
            _ => t.rtt,
        };
        let began = if t.rule == Rule::Steps { 200_000 } else { t.rtt };
        let now = 1 + began + i * t.interval;
        received += 1;
        marked += i64::from(match t.rule {
            Rule::Plain | Rule::Lost | Rule::Late => false,
            Rule::Marked(each) => i % each == 0,
            Rule::All => true,
            Rule::Burst => i % 1000 < 100,
            Rule::Stale => i % 64 == 0,
            Rule::Steps => i % 50 == 0,
            Rule::Jitter => i % 32 == 0,
            Rule::Reset => i > t.n / 3 && i % 8 == 0,
        });
        lost += match t.rule {
            Rule::Lost if i % 200 == 0 => 1,
            Rule::Late if i % 200 == 0 => 3,
            Rule::Late if i % 200 == 5 && lost >= 3 => -3,
            Rule::Stale if i % 500 == 0 => 1,
            Rule::Reset if i % 777 == 0 => 2,
            _ => 0,
        };
        let counts = Counts { received, marked, lost, sent: received + lost + (rtt / t.interval).max(1) };
        let stamp = now - rtt / 2;
        let mut row = |law: &Law| {
            rows += 1;
            sum(law, now, &mut total);
        };
        law.packet(stamp, rtt);
        row(&law);
        law.acknowledged(counts, now);
        row(&law);
        if t.rule == Rule::Reset && i == 2 * t.n / 3 {
            law.reset(now);
            row(&law);
        }
        if t.rule == Rule::Reset && i % 300 == 0 {
            [rtt, rtt + 500, rtt + 250].into_iter().for_each(|rtt| law.round_trip(rtt));
            row(&law);
        }
        if t.rule == Rule::Stale && i % 400 == 0 {
            assert!(!law.packet(stamp - 5000, rtt + 5000), "{} {i}", t.name);
            row(&law);
            assert!(!law.acknowledged(Counts { received: received - 3, ..counts }, now), "{} {i}", t.name);
            row(&law);
        }
    }
    (rows, total, law.alpha, law.rate, law.window)
}

/// Trace, rows, sum, and of the last row alpha, rate and window.
const OF_UDP_PRAGUE: [(&str, u64, u64, i64, u64, u64); 33] = [
    ("1gbit_mark1in64_rtt10", 24_001, 0xf7ab_bb3d_35c2_4461, 31_156, 86_864_658, 905_129_736_360),
    ("1gbit_nomark_rtt10", 24_001, 0x1fdb_35c4_1dfb_a017, 0, 125_300_000, 1_253_000_000_000),
    ("jitter_rtt25", 12_001, 0x3d42_454c_64a0_2e3e, 33_155, 2_442_864, 62_268_603_360),
    ("loss1in200_rtt100", 12_001, 0xb61c_6ffa_cf69_512e, 0, 113_912, 11_391_200_000),
    ("loss1in200_rtt25", 12_001, 0x1ff9_fba1_347e_05fc, 0, 603_695, 15_092_375_000),
    ("loss1in200_rtt5", 12_001, 0x163c_76ec_6213_4086, 0, 605_422, 3_027_110_000),
    ("loss3_undo_rtt100", 12_001, 0x6907_5ab0_4961_f303, 0, 758_598, 75_859_800_000),
    ("loss3_undo_rtt25", 12_001, 0xe1dd_27dc_3440_1987, 0, 6_888_758, 172_218_950_000),
    ("loss3_undo_rtt5", 12_001, 0x8c57_b14e_afc5_292d, 0, 6_889_424, 34_447_120_000),
    ("mark1in16_rtt100", 12_001, 0x9a97_31fe_98b9_9e46, 64_057, 820_613, 82_061_300_000),
    ("mark1in16_rtt25", 12_001, 0x23db_7126_57f4_8b99, 64_731, 1_696_940, 42_423_500_000),
    ("mark1in16_rtt5", 12_001, 0x1003_e6c2_66b9_23e7, 64_894, 1_696_599, 8_482_995_000),
    ("mark1in4_rtt100", 12_001, 0x0db5_3c57_674b_db50, 256_570, 351_805, 35_180_500_000),
    ("mark1in4_rtt25", 12_001, 0x749b_717e_b7c1_8169, 262_793, 671_070, 16_776_750_000),
    ("mark1in4_rtt5", 12_001, 0x45c3_10b2_de25_6e10, 261_153, 671_367, 3_356_835_000),
    ("markall_rtt100", 12_001, 0xf96e_3a18_bb47_3e69, 1_026_748, 12_500, 1_250_000_000),
    ("markall_rtt25", 12_001, 0x1d0e_540d_e7f0_8d97, 1_048_561, 12_500, 312_500_000),
    ("markall_rtt5", 12_001, 0xf74e_06fc_bfe0_a78a, 1_048_561, 12_500, 62_500_000),
    ("markburst_rtt100", 12_001, 0x1092_9bbe_1083_12e4, 79_053, 1_276_448, 127_644_800_000),
    ("markburst_rtt25", 12_001, 0x408e_453b_7191_5278, 28_158, 6_997_913, 174_947_825_000),
    ("markburst_rtt5", 12_001, 0x8068_c191_925f_8aa3, 25_557, 6_733_115, 33_665_575_000),
    ("maxrate2M_nomark", 12_001, 0xa2fa_97d7_a40f_d158, 0, 250_000, 6_250_000_000),
    ("mixed_stale_l4serr_rtt100", 12_031, 0x4523_b14d_458b_d3d3, 15_698, 222_862, 22_286_200_000),
    ("mixed_stale_l4serr_rtt25", 12_031, 0x4c6b_c2eb_fb39_a8a8, 15_836, 947_570, 23_689_250_000),
    ("mixed_stale_l4serr_rtt5", 12_031, 0xaf5e_ae27_c62c_a576, 15_957, 948_835, 4_744_175_000),
    ("mtu300_mark1in16_rtt25", 12_001, 0x9023_dfbd_6985_21e2, 64_731, 363_444, 9_086_100_000),
    ("nomark_rtt100", 12_001, 0x3212_dd36_9aae_8ab6, 0, 1_537_511, 153_751_100_000),
    ("nomark_rtt25", 12_001, 0xa52c_abbe_52de_51a1, 0, 14_134_420, 353_360_500_000),
    ("nomark_rtt5", 12_001, 0xa609_d494_f33e_0ca7, 0, 14_135_742, 70_678_710_000),
    ("reset_rfc8888", 12_022, 0x41b5_5c11_7ae3_3804, 131_218, 1_121_053, 28_026_325_000),
    ("rttsteps", 16_001, 0x06f7_d7e4_8c2f_bc29, 20_956, 37_976_713, 56_965_069_500),
    ("video_fps30_nomark_rtt25", 12_001, 0xe500_97a5_483b_53e6, 0, 7_075_262, 176_881_550_000),
    ("video_fps60_mark1in16_rtt25", 12_001, 0x5480_0425_253b_e944, 64_997, 1_453_984, 36_349_600_000),
];

#[test]
fn udp_prague_to_the_last_digit() {
    let usual = Limits { packet: 1400, initial: 12_500, min_rate: 12_500, max_rate: 12_500_000_000, frames: None };
    let rules = [
        ("nomark", Rule::Plain),
        ("mark1in16", Rule::Marked(16)),
        ("mark1in4", Rule::Marked(4)),
        ("markall", Rule::All),
        ("loss1in200", Rule::Lost),
        ("loss3_undo", Rule::Late),
        ("markburst", Rule::Burst),
        ("mixed_stale_l4serr", Rule::Stale),
    ];
    for (name, rows, total, alpha, rate, window) in OF_UDP_PRAGUE {
        let base = Trace { name, rtt: 25_000, interval: 1000, n: 6000, rule: Rule::Plain, limits: usual };
        let fast = Limits { initial: 125_000_000, ..usual };
        let small = |packet| Limits { packet, ..usual };
        let video = |interval| Limits { frames: Some(interval), ..small(1200) };
        let trace = match name {
            "rttsteps" => Trace { rtt: 30_000, interval: 500, n: 8000, rule: Rule::Steps, ..base },
            "jitter_rtt25" => Trace { rule: Rule::Jitter, ..base },
            "reset_rfc8888" => Trace { rule: Rule::Reset, ..base },
            "1gbit_nomark_rtt10" => Trace { rtt: 10_000, interval: 100, n: 12_000, limits: fast, ..base },
            "1gbit_mark1in64_rtt10" => {
                Trace { rtt: 10_000, interval: 100, n: 12_000, rule: Rule::Jitter, limits: fast, ..base }
            }
            "mtu300_mark1in16_rtt25" => Trace { rule: Rule::Marked(16), limits: small(300), ..base },
            "video_fps60_mark1in16_rtt25" => Trace { rule: Rule::Marked(16), limits: video(16_666), ..base },
            "video_fps30_nomark_rtt25" => Trace { limits: video(33_333), ..base },
            "maxrate2M_nomark" => Trace { limits: Limits { max_rate: 250_000, ..usual }, ..base },
            _ => {
                let (rule, rtt) = name.rsplit_once("_rtt").unwrap();
                let rule = rules.iter().find(|r| r.0 == rule).unwrap().1;
                Trace { rtt: rtt.parse::<i64>().unwrap() * 1000, rule, ..base }
            }
        };
        let got = replay(&trace);
        assert_eq!((got.0, got.2, got.3, got.4), (rows, alpha, rate, window), "{name}");
        assert_eq!(got.1, total, "{name}: a row before the last differs");
    }
}
