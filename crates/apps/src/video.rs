//! Variable bit rate video: modelled or recorded frames.
//!
//! The model is Heyman's gamma-beta autoregression ("The GBAR source model for VBR videoconferences", IEEE/ACM ToN
//! 5(4), 1997): x(n) = a(n) x(n-1) + b(n), with x gamma-distributed with shape s, a beta-distributed (r s, (1 - r) s),
//! and b gamma-distributed with shape (1 - r) s. So the distribution of x is stationary, and the correlation at lag k
//! is r^k. A frame's size is x times a weight, which depends on its position in the group of pictures, as in the
//! extension to MPEG by Frey and Nguyen-Quang (ToN 8(6), 2000). They have several processes; here one x serves all
//! frames: a group begins with a key frame, and the others are alike. Gamma draws: Marsaglia and Tsang, ACM TOMS 26(3),
//! 2000.

use paceline_random::Sequence;
use paceline_units::{Rate, Size, Span, Time};
use std::sync::Arc;

/// Parameters of modelled video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoModel {
    /// Mean payload rate.
    pub rate: Rate,
    /// Frames per second.
    pub frame_rate: f64,
    /// Frames from one key frame to the next.
    pub group: u32,
    /// Size of a key frame relative to other frames.
    pub key_size: f64,
    /// Coefficient of variation of x.
    pub variation: f64,
    /// Correlation of x between successive frames; below 1.
    pub correlation: f64,
}

/// A modelled video.
#[derive(Clone, Debug)]
pub(crate) struct Video {
    model: VideoModel,
    start: Time,
    frames: u64,
    /// Mean bytes of a frame other than a key frame.
    base: f64,
    /// x, whose mean is 1; `None` before the first frame.
    level: Option<f64>,
}

impl Video {
    /// A video whose first frame, a key frame, is at `start`.
    pub(crate) fn new(model: VideoModel, start: Time) -> Video {
        let group = f64::from(model.group.max(1));
        let mean = model.rate.bps() / 8.0 / model.frame_rate;
        Video { model, start, frames: 0, base: mean * group / (group - 1.0 + model.key_size), level: None }
    }

    /// Whether the next frame is a key frame.
    pub(crate) fn is_key(&self) -> bool {
        self.frames.is_multiple_of(u64::from(self.model.group.max(1)))
    }

    pub(crate) fn next(&mut self, draws: &mut Sequence) -> (Time, Size) {
        let VideoModel { variation, correlation, .. } = self.model;
        let level = if variation > 0.0 {
            let shape = 1.0 / (variation * variation);
            match self.level {
                None => gamma(shape, draws) / shape,
                Some(before) => {
                    let (kept, new) = (correlation * shape, (1.0 - correlation) * shape);
                    let share = gamma(kept, draws);
                    let share = if share > 0.0 { share / (share + gamma(new, draws)) } else { 0.0 };
                    share * before + gamma(new, draws) / shape
                }
            }
        } else {
            1.0
        };
        self.level = Some(level);
        let key = self.is_key();
        let weight = if key { self.model.key_size } else { 1.0 };
        let at = self.start + Span::from_secs_f64(self.frames as f64 / self.model.frame_rate);
        self.frames += 1;
        (at, Size::from_bytes(libm::round(self.base * weight * level).max(1.0) as u64))
    }
}

/// A gamma draw with this shape and scale 1; 0 for a shape of 0.
fn gamma(shape: f64, draws: &mut Sequence) -> f64 {
    if shape <= 0.0 {
        return 0.0;
    }
    if shape < 1.0 {
        let boost = libm::pow(1.0 - draws.unit(), 1.0 / shape);
        return gamma(shape + 1.0, draws) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = draws.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = 1.0 - draws.unit();
        if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// Recorded frames; they repeat after the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct FramesModel {
    /// Each frame's time after the first one, and its bytes; in order.
    pub frames: Arc<[(Span, Size)]>,
    /// From the first frame to its repetition; later than the last frame.
    pub length: Span,
}

/// A recorded video.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    model: FramesModel,
    base: Time,
    at: usize,
}

