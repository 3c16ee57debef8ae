//! Controllers that are not compiled in: Python classes, functions of a shared library.
//!
//! Each has a [`Scheme`](crate::Scheme) whose [`Scheme::foreign`](crate::Scheme::foreign) says how to make its
//! controllers. Scenarios name it like any other scheme; in the registry's enums it is the variant `Foreign`. The
//! scheme states what its machine needs to know before the start, so that a controller need not exist before its flow
//! begins.

use crate::coupled::CoupledRate;
use crate::rtp::{FrameTime, MediaController, Probe, RtpEvent, RtpSettings};
use crate::tfrc::{RateController, Settings, TfrcEvent};
use crate::{
    Build, Controller, GaugeUnit, Gauges, LostSegment, Needs, PathView, Profile, RateSample, Scheme, TcpEvent,
    WindowController,
};
use core::fmt;
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};
use std::any::Any;

/// Any controller of TCP's machine.
pub type Window = dyn WindowController<Feedback = TcpEvent> + Send;
/// Any controller of TFRC's machine.
pub type Paced = dyn RateController<Feedback = TfrcEvent> + Send;
/// Any controller of RTP's machine.
pub type Media = dyn MediaController<Feedback = RtpEvent> + Send;

/// The arguments for making a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerArgs {
    /// The name of the flow that it controls, for messages.
    pub flow: String,
    /// Which implementation to follow.
    pub profile: Profile,
    /// The parameters' values, in the order of the scheme's parameters.
    pub values: Vec<f64>,
}

/// Makes a controller, or returns why it cannot; `Stream` supplies its random draws.
pub type Make<C> = Box<dyn Fn(&ControllerArgs, Stream) -> Result<Box<C>, String> + Send + Sync>;

/// How to make the controllers of a foreign scheme, and what is known before any is made.
pub struct Foreign {
    /// The names and units of their readings.
    pub gauges: Vec<(&'static str, GaugeUnit)>,
    /// How to make a controller, and what it requests of its machine.
    pub maker: Maker,
}

/// How to make a controller, and what it requests of its machine.
pub enum Maker {
    /// On TCP's machine.
    Window(Make<Window>, Needs),
    /// On TFRC's.
    Rate(Make<Paced>, Settings),
    /// On RTP's.
    Media(Make<Media>, RtpSettings),
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: &dyn fmt::Debug = match &self.maker {
            Maker::Window(_, needs) => needs,
            Maker::Rate(_, settings) => settings,
            Maker::Media(_, settings) => settings,
        };
        f.debug_struct("Foreign").field("settings", settings).finish_non_exhaustive()
    }
}

/// An error that stopped a foreign controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its flow.
    pub flow: String,
    /// The time of the error.
    pub at: Time,
    /// The error, as a message or a traceback.
    pub problem: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { flow, at, problem } = self;
        write!(f, "the controller of flow {flow} failed at {} s: {problem}", at.0 as f64 / 1e9)
    }
}

impl core::error::Error for Failure {}

impl Failure {
    /// Ends the run. Controller methods return no errors, since compiled-in controllers have none: this unwinds,
    /// without a panic message, to the caller of [`Failure::caught`].
    pub fn end_run(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }

    /// Returns the result of `work`, or the failure that ended it. Other panics continue to unwind.
    ///
    /// # Errors
    /// The failure.
    pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
        // AssertUnwindSafe: state that a failure leaves incomplete is dropped with the closure.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(Failure::of_panic)
    }

    /// The failure that a panic carries. Other panics continue to unwind.
    #[must_use]
    pub fn of_panic(panic: Box<dyn Any + Send>) -> Failure {
        match panic.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(other) => std::panic::resume_unwind(other),
        }
    }
}

