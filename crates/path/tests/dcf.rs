//! The distributed coordination function against timelines worked by hand from IEEE Std 802.11-2016, clause 10.3. A contention
//! window of zero takes the chance out of backoffs, so that every instant is known.
//!
//! Of 802.11g with short slots: a slot has 9 us, SIFS 10, DIFS 28; a packet of 1500 B lasts 254 us at 54 Mbit/s, its ACK 34 us
//! at 24 Mbit/s, an ACK at 6 Mbit/s 50 us. Who finds the medium idle begins at the next border of a slot.

use paceline_engine::{RouteStep, Routes};
use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::wifi::{
    Cell, CellModel, InterfaceReport, Limits, Output, Phy, PowerDbm, Preamble, Protection, Rules, Slot, StationModel,
    packet_error,
};
use paceline_path::{DropReason, Limit, Measure, Queue};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Time};

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

/// A station at 54 Mbit/s with a window of zero.
fn station() -> StationModel {
    StationModel { rate: mbps(54.0), ht: None, frame_error: None, power: None, cw_min: None, queue: Queue::Unlimited }
}

fn damaged(share: f64) -> StationModel {
    StationModel { frame_error: Some(Ratio(share)), ..station() }
}

fn model(stations: Vec<StationModel>) -> CellModel {
    CellModel {
        phy: Phy { cw_min: 0, cw_max: 0, ..Phy::g(Slot::Short, Preamble::Long) },
        rules: Rules::Ieee,
        limits: Limits::STANDARD,
        protection: Protection::None,
        protection_rate: mbps(11.0),
        basic_rates: [1.0, 2.0, 6.0, 12.0, 24.0].map(mbps).to_vec(),
        rts_threshold: None,
        edca: None,
        overhead: 36,
        queue: Queue::Unlimited,
        stations,
    }
}

/// What became of packets: arrivals as (station, number, microseconds), and drops.
#[derive(Default)]
struct Story {
    arrived: Vec<(u32, u32, f64)>,
    dropped: Vec<(u32, DropReason, f64)>,
    reports: Vec<InterfaceReport>,
}

impl Story {
    fn times(&self, station: u32) -> Vec<f64> {
        self.arrived.iter().filter(|(of, ..)| *of == station).map(|(.., at)| *at).collect()
    }
}

/// Added to the number of a station: from the access point to it.
const DOWN: u32 = 100;

/// Packets of `(station, microseconds, bytes)`, in order of time, go from the station to the access point.
fn exchanges(model: &CellModel, packets: &[(u32, f64, u16)]) -> Story {
    exchanges_with_seed(3, model, packets)
}

fn exchanges_with_seed(seed: u64, model: &CellModel, packets: &[(u32, f64, u16)]) -> Story {
    let mut ways = Routes::default();
    let stations = model.stations.len() as u32;
    let mut of =
        |port| (0..stations).map(|i| ways.add(0, &[RouteStep::element(0, 2 * i + port)]) + 1).collect::<Vec<u32>>();
    let (down, up) = (of(0), of(1));
    let streams: Vec<Stream> = (0..=stations).map(|i| Stream::new(seed, &format!("interface {i}"))).collect();
    let mut cell = Cell::new(model, 0, Measure::ALL, &streams);
    let (mut story, mut next) = (Story::default(), packets.iter().zip(0..).peekable());
    let us = |time: Time| time.0 as f64 / 1e3;
    loop {
        match next.peek() {
            Some(&(&(station, at, size), seq)) if Time((at * 1e3) as u64) < cell.next_wake() => {
                let number = (station % DOWN) as usize;
                let (time, cursor) = (Time((at * 1e3) as u64), if station < DOWN { up[number] } else { down[number] });
                let (flow, flags, stamp, extra) = (FlowId(station), Flags::NONE, Stamp(0), ExtraId::NONE);
                cell.arrive(Packet { time, cursor, size, flags, flow, seq, stamp, extra }, &ways);
                next.next();
            }
            None if cell.next_wake() == Time::NEVER => break,
            _ => cell.step(&ways),
        }
        while let Some(output) = cell.take_output() {
            match output {
                Output::Forward(packet) => story.arrived.push((packet.flow.0, packet.seq, us(packet.time))),
                Output::Drop(packet, reason, at) => story.dropped.push((packet.flow.0, reason, us(at))),
                Output::Waited(..) => {}
            }
        }
    }
    assert_eq!(cell.holding(), 0);
    story.reports = cell.finish(Time::from_secs_f64(1e4));
    story
}

