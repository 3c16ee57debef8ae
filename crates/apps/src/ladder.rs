//! Recorded frame sizes of one sequence, encoded at several rates, for an encoder that selects between them by its
//! target: the trace-driven model of RFC 8593 section 6.

use paceline_units::Rate;
use std::sync::Arc;

/// The minimum and maximum frame size in bytes (section 6.2.1).
const BOUNDS: (f64, f64) = (10.0, 1e6);

/// Frame sizes of one sequence, for each of several rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// Ascending rates in bit/s, each with its frame sizes in bytes; the same number of frames for each.
    rungs: Arc<[(f64, Box<[u32]>)]>,
    /// The number of initial frames to skip when the sequence repeats (`SkipFrames`).
    skip: usize,
}

impl Ladder {
    /// A ladder from the frame sizes in bytes at each rate. `skip`: the number of initial frames that are not typical
    /// of the rest.
    ///
    /// # Errors
    /// The index of the invalid rung, and why: a ladder has at least one rung, rates ascend, and all have the same
    /// number of frames, more than `skip`.
    pub fn new(rungs: Vec<(Rate, Vec<u32>)>, skip: usize) -> Result<Ladder, (usize, String)> {
        let frames = rungs.first().map_or(0, |(_, sizes)| sizes.len());
        for (number, (rate, sizes)) in rungs.iter().enumerate() {
            if number > 0 && *rate <= rungs[number - 1].0 {
                return Err((number, format!("`{rate}` must be more than the rate before, {}", rungs[number - 1].0)));
            }
            if sizes.len() != frames {
                return Err((number, format!("has {} frames where the first has {frames}", sizes.len())));
            }
            if frames <= skip {
                return Err((
                    number,
                    format!("has {frames} frames, of which {skip} are skipped when they begin again"),
                ));
            }
        }
        if rungs.is_empty() {
            return Err((0, "there is none".to_owned()));
        }
        let rungs = rungs.into_iter().map(|(rate, sizes)| (rate.bps().max(1.0), sizes.into_boxed_slice())).collect();
        Ok(Ladder { rungs, skip })
    }

    /// The frame after this one (section 6.2.1, `t_current`).
    pub(crate) fn after(&self, frame: usize) -> usize {
        let next = frame + 1;
        if next < self.rungs[0].1.len() { next } else { self.skip }
    }

    /// A frame's size in bytes at a target of `rate` bit/s: interpolated between two rungs, scaled in proportion to the
    /// rate beyond them.
    pub(crate) fn size(&self, rate: f64, frame: usize) -> f64 {
        let above = self.rungs.partition_point(|(rung, _)| *rung <= rate);
        let of = |rung: &(f64, Box<[u32]>)| f64::from(rung.1[frame]);
        let size = match (above.checked_sub(1).map(|below| &self.rungs[below]), self.rungs.get(above)) {
            (Some(low), Some(high)) => of(low) + (of(high) - of(low)) * (rate - low.0) / (high.0 - low.0),
            (Some(end), None) | (None, Some(end)) => of(end) * rate / end.0,
            (None, None) => 0.0, // a ladder has at least one rung
        };
        size.clamp(BOUNDS.0, BOUNDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        let rungs = vec![(Rate(200_000), vec![4000, 800, 600, 1000]), (Rate(400_000), vec![9000, 1600, 1000, 2000])];
        Ladder::new(rungs, 1).unwrap()
    }

    #[test]
    fn section_6_2_1_between_rungs_beyond_them_and_within_bounds() {
        let ladder = ladder();
        let sizes = |rate: f64| [0, 1, 2, 3].map(|frame| ladder.size(rate, frame));
        assert_eq!(sizes(200e3), [4000.0, 800.0, 600.0, 1000.0]);
        assert_eq!(sizes(250e3), [5250.0, 1000.0, 700.0, 1250.0]);
        assert_eq!(sizes(400e3), [9000.0, 1600.0, 1000.0, 2000.0]);
        assert_eq!(sizes(600e3), [13_500.0, 2400.0, 1500.0, 3000.0]);
        assert_eq!(sizes(100e3), [2000.0, 400.0, 300.0, 500.0]);
        assert_eq!((ladder.size(1e3, 2), ladder.size(1e9, 0)), (10.0, 1e6));
    }

    #[test]
    fn section_6_2_1_the_sequence_begins_again_without_its_beginning() {
        let ladder = ladder();
        let order: Vec<usize> = std::iter::successors(Some(0), |&frame| Some(ladder.after(frame))).take(8).collect();
        assert_eq!(order, [0, 1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn what_is_no_ladder_is_said() {
        let of = |rungs: &[(u64, usize)], skip| {
            let rungs = rungs.iter().map(|&(rate, frames)| (Rate(rate), vec![100; frames])).collect();
            Ladder::new(rungs, skip).map(|_| ()).unwrap_err()
        };
        assert_eq!(of(&[], 0).0, 0);
        assert_eq!(of(&[(2, 5), (2, 5)], 0).0, 1);
        assert_eq!(of(&[(2, 5), (3, 4)], 0).0, 1);
        assert_eq!(of(&[(2, 5)], 5).0, 0);
        assert!(Ladder::new(vec![(Rate(2), vec![1; 6])], 5).is_ok());
    }
}
