//! Which process owns a socket: `/proc` (proc(5)). Only root sees the open files of other users' processes.

use crate::peer_text::peer_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// A process that has a socket open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Program name (`comm`: at most 15 characters).
    pub program: String,
}

/// Process ids, each with its parent's.
fn parents() -> BTreeMap<u32, u32> {
    pids().filter_map(|pid| Some((pid, parent(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// The fourth field of `/proc/PID/stat`; the second, the program's name, can hold any character and ends at the last
/// ")".
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// All processes.
#[must_use]
pub fn everyone() -> Vec<u32> {
    pids().collect()
}

/// The descendants of `roots`, without `roots` themselves.
#[must_use]
pub fn descendants(roots: &[u32]) -> BTreeSet<u32> {
    let parents = parents();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, &parent) in &parents {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

/// Makes orphaned processes children of the calling one (`PR_SET_CHILD_SUBREAPER`), or stops doing so.
///
/// # Errors
/// The system's.
pub fn adopt_orphans(adopt: bool) -> io::Result<()> {
    // The kernel only checks whether the number is zero.
    let on = adopt.then(rustix::process::getpid);
    Ok(rustix::process::set_child_subreaper(on)?)
}

/// Whether a process runs: a zombie does not.
#[must_use]
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.split_ascii_whitespace().next(), Some("Z" | "X") | None))
}

/// Whether this user may see a process's open files.
///
/// # Errors
/// The system's: EACCES for a process of another user, ENOENT if there is none.
pub fn may_see(pid: u32) -> io::Result<()> {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map(|_| ())
}

/// Finds the owners of sockets (by inode) among the given processes, as far as their open files are visible.
#[must_use]
pub fn find(inodes: &BTreeSet<u32>, among: impl IntoIterator<Item = u32>) -> BTreeMap<u32, Owner> {
    let mut found = BTreeMap::new();
    for pid in among {
        if found.len() == inodes.len() {
            break;
        }
        let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let mut name = None;
        for file in files.flatten() {
            let Some(inode) = std::fs::read_link(file.path()).ok().and_then(|to| inode(to.to_str()?)) else { continue };
            if inodes.contains(&inode) && !found.contains_key(&inode) {
                let name = name.get_or_insert_with(|| program(pid));
                found.insert(inode, Owner { pid, program: name.clone() });
            }
        }
    }
    found
}

/// Parses "socket:[4711]".
fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn program(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let text = peer_text(String::from_utf8_lossy(&bytes).trim());
    if text.is_empty() { "?".to_owned() } else { text }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits for the system")]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_name_with_blanks_and_brackets_hides_no_parent() {
        assert_eq!(parent("12 (a) b (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a"), None);
        assert_eq!(inode("socket:[88]"), Some(88));
        assert_eq!(inode("pipe:[88]"), None);
    }

    #[test]
    #[ignore = "real time"]
    fn ones_own_socket_is_found() {
        let me = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = inode(link.to_str().unwrap()).unwrap();
        let found = find(&BTreeSet::from([inode]), [me]);
        assert_eq!(found[&inode].pid, me);
        assert!(!found[&inode].program.is_empty());
        assert!(descendants(&[1]).len() < everyone().len() + 50);
        assert!(runs(me) && may_see(me).is_ok() && may_see(u32::MAX).is_err());
    }

    #[test]
    #[ignore = "real time"]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let found = descendants(&[std::process::id()]);
        assert!(runs(child.id()));
        child.kill().unwrap();
        for _ in 0..200 {
            if !runs(child.id()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!runs(child.id()), "it has ended, though nobody has asked about it");
        child.wait().unwrap();
        assert!(found.contains(&child.id()));
    }
}
