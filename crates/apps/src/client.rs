//! The client side of requests: when it sends requests, and how long the responses take.

use crate::application::{Period, Tally, Transfers};
use crate::server::Content;
use crate::web::{WebArrivals, WebModel};
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// The trigger of a client's requests.
#[derive(Clone, Debug)]
enum Trigger {
    /// A user: gaps after a page, or after a request.
    Pages { model: WebModel, gaps: Sequence },
    /// A player: the next piece when the previous one has arrived and this one fits into the buffer, in playing time.
    Pieces { piece: Span, max_buffer: Span },
}

/// A request without a complete response.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u32,
    /// The offset of its response's end among the bytes of all responses, in the order of requests.
    end: u64,
    since: Time,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    trigger: Trigger,
    content: Content,
    period: Period,
    /// When it sends its next request, if that depends on time alone.
    next: Option<Time>,
    /// Requests sent so far, and the bytes requested.
    requests: u32,
    bytes: u64,
    open: VecDeque<Open>,
    tally: Tally,
}

impl Client {
    /// A client that requests pages, the first at the period's start; `stream` is the source's.
    #[must_use]
    pub fn of_pages(model: WebModel, stream: Stream, period: Period) -> Client {
        let trigger = Trigger::Pages { model, gaps: WebModel::streams(stream).1 };
        Client::new(trigger, Content::pages(model, stream), period)
    }

    /// A player that requests pieces of the playing time `piece` and buffers at most `max_buffer`; if the content is a
    /// single item, it requests all at once.
    #[must_use]
    pub fn of_pieces(content: Content, piece: Span, max_buffer: Span, period: Period) -> Client {
        Client::new(Trigger::Pieces { piece, max_buffer }, content, period)
    }

    fn new(trigger: Trigger, content: Content, period: Period) -> Client {
        let next = Some(period.start);
        Client { trigger, content, period, next, requests: 0, bytes: 0, open: VecDeque::new(), tally: Tally::default() }
    }

    /// The next request, if one is due: whether to send it on a new connection. `held` is the playing time in the
    /// buffer. Call it until it returns `None`, at [`Client::next_wake`] and when a response has arrived.
    pub fn next_request(&mut self, now: Time, held: Span) -> Option<bool> {
        if now >= self.period.stop {
            self.next = None;
        }
        let arrived = self.next.filter(|&at| now >= at)?;
        let number = self.requests;
        let size = self.content.size(number).filter(|_| number < u32::MAX);
        let (fresh, next) = match &mut self.trigger {
            Trigger::Pages { model, gaps } => {
                let open = model.arrivals == WebArrivals::Open;
                (model.arrivals == WebArrivals::Think && number > 0, open.then(|| arrived + model.gap(gaps)))
            }
            Trigger::Pieces { piece, max_buffer } => {
                let over = (held + *piece).0.saturating_sub(max_buffer.0);
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

    /// `received` bytes of responses have arrived in order: completes all responses that end there.
    pub fn on_bytes(&mut self, now: Time, received: Size) {
        while let Some(&open) = self.open.front().filter(|open| received.0 >= open.end) {
            self.open.pop_front();
            self.completed(now, open);
        }
    }

    /// The response to this request is complete, whether or not the others are.
    pub fn on_answer(&mut self, now: Time, number: u32) {
        let place = self.open.iter().position(|open| open.number == number);
        if let Some(open) = place.and_then(|place| self.open.remove(place)) {
            self.completed(now, open);
        }
    }

    fn completed(&mut self, now: Time, open: Open) {
        self.tally.completed(now, open.since);
        match &mut self.trigger {
            Trigger::Pages { model, .. } if model.arrivals == WebArrivals::Open => {}
            Trigger::Pages { model, gaps } => self.next = Some(now + model.gap(gaps)),
            Trigger::Pieces { .. } => self.next = Some(now),
        }
    }

    /// When it sends its next request, unless something arrives before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        self.next.filter(|&at| at < self.period.stop)
    }

    /// Starts the measurement: requests count from now on.
    pub fn measure_from_here(&mut self) {
        self.tally.restart();
    }

    /// Statistics of its requests, from sending one to the last byte of its response. A player's requests do not count
    /// as transfers.
    #[must_use]
    pub fn transfers(&self) -> Transfers {
        match self.trigger {
            Trigger::Pages { .. } => self.tally.read(self.open.len() as u64),
            Trigger::Pieces { .. } => Transfers::default(),
        }
    }
}
