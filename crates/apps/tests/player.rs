//! The player on small media, and its invariants on random arrivals.

use paceline_apps::Rounding;
use paceline_apps::player::Player;
use paceline_apps::stream::{Playout, StreamModel};
use paceline_units::{Rate, Ratio, Size, Span, Time};
use proptest::prelude::*;

/// 100 packets of 1000 B, 8 ms each; play-out begins with 10 of them.
fn model(playout: Playout, client_buffer: Option<Size>) -> StreamModel {
    StreamModel {
        media_rate: Rate::from_bps(1_000_000),
        length: Span::from_millis(800),
        xfactor: 8.0,
        heartbeat: Span::from_millis(100),
        buffer: Ratio(0.1),
        playout,
        client_buffer,
        segment: Size(1000),
        rounding: Rounding::Exact,
    }
}

const fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn play(model: StreamModel, arrivals: &[(u64, u64)]) -> Player {
    let mut player = Player::new(model, ms(0));
    for &(at, packets) in arrivals {
        player.on_delivery(ms(at), Size(packets * 1000));
    }
    player
}

#[test]
fn by_the_clock_a_packet_is_late_after_its_instant() {
    // Fill at 50 ms. Packet 10 is due at 130 ms, packet 11 at 138 ms.
    let player = play(model(Playout::Clock, None), &[(50, 10), (130, 11), (139, 12), (200, 100)]);
    let report = player.finish(ms(1000));
    assert_eq!(report.fill, Some(Span::from_millis(50)));
    // 11 came after 138 ms; at 200 ms the packets due before it are 12 (146 ms) to 18 (194 ms).
    assert_eq!((report.late_packets, report.due_packets), (1 + 7, 100), "what has come whole is judged whole");
    assert_eq!(report.late_share, Some(0.08));
    assert!(report.completed);
    assert_eq!(report.duration, Span::from_millis(200));
    assert_eq!(report.throughput, Rate::from_bps(4_000_000));
}

#[test]
fn what_never_came_and_was_due_is_late() {
    let player = play(model(Playout::Clock, None), &[(50, 20)]);
    assert_eq!(player.finish(ms(50 + 160)).late_packets, 0);
    assert_eq!(player.finish(ms(50 + 161)).late_packets, 1);
    assert_eq!(player.finish(ms(10_000)).late_packets, 80);
    assert_eq!(player.finish(ms(10_000)).duration, Span::from_millis(850));
    assert!(player.is_done(ms(850)) && !player.is_done(ms(849)));
}

#[test]
fn a_stream_that_is_cut_is_judged_by_what_was_due() {
    // Fill at 50 ms; by 290 ms packets 0 to 29 were due, and 12 have come.
    let player = play(model(Playout::Clock, None), &[(50, 10), (130, 12)]);
    let report = player.finish(ms(290));
    assert_eq!((report.late_packets, report.due_packets, report.media_packets), (18, 30, 100));
    assert_eq!((report.late_share, report.stall_share), (Some(0.6), None));
    // Nothing more comes: of the whole medium 88 are late.
    let report = player.finish(ms(10_000));
    assert_eq!((report.late_packets, report.due_packets), (88, 100));
    // What lies in the buffer when it is cut has not been judged.
    let report = play(model(Playout::Clock, None), &[(50, 60)]).finish(ms(130));
    assert_eq!((report.late_packets, report.due_packets, report.late_share), (0, 10, Some(0.0)));
    // At the instant at which it begins nothing has been due.
    let report = play(model(Playout::Clock, None), &[(50, 10)]).finish(ms(50));
    assert_eq!((report.fill, report.due_packets, report.late_share), (Some(Span::from_millis(50)), 0, None));
}

#[test]
fn a_stream_that_never_begins_is_late_altogether() {
    let player = play(model(Playout::Clock, None), &[(50, 9)]);
    let report = player.finish(ms(10_000));
    assert_eq!((report.fill, report.late_packets, report.due_packets), (None, 100, 100));
    assert_eq!((report.late_share, report.stall_share), (Some(1.0), None));
    assert_eq!((report.stalls, report.stalled), (0, Span::ZERO));
    let report = Player::new(model(Playout::Clock, None), ms(20_000)).finish(ms(10_000));
    assert_eq!((report.late_packets, report.late_share), (0, None), "it was not to begin before the end");
}

