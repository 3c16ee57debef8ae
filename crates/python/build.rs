//! Puts the papers' files where the wheel is packed from, so that an installed package has them as a clone has.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked for now, not when this was compiled: clones that share a target directory share this program.
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let papers = here.join("../../papers");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", papers.display());
    let to = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default().join("papers");
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    if papers.is_dir() { copy(&papers, &to) } else { Ok(()) }
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
