//! `bpf(2)`: maps, programs, links. Each of them ends with its descriptor, and so with the process, in whatever way
//! that ends.

use super::assembler::Instruction;
use crate::gateway::table::Plain;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use std::marker::PhantomData;

// enum bpf_cmd, linux/bpf.h
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const MAP_NEXT: libc::c_long = 4;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const MAP_LOOKUP_BATCH: libc::c_long = 24;
const LINK_CREATE: libc::c_long = 28;

/// `BPF_PROG_TYPE_SCHED_CLS`.
const SCHED_CLS: u32 = 3;
/// The licence declared to the kernel: the project's own. The program uses no GPL-only helpers.
const LICENCE: &std::ffi::CStr = c"Apache-2.0 OR MIT";
/// `ENOTSUPP`, for which libc has no name: the kernel does not support batch operations for such a map.
const NOT_SUPPORTED: i32 = 524;
/// Number of attempts to load a program when signals interrupt the verifier.
const ATTEMPTS: u32 = 20;
/// Buffer size for the verifier's log.
const LOG: usize = 1 << 20;

/// `union bpf_attr`, as large as any kernel's; fields that a command does not use are zero.
#[repr(C, align(8))]
struct Attributes([u8; 144]);

impl Attributes {
    fn new() -> Attributes {
        Attributes([0; 144])
    }

