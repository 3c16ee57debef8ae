//! A controller of TCP's machine in Python.

use super::events::{self, PathView};
use super::{Base, Callbacks, GaugeNames, usable};
use paceline_control::foreign::{ControllerArgs, Window};
use paceline_control::monitor_interval::{Decision, Every, Monitor, Monitored, Policy};
use paceline_control::{
    Controller, Gauges, LostSegment, Needs, PathView as View, RateSample, TcpEvent, WindowController as Kind,
};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Maximum window in segments.
const MAX_WINDOW: f64 = 1e9;
/// Maximum rate, in bit/s.
pub const MAX_RATE: f64 = 1e15;

/// Base of controllers that set a window.
#[pyclass(extends = Base, subclass, module = "paceline")]
#[derive(Debug)]
pub struct WindowController {
    /// In segments.
    window: f64,
    threshold: f64,
    /// In bit/s.
    pacing: f64,
    quantum: u32,
    base_rtt: Option<f64>,
    holds_back: bool,
}

#[pymethods]
impl WindowController {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let own = WindowController {
            window: 1.0,
            threshold: f64::INFINITY,
            pacing: f64::INFINITY,
            quantum: 0,
            base_rtt: None,
            holds_back: false,
        };
        Ok(PyClassInitializer::from(Base::by_hand(py)?).add_subclass(own))
    }

    #[getter]
    fn window(&self) -> f64 {
        self.window
    }

    #[setter]
    fn set_window(&mut self, value: f64) -> PyResult<()> {
        self.window = usable("window", value, 1.0, MAX_WINDOW, "segments")?;
        Ok(())
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.threshold
    }

    #[setter]
    fn set_threshold(&mut self, value: f64) -> PyResult<()> {
        self.threshold = usable("threshold", value, 0.0, f64::INFINITY, "segments")?;
        Ok(())
    }

    #[getter]
    fn pacing_bps(&self) -> f64 {
        self.pacing
    }

    #[setter]
    fn set_pacing_bps(&mut self, value: f64) -> PyResult<()> {
        let value = if value == f64::INFINITY { value } else { usable("pacing_bps", value, 1.0, MAX_RATE, "bit/s")? };
        self.pacing = value;
        Ok(())
    }

    #[getter]
    fn send_quantum_bytes(&self) -> u32 {
        self.quantum
    }

    #[setter]
    fn set_send_quantum_bytes(&mut self, value: f64) -> PyResult<()> {
        self.quantum = usable("send_quantum_bytes", value, 0.0, 1e9, "B")? as u32;
        Ok(())
    }

    #[getter]
    fn base_rtt_s(&self) -> Option<f64> {
        self.base_rtt
    }

    #[setter]
    fn set_base_rtt_s(&mut self, value: Option<f64>) -> PyResult<()> {
        self.base_rtt = value.map(|value| usable("base_rtt_s", value, 0.0, 1e6, "s")).transpose()?;
        Ok(())
    }

    #[getter]
    fn holds_back(&self) -> bool {
        self.holds_back
    }

    #[setter]
    fn set_holds_back(&mut self, value: bool) {
        self.holds_back = value;
    }
}

/// The values that the machine reads, as of the last call.
#[derive(Clone, Copy, Debug)]
struct Own {
    window: f64,
    threshold: f64,
    /// In bytes/s.
    pacing: f64,
    quantum: u32,
    base_rtt: Option<f64>,
    holds_back: bool,
}

/// A Python object as a controller.
struct Called {
    callbacks: Callbacks,
    object: Py<WindowController>,
    on_feedback: Py<PyAny>,
    on_delivery: Option<Py<PyAny>>,
    on_lost: Option<Py<PyAny>>,
    on_marks: Option<Py<PyAny>>,
    needs: Needs,
    decision: Own,
}

/// A controller around an object whose `__init__` has run, called at each event or once per interval.
pub fn controller(
    object: &Bound<'_, WindowController>,
    args: &ControllerArgs,
    gauges: GaugeNames,
    (needs, every): (Needs, Option<Every>),
) -> PyResult<Box<Window>> {
    let any = object.as_any();
    if let Some(every) = every {
        let controller = IntervalController {
            callbacks: Callbacks::new(args, gauges),
            on_begin: super::method(any, "on_begin")?,
            on_interval: any.getattr("on_interval")?.unbind(),
            object: object.clone().unbind(),
        };
        return Ok(Box::new(Monitor::new(controller, every, needs.pacing)));
    }
    Ok(Box::new(Called {
        callbacks: Callbacks::new(args, gauges),
        on_feedback: any.getattr("on_feedback")?.unbind(),
        on_delivery: super::method(any, "on_delivery")?,
        on_lost: super::method(any, "on_lost")?,
        on_marks: super::method(any, "on_marks")?,
        needs,
        decision: read(object),
        object: object.clone().unbind(),
    }))
}

