//! A controller's state: memory that Paceline owns and the library's functions fill.

use crate::abi::{Controller, Given, NONE, Path};
use core::ffi::{CStr, c_char, c_void};
use paceline_control::foreign::ControllerArgs;
use paceline_control::{Failure, GaugeUnit, Gauges, PathView};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::ffi::CString;

/// Static data of a library's controller, which live as long as the process.
#[derive(Debug)]
pub struct Known {
    /// The functions, whose library is never unloaded.
    pub of: &'static Controller,
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its gauges.
    pub gauges: Vec<(&'static str, GaugeUnit)>,
}

/// SAFETY: `Controller` holds pointers to constants of a library that stays loaded, and functions that by the header
/// may be called concurrently.
unsafe impl Send for Known {}
/// SAFETY: as above; nothing here is ever modified.
unsafe impl Sync for Known {}

/// The state of one controller.
#[derive(Debug)]
pub struct State {
    /// The controller's static data.
    pub known: &'static Known,
    /// Aligned to 16 bytes, as `malloc` does.
    memory: Vec<u128>,
    flow: String,
}

impl State {
    /// Zeroed memory, then initialised by the library's `begin`.
    pub fn new(known: &'static Known, args: &ControllerArgs, stream: Stream) -> State {
        let words = (known.of.state_size as usize).div_ceil(size_of::<u128>()).max(1);
        let mut state = State { known, memory: vec![0; words], flow: args.flow.clone() };
        if let Some(begin) = known.of.begin {
            let flow = CString::new(args.flow.as_str()).unwrap_or_default();
            let c = Given {
                values: args.values.as_ptr(),
                flow: flow.as_ptr(),
                random: stream.bits(0),
                profile: args.profile as u32,
                reserved: 0,
            };
            // SAFETY: the memory is as large as the library declared; what `c` points to outlives the call.
            unsafe { begin(state.get(), &raw const c) };
        }
        state
    }

    /// The address of its memory.
    #[inline]
    pub fn get(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// Reports the gauges.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        let Some(read) = self.known.of.read_gauges else { return };
        let mut values = vec![f64::NAN; self.known.gauges.len()];
        // SAFETY: there is room for as many values as the library has gauges; the state is only read.
        unsafe { read(self.memory.as_ptr().cast(), values.as_mut_ptr()) };
        for ((name, unit), value) in self.known.gauges.iter().zip(values) {
            to.gauge(name, *unit, value);
        }
    }

    /// Ends the run, with the library's own message, or with `wrong` for a number that no machine can use.
    #[cold]
    pub fn fail(&self, at: Time, failed: *const c_char, wrong: &str) -> ! {
        let problem = if failed.is_null() { format!("{}: {wrong}", self.known.name) } else { text(failed) };
        Failure { flow: self.flow.clone(), at, problem }.end_run()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(end) = self.known.of.end {
            // SAFETY: the state has begun, and is not used again.
            unsafe { end(self.get()) };
        }
    }
}

/// A text of the library; empty for a null pointer.
pub fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the header requires strings that end with a zero and live as long as the library.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A path as a C struct.
#[inline]
pub fn path(view: &PathView) -> Path {
    Path {
        now: view.now.0,
        srtt: view.srtt.0,
        rttvar: view.rttvar.0,
        min_rtt: view.min_rtt.0,
        in_flight: view.in_flight,
        acked: view.acked,
        next: view.next,
        receive_window: view.receive_window,
        segment: view.segment,
        reserved: 0,
    }
}

/// A time that may be unknown.
#[inline]
pub fn or_none(span: Option<Span>) -> u64 {
    span.map_or(NONE, |span| span.0)
}
