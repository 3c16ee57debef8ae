//! The state of the host during a run in real time, which shows whether its measurements can be trusted.

use serde::Serialize;
use std::io;

/// The host's state at a point in time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostState {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Online processors.
    pub cores: u64,
    /// Mean number of runnable tasks over the last minute (`/proc/loadavg`).
    pub load_1min: f64,
    /// Time since boot that a hypervisor took from all processors (`/proc/stat`, steal), in clock ticks.
    pub steal_ticks: u64,
    /// Time of all processors since boot, in clock ticks.
    pub total_ticks: u64,
}

impl HostState {
    /// The state now.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn now() -> io::Result<HostState> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let (steal_ticks, total_ticks) = ticks(&stat);
        Ok(HostState {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cores: stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count() as u64,
            load_1min: load.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            steal_ticks,
            total_ticks,
        })
    }

    /// The share of all processors' time since `earlier` that a hypervisor took; zero if no tick has passed.
    #[must_use]
    pub fn steal_share_since(&self, earlier: &HostState) -> f64 {
        let total = self.total_ticks.saturating_sub(earlier.total_ticks);
        let stolen = self.steal_ticks.saturating_sub(earlier.steal_ticks);
        if total == 0 { 0.0 } else { stolen as f64 / total as f64 }
    }
}

/// Steal time and sum from the first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq,
/// softirq, steal; later fields are included in user and nice.
fn ticks(stat: &str) -> (u64, u64) {
    let words = stat.lines().next().unwrap_or("").split_ascii_whitespace().skip(1).take(8);
    let all: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
    (all.get(7).copied().unwrap_or(0), all.iter().sum())
}

/// The host before and after a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostReport {
    /// At the run's beginning.
    pub before: HostState,
    /// At its end.
    pub after: HostState,
    /// The share of all processors' time in between that a hypervisor took.
    pub steal_share: f64,
}

impl HostReport {
    /// Maximum share of stolen time; above it a run in real time is meaningless.
    pub const MAX_STEAL: f64 = 0.01;

    /// The report of a run that began with `before` and ends now.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn since(before: HostState) -> io::Result<HostReport> {
        let after = HostState::now()?;
        Ok(HostReport { steal_share: after.steal_share_since(&before), before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number() {
        assert_eq!(ticks("cpu  10 1 5 80 2 0 1 7 99 99\ncpu0 1 2\n"), (7, 106));
        assert_eq!(ticks("cpu  10 1 5"), (0, 16));
        assert_eq!(ticks(""), (0, 0));
    }

    #[test]
    fn this_host_has_a_state() {
        let before = HostState::now().unwrap();
        assert!(before.cores > 0 && before.total_ticks > 0 && !before.kernel.is_empty());
        let report = HostReport::since(before.clone()).unwrap();
        assert!((0.0..=1.0).contains(&report.steal_share));
        let mut later = before.clone();
        later.total_ticks += 200;
        later.steal_ticks += 3;
        assert_eq!(later.steal_share_since(&before), 0.015);
    }
}
