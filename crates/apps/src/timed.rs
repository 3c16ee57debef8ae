//! Timed traffic: packets or frames whose times and sizes follow a model, independently of the network.

use crate::application::{Action, Period};
use crate::game::{Game, GameModel};
use crate::video::{Frames, FramesModel, Video, VideoModel};
use crate::voice::{Voice, VoiceModel};
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Time};

/// The model that yields the time and size of the next packet.
#[derive(Clone, Debug)]
enum Model {
    Game(Game),
    Voice(Voice),
    Video(Box<Video>),
    Frames(Frames),
}

/// A source of timed packets or frames.
#[derive(Clone, Debug)]
pub struct Timed {
    model: Model,
    period: Period,
    draws: Sequence,
    next: (Time, Size),
    /// Whether the last write, and the next one, is a key frame.
    key: (bool, bool),
    /// How many writes are left.
    left: u64,
    stopped: bool,
}

impl Timed {
    /// One direction of an online game within `period`.
    #[must_use]
    pub fn game(model: GameModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Model::Game(Game::new(model, period.start)), stream, period)
    }

    /// One direction of a voice call.
    #[must_use]
    pub fn voice(model: VoiceModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Model::Voice(Voice::new(model, period.start)), stream, period)
    }

    /// Modelled video.
    #[must_use]
    pub fn video(model: VideoModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Model::Video(Box::new(Video::new(model, period.start))), stream, period)
    }

    /// Recorded video.
    #[must_use]
    pub fn frames(model: FramesModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Model::Frames(Frames::new(model, period.start)), stream, period)
    }

    fn new(model: Model, stream: Stream, period: Period) -> Timed {
        let next = (period.start, Size::ZERO);
        let draws = Sequence::new(stream);
        let mut source = Timed { model, period, draws, next, key: (false, false), left: u64::MAX, stopped: false };
        source.advance();
        source
    }

    /// Limits the number of packets or frames, if `count` is given.
    #[must_use]
    pub fn ending_after(self, count: Option<u64>) -> Timed {
        Timed { left: count.unwrap_or(u64::MAX), ..self }
    }

    /// A voice source's pace; the others have no single packet size. See
    /// [`Application::pace`](crate::Application::pace).
    pub(crate) fn pace(&self) -> Option<(f64, Size)> {
        match &self.model {
            Model::Voice(voice) => Some(voice.pace()),
            Model::Game(_) | Model::Video(_) | Model::Frames(_) => None,
        }
    }

    fn advance(&mut self) {
        self.key = (self.key.1, matches!(&self.model, Model::Video(video) if video.is_key()));
        let (time, size) = match &mut self.model {
            Model::Game(game) => game.next(&mut self.draws),
            Model::Voice(voice) => voice.next(&mut self.draws),
            Model::Video(video) => video.next(&mut self.draws),
            Model::Frames(frames) => frames.next(),
        };
        self.next = (time.max(self.next.0), size);
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
        let (due, size) = self.next;
        if now < due || self.left == 0 {
            return Action::Wait;
        }
        self.left -= 1;
        self.advance();
        Action::Send(size)
    }

    /// Whether it writes nothing more, because it was stopped or has finished.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.is_over() || self.stopped
    }

    /// See [`crate::Application::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Whether the last write was a video's key frame.
    #[must_use]
    pub fn last_is_key_frame(&self) -> bool {
        self.key.0
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let next = if self.left > 0 { self.next.0 } else { Time::NEVER };
        Some(next.min(self.period.stop)).filter(|&at| !self.stopped && at < Time::NEVER)
    }
}

/// The writes of a source until it ends: times in seconds, sizes in bytes.
#[cfg(test)]
pub(crate) fn written(mut source: Timed) -> Vec<(f64, u64)> {
    let mut all = Vec::new();
    while let Some(now) = source.next_wake() {
        match source.next_action(now) {
            Action::Send(size) => all.push((now.as_secs_f64(), size.bytes())),
            other => assert_eq!(other, Action::Stop),
        }
    }
    all
}
