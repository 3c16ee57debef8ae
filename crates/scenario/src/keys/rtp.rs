//! RTP in a scenario file: when reports are sent, their contents, how the bottleneck is probed, and the format of
//! feedback on arrivals.

use paceline_control::{RtpFeedback, RtpSettings};
use paceline_flow::rtp::{
    FeedbackConfig, FeedbackFormat, LossField, MinInterval, ProbeConfig, RtpConfig, Spacing, Timing,
};
use paceline_units::{Rate, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An RTP session (RFC 3550); for flows whose controller rides on RTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RtpTable {
    /// Intervals between two reports of a participant.
    #[serde(default)]
    pub timing: ReportTiming,
    /// Mean time between two reports of a participant, unless 5 % of `bandwidth` allow only fewer (T_min).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "5 s; not with timing `reduced`", "x-min" = "1 ms", "x-max" = "10000 s"))]
    pub report_interval: Option<Span>,
    /// Bandwidth of the session; reports may take 5 % of it.
    #[serde(default = "one_megabit")]
    #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
    pub bandwidth: Rate,
    /// Bits of the loss in a report: 8 as in RFC 3550, or 32 in an additional APP packet.
    #[serde(default)]
    pub loss_field: LossBits,
    /// Gaps between packets are multiplied by draws from 1 - this to 1 + this. Otherwise flows at the same rate would
    /// meet a drop-tail queue in lock step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 0.999), extend("x-default" = "0.5; 0 for controllers that pace evenly"))]
    pub gap_jitter: Option<f64>,
    /// Maximum number of data packets sent back to back after a sender report, for controllers that need the
    /// bottleneck's rate measured: 0, or at least 2.
    #[serde(default = "four")]
    #[schemars(range(min = 0, max = 100))]
    pub probe_burst: u16,
    /// Measured rates up to this share above the lowest of them count as equal.
    #[serde(default = "tenth")]
    pub probe_width: Ratio,
    /// Number of the latest measured rates that count.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 10_000))]
    pub probe_history: u32,
    /// Interval between packets of arrival feedback, unless 5 % of `bandwidth` allow only fewer or another key lets
    /// it leave sooner. This key and all that follow are for controllers that need each packet's arrival: all on RTP
    /// but `lda-plus`. With `feedback_share`, it holds until a rate is known. Without any of the keys that say when
    /// feedback leaves, it leaves as in the controller's source: `gcc` by a share of 5 %, `scream` after 16 packets,
    /// a frame's end or 40 ms, `scream-libwebrtc` at a frame's end or after 25 ms, `ndtc` at a frame's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller, else 100 ms; not for `lda-plus`", "x-min" = "1 ms", "x-max" = "10 s"))]
    pub feedback_interval: Option<Span>,
    /// Format of arrival feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`twcc` under `gcc`, else `rfc8888`; not for `lda-plus`"))]
    pub feedback: Option<FeedbackKind>,
    /// Feedback leaves after this number of packets, if that is sooner than `feedback_interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("x-default" = "by controller, else none: by time alone"))]
    pub feedback_packets: Option<u32>,
    /// Feedback leaves when the last packet of a frame has arrived (app `encoder`), if that is sooner than
    /// `feedback_interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller, else `false`; not for `lda-plus`"))]
    pub feedback_frames: Option<bool>,
    /// Sets the interval, from 50 ms to 250 ms, so that feedback takes this share of the bytes on the wire that
    /// arrived within the last second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller, else none: the interval is fixed", "x-min" = "0.1 %", "x-max" = "50 %"))]
    pub feedback_share: Option<Ratio>,
    /// Feedback is sent alone, without a report and a CNAME (RFC 5506).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`false`; not for `lda-plus`"))]
    pub reduced_size: Option<bool>,
    /// ECN for RTP (RFC 6679). The receiver counts marks and reports them at once and with each report. A mark counts
    /// as a loss. The sender first probes the path with two packets per report, and stops where the ECN field is
    /// cleared. Needs `ecn = true`, and excludes `nack`. With `feedback = "rfc8888"`, which reports marks itself,
    /// only the probe remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`true` for `lda-plus` with `ecn = true`, else `false`"))]
    pub ecn_reports: Option<bool>,
    /// The receiver requests missing packets (NACK, RFC 4585), which are sent again (RFC 4588), by libwebrtc's rules.
    /// Only with `feedback = "twcc"`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    #[schemars(extend("x-default" = "`false`"))]
    pub nack: bool,
}

/// Format of arrival feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    /// By RTP's sequence numbers, in 1/1024 s, with ECN marks (RFC 8888).
    #[default]
    Rfc8888,
    /// By transport-wide numbers, in a header extension of 8 bytes in each packet; in 250 us, without marks
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc,
}

impl FeedbackKind {
    /// The format in crate `flow`.
    #[must_use]
    pub fn format(self) -> FeedbackFormat {
        match self {
            FeedbackKind::Rfc8888 => FeedbackFormat::Rfc8888,
            FeedbackKind::Twcc => FeedbackFormat::Transport,
        }
    }

    fn from_machine(format: FeedbackFormat) -> FeedbackKind {
        match format {
            FeedbackFormat::Rfc8888 => FeedbackKind::Rfc8888,
            FeedbackFormat::Transport => FeedbackKind::Twcc,
        }
    }
}

/// Intervals between two reports of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportTiming {
    /// RFC 3550, section 6.3: drawn at random around `report_interval`, half as long at first.
    #[default]
    Rfc3550,
    /// As `rfc3550`, around the reduced minimum: 360 s over `bandwidth` in kbit/s.
    Reduced,
    /// Always `report_interval`.
    Fixed,
}

