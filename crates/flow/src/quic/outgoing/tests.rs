use super::*;

fn kind(rank: u8) -> Kind {
    Kind { rank, track: 0 }
}

/// The id, offset, length and FIN of the next piece.
fn next(outgoing: &mut Outgoing, room: u16) -> Option<(u32, u64, u16, bool)> {
    outgoing.take(room).map(|offer| {
        let StreamPiece { stream, offset, length, fin, .. } = offer.piece;
        (stream, offset, length, fin)
    })
}

#[test]
fn the_most_urgent_and_then_the_oldest() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 10);
    for (rank, bytes) in [(5, 150), (1, 50), (5, 20)] {
        let place = outgoing.open(kind(rank));
        outgoing.write(place, bytes, true);
    }
    // a frame's header takes two bytes at offset 0, and four beyond 64
    assert_eq!(next(&mut outgoing, 102), Some((6, 0, 50, true)));
    assert_eq!(next(&mut outgoing, 102), Some((2, 0, 100, false)));
    assert_eq!(next(&mut outgoing, 104), Some((2, 100, 50, true)));
    assert_eq!(next(&mut outgoing, 102), Some((10, 0, 20, true)));
    assert_eq!((next(&mut outgoing, 102), outgoing.is_ready(), outgoing.is_settled()), (None, false, false));
}

#[test]
fn what_was_lost_leaves_before_what_is_new_and_only_what_is_wanted() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 10);
    let place = outgoing.open(kind(0));
    outgoing.write(place, 1000, true);
    let pieces: Vec<_> = (0..3).map(|_| outgoing.take(104).unwrap().piece).collect();
    assert_eq!(outgoing.acked(&pieces[1]).bytes, u64::from(pieces[1].length));
    outgoing.lost(&pieces[0]);
    outgoing.lost(&pieces[1]);
    let again = outgoing.take(104).unwrap();
    assert!(again.again && again.piece.offset == 0 && again.piece.length == pieces[0].length);
    assert!(!outgoing.take(104).unwrap().again);
    assert_eq!(outgoing.acked(&pieces[1]).bytes, 0, "told twice");
}

#[test]
fn a_lost_end_is_said_again() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 10);
    let place = outgoing.open(kind(0));
    outgoing.write(place, 10, true);
    let piece = outgoing.take(100).unwrap().piece;
    outgoing.lost(&piece);
    let again = outgoing.take(100).unwrap().piece;
    assert_eq!(again, piece);
    assert_eq!(outgoing.acked(&again), Gain { bytes: 10, completed: true });
    assert!(outgoing.is_settled());
    assert_eq!(outgoing.acked(&piece), Gain::default(), "of a stream that is over");
    let empty = outgoing.open(kind(0));
    outgoing.write(empty, 0, true);
    assert_eq!(next(&mut outgoing, 100), Some((6, 0, 0, true)));
}

#[test]
fn limits_hold_new_data_back_and_not_what_was_lost() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 150, 100, 10);
    for _ in 0..2 {
        let place = outgoing.open(kind(0));
        outgoing.write(place, 120, false);
    }
    let first = outgoing.take(1000).unwrap().piece;
    assert_eq!((first.stream, first.length), (2, 100), "the stream's limit");
    assert_eq!(next(&mut outgoing, 1000), Some((6, 0, 50, false)), "the connection's");
    assert_eq!(next(&mut outgoing, 1000), None);
    outgoing.lost(&first);
    assert_eq!(next(&mut outgoing, 1000), Some((2, 0, 100, false)));
    outgoing.set_max_data(1000);
    assert_eq!(next(&mut outgoing, 1000), Some((6, 50, 50, false)));
    outgoing.set_limit(2, 110);
    assert_eq!(next(&mut outgoing, 1000), Some((2, 100, 10, false)));
}

/// If frames share a stream, a piece belongs to one of them, and marks its end.
#[test]
fn pieces_end_where_frames_do() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 10);
    let place = outgoing.open(kind(0));
    outgoing.write_frame(place, 150, (Stamp(7), Time::NEVER), true, false);
    outgoing.write_frame(place, 30, (Stamp(8), Time::NEVER), false, true);
    let pieces: Vec<StreamPiece> = (0..3).map(|_| outgoing.take(104).unwrap().piece).collect();
    let written: Vec<_> = pieces.iter().map(|p| (p.offset, p.length, p.captured.0, p.key, p.last, p.fin)).collect();
    assert_eq!(
        written,
        [(0, 102, 7, true, false, false), (102, 48, 7, true, true, false), (150, 30, 8, false, true, true)]
    );
    outgoing.lost(&pieces[1]);
    outgoing.lost(&pieces[2]);
    assert_eq!(outgoing.take(104).unwrap().piece, pieces[1]);
    assert_eq!(outgoing.take(104).unwrap().piece, pieces[2]);
    assert_eq!((outgoing.unsent(0), outgoing.is_settled()), (0, false));
}

