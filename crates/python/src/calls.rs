//! Logs of calls: libwebrtc's, and the packets of captures.

use crate::run::{Series, of_series};
use crate::{InternalError, panics};
use paceline_calls::feedback::{Reports, receiver_reports, table};
use paceline_calls::log::{CallLog as Log, Estimator, RtcpPacket, RtpPacket, Ssrc, Way};
use paceline_calls::{open_loop, rtc_event_log};
use paceline_control::{Profile, RtpController, RtpSettings, registry};
use paceline_units::{Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An RTP packet: nanoseconds from the log's beginning, whether it was sent, SSRC, payload type, sequence number,
/// timestamp, marker, payload bytes, bytes of RTP header and padding, transport-wide sequence number.
type Rtp = (u64, bool, u32, u8, u16, u32, bool, u32, u32, Option<u16>);

/// The log of a call at one of its ends.
#[pyclass(frozen, module = "paceline._core")]
pub struct CallLog {
    log: Log,
    reports: Reports,
}

fn guarded<T>(what: impl FnOnce() -> T) -> PyResult<T> {
    panics::guarded(what).map_err(|panic| {
        InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it with the log."))
    })
}

fn way(left: bool) -> Way {
    if left { Way::Out } else { Way::In }
}

impl CallLog {
    fn of(log: Log) -> CallLog {
        CallLog { reports: Reports::of(&log), log }
    }
}

#[pymethods]
impl CallLog {
    /// Reads an event log of libwebrtc. Raises ValueError if the bytes are none.
    #[staticmethod]
    fn rtc_event_log(py: Python<'_>, bytes: &[u8]) -> PyResult<CallLog> {
        let read = py.detach(|| guarded(|| rtc_event_log::read(bytes).map(CallLog::of)))?;
        read.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// From the packets of a capture, in order of time. RTCP: nanoseconds, whether it was sent, its bytes.
    #[staticmethod]
    fn of_packets(py: Python<'_>, rtp: Vec<Rtp>, rtcp: Vec<(u64, bool, Vec<u8>)>, overhead: u32) -> PyResult<CallLog> {
        let log = py.detach(|| {
            guarded(|| {
                let packet =
                    |(at, left, ssrc, payload_type, number, timestamp, marker, payload, beside, transport): Rtp| {
                        let (at, way, ssrc) = (Time(at), way(left), Ssrc(ssrc));
                        RtpPacket { at, way, ssrc, number, timestamp, marker, payload_type, payload, beside, transport }
                    };
                let control = |(at, left, bytes)| RtcpPacket { at: Time(at), way: way(left), bytes };
                CallLog::of(Log {
                    rtp: rtp.into_iter().map(packet).collect(),
                    rtcp: rtcp.into_iter().map(control).collect(),
                    overhead,
                    ..Log::default()
                })
            })
        })?;
        if log.log.lasts() > Log::LONGEST {
            return Err(PyValueError::new_err("its times lie more than a week apart"));
        }
        Ok(log)
    }

    /// Milliseconds since 1970 at the beginning; None if not logged.
    #[getter]
    fn began_ms(&self) -> Option<i64> {
        self.log.began
    }

    /// Whether it ends in the middle of a message.
    #[getter]
    fn is_cut(&self) -> bool {
        self.log.cut
    }

    /// Count of RTCP packets that could not be read, and of all.
    #[getter]
    fn unread_rtcp(&self) -> (usize, usize) {
        (self.reports.unread, self.log.rtcp.len())
    }

    /// The RTP packets.
    fn rtp(&self) -> Vec<Rtp> {
        let packet = |p: &RtpPacket| {
            let left = p.way == Way::Out;
            (p.at.0, left, p.ssrc.0, p.payload_type, p.number, p.timestamp, p.marker, p.payload, p.beside, p.transport)
        };
        self.log.rtp.iter().map(packet).collect()
    }

    /// The controller's estimates: seconds, its part ("delay", "loss", "scream"), bit/s.
    fn estimates(&self) -> Vec<(f64, &'static str, u64)> {
        let part = |of| match of {
            Estimator::Delay => "delay",
            Estimator::Loss => "loss",
            Estimator::Scream => "scream",
        };
        self.log.estimates.iter().map(|e| (e.at.as_secs_f64(), part(e.of), e.rate)).collect()
    }

    /// The feedback on arrivals over time.
    fn feedback(&self, py: Python<'_>) -> PyResult<Vec<Py<Series>>> {
        let series = py.detach(|| guarded(|| table(&self.log, &self.reports, RtpSettings::REORDERING)))?;
        of_series(py, vec![series])
    }

    /// The receiver reports over time, one table for each source and direction.
    fn reports(&self, py: Python<'_>) -> PyResult<Vec<Py<Series>>> {
        let series = py.detach(|| guarded(|| receiver_reports(&self.reports)))?;
        of_series(py, series)
    }

    /// Replays the log to a scheme: its gauges, one row each `every_s`. Raises ValueError for an unknown scheme or
    /// parameter, or if the log lacks what the scheme needs.
    fn replay(
        &self,
        py: Python<'_>,
        scheme: &str,
        params: Vec<(String, f64)>,
        every_s: f64,
    ) -> PyResult<Vec<Py<Series>>> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let found = registry::scheme(scheme).map_err(|error| wrong(&error))?;
        let params: Vec<(&str, f64)> = params.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let controller = RtpController::new(found, Profile::Rfc, &params).map_err(|error| wrong(&error))?;
        let every = Span::from_secs_f64(every_s.clamp(1e-3, 3600.0));
        let series = py.detach(|| guarded(|| open_loop::replay(&self.log, &self.reports, controller, every)))?;
        of_series(py, vec![series.map_err(|error| wrong(&error))?])
    }
}