/// 9 + 254; then SIFS, ACK and DIFS: 10 + 34 + 28, and the next one's 254.
#[test]
fn an_exchange_and_the_next() {
    let story = exchanges(&model(vec![station()]), &[(0, 0.0, 1500), (0, 0.0, 1500), (0, 10_001.0, 1500)]);
    // The second ACK ends at 633; borders lie 9 us apart from a DIFS after that: 661 + 9 n.
    let third = 661.0 + 9.0 * ((10_001.0 - 661.0) / 9.0f64).floor() + 9.0 + 254.0;
    assert_eq!(story.times(0), [263.0, 589.0, third]);
    // At 9 Mbit/s, with an ACK at 6: 37 octets are 22 + 296 bits in symbols of 36, 9 of them.
    let slow = StationModel { rate: mbps(9.0), ..station() };
    let slow = CellModel { basic_rates: vec![mbps(6.0)], ..model(vec![slow]) };
    let first = 9.0 + 20.0 + 36.0 + 6.0;
    assert_eq!(exchanges(&slow, &[(0, 0.0, 1), (0, 0.0, 1)]).times(0), [first, first + 10.0 + 50.0 + 28.0 + 62.0]);
}

/// Two that always collide: an ACK timeout of SIFS, a slot and 20 us, seven attempts; then a third, who heard noise, after EIFS.
#[test]
fn a_collision_costs_its_senders_a_timeout_and_the_others_eifs() {
    let both = [(0, 0.0, 1500), (1, 0.0, 1500)];
    let story = exchanges(&model(vec![station(), station()]), &both);
    let last = 9.0 + 6.0 * (254.0 + 39.0) + 254.0;
    assert_eq!(story.dropped, [(0, DropReason::Retries, last), (1, DropReason::Retries, last)]);
    assert_eq!(story.reports[1].counts.attempts, 7);
    assert_eq!((story.reports[2].counts.collisions, story.reports[2].counts.retries), (7, 6));
    // EIFS: SIFS, an ACK at 6 Mbit/s, DIFS.
    let once = CellModel { limits: Limits { short: Some(1), long: Some(1) }, ..model(vec![station(); 3]) };
    let story = exchanges(&once, &[both[0], both[1], (2, 100.0, 1500)]);
    assert_eq!(story.times(2), [263.0 + 10.0 + 50.0 + 28.0 + 254.0]);
    // Frames of different length: the medium is busy until the longer one ends; 22 + 1088 bits are 6 symbols, 50 us.
    let story = exchanges(&once, &[(0, 0.0, 100), both[1], (2, 100.0, 1500)]);
    assert_eq!(story.times(2), [263.0 + 88.0 + 254.0]);
    // The one that ended first does not begin before the medium has been idle for DIFS.
    let twice = CellModel { limits: Limits { short: Some(2), long: Some(1) }, ..model(vec![station(); 2]) };
    assert_eq!(exchanges(&twice, &[(0, 0.0, 100), both[1]]).times(0), [263.0 + 28.0 + 50.0]);
    // Who comes within the slot in which another begins has not noticed it.
    let shifted = exchanges(&once, &[both[0], (1, 8.9, 1500)]);
    assert_eq!(shifted.dropped.len(), 2);
    let late = exchanges(&once, &[both[0], (1, 9.0, 1500)]);
    assert_eq!((late.dropped.len(), late.times(1)), (0, vec![9.0 + 254.0 + 44.0 + 28.0 + 254.0]));
    // So it is where they count from different instants: one from its timeout, at 302 + 9 n, the other from the end of what
    // the damaged frame announced, at 335 + 9 n, so that they begin at 1004 and 1001.
    let apart = CellModel { stations: vec![damaged(1.0), station()], ..once };
    let story = exchanges(&apart, &[both[0], (0, 1000.0, 1500), (1, 1000.0, 1500)]);
    assert_eq!((story.dropped.len(), story.reports[2].counts.collisions), (3, 1));
}

