//! The server side of requests: its content, and what it writes in response to a request.

use crate::application::{Action, Period};
use crate::stream::{StreamModel, StreamSender};
use crate::web::WebModel;
use paceline_random::Stream;
use paceline_units::{Size, Time};
use std::collections::VecDeque;

/// A server's content. Both sides know the size of each response: the client as if from a header, so the response does
/// not carry it.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Pages, one per request, with random sizes.
    Pages {
        /// The distribution of their sizes.
        model: WebModel,
        /// The stream for drawing sizes.
        sizes: Stream,
    },
    /// A medium in pieces, one per request; the last may be shorter.
    Pieces {
        /// The medium's size.
        total: Size,
        /// The size of a piece; not zero.
        piece: Size,
    },
    /// A medium with a single request, written heartbeat by heartbeat.
    Whole(StreamModel),
}

impl Content {
    /// Pages of this model, drawn from a source's `stream`.
    #[must_use]
    pub const fn pages(model: WebModel, stream: Stream) -> Content {
        Content::Pages { model, sizes: WebModel::streams(stream).0 }
    }

    /// The size of the response to request `number`, from 0; `None` if there is no more content.
    #[must_use]
    pub fn size(&self, number: u32) -> Option<Size> {
        match self {
            Content::Pages { model, sizes } => Some(model.size(*sizes, number.into())),
            Content::Pieces { total, piece } => {
                let left = total.0.checked_sub(u64::from(number).saturating_mul(piece.0)).filter(|&left| left > 0)?;
                Some(Size(left.min(piece.0)))
            }
            Content::Whole(model) => (number == 0).then(|| model.total()),
        }
    }
}

/// A server: it writes only in response to requests.
#[derive(Clone, Debug)]
pub struct Server {
    content: Content,
    period: Period,
    /// Requests that have arrived and are not answered.
    pending: VecDeque<u32>,
    /// The medium that is being written.
    medium: Option<StreamSender>,
    /// Bytes written.
    written: u64,
    stopped: bool,
}

impl Server {
    /// A server with this content until the period's stop.
    #[must_use]
    pub fn new(content: Content, period: Period) -> Server {
        Server { content, period, pending: VecDeque::new(), medium: None, written: 0, stopped: false }
    }

    /// Request `number` has arrived.
    pub fn on_request(&mut self, number: u32) {
        self.pending.push_back(number);
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time) -> Action {
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            return Action::Stop;
        }
        while let Some(request) = self.pending.pop_front() {
            let Some(size) = self.content.size(request) else { continue };
            if let Content::Whole(model) = &self.content {
                self.medium = Some(StreamSender::new(model, Period { start: now, stop: Time::NEVER }));
                break;
            }
            self.written += size.0;
            return Action::Answer { request, size, last: true };
        }
        let Some(medium) = &mut self.medium else { return Action::Wait };
        match medium.next_action(now) {
            Action::Send(size) => {
                self.written += size.0;
                Action::Answer { request: 0, size, last: medium.next_wake().is_none() }
            }
            _ => Action::Wait,
        }
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let stop = (self.period.stop < Time::NEVER).then_some(self.period.stop);
        let next = self.medium.as_ref().and_then(StreamSender::next_wake);
        [next, stop].into_iter().flatten().min().filter(|_| !self.stopped)
    }

    /// Whether it may still receive requests for its content.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.stopped && self.total().is_none_or(|all| self.written < all.0)
    }

    /// See [`crate::Application::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_writing = self.medium.as_ref().is_some_and(|medium| medium.next_wake().is_some());
        self.total().is_some_and(|all| self.written >= all.0) && !is_writing
    }

    /// The size of all content; `None`: unlimited.
    fn total(&self) -> Option<Size> {
        match &self.content {
            Content::Pages { .. } => None,
            Content::Pieces { total, .. } => Some(*total),
            Content::Whole(model) => Some(model.total()),
        }
    }
}
