//! The data path in the kernel: programs made of instructions ([`assembler`], [`program`]), maps and links by `bpf(2)`
//! ([`system`]), and the whole of them on an interface ([`attach`]).

pub mod assembler;
pub mod attach;
pub mod program;
pub mod system;
