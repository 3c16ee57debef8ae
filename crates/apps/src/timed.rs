//! Traffic that comes at instants of its own: packets or frames whose times and sizes follow a law, whatever the network does.

use crate::application::{Action, Period};
use crate::game::{Game, GameModel};
use crate::video::{Frames, FramesModel, Video, VideoModel};
use crate::voice::{Voice, VoiceModel};
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Time};

/// What says when and how much comes next.
#[derive(Clone, Debug)]
enum Law {
    Game(Game),
    Voice(Voice),
    Video(Box<Video>),
    Frames(Frames),
}

/// A source of timed packets or frames.
#[derive(Clone, Debug)]
pub struct Timed {
    law: Law,
    period: Period,
    draws: Sequence,
    next: (Time, Size),
    /// What was handed over last, and what comes next, is a key frame.
    key: (bool, bool),
    /// How many may still be handed over.
    left: u64,
    stopped: bool,
}

impl Timed {
    /// One way of an online game within `period`.
    #[must_use]
    pub fn game(model: GameModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Law::Game(Game::new(model, period.start)), stream, period)
    }

    /// One way of a voice call.
    #[must_use]
    pub fn voice(model: VoiceModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Law::Voice(Voice::new(model, period.start)), stream, period)
    }

    /// Video of a model.
    #[must_use]
    pub fn video(model: VideoModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Law::Video(Box::new(Video::new(model, period.start))), stream, period)
    }

    /// Video as it was recorded.
    #[must_use]
    pub fn frames(model: FramesModel, stream: Stream, period: Period) -> Timed {
        Timed::new(Law::Frames(Frames::new(model, period.start)), stream, period)
    }

    fn new(law: Law, stream: Stream, period: Period) -> Timed {
        let next = (period.start, Size::ZERO);
        let draws = Sequence::new(stream);
        let mut source = Timed { law, period, draws, next, key: (false, false), left: u64::MAX, stopped: false };
        source.advance();
        source
    }

    /// The same, over after so many packets or frames, if that is given.
    #[must_use]
    pub fn ending_after(self, count: Option<u64>) -> Timed {
        Timed { left: count.unwrap_or(u64::MAX), ..self }
    }

    /// That of a voice, which alone of these has one packet size; see [`Application::pace`](crate::Application::pace).
    pub(crate) fn pace(&self) -> Option<(f64, Size)> {
        match &self.law {
            Law::Voice(voice) => Some(voice.pace()),
            Law::Game(_) | Law::Video(_) | Law::Frames(_) => None,
        }
    }

    fn advance(&mut self) {
        self.key = (self.key.1, matches!(&self.law, Law::Video(video) if video.is_key()));
        let (time, size) = match &mut self.law {
            Law::Game(game) => game.next(&mut self.draws),
            Law::Voice(voice) => voice.next(&mut self.draws),
            Law::Video(video) => video.next(&mut self.draws),
            Law::Frames(frames) => frames.next(),
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

    /// Whether it hands over nothing more, because of its stop or by itself.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.is_over() || self.stopped
    }

    /// See [`crate::Application::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Whether what was handed over last is a key frame of a video.
    #[must_use]
    pub fn made_key(&self) -> bool {
        self.key.0
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let next = if self.left > 0 { self.next.0 } else { Time::NEVER };
        Some(next.min(self.period.stop)).filter(|&at| !self.stopped && at < Time::NEVER)
    }
}

/// Times in seconds and sizes in bytes of what a source hands over in `seconds`.
#[cfg(test)]
pub(crate) fn handed_over(mut source: Timed) -> Vec<(f64, u64)> {
    let mut all = Vec::new();
    while let Some(now) = source.next_wake() {
        match source.next_action(now) {
            Action::Send(size) => all.push((now.as_secs_f64(), size.bytes())),
            other => assert_eq!(other, Action::Stop),
        }
    }
    all
}