/// A foreign controller, made when its flow begins: what the registry's enums hold.
pub struct Lazy<C: ?Sized + 'static, S> {
    make: &'static Make<C>,
    gauges: &'static [(&'static str, GaugeUnit)],
    settings: S,
    args: ControllerArgs,
    stream: Stream,
    /// Time between frames, if set.
    frames: Option<Span>,
    controller: Option<Box<C>>,
}

impl<C: ?Sized, S: Copy> Clone for Lazy<C, S> {
    /// A clone that has not begun: each run's machine starts from one.
    fn clone(&self) -> Self {
        Lazy { args: self.args.clone(), controller: None, ..*self }
    }
}

impl<C: ?Sized, S: fmt::Debug> fmt::Debug for Lazy<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("args", &self.args).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<C: ?Sized, S> Lazy<C, S> {
    fn new(of: &'static Foreign, (make, settings): (&'static Make<C>, S), profile: Profile, values: &[f64]) -> Self {
        let args = ControllerArgs { flow: String::new(), profile, values: values.to_vec() };
        Lazy { make, gauges: &of.gauges, settings, args, stream: Stream::new(0, ""), frames: None, controller: None }
    }

    /// Sets the flow that it belongs to.
    pub fn belongs_to(&mut self, flow: &str) {
        flow.clone_into(&mut self.args.flow);
    }

    #[inline(always)]
    fn begun(&mut self, now: Time) -> &mut C {
        if self.controller.is_none() {
            self.begin(now);
        }
        self.controller.as_mut().expect("made above")
    }

    #[cold]
    fn begin(&mut self, at: Time) {
        match (self.make)(&self.args, self.stream) {
            Ok(made) => self.controller = Some(made),
            Err(problem) => Failure { flow: self.args.flow.clone(), at, problem }.end_run(),
        }
    }

    fn get(&self) -> Option<&C> {
        self.controller.as_deref()
    }
}

impl<C: ?Sized + Controller, S> Lazy<C, S> {
    /// Reports the gauges; before the controller is made, the values that `begun` gives.
    fn report_to(&self, to: &mut dyn Gauges, begun: impl Fn(&str) -> f64) {
        match self.get() {
            Some(made) => made.gauges(to),
            None => self.gauges.iter().for_each(|(name, unit)| to.gauge(name, *unit, begun(name))),
        }
    }
}

/// Implements `Build` for foreign controllers, which are made from the scheme itself.
macro_rules! of_its_scheme {
    ($name:ty, $kind:path) => {
        impl Build for $name {
            const SCHEMES: &'static [Scheme] = &[];

            fn build(_profile: Profile, _values: &[f64]) -> Self {
                unreachable!("it has no schemes of its own")
            }

            fn of(scheme: &Scheme, profile: Profile, values: &[f64]) -> Option<Self> {
                let foreign = scheme.foreign?;
                match &foreign.maker {
                    $kind(make, settings) => Some(Lazy::new(foreign, (make, *settings), profile, values)),
                    _ => None,
                }
            }
        }
    };
}

/// A foreign controller for TCP's machine.
pub type ForeignWindow = Lazy<Window, Needs>;
/// For TFRC's machine.
pub type ForeignRate = Lazy<Paced, Settings>;
/// For RTP's machine.
pub type ForeignMedia = Lazy<Media, RtpSettings>;

impl ForeignMedia {
    /// The same controller, with these settings in place of its scheme's.
    #[must_use]
    pub fn asking(self, settings: RtpSettings) -> ForeignMedia {
        Lazy { settings, ..self }
    }
}

of_its_scheme!(ForeignWindow, Maker::Window);
of_its_scheme!(ForeignRate, Maker::Rate);
of_its_scheme!(ForeignMedia, Maker::Media);

impl Controller for ForeignWindow {
    type Feedback = TcpEvent;
    #[inline]
    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        self.begun(path.now).on_feedback(feedback, path);
    }
    fn gauges(&self, to: &mut dyn Gauges) {
        self.report_to(to, |name| match name {
            "cwnd" => self.window(),
            "ssthresh" => self.threshold(),
            _ => f64::NAN,
        });
    }
}