#[inline]
fn read(object: &Bound<'_, WindowController>) -> Own {
    let own = object.borrow();
    Own {
        window: own.window,
        threshold: own.threshold,
        pacing: own.pacing / 8.0,
        quantum: own.quantum,
        base_rtt: own.base_rtt,
        holds_back: own.holds_back,
    }
}

impl Called {
    /// Calls one of its methods, and reads its decision.
    #[inline]
    fn call(&mut self, path: &View, call: impl FnOnce(&Called, Python<'_>, PathView) -> PyResult<()>) {
        self.decision = self.callbacks.call(path.now, |py| {
            call(self, py, PathView::of(path))?;
            Ok(read(self.object.bind(py)))
        });
    }

    /// Calls an optional method.
    #[inline]
    fn call_if<A: for<'py> PyCallArgs<'py>>(
        &mut self,
        path: &View,
        method: impl Fn(&Called) -> Option<&Py<PyAny>>,
        arguments: impl FnOnce(PathView) -> A,
    ) {
        if method(self).is_some() {
            self.call(path, |own, py, view| match method(own) {
                Some(method) => method.call1(py, arguments(view)).map(drop),
                None => Ok(()),
            });
        }
    }
}

impl Controller for Called {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &View) {
        self.call(path, |own, py, view| own.on_feedback.call1(py, (events::of_tcp(py, feedback)?, view)).map(drop));
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.decision.window);
        to.packets("ssthresh", self.decision.threshold);
        self.callbacks.gauges(self.object.as_any(), to);
    }
}

impl Kind for Called {
    fn window(&self) -> f64 {
        self.decision.window
    }

    fn threshold(&self) -> f64 {
        self.decision.threshold
    }

    fn base_rtt(&self) -> Option<f64> {
        self.decision.base_rtt
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_delivery(&mut self, sample: &RateSample, path: &View) {
        self.call_if(path, |own| own.on_delivery.as_ref(), |view| (events::of_delivery(sample), view));
    }

    fn on_lost(&mut self, lost: &LostSegment, path: &View) {
        self.call_if(path, |own| own.on_lost.as_ref(), |view| (events::of_lost(lost), view));
    }

    fn on_marks(&mut self, acked: u32, marked: u32, path: &View) {
        self.call_if(path, |own| own.on_marks.as_ref(), |view| (acked, marked, view));
    }

    fn pacing_rate(&self) -> f64 {
        self.decision.pacing
    }

    fn send_quantum(&self) -> u32 {
        self.decision.quantum
    }

    fn limits_itself(&self) -> bool {
        self.decision.holds_back
    }
}

/// A Python object that is called once per interval.
struct IntervalController {
    callbacks: Callbacks,
    object: Py<WindowController>,
    on_begin: Option<Py<PyAny>>,
    on_interval: Py<PyAny>,
}

impl IntervalController {
    /// Calls it with the state `now`, and reads its decision.
    fn decision(
        &self,
        now: Decision,
        path: &View,
        call: impl FnOnce(Python<'_>, PathView) -> PyResult<()>,
    ) -> Decision {
        self.callbacks.call(path.now, |py| {
            let mut own = self.object.borrow_mut(py);
            (own.window, own.pacing) = (now.window, now.pacing * 8.0);
            drop(own);
            call(py, PathView::of(path))?;
            let decided = read(self.object.bind(py));
            Ok(Decision { window: decided.window, pacing: decided.pacing })
        })
    }
}

impl Policy for IntervalController {
    fn begin(&mut self, window: f64, path: &View) -> Decision {
        let now = Decision { window: window.max(1.0), pacing: f64::INFINITY };
        self.decision(now, path, |py, view| match &self.on_begin {
            Some(method) => method.call1(py, (view,)).map(drop),
            None => Ok(()),
        })
    }

    fn decide(&mut self, interval: &Monitored, now: Decision, path: &View) -> Decision {
        self.decision(now, path, |py, view| self.on_interval.call1(py, (events::of_interval(interval), view)).map(drop))
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        self.callbacks.gauges(self.object.as_any(), to);
    }
}
