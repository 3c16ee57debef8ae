//! A quota for connection logs that clients can make a server write.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The rest of a quota of files and bytes.
#[derive(Debug)]
pub struct LogQuota {
    files: AtomicU64,
    bytes: AtomicU64,
    /// Whether it has been reported as full.
    reported: AtomicBool,
    /// One past the highest flow number in the existing logs.
    first: u64,
}

/// The flow number in a log's file name; `None` if it is not a log.
fn number(name: &str) -> Option<u64> {
    let (of_flow, role) = name.strip_suffix(".sqlog")?.rsplit_once('-')?;
    let (_, number) = of_flow.rsplit_once('-')?;
    let (number, _) = number.split_once('.').unwrap_or((number, ""));
    number.parse().ok().filter(|_| matches!(role, "client" | "server"))
}

/// Takes an amount from the rest; fails if less is left.
fn take(left: &AtomicU64, much: u64) -> io::Result<()> {
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(much));
    taken.map(|_| ()).map_err(|_| io::ErrorKind::StorageFull.into())
}

impl LogQuota {
    /// A quota of `files` files with a total of `bytes` bytes.
    #[must_use]
    pub fn new(files: u64, bytes: u64) -> LogQuota {
        LogQuota { files: files.into(), bytes: bytes.into(), reported: false.into(), first: 1 }
    }

    /// The rest of the quota for a folder that may contain an earlier server's logs.
    ///
    /// # Errors
    /// The system's, about the folder.
    pub fn within(folder: &Path, files: u64, bytes: u64) -> io::Result<LogQuota> {
        let mut quota = LogQuota::new(files, bytes);
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if let Some(number) = entry.file_name().to_str().and_then(number) {
                let left = quota.bytes.get_mut();
                *left = left.saturating_sub(entry.metadata()?.len());
                let left = quota.files.get_mut();
                *left = left.saturating_sub(1);
                quota.first = quota.first.max(number.saturating_add(1));
            }
        }
        Ok(quota)
    }

    /// The number for the first flow: numbers in an earlier server's logs are not reused.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Takes one file from the quota.
    ///
    /// # Errors
    /// If none is left.
    pub(super) fn take_file(&self) -> io::Result<()> {
        take(&self.files, 1)
    }

    /// Whether the quota allows no further log.
    pub(crate) fn is_full(&self) -> bool {
        self.files.load(Ordering::Relaxed) == 0 || self.bytes.load(Ordering::Relaxed) < u64::from(u16::MAX)
    }

    /// The same, but true only the first time.
    pub(crate) fn has_filled(&self) -> bool {
        self.is_full() && !self.reported.swap(true, Ordering::Relaxed)
    }
}

/// A file, with a quota if it is a server's. A write that exceeds the quota is refused completely, so that records stay
/// whole.
#[derive(Debug)]
pub(super) struct Bounded<W> {
    pub(super) to: W,
    pub(super) quota: Option<Arc<LogQuota>>,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(quota) = &self.quota {
            take(&quota.bytes, bytes.len() as u64)?;
        }
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_an_earlier_server_stay_and_count() {
        let folder = std::env::temp_dir().join(format!("paceline-room-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in [("192.0.2.7-3-server.sqlog", 100), ("fe80__1-12.2-client.sqlog", 50), ("99-notes.txt", 9)]
        {
            std::fs::write(folder.join(name), vec![0; bytes]).unwrap();
        }
        let quota = LogQuota::within(&folder, 3, 200);
        std::fs::remove_dir_all(&folder).unwrap();
        let quota = quota.unwrap();
        assert_eq!((quota.first(), quota.files.into_inner(), quota.bytes.into_inner()), (13, 1, 50));
        assert!(LogQuota::within(&folder, 3, 200).is_err(), "it is gone");
    }

    #[test]
    fn what_is_written_together_is_bounded_and_whole() {
        let quota = Arc::new(LogQuota::new(2, 100_000));
        let mut files = [(); 2].map(|()| {
            quota.take_file().unwrap();
            Bounded { to: Vec::new(), quota: Some(Arc::clone(&quota)) }
        });
        assert_eq!(quota.take_file().unwrap_err().kind(), io::ErrorKind::StorageFull);
        files[0].write_all(&[1; 60_000]).unwrap();
        assert!(files[1].write_all(&[2; 40_001]).is_err());
        files[1].write_all(&[2; 40_000]).unwrap();
        assert!(files[0].write_all(&[1]).is_err());
        assert_eq!(files.map(|file| file.to.len()), [60_000, 40_000]);
        assert!(quota.is_full());
        assert!(quota.has_filled() && !quota.has_filled(), "once");
        let mut free = Bounded { to: Vec::new(), quota: None };
        assert!(free.write_all(&[0; 200_000]).is_ok(), "one's own has the disk's");
    }
}
