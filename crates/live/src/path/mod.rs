//! The path emulator: the simulator's links between two devices, driven by the real clock.

pub mod device;