impl Frames {
    /// A video whose first frame is at `start`.
    pub(crate) fn new(model: FramesModel, start: Time) -> Frames {
        Frames { model, base: start, at: 0 }
    }

    pub(crate) fn next(&mut self) -> (Time, Size) {
        if self.at == self.model.frames.len() {
            self.at = 0;
            self.base += self.model.length;
        }
        let Some(&(after, size)) = self.model.frames.get(self.at) else { return (Time::NEVER, Size::ZERO) };
        self.at += 1;
        (self.base + after, size)
    }
}

/// The maximum number of frames in a recording.
pub const MAX_FRAMES: usize = 10_000_000;

impl FramesModel {
    /// Reads a frame-size trace: one frame per line, fields separated by white space, the last one its size in bytes.
    /// With `rate`, that many frames come per second; otherwise the field before the last is the frame's time in
    /// seconds. Empty lines and lines that begin with `%` or `#` are ignored.
    ///
    /// # Errors
    /// The line and what is expected; no frame; more than [`MAX_FRAMES`].
    pub fn parse(text: &str, rate: Option<f64>) -> Result<FramesModel, String> {
        let mut frames: Vec<(Span, Size)> = Vec::new();
        let mut first = 0.0;
        for (number, line) in text.lines().enumerate() {
            let said = line.trim();
            if said.is_empty() || said.starts_with(['%', '#']) {
                continue;
            }
            if frames.len() == MAX_FRAMES {
                return Err(format!("the trace has more than {MAX_FRAMES} frames"));
            }
            // The error does not quote the line: the file may hold something that the user should not see.
            let wrong = |expected: &str| format!("line {}: {expected}", number + 1);
            let mut fields = said.split_whitespace().rev();
            let size = fields.next().and_then(|field| field.parse().ok()).filter(|size| (1..=1 << 30).contains(size));
            let size: u64 =
                size.ok_or_else(|| wrong("expected the frame's size as the last field, 1 to 1073741824 bytes"))?;
            let seconds = match rate {
                Some(rate) => frames.len() as f64 / rate,
                None => {
                    let field: Option<f64> = fields.next().and_then(|field| field.parse().ok());
                    let time = field.filter(|time| (0.0..=1e7).contains(time));
                    time.ok_or_else(|| wrong("expected the frame's time before its size, 0 to 10000000 s"))?
                }
            };
            if frames.is_empty() {
                first = seconds;
            }
            let after = Span::from_secs_f64((seconds - first).max(0.0));
            if seconds < first || frames.last().is_some_and(|(before, _)| *before > after) {
                return Err(wrong("expected a time that is not before that of the frame before"));
            }
            frames.push((after, Size::from_bytes(size)));
        }
        let Some(&(last, _)) = frames.last() else { return Err("the trace has no frame".to_owned()) };
        // The last frame lasts as long as the mean of the others; a single frame one second.
        let length = match frames.len() as u64 {
            1 => Span::from_secs(1),
            n => Span(last.0 + (last.0 / (n - 1)).max(1)),
        };
        Ok(FramesModel { frames: frames.into(), length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Period;
    use crate::timed::{Timed, written};
    use paceline_random::Stream;

    const MODEL: VideoModel = VideoModel {
        rate: Rate::from_bps(1_000_000),
        frame_rate: 25.0,
        group: 12,
        key_size: 4.0,
        variation: 0.4,
        correlation: 0.95,
    };

    fn video(model: VideoModel, seconds: f64) -> Vec<(f64, u64)> {
        let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(seconds) };
        written(Timed::video(model, Stream::new(3, "video"), period))
    }

    #[test]
    fn frames_have_the_mean_the_deviation_and_the_correlation_of_the_model() {
        let model = VideoModel { correlation: 0.8, ..MODEL };
        let frames = video(model, 20_000.0);
        assert_eq!(frames.len(), 500_000);
        let rate = frames.iter().map(|(_, size)| *size as f64).sum::<f64>() * 8.0 / 20_000.0;
        let base = 5000.0 * 12.0 / 15.0;
        let levels: Vec<f64> = frames
            .iter()
            .enumerate()
            .map(|(n, (_, size))| *size as f64 / base / if n % 12 == 0 { 4.0 } else { 1.0 })
            .collect();
        let n = levels.len() as f64;
        let mean = levels.iter().sum::<f64>() / n;
        let variance = levels.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let lagged = |k: usize| {
            let sum: f64 = levels.iter().zip(&levels[k..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
            sum / n / variance
        };
        // Correlated with (1 + r) / (1 - r) = 9: a standard error of the mean of 0.4 * 3 / sqrt(500,000) = 0.17 %.
        assert!((rate / 1e6 - 1.0).abs() < 0.008 && (mean - 1.0).abs() < 0.008, "{rate} {mean}");
        assert!((variance.sqrt() - 0.4).abs() < 0.01, "{variance}");
        assert!((lagged(1) - 0.8).abs() < 0.01 && (lagged(3) - 0.512).abs() < 0.02, "{} {}", lagged(1), lagged(3));
        // The skewness of a gamma distribution is twice the coefficient of variation.
        let third = levels.iter().map(|x| (x - mean) * (x - mean) * (x - mean)).sum::<f64>() / n;
        assert!((third / (variance * variance.sqrt()) - 0.8).abs() < 0.1, "{third}");
    }

    #[test]
    fn without_variation_it_is_a_group_of_pictures() {
        let frames = video(VideoModel { variation: 0.0, ..MODEL }, 1.0);
        let sizes: Vec<u64> = frames.iter().map(|(_, size)| *size).collect();
        assert_eq!((sizes[0], sizes[1], sizes[11], sizes[12], sizes.len()), (16_000, 4000, 4000, 16_000, 25));
    }

    #[test]
    fn gamma_draws_have_their_moments() {
        let mut draws = Sequence::new(Stream::new(1, "gamma"));
        for shape in [0.2, 1.0, 6.25, 100.0] {
            let n = 200_000;
            let all: Vec<f64> = (0..n).map(|_| gamma(shape, &mut draws)).collect();
            let mean = all.iter().sum::<f64>() / f64::from(n);
            let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
            assert!((mean / shape - 1.0).abs() < 4.0 / (shape * f64::from(n)).sqrt(), "{shape}: {mean}");
            assert!((variance / shape - 1.0).abs() < 0.05, "{shape}: {variance}");
        }
    }

    #[test]
    fn traces_are_read_with_times_or_at_a_rate() {
        let text = "% Nframe | type | X | timestamp | size (Bytes)\n0 U 0. 0.500000 10288\n1 U 0. 0.506275 2496\n\n2 U 0. 0.538560 2245\n";
        let model = FramesModel::parse(text, None).unwrap();
        let of = |ns: u64, size: u64| (Span(ns), Size::from_bytes(size));
        assert_eq!(model.frames[..], [of(0, 10_288), of(6_275_000, 2496), of(38_560_000, 2245)]);
        assert_eq!(model.length, Span(38_560_000 + 19_280_000));
        let model = FramesModel::parse("0 I 44.34 28.52 1604\n1 P 45.00 28.37 21\n", Some(50.0)).unwrap();
        assert_eq!((&model.frames[..], model.length), (&[of(0, 1604), of(20_000_000, 21)][..], Span::from_millis(40)));
        let period = Period { start: Time::from_secs_f64(1.0), stop: Time::from_secs_f64(1.1) };
        let sent = written(Timed::frames(model, Stream::new(1, "frames"), period));
        assert_eq!(sent, [(1.0, 1604), (1.02, 21), (1.04, 1604), (1.06, 21), (1.08, 1604)]);
        for (text, rate, problem) in [
            ("", None, "no frame"),
            ("1 2.5 x", None, "line 1"),
            ("0.1 100\n0.05 100", None, "not before"),
            ("100", None, "time before its size"),
            ("0", Some(25.0), "1 to"),
        ] {
            let error = FramesModel::parse(text, rate).unwrap_err();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }
}
