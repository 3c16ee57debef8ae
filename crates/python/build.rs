//! Puts the papers' files and the kernel's congestion controls where the wheel is packed from, so that an installed package
//! has them as a clone has.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked for now, not when this was compiled: clones that share a target directory share this program.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ["papers", "kernel-cc"] {
        let (from, to) = (here.join("../..").join(folder), out.join(folder));
        println!("cargo::rerun-if-changed={}", from.display());
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        if from.is_dir() {
            copy(&from, &to)?;
        }
    }
    Ok(())
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