/// Only the receiver lost the frame: the others have read how long it reserves the medium, and wait for an ACK that does not come;
/// its sender knows earlier.
#[test]
fn a_damaged_frame_reserves_the_time_of_its_ack() {
    let limits = |limit| CellModel {
        limits: Limits { short: Some(limit), long: Some(4) },
        ..model(vec![damaged(1.0), station()])
    };
    let packets = [(0, 0.0, 1500), (1, 100.0, 1500)];
    let story = exchanges(&limits(1), &packets);
    assert_eq!((story.dropped[0].2, story.times(1)), (263.0, vec![263.0 + 44.0 + 28.0 + 254.0]));
    assert_eq!(story.reports[1].counts.frame_errors, 1);
    // Within that time the medium counts as busy for who comes anew, too: it draws a backoff.
    let mut drawing = limits(1);
    (drawing.stations[1].cw_min, drawing.phy.cw_max) = (Some(15), 15);
    let begins =
        (0..20).map(|seed| exchanges_with_seed(seed, &drawing, &[packets[0], (1, 265.0, 1500)]).times(1)[0] - 589.0);
    let begins: Vec<f64> = begins.collect();
    assert!(
        begins.iter().all(|late| (0.0..=135.0).contains(late)) && begins.iter().any(|late| *late > 45.0),
        "{begins:?}"
    );
    // The access point, which was to receive it, has heard noise: EIFS.
    assert_eq!(exchanges(&limits(1), &[packets[0], (DOWN + 1, 100.0, 1500)]).times(DOWN + 1), [263.0 + 88.0 + 254.0]);
    // Again after the timeout of 39 us, ahead of the other.
    let twice = exchanges(&limits(2), &packets);
    let second = 263.0 + 39.0 + 254.0;
    assert_eq!((twice.dropped[0].2, twice.times(1)), (second, vec![second + 44.0 + 28.0 + 254.0]));
}

