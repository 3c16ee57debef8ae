//! Panics of the core are defects; a user gets them as one message, not as a trace on the terminal.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Silences the panics that [`guarded`] catches; all others are reported as before.
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

/// Calls `work`; gives the message and place of a panic in it.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    // What a panic leaves half done is dropped with the closure.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    result.map_err(|_| MESSAGE.take().replace('\n', " "))
}
