//! The port behind what the loop asks of who decides.

use super::controller::{Decides, Feedback, MS, Order, Rates, SECOND, Sent};
use goog_cc::experiments::{CongestionWindowConfig, FieldTrials};
use goog_cc::network_control::{NetworkControllerConfig, NetworkControllerInterface};
use goog_cc::transport::{
    NetworkAvailability, NetworkControlUpdate, PacedPacketInfo, PacketResult, ProbeClusterConfig, ProcessInterval,
    RoundTripTimeUpdate, SentPacket, StreamsConfig, TargetRateConstraints, TransportLossReport,
    TransportPacketsFeedback,
};
use goog_cc::units::{DataRate, DataSize, TimeDelta, Timestamp};
use goog_cc::{GoogCcConfig, GoogCcNetworkController, LossBasedBweV2Config};
use std::collections::VecDeque;

const START: f64 = 300e3;
const MIN_BITRATE: f64 = 30e3;

/// The port.
pub struct Port {
    controller: GoogCcNetworkController,
    orders: VecDeque<ProbeClusterConfig>,
    clusters: Vec<ProbeClusterConfig>,
    lost: u64,
    received: u64,
    next_report: Option<u64>,
}

fn at(now: u64) -> Timestamp {
    Timestamp::from_micros((now / 1000) as i64)
}

fn bytes(size: u64) -> DataSize {
    DataSize::from_bytes(size as i64)
}

impl Port {
    pub fn new(loss_based_bwe_v2: LossBasedBweV2Config) -> Port {
        let congestion_window = CongestionWindowConfig { queue_size_ms: 0, ..CongestionWindowConfig::default() };
        let config = NetworkControllerConfig {
            field_trials: FieldTrials { loss_based_bwe_v2, congestion_window, ..FieldTrials::default() },
            constraints: TargetRateConstraints {
                at_time: at(1_000_000_000_000),
                min_data_rate: Some(DataRate::from_bits_per_sec_float(MIN_BITRATE)),
                max_data_rate: None,
                starting_rate: Some(DataRate::from_bits_per_sec_float(START)),
            },
            stream_based_config: StreamsConfig { pacing_factor: Some(1.1), ..StreamsConfig::default() },
        };
        Port {
            controller: GoogCcNetworkController::new(config, GoogCcConfig { feedback_only: false }),
            orders: VecDeque::new(),
            clusters: Vec::new(),
            lost: 0,
            received: 0,
            next_report: None,
        }
    }

    fn take(&mut self, update: NetworkControlUpdate) {
        self.orders.extend(update.probe_cluster_configs);
    }

    fn packet(&self, packet: &Sent, in_flight: u64) -> SentPacket {
        let cluster = packet.cluster.and_then(|id| self.clusters.iter().find(|c| c.id == id as i32));
        let pacing_info = cluster.map_or_else(PacedPacketInfo::default, |c| {
            let bytes = (c.target_data_rate * c.target_duration).bytes();
            PacedPacketInfo {
                send_bitrate: c.target_data_rate,
                ..PacedPacketInfo::new(c.id, i64::from(c.target_probe_count), bytes)
            }
        });
        SentPacket {
            // as libwebrtc keeps it
            send_time: Timestamp::from_millis((packet.at / MS) as i64),
            size: bytes(packet.size),
            pacing_info,
            sequence_number: i64::from(packet.number),
            data_in_flight: bytes(in_flight),
            ..SentPacket::default()
        }
    }
}

impl Decides for Port {
    fn start(&mut self, now: u64) {
        let there = NetworkAvailability { at_time: at(now), network_available: true };
        let update = self.controller.on_network_availability(there);
        self.take(update);
        self.process(now);
    }

    fn process(&mut self, now: u64) {
        let update = self.controller.on_process_interval(ProcessInterval { at_time: at(now), pacer_queue: None });
        self.take(update);
    }

    fn sent(&mut self, packet: &Sent, in_flight: u64) {
        let packet = SentPacket { send_time: at(packet.at), ..self.packet(packet, in_flight) };
        let update = self.controller.on_sent_packet(packet);
        self.take(update);
    }

    fn feedback(&mut self, feedback: &Feedback, now: u64) {
        self.controller.on_round_trip_time_update(RoundTripTimeUpdate {
            receive_time: at(now),
            round_trip_time: TimeDelta::from_micros((feedback.rtt / 1000) as i64),
            smoothed: false,
        });
        let lost = feedback.packets.iter().filter(|packet| packet.arrived.is_none()).count() as u64;
        self.lost += lost;
        self.received += feedback.packets.len() as u64 - lost;
        if self.next_report.is_none_or(|next| now > next) {
            self.next_report = Some(now + SECOND);
            self.controller.on_transport_loss_report(TransportLossReport {
                receive_time: at(now),
                packets_lost_delta: std::mem::take(&mut self.lost),
                packets_received_delta: std::mem::take(&mut self.received),
                ..TransportLossReport::default()
            });
        }
        let results = feedback.packets.iter().map(|result| PacketResult {
            sent_packet: self.packet(&result.sent, 0),
            receive_time: result.arrived.map_or(Timestamp::plus_infinity(), at),
            ..PacketResult::default()
        });
        let report = TransportPacketsFeedback {
            feedback_time: at(now),
            data_in_flight: bytes(feedback.in_flight),
            packet_feedbacks: results.collect(),
            ..TransportPacketsFeedback::default()
        };
        let update = self.controller.on_transport_packets_feedback(report);
        self.take(update);
    }

    fn rates(&self) -> Rates {
        let state = self.controller.get_network_state(at(0));
        let pacer = state.pacer_config.unwrap();
        let rate = |size: DataSize| size.bytes_float() * 8.0 / pacer.time_window.seconds_float();
        let target = state.target_rate.unwrap().target_rate.bps_float();
        Rates { encoder: target, pacer: rate(pacer.data_window), padding: rate(pacer.pad_window) }
    }

    fn order(&mut self) -> Option<Order> {
        let order = self.orders.pop_front()?;
        let new = Order {
            id: order.id as u32,
            rate: order.target_data_rate.bps_float(),
            bytes: (order.target_data_rate * order.target_duration).bytes() as u64,
            packets: order.target_probe_count as u32,
        };
        self.clusters.push(order);
        Some(new)
    }
}

/// What libwebrtc has in January 2026, where it is not what the port has.
pub fn of_2026() -> LossBasedBweV2Config {
    LossBasedBweV2Config {
        bw_rampup_upper_bound_factor: 1.5,
        bw_rampup_upper_bound_in_hold_factor: 1.2,
        loss_threshold_of_high_bandwidth_preference: 0.2,
        inherent_loss_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        observation_window_size: 15,
        instant_upper_bound_bw_balance: DataRate::from_kilobits_per_sec(100),
        lower_bound_by_acked_rate_factor: 1.0,
        hold_duration_factor: 2.0,
        use_byte_loss_rate: true,
        use_in_start_phase: true,
        padding_duration: TimeDelta::from_seconds(2),
        bound_best_candidate: true,
        pace_at_loss_based_estimate: true,
        ..LossBasedBweV2Config::default()
    }
}
