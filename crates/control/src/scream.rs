//! SCReAM v2: media whose window follows losses, marks and queueing delay, and whose rate follows the window.

mod base_delay;
pub mod draft;
pub mod ericsson;
pub mod libwebrtc;
mod queue;
