//! The measures of flows, simulated and real.

use super::{Always, Column, Measure, measure};
use serde::{Deserialize, Serialize};

/// Declares both rows: a measure of simulated flows is one of real ones too, as far as it is known there.
macro_rules! flows {
    (
        labels { $($(#[$label_meta:meta])* $label:ident: $label_type:ty,)* }
        both {
            $(
                $(#[doc = $doc:literal])+
                $unit:literal $scatter:ident: $($field:ident),+: $type:ty;
            )*
        }
        real {
            $(
                $(#[doc = $real_doc:literal])+
                $real_unit:literal $real_scatter:ident: $($real_field:ident),+: $real_type:ty;
            )*
        }
    ) => {
        /// One flow. What has no value (no round trip was measured, say) is `None`.
        #[derive(Clone, Debug, Default, Serialize)]
        #[allow(missing_docs, reason = "each field's meaning is in MEASURES")]
        pub struct FlowSummary {
            $(pub $label: $label_type,)*
            $($(pub $field: <$type as Column>::Simulated,)+)*
        }

        /// One real flow: the fields of [`FlowSummary`], then those that only real flows have. What cannot be known of real
        /// traffic is `None`.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each field's meaning is in MEASURES")]
        pub struct FlowRow {
            $($(#[$label_meta])* pub $label: $label_type,)*
            $($(pub $field: <$type as Column>::Real,)+)*
            $($(pub $real_field: $real_type,)+)*
        }

        impl FlowSummary {
            /// Its fields but those that tell flows apart.
            pub const MEASURES: &'static [Measure] = &[$(measure!([$($doc),+] $unit $scatter: $($field),+: $type),)*];
        }

        impl FlowRow {
            /// The fields that only real flows have.
            pub const MEASURES: &'static [Measure] =
                &[$(measure!([$($real_doc),+] $real_unit $real_scatter: $($real_field),+: $real_type),)*];
        }
    };
}

flows! {
    labels {
        flow: String,
        instance: u32,
        group: String,
        cc: String,
        // Of what another program sends it is not known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        app: String,
        profile: String,
        from: String,
        to: String,
    }

    both {
        /// round-trip propagation delay of the flow's path, without transmission, queues and host delay
        "s" Steady: propagation_rtt_s: f64;

        /// when the flow started
        "s" Steady: start_s: Always<f64>;

        /// payload delivered to the receiving application per second of active time; each byte counts once (RFC 2647,
        /// 3.17)
        "bit/s" Steady: goodput_bps: Always<f64>;

        /// data on the wire that reached the receiver per second of active time, with headers and retransmissions
        "bit/s" Steady: throughput_bps: f64;

        /// data on the wire that the sender handed to the network per second of active time, with headers and
        /// retransmissions
        "bit/s" Steady: send_rate_bps: f64;

        /// with `rate_bin`: coefficient of variation of the sending rate: the standard deviation (by n) of the bytes
        /// sent in a bin, divided by their mean
        "" Steady: send_rate_cov: Option<f64>;

        /// the same for delivered payload: the burstiness index b of Yang, Kim and Lam (INFOCOM 2001)
        "" Steady: goodput_cov: Option<f64>;

        /// with `rate_bin`: from the flow's start to the end of the first bin whose goodput reaches 0.9 of the mean
        /// over all bins
        "s" Steady: startup_s: Option<f64>;

        /// data packets handed to the host to send, with retransmissions and packets that the host still
        /// [delays](decisions/host-delay.md) at the end; over RTP also sender reports
        "packets" Steady: packets_sent: u64;

        /// data packets that reached the receiving host; over RTP also sender reports
        "packets" Steady: packets_delivered: u64;

        /// data packets dropped in the network for any reason
        "packets" Rare: packets_lost: u64;

        /// acknowledgements dropped in the network for any reason
        "packets" Steady: acks_lost: u64;

        /// retransmissions among `packets_sent`
        "packets" Rare: packets_retransmitted: u64;

        /// `packets_lost / packets_sent`
        "share" Rare: loss_rate: Option<f64>;

        /// `packets_delivered / packets_sent`; packets in flight at either end of the interval and copies made by the
        /// network count when they arrive
        "ratio" Rare: receiving_ratio: Option<f64>;

        /// TFRC: the loss event rate p (RFC 5348, 5.4), averaged over the reports that reached the sender; null for
        /// others, and before the first report
        "share" Steady: loss_event_rate: Option<f64>;

        /// expiries of the retransmission timer (RFC 6298, 5.4), or what takes its place in other protocols
        "" Rare: timeouts: u64;

        /// TCP: series of timeouts, that is, timeouts that were not backed off (the loss indications TO of Padhye et
        /// al., SIGCOMM 1998)
        "" Rare: timeout_series: u64;

        /// loss recoveries started by duplicate ACKs or the scoreboard (RFC 5681, 3.2; RFC 6675)
        "" Rare: fast_retransmits: u64;

        /// reductions of cwnd in response to congestion, with ECN's, or what takes their place in other protocols
        "" Rare: window_cuts: u64;

        /// data packets that arrived marked "congestion experienced" (RFC 3168)
        "" Steady: ecn_marks: u64;

        /// round-trip times: mean, least and greatest of one sample for each acknowledgement of new data; TFRC: for
        /// each report; NADA: for each feedback
        "s" Steady: rtt_mean_s, rtt_min_s, rtt_max_s: Option<f64>;

        /// percentiles of the same samples, to 0.2 %
        "s" Steady: rtt_p50_s, rtt_p95_s, rtt_p99_s: Option<f64>;

        /// time average of the congestion window, up to the last acknowledgement of a flow that is over. RAP, TFRCP,
        /// TFRC: allowed rate times smoothed RTT, in packets of `segment` bytes. Null for UDP
        "packets" Steady: cwnd_mean_packets: Option<f64>;

        /// greatest congestion window since the flow's start, warm-up included
        "packets" Steady: cwnd_max_packets: Option<f64>;

        /// mean length of the retransmission timeouts that were not backed off (T_0 of Padhye et al., SIGCOMM 1998)
        "s" Steady: timeout_mean_s: Option<f64>;

        /// Veno: mean of BaseRTT, the least RTT since it was last reset, at each loss found by duplicates or timeout;
        /// null for others
        "s" Steady: base_rtt_mean_s: Option<f64>;

        /// payload delivered, counted as for `goodput_bps`
        "B" Steady: bytes_delivered: u64;

        /// web: requests begun and completed in the measured interval; FTP with a size: 1, whenever it began; else 0
        "" Steady: transfers_started, transfers_completed: u64;

        /// transfers in progress at the end of the run, whenever they began; no mean includes their time so far
        "" Rare: transfers_unfinished: u64;

        /// mean time of completed transfers, from the start to the acknowledgement of the last byte at the sender; with
        /// [requests](quic.md#requests), from the request to the arrival of the last byte
        "s" Steady: transfer_time_mean_s: Option<f64>;

        /// percentiles of the same times, to 0.2 % or 1 us; null below 2, 20 and 100 completed transfers
        "s" Steady: transfer_time_p50_s, transfer_time_p95_s, transfer_time_p99_s: Option<f64>;

        /// frames that an encoder captured and did not skip (`max_queue`), or that other media wrote or a relay
        /// forwarded over [QUIC](quic.md); null for other applications
        "frames" Steady: frames_sent: Option<u64>;

        /// frames of which every packet arrived; null as for `frames_sent`
        "frames" Steady: frames_complete: Option<u64>;

        /// `frames_complete / frames_sent`; frames in flight at the end count as incomplete. Null if no frame was sent
        "share" Steady: complete_share: Option<f64>;

        /// delay of complete frames, from the capture to the arrival of the last packet, with the wait at the sender;
        /// with a `jitter_buffer`, of shown frames, from the capture to their display: mean, percentiles, greatest
        "s" Steady: frame_delay_mean_s, frame_delay_p50_s, frame_delay_p95_s, frame_delay_p99_s, frame_delay_max_s: Option<f64>;

        /// times that a picture stayed for at least max(3 d, d + 150 ms), where d is the mean of the 30 frames before
        /// it (`freezeCount` of W3C, Identifiers for WebRTC's Statistics API); null without an encoder's pictures
        "" Rare: freezes: Option<u64>;

        /// total time for which these pictures stayed (`totalFreezesDuration`)
        "s" Rare: freeze_s: Option<f64>;

        /// QUIC: frames that the sender gave up at `quic.deadline`: it reset their stream before all was acknowledged,
        /// or their datagram had not left. Some may still arrive. Null for other protocols and applications
        "frames" Rare: frames_reset: Option<u64>;

        /// `frames_reset / frames_sent`; may exceed 1, because frames sent before the end of the warm-up may be given
        /// up after it
        "ratio" Rare: reset_share: Option<f64>;

        /// frames that a [relay](quic.md#relays) gave up because its queue was full or no stream could be opened, or
        /// that an RTP sender discarded because they had waited too long; null for others
        "frames" Rare: frames_dropped: Option<u64>;

        /// `frames_dropped / frames_sent`
        "share" Rare: dropped_share: Option<f64>;

        /// encoder: frames captured but not sent, because the data waiting at the sender would have taken longer than
        /// `max_queue` to leave
        "frames" Rare: frames_skipped: Option<u64>;

        /// frames shown by the end; null without a `jitter_buffer`, as are `frames_late`, `frames_undecodable`,
        /// `key_frames` and `jitter_buffer_delay_s`
        "frames" Steady: frames_shown: Option<u64>;

        /// shown frames that could be decoded only after their play-out time; they are shown at once
        "frames" Rare: frames_late: Option<u64>;

        /// complete frames given up because a frame they depend on never arrived
        "frames" Rare: frames_undecodable: Option<u64>;

        /// complete frames that depend on no other frame
        "frames" Steady: key_frames: Option<u64>;

        /// from the arrival of a frame's first packet to its display: mean over `frames_shown` (`jitterBufferDelay /
        /// jitterBufferEmittedCount`)
        "s" Steady: jitter_buffer_delay_s: Option<f64>;

        /// RTP: packets requested again (`nack`), counted at each request; null for other protocols, as are `plis` and
        /// `feedback_share`
        "packets" Rare: nacks: Option<u64>;

        /// requests for a key frame
        "" Rare: plis: Option<u64>;

        /// bytes that the receiver sent (reports, feedback, requests), as a share of all bytes on the wire that it sent
        /// or received
        "share" Restless: feedback_share: Option<f64>;

        /// one-way delay of data packets that arrived in the measured interval, from the sender's hand-over to the
        /// arrival: mean, least, greatest, to 256 ns; percentiles, to 0.2 %. Null without the flow's `delays`, and for
        /// real flows
        "s" Steady: owd_mean_s, owd_min_s, owd_max_s, owd_p50_s, owd_p95_s, owd_p99_s: Option<f64>;

        /// time between arrivals of data packets: mean, standard deviation (by n), the least that 99 % of the gaps do
        /// not exceed, greatest; null without `delays`
        "s" Steady: interarrival_mean_s, interarrival_sd_s, interarrival_p99_s, interarrival_max_s: Option<f64>;

        /// interarrival jitter J of RFC 3550 (section 6.4.1), averaged over the arrivals: J <- J + (abs(D) - J) / 16,
        /// where D is the change of the transit time between packets; null without `delays`
        "s" Rare: jitter_s: Option<f64>;

        /// simulated `voice` with `delays`: the rating R of ITU-T G.107, from 0 to 100, and the mean opinion score that
        /// it stands for, from 1 to 4.5
        "" Steady: voice_rating, voice_mos: Option<f64>;
    }

    real {
        /// real flows: how long the flow was active, without the warm-up
        "s" Steady: active_s: f64;

        /// real flows: how the flow ended, in a few words: "peer closed", "time is up"
        "" Steady: ended: Option<String>;

        /// real flows: process that owns the socket of a watched connection
        "" Steady: pid: Option<u32>;

        /// real flows: name of that process's program
        "" Steady: program: Option<String>;
    }
}