fn of_track(rank: u8, track: u8) -> Kind {
    Kind { rank, track }
}

/// Tracks of one rank take turns, streams of one track go oldest first, and no rank waits for a lower-priority one.
#[test]
fn tracks_of_a_rank_take_turns() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    outgoing.set_tracks(&[1, 1, 1, 0]);
    for track in [0, 0, 1, 2] {
        let place = outgoing.open(of_track(1, track));
        outgoing.write(place, 150, true);
    }
    let tracks = |outgoing: &mut Outgoing, count: usize| -> Vec<(u8, u32)> {
        (0..count).filter_map(|_| outgoing.take(104)).map(|o| (o.piece.track, o.piece.stream / 4)).collect()
    };
    assert_eq!(tracks(&mut outgoing, 2), [(0, 0), (1, 2)]);
    let urgent = outgoing.open(of_track(0, 3));
    outgoing.write(urgent, 10, true);
    assert_eq!(outgoing.rank(), Some(0));
    assert_eq!(tracks(&mut outgoing, 9), [(3, 4), (2, 3), (0, 0), (1, 2), (2, 3), (0, 1), (0, 1)]);
    assert_eq!((outgoing.unsent(0), outgoing.unsent(2), outgoing.rank()), (0, 0, None));
}

/// Within a rank, lost data is sent before new data of any stream; a lower-priority rank waits.
#[test]
fn what_was_lost_goes_first_within_its_rank() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    outgoing.set_tracks(&[0, 1]);
    let bulk = outgoing.open(of_track(1, 1));
    outgoing.write_endlessly(bulk);
    let later = outgoing.open(of_track(1, 1));
    outgoing.write(later, 50, true);
    outgoing.set_max_streams(30);
    let sound = outgoing.open(of_track(0, 0));
    outgoing.write(sound, 150, false);
    let first = outgoing.take(104).unwrap().piece;
    assert_eq!((first.track, outgoing.take(104).unwrap().piece.track), (0, 0));
    let lost = outgoing.take(104).unwrap().piece;
    outgoing.lost(&lost);
    outgoing.write(sound, 30, false);
    assert_eq!(outgoing.take(104).unwrap().piece.track, 0, "new data of a greater rank go before it");
    assert_eq!(outgoing.take(104).map(|offer| (offer.again, offer.piece.offset)), Some((true, 0)));
    assert!(!outgoing.take(104).unwrap().again);
}

/// A reset at the deadline is counted for its track, with the unacknowledged frames; other tracks are not affected.
#[test]
fn what_expires_is_counted_by_track() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    outgoing.set_tracks(&[0, 1]);
    let place = outgoing.open(of_track(1, 1));
    outgoing.write_frame(place, 80, (Stamp(1), Time::from_secs_f64(0.1 + 0.01 * 1.0)), true, false);
    outgoing.write_frame(place, 80, (Stamp(2), Time::from_secs_f64(0.1 + 0.01 * 2.0)), false, false);
    outgoing.write_frame(place, 80, (Stamp(3), Time::from_secs_f64(0.1 + 0.01 * 3.0)), false, true);
    let own = outgoing.open(of_track(0, 0));
    outgoing.write(own, 70, true);
    assert_eq!(outgoing.take(104).unwrap().piece.track, 0);
    let piece = outgoing.take(104).unwrap().piece;
    outgoing.acked(&piece);
    assert_eq!((outgoing.unsent(1), outgoing.has_settled(1)), (160, false));
    assert!(outgoing.expire(Time::from_secs_f64(0.119)).is_empty(), "the first frame came: the second is the oldest");
    let expired: Vec<_> =
        outgoing.expire(Time::from_secs_f64(0.12)).iter().map(|e| (e.track, e.frames, e.size)).collect();
    assert_eq!(expired, [(1, 2, 80)]);
    assert_eq!((outgoing.unsent(1), outgoing.has_settled(1), outgoing.has_settled(0)), (0, true, false));
    assert!(outgoing.take(104).is_none(), "nothing of it leaves any more");
    outgoing.withdraw(1, true);
    assert_eq!(outgoing.unsent(1), 0, "and nothing is taken back twice");
}