#[test]
fn a_stream_that_never_begins_is_one_long_stall() {
    let player = play(model(Playout::Stall, None), &[(50, 9)]);
    let report = player.finish(ms(10_000));
    assert_eq!((report.fill, report.stalls, report.stalled), (None, 1, Span::from_secs(10)));
    assert_eq!((report.stall_share, report.late_share, report.due_packets), (Some(1.0), None, 0));
    let report = Player::new(model(Playout::Stall, None), ms(20_000)).finish(ms(10_000));
    assert_eq!((report.stalls, report.stall_share), (0, None), "it was not to begin before the end");
}

#[test]
fn stalls_are_held_against_the_time_that_it_played() {
    // Plays from 50 to 130 ms, stands to 300, plays 10 packets to 380, stands.
    let player = play(model(Playout::Stall, None), &[(50, 10), (200, 15), (300, 20)]);
    let share = |end| player.finish(ms(end)).stall_share.unwrap();
    assert_eq!(play(model(Playout::Stall, None), &[(50, 10)]).finish(ms(130)).stall_share, Some(0.0));
    assert!((share(350) - 170.0 / 300.0).abs() < 1e-12);
    assert!((share(400) - 190.0 / 350.0).abs() < 1e-12);
    // All 100 packets have come at 1000 ms, and play for 800 ms in all.
    let report = play(model(Playout::Stall, None), &[(0, 98), (1000, 100)]).finish(ms(2000));
    assert!((report.stall_share.unwrap() - 216.0 / 1016.0).abs() < 1e-12);
}

#[test]
fn a_stall_lasts_until_the_buffer_is_full_again() {
    // Plays 10 packets from 50 to 130 ms; 5 more at 200, 5 more at 300: on again, until 380 ms.
    let player = play(model(Playout::Stall, None), &[(50, 10), (200, 15), (300, 20)]);
    let report = player.finish(ms(350));
    assert_eq!((report.stalls, report.stalled), (1, Span::from_millis(170)));
    let report = player.finish(ms(400));
    assert_eq!((report.stalls, report.stalled), (2, Span::from_millis(190)));
    assert_eq!(report.late_packets, 0);
    assert_eq!(player.buffered(ms(300)), Span::from_millis(72));
}

#[test]
fn the_last_packets_end_a_stall_however_few() {
    let report = play(model(Playout::Stall, None), &[(0, 98), (1000, 100)]).finish(ms(2000));
    assert_eq!((report.stalls, report.stalled), (1, Span::from_millis(1000 - 98 * 8)));
    assert!(report.completed);
}

#[test]
fn a_finite_buffer_discards_what_it_cannot_hold() {
    for playout in [Playout::Clock, Playout::Stall] {
        // Room for 20: at 0 ms the first 10 are there and play begins, one leaves; 20 stay; 9 are discarded.
        let player = play(model(playout, Some(Size(20_000))), &[(0, 30)]);
        let account = player.account(ms(0));
        assert_eq!((account.played, account.buffered, account.discarded), (1, 20, 9), "{playout:?}");
    }
    let player = play(model(Playout::Clock, Some(Size(20_000))), &[(0, 30)]);
    // 30 - 9 = 21 play; the holes pass by the clock.
    assert_eq!(player.account(ms(240)).played, 21);
    assert_eq!(player.finish(ms(200)).late_packets, 0);
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0u64..60_000, 0u64..25), 0..60).prop_map(|steps| {
        let (mut at, mut packets) = (0, 0);
        let mut made = Vec::new();
        for (gap, more) in steps {
            at += gap;
            packets += more;
            made.push((at, packets));
        }
        made
    })
}

/// Arrival times in microseconds.
fn fine(model: StreamModel, arrivals: &[(u64, u64)], mut each: impl FnMut(&Player, Time)) -> Player {
    let mut player = Player::new(model, ms(0));
    for &(at, packets) in arrivals {
        let now = Time(at * 1000);
        player.on_delivery(now, Size(packets * 1000));
        each(&player, now);
    }
    player
}

