//! When slow start ends before a loss does: what window controllers share, whatever they do beyond it.
//!
//! One file a way: the kernel's [`hystart`], HyStart++ of RFC 9406 ([`hystart_plus_plus`]), and [`search`]. A controller keeps
//! a [`SlowStart`], tells it of each acknowledgement while its window is below the threshold, asks it how far the window may
//! grow, and does what its [`Verdict`] says.

mod hystart;
mod hystart_plus_plus;
mod search;

use crate::PathView;
use hystart::Hystart;
use hystart_plus_plus::HystartPlusPlus;
use paceline_units::Span;
use search::Search;

/// As they are written in scenarios.
pub(crate) const NAMES: &[&str] = &["standard", "hystart", "hystart++", "search"];
/// Their places in the list.
pub(crate) const STANDARD: f64 = 0.0;
pub(crate) const HYSTART: f64 = 1.0;
pub(crate) const HYSTART_PLUS_PLUS: f64 = 2.0;

/// What an acknowledgement told of the path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// It is not known to be full.
    On,
    /// It is full: the threshold becomes the window.
    Leave,
    /// What slow start has put into the queue is to drain: the window becomes this, in segments.
    Drain(f64),
    /// It has drained: window and threshold become this.
    LeaveAt(f64),
}

/// A slow start, in the way that was chosen.
#[derive(Clone, Debug)]
pub(crate) enum SlowStart {
    /// Until a loss (RFC 5681).
    Standard,
    Hystart(Hystart),
    HystartPlusPlus(HystartPlusPlus),
    Search(Box<Search>),
}

impl SlowStart {
    /// The way of that place in [`NAMES`].
    pub(crate) fn new(choice: f64) -> SlowStart {
        match choice as usize {
            0 => SlowStart::Standard,
            1 => SlowStart::Hystart(Hystart::default()),
            2 => SlowStart::HystartPlusPlus(HystartPlusPlus::new(hystart_plus_plus::LIMIT)),
            _ => SlowStart::Search(Box::default()),
        }
    }

    /// Its segments leave one by one: HyStart++ has no use for a limit then (RFC 9406 section 4.3, L).
    pub(crate) fn is_paced(&mut self) {
        if let SlowStart::HystartPlusPlus(hystart) = self {
            *hystart = HystartPlusPlus::new(u32::MAX);
        }
    }

    /// The connection stands, or slow start begins again: what was seen before says nothing any more.
    pub(crate) fn begin(&mut self, path: &PathView) {
        match self {
            SlowStart::Standard => {}
            SlowStart::Hystart(hystart) => hystart.begin(path),
            SlowStart::HystartPlusPlus(hystart) => hystart.begin(),
            SlowStart::Search(search) => **search = Search::default(),
        }
    }

    /// Sending begins again after a pause.
    pub(crate) fn restart(&mut self, path: &PathView) {
        if !matches!(self, SlowStart::Hystart(_)) {
            self.begin(path); // the kernel's HyStart goes on
        }
    }

    /// By how many segments an acknowledgement of `segments` lets the window grow, where slow start alone would let it by
    /// `standard`; `first`: no loss has set a threshold yet.
    pub(crate) fn growth(&self, segments: u32, standard: f64, first: bool) -> f64 {
        match self {
            SlowStart::HystartPlusPlus(hystart) if first => hystart.growth(segments),
            SlowStart::Standard | SlowStart::Hystart(_) | SlowStart::HystartPlusPlus(_) => standard,
            SlowStart::Search(search) => {
                if search.is_draining() {
                    0.0
                } else {
                    standard
                }
            }
        }
    }

    /// The same in whole segments: fractions wait for the next acknowledgement.
    pub(crate) fn whole_growth(&mut self, segments: u32, standard: u32, first: bool) -> u32 {
        match self {
            SlowStart::HystartPlusPlus(hystart) if first => hystart.whole_growth(segments),
            _ => self.growth(segments, f64::from(standard), first) as u32,
        }
    }

    /// An acknowledgement has come in slow start, at a window of `window`; `min_rtt`: the minimum round trip so far.
    pub(crate) fn on_ack(
        &mut self,
        rtt: Option<Span>,
        min_rtt: Span,
        window: f64,
        first: bool,
        path: &PathView,
    ) -> Verdict {
        let Some(rtt) = rtt else { return Verdict::On };
        let full = match self {
            SlowStart::Standard => false,
            SlowStart::Hystart(hystart) => hystart.on_ack(rtt, min_rtt, window, path),
            SlowStart::HystartPlusPlus(hystart) => first && hystart.on_ack(rtt, path),
            SlowStart::Search(search) => return search.on_ack(rtt, window, path),
        };
        if full { Verdict::Leave } else { Verdict::On }
    }
}
