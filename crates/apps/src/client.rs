//! The side of requests that asks: when it asks, and for how long it waits for the answer.

use crate::application::{Period, Tally, Transfers};
use crate::server::Content;
use crate::web::{WebArrivals, WebModel};
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// What makes a client ask.
#[derive(Clone, Debug)]
enum Law {
    /// Its user: gaps after a page, or after a request.
    Pages { model: WebModel, gaps: Sequence },
    /// Its player: the next piece when the one before has come and this one fits into what it holds at most, in playing time.
    Pieces { piece: Span, room: Span },
}

/// A request on its way, or its answer.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u32,
    /// Where its answer ends among the bytes of all, in the order in which they were asked for.
    end: u64,
    since: Time,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    law: Law,
    content: Content,
    period: Period,
    /// When it next asks by itself.
    next: Option<Time>,
    /// So many requests have left it, for so many bytes.
    requests: u32,
    bytes: u64,
    open: VecDeque<Open>,
    tally: Tally,
}

impl Client {
    /// One that asks for pages, the first at the period's start; `stream` is that of the source.
    #[must_use]
    pub fn of_pages(model: WebModel, stream: Stream, period: Period) -> Client {
        let law = Law::Pages { model, gaps: WebModel::streams(stream).1 };
        Client::new(law, Content::pages(model, stream), period)
    }

    /// A player that asks for pieces, each of the playing time `piece`, and holds `room` at most; for all at once if
    /// the content is whole.
    #[must_use]
    pub fn of_pieces(content: Content, piece: Span, room: Span, period: Period) -> Client {
        Client::new(Law::Pieces { piece, room }, content, period)
    }

    fn new(law: Law, content: Content, period: Period) -> Client {
        let next = Some(period.start);
        Client { law, content, period, next, requests: 0, bytes: 0, open: VecDeque::new(), tally: Tally::default() }
    }

    /// What it has to ask now, its player holding what lasts for `held`: whether on a fresh connection. To be called again until it
    /// gives `None`, at [`Client::next_wake`] and when an answer has come.
    pub fn next_request(&mut self, now: Time, held: Span) -> Option<bool> {
        if now >= self.period.stop {
            self.next = None;
        }
        let arrived = self.next.filter(|&at| now >= at)?;
        let number = self.requests;
        let size = self.content.size(number).filter(|_| number < u32::MAX);
        let (fresh, next) = match &mut self.law {
            Law::Pages { model, gaps } => {
                let open = model.arrivals == WebArrivals::Open;
                (model.arrivals == WebArrivals::Think && number > 0, open.then(|| arrived + model.gap(gaps)))
            }
            Law::Pieces { piece, room } => {
                let over = (held + *piece).0.saturating_sub(room.0);
                if number > 0 && over > 0 && size.is_some() {
                    self.next = Some(now + Span(over));
                    return None;
                }
                (false, None)
            }
        };
        self.next = next;
        let size = size?;
        self.requests += 1;
        self.bytes += size.0;
        self.open.push_back(Open { number, end: self.bytes, since: now });
        self.tally.started();
        Some(fresh)
    }

    /// So many bytes of answers have come in order: all answers that end there are complete.
    pub fn on_bytes(&mut self, now: Time, received: Size) {
        while let Some(&open) = self.open.front().filter(|open| received.0 >= open.end) {
            self.open.pop_front();
            self.completed(now, open);
        }
    }

    /// The answer to this request is complete, whatever the others are.
    pub fn on_answer(&mut self, now: Time, number: u32) {
        let place = self.open.iter().position(|open| open.number == number);
        if let Some(open) = place.and_then(|place| self.open.remove(place)) {
            self.completed(now, open);
        }
    }

    fn completed(&mut self, now: Time, open: Open) {
        self.tally.completed(now, open.since);
        match &mut self.law {
            Law::Pages { model, .. } if model.arrivals == WebArrivals::Open => {}
            Law::Pages { model, gaps } => self.next = Some(now + model.gap(gaps)),
            Law::Pieces { .. } => self.next = Some(now),
        }
    }

    /// When it next asks, whatever comes until then.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        self.next.filter(|&at| at < self.period.stop)
    }

    /// Requests count from now on.
    pub fn measure_from_here(&mut self) {
        self.tally.restart();
    }

    /// How its requests went: from asking to the last byte of the answer. Those of a player are no transfers.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        match self.law {
            Law::Pages { .. } => self.tally.read(self.open.len() as u64),
            Law::Pieces { .. } => Transfers::default(),
        }
    }
}
