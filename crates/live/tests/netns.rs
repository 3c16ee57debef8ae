//! Programs in namespaces with a plain wire between them: what they see, what is left behind, what is said of a refusal.

use paceline_live::clock::Clock;
use paceline_live::netns::{Far, Kind, NetDevice, Plan, RunError, Status, run};
use paceline_live::path::{Device as _, Sent, Stop};
use paceline_units::Span;
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd as _, AsRawFd as _};

use crate::needs;
use crate::realtime;

/// Hands on what comes, at once; gives the counts of packets of each direction.
fn wire(near: NetDevice, far: NetDevice, _: Clock, stop: &Stop) -> io::Result<[u64; 2]> {
    let mut ends = [near, far];
    let mut counts = [0; 2];
    let mut buffer = [0; 2000];
    loop {
        let [near, far] = &ends;
        let mut fds = [near.as_fd(), far.as_fd(), stop.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        poll(&mut fds, None)?;
        if !fds[2].revents().is_empty() {
            return Ok(counts);
        }
        for from in [0, 1] {
            while let Some(len) = ends[from].recv(&mut buffer)? {
                counts[from] += 1;
                assert_eq!(ends[1 - from].send(&buffer[..len])?, Sent::Whole);
            }
        }
    }
}

fn plan(line: &str) -> Plan {
    Plan {
        command: ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
        far: Far::Nobody,
        kind: Kind::Any,
        ipv4: false,
        limit: Some(Span::from_secs(20)),
        ender: None,
    }
}

/// What a program writes at the near end.
fn said(plan: &Plan) -> (paceline_live::netns::Ended<[u64; 2]>, String) {
    let mut file = tempfile();
    let mut plan = plan.clone();
    let line = plan.command.pop().unwrap();
    plan.command.push(format!("exec > /proc/self/fd/{} 2>&1; {}", file.as_raw_fd(), line.to_str().unwrap()).into());
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let ended = run(&plan, wire).unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    (ended, text)
}

#[allow(clippy::disallowed_types, reason = "a test may have files")]
fn tempfile() -> std::fs::File {
    rustix::fs::memfd_create("said", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
}

#[test]
#[ignore = "real time"]
fn a_program_reaches_the_far_end() {
    realtime::tried(|| {
        if !needs::have("namespaces") || !needs::have("ping") {
            return;
        }
        let ping = |address: &str| format!("timeout 10 ping -n -c 3 -i 0.1 -W 2 ${address}");
        for kind in [Kind::Tun, Kind::Packet] {
            for address in ["PACELINE_PEER", "PACELINE_PEER6"] {
                let (ended, text) = said(&Plan { kind, ..plan(&ping(address)) });
                assert_eq!(ended.status, Status::Code(0), "{kind:?} {address}: {text}");
                assert_eq!(ended.measured, [3, 3], "{kind:?}: what programs send is carried, and nothing else: {text}");
                assert_eq!(ended.lost, [0, 0]);
                assert_eq!(ended.devices, [if kind == Kind::Tun { "tun" } else { "packet" }; 2]);
            }
        }
    });
}

#[test]
#[ignore = "real time"]
fn a_program_sees_its_own_processes_and_devices_alone() {
    realtime::tried(|| {
        if !needs::have("namespaces") {
            return;
        }
        let (ended, text) = said(&plan("ls -d /proc/[0-9]* | wc -l; cut -d: -f1 /proc/net/dev | tail -n +3; exit 7"));
        assert_eq!(ended.status, Status::Code(7));
        let words: Vec<&str> = text.split_whitespace().collect();
        // init, the shell, ls and wc: some may have ended before ls looks
        assert!((2..=5).contains(&words[0].parse::<u32>().unwrap()), "{text}");
        assert!(
            words[1..].iter().all(|name| ["lo", "path0", "sit0", "tunl0", "ip6tnl0", "gre0"].contains(name)),
            "{text}"
        );
    });
}

#[test]
#[ignore = "real time"]
fn status_limit_and_failure_are_told() {
    realtime::tried(|| {
        if !needs::have("namespaces") {
            return;
        }
        assert_eq!(run(&plan("kill -9 $$"), wire).unwrap().status, Status::Signal(9));
        let ended = run(&Plan { limit: Some(Span::from_millis(300)), ..plan("exec sleep 60") }, wire).unwrap();
        assert_eq!((ended.status, ended.limited), (Status::Signal(libc::SIGTERM), true));
        let missing = Plan { command: vec!["/no/such/program".into()], ..plan("") };
        let text = run(&missing, wire).unwrap_err().to_string();
        assert!(text.contains("`/no/such/program` cannot be run: execve(2) was refused"), "{text}");
        assert!(text.contains("(ENOENT)"), "{text}");
        let folder = Plan { command: vec!["/tmp".into()], ..plan("") };
        assert!(run(&folder, wire).unwrap_err().to_string().contains("(EACCES)"));
        let error = run(&Plan { far: Far::Program("exit 3".into(), 2), ..plan("true") }, wire).unwrap_err();
        assert!(matches!(error, RunError::FarEnded(Status::Code(3))), "{error}");
        let error = run(&plan("true"), |_, _, _, _| Err::<(), _>(io::Error::other("out of order"))).unwrap_err();
        assert_eq!(error.to_string(), "the emulator: out of order");
    });
}

#[test]
#[ignore = "real time"]
fn what_a_program_leaves_behind_ends_with_it() {
    realtime::tried(|| {
        if !needs::have("namespaces") {
            return;
        }
        // A number of seconds that nobody else sleeps for.
        let (ended, _) = said(&plan("setsid sleep 94317 & (setsid nohup sleep 94317 &) ; sleep 0.2"));
        assert_eq!(ended.status, Status::Code(0));
        let left = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains("94317").then_some(entry.file_name())
        });
        assert_eq!(left.count(), 0);
    });
}
