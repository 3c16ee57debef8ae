//! Ways to end slow start before a loss, shared by the window controllers.
//!
//! One file each: the kernel's [`hystart`], HyStart++ of RFC 9406 ([`hystart_plus_plus`]), and [`search`]. A controller
//! keeps a [`SlowStart`], reports each acknowledgement to it while its window is below the threshold, gets from it how
//! far the window may grow, and obeys its [`Verdict`].

mod hystart;
mod hystart_plus_plus;
mod search;

use crate::PathView;
use hystart::Hystart;
use hystart_plus_plus::HystartPlusPlus;
use paceline_units::Span;
use search::Search;

/// Names in scenarios.
pub(crate) const NAMES: &[&str] = &["standard", "hystart", "hystart++", "search"];
/// Their indices in the list.
pub(crate) const STANDARD: f64 = 0.0;
pub(crate) const HYSTART: f64 = 1.0;
pub(crate) const HYSTART_PLUS_PLUS: f64 = 2.0;

/// What an acknowledgement implies for slow start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// Continue: the path is not known to be full.
    Continue,
    /// The path is full: the threshold becomes the window.
    Leave,
    /// Drain the queue that slow start has built: the window becomes this, in segments.
    Drain(f64),
    /// The queue has drained: window and threshold become this.
    LeaveAt(f64),
}

/// A slow start of the chosen kind.
#[derive(Clone, Debug)]
pub(crate) enum SlowStart {
    /// Until a loss (RFC 5681).
    Standard,
    Hystart(Hystart),
    HystartPlusPlus(HystartPlusPlus),
    Search(Box<Search>),
}

impl SlowStart {
    /// The slow start at this index in [`NAMES`].
    pub(crate) fn new(choice: f64) -> SlowStart {
        match choice as usize {
            0 => SlowStart::Standard,
            1 => SlowStart::Hystart(Hystart::default()),
            2 => SlowStart::HystartPlusPlus(HystartPlusPlus::new(hystart_plus_plus::LIMIT)),
            _ => SlowStart::Search(Box::default()),
        }
    }

    /// Segments are paced: HyStart++ needs no limit then (RFC 9406 section 4.3, L).
    pub(crate) fn is_paced(&mut self) {
        if let SlowStart::HystartPlusPlus(hystart) = self {
            *hystart = HystartPlusPlus::new(u32::MAX);
        }
    }

    /// The connection is established, or slow start begins again: earlier measurements are dropped.
    pub(crate) fn begin(&mut self, path: &PathView) {
        match self {
            SlowStart::Standard => {}
            SlowStart::Hystart(hystart) => hystart.begin(path),
            SlowStart::HystartPlusPlus(hystart) => hystart.begin(),
            SlowStart::Search(search) => **search = Search::default(),
        }
    }

    /// Sending resumes after a pause.
    pub(crate) fn restart(&mut self, path: &PathView) {
        if !matches!(self, SlowStart::Hystart(_)) {
            self.begin(path); // the kernel's HyStart goes on
        }
    }

    /// Segments by which an acknowledgement of `segments` grows the window, where standard slow start would grow it by
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

    /// The same in whole segments: fractions are kept for the next acknowledgement.
    pub(crate) fn whole_growth(&mut self, segments: u32, standard: u32, first: bool) -> u32 {
        match self {
            SlowStart::HystartPlusPlus(hystart) if first => hystart.whole_growth(segments),
            _ => self.growth(segments, f64::from(standard), first) as u32,
        }
    }

    /// Handles an acknowledgement in slow start; `window` is the current window, `min_rtt` the minimum round trip so
    /// far.
    pub(crate) fn on_ack(
        &mut self,
        rtt: Option<Span>,
        min_rtt: Span,
        window: f64,
        first: bool,
        path: &PathView,
    ) -> Verdict {
        let Some(rtt) = rtt else { return Verdict::Continue };
        let full = match self {
            SlowStart::Standard => false,
            SlowStart::Hystart(hystart) => hystart.on_ack(rtt, min_rtt, window, path),
            SlowStart::HystartPlusPlus(hystart) => first && hystart.on_ack(rtt, path),
            SlowStart::Search(search) => return search.on_ack(rtt, window, path),
        };
        if full { Verdict::Leave } else { Verdict::Continue }
    }
}
