//! A controller of RTP's machine in Python.

use super::events::{self, PathView};
use super::window::MAX_RATE;
use super::{Base, Callbacks, GaugeNames, usable};
use paceline_control::foreign::{ControllerArgs, Media};
use paceline_control::{Controller, Gauges, MediaController as Kind, PathView as View, Probe, RtpEvent, RtpSettings};
use paceline_units::{Rate, Size, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::VecDeque;

/// Maximum waiting probe clusters.
const MAX_PROBES: usize = 64;

/// Base of media controllers over RTP.
#[pyclass(extends = Base, subclass, module = "paceline")]
#[derive(Debug)]
pub struct MediaController {
    /// These three in bit/s.
    rate: f64,
    target: Option<f64>,
    filling: f64,
    /// In bytes.
    window: Option<f64>,
    /// In seconds; None if the application writes no frames.
    frame_period: Option<f64>,
    probes: VecDeque<Probe>,
    clusters: u32,
}

#[pymethods]
impl MediaController {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let own = MediaController {
            rate: 1.0,
            target: None,
            filling: 0.0,
            window: None,
            frame_period: None,
            probes: VecDeque::new(),
            clusters: 0,
        };
        Ok(PyClassInitializer::from(Base::by_hand(py)?).add_subclass(own))
    }

    #[getter]
    fn rate_bps(&self) -> f64 {
        self.rate
    }

    #[setter]
    fn set_rate_bps(&mut self, value: f64) -> PyResult<()> {
        self.rate = usable("rate_bps", value, 1.0, MAX_RATE, "bit/s")?;
        Ok(())
    }

    #[getter]
    fn target_bps(&self) -> Option<f64> {
        self.target
    }

    #[setter]
    fn set_target_bps(&mut self, value: Option<f64>) -> PyResult<()> {
        self.target = value.map(|value| usable("target_bps", value, 1.0, MAX_RATE, "bit/s")).transpose()?;
        Ok(())
    }

    #[getter]
    fn filling_bps(&self) -> f64 {
        self.filling
    }

    #[setter]
    fn set_filling_bps(&mut self, value: f64) -> PyResult<()> {
        self.filling = usable("filling_bps", value, 0.0, MAX_RATE, "bit/s")?;
        Ok(())
    }

    #[getter]
    fn window_bytes(&self) -> Option<f64> {
        self.window
    }

    #[setter]
    fn set_window_bytes(&mut self, value: Option<f64>) -> PyResult<()> {
        self.window = value.map(|value| usable("window_bytes", value, 0.0, 1e15, "B")).transpose()?;
        Ok(())
    }

    #[getter]
    fn frame_period_s(&self) -> Option<f64> {
        self.frame_period
    }

    /// Sends a probe cluster at its own rate; returns the id that events use for it.
    #[pyo3(signature = (rate_bps, size, packets = 5))]
    fn probe(&mut self, rate_bps: f64, size: f64, packets: u32) -> PyResult<u32> {
        let rate = Rate::from_bps(usable("rate_bps", rate_bps, 1.0, MAX_RATE, "bit/s")? as u64);
        let bytes = Size::from_bytes(usable("size", size, 1.0, 1e9, "B")? as u64);
        if self.probes.len() >= MAX_PROBES {
            return Err(PyValueError::new_err(format!("{MAX_PROBES} probes wait already")));
        }
        self.clusters += 1;
        self.probes.push_back(Probe { id: self.clusters, rate, bytes, packets });
        Ok(self.clusters)
    }
}

/// A Python object as a controller.
struct Called {
    callbacks: Callbacks,
    object: Py<MediaController>,
    on_feedback: Py<PyAny>,
    on_timer: Option<Py<PyAny>>,
    settings: RtpSettings,
    /// Rates in bytes/s.
    rate: f64,
    filling: f64,
    target: Option<Rate>,
    window: Option<Size>,
    probes: VecDeque<Probe>,
}

/// A controller around an object whose `__init__` has run.
pub fn controller(
    object: &Bound<'_, MediaController>,
    args: &ControllerArgs,
    gauges: GaugeNames,
    settings: RtpSettings,
) -> PyResult<Box<Media>> {
    let any = object.as_any();
    Ok(Box::new(Called {
        callbacks: Callbacks::new(args, gauges),
        on_feedback: any.getattr("on_feedback")?.unbind(),
        on_timer: super::method(any, "on_timer")?,
        settings,
        rate: 1.0,
        filling: 0.0,
        target: None,
        window: None,
        probes: VecDeque::new(),
        object: object.clone().unbind(),
    }))
}

impl Controller for Called {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &View) {
        let (rate, filling, target, window, probes) = self.callbacks.call(path.now, |py| {
            match events::of_rtp(py, feedback)? {
                Some(event) => self.on_feedback.call1(py, (event, PathView::of(path))).map(drop)?,
                None => {
                    if let Some(method) = &self.on_timer {
                        method.call1(py, (PathView::of(path),)).map(drop)?;
                    }
                }
            }
            let mut own = self.object.borrow_mut(py);
            let probes = core::mem::take(&mut own.probes);
            Ok((own.rate, own.filling, own.target, own.window, probes))
        });
        (self.rate, self.filling) = (rate / 8.0, filling / 8.0);
        self.target = target.map(|bps| Rate::from_bps(bps as u64));
        self.window = window.map(|bytes| Size::from_bytes(bytes as u64));
        self.probes.extend(probes);
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.rate * 8.0);
        self.callbacks.gauges(self.object.as_any(), to);
    }
}

impl Kind for Called {
    fn rate(&self) -> f64 {
        self.rate
    }

    fn target(&self) -> Option<Rate> {
        self.target
    }

    fn settings(&self) -> RtpSettings {
        self.settings
    }

    fn window(&self) -> Option<Size> {
        self.window
    }

    fn padding_rate(&self) -> f64 {
        self.filling
    }

    fn frames_every(&mut self, period: Span) {
        Python::attach(|py| self.object.borrow_mut(py).frame_period = Some(period.as_secs_f64()));
    }

    fn next_probe(&mut self) -> Option<Probe> {
        self.probes.pop_front()
    }
}
