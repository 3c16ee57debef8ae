//! Bounds the memory of an instance.

/// What one instance may take, in MiB: a page has several, and a browser stays usable beside them.
const MAX_MEMORY: u64 = 1024;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PACELINE_MAX_MEMORY={MAX_MEMORY}");
    if std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|arch| arch == "wasm32") {
        println!("cargo::rustc-cdylib-link-arg=--max-memory={}", MAX_MEMORY << 20);
    }
}
