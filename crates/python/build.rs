//! Puts papers, suites, leagues, examples, the playground's presets, the kernel's congestion controls and the dissector
//! where the wheel is packed from, so that an installed package has them as a clone has; and gives the sources of the core
//! a number, by which results of two of them are told apart.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

/// Folders at the root, and a file without which each is of no use.
const FOLDERS: [(&str, &str); 7] = [
    ("papers", "README.md"),
    ("suites", "README.md"),
    ("leagues", "README.md"),
    ("examples", "README.md"),
    ("kernel-cc", "cc.h"),
    ("web/presets", "presets.json"),
    ("tools", "wireshark/paceline_tfrc.lua"),
];

fn main() -> ExitCode {
    // Asked for now, not when this was compiled: clones that share a target directory share this program.
    let root = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().join("../..");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    for (folder, must_have) in FOLDERS {
        let (from, to) = (root.join(folder), out.join(folder));
        println!("cargo::rerun-if-changed={}", from.display());
        // A package without them would build, and fail its user later.
        if !from.join(must_have).is_file() {
            let missing = from.join(must_have);
            println!(
                "cargo::error={} is missing: the package carries the folder {folder}. Build in a whole clone or a whole \
                 source distribution.",
                missing.display()
            );
            return ExitCode::FAILURE;
        }
        if let Err(error) = replace(&from, &to) {
            println!("cargo::error={} could not be copied to {}: {error}", from.display(), to.display());
            return ExitCode::FAILURE;
        }
    }
    match sources(&root.join("crates")) {
        Ok(hash) => println!("cargo::rustc-env=PACELINE_SOURCES={hash:016x}"),
        Err(error) => {
            println!("cargo::error=the sources in crates could not be read: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// A hash of all crates' sources but those that only hand results on, the same on every system.
fn sources(crates: &Path) -> io::Result<u64> {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates)? {
        let folder = entry?.path().join("src");
        let faces = ["python", "web"].map(|face| crates.join(face));
        if folder.is_dir() && !faces.iter().any(|face| folder.starts_with(face)) {
            println!("cargo::rerun-if-changed={}", folder.display());
            collect(&folder, &mut files)?;
        }
    }
    let name = |file: &Path| file.strip_prefix(crates).unwrap_or(file).to_string_lossy().replace('\\', "/");
    files.sort_by_key(|file| name(file));
    // FNV-1a of 64 bits: Rust's own hashes may change with its version.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let text = fs::read(&file)?;
        let ends_as_here = text.into_iter().filter(|&byte| byte != b'\r');
        for byte in name(&file).into_bytes().into_iter().chain(ends_as_here) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

/// All files in a folder and those in it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Makes `to` a copy of `from`.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    copy(from, to)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(['.', '_']) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
