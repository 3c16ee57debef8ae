//! The data path in the kernel: programs as instructions ([`assembler`], [`program`]), maps and links through `bpf(2)`
//! ([`system`]), and all of these on an interface ([`attach`]).

pub mod assembler;
pub mod attach;
pub mod program;
pub mod system;
