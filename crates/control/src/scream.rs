//! SCReAM v2: media whose window follows losses, marks and queueing delay, and whose rate follows the window.

pub mod ericsson;
mod queue;