impl WindowController for ForeignWindow {
    #[inline]
    fn window(&self) -> f64 {
        self.get().map_or(1.0, WindowController::window)
    }
    #[inline]
    fn threshold(&self) -> f64 {
        self.get().map_or(f64::INFINITY, WindowController::threshold)
    }
    fn base_rtt(&self) -> Option<f64> {
        self.get()?.base_rtt()
    }
    fn needs(&self) -> Needs {
        self.settings
    }
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.begun(path.now).on_delivery(sample, path);
    }
    fn on_lost(&mut self, lost: &LostSegment, path: &PathView) {
        self.begun(path.now).on_lost(lost, path);
    }
    fn on_marks(&mut self, acked: u32, marked: u32, path: &PathView) {
        self.begun(path.now).on_marks(acked, marked, path);
    }
    fn pacing_rate(&self) -> f64 {
        self.get().map_or(f64::INFINITY, WindowController::pacing_rate)
    }
    fn send_quantum(&self) -> u32 {
        self.get().map_or(0, WindowController::send_quantum)
    }
    fn limits_itself(&self) -> bool {
        self.get().is_some_and(WindowController::limits_itself)
    }
    fn draw_from(&mut self, stream: Stream) {
        self.stream = stream;
    }
}

impl Controller for ForeignRate {
    type Feedback = TfrcEvent;
    fn on_feedback(&mut self, feedback: &TfrcEvent, path: &PathView) {
        self.begun(path.now).on_feedback(feedback, path);
    }
    fn gauges(&self, to: &mut dyn Gauges) {
        self.report_to(to, |_| f64::NAN);
    }
}

impl RateController for ForeignRate {
    fn rate(&self) -> f64 {
        self.get().map_or(1.0, RateController::rate)
    }
    fn pacing(&self) -> f64 {
        self.get().map_or(1.0, RateController::pacing)
    }
    fn in_slow_start(&self) -> bool {
        self.get().is_none_or(RateController::in_slow_start)
    }
    fn settings(&self) -> Settings {
        self.settings
    }
    fn draw_from(&mut self, stream: Stream) {
        self.stream = stream;
    }
}

impl Controller for ForeignMedia {
    type Feedback = RtpEvent;
    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        if self.controller.is_none()
            && let Some(period) = self.frames
        {
            self.begun(path.now).frames_every(period);
        }
        self.begun(path.now).on_feedback(feedback, path);
    }
    fn gauges(&self, to: &mut dyn Gauges) {
        self.report_to(to, |_| f64::NAN);
    }
}

impl MediaController for ForeignMedia {
    fn rate(&self) -> f64 {
        self.get().map_or(1.0, MediaController::rate)
    }
    fn target(&self) -> Option<Rate> {
        self.get()?.target()
    }
    fn settings(&self) -> RtpSettings {
        self.settings
    }
    fn window(&self) -> Option<Size> {
        self.get()?.window()
    }
    fn padding_rate(&self) -> f64 {
        self.get().map_or(0.0, MediaController::padding_rate)
    }
    fn draw_from(&mut self, stream: Stream) {
        self.stream = stream;
    }
    fn frames_every(&mut self, period: Span) {
        self.frames = Some(period);
    }
    fn frame_time(&mut self, size: Size) -> Option<FrameTime> {
        self.controller.as_mut()?.frame_time(size)
    }
    fn discards(&mut self) -> bool {
        self.controller.as_mut().is_some_and(|made| made.discards())
    }
    fn next_probe(&mut self) -> Option<Probe> {
        self.controller.as_mut()?.next_probe()
    }
    fn coupled(&self) -> Option<CoupledRate> {
        self.get()?.coupled()
    }
    fn share(&mut self, rate: Rate, now: Time) {
        self.begun(now).share(rate, now);
    }
}
