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
        /// round-trip propagation of the flow's path, without transmission, queues and host delay
        "s" Steady: propagation_rtt_s: f64;

        /// when the flow started
        "s" Steady: start_s: Always<f64>;

        /// payload delivered to the receiving application, times 8, by the active time; each byte once (RFC 2647,
        /// 3.17). Of TCP and QUIC's streams in order; of RTP, RAP, TFRCP, TFRC, UDP and QUIC's datagrams as it comes,
        /// over RTP also what NACK brings later
        "bit/s" Steady: goodput_bps: Always<f64>;

        /// bytes on the wire that reached the receiver, retransmissions and headers included, times 8, by the active
        /// time
        "bit/s" Steady: throughput_bps: f64;

        /// bytes on the wire that the sender handed to the network, retransmissions included, times 8, by the active
        /// time
        "bit/s" Steady: send_rate_bps: f64;

        /// with `rate_bin`: coefficient of variation of the sending rate. Time is cut into bins at the multiples of
        /// `rate_bin`; those that lie wholly in the measured interval and between the flow's start and its `stop`
        /// count; standard deviation (by n) of the bytes sent in a bin by their mean. Null without `rate_bin`, below
        /// two bins, or if nothing was sent. Meaningful with some dozens of bins
        "" Steady: send_rate_cov: Option<f64>;

        /// the same of the payload that is delivered: the burstiness index b of Yang, Kim and Lam (INFOCOM 2001)
        "" Steady: goodput_cov: Option<f64>;

        /// with `rate_bin`: from the flow's start to the end of the first such bin with 0.9 of the mean goodput over
        /// all of them, or more
        "s" Steady: startup_s: Option<f64>;

        /// data packets handed to the host to send, retransmissions included; RTP: and sender reports. What the host
        /// still [delays](decisions/host-delay.md) at the end is among them
        "packets" Steady: packets_sent: u64;

        /// data packets that reached the receiving host; RTP: and sender reports
        "packets" Steady: packets_delivered: u64;

        /// data packets of the flow dropped in the network, for whatever reason
        "packets" Rare: packets_lost: u64;

        /// acknowledgements of the flow dropped in the network, for whatever reason
        "packets" Steady: acks_lost: u64;

        /// of those sent, the ones sent before
        "packets" Rare: packets_retransmitted: u64;

        /// `packets_lost / packets_sent`
        "share" Rare: loss_rate: Option<f64>;

        /// `packets_delivered / packets_sent`; what was under way at the ends of the interval, and copies made by the
        /// network, count as they come
        "ratio" Rare: receiving_ratio: Option<f64>;

        /// TFRC flows: mean, over the reports that reached the sender, of the loss event rate p in them (RFC 5348,
        /// 5.4). Null for others, and before a first report
        "share" Steady: loss_event_rate: Option<f64>;

        /// expiries of the retransmission timer (RFC 6298, 5.4); TFRC: of the nofeedback timer while it was sending
        /// (RFC 5348, 4.4); RAP, TFRCP: times at which packets were found without an answer for a timeout; RTP: report
        /// intervals (NADA: feedback intervals) of silence that the controller was told of
        "" Rare: timeouts: u64;

        /// of the timeouts, those that were not backed off: series of timeouts, each counted once (the loss indications
        /// TO of Padhye et al., SIGCOMM 1998); TCP only
        "" Rare: timeout_series: u64;

        /// loss recoveries begun by duplicate ACKs or the scoreboard (RFC 5681, 3.2; RFC 6675)
        "" Rare: fast_retransmits: u64;

        /// reductions of cwnd that answer congestion, ECN's included; TFRC: reports that name a larger loss event rate
        /// than the one before; RAP: cuts of the rate, one for a cluster of losses; TFRCP: none; RTP: reports that name
        /// a loss (NADA: feedback)
        "" Rare: window_cuts: u64;

        /// data packets that arrived with congestion experienced (RFC 3168)
        "" Steady: ecn_marks: u64;

        /// round-trip times, one for each acknowledgement of new data: from the time stamp that it echoes (RFC 7323,
        /// 3.3) to its arrival, so what a receiver delays its ACKs by is part of them, and so is what its host
        /// [delays](decisions/host-delay.md) them by, at most 100 us unless `host_delay` is a time. What the sender's
        /// host delays TCP's data by, up to two packet times where acknowledgements set them off, is left out: they are
        /// stamped as they leave it. Of other machines, which stamp what they hand over, the same 100 us are in it;
        /// TFRC: one for each report, without the delay that it names (RFC 5348, 4.3); NADA: one for each feedback,
        /// without the receiver's wait. Over RTP a report says that wait in units of 1/65536 s (RFC 3550) or 1/1024 s
        /// (RFC 8888), so a sample may lie up to 1 ms below propagation
        "s" Steady: rtt_mean_s, rtt_min_s, rtt_max_s: Option<f64>;

        /// percentiles of the same samples, to 0.2 %
        "s" Steady: rtt_p50_s, rtt_p95_s, rtt_p99_s: Option<f64>;

        /// congestion window, averaged over time, to the last acknowledgement of a flow that is over; RAP, TFRCP, TFRC:
        /// allowed rate times smoothed RTT, in packets of `segment` bytes. Null for UDP
        "packets" Steady: cwnd_mean_packets: Option<f64>;

        /// greatest congestion window since the flow's start, the warm-up included
        "packets" Steady: cwnd_max_packets: Option<f64>;

        /// mean length of the retransmission timeouts that were not backed off (T_0 of Padhye et al., SIGCOMM 1998)
        "s" Steady: timeout_mean_s: Option<f64>;

        /// Veno: mean of BaseRTT, the least round-trip time since it was last forgotten, as it stood at each loss found
        /// by duplicates or timeout. Null for others
        "s" Steady: base_rtt_mean_s: Option<f64>;

        /// payload delivered, as for `goodput_bps`
        "B" Steady: bytes_delivered: u64;

        /// web: requests begun and done in the measured interval; FTP with a size: 1, whenever it began; else 0
        "" Steady: transfers_started, transfers_completed: u64;

        /// transfers under way at the run's end, whenever they began. What these have taken so far is in no mean
        "" Rare: transfers_unfinished: u64;

        /// from a transfer's start to the acknowledgement of its last byte at the sender, a delayed ACK's wait
        /// included; with [requests](quic.md#requests) from asking, a fresh connection's handshakes included, to the
        /// arrival of the last byte; mean over those completed, so the longest are left out while
        /// `transfers_unfinished` is not small beside `transfers_completed`
        "s" Steady: transfer_time_mean_s: Option<f64>;

        /// the same times: those that so many of the transfers do not exceed, to 0.2 % or 1 us. Null below 2, 20 and
        /// 100 completed transfers, of which none would lie above. They come from a histogram like that of round trips:
        /// 256 bytes up to 64 transfers, then 2 kB for each octave that the times span, 28 kB for a million of 10 ms to
        /// a minute
        "s" Steady: transfer_time_p50_s, transfer_time_p95_s, transfer_time_p99_s: Option<f64>;

        /// encoder: frames captured and not skipped (`max_queue`); over [QUIC](quic.md) also what `voice`, `video`,
        /// `video-trace` and `game` write, each write a frame, and what a `relay` sends on. Null for other
        /// applications, as are the next
        "frames" Steady: frames_sent: Option<u64>;

        /// of these, those of which every packet arrived. Where a loss leaves open to which of two frames it belongs,
        /// both count as incomplete: after a frame that was lost whole, so may the one that follows it
        "frames" Steady: frames_complete: Option<u64>;

        /// `frames_complete / frames_sent`; null if none was sent. What was under way at the end counts as incomplete.
        /// The delays below leave out the rest
        "share" Steady: complete_share: Option<f64>;

        /// of complete frames: from the capture to the arrival of the last packet, the wait at the sender included
        /// (where a packet before the frame is missing that may be its first, until that has come too, or has turned
        /// out to be another's); with a `jitter_buffer` of the frames shown, to their showing; mean, the least delay
        /// that such a share of them does not exceed, and the greatest. Over QUIC from when they were written to when
        /// all of them and all before them in their stream have come. Between hosts, whose clocks are not compared, by
        /// how much it is more than the delay of the flow's fastest frame, from when that was captured until all of it
        /// had come ([live](live.md#time)); over an emulated path whole
        "s" Steady: frame_delay_mean_s, frame_delay_p50_s, frame_delay_p95_s, frame_delay_p99_s, frame_delay_max_s: Option<f64>;

        /// encoder, and relays of its pictures, null for others: times at which a frame stayed for at least max(3 d, d
        /// + 150 ms), d being the mean of the 30 frames before it (`freezeCount` of W3C, Identifiers for WebRTC's
        /// Statistics API). Without a `jitter_buffer` a frame is shown when it is complete, unless a later one has
        /// been: nothing evens out jitter, and no frame needs another to be decoded. Unlike there, one that no frame
        /// has ended counts too, up to the run's end (or the flow's `stop`), and so does a screen that no frame has
        /// come to by then, from the flow's start or the warm-up's end; of real flows without an appointed end, up to
        /// the last packet
        "" Rare: freezes: Option<u64>;

        /// how long those frames stayed, in all (`totalFreezesDuration`)
        "s" Rare: freeze_s: Option<f64>;

        /// over QUIC, frames that their sender gave up at `quic.deadline`: their stream was reset before all of them
        /// was acknowledged, or their datagram had not left. Some come all the same: their acknowledgement was on its
        /// way. Null for other machines and applications, as is the next
        "frames" Rare: frames_reset: Option<u64>;

        /// `frames_reset / frames_sent`; of frames from before the warm-up's end too, which may be given up after it,
        /// so that it may be above 1
        "ratio" Rare: reset_share: Option<f64>;

        /// [relay](quic.md#relays): frames given up since more waited than `quic.queue` holds, or since no stream could
        /// be opened. Over RTP frames that the sender threw away, in part or whole, since they had waited for too long,
        /// under a controller that has that ([`scream`, variant `ericsson`](controllers/scream.md)). Of a relay
        /// `frames_sent` are the frames of which a part came in, and `frames_reset` also those of which no more came,
        /// for they were reset before it. Null for all else, as is the next
        "frames" Rare: frames_dropped: Option<u64>;

        /// `frames_dropped / frames_sent`
        "share" Rare: dropped_share: Option<f64>;

        /// encoder: frames captured while what waited at the sender would have taken longer than `max_queue` to leave,
        /// and not sent
        "frames" Rare: frames_skipped: Option<u64>;

        /// with a `jitter_buffer` (else null, as are the next four): frames shown by the end. The rest of `frames_sent`
        /// are `frames_undecodable`, wait for their time or for what they need, or are incomplete
        "frames" Steady: frames_shown: Option<u64>;

        /// of these, those that could be decoded only after their play-out time; they are shown at once
        "frames" Rare: frames_late: Option<u64>;

        /// complete frames that were given up, since a frame that they need never came
        "frames" Rare: frames_undecodable: Option<u64>;

        /// complete frames that need no other
        "frames" Steady: key_frames: Option<u64>;

        /// from the arrival of a frame's first packet to its showing; mean over `frames_shown` (`jitterBufferDelay /
        /// jitterBufferEmittedCount`)
        "s" Steady: jitter_buffer_delay_s: Option<f64>;

        /// RTP: requests to send a packet again, as often as it was asked for (`nack`); null for other machines, as are
        /// the next two
        "packets" Rare: nacks: Option<u64>;

        /// requests for a key frame
        "" Rare: plis: Option<u64>;

        /// of the bytes on the wire that reached the receiver or left it, those that left: reports, feedback, requests
        "share" Restless: feedback_share: Option<f64>;

        /// one-way delay of the data packets that came in the measured interval, from the sender's handing over (over
        /// RTP: from the capture of what is in it) to the arrival, to 256 ns; percentiles to 0.2 %. SYNs are left out,
        /// here and in the next, and so are RTP's sender reports. With `delays` of the flow, which is on for `udp`;
        /// else null, as are the next. Null for real flows: the ends' clocks have nothing to do with one another
        "s" Steady: owd_mean_s, owd_min_s, owd_max_s, owd_p50_s, owd_p95_s, owd_p99_s: Option<f64>;

        /// distance between arrivals of data packets: mean, standard deviation (by n), the least that 99 % of them do
        /// not exceed, the greatest. The first begins with the last arrival before the warm-up's end. The silence in
        /// which a flow ends that could have gone on, or in which nothing ever came, counts for the greatest alone
        "s" Steady: interarrival_mean_s, interarrival_sd_s, interarrival_p99_s, interarrival_max_s: Option<f64>;

        /// interarrival jitter J of RFC 3550 (section 6.4.1), J <- J + (abs(D) - J) / 16 with D the change of the
        /// transit time from one packet to the next: mean of J over the arrivals
        "s" Rare: jitter_s: Option<f64>;

        /// of app `voice` that measures its arrivals (`delays`), simulated: the rating R of ITU-T G.107, from 0 to 100,
        /// and the mean opinion score that it stands for, 1 to 4.5. The delay is a packet's length and the play-out
        /// delay of the arrivals for which R is best, from their median to their greatest; what comes later counts as
        /// lost, beside what was (Cole and Rosenbluth, CCR 31(2), 2001): the share is of what was sent in the measured
        /// interval. Losses count as random (BurstR 1) and concealed: Ie and Bpl are 0 and 25.1 for `g711`, 11 and 19
        /// for `g729`, 15 and 16.1 for `g723`, 5 and 10 for `amr` (G.113, appendix I); all else has G.107's defaults.
        /// Null for `g722` and `opus`, of which a narrow-band model has nothing, and for a `packet` or `interval` of
        /// one's own
        "" Steady: voice_rating, voice_mos: Option<f64>;
    }

    real {
        /// real flows: how long the flow was active, warm-up left out
        "s" Steady: active_s: f64;

        /// real flows: how it ended, in a few words: "peer closed", "time is up"
        "" Steady: ended: Option<String>;

        /// real flows: process that has the socket, of a connection that was watched
        "" Steady: pid: Option<u32>;

        /// real flows: the name of its program
        "" Steady: program: Option<String>;
    }
}