proptest! {
    #[test]
    fn every_packet_is_somewhere(arrivals in arrivals(), stall: bool, room in prop::option::of(10u64..40)) {
        let playout = if stall { Playout::Stall } else { Playout::Clock };
        let model = model(playout, room.map(|n| Size(n * 1000)));
        let mut discarded = 0;
        let player = fine(model, &arrivals, |player, now| {
            for at in [now, now + Span::from_millis(3), now + Span::from_secs(5)] {
                let a = player.account(at);
                assert_eq!(a.arrived, a.played + a.buffered + a.late + a.discarded, "{a:?}");
                assert!(a.buffered <= room.unwrap_or(100));
                discarded = a.discarded;
            }
        });
        let end = Time(arrivals.last().map_or(0, |a| a.0 * 1000)) + Span::from_millis(1);
        let report = player.finish(end);
        prop_assert!(report.late_packets <= report.due_packets && report.due_packets <= report.media_packets);
        let (counts, other) = if stall { (report.stall_share, report.late_share) } else { (report.late_share, report.stall_share) };
        prop_assert!(counts.is_none_or(|share| (0.0..=1.0).contains(&share)));
        prop_assert_eq!(other, None);
        let has_one = report.fill.is_none_or(|fill| fill < report.duration || report.completed);
        prop_assert_eq!(counts.is_some(), has_one);
        prop_assert_eq!(report.discarded_packets, discarded);
        prop_assert!(report.fill.is_some() || counts == Some(1.0), "nothing that never began is as good as any that did");
        prop_assert!(report.stalled + report.fill.unwrap_or_default() <= report.duration);
    }

    /// Once play-out has begun, data that come earlier never make more packets late.
    #[test]
    fn earlier_is_never_later(arrivals in arrivals(), earlier in 0u64..50_000) {
        let model = model(Playout::Clock, None);
        let fill = arrivals.iter().find(|a| a.1 >= 10).map_or(0, |a| a.0);
        let moved: Vec<(u64, u64)> =
            arrivals.iter().map(|&(at, n)| (if at > fill { at.saturating_sub(earlier).max(fill) } else { at }, n)).collect();
        let end = ms(20_000);
        let (before, after) = (fine(model, &arrivals, |_, _| {}).finish(end), fine(model, &moved, |_, _| {}).finish(end));
        prop_assert_eq!(before.fill, after.fill);
        prop_assert!(after.late_packets <= before.late_packets);
    }

    /// With everything shifted by the same time, nothing but the fill time changes, or the wait of what never began.
    #[test]
    fn a_shift_changes_nothing(arrivals in arrivals(), shift in 0u64..50_000, stall: bool) {
        let model = model(if stall { Playout::Stall } else { Playout::Clock }, None);
        let moved: Vec<(u64, u64)> = arrivals.iter().map(|&(at, n)| (at + shift, n)).collect();
        let end = ms(20_000);
        let (a, b) = (fine(model, &arrivals, |_, _| {}).finish(end), fine(model, &moved, |_, _| {}).finish(end + Span::from_micros(shift)));
        let wait = if stall && b.fill.is_none() { Span::from_micros(shift) } else { Span::ZERO };
        prop_assert_eq!((a.late_packets, a.due_packets, a.stalls), (b.late_packets, b.due_packets, b.stalls));
        prop_assert_eq!(a.stalled + wait, b.stalled);
    }

    /// One by one, packets are late exactly when a table of instants says so.
    #[test]
    fn agrees_with_a_table(gaps in prop::collection::vec(0u64..20_000_000, 100), rate in 100_000u64..5_000_000) {
        let model = StreamModel { media_rate: Rate(rate), length: Span(100 * 8_000 * 1_000_000_000 / rate), ..model(Playout::Clock, None) };
        let times: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let mut player = Player::new(model, ms(0));
        for (i, &at) in times.iter().enumerate() {
            player.on_delivery(Time(at), Size((i as u64 + 1) * 1000));
        }
        let fill = times[9];
        let packets = model.packets() as usize;
        let ends = fill + (packets as u128 * 8_000_000_000_000 / u128::from(rate)) as u64;
        let late = (0..packets)
            .filter(|&i| times[i] > fill + (i as u128 * 8_000_000_000_000 / u128::from(rate)) as u64 || times[i] >= ends)
            .count();
        prop_assert_eq!(player.finish(Time(u64::MAX - 1)).late_packets, late as u64);
    }
}