    fn u32(mut self, at: usize, value: u32) -> Attributes {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn fd(self, at: usize, fd: BorrowedFd<'_>) -> Attributes {
        self.u32(at, fd.as_raw_fd() as u32)
    }

    fn u64(mut self, at: usize, value: u64) -> Attributes {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn pointer<T>(self, at: usize, value: *const T) -> Attributes {
        self.u64(at, value as usize as u64)
    }

    fn name(mut self, at: usize, name: &str) -> Attributes {
        // At most 15 characters and a zero.
        let len = name.len().min(15);
        self.0[at..at + len].copy_from_slice(&name.as_bytes()[..len]);
        self
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// # Safety
    /// Each pointer in the attributes must refer to as many bytes as the command reads or writes there.
    unsafe fn call(&mut self, command: libc::c_long) -> io::Result<i64> {
        // SAFETY: the length of the attributes is passed, and the caller guarantees their pointers.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), self.0.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// # Safety
    /// As [`Attributes::call`]; the command must return a descriptor.
    unsafe fn open(mut self, command: libc::c_long) -> io::Result<OwnedFd> {
        // SAFETY: guaranteed by the caller.
        let fd = unsafe { self.call(command) }?;
        // SAFETY: the kernel has just opened it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

/// A kind of map (`enum bpf_map_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// By key.
    Hash = 1,
    /// By index.
    Array = 2,
    /// By index, with one value per processor.
    PerCpuArray = 6,
    /// By key; when it is full, the least recently used entry is evicted.
    LruHash = 9,
}

/// A map from `K` to `V`.
#[derive(Debug)]
pub struct Map<K, V> {
    fd: OwnedFd,
    entries: u32,
    types: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> Map<K, V> {
    /// Creates a map with room for `entries`.
    ///
    /// # Errors
    /// The system's: EPERM without CAP_BPF, ENOSYS or EINVAL for a kernel without such maps.
    pub fn new(kind: MapKind, name: &str, entries: u32) -> io::Result<Map<K, V>> {
        let attributes = Attributes::new()
            .u32(0, kind as u32)
            .u32(4, size_of::<K>() as u32)
            .u32(8, size_of::<V>() as u32)
            .u32(12, entries)
            .name(28, name);
        // SAFETY: there are no pointers in it.
        let fd = unsafe { attributes.open(MAP_CREATE) }?;
        Ok(Map { fd, entries, types: PhantomData })
    }

    /// Number of its descriptor, for use in a program.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    fn attributes(&self) -> Attributes {
        Attributes::new().fd(0, rustix::fd::AsFd::as_fd(&self.fd))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The system's, except for ENOENT.
    pub fn get(&self, key: &K) -> io::Result<Option<V>> {
        let mut value = V::default();
        let mut attributes = self.attributes().pointer(8, key).pointer(16, &raw mut value);
        // SAFETY: key and value have the sizes that the map was created with, and any bytes are valid for their types.
        match unsafe { attributes.call(MAP_LOOKUP) } {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The system's: E2BIG if the map is full.
    pub fn set(&self, key: &K, value: &V) -> io::Result<()> {
        let mut attributes = self.attributes().pointer(8, key).pointer(16, value);
        // SAFETY: as in `get`.
        unsafe { attributes.call(MAP_UPDATE) }.map(drop)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// The system's, except for ENOENT.
    pub fn remove(&self, key: &K) -> io::Result<()> {
        let mut attributes = self.attributes().pointer(8, key);
        // SAFETY: as in `get`.
        match unsafe { attributes.call(MAP_DELETE) } {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// All keys with their values. Entries added or removed meanwhile may be missing or occur twice.
    ///
    /// # Errors
    /// The system's.
    pub fn all(&self) -> io::Result<Vec<(K, V)>> {
        const BATCH: usize = 1024;
        let mut found = Vec::new();
        let (mut keys, mut values) = (vec![K::default(); BATCH], vec![V::default(); BATCH]);
        let (mut place, mut next) = ([0_u64; 8], [0_u64; 8]);
        let mut room = BATCH;
        let mut begun = false;
        loop {
            let mut attributes = Attributes::new()
                .u64(0, if begun { (&raw const place) as usize as u64 } else { 0 })
                .pointer(8, &raw mut next)
                .pointer(16, keys.as_mut_ptr())
                .pointer(24, values.as_mut_ptr())
                .u32(32, room as u32)
                .fd(36, rustix::fd::AsFd::as_fd(&self.fd));
            // SAFETY: the buffers hold `room` keys and values, which is the number passed; a hash map's position takes
            // four bytes.
            let result = unsafe { attributes.call(MAP_LOOKUP_BATCH) };
            let count = (attributes.word(32) as usize).min(room);
            let ended = match result {
                Ok(_) => false,
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT) => true,
                    // a bucket with more entries than there was room for
                    Some(libc::ENOSPC) if room < self.entries as usize => {
                        room *= 2;
                        keys.resize(room, K::default());
                        values.resize(room, V::default());
                        continue;
                    }
                    Some(libc::EINVAL | NOT_SUPPORTED | libc::EOPNOTSUPP) if !begun => return self.one_by_one(),
                    _ => return Err(error),
                },
            };
            found.extend(keys.iter().copied().zip(values.iter().copied()).take(count));
            if ended {
                return Ok(found);
            }
            place = next;
            begun = true;
        }
    }

    /// The same for kernels before 5.6.
    fn one_by_one(&self) -> io::Result<Vec<(K, V)>> {
        let mut found = Vec::new();
        let mut key: Option<K> = None;
        while found.len() < self.entries as usize {
            let mut next = K::default();
            let before = key.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            let mut attributes = self.attributes().pointer(8, before).pointer(16, &raw mut next);
            // SAFETY: two keys, or a null pointer and a key.
            match unsafe { attributes.call(MAP_NEXT) } {
                Ok(_) => {
                    found.extend(self.get(&next)?.map(|value| (next, value)));
                    key = Some(next);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// An array of counters for each processor.
#[derive(Debug)]
pub struct Counters<const N: usize> {
    fd: OwnedFd,
    processors: usize,
}

impl<const N: usize> Counters<N> {
    /// New counters, all zero.
    ///
    /// # Errors
    /// The system's.
    pub fn new(name: &str) -> io::Result<Counters<N>> {
        let attributes = Attributes::new()
            .u32(0, MapKind::PerCpuArray as u32)
            .u32(4, 4)
            .u32(8, 8 * N as u32)
            .u32(12, 1)
            .name(28, name);
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        // SAFETY: there are no pointers in it.
        let fd = unsafe { attributes.open(MAP_CREATE) }?;
        Ok(Counters { fd, processors: processors(&possible) })
    }

    /// Number of the map's descriptor, for use in a program.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The sums over all processors.
    ///
    /// # Errors
    /// The system's.
    pub fn sums(&self) -> io::Result<[u64; N]> {
        let mut all = vec![[0_u64; N]; self.processors];
        let key = 0_u32;
        let mut attributes = Attributes::new()
            .fd(0, rustix::fd::AsFd::as_fd(&self.fd))
            .pointer(8, &raw const key)
            .pointer(16, all.as_mut_ptr());
        // SAFETY: there is room for a value of each possible processor, whose size is a multiple of eight.
        unsafe { attributes.call(MAP_LOOKUP) }?;
        let mut sums = [0; N];
        for values in all {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
        }
        Ok(sums)
    }
}

/// Number of processors in a list such as `0-3` or `0,2-5`: its highest number plus one.
fn processors(possible: &str) -> usize {
    let numbers = possible.trim().split([',', '-']).filter_map(|word| word.parse::<usize>().ok());
    // Too high a number wastes memory; too low a number lets the kernel write beyond the buffer.
    numbers.max().map_or(4096, |highest| highest + 1)
}

/// A program loaded into the kernel.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// A program's effect on a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// The packet after the run.
    pub packet: Vec<u8>,
    /// The program's return value.
    pub verdict: i32,
    /// Mean duration of a run (nanoseconds).
    pub nanoseconds: u32,
}

impl Program {
    /// Loads a program.
    ///
    /// # Errors
    /// The system's; if the verifier rejects the program, with the end of its log.
    pub fn load(name: &str, instructions: &[Instruction]) -> io::Result<Program> {
        let attributes = || {
            Attributes::new()
                .u32(0, SCHED_CLS)
                .u32(4, instructions.len() as u32)
                .pointer(8, instructions.as_ptr())
                .pointer(16, LICENCE.as_ptr())
                .name(48, name)
        };
        let mut attempts = 0;
        let error = loop {
            attempts += 1;
            // SAFETY: the number of instructions is passed, and the string ends with zero.
            match unsafe { attributes().open(PROG_LOAD) } {
                Ok(fd) => return Ok(Program(fd)),
                // a signal interrupted the verifier
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && attempts < ATTEMPTS => {}
                Err(error) => break error,
            }
        };
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::E2BIG)) {
            return Err(error);
        }
        // try again, with the verifier's log
        let mut log = vec![0_u8; LOG];
        let with_log = attributes().u32(24, 1).u32(28, LOG as u32).pointer(32, log.as_mut_ptr());
        // SAFETY: as above, and there is room for the log.
        match unsafe { with_log.open(PROG_LOAD) } {
            Ok(fd) => Ok(Program(fd)),
            Err(again) => {
                let text = String::from_utf8_lossy(&log);
                let text = text.trim_end_matches('\0').trim_end();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines[lines.len().saturating_sub(12)..].join("\n");
                Err(if last.is_empty() { again } else { io::Error::new(again.kind(), format!("{again}: {last}")) })
            }
        }
    }

    /// The program's descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        rustix::fd::AsFd::as_fd(&self.0)
    }

    /// Attaches the program to an interface's ingress or egress with a link, which ends with its descriptor (Linux
    /// 6.6).
    ///
    /// # Errors
    /// The system's: EINVAL for a kernel without such links.
    pub fn link(&self, interface: u32, direction: super::program::Direction) -> io::Result<OwnedFd> {
        // enum bpf_attach_type
        let kind = match direction {
            super::program::Direction::Ingress => 46,
            super::program::Direction::Egress => 47,
        };
        let attributes = Attributes::new().fd(0, self.fd()).u32(4, interface).u32(8, kind);
        // SAFETY: there are no pointers in it.
        unsafe { attributes.open(LINK_CREATE) }
    }

    /// Runs the program `repeat` times on a packet that begins with an Ethernet header; nobody else sees the packet.
    ///
    /// # Errors
    /// The system's.
    pub fn test_run(&self, packet: &[u8], repeat: u32) -> io::Result<TestRun> {
        self.run(packet, repeat, 0)
    }

    /// Runs the program once on a packet whose checksum a device has computed (`CHECKSUM_COMPLETE`; Linux 6.13).
    ///
    /// # Errors
    /// The system's: EBADMSG if the sum is no longer the packet's, EINVAL for an older kernel.
    pub fn test_run_summed(&self, packet: &[u8]) -> io::Result<TestRun> {
        /// `BPF_F_TEST_SKB_CHECKSUM_COMPLETE`.
        const SUMMED: u32 = 1 << 2;
        self.run(packet, 1, SUMMED)
    }

    fn run(&self, packet: &[u8], repeat: u32, flags: u32) -> io::Result<TestRun> {
        let mut out = vec![0_u8; packet.len() + 256];
        let mut attributes = Attributes::new()
            .fd(0, self.fd())
            .u32(8, packet.len() as u32)
            .u32(12, out.len() as u32)
            .pointer(16, packet.as_ptr())
            .pointer(24, out.as_mut_ptr())
            .u32(32, repeat)
            .u32(64, flags);
        // SAFETY: the packet and the output buffer have the lengths passed.
        unsafe { attributes.call(PROG_TEST_RUN) }?;
        out.truncate(attributes.word(12) as usize);
        Ok(TestRun { packet: out, verdict: attributes.word(4) as i32, nanoseconds: attributes.word(36) })
    }
}

/// Lifts the limit for locked memory, which kernels before 5.11 apply to maps.
pub fn raise_memory_limit() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a complete structure. If this fails, creating a map will report it.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_to_the_highest() {
        assert_eq!(processors("0-3\n"), 4);
        assert_eq!(processors("0"), 1);
        assert_eq!(processors("0,2-5"), 6);
        assert_eq!(processors(""), 4096);
    }
}