/// Withdrawing a track's data leaves nothing unsent on finished and unfinished streams; a fully sent stream is not
/// touched.
#[test]
fn what_never_left_is_taken_back_of_finished_streams_too() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    outgoing.set_tracks(&[0, 1]);
    for bytes in [50, 200, 200] {
        let place = outgoing.open(kind(0));
        outgoing.write_frame(place, bytes, (Stamp(0), Time::NEVER), false, true);
    }
    let going_on = outgoing.open(kind(0));
    outgoing.write_frame(going_on, 200, (Stamp(0), Time::NEVER), false, false);
    let others = outgoing.open(of_track(1, 1));
    outgoing.write(others, 70, true);
    let first = outgoing.take(104).unwrap().piece;
    let second = outgoing.take(104).unwrap().piece;
    assert_eq!((first.stream, first.fin, second.stream, second.fin), (2, true, 6, false));
    let cut: Vec<_> = outgoing.withdraw(0, true).iter().map(|e| (e.id, e.size, e.frames)).collect();
    assert_eq!(cut, [(6, u64::from(second.length), 1), (10, 0, 1)]);
    assert_eq!((outgoing.unsent(0), outgoing.unsent(1)), (0, 70));
    assert_eq!(next(&mut outgoing, 104), Some((18, 0, 70, true)), "the other track's goes on");
    assert!(outgoing.take(104).is_none(), "and nothing else leaves");
    outgoing.acked(&first);
    assert!(outgoing.has_settled(0), "all that is owed has come");
}

/// A frame that is written in parts is one frame: only its last piece marks its end, and its deadline applies to the
/// whole.
#[test]
fn a_frame_may_be_written_in_parts() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    let place = outgoing.open(kind(0));
    let at = (Stamp(4), Time::from_secs_f64(1.0));
    outgoing.write_part(place, 80, at, true, false);
    let first = outgoing.take(104).unwrap().piece;
    assert_eq!((first.length, first.last, first.key, first.captured.0), (80, false, true, 4));
    outgoing.acked(&first);
    outgoing.write_part(place, 40, at, true, true);
    let last = outgoing.take(104).unwrap().piece;
    assert_eq!((last.offset, last.length, last.last, last.fin), (80, 40, true, false));
    outgoing.write(place, 0, true);
    assert_eq!(next(&mut outgoing, 104), Some((2, 120, 0, true)));
    let expired = outgoing.expire(Time::from_secs_f64(1.0));
    assert_eq!(expired.iter().map(|e| (e.frames, e.size)).collect::<Vec<_>>(), [(1, 120)]);
}

/// Of the lowest priority, the oldest stream is dropped of which nothing was sent, unless it is its track's newest;
/// else the oldest.
#[test]
fn what_is_least_important_is_given_up_first() {
    let mut outgoing = Outgoing::new(FIRST_UNIDIRECTIONAL, 1 << 30, 1 << 30, 20);
    outgoing.set_tracks(&[0, 1]);
    let mut places = Vec::new();
    for (rank, track) in [(1, 1), (0, 0), (1, 1), (1, 1), (1, 1)] {
        places.push(outgoing.open(of_track(rank, track)));
        outgoing.write_frame(*places.last().unwrap(), 300, (Stamp(0), Time::NEVER), false, true);
    }
    while outgoing.streams[0].next == 0 {
        outgoing.take(104).unwrap(); // all of the more urgent stream, and the beginning of the oldest
    }
    outgoing.write_frame(places[1], 0, (Stamp(0), Time::NEVER), false, true);
    let mut given_up = |may: fn(u8) -> bool| {
        let (rank, place) = outgoing.lowest_priority(may)?;
        assert_eq!(outgoing.reset(place).map(|e| (e.track, e.frames)), Some((rank, 1)));
        assert!(outgoing.reset(place).is_none(), "once");
        Some(place)
    };
    assert_eq!(given_up(|track| track != 1), None, "of others nothing waits");
    let order: Vec<u32> = std::iter::from_fn(|| given_up(|_| true)).collect();
    assert_eq!(order, [places[2], places[3], places[0], places[4]], "the newest and what has begun come last");
}