/// RTS and CTS of 34 us each at 24 Mbit/s, for frames above the threshold alone.
#[test]
fn rts_and_cts_come_before_long_frames() {
    let with = |threshold| CellModel { rts_threshold: Some(threshold), ..model(vec![station()]) };
    assert_eq!(exchanges(&with(1536), &[(0, 0.0, 1500)]).times(0), [263.0]);
    let story = exchanges(&with(1535), &[(0, 0.0, 1500), (0, 0.0, 1500)]);
    let first = 9.0 + 34.0 + 10.0 + 34.0 + 10.0 + 254.0;
    assert_eq!(story.times(0), [first, first + 44.0 + 28.0 + first - 9.0]);
    // After RTS and CTS the long limit counts.
    let lost = CellModel { rts_threshold: Some(0), ..model(vec![damaged(1.0)]) };
    assert_eq!(exchanges(&lost, &[(0, 0.0, 1500)]).reports[1].counts.attempts, 4);
    // Nobody is heard: no CTS, the short limit, and each attempt takes 34 us and the timeout of 39.
    let deaf = StationModel { power: Some(PowerDbm(-200.0)), ..station() };
    let silent = CellModel { rts_threshold: Some(0), ..model(vec![deaf.clone(), station()]) };
    let story = exchanges(&silent, &[(0, 0.0, 1500)]);
    assert_eq!(story.dropped, [(0, DropReason::Retries, 9.0 + 6.0 * 73.0 + 34.0)]);
    // The other resets what the RTS has announced: 2 SIFS, CTS, 20 us and two slots after it (clause 10.3.2.4).
    let once = CellModel { limits: Limits { short: Some(1), long: Some(1) }, ..silent };
    let other = exchanges(&once, &[(0, 0.0, 1500), (1, 20.0, 1)]).times(1)[0];
    let own = 34.0 + 10.0 + 34.0 + 10.0 + 20.0 + 4.0 * 2.0 + 6.0;
    assert_eq!(other, 43.0 + 20.0 + 34.0 + 20.0 + 18.0 + 28.0 + own);
    let noise = exchanges(&once, &[(0, 0.0, 1500), (DOWN + 1, 20.0, 1)]).times(DOWN + 1)[0];
    assert_eq!(noise, 43.0 + 88.0 + own);
    // A CTS sets the short count back: two failures in a row, at 8.6 % each, end a packet's attempts before the tenth of its data
    // frames gets across; not two in all. By the two equations of that 6.9 % (without setting it back 23.5 %).
    let rts = StationModel { rate: mbps(24.0), power: Some(PowerDbm(-75.4)), ..damaged(0.9) };
    let limits = Limits { short: Some(2), long: None };
    let often = CellModel { rts_threshold: Some(0), overhead: 0, limits, ..model(vec![rts]) };
    let given_up = exchanges(&often, &vec![(0, 0.0, 1); 3000]).dropped.len() as f64 / 3000.0;
    assert!((given_up - 0.069).abs() < 0.025, "{given_up}");
    // RTS frames that collide are short: the medium is free again when they end.
    let pair = CellModel { rts_threshold: Some(0), ..model(vec![station(); 2]) };
    let story = exchanges(&pair, &[(0, 0.0, 1500), (1, 0.0, 1500)]);
    assert_eq!(story.dropped[0].2, 9.0 + 6.0 * 73.0 + 34.0);
}

/// Each frame of OFDM follows a CTS at 11 Mbit/s with a long preamble, 192 + 11 us, and a SIFS; or RTS and CTS.
#[test]
fn protection_announces_frames() {
    let phy = Phy { cw_min: 0, cw_max: 0, ..Phy::g(Slot::Long, Preamble::Long) };
    let with = |protection| CellModel { phy, protection, ..model(vec![station()]) };
    let of = |model| exchanges(&model, &[(0, 0.0, 1500)]).times(0)[0];
    assert_eq!(of(with(Protection::None)), 20.0 + 254.0);
    assert_eq!(of(with(Protection::CtsToSelf)), 20.0 + 203.0 + 10.0 + 254.0);
    // 20 octets at 11 Mbit/s: 15 us; the CTS at 2 Mbit/s: 56 us.
    assert_eq!(of(with(Protection::RtsCts)), 20.0 + (192.0 + 15.0) + 10.0 + (192.0 + 56.0) + 10.0 + 254.0);
}

