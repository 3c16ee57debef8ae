//! Writes the glue between a page and the simulator: `bindgen FILE.wasm FOLDER`.
//!
//! It is `wasm-bindgen --target web` as a program of this repository, so that nothing is to be installed by hand and the
//! version follows Cargo.lock. Called by web/build.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wasm, folder] = arguments.as_slice() else {
        eprintln!("usage: bindgen FILE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let made = bindgen.input_path(wasm).web(true).and_then(|bindgen| {
        bindgen.typescript(true).remove_name_section(true).remove_producers_section(true).generate(folder)
    });
    if let Err(error) = made {
        eprintln!("bindgen: {wasm}: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
