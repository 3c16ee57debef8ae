//! Panics of the core are defects; users see them as one message instead of a backtrace.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Silences the panics that [`guarded`] catches; all others are reported as usual.
pub fn keep_to_ourselves() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if GUARDED.get() {
            MESSAGE.set(info.to_string());
        } else {
            before(info);
        }
    }));
}

/// Calls `work`; a panic in it is returned as its message and location.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    // State that a panic leaves inconsistent is dropped with the closure.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    result.map_err(|_| MESSAGE.take().replace('\n', " "))
}