/// Bits of the loss that a report carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LossBits {
    /// In 256ths, rounded down.
    #[default]
    #[serde(rename = "8 bits")]
    Eight,
    /// In units of 2^-32.
    #[serde(rename = "32 bits")]
    ThirtyTwo,
}

impl Default for RtpTable {
    fn default() -> RtpTable {
        RtpTable {
            timing: ReportTiming::default(),
            report_interval: None,
            bandwidth: one_megabit(),
            loss_field: LossBits::default(),
            gap_jitter: None,
            probe_burst: four(),
            probe_width: tenth(),
            probe_history: thirty(),
            feedback_interval: None,
            feedback: None,
            feedback_packets: None,
            feedback_frames: None,
            feedback_share: None,
            reduced_size: None,
            ecn_reports: None,
            nack: false,
        }
    }
}

impl RtpTable {
    /// Writes the defaults that depend on another key, and on the controller's needs.
    pub(crate) fn fill(&mut self, settings: RtpSettings, writes_frames: bool) {
        self.gap_jitter.get_or_insert(settings.gap_jitter());
        if settings.feedback == RtpFeedback::Arrivals {
            let wanted = settings.feedback_config;
            self.feedback.get_or_insert(FeedbackKind::from_machine(wanted.format));
            // One timing key replaces all of the controller's, which would otherwise make it ineffective.
            if !self.says_when() {
                self.feedback_interval = Some(settings.feedback_interval);
                self.feedback_packets = (wanted.packets > 0).then_some(wanted.packets);
                self.feedback_frames = Some(wanted.frames && writes_frames);
                self.feedback_share = wanted.share.map(Ratio);
            }
            self.feedback_interval.get_or_insert(RtpSettings::FEEDBACK_INTERVAL);
            self.feedback_frames.get_or_insert_default();
            self.reduced_size.get_or_insert(wanted.reduced);
        }
        if self.timing != ReportTiming::Reduced {
            self.report_interval.get_or_insert(FIVE_SECONDS);
        }
    }

    fn says_when(&self) -> bool {
        let counted = self.feedback_packets.is_some() || self.feedback_frames.is_some();
        counted || self.feedback_interval.is_some() || self.feedback_share.is_some()
    }

    /// The format of feedback on arrivals, if given.
    #[must_use]
    pub fn format(&self) -> Option<FeedbackFormat> {
        self.feedback.map(FeedbackKind::format)
    }

    /// The keys of feedback on arrivals, and whether each is given.
    pub(crate) fn of_arrivals(&self) -> [(&'static str, bool); 6] {
        [
            ("feedback_interval", self.feedback_interval.is_some()),
            ("feedback", self.feedback.is_some()),
            ("feedback_packets", self.feedback_packets.is_some()),
            ("feedback_frames", self.feedback_frames.is_some()),
            ("feedback_share", self.feedback_share.is_some()),
            ("reduced_size", self.reduced_size.is_some()),
        ]
    }

    /// `defaults`, overridden by the table.
    #[must_use]
    pub fn config(&self, defaults: RtpConfig) -> RtpConfig {
        RtpConfig {
            timing: Timing {
                min_interval: match self.timing {
                    ReportTiming::Reduced => MinInterval::Reduced,
                    _ => MinInterval::Fixed(self.report_interval.unwrap_or(FIVE_SECONDS)),
                },
                bandwidth: self.bandwidth,
                spacing: if self.timing == ReportTiming::Fixed { Spacing::Fixed } else { Spacing::Rfc3550 },
            },
            loss: match self.loss_field {
                LossBits::Eight => LossField::Eight,
                LossBits::ThirtyTwo => LossField::ThirtyTwo,
            },
            gap_jitter: self.gap_jitter.unwrap_or(defaults.gap_jitter),
            probe: ProbeConfig {
                burst: self.probe_burst,
                width: self.probe_width.0,
                history: self.probe_history as usize,
            },
            feedback_interval: self.feedback_interval.unwrap_or(RtpSettings::FEEDBACK_INTERVAL),
            feedback: FeedbackConfig {
                format: self.format().unwrap_or(defaults.feedback.format),
                packets: self.feedback_packets.unwrap_or(0),
                frames: self.feedback_frames.unwrap_or_default(),
                share: self.feedback_share.map(|share| share.0),
                reduced: self.reduced_size.unwrap_or_default(),
            },
            ecn_reports: self.ecn_reports.unwrap_or(defaults.ecn && defaults.settings.feedback == RtpFeedback::Reports),
            nack: self.nack,
            ..defaults
        }
    }
}

const FIVE_SECONDS: Span = Span::from_secs(5);

const fn one_megabit() -> Rate {
    Rate::from_bps(1_000_000)
}
const fn four() -> u16 {
    4
}
const fn tenth() -> Ratio {
    Ratio(0.1)
}
const fn thirty() -> u32 {
    30
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_control::{Profile, RtpController, registry};

    #[test]
    fn the_tables_defaults_are_the_machines() {
        for name in ["lda-plus", "nada", "ndtc", "scream", "gcc"] {
            let scheme = registry::scheme(name).unwrap();
            let controller = RtpController::new(scheme, Profile::Rfc, &[]).unwrap();
            let settings = paceline_control::MediaController::settings(&controller);
            let mut table = RtpTable::default();
            table.fill(settings, true);
            let machine = RtpConfig::new(Profile::Rfc, settings);
            assert_eq!(table.config(machine.clone()), machine);
        }
    }
}