/// Most ACKs are lost: what comes again is not handed on again, and what has arrived is not lost when its sender gives up.
#[test]
fn duplicates_are_filtered() {
    // One octet on the air and 14 of ACK, at 6 Mbit/s and 2 dB below where a receiver is good for 1000.
    let far = StationModel { rate: mbps(6.0), power: Some(PowerDbm(-84.9)), ..station() };
    let poor = CellModel { overhead: 0, basic_rates: vec![mbps(6.0)], ..model(vec![far]) };
    let packets: Vec<(u32, f64, u16)> = vec![(0, 0.0, 1); 2000];
    let story = exchanges(&poor, &packets);
    let numbers: Vec<u32> = story.arrived.iter().map(|(_, number, _)| *number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order and once");
    let counts = story.reports[1].counts;
    assert!(counts.retries > 2000 && story.dropped.is_empty() && numbers.len() == 2000, "{counts:?}");
    // A data frame lasts 34 us. It fails at 8 %: a timeout of 39. Its ACK of 50 us fails at 69 %: noise, and EIFS of 88; else DIFS.
    let error = |octets| packet_error(mbps(6.0), octets, PowerDbm(-84.9)).0;
    let (data, ack) = (error(1), error(14));
    let mean = 34.0 + data * 39.0 + (1.0 - data) * (60.0 + ack * 88.0 + (1.0 - ack) * 28.0);
    let found = story.arrived.last().map_or(0.0, |(.., at)| at - 9.0) / counts.attempts as f64;
    assert!((found / mean - 1.0).abs() < 0.03, "{found} {mean}");
}

/// How many slots each packet waits beyond DIFS; `gap` is how long after the last ACK's end it comes.
fn slots(cw: u32, gap: Option<f64>) -> Vec<u32> {
    let model = CellModel { phy: Phy { cw_min: cw, cw_max: 1023, ..model(vec![]).phy }, ..model(vec![station()]) };
    if gap.is_none() {
        let packets = vec![(0, 0.0, 1500); 4000];
        let times = exchanges(&model, &packets).times(0);
        return times.windows(2).map(|pair| ((pair[1] - pair[0] - 326.0) / 9.0) as u32).collect();
    }
    // Each packet by itself: its post-backoff began when the one before was acknowledged.
    let (mut found, mut packets) = (Vec::new(), vec![(0, 0.0, 1500)]);
    for _ in 0..200 {
        let end = exchanges(&model, &packets).times(0).last().map_or(0.0, |at| at + 44.0);
        packets.push((0, end + gap.unwrap_or(0.0), 1500));
        let start = exchanges(&model, &packets).times(0).last().map_or(0.0, |at| at - 254.0);
        found.push(((start - end - 28.0) / 9.0).round() as u32);
    }
    found
}

/// Backoffs are uniform from 0 to CW, also behind the last packet (clause 10.3.4.3), and over after it.
#[test]
fn backoffs_are_uniform_and_follow_every_frame() {
    let all = slots(15, None);
    let share = |slot| all.iter().filter(|&&found| found == slot).count() as f64 / all.len() as f64;
    // A standard error of 0.0038.
    assert!(
        (0..=15).all(|slot| (share(slot) - 1.0 / 16.0).abs() < 0.016),
        "{:?}",
        (0..=15).map(share).collect::<Vec<_>>()
    );
    assert!(all.iter().all(|&slot| slot <= 15));
    let post = slots(15, Some(1.0));
    let mean = post.iter().map(|&slot| f64::from(slot)).sum::<f64>() / post.len() as f64;
    // 4.61 / sqrt(200) of standard error.
    assert!((mean - 7.5).abs() < 1.3 && post.iter().all(|&slot| slot <= 15), "{mean}");
    // 20 slots after DIFS the countdown is over, and the next border serves.
    assert!(slots(15, Some(28.0 + 20.0 * 9.0 + 4.0)).iter().all(|&slot| slot == 21));
}

/// A countdown goes on where it stopped: every exchange of another, two idle slots after the one before, takes two slots off
/// it, so one from 15 is over within eight.
#[test]
fn a_countdown_freezes_and_goes_on() {
    let busy = StationModel { cw_min: Some(0), ..station() };
    let counting = StationModel { cw_min: Some(15), ..station() };
    // When they meet, that attempt is the last.
    let limits = Limits { short: Some(1), long: Some(1) };
    let phy = Phy { cw_min: 0, cw_max: 15, ..model(vec![]).phy };
    let cell = CellModel { phy, limits, ..model(vec![busy, counting]) };
    let mut waits = Vec::new();
    for run in 0..60 {
        // The busy one's packets come 9 us after DIFS: it begins at the second border. Its exchange lasts 298 us.
        let cycle = 298.0 + 28.0 + 18.0;
        let first = 9.0 * (run + 1) as f64;
        let mut packets: Vec<(u32, f64, u16)> =
            (0..20).map(|n| (0, first - 8.0 + f64::from(n) * cycle, 1500)).collect();
        packets.push((1, first + 50.0, 1));
        packets.sort_by(|a, b| a.1.total_cmp(&b.1));
        let story = exchanges_with_seed(run, &cell, &packets);
        let lost = story.dropped.iter().find(|(of, ..)| *of == 1).map(|(.., at)| at - 254.0);
        let at = story.times(1).first().map(|at| at - 34.0).or(lost).expect("it was sent");
        // It begins so many cycles after the first idle slots.
        waits.push(((at - first - 326.0) / cycle).floor());
    }
    assert!(waits.iter().all(|&wait| wait <= 7.0), "{waits:?}");
    assert!(waits.iter().any(|&wait| wait >= 5.0) && waits.iter().any(|&wait| wait <= 1.0), "{waits:?}");
}

/// Each failure doubles the window up to the largest, and a success, or giving up, ends that (clause 10.3.3).
#[test]
fn windows_double_and_fall_back() {
    let phy = Phy { cw_min: 3, cw_max: 31, ..model(vec![]).phy };
    // Alone, with all frames damaged: the slots between attempts tell the window.
    let limits = Limits { short: Some(7), long: Some(4) };
    let cell = CellModel { phy, limits, ..model(vec![damaged(1.0)]) };
    let story = exchanges(&cell, &vec![(0, 0.0, 1500); 400]);
    assert_eq!(story.dropped.len(), 400);
    let ends: Vec<f64> = story.dropped.iter().map(|(.., at)| *at).collect();
    // Seven attempts of 254 us and seven timeouts of 39 us (the last one's belongs to the next packet), the rest is backoff:
    // of windows 3, 7, 15, 31, 31, 31, 31, in the mean 74.5 slots.
    let slots: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0] - 7.0 * 293.0) / 9.0).collect();
    let max_slots = slots.iter().copied().fold(0.0, f64::max);
    let mean = slots.iter().sum::<f64>() / slots.len() as f64;
    // A standard error of 19.2 / 20 slots.
    assert!((mean - 74.5).abs() < 4.0 && max_slots <= 149.0, "{mean} {max_slots}");
    // Half of the frames damaged: the attempt of number i after a success has the share 2^-i, so a window of 8.83 in the mean.
    let story = exchanges(&CellModel { phy, ..model(vec![damaged(0.5)]) }, &vec![(0, 0.0, 1500); 4000]);
    let counts = story.reports[1].counts;
    let (failed, all) = (counts.frame_errors as f64, counts.attempts as f64);
    let last = story.times(0).last().map_or(0.0, |at| at + 72.0);
    let mean = (last - failed * 293.0 - (all - failed) * 326.0) / 9.0 / all;
    assert!((mean - 4.41).abs() < 0.3, "{mean}");
}

