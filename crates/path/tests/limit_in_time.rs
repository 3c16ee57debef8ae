//! Queues whose limit is a time, before a link whose rate changes.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    CoDelModel, DualPi2Model, Fate, FqCoDelModel, FqPieModel, Keys, Limit, Link, LinkModel, Measure, PieModel,
    QdiscLink, Queue, QueueLimit, RateModel, RedModel, Schedule,
};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

const MS: u64 = 1_000_000;

fn packet(time: u64) -> Packet {
    let (flow, seq, stamp, cursor, extra) = (FlowId(0), 0, Stamp(0), 0, ExtraId::NONE);
    Packet { time: Time(time), flow, seq, stamp, cursor, extra, size: 1000, flags: Flags::NONE }
}

/// 8 Mbit/s, a packet a millisecond; 16 from 100 ms on; 4 from 200 ms on; nothing from 300 to 400 ms. 10 ms may wait.
fn model(queue: Queue) -> LinkModel {
    let steps = [(0, 8), (100, 16), (200, 4), (300, 0), (400, 8)];
    let steps = steps.map(|(at, mbps)| (Time(at * MS), Rate(mbps * 1_000_000)));
    let mut model = LinkModel::new(Rate(8_000_000), Span::ZERO, queue);
    model.rate = RateModel::Schedule(Schedule::new(&steps, None).expect("a schedule"));
    model.limit_in_time = Some(Span(10 * MS));
    model
}

/// Four packets come each millisecond; how many wait when the last of them has come, at each of these times in ms.
fn waiting(mut admit: impl FnMut(Packet), mut packets: impl FnMut(u64) -> u64) -> [u64; 6] {
    let mut at = [99, 199, 205, 299, 399, 499].into_iter().map(|time| (time, 0)).collect::<Vec<_>>();
    for ms in 0..500 {
        for _ in 0..4 {
            admit(packet(ms * MS + 1));
        }
        at.iter_mut().filter(|(time, _)| *time == ms).for_each(|(_, waits)| *waits = packets(ms * MS + 2));
    }
    core::array::from_fn(|i| at[i].1)
}

/// Without drops of its own before its limit.
fn never_red() -> RedModel {
    let limit = Limit::Bytes(Size(10_000));
    RedModel { min_threshold: Some(500.0), max_threshold: Some(600.0), ..RedModel::new(limit) }
}

#[test]
fn a_limit_in_time_follows_the_rate() {
    for queue in [Queue::DropTail(Limit::Bytes(Size(10_000))), Queue::Red(never_red())] {
        let link = std::cell::RefCell::new(Link::new(&model(queue.clone()), Measure::ALL, Stream::new(1, "link")));
        link.borrow_mut().record(Span(MS / 2));
        let mut admit = |mut packet: Packet| {
            let _ = link.borrow_mut().admit(&mut packet);
        };
        let _ = waiting(&mut admit, |_| 0);
        link.borrow_mut().finish(Time(500 * MS));
        let series = link.borrow_mut().take_series();
        let at = |time: u64| series.packets[(2 * time + 1) as usize];
        // Half a millisecond after they came: at 16 Mbit/s one has left.
        assert_eq!([99, 199, 205, 299, 399, 499].map(at), [10, 19, 16, 5, 5, 10], "{queue:?}");
    }
}

#[test]
fn managed_queues_too() {
    let max_bytes = Limit::Bytes(Size(10_000));
    let forever = Span::from_secs(1000);
    let codel = CoDelModel { target: forever, interval: forever, ..CoDelModel::new(max_bytes) };
    // one at a time, in place of half the queue
    let fair = FqCoDelModel { codel, batch: 1, ..FqCoDelModel::new(max_bytes) };
    let pie = PieModel { target: forever, burst: forever, ..PieModel::new(max_bytes) };
    let dual = DualPi2Model { target: forever, ..DualPi2Model::linux(max_bytes) };
    // Of the 20 that wait at 200 ms two have left by the time at which the next come, and two more by 205 ms, 2 ms each; at a
    // rate of zero nothing comes or goes.
    let kept = [10, 20, 16, 5, 5, 10];
    // which drops what has come before, all but one
    let cut = [10, 20, 5, 5, 1, 10];
    for (queue, expected) in [
        (Queue::DropTail(max_bytes), kept),
        (Queue::Red(never_red()), kept),
        (Queue::CoDel(codel), kept),
        (Queue::Pie(pie), kept),
        (Queue::FqCoDel(fair), cut),
        (Queue::DualPi2(dual), kept),
        (Queue::FqPie(FqPieModel { pie, ..FqPieModel::new(max_bytes) }), kept),
    ] {
        let stream = Stream::new(1, "link");
        let link = std::cell::RefCell::new(QdiscLink::new(&model(queue.clone()), Measure::ALL, Keys::Flow, stream));
        let onward = &mut |_: Fate, _: Packet, _: Time| {};
        let found = waiting(
            |packet| {
                link.borrow_mut().advance(Time(packet.time.0 + 1), &mut |_, _, _| {});
                link.borrow_mut().arrive(packet, &mut |_, _, _| {});
            },
            |_| link.borrow().waiting(),
        );
        link.borrow_mut().advance(Time(500 * MS), onward);
        assert_eq!(found, expected, "{queue:?}");
    }
}

/// A limit in packets that another follows: what waits already stays.
#[test]
fn a_limit_that_steps() {
    let limits = [
        QueueLimit::Fixed(Limit::Bytes(Size(4_000))),
        QueueLimit::InTime(Span(20 * MS)),
        QueueLimit::Fixed(Limit::Packets(2)),
    ];
    let steps: Vec<_> = [100, 200, 300].map(|at| Time(at * MS)).into_iter().zip(limits).collect();
    for queue in [
        Queue::DropTail(Limit::Packets(10)),
        Queue::CoDel(CoDelModel {
            target: Span::from_secs(1000),
            interval: Span::from_secs(1000),
            ..CoDelModel::new(Limit::Packets(10))
        }),
    ] {
        let mut model = LinkModel::new(Rate(8_000_000), Span::ZERO, queue);
        model.limit_steps.clone_from(&steps);
        let at = [99, 199, 205, 299, 399, 499];
        // from 4 to 20, three more each millisecond; by 399 ms the 20 that waited have gone down to 2
        let expected = [10, 4, 20, 20, 2, 2];
        let link = std::cell::RefCell::new(QdiscLink::new(&model, Measure::ALL, Keys::Flow, Stream::new(1, "link")));
        let admit = |packet: Packet| {
            let mut link = link.borrow_mut();
            link.advance(Time(packet.time.0 + 1), &mut |_, _, _| {});
            link.arrive(packet, &mut |_, _, _| {});
        };
        assert_eq!(waiting(admit, |_| link.borrow().waiting()), expected, "{:?}", model.queue);
        if model.queue.decides_at_departure() {
            continue;
        }
        let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
        link.record(Span(MS / 2));
        let admit = |mut packet: Packet| {
            let _ = link.admit(&mut packet);
        };
        let _ = waiting(admit, |_| 0);
        link.finish(Time(500 * MS));
        let series = link.take_series();
        assert_eq!(at.map(|time| u64::from(series.packets[2 * time + 1])), expected);
    }
}
