//! The structs of `paceline.h`, field by field. A change of any of them changes [`ABI`].

use core::ffi::{c_char, c_void};

/// `PACELINE_ABI`.
pub const ABI: u32 = 1;

/// `PACELINE_NONE`.
pub const NONE: u64 = u64::MAX;

/// Defines structs with C's layout and public fields.
macro_rules! shared {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $of:ty),* $(,)? })+) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "paceline.h says what they are")]
            pub struct $name { $(pub $field: $of),* }
        )+
    };
}

shared! {
    /// `paceline_path`.
    Path {
        now: u64, srtt: u64, rttvar: u64, min_rtt: u64, in_flight: u32, acked: u32, next: u32, receive_window: u32,
        segment: u32, reserved: u32,
    }
    /// `paceline_tcp_event`.
    TcpEvent {
        kind: u32, segments: u32, in_flight: u32, count: u32, flag: u32, reserved: u32, rtt: u64, window: f64,
        threshold: f64,
    }
    /// `paceline_delivery`.
    Delivery {
        total: u64, newly_acked: u64, newly_lost: u64, prior_delivered: u64, delivered: u64, interval: u64, rtt: u64,
        tx_in_flight: u64, lost: u64, prior_in_flight: u64, in_flight: u64, newly_marked: u32, app_limited: u32,
        window_limited: u32, reserved: u32,
    }
    /// `paceline_lost`.
    Lost { size: u64, total: u64, tx_in_flight: u64, lost: u64, seq: u32, app_limited: u32 }
    /// `paceline_window`.
    Window {
        window: f64, threshold: f64, pacing: f64, base_rtt: f64, quantum: u32, holds_back: u32, failed: *const c_char,
    }
    /// `paceline_tfrc_event`.
    TfrcEvent {
        kind: u32, data_limited: u32, rtt: u64, timeout: u64, receive_rate: f64, loss_event_rate: f64,
    }
    /// `paceline_rate`.
    Rate { rate: f64, pacing: f64, in_slow_start: u32, reserved: u32, failed: *const c_char }
    /// `paceline_packet`.
    Packet {
        sent: u64, arrived: u64, number: u32, size: u32, payload: u32, fate: u32, marked: u32, ends_frame: u32,
    }
    /// `paceline_rtp_event`.
    RtpEvent {
        kind: u32, data_limited: u32, rtt: u64, since: u64, time: u64, waiting: u64, size: u64, backlog: u64,
        in_flight: u64, loss: f64, bottleneck: f64, packets: *const Packet, packet_count: u64,
    }
    /// `paceline_media`.
    Media { rate: f64, target: f64, filling: f64, window: u64, failed: *const c_char }
    /// `paceline_parameter`.
    Parameter {
        name: *const c_char, unit: *const c_char, doc: *const c_char, initial: f64, least: f64, most: f64, whole: u32,
        reserved: u32,
    }
    /// `paceline_gauge`.
    Gauge { name: *const c_char, unit: *const c_char }
    /// `paceline_given`.
    Given { values: *const f64, flow: *const c_char, random: u64, profile: u32, reserved: u32 }
    /// `paceline_controller`.
    Controller {
        abi: u32, machine: u32, name: *const c_char, summary: *const c_char, source: *const c_char, recovery: u32,
        needs: u32, ecn: u32, parameter_count: u32, parameters: *const Parameter, gauges: *const Gauge,
        gauge_count: u32, state_size: u32, wants_reports: u32, transport_wide: u32, feedback_interval: u64, timer: u64,
        silence: u32, tells_sending: u32,
        begin: Option<unsafe extern "C" fn(*mut c_void, *const Given)>,
        on_tcp: Option<unsafe extern "C" fn(*mut c_void, *const TcpEvent, *const Path, *mut Window)>,
        on_delivery: Option<unsafe extern "C" fn(*mut c_void, *const Delivery, *const Path, *mut Window)>,
        on_lost: Option<unsafe extern "C" fn(*mut c_void, *const Lost, *const Path, *mut Window)>,
        on_marks: Option<unsafe extern "C" fn(*mut c_void, u32, u32, *const Path, *mut Window)>,
        on_tfrc: Option<unsafe extern "C" fn(*mut c_void, *const TfrcEvent, *const Path, *mut Rate)>,
        on_rtp: Option<unsafe extern "C" fn(*mut c_void, *const RtpEvent, *const Path, *mut Media)>,
        read_gauges: Option<unsafe extern "C" fn(*const c_void, *mut f64)>,
        end: Option<unsafe extern "C" fn(*mut c_void)>,
    }
}

/// `paceline_controllers`.
pub type Controllers = unsafe extern "C" fn(u32, *mut u32) -> *const Controller;
