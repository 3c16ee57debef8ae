//! What a Rust test may need of the machine; the same as `needs.py`. A test file takes it in with
//! `#[path = "../../../tests/needs.rs"] mod needs;` and begins with `if !needs::have("ns") { return; }`.

/// Whether `need` ("root", "namespaces", "bbr" in the kernel, or a program such as "ns" or "ip") is there. When it is not,
/// says so; panics instead where `PACELINE_NO_SKIP=1` forbids skipping.
#[allow(clippy::disallowed_methods, reason = "a test asks the machine what it has")]
pub fn have(need: &str) -> bool {
    let found = match need {
        "root" => std::process::Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0"),
        // A path's: with the privileges for them, or through a user namespace.
        "namespaces" => {
            std::process::Command::new("unshare").args(["-Urnpf", "true"]).status().is_ok_and(|s| s.success())
        }
        "bbr" => std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .is_ok_and(|names| names.split_ascii_whitespace().any(|name| name == need)),
        program => std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file())),
    };
    probed(need, found)
}

/// The same for what a test has probed itself.
#[allow(dead_code, clippy::disallowed_methods, reason = "few test files probe themselves, and ask the machine then")]
pub fn probed(need: &str, found: bool) -> bool {
    if !found {
        let forbidden = std::env::var("PACELINE_NO_SKIP").is_ok_and(|v| v == "1");
        assert!(!forbidden, "needs {need}, and PACELINE_NO_SKIP=1 forbids skipping");
        eprintln!("skipped: needs {need}");
    }
    found
}
