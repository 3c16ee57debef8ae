//! Maps events, under any of their names, to updates of a connection.

use super::MAX_NAMES;
use super::state::State;
use super::value::text_of;
use serde_json::Value;

/// Applies an event to a connection. Returns whether the event is one that is read.
pub fn on_event(state: &mut State, name: &str, data: &Value, unit: f64, states: &mut Vec<String>) -> bool {
    let (category, event) = name.rsplit_once(':').unwrap_or(("", name));
    // Other layers' events may have similar names (`http:parameters_set`).
    if !matches!(
        category,
        "" | "quic" | "transport" | "recovery" | "connectivity" | "loss" | "metric_update" | "congestion"
    ) {
        return false;
    }
    // Data that are no object have nothing to read.
    if !data.is_object() {
        return false;
    }
    let frames = || data.get("frames").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match event {
        "packet_sent" => state.sent(data),
        "packet_received" => state.received(data, unit),
        "packet_lost" => state.lost(data),
        "packets_lost" => state.several_lost(data),
        "packets_acked" => state.packets_acked(data),
        "frames_processed" | "frames_parsed" => state.acknowledgements(2, frames(), unit),
        "metrics_updated" | "recovery_metrics_updated" | "metric_update" | "congestion_metric_update" => {
            state.metrics(data, unit);
            if event == "congestion_metric_update" {
                state.state = text_of(data, &["state"]).and_then(|name| numbered(states, name)).or(state.state);
            }
        }
        "congestion_state_updated" => {
            state.state = text_of(data, &["new"]).and_then(|name| numbered(states, name)).or(state.state);
        }
        "parameters_set" | "recovery_parameters_set" => state.parameters(data),
        "mtu_updated" => state.mtu(data),
        "timer_updated" | "loss_timer_updated" => state.timer(data),
        "connection_started" => state.started(data),
        "connection_closed" | "connection_close" => state.closed = true,
        "connection_state_updated" => {
            state.closed |= matches!(text_of(data, &["new"]), Some("closed" | "closing" | "draining"));
        }
        _ => return false,
    }
    true
}

/// The number of a name; a new name gets one if there is space.
fn numbered(names: &mut Vec<String>, name: &str) -> Option<usize> {
    let name: String = name.chars().take(100).collect();
    names.iter().position(|known| *known == name).or_else(|| {
        (names.len() < MAX_NAMES).then(|| {
            names.push(name);
            names.len() - 1
        })
    })
}