/// A queue of one packet, and none but the one in hand: what comes then is refused, nothing is lost twice.
#[test]
fn a_queue_of_one() {
    let one = StationModel { queue: Queue::DropTail(Limit::Packets(1)), ..station() };
    let story = exchanges(&model(vec![one]), &[(0, 0.0, 1500), (0, 1.0, 1500), (0, 2.0, 1500)]);
    assert_eq!(story.times(0).len(), 2);
    assert_eq!(story.dropped, [(0, DropReason::Overflow, 2.0)]);
}

/// The access point uses the rate of the station that a packet goes to, and its ACK is that station's.
#[test]
fn the_access_point_sends_at_each_stations_rate() {
    let slow = StationModel { rate: mbps(11.0), ..station() };
    let story =
        exchanges(&model(vec![station(), slow]), &[(DOWN, 0.0, 1500), (DOWN + 1, 0.0, 1500), (DOWN, 0.0, 1500)]);
    let first = 263.0 + 44.0 + 28.0;
    // 1536 octets at 11 Mbit/s: 192 + 1118 us; the ACK at 2 Mbit/s: 192 + 56 us.
    let second = first + 1310.0;
    assert_eq!(
        (story.times(DOWN), story.times(DOWN + 1)),
        (vec![263.0, second + 10.0 + 248.0 + 28.0 + 254.0], vec![second])
    );
}
